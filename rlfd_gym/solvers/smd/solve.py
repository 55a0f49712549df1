"""SMD-RLfD, Algorithm 1 of the paper: stochastic mirror descent on RLfD_α.

The estimators are those of the paper's equations gradCU and mu_grad, the projections those of Algorithm 1, and the
answer is the average of the iterates, averaged over independent runs. What a step does, and why it costs O(log n), is
in `_kernels`; what the theorem says about step sizes is in `problem`. With the ℓ1 regulariser the estimators are those
of a subgradient.

Runs start at random points as in the paper: c and u uniform in their boxes, μ uniform in the simplex. With the
theorem's step sizes μ starts at 1/n instead, because the proof needs KL(μ, μ_0) ≤ log n. On a hull the weights w are
treated like μ.

A run's random numbers come from its own child of one `SeedSequence`, and the runs are added up in batches that depend
on `n_iterations` and `n_runs` alone: the result does not depend on `n_jobs` or on joblib's backend.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import shares
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.hull import HullProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import History, Solution

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.kernels import HullPoint, Point, Run

Problem = RLfDProblem | HullProblem | BlackBoxProblem
Seed = int | np.random.SeedSequence | np.random.Generator

CHUNK = 4096  # steps between looks at the clock: draws stay in the second-level cache
BATCH_STEPS = 4_000_000  # runs are batched to about this many steps, so that handing them out costs little
RESUME_BYTES = 2**28  # the runs' iterates are kept for `initial=` up to this size
LARGE_EXPONENT = 500.0  # exp overflows at 709
CHANGES = ("change_cost", "change_value", "change_occupancy", "change_mixture")  # as `_measure` records them


def solve_smd(
    problem: Problem,
    n_iterations: int = 100_000,
    step_size: float | tuple[float, ...] | None = None,
    epsilon: float | None = None,
    n_runs: int = 1,
    n_jobs: int = 1,
    seed: Seed = 0,
    record_every: int | None = None,
    *,
    bound: str = "corrected",
    initial: Solution | None = None,
    total_iterations: int | None = None,
    progress_bar: bool = False,
) -> Solution:
    """Solve RLfD_α by Algorithm 1 and return the average of the iterates, over all runs.

    Args:
        problem: the problem; with a `BlackBoxProblem`, next states are drawn from its oracle, all runs in lockstep;
            with a `HullProblem`, the cost is sought among the mixtures of a basis.
        n_iterations: T, the steps of each run.
        step_size: η for all, or the pair (η_cu, η_μ), on a hull the three (η_w, η_u, η_μ). `None` takes the theorem's
            for `n_iterations` steps.
        epsilon: run the theorem's own T steps of its own sizes, for an expected gap of at most this. Then
            `n_iterations` is not looked at.
        n_runs: N, independent runs to average over.
        n_jobs: how many runs at a time, by joblib: threads, unless `joblib.parallel_config` says otherwise.
        seed: an int, `SeedSequence` or `Generator`.
        record_every: record gap and changes every so many steps in `solution.history`.
        bound: which second-moment bound the theorem's steps use, "corrected" or "paper".
        initial: a solution of the same problem to go on from: its runs are continued by `n_iterations` steps each, by
            default of the same sizes. Solutions of many runs of a very large problem (over 256 MiB) do not keep them.
        total_iterations: for a run that is made in parts, how many steps the parts have together: the theorem's step
            sizes are then those for the whole. By default `n_iterations`.
        progress_bar: show one.

    Returns:
        A `Solution`; `state.last` is the last iterate (c, u, μ) averaged over runs, `stats["step_sizes"]` what was used. Ctrl-C returns what there is, with `finished=False`.

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
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be an RLfDProblem or a BlackBoxProblem, got {type(problem).__name__}")
    if isinstance(problem, RLfDProblem) and problem.weights is not None:
        raise ValueError("weights: Algorithm 1 and its theorem take none; use solve_exact")
    if initial is not None and epsilon is not None:
        raise ValueError("initial and epsilon exclude each other: the theorem's steps are counted from the start")
    jobs = _checks.integer("n_jobs", n_jobs, -(2**31))
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    _checked_initial(problem, initial)
    if step_size is None and initial is not None:
        step_size = initial.state.step_sizes
    steps, etas = _schedule(problem, n_iterations, step_size, epsilon, bound, total_iterations)
    runs = _initial_runs(problem, _checks.integer("n_runs", n_runs, 1), seed, initial)
    plan = _Plan(
        steps=steps,
        etas=etas,
        uniform_start=step_size is None,
        record_every=0 if record_every is None else _checks.integer("record_every", record_every, 1),
        keep_last=keeps_runs(problem, len(runs)),
    )
    with _progress(progress_bar, plan.steps * len(runs)) as progress:
        if isinstance(problem, BlackBoxProblem):
            batches = _lockstep(problem, plan, runs, progress.update)
        else:
            batches = _model_runs(problem, plan, runs, jobs, progress.update)
        return _solution(problem, plan, batches, initial)


def keeps_runs(problem: RLfDProblem | HullProblem | BlackBoxProblem, n_runs: int) -> bool:
    """Whether a solution of so many runs is small enough to keep them, for `initial` to go on from."""
    return 8 * (5 * problem.n_pairs + 2 * problem.n_states) * n_runs <= RESUME_BYTES


@dataclass(frozen=True)
class _Plan:
    """What every run does."""

    steps: int
    etas: tuple[float, ...]
    uniform_start: bool
    record_every: int
    keep_last: bool


@dataclass(frozen=True)
class _RunState:
    """Where a run stands: enough to go on."""

    generator: np.random.Generator
    count: int = 0
    iterate: Point | HullPoint | None = None
    log_weight: FloatArray | None = None
    average: Point | HullPoint | None = None
    log_mixture: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class SmdState:
    """Where a solve stands: what `initial=` continues from.

    Attributes:
        step_sizes: those of the last call.
        runs: one entry a run; empty where the runs together were too large to be kept.
        last: the last iterate, averaged over the runs.
        fingerprint: what tells the problem from others.
    """

    step_sizes: tuple[float, ...]
    runs: tuple[Any, ...]
    last: Any
    fingerprint: tuple[Any, ...]


@dataclass
class _Batch:
    """What some runs gave, added up. Either whole runs, or the beginning of a single one (`partial`)."""

    n_runs: int = 0
    count: int = 0
    average: list[FloatArray] = field(default_factory=list)
    last: list[FloatArray] = field(default_factory=list)
    records: list[FloatArray] = field(default_factory=list)
    """The sum of the recorded rows, and the sum of the squared gaps."""
    states: list[_RunState] = field(default_factory=list)
    finished: bool = True
    partial: bool = False

    def add(self, other: _Batch) -> None:
        """Add other runs, in place."""
        for mine, theirs in (
            (self.average, other.average),
            (self.last, other.last),
            (self.records, other.records),
        ):
            if mine:
                for total, new in zip(mine, theirs, strict=True):
                    total += new
            else:
                mine.extend(np.array(vector) for vector in theirs)
        self.n_runs += other.n_runs
        self.count = other.count
        self.states += other.states


@dataclass
class _Watch:
    """What the threads of one solve share: whether to stop, and what they had by then."""

    stop: threading.Event = field(default_factory=threading.Event)
    started: set[int] = field(default_factory=set)
    batches: dict[int, _Batch] = field(default_factory=dict)


_WATCHES: dict[int, _Watch] = {}  # by the number of the solve; workers in other processes find none


def _schedule(
    problem: Problem,
    n_iterations: int,
    step_size: float | tuple[float, ...] | None,
    epsilon: float | None,
    bound: str,
    total_iterations: int | None = None,
) -> tuple[int, tuple[float, ...]]:
    """T and (η_cu, η_μ), or (η_w, η_u, η_μ)."""
    largest = 2 * problem.n_pairs / (1 - problem.discount)  # of the estimator for μ, as the paper's lemma says
    steps = _checks.integer("n_iterations", n_iterations, 1)
    if epsilon is None:
        total = steps if total_iterations is None else _checks.integer("total_iterations", total_iterations, steps)
        accuracy = problem.accuracy(total, bound)
    elif step_size is None:
        accuracy, steps = epsilon, problem.iterations(epsilon, bound)
    else:
        raise ValueError("step_size and epsilon exclude each other: epsilon brings the theorem's own step sizes")
    if step_size is None:
        *others, eta_mu = problem.step_sizes(accuracy, bound)
        return steps, (*others, min(eta_mu, 0.5 / largest))  # the proof needs η_μ · largest entry ≤ 1/2
    kinds = problem.STEPS
    given = step_size if isinstance(step_size, (tuple, list)) else (step_size,) * len(kinds)
    if len(given) != len(kinds):
        several = {2: "a pair", 3: "three"}[len(kinds)]
        raise ValueError(f"step_size must be a number or {several} (for {', for '.join(kinds)}), got {step_size!r}")
    etas = tuple(_checks.number("step_size", eta, 0.0) for eta in given)
    eta_mu = etas[-1]
    if eta_mu * largest > LARGE_EXPONENT:
        warnings.warn(
            f"step_size {eta_mu:g} for the occupancy lets one step change a weight by exp(±{eta_mu * largest:.0f}); "
            f"the theorem asks for at most exp(±1/2), a step size of {0.5 / largest:.1e}",
            RuntimeWarning,
            stacklevel=3,
        )
    return steps, etas


def _initial_runs(problem: Problem, n_runs: int, seed: Seed, initial: Solution | None) -> list[_RunState]:
    """Fresh runs with a random stream each, or those of a solution to go on from."""
    if initial is not None:
        runs = initial.state.runs
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


def _checked_initial(problem: Problem, initial: Solution | None) -> None:
    """A solution to go on from must be of this problem, and have kept its runs."""
    if initial is None:
        return
    if not isinstance(initial, Solution):
        raise TypeError(f"initial must be a Solution, got {type(initial).__name__}")
    if initial.state is None or not initial.state.runs or initial.state.fingerprint != _fingerprint(problem):
        raise ValueError("initial must be a solution of the same problem by solve_smd that kept its runs")


def _fingerprint(problem: Problem) -> tuple[float | str, ...]:
    """What tells problems apart."""
    expert = problem.expert_pairs if isinstance(problem, BlackBoxProblem) else problem.expert
    basis = (problem.basis,) if isinstance(problem, HullProblem) else ()
    arrays = (zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in (expert, problem.prior, *basis))
    return (problem.n_pairs, problem.n_states, problem.discount, problem.alpha, problem.regulariser, *arrays)


def _start_point(problem: Problem, rng: np.random.Generator, uniform: bool) -> Point | HullPoint:
    """A random starting point; with `uniform`, the simplices' part of it in their middle."""
    from rlfd_gym.solvers.smd.kernels import HullPoint, Point

    def in_simplex(size: int) -> FloatArray:
        weights = rng.exponential(size=size)  # normalised, uniform in the simplex
        return np.full(size, 1.0 / size) if uniform else weights / weights.sum()

    if isinstance(problem, HullProblem):
        weights = in_simplex(problem.basis.shape[1])
        return HullPoint(weights, rng.uniform(-1, 1, problem.n_states), in_simplex(problem.n_pairs))
    cost, value = rng.uniform(-1, 1, problem.n_pairs), rng.uniform(-1, 1, problem.n_states)
    return Point(cost, value, in_simplex(problem.n_pairs))


def _model_runs(
    problem: RLfDProblem | HullProblem, plan: _Plan, runs: list[_RunState], n_jobs: int, update: Callable[[int], Any]
) -> Iterator[_Batch]:
    """The batches of runs, in order, as they are done; after Ctrl-C, what there is."""
    size = max(1, min(len(runs), BATCH_STEPS // plan.steps))
    batches = [runs[first : first + size] for first in range(0, len(runs), size)]
    if n_jobs == 1 or len(batches) == 1:
        for batch in batches:
            yield (ran := _run_batch(problem, plan, batch, update))
            if not ran.finished:  # Ctrl-C means the batches after this one too
                return
        return
    from joblib import Parallel, delayed

    number, watch = next(_NUMBERS), _Watch()
    _WATCHES[number] = watch
    tasks = (delayed(_run_watched)(problem, plan, batch, number, k) for k, batch in enumerate(batches))
    done = 0
    try:
        for result in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(tasks):
            update(plan.steps * result.n_runs)
            done += 1
            yield result
    except KeyboardInterrupt:
        watch.stop.set()
        while watch.started - set(watch.batches):  # each stops after its chunk, within milliseconds
            time.sleep(0.001)
        for k in sorted(watch.batches):
            if k >= done:
                watch.batches[k].finished = False
                yield watch.batches[k]
    finally:
        watch.stop.set()
        del _WATCHES[number]


_NUMBERS = itertools.count()


def _run_watched(problem: RLfDProblem | HullProblem, plan: _Plan, runs: list[_RunState], number: int, k: int) -> _Batch:
    """A batch in a thread of the solve, or in another process, where nobody watches."""
    watch = _WATCHES.get(number)
    if watch is None:
        return _run_batch(problem, plan, runs)
    watch.started.add(k)
    try:
        watch.batches[k] = batch = _run_batch(problem, plan, runs, stop=watch.stop.is_set)
        return batch
    except BaseException:
        watch.started.discard(k)
        raise


def _run_batch(
    problem: RLfDProblem | HullProblem,
    plan: _Plan,
    runs: list[_RunState],
    update: Callable[[int], Any] = lambda steps: None,
    stop: Callable[[], bool] = lambda: False,
) -> _Batch:
    """Some runs, one after the other."""
    from rlfd_gym.solvers.smd import kernels as _kernels
    from rlfd_gym.solvers.smd import measure as _measure

    mdp = problem.mdp
    basis = problem.basis if isinstance(problem, HullProblem) else None
    tables = _kernels.tables_of(mdp, problem.expert)
    alpha = _kernels.signed_alpha(problem.alpha, problem.regulariser)
    step = tuple(_kernels.constants(mdp.n_pairs, mdp.discount, alpha, *plan.etas))
    samples = np.empty((CHUNK, _kernels.DRAWS), np.int32)
    draws = np.empty((CHUNK, _kernels.DRAWS))
    p, every = mdp.transitions, plan.record_every
    scratch = np.empty(mdp.n_pairs), np.empty(mdp.n_states), np.empty(mdp.n_states)
    gap_of = (p.data, p.indices, p.indptr, problem.expert, alpha, *scratch)
    batch = _Batch()
    for state in runs:
        rng = _copy_generator(state.generator)
        first = state.iterate if state.iterate is not None else _start_point(problem, rng, plan.uniform_start)
        run = _kernels.start(
            mdp.pair_states,
            p.indptr,
            problem.prior,
            first,
            log_weight=state.log_weight,
            count=state.count,
            average=state.average,
            basis=basis,
            log_mixture=state.log_mixture,
        )
        records = np.empty((plan.steps // every + 1 if every else 0, _measure.COLUMNS))
        try:
            while (done := int(run.clock[_kernels.TOTAL])) < plan.steps and not stop():
                block = draws[: min(CHUNK, plan.steps - done)]
                rng.random(out=block)
                if every:
                    rows = _rows_recorded(state, done, every)
                    status = _measure.advance_and_measure(
                        *run, *tables, step, block, samples, every, state.count + done, *gap_of, records[rows:]
                    )
                else:
                    status = _kernels.advance(*run, *tables, step, block, samples)
                if status != _kernels.OK:
                    raise FloatingPointError(
                        f"step_size: the iterates are no longer finite after {done} steps of sizes {plan.etas}"
                    )
                update(len(block))
        except KeyboardInterrupt:
            batch.finished = False
        done = int(run.clock[_kernels.TOTAL])  # the kernel's own count: Ctrl-C may come before any other is written
        if done == plan.steps or (not batch.n_runs and done > 0):
            rows = _rows_recorded(state, done, every) if every else 0
            _add_run(batch, plan, rng, state.count + done, run, records[:rows])
            batch.partial = done < plan.steps
        if done < plan.steps or not batch.finished:
            batch.finished = False
            break
    return batch


def _rows_recorded(state: _RunState, done: int, every: int) -> int:
    """How many rows a run has recorded after `done` steps."""
    return (state.count + done) // every - state.count // every


def _lockstep(
    problem: BlackBoxProblem, plan: _Plan, runs: list[_RunState], update: Callable[[int], Any]
) -> Iterator[_Batch]:
    """All runs side by side, one call of the oracle per step: for j and k of every run."""
    from rlfd_gym.solvers.smd import kernels as _kernels
    from rlfd_gym.solvers.smd import measure as _measure
    from rlfd_gym.solvers.smd.alias import distribution_table, draw_many

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
        _kernels.start(
            problem.pair_states,
            no_rows,
            problem.prior,
            point,
            log_weight=state.log_weight,
            count=state.count,
            average=state.average,
        )
        for state, point in zip(runs, points, strict=True)
    ]
    pairs, values, trees, clocks = (
        np.stack([getattr(run, name) for run in started]) for name in ("pair_buffer", "state_buffer", "tree", "clock")
    )
    levels = started[0].levels
    expert_table = distribution_table(problem.expert.weights).view(np.float64)
    alpha = _kernels.signed_alpha(problem.alpha, problem.regulariser)
    step = tuple(_kernels.constants(problem.n_pairs, problem.discount, alpha, *plan.etas))
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
            arrived = _checks.integers(
                "oracle: what sample_next returns",
                problem.oracle.sample_next(problem.pair_states[asked], problem.pair_actions[asked], oracle_rng),
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
        finished = False
    done = int(clocks[0, _kernels.TOTAL])
    batch = _Batch(finished=finished, partial=not finished)
    for r, (state, rng) in enumerate(zip(runs, generators, strict=True)):
        if done:
            run = _kernels.Run(pairs[r], values[r], trees[r], levels, clocks[r])
            _add_run(batch, plan, rng, state.count + done, run, np.empty((0, _measure.COLUMNS)))
    yield batch


def _add_run(batch: _Batch, plan: _Plan, rng: np.random.Generator, count: int, run: Run, records: FloatArray) -> None:
    """Add a run to its batch."""
    from rlfd_gym.solvers.smd import kernels as _kernels

    last, average = _kernels.iterate_of(run), _kernels.average_of(run, count)
    states = []
    if plan.keep_last:
        log_mixture = None if run.hull is None else run.hull.log_weight.copy()
        states = [_RunState(rng, count, last, run.pairs["log_weight"].copy(), average, log_mixture)]
    new = _Batch(1, count, list(average), list(last), [records, records[:, 0] ** 2], states)
    batch.add(new)


def _solution(problem: Problem, plan: _Plan, batches: Iterator[_Batch], initial: Solution | None) -> Solution:
    """Add the batches up as they come: whole runs, or if there is none, the longest beginning of one."""
    from rlfd_gym.solvers.smd.kernels import HullPoint, Point

    total, begun = _Batch(), _Batch()
    try:
        for batch in batches:
            total.finished &= batch.finished
            if batch.partial and batch.count > begun.count:
                begun = batch
            elif batch.n_runs and not batch.partial:
                total.add(batch)
    except KeyboardInterrupt:  # between batches
        total.finished = False
    if not total.n_runs:
        if not begun.n_runs:
            raise KeyboardInterrupt("interrupted before the first step")
        total.add(begun)
    basis = problem.basis if isinstance(problem, HullProblem) else None
    found, value, occupancy = average = [vector / total.n_runs for vector in total.average]
    last = [vector / total.n_runs for vector in total.last]
    if isinstance(problem, BlackBoxProblem):
        (upper, lower), starts = (math.nan, math.nan), problem.state_starts
    else:
        (upper, lower), starts = problem.bounds(*average), problem.mdp.state_starts
    return Solution(
        policy=shares(occupancy, starts),
        occupancy=occupancy,
        cost=found if basis is None else basis @ found,
        mixture=None if basis is None else found,
        value=value,
        upper=upper,
        lower=lower,
        method="smd" if basis is None else "smd-hull",
        n_iterations=total.count,
        finished=total.finished,
        history=_history(plan, total, initial, CHANGES[:3] if basis is None else CHANGES),
        stats={"n_runs": total.n_runs, "step_sizes": plan.etas},
        state=SmdState(
            step_sizes=plan.etas,
            runs=tuple(total.states),
            last=Point(*last) if basis is None else HullPoint(*last),
            fingerprint=_fingerprint(problem),
        ),
    )


def _history(plan: _Plan, total: _Batch, initial: Solution | None, changes: tuple[str, ...]) -> History:
    """Means over runs of what was recorded, after what `initial` had recorded."""
    before = History() if initial is None else initial.history
    if not plan.record_every:
        return before
    mean, squares = (rows / total.n_runs for rows in total.records)
    std = np.sqrt(np.maximum(squares - mean[:, 0] ** 2, 0.0))
    last = total.count // plan.record_every
    iteration = plan.record_every * np.arange(last - len(mean) + 1, last + 1)
    columns = {"iteration": iteration, "duality_gap": mean[:, 0], "duality_gap_std": std}
    columns |= {name: mean[:, 1 + k] for k, name in enumerate(changes)}
    return History(**{name: np.concatenate([getattr(before, name), new]) for name, new in columns.items()})


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
