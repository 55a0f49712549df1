"""Experts and solutions as named arrays and a JSON header, and back: what a trainer saves to go on from."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd.solve import SmdState, _fingerprint, _RunState

VECTORS = ("policy", "occupancy", "cost", "value")
NUMBERS = ("upper", "lower", "method", "n_iterations", "finished")
POINT = ("cost", "value", "occupancy")
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
    state = solution.state
    header["stats"] = solution.stats
    if state is not None:
        header["step_sizes"] = state.step_sizes
        arrays |= {f"last.{name}": getattr(state.last, name) for name in POINT}
    runs = () if state is None else state.runs
    header["runs"] = [{"count": run.count, "generator": run.generator.bit_generator.state} for run in runs]
    for part in ("iterate", "average") if runs else ():
        for name in POINT:
            arrays[f"runs.{part}.{name}"] = np.stack([getattr(getattr(run, part), name) for run in runs])
    if runs and all(run.log_weight is not None for run in runs):
        arrays["runs.log_weight"] = np.stack([run.log_weight for run in runs])
    return header, arrays


def unpack(header: dict[str, Any], arrays: dict[str, NDArray[Any]], problem: RLfDProblem | BlackBoxProblem) -> Solution:
    """The solution of a problem that `pack` took apart."""
    from rlfd_gym.solvers.smd.kernels import Point  # compiled: loaded when needed

    def point(prefix: str, row: int | None = None) -> Point:
        columns = (arrays[f"{prefix}.{name}"] for name in POINT)
        return Point(*(column if row is None else column[row] for column in columns))

    runs = tuple(
        _RunState(
            generator(run["generator"]),
            count=run["count"],
            iterate=point("runs.iterate", row),
            log_weight=arrays["runs.log_weight"][row] if "runs.log_weight" in arrays else None,
            average=point("runs.average", row),
        )
        for row, run in enumerate(header["runs"])
    )
    state = None
    if "step_sizes" in header:
        state = SmdState(tuple(header["step_sizes"]), runs, point("last"), _fingerprint(problem))
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


def generator(state: dict[str, Any]) -> np.random.Generator:
    """A generator in a given state."""
    kind = getattr(np.random, state["bit_generator"], None)
    if not isinstance(kind, type) or not issubclass(kind, np.random.BitGenerator):
        raise ValueError(f"{state['bit_generator']!r} is no random generator of NumPy's")
    bits = kind()
    bits.state = state
    return np.random.Generator(bits)
