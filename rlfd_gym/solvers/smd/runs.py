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
from rlfd_gym.beliefs import Hull
from rlfd_gym.problem import BlackBoxProblem, Point, Problem, RLfDProblem

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.proximal_records import ProximalRun
    from rlfd_gym.solvers.smd.records import Run
    from rlfd_gym.solvers.smd.stages import Search

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
    proximal: bool = False
    """Whether the steps are those of the proximal variant."""
    staged: bool = False
    """Whether runs start anew from time to time, so that their own counts of steps do as well."""
    point: Point | None = None
    """Where the runs start anew, with their random generators as they are; None to continue them."""

    @property
    def measures(self) -> bool:
        """Whether the kernel itself records: that of the paper's variant, for runs that count all steps."""
        return self.record_every > 0 and not self.proximal and not self.staged

    def until_record(self, checkpoint: Checkpoint) -> int:
        """Return how many steps a kernel that does not record may make until one is due."""
        if not self.record_every or self.measures:
            return self.steps
        return self.record_every - checkpoint.steps % self.record_every


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
    from rlfd_gym.solvers.smd import kernels, measure

    advance, n_draws = _kernel(problem, plan)
    draws, every = np.empty((CHUNK, n_draws)), plan.record_every
    total = Total()
    for start in starts:
        checkpoint = _begin(problem, start, plan)
        before = checkpoint.steps
        rows = np.full((plan.steps // every + 1 if every else 0, measure.COLUMNS), np.nan)
        # CHUNK steps at a time, with their records. The kernel counts them: Ctrl-C may come at any
        # time.
        try:
            while (done := checkpoint.steps - before) < plan.steps:
                block = draws[: min(CHUNK, plan.steps - done, plan.until_record(checkpoint))]
                checkpoint.generator.random(out=block)
                recorded = checkpoint.steps // every - before // every if every else 0
                if advance(checkpoint.run, block, rows[recorded:]) != kernels.OK:
                    raise FloatingPointError(
                        f"step_size: the iterates are no longer finite after {done} steps of sizes {plan.etas}"
                    )
                _record(problem, plan, checkpoint, before, rows)
                update(len(block))
        except KeyboardInterrupt:
            total.finished = False
            _record(problem, plan, checkpoint, before, rows)
        # Keep the run if it is complete, or if there is nothing else.
        done = checkpoint.steps - before
        if done == plan.steps or (done > 0 and not total.n_runs):
            recorded = checkpoint.steps // every - before // every if every else 0
            total.add_run(checkpoint, rows[:recorded], plan.keep)
            total.partial = done < plan.steps
        if not total.finished:
            break
    return total


def _kernel(problem: RLfDProblem, plan: Plan) -> tuple[Callable[[Any, FloatArray, FloatArray], int], int]:
    """Return a function that makes steps of a run, and how many uniforms a step takes.

    It records them as well if that is compiled.
    """
    from rlfd_gym.solvers.smd import kernels, measure, proximal, proximal_records, records

    n_draws = proximal_records.DRAWS if plan.proximal else records.DRAWS
    samples = np.empty((CHUNK, n_draws), np.int32)
    if plan.proximal:
        slots = records.slots_of(problem)
        return lambda run, draws, rows: proximal.advance(run, slots, draws, samples), n_draws
    tables, step = records.tables_of(problem), records.constants_of(problem, plan.etas)
    if not plan.measures:
        return lambda run, draws, rows: kernels.advance(run, tables, step, draws, samples), n_draws
    every = measure.measuring_of(problem, plan.record_every)
    return lambda run, draws, rows: measure.advance_and_measure(run, tables, step, draws, samples, every, rows), n_draws


def _record(problem: RLfDProblem, plan: Plan, checkpoint: Checkpoint, before: int, rows: FloatArray) -> None:
    """Write the row of `rows` that is due, unless the kernel has."""
    from rlfd_gym.solvers.smd import measure

    every = plan.record_every
    if every and not plan.measures and checkpoint.steps > before and checkpoint.steps % every == 0:
        rows[checkpoint.steps // every - before // every - 1] = measure.row_of(problem, checkpoint)


def _begin(problem: RLfDProblem, start: Start, plan: Plan) -> Checkpoint:
    """Begin a run, or continue a copy of it, as planned."""
    generator = generator_of(start)
    if not plan.proximal and plan.point is None:
        return begin(problem, start, generator, plan.uniform_start)
    from rlfd_gym.solvers.smd import proximal_records, records

    point, before = middle(problem) if plan.point is None else plan.point, 0
    if isinstance(start, Checkpoint):
        before = start.steps
    if not plan.proximal:
        return Checkpoint(records.start(problem, point), generator, before)
    step = proximal_records.step_of(problem, plan.etas)
    if plan.point is None and isinstance(start, Checkpoint) and isinstance(start.run, proximal_records.ProximalRun):
        return Checkpoint(start.run.with_step(step), generator, start.before)
    run = proximal_records.start(problem, point, step, problem.expert, problem.mdp.flow(problem.expert))
    return Checkpoint(run, generator, before)


def middle(problem: Problem) -> Point:
    """Return where runs of the proximal variant start: see `rlfd_gym.problem.theorem`."""
    belief: Any = problem.belief
    x = belief.nearest(belief.prior) if not isinstance(belief, Hull) else belief.start(np.random.default_rng(0), True)
    return Point(x, np.zeros(problem.n_states), np.full(problem.n_pairs, 1.0 / problem.n_pairs))


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
        return Checkpoint(start.run.copy(), generator, start.before)
    return Checkpoint(records.start(problem, problem.start(generator, uniform)), generator)
