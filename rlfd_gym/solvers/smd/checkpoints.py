"""Where runs of Algorithm 1 stand, and the sum of what they gave.

A `Checkpoint` is the run itself with its random generator: a copy of it continues exactly, to the
bit (without a model, as far as the oracle's own draws allow). An `SmdState` has those of a solve.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.problem import Point

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.proximal_records import ProximalRun
    from rlfd_gym.solvers.smd.records import Run
    from rlfd_gym.solvers.smd.stages import Search


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Where a run stands: all that is needed to continue it.

    Example:
        >>> from rlfd_gym import solve_smd
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.gridworld(alpha=0.1)
        >>> checkpoint = solve_smd(problem, n_iterations=1000).state.runs[0]
        >>> checkpoint.average.occupancy.shape
        (400,)
    """

    run: Run | ProximalRun
    generator: np.random.Generator
    before: int = 0
    """How many steps were made before the run last started anew."""

    @property
    def steps(self) -> int:
        """How many steps were made in all."""
        return self.before + self.run.steps

    @property
    def average(self) -> Point:
        """The average of the iterates since the run last started anew."""
        return self.run.average()


Start = np.random.SeedSequence | Checkpoint
"""What a run begins with: a random stream of its own, or the checkpoint to continue."""


@dataclass(frozen=True, eq=False)
class SmdState:
    """Where a solve stands: what `initial=` continues.

    Attributes:
        step_sizes: the step sizes of the last call.
        runs: one checkpoint per run; empty if the runs together were too large to be kept.
        last: the last iterate, averaged over the runs.
        fingerprint: what tells the problem from others.
        variant: of the algorithm, "proximal" or "paper".
        search: where the choice of step sizes stands; `None` if they are fixed.

    Example:
        >>> from rlfd_gym import solve_smd
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.gridworld(alpha=0.1)
        >>> solution = solve_smd(problem, n_iterations=1000)
        >>> len(solution.state.runs)
        1
        >>> solve_smd(problem, n_iterations=1000, initial=solution).n_iterations
        2000
    """

    step_sizes: tuple[float, ...]
    runs: tuple[Checkpoint, ...] = field(repr=False)
    last: Point = field(repr=False)
    fingerprint: tuple[float | str, ...] = field(repr=False)
    variant: str = "paper"
    search: Search | None = field(default=None, repr=False)


@dataclass
class Total:
    """The sum of what some runs gave."""

    n_runs: int = 0
    count: int = 0
    """The number of steps of each run since its start."""
    average: list[FloatArray] = field(default_factory=list)
    last: list[FloatArray] = field(default_factory=list)
    records: list[FloatArray] = field(default_factory=list)
    """The sum of the recorded rows, and the sum of the squared gaps."""
    runs: tuple[Checkpoint, ...] = ()
    mixes: bool = False
    """Whether x is a mixture."""
    finished: bool = True
    partial: bool = False
    """Whether it is the beginning of a single run."""

    def add(self, other: Total) -> None:
        """Add other runs, in place."""
        for mine, theirs in ((self.average, other.average), (self.last, other.last), (self.records, other.records)):
            if mine:
                for total, new in zip(mine, theirs, strict=True):
                    total += new
            else:
                mine.extend(np.array(vector) for vector in theirs)
        self.n_runs += other.n_runs
        self.count, self.mixes = other.count, other.mixes
        self.runs += other.runs

    def add_run(self, checkpoint: Checkpoint, records: FloatArray, keep: bool) -> None:
        """Add one run, in place."""
        run = checkpoint.run
        average, last = list(checkpoint.average), list(run.iterate())
        runs = (checkpoint,) if keep else ()
        mixes = getattr(run, "mixture", None) is not None
        self.add(Total(1, checkpoint.steps, average, last, [records, records[:, 0] ** 2], runs, mixes))

    def mean_average(self) -> Point:
        """Return the mean of the runs' averages."""
        return Point(*(vector / self.n_runs for vector in self.average))

    def mean_last(self) -> Point:
        """Return the mean of the runs' last iterates."""
        return Point(*(vector / self.n_runs for vector in self.last))
