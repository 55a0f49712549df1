"""One cell of the comparison: a method on a task, with a number of demonstrations and one seed.

The result of a cell depends only on its name and on the settings of the solvers: everything random
in it comes from a hash of its name. For a given task and seed, all methods see the same
demonstrations, and a cell with 100 demonstrations begins with those of the cell with 10. What was
learned in one solve is measured in both readings, as a mixture and as a mode
(`rlfd_gym.mdp.reading`). A finished cell is one small file, written completely or not at all. The
file describes itself, so it can be shown without a registry of methods, and says with what
settings and versions it was made. A solver that gives up (a `SolverError`) is a result too: the
cell has no numbers, and its note says why. Every other error ends the comparison.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._files import load_arrays, save_arrays
from rlfd_gym._warnings import collected_warnings
from rlfd_gym.compare import provenance
from rlfd_gym.compare.measures import MEASURES, measured
from rlfd_gym.compare.methods import Lesson, Method
from rlfd_gym.compare.provenance import ProvenanceError
from rlfd_gym.compare.tasks import Instance, Task, demonstrations_of, signed_cells
from rlfd_gym.problem.solution import Solution

EXACT = "exact"
KIND, VERSION = "rlfd_gym comparison cell", 4
MEASURED = ("occupancy", "mode")
"""The readings of a policy that are measured."""


class CellError(RuntimeError):
    """Cells have no result: a method failed without giving up, or a worker died.

    Example:
        >>> issubclass(CellError, RuntimeError)
        True
    """


@dataclass(frozen=True)
class Cell:
    """The name of a cell.

    Attributes:
        task: the name of the task.
        method: the name of the method.
        alpha: the weight of the prior; `None` for methods that take none.
        demonstrations: their number, or "exact" for the expert's exact occupancy.
        seed: 0, 1 and so on.
    """

    task: str
    method: str
    alpha: float | None
    demonstrations: int | str
    seed: int

    @property
    def file_name(self) -> str:
        """The name of the file that stores the cell."""
        alpha = "" if self.alpha is None else f" alpha={self.alpha!r}".removesuffix(".0")
        return f"{self.task} {self.method}{alpha} {self.demonstrations} seed={self.seed}.npz".replace(" ", "_")


@dataclass(frozen=True, eq=False, kw_only=True)
class Result:
    """What a method achieved on a task, and what tables, notes and pictures say about the method.

    Every measure is an attribute too: `result.true_cost` is `result.measures["true_cost"]`.

    Attributes:
        task: the name of the task.
        method: the name of the method.
        alpha: the weight of the prior; `None` for methods that take none.
        demonstrations: their number, or "exact" for the expert's exact occupancy.
        title: the title of the method. This, the next five attributes and `uses_belief` are those
            of `Method`.
        reference: whether this is a reference row.
        uses_prior: whether the method uses the prior.
        uses_basis: whether the method looks for the cost in the hull of the basis.
        stochastic: whether the method draws random numbers.
        most_seeds: the largest number of seeds that the method is run for.
        measures: the numbers by their names in `MEASURES`; `None` for those that the method does
            not have.
        seconds: how long the solve took.
        reading: how the policy is read, "occupancy" (the mixture) or "mode".
    """

    task: str
    method: str
    alpha: float | None
    demonstrations: int | str
    title: str
    reference: bool
    uses_prior: bool
    uses_basis: bool
    stochastic: bool
    most_seeds: int | None
    measures: dict[str, float | None]
    seconds: float
    uses_belief: bool = False
    reading: str = "occupancy"

    @property
    def label(self) -> str:
        """The method's title, with its α, and with its reading if that is the mode."""
        alpha = "" if self.alpha is None else f" α={self.alpha:g}"
        return self.title + alpha + (" as mode" if self.reading == "mode" else "")

    def __getattr__(self, name: str) -> Any:
        """Return a measure."""
        try:
            return self.__dict__["measures"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no attribute or measure {name!r}") from None


@dataclass(frozen=True, eq=False, kw_only=True)
class Row(Result):
    """The result of a cell in one reading. The fields of `Result` say which cell, and hold the numbers.

    Attributes:
        seed: 0, 1 and so on.
        note: the warnings of the solve, or why the solver gave up; then the measures are `None`.
        settings: the settings of the solvers, `iterations` and `runs`.
        versions: the versions of the packages that the numbers depend on.
        code: a digest of this library's code, and its commit.
        readings: the measures by reading; `measures` are those of `reading`.
        policies: the apprentice's policy over pairs, by reading; empty if the solver gave up.
        cost: the learned cost, over pairs; `None` for methods that learn none.
    """

    seed: int
    note: str
    settings: dict[str, int]
    versions: dict[str, str]
    code: dict[str, str]
    readings: dict[str, dict[str, float | None]] = field(repr=False)
    policies: dict[str, FloatArray] = field(default_factory=dict, repr=False)
    cost: FloatArray | None = field(default=None, repr=False)

    @property
    def policy(self) -> FloatArray | None:
        """The apprentice's policy in this reading; `None` if the solver gave up."""
        return self.policies.get(self.reading)

    def read_as(self, reading: str) -> Row:
        """Return the same result in another reading."""
        return replace(self, reading=reading, measures=self.readings[reading])

    @property
    def cell(self) -> Cell:
        """The name of the cell."""
        return Cell(self.task, self.method, self.alpha, self.demonstrations, self.seed)

    def values(self) -> dict[str, Any]:
        """Return a record for a CSV file, without the arrays and the description of the method."""
        where = asdict(self.cell) | {"reading": self.reading}
        return where | self.measures | {"seconds": self.seconds, "note": self.note}

    def save(self, folder: Path) -> None:
        """Store the row in a folder, under the name of its cell."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}
        del values["measures"]  # they are among the readings
        arrays = {f"policy.{reading}": policy for reading, policy in values.pop("policies").items()}
        if (cost := values.pop("cost")) is not None:
            arrays["cost"] = cost
        save_arrays(folder / self.cell.file_name, KIND, VERSION, values, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Row:
        """Read a stored row; measures that were registered after it was stored are `None`."""
        header, arrays = load_arrays(path, KIND, VERSION)
        values = {name: value for name, value in header.items() if name not in ("format", "version")}
        if header["version"] < VERSION:
            raise ProvenanceError(f"{path} does not say how it was made: an older rlfd_gym wrote it. Run it again")
        try:
            values["readings"] = {kind: dict.fromkeys(MEASURES) | values["readings"][kind] for kind in MEASURED}
            policies = {kind: arrays[f"policy.{kind}"] for kind in MEASURED if f"policy.{kind}" in arrays}
            measures = values["readings"][values["reading"]]
            row = cls(**values, measures=measures, policies=policies, cost=arrays.get("cost"))
            name = row.cell.file_name
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path} is damaged ({type(error).__name__}: {error})") from error
        if Path(path).name != name:
            raise ProvenanceError(f"{path} holds the cell of {name}: it was copied or renamed. Delete it")
        return row


def level_key(level: int | str) -> float:
    """Return the key that sorts numbers of demonstrations, with the exact occupancy last."""
    return math.inf if level == EXACT else float(level)


def run_cell(task: Task, method: Method, cell: Cell, iterations: int, runs: int) -> Row:
    """Run a method on a task, and measure the result.

    The time is that of the solve alone: a tiny problem is solved first, so that compiling and
    importing are not timed. If a method fails with an error instead of giving up, the comparison
    ends with a `CellError` that names the cell.

    >>> from rlfd_gym.compare import METHODS, TASKS
    >>> cell = Cell("inventory", "expert", alpha=None, demonstrations="exact", seed=0)
    >>> row = run_cell(TASKS["inventory"], METHODS["expert"], cell, iterations=1, runs=1)
    >>> row.share_closed
    0.0
    """
    try:
        return _run_cell(task, method, cell, iterations, runs)
    except ImportError:
        raise  # the message says what to install
    except Exception as error:
        raise CellError(f"{cell} failed: {type(error).__name__}: {error}") from error


def _run_cell(task: Task, method: Method, cell: Cell, iterations: int, runs: int) -> Row:
    instance = _made(task, cell.seed)
    lesson = _lesson(
        instance,
        _shown(task, cell.demonstrations, cell.seed),
        cell.alpha,
        iterations,
        runs,
        _seed(*asdict(cell).values()),
    )
    _warm_up(method)
    described: dict[str, Any] = {
        name: getattr(method, name)
        for name in (
            "title",
            "reference",
            "uses_prior",
            "uses_basis",
            "uses_belief",
            "stochastic",
            "most_seeds",
            "reading",
        )
    }
    described |= {"settings": {"iterations": iterations, "runs": runs}}
    described |= {"versions": provenance.versions(method.needs_imitation, bool(task.needs)), "code": provenance.code()}
    with collected_warnings() as messages:
        start = time.perf_counter()
        try:
            solution = method.solve(instance if method.reference else lesson)
        except SolverError as error:
            seconds, nothing = time.perf_counter() - start, dict.fromkeys(MEASURES)
            described |= {"measures": nothing, "readings": dict.fromkeys(MEASURED, nothing)}
            return Row(**asdict(cell), **described, seconds=seconds, note=f"gave up: {error}")
        seconds = time.perf_counter() - start
    learned = solution if isinstance(solution, Solution) else None
    if learned is not None and not learned.finished:
        raise KeyboardInterrupt
    policies = {kind: solution.read(instance.mdp, kind) for kind in MEASURED}
    readings = measured(solution, policies, instance)
    return Row(
        **asdict(cell),
        **described,
        measures=readings[method.reading],
        readings=readings,
        seconds=seconds,
        note="; ".join(sorted(set(messages))),
        policies=policies,
        cost=None if learned is None else learned.cost,
    )


@lru_cache(maxsize=64)
def _made(task: Task, seed: int) -> Instance:
    """Return the instance of a task for a seed; a process makes it once for all methods."""
    return task.make(seed)


def _lesson(
    instance: Instance, shown: Any, alpha: float | None, iterations: int, runs: int, seed: np.random.SeedSequence
) -> Lesson:
    """Return what a method may know about a task."""
    return Lesson(
        mdp=instance.mdp, shown=shown, prior=instance.prior, alpha=alpha or 0.0, basis=instance.basis,
        iterations=iterations, runs=runs, seed=seed, belief=instance.belief,
    )  # fmt: skip


@lru_cache(maxsize=64)
def _shown(task: Task, level: int | str, seed: int) -> Any:
    """Return what the expert shows for a seed; a process draws it once for all methods."""
    instance = _made(task, seed)
    if level == EXACT:
        return instance.expert
    return demonstrations_of(instance, int(level), _seed("demonstrations", task.name, seed))


def _seed(*names: object) -> np.random.SeedSequence:
    """Return a seed that depends only on names."""
    digest = hashlib.sha256("\n".join(map(str, names)).encode()).digest()
    return np.random.SeedSequence(int.from_bytes(digest[:16], "little"))


@cache
def _warm_up(method: Method) -> None:
    """Solve a tiny problem once per process, so that compiling and importing are not timed."""
    import gymnasium as gym

    env: Any = gym.make("rlfd_gym/WindyGridworld-v0", height=2, width=2, obstacles=[(0, 1)], goals=[(1, 1)]).unwrapped
    expert = env.mdp.occupancy_of(env.mdp.uniform_policy())
    belief = env.price_ranges(obstacle=(0.5, 1), goal=-1)
    instance = Instance(env.mdp, env.cost, expert, env.cost, signed_cells(env.mdp), belief=belief)
    lesson = _lesson(instance, instance.expert, 1.0 if method.takes_alpha else 0.0, 10, 1, _seed("warm-up"))
    with collected_warnings(), contextlib.suppress(SolverError):
        method.solve(instance if method.reference else lesson)
