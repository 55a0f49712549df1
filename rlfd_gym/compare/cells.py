"""One cell of the comparison: a method on a task, from so many demonstrations, with one seed.

What a cell gives depends on its name and on the settings of the solvers, and on nothing else: all that is random in it
comes from a hash of its name. All methods are shown the same demonstrations on the same task and seed, the first 10 of
which are those of the cell with 10 demonstrations. A finished cell is one small file, written whole or not at all.
A solver that gives up (a `RuntimeError`) is a result too: the cell has no numbers, and its note says why.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import warnings
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._files import load_arrays, save_arrays
from rlfd_gym.compare.measures import cost_distance, share_closed
from rlfd_gym.compare.methods import Lesson, Method
from rlfd_gym.compare.tasks import Setting, Task, demonstrations_of, signed_cells
from rlfd_gym.problem.solution import Solution

EXACT = "exact"
_NO_NUMBERS: dict[str, Any] = dict.fromkeys(("true_cost", "share_closed", "cost_distance", "duality_gap"))
KIND, VERSION = "rlfd_gym comparison cell", 1


@dataclass(frozen=True)
class Cell:
    """The name of a cell."""

    task: str
    method: str
    alpha: float | None
    demonstrations: int | str
    """How many, or "exact" for the expert's exact occupancy."""
    seed: int

    @property
    def file_name(self) -> str:
        """Where it is stored."""
        alpha = "" if self.alpha is None else f" alpha={self.alpha!r}".removesuffix(".0")
        return f"{self.task} {self.method}{alpha} {self.demonstrations} seed={self.seed}.npz".replace(" ", "_")


@dataclass(frozen=True, eq=False)
class Row:
    """What came out of a cell."""

    task: str
    method: str
    alpha: float | None
    demonstrations: int | str
    seed: int
    true_cost: float | None
    """By exact policy evaluation; `None` where the solver gave up."""
    share_closed: float | None
    cost_distance: float | None
    """`None` for methods that learn no cost."""
    duality_gap: float | None
    """Of the problem that the method solves; `None` where it has no bounds."""
    seconds: float
    note: str
    """The warnings of the solve."""
    policy: FloatArray | None = field(default=None, repr=False)
    cost: FloatArray | None = field(default=None, repr=False)

    @property
    def cell(self) -> Cell:
        """Its name."""
        return Cell(self.task, self.method, self.alpha, self.demonstrations, self.seed)

    def values(self) -> dict[str, Any]:
        """All but the arrays."""
        return {name: value for name, value in asdict(self).items() if name not in ("policy", "cost")}

    def save(self, folder: Path) -> None:
        """Store it under its name."""
        arrays = {name: array for name in ("policy", "cost") if (array := getattr(self, name)) is not None}
        save_arrays(folder / self.cell.file_name, KIND, VERSION, self.values(), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Row:
        """Read it back."""
        header, arrays = load_arrays(path, KIND, VERSION)
        values = {name: value for name, value in header.items() if name not in ("format", "version")}
        return cls(**values, policy=arrays.get("policy"), cost=arrays.get("cost"))


def run_cell(task: Task, method: Method, cell: Cell, iterations: int, runs: int) -> Row:
    """Solve and measure. The time is that of the solve alone, after a first one in miniature that compiles and imports.

    A method that is in error, rather than giving up, ends the comparison with a `RuntimeError` that names the cell.

    >>> from rlfd_gym.compare import METHODS, TASKS
    >>> row = run_cell(TASKS["inventory"], METHODS["expert"], Cell("inventory", "expert", None, "exact", 0), 1, 1)
    >>> row.share_closed
    0.0
    """
    try:
        return _run_cell(task, method, cell, iterations, runs)
    except ImportError:
        raise  # it says what to install
    except Exception as error:
        raise RuntimeError(f"{cell} failed: {type(error).__name__}: {error}") from error


def _run_cell(task: Task, method: Method, cell: Cell, iterations: int, runs: int) -> Row:
    setting = task.make(cell.seed)
    lesson = Lesson(setting, _shown(setting, cell), cell.alpha or 0.0, iterations, runs, _seed(*asdict(cell).values()))
    _warm_up(method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        try:
            solution = method.solve(lesson)
        except RuntimeError as error:
            return Row(**asdict(cell), **_NO_NUMBERS, seconds=time.perf_counter() - start, note=f"gave up: {error}")
        seconds = time.perf_counter() - start
    learned = solution if isinstance(solution, Solution) else None
    if learned is not None and not learned.finished:
        raise KeyboardInterrupt
    mdp = setting.mdp
    true_cost = mdp.expected_cost(solution.policy, setting.truth)
    gap = np.nan if learned is None else learned.duality_gap
    return Row(
        **asdict(cell),
        true_cost=true_cost,
        share_closed=share_closed(true_cost, *_ends(setting)),
        cost_distance=None if learned is None else cost_distance(learned.cost, setting.truth),
        duality_gap=None if np.isnan(gap) else gap,
        seconds=seconds,
        note="; ".join(sorted({str(warning.message) for warning in caught})),
        policy=solution.policy,
        cost=None if learned is None else learned.cost,
    )


def _ends(setting: Setting) -> tuple[float, float]:
    """The true expected cost of the expert and of the optimum, by the same policy evaluation as everybody's."""
    mdp, truth = setting.mdp, setting.truth
    expert, optimum = mdp.policy_of(setting.expert), mdp.optimal(truth).policy
    return mdp.expected_cost(expert, truth), mdp.expected_cost(optimum, truth)


def _shown(setting: Setting, cell: Cell) -> Any:
    if cell.demonstrations == EXACT:
        return setting.expert
    return demonstrations_of(setting, int(cell.demonstrations), _seed("demonstrations", cell.task, cell.seed))


def _seed(*names: object) -> np.random.SeedSequence:
    """A seed that depends on names only."""
    digest = hashlib.sha256("\n".join(map(str, names)).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "little"))


@cache
def _warm_up(method: Method) -> None:
    """Solve a problem of four cells once per process, so that compiling and importing are not timed."""
    import gymnasium as gym

    env: Any = gym.make("rlfd_gym/WindyGridworld-v0", height=2, width=2, obstacles=[(0, 1)], goals=[(1, 1)]).unwrapped
    setting = Setting(
        env.mdp, env.cost, env.mdp.occupancy_of(env.mdp.uniform_policy()), env.cost, signed_cells(env.mdp)
    )
    with warnings.catch_warnings(), contextlib.suppress(RuntimeError):
        warnings.simplefilter("ignore")
        method.solve(Lesson(setting, setting.expert, 1.0 if method.alpha else 0.0, 10, 1, _seed("warm-up")))
