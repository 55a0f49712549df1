"""Runs of Algorithm 1: what each does, where it stands, and their sum.

A `Checkpoint` is the run itself with its random generator: a copy of it continues exactly, to the
bit (without a model, as far as the oracle's own draws allow). Runs are made in batches, whose sums
are added in order, so that the result does not depend on how many run at a time.

Ctrl-C stops a solve. If one run is made at a time, the answer is what there is by then: all runs
that are complete, or if there is none, the beginning of the first. In a parallel solve Ctrl-C
stops the other threads and is raised.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.problem import BlackBoxProblem, Point, Problem, RLfDProblem

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.records import Run

CHUNK = 4096  # steps per call of a kernel; their draws stay in the second-level cache
BATCH_STEPS = 4_000_000  # steps in a batch of runs, about: handing out a batch should cost little
RESUME_BYTES = 2**29  # the runs are kept for `initial=` up to this size


@dataclass(frozen=True)
class Plan:
    """What every run does: `steps` more steps, of the sizes `etas`."""

    steps: int
    etas: tuple[float, ...]
    uniform_start: bool
    record_every: int
    """0 for no records."""
    keep: bool
    """Whether the runs are kept, to be continued."""


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

    run: Run
    generator: np.random.Generator

    @property
    def average(self) -> Point:
        """The average of the iterates so far."""
        from rlfd_gym.solvers.smd.records import average_of  # compiled: loaded when needed

        return average_of(self.run)


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
        from rlfd_gym.solvers.smd.records import iterate_of  # compiled: loaded when needed

        run = checkpoint.run
        average, last = list(checkpoint.average), list(iterate_of(run))
        runs = (checkpoint,) if keep else ()
        mixes = run.mixture is not None
        self.add(Total(1, run.steps, average, last, [records, records[:, 0] ** 2], runs, mixes))

    def mean_average(self) -> Point:
        """Return the mean of the runs' averages."""
        return Point(*(vector / self.n_runs for vector in self.average))

    def mean_last(self) -> Point:
        """Return the mean of the runs' last iterates."""
        return Point(*(vector / self.n_runs for vector in self.last))


def keeps_runs(problem: Problem, n_runs: int) -> bool:
    """Return whether that many runs are small enough to be kept.

    A pair takes 64 bytes and its place in the tree, a state takes 16 bytes.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> keeps_runs(problem, 4), keeps_runs(problem, 10**9)
        (True, False)
    """
    return (74 * problem.n_pairs + 16 * problem.n_states) * n_runs <= RESUME_BYTES


def run_all(
    problem: RLfDProblem | BlackBoxProblem, plan: Plan, starts: list[Start], n_jobs: int, update: Callable[[int], Any]
) -> Total:
    """Make all runs and add them up."""
    if isinstance(problem, BlackBoxProblem):
        from rlfd_gym.solvers.smd.lockstep import run_in_lockstep  # compiled: loaded when needed

        batches: Iterator[Total] = iter([run_in_lockstep(problem, plan, starts, update)])
    else:
        batches = _batches(problem, plan, starts, n_jobs, update)
    total = Total()
    for batch in batches:
        total.finished &= batch.finished
        if not (batch.partial and total.n_runs):  # whole runs are better than a beginning
            total.add(batch)
    if not total.n_runs:
        raise KeyboardInterrupt("interrupted before the first step")
    return total


def _batches(
    problem: RLfDProblem, plan: Plan, starts: list[Start], n_jobs: int, update: Callable[[int], Any]
) -> Iterator[Total]:
    """Make the batches of runs and yield their sums in order."""
    size = max(1, min(len(starts), BATCH_STEPS // plan.steps))
    batches = [starts[first : first + size] for first in range(0, len(starts), size)]
    if n_jobs == 1 or len(batches) == 1:
        for batch in batches:
            yield (ran := _run_batch(problem, plan, batch, update))
            if not ran.finished:  # Ctrl-C also stops the batches after this one
                return
        return
    from joblib import Parallel, delayed

    number = next(_numbers)
    tasks = (delayed(_run_in_thread)(problem, plan, batch, number) for batch in batches)
    try:
        for result in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
            update(plan.steps * result.n_runs)
            yield result
    except BaseException:
        _stopped.add(number)
        raise


_numbers = itertools.count()
# The numbers of the solves that were interrupted. Workers in other processes have their own set.
_stopped: set[int] = set()


def _run_in_thread(problem: RLfDProblem, plan: Plan, starts: list[Start], number: int) -> Total:
    """Make a batch of a parallel solve; give up once the solve is interrupted."""

    def look(steps: int) -> None:
        if number in _stopped:
            raise InterruptedError("the solve was interrupted")

    return _run_batch(problem, plan, starts, look)


def _run_batch(problem: RLfDProblem, plan: Plan, starts: list[Start], update: Callable[[int], Any]) -> Total:
    """Make some runs, one after the other.

    After Ctrl-C the sum has the complete runs, or if there is none, the beginning of the first.
    """
    from rlfd_gym.solvers.smd import kernels, measure, records

    tables, step = records.tables_of(problem), records.constants_of(problem, plan.etas)
    samples, draws = np.empty((CHUNK, records.DRAWS), np.int32), np.empty((CHUNK, records.DRAWS))
    every = plan.record_every
    measuring = measure.measuring_of(problem, every) if every else None
    total = Total()
    for start in starts:
        checkpoint = begin(problem, start, generator_of(start), plan.uniform_start)
        run, before = checkpoint.run, checkpoint.run.steps
        rows = np.empty((plan.steps // every + 1 if every else 0, measure.COLUMNS))
        # CHUNK steps at a time, with their records. The kernel counts them: Ctrl-C may come at any
        # time.
        try:
            while (done := run.steps - before) < plan.steps:
                block = draws[: min(CHUNK, plan.steps - done)]
                checkpoint.generator.random(out=block)
                if measuring is None:
                    status = kernels.advance(run, tables, step, block, samples)
                else:
                    own = rows[run.steps // every - before // every :]
                    status = measure.advance_and_measure(run, tables, step, block, samples, measuring, own)
                if status != kernels.OK:
                    raise FloatingPointError(
                        f"step_size: the iterates are no longer finite after {done} steps of sizes {plan.etas}"
                    )
                update(len(block))
        except KeyboardInterrupt:
            total.finished = False
        # Keep the run if it is complete, or if there is nothing else.
        done = run.steps - before
        if done == plan.steps or (done > 0 and not total.n_runs):
            recorded = run.steps // every - before // every if every else 0
            total.add_run(checkpoint, rows[:recorded], plan.keep)
            total.partial = done < plan.steps
        if not total.finished:
            break
    return total


def generator_of(start: Start) -> np.random.Generator:
    """Return the generator of a fresh run, or a copy of that of a run to continue."""
    if isinstance(start, np.random.SeedSequence):
        return np.random.Generator(np.random.PCG64(start))
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = start.generator.bit_generator.state
    return generator


def begin(
    problem: RLfDProblem | BlackBoxProblem, start: Start, generator: np.random.Generator, uniform: bool
) -> Checkpoint:
    """Begin a run at a point drawn by its generator, or with a copy of the run to continue."""
    from rlfd_gym.solvers.smd import records

    if isinstance(start, Checkpoint):
        return Checkpoint(records.copy_of(start.run), generator)
    return Checkpoint(records.start(problem, problem.start(generator, uniform)), generator)
