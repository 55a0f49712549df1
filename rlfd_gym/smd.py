"""SMD-RLfD, Algorithm 1 of the paper: stochastic mirror descent on RLfD_α.

The estimators are those of the paper's equations gradCU and mu_grad, the projections those of Algorithm 1, and the
answer is the average of the iterates, averaged over independent runs. What a step does, and why it costs O(log n), is
in `_kernels`; what the theorem says about step sizes is in `problem`.

Runs start at random points as in the paper: c and u uniform in their boxes, μ uniform in the simplex. With the
theorem's step sizes μ starts at 1/n instead, because the proof needs KL(μ, μ_0) ≤ log n.

A run's random numbers come from its own child of one `SeedSequence`, and the runs are added up in batches that depend
on `n_iterations` and `n_runs` alone: the result does not depend on `n_jobs` or on joblib's backend.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.occupancy import shares
from rlfd_gym.oracles import BlackBoxProblem
from rlfd_gym.problem import RLfDProblem
from rlfd_gym.solution import History, Solution

if TYPE_CHECKING:
    from rlfd_gym._kernels import Point

Seed = int | np.random.SeedSequence | np.random.Generator

CHUNK = 4096  # steps between looks at the clock: draws stay in the second-level cache
BATCH_STEPS = 4_000_000  # runs are batched to about this many steps, so that handing them out costs little
RESUME_BYTES = 2**30  # last iterates are kept for `initial=` up to this size
LARGE_EXPONENT = 500.0  # exp overflows at 709


def solve_smd(
    problem: RLfDProblem | BlackBoxProblem,
    n_iterations: int = 100_000,
    step_size: float | tuple[float, float] | None = None,
    epsilon: float | None = None,
    n_runs: int = 1,
    n_jobs: int = 1,
    seed: Seed = 0,
    record_every: int | None = None,
    *,
    bound: str = "corrected",
    initial: Solution | None = None,
    progress_bar: bool = False,
) -> Solution:
    """Solve RLfD_α by Algorithm 1 and return the average of the iterates, over all runs.

    Args:
        problem: the problem; with a `BlackBoxProblem`, next states are drawn from its oracle, all runs in lockstep.
        n_iterations: T, the steps of each run.
        step_size: η for both sides, or the pair (η_cu, η_μ). `None` takes the theorem's for `n_iterations` steps.
        epsilon: run the theorem's own T steps of its own sizes, for an expected gap of at most this. Then
            `n_iterations` is not looked at.
        n_runs: N, independent runs to average over.
        n_jobs: how many runs at a time, by joblib: threads, unless `joblib.parallel_config` says otherwise.
        seed: an int, `SeedSequence` or `Generator`.
        record_every: record gap and changes every so many steps in `solution.history`.
        bound: which second-moment bound the theorem's steps use, "corrected" or "paper".
        initial: a solution of the same problem to go on from: its runs are continued by `n_iterations` steps each.
        progress_bar: show one.

    Returns:
        A `Solution`; `details["last"]` is the last iterate (c, u, μ) averaged over runs, `details["step_sizes"]` what
        was used. Ctrl-C returns what there is, with `finished=False`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
        >>> expert = env.mdp.optimal(env.cost).occupancy
        >>> problem = rlfd_gym.RLfDProblem(env.mdp, expert, prior=env.cost, alpha=0.1)
        >>> rough = solve_smd(problem, n_iterations=20_000, seed=1)
        >>> better = solve_smd(problem, n_iterations=2_000_000, seed=1)
        >>> bool(better.duality_gap < rough.duality_gap)
        True
    """
    if not isinstance(problem, (RLfDProblem, BlackBoxProblem)):
        raise TypeError(f"problem must be an RLfDProblem or a BlackBoxProblem, got {type(problem).__name__}")
    steps, etas = _schedule(problem, n_iterations, step_size, epsilon, bound)
    runs = _initial_runs(problem, _checks.integer("n_runs", n_runs, 1), seed, initial)
    plan = _Plan(
        steps=steps,
        etas=etas,
        uniform_start=step_size is None,
        record_every=0 if record_every is None else _checks.integer("record_every", record_every, 1),
        keep_last=16 * (2 * problem.n_pairs + problem.n_states) * len(runs) <= RESUME_BYTES,
    )
    with _progress(progress_bar, plan.steps * len(runs)) as progress:
        if isinstance(problem, BlackBoxProblem):
            batches = _lockstep(problem, plan, runs, progress.update)
        else:
            batches = _model_runs(problem, plan, runs, n_jobs, progress.update)
        return _solution(problem, plan, batches, initial)


@dataclass(frozen=True)
class _Plan:
    """What every run does."""

    steps: int
    etas: tuple[float, float]
    uniform_start: bool
    record_every: int
    keep_last: bool


@dataclass(frozen=True)
class _RunState:
    """Where a run stands: enough to go on."""

    generator: np.random.Generator
    count: int = 0
    iterate: Point | None = None
    average: Point | None = None


@dataclass
class _Batch:
    """What some runs gave, added up."""

    n_runs: int
    average: list[FloatArray]
    last: list[FloatArray]
    records: list[FloatArray]
    states: list[_RunState]
    count: int
    finished: bool = True


def _schedule(
    problem: RLfDProblem | BlackBoxProblem,
    n_iterations: int,
    step_size: float | tuple[float, float] | None,
    epsilon: float | None,
    bound: str,
) -> tuple[int, tuple[float, float]]:
    """T and (η_cu, η_μ)."""
    largest = 2 * problem.n_pairs / (1 - problem.discount)  # of the estimator for μ, as the paper's lemma says
    if epsilon is not None:
        if step_size is not None:
            raise ValueError("step_size and epsilon exclude each other: epsilon brings the theorem's own step sizes")
        return problem.iterations(epsilon, bound), problem.step_sizes(epsilon, bound)
    steps = _checks.integer("n_iterations", n_iterations, 1)
    if step_size is None:
        eta_cu, eta_mu = problem.step_sizes(problem.accuracy(steps, bound), bound)
        return steps, (eta_cu, min(eta_mu, 0.5 / largest))  # the proof needs η_μ · largest entry ≤ 1/2
    pair = step_size if isinstance(step_size, (tuple, list)) else (step_size, step_size)
    if len(pair) != 2:
        raise ValueError(f"step_size must be a number or a pair (for cost and value, for occupancy), got {step_size!r}")
    eta_cu, eta_mu = (_checks.number("step_size", eta, 0.0) for eta in pair)
    if eta_mu * largest > LARGE_EXPONENT:
        warnings.warn(
            f"step_size {eta_mu:g} for the occupancy lets one step change a weight by exp(±{eta_mu * largest:.0f}); "
            f"the theorem asks for at most exp(±1/2), a step size of {0.5 / largest:.1e}",
            RuntimeWarning,
            stacklevel=3,
        )
    return steps, (eta_cu, eta_mu)


def _initial_runs(
    problem: RLfDProblem | BlackBoxProblem, n_runs: int, seed: Seed, initial: Solution | None
) -> list[_RunState]:
    """Fresh runs with a random stream each, or those of a solution to go on from."""
    if initial is not None:
        runs = initial.details.get("runs")
        if not runs or len(runs[0].iterate.cost) != problem.n_pairs or len(runs[0].iterate.value) != problem.n_states:
            raise ValueError("initial must be a solution of the same problem by solve_smd that kept its runs")
        if n_runs not in (1, len(runs)):
            raise ValueError(f"n_runs is {n_runs}, but initial has {len(runs)} runs to go on with")
        return list(runs)
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**63))
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(_checks.integer("seed", seed, 0))
    # Children by number, not by `spawn`, which would make a second call with the same SeedSequence differ.
    children = (np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(n_runs))
    return [_RunState(np.random.Generator(np.random.PCG64(child))) for child in children]


def _start_point(problem: RLfDProblem | BlackBoxProblem, rng: np.random.Generator, uniform: bool) -> Point:
    """A random starting point."""
    from rlfd_gym._kernels import Point

    n = problem.n_pairs
    cost, value = rng.uniform(-1, 1, n), rng.uniform(-1, 1, problem.n_states)
    weights = rng.exponential(size=n)  # normalised, uniform in the simplex
    return Point(cost, value, np.full(n, 1.0 / n) if uniform else weights / weights.sum())


def _model_runs(
    problem: RLfDProblem, plan: _Plan, runs: list[_RunState], n_jobs: int, update: Callable[[int], Any]
) -> Iterator[_Batch]:
    """The batches of runs, in order, as they are done."""
    size = max(1, min(len(runs), BATCH_STEPS // plan.steps))
    batches = [runs[first : first + size] for first in range(0, len(runs), size)]
    if n_jobs == 1 or len(batches) == 1:
        for batch in batches:
            yield _run_batch(problem, plan, batch, update)
        return
    from joblib import Parallel, delayed

    tasks = (delayed(_run_batch)(problem, plan, batch) for batch in batches)
    for result in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
        update(plan.steps * result.n_runs)
        yield result


def _run_batch(
    problem: RLfDProblem, plan: _Plan, runs: list[_RunState], update: Callable[[int], Any] = lambda steps: None
) -> _Batch:
    """Some runs, one after the other."""
    from rlfd_gym import _kernels

    mdp = problem.mdp
    tables = _kernels.tables_of(mdp, problem.expert)
    step = tuple(_kernels.constants(mdp.n_pairs, mdp.discount, problem.alpha, *plan.etas))
    samples = np.empty((CHUNK, _kernels.DRAWS), np.int32)
    draws = np.empty((CHUNK, _kernels.DRAWS))
    p = mdp.transitions
    scratch = np.empty(mdp.n_pairs), np.empty(mdp.n_states), np.empty(mdp.n_states)
    gap_of = (p.data, p.indices, p.indptr, problem.expert, problem.alpha, *scratch)
    batch = _Batch(0, [], [], [], [], 0)
    for state in runs:
        rng = _copy_generator(state.generator)
        first = state.iterate if state.iterate is not None else _start_point(problem, rng, plan.uniform_start)
        run = _kernels.start(mdp.pair_states, p.indptr, problem.prior, first, count=state.count, average=state.average)
        every = plan.record_every
        records = np.empty((plan.steps // every + 1, 4)) if every else np.empty((0, 4))
        done = rows = 0
        try:
            while done < plan.steps:
                block = draws[: min(CHUNK, plan.steps - done)]
                rng.random(out=block)
                if every:
                    status, new = _kernels.advance_and_measure(
                        *run, *tables, step, block, samples, every, state.count + done, *gap_of, records[rows:]
                    )
                    rows += new
                else:
                    status = _kernels.advance(*run, *tables, step, block, samples)
                if status != _kernels.OK:
                    raise FloatingPointError(
                        f"step_size: the iterates are no longer finite after {done} steps of sizes {plan.etas}"
                    )
                done += len(block)
                update(len(block))
        except KeyboardInterrupt:
            batch.finished = False
            if batch.n_runs or done == 0:
                break  # whole runs only, if there is one
        count = state.count + done
        _add_run(batch, plan, rng, count, _kernels.iterate_of(run), _kernels.average_of(run, count), records[:rows])
        if not batch.finished:
            break
    return batch


def _lockstep(
    problem: BlackBoxProblem, plan: _Plan, runs: list[_RunState], update: Callable[[int], Any]
) -> Iterator[_Batch]:
    """All runs side by side, one call of the oracle per step: for j and k of every run."""
    from rlfd_gym import _kernels
    from rlfd_gym._alias import distribution_table, draw_many

    if plan.record_every:
        raise ValueError("record_every needs a model: without transition probabilities there is no duality gap")
    n_runs = len(runs)
    generators = [_copy_generator(state.generator) for state in runs]
    oracle_rng = np.random.default_rng(generators[0].integers(2**63))
    points = [
        state.iterate if state.iterate is not None else _start_point(problem, rng, plan.uniform_start)
        for state, rng in zip(runs, generators, strict=True)
    ]
    no_rows = np.zeros(problem.n_pairs + 1, dtype=np.int64)  # the oracle is asked instead
    started = [
        _kernels.start(problem.pair_states, no_rows, problem.prior, point, count=state.count, average=state.average)
        for state, point in zip(runs, points, strict=True)
    ]
    pairs, values, trees, clocks = (
        np.stack([getattr(run, name) for run in started]) for name in ("pair_buffer", "state_buffer", "tree", "clock")
    )
    levels = started[0].levels
    expert_table = distribution_table(problem.expert.weights).view(np.float64)
    step = tuple(_kernels.constants(problem.n_pairs, problem.discount, problem.alpha, *plan.etas))
    samples = np.empty((n_runs, _kernels.DRAWS), np.int64)
    block = np.empty((n_runs, 256, _kernels.DRAWS))
    done, finished = 0, True
    try:
        while done < plan.steps:
            if done % 256 == 0:
                for rng, own in zip(generators, block, strict=True):
                    rng.random(out=own)
            draws = np.ascontiguousarray(block[:, done % 256])
            _kernels.propose(pairs, trees, levels, draws, samples)
            seen = draw_many(expert_table, draws[:, _kernels.EXPERT])
            samples[:, _kernels.EXPERT] = problem.expert_pairs[seen]
            samples[:, _kernels.EXPERT_NEXT] = problem.expert.next_states[seen]
            asked = samples[:, [_kernels.VISITED, _kernels.TRIED]]
            arrived = np.asarray(
                problem.oracle.sample_next(problem.pair_states[asked], problem.pair_actions[asked], oracle_rng)
            )
            if arrived.shape != asked.shape or arrived.min() < 0 or arrived.max() >= problem.n_states:
                raise ValueError(
                    f"oracle: sample_next must return states 0..{problem.n_states - 1} in the shape {asked.shape} of "
                    f"what it is asked, got shape {arrived.shape}"
                )
            samples[:, _kernels.VISITED_NEXT], samples[:, _kernels.TRIED_NEXT] = arrived[:, 0], arrived[:, 1]
            if _kernels.apply(pairs, values, trees, levels, clocks, step, samples) != _kernels.OK:
                raise FloatingPointError(f"step_size: the iterates are no longer finite after {done} steps")
            done += 1
            update(n_runs)
    except KeyboardInterrupt:
        if done == 0:
            raise
        finished = False
    batch = _Batch(0, [], [], [], [], 0, finished)
    for r, (state, rng) in enumerate(zip(runs, generators, strict=True)):
        run = _kernels.Run(pairs[r], values[r], trees[r], levels, clocks[r])
        count = state.count + done
        average = _kernels.average_of(run, count)
        _add_run(batch, plan, rng, count, _kernels.iterate_of(run), average, np.empty((0, 4)))
    yield batch


def _add_run(
    batch: _Batch, plan: _Plan, rng: np.random.Generator, count: int, last: Point, average: Point, records: FloatArray
) -> None:
    """Add a finished run to its batch."""
    for total, new in ((batch.average, average), (batch.last, last)):
        if total:
            for mine, theirs in zip(total, new, strict=True):
                mine += theirs
        else:
            total.extend(vector.copy() for vector in new)
    batch.n_runs += 1
    batch.count = count
    batch.records.append(records)
    if plan.keep_last:
        batch.states.append(_RunState(rng, count, last, average))


def _solution(
    problem: RLfDProblem | BlackBoxProblem, plan: _Plan, batches: Iterator[_Batch], initial: Solution | None
) -> Solution:
    """Add the batches up as they come."""
    from rlfd_gym._kernels import Point

    total = _Batch(0, [], [], [], [], 0)
    try:
        for batch in batches:
            for mine, theirs in ((total.average, batch.average), (total.last, batch.last)):
                if mine:
                    for vector, addend in zip(mine, theirs, strict=True):
                        vector += addend
                else:
                    mine.extend(theirs)
            total.n_runs += batch.n_runs
            total.count = max(total.count, batch.count)
            total.records += batch.records
            total.states += batch.states
            total.finished &= batch.finished
            if not batch.finished:
                break
    except KeyboardInterrupt:  # between batches
        total.finished = False
    if not total.n_runs:
        raise KeyboardInterrupt("interrupted before the first step")
    average = Point(*(vector / total.n_runs for vector in total.average))
    history = _history(plan, total, initial)
    upper = lower = math.nan
    if isinstance(problem, RLfDProblem):
        upper, lower = problem.bounds(*average)
    starts = problem.mdp.state_starts if isinstance(problem, RLfDProblem) else problem.state_starts
    return Solution(
        policy=shares(average.occupancy, starts),
        occupancy=average.occupancy,
        cost=average.cost,
        value=average.value,
        upper=upper,
        lower=lower,
        method="smd",
        n_iterations=total.count,
        finished=total.finished,
        history=history,
        details={
            "last": Point(*(vector / total.n_runs for vector in total.last)),
            "step_sizes": plan.etas,
            "n_runs": total.n_runs,
            "runs": total.states,
        },
    )


def _history(plan: _Plan, total: _Batch, initial: Solution | None) -> History:
    """Means over runs of what was recorded, after what `initial` had recorded."""
    before = History() if initial is None else initial.history
    if not plan.record_every:
        return before
    rows = min(len(records) for records in total.records)
    table = np.stack([records[:rows] for records in total.records])
    mean, std = table.mean(axis=0), table[:, :, 0].std(axis=0)
    last = total.count // plan.record_every
    iteration = plan.record_every * np.arange(last - rows + 1, last + 1)
    return History(
        np.concatenate([before.iteration, iteration]),
        np.concatenate([before.duality_gap, mean[:, 0]]),
        np.concatenate([before.duality_gap_std, std]),
        np.concatenate([before.change_cost, mean[:, 1]]),
        np.concatenate([before.change_value, mean[:, 2]]),
        np.concatenate([before.change_occupancy, mean[:, 3]]),
    )


def _copy_generator(generator: np.random.Generator) -> np.random.Generator:
    """A generator in the same state, so that a solution can be continued more than once."""
    copy = np.random.Generator(np.random.PCG64())
    copy.bit_generator.state = generator.bit_generator.state
    return copy


class _NoBar:
    """A progress bar that shows nothing."""

    def update(self, steps: int) -> None:
        """Do nothing."""


def _progress(wanted: bool, total: int) -> Any:
    """A context manager whose value has `update(steps)`."""
    if not wanted:
        return nullcontext(_NoBar())
    from tqdm.auto import tqdm

    return tqdm(total=total, unit="step", unit_scale=True, desc="SMD-RLfD")
