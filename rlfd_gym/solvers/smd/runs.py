"""Runs of Algorithm 1: what each does, several at a time.

Runs are made in batches, whose sums are added in order, so that the result does not depend on how
many run at a time.

Ctrl-C stops a solve. If one run is made at a time, the answer is what there is by then: all runs
that are complete, or if there is none, the beginning of the first. In a parallel solve Ctrl-C
stops the other threads and is raised.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import Hull
from rlfd_gym.problem import BlackBoxProblem, Point, Problem, RLfDProblem
from rlfd_gym.solvers.smd.checkpoints import Checkpoint, Start, Total

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
    rest = kernels.memory_of_hints(problem.n_pairs)
    if plan.proximal:
        slots = records.slots_of(problem)
        return lambda run, draws, rows: proximal.advance(run, slots, draws, samples, rest), n_draws
    tables, step = records.tables_of(problem), records.constants_of(problem, plan.etas)
    if not plan.measures:
        return lambda run, draws, rows: kernels.advance(run, tables, step, draws, samples, rest), n_draws
    every = measure.measuring_of(problem, plan.record_every)
    return (
        lambda run, draws, rows: measure.advance_and_measure(run, tables, step, draws, samples, rest, every, rows),
        n_draws,
    )


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
