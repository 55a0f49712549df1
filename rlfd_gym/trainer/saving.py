"""Experts and solutions as named arrays and a JSON header, and back: what a trainer saves to continue from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem import BlackBoxProblem, Point, RLfDProblem
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd import Checkpoint, SmdState

VECTORS = ("policy", "occupancy", "cost", "value")
NUMBERS = ("upper", "lower", "method", "n_iterations", "finished")
RUN = ("pair_buffer", "state_buffer", "tree", "clock")
SAME_BOUNDS = 1e-6  # bounds on an optimum that differ by less are the same; another machine rounds otherwise
SAMPLES = ("states", "actions", "next_states", "weights")


def pack_expert(expert: FloatArray | SampledExpert) -> dict[str, NDArray[Any]]:
    """The arrays of an expert."""
    if isinstance(expert, SampledExpert):
        return {f"expert.{name}": getattr(expert, name) for name in SAMPLES}
    return {"expert": expert}


def unpack_expert(arrays: dict[str, NDArray[Any]]) -> FloatArray | SampledExpert | None:
    """The expert that `pack_expert` took apart, if there is one."""
    if "expert.states" in arrays:
        return SampledExpert(*(arrays[f"expert.{name}"] for name in SAMPLES))
    return arrays.get("expert")


def pack(solution: Solution) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """(header, arrays) of a solution."""
    arrays = {f"solution.{name}": getattr(solution, name) for name in VECTORS if getattr(solution, name) is not None}
    arrays |= {f"history.{item.name}": getattr(solution.history, item.name) for item in fields(History)}
    header: dict[str, Any] = {name: getattr(solution, name) for name in NUMBERS}
    header["stats"], state = solution.stats, solution.state
    if state is not None:
        header["step_sizes"] = state.step_sizes
        header["generators"] = [checkpoint.generator.bit_generator.state for checkpoint in state.runs]
        arrays |= {f"last.{name}": getattr(state.last, name) for name in Point._fields}
        arrays |= {f"runs.{name}": np.stack([getattr(c.run, name) for c in state.runs]) for name in RUN if state.runs}
    return header, arrays


def unpack(header: dict[str, Any], arrays: dict[str, NDArray[Any]], problem: RLfDProblem | BlackBoxProblem) -> Solution:
    """The solution of a problem that `pack` took apart."""
    state = None
    if "step_sizes" in header:
        last = Point(*(arrays[f"last.{name}"] for name in Point._fields))
        runs = _unpack_runs(header["generators"], arrays, problem)
        state = SmdState(tuple(header["step_sizes"]), runs, last, problem.fingerprint())
    solution = Solution(
        **{name: arrays.get(f"solution.{name}") for name in VECTORS},  # type: ignore[arg-type]
        **{name: header[name] for name in NUMBERS},
        history=History(**{item.name: arrays[f"history.{item.name}"] for item in fields(History)}),
        stats=header["stats"],
        state=state,
    )
    if isinstance(problem, RLfDProblem):
        assert solution.value is not None
        proved = problem.bounds(solution.cost, solution.value, solution.occupancy)
        if not np.allclose(proved, (solution.upper, solution.lower), rtol=SAME_BOUNDS, atol=SAME_BOUNDS):
            raise ValueError("it was saved for another environment, whose transitions give the solution other bounds")
    return solution


def _unpack_runs(
    generators: list[dict[str, Any]], arrays: dict[str, NDArray[Any]], problem: RLfDProblem | BlackBoxProblem
) -> tuple[Checkpoint, ...]:
    """The runs of a solve, their fixed parts taken from the problem rather than from the file."""
    from rlfd_gym.solvers.smd import records  # compiled: loaded when needed

    runs = []
    for number, bits in enumerate(generators):
        uniform = Point(np.zeros(problem.n_pairs), np.zeros(problem.n_states), np.full(problem.n_pairs, 1.0))
        run = records.start(problem, uniform)
        fixed = {name: run.pairs[name].copy() for name in ("prior", "row", "state", "row_length")}
        for name in RUN:
            getattr(run, name)[...] = arrays[f"runs.{name}"][number]
        for name, values in fixed.items():
            run.pairs[name] = values
        runs.append(Checkpoint(run, generator(bits)))
    return tuple(runs)


def generator(state: dict[str, Any]) -> np.random.Generator:
    """A generator in a given state."""
    kind = getattr(np.random, state["bit_generator"], None)
    if not isinstance(kind, type) or not issubclass(kind, np.random.BitGenerator):
        raise ValueError(f"{state['bit_generator']!r} is no random generator of NumPy's")
    bits = kind()
    bits.state = state
    return np.random.Generator(bits)
