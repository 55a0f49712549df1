"""A trainer as one file of named arrays with a JSON header; `rlfd_gym.trainer.loading` reads it.

What is in a file, by version:

1. Runs of Algorithm 1 in another form; they are not read any more.
2. `settings`, `prior`, the expert and, after training, `solution.*`, `history.*`, and for Algorithm 1
   `last.*` and `runs.*` with their generators: all that `train` continues from.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _files
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.packing import pack
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem import Point
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd import SmdState

if TYPE_CHECKING:
    from rlfd_gym.trainer.trainer import RLfDTrainer

FORMAT, VERSION = "rlfd_gym.RLfDTrainer", 2
SAMPLES = ("states", "actions", "next_states", "weights")  # of a `SampledExpert`
VECTORS = ("policy", "occupancy", "cost", "value", "mixture")  # of a `Solution`; the last two may be missing
NUMBERS = ("upper", "lower", "method", "n_iterations", "finished")
RUN = ("pair_buffer", "state_buffer", "tree", "clock")  # what changes in a `Run`
FREE = ("belief.", "expert.", "history.", "solution.mixture")  # arrays whose lengths the problem does not tell

Arrays = dict[str, NDArray[Any]]


def save(trainer: RLfDTrainer, path: str | os.PathLike[str]) -> None:
    """Write a trainer to a file."""
    settings, function = vars(trainer.settings).copy(), None
    if callable(trainer.solver):
        settings["solver"], function = None, getattr(trainer.solver, "__name__", type(trainer.solver).__name__)
    header: dict[str, Any] = {
        "settings": settings,
        "function": function,
        "seed": trainer._seed,
        "horizon": trainer._horizon,
        "noise": trainer._noise,
        "policy_rng": trainer.policy.rng.bit_generator.state,
    }
    pairs = trainer._model.pairs
    arrays: Arrays = {"pair_states": pairs.pair_states, "pair_actions": pairs.pair_actions}
    if trainer.prior is not None:
        arrays["prior"] = trainer.prior
    if trainer.belief is not None:
        header["belief"], own = pack(trainer.belief)
        arrays |= {f"belief.{name}": array for name, array in own.items()}
        settings["alpha"] = None  # it is the belief's
    if trainer._problem is not None:
        arrays |= _pack_expert(trainer._problem.expert)
    if trainer._choice is not None:
        header["choice"] = {name: getattr(trainer._choice, name) for name in ("alpha", "rule", "reason")}
    if trainer._solution is not None:
        header["solution"], own = _pack(trainer._solution, with_state=trainer.solver == "smd")
        arrays |= own
    free = sum(array.nbytes for name, array in arrays.items() if name.startswith(FREE))
    if free > _files.MOST_BYTES:
        raise ValueError(
            f"belief, expert and history take {free} bytes, more than the {_files.MOST_BYTES} that a file may hold"
        )
    _files.save_arrays(path, FORMAT, VERSION, header, arrays)


def is_plain(value: Any) -> bool:
    """Whether a header can hold a statistic: a number, a text, or a sequence of such."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return isinstance(value, (bool, int, float, str, np.generic, np.ndarray))


def _pack_expert(expert: FloatArray | SampledExpert) -> Arrays:
    """Return the arrays of an expert."""
    if isinstance(expert, SampledExpert):
        return {f"expert.{name}": getattr(expert, name) for name in SAMPLES}
    return {"expert": expert}


def _pack(solution: Solution, *, with_state: bool) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a solution, with or without what Algorithm 1 continues from."""
    vectors = {name: getattr(solution, name) for name in VECTORS}
    arrays = {f"solution.{name}": np.asarray(v, np.float64) for name, v in vectors.items() if v is not None}
    arrays |= {f"history.{item.name}": getattr(solution.history, item.name) for item in fields(History)}
    header: dict[str, Any] = {name: getattr(solution, name) for name in NUMBERS}
    header["stats"] = {name: value for name, value in solution.stats.items() if is_plain(value)}
    if with_state:
        state: SmdState = solution.state
        header["step_sizes"] = state.step_sizes
        header["generators"] = [checkpoint.generator.bit_generator.state for checkpoint in state.runs]
        arrays |= {f"last.{name}": getattr(state.last, name) for name in Point._fields}
        arrays |= {f"runs.{name}": np.stack([getattr(c.run, name) for c in state.runs]) for name in RUN if state.runs}
    return header, arrays
