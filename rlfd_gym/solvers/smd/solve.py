"""SMD-RLfD, Algorithm 1 of the paper: stochastic mirror descent on RLfD_α.

**Two variants.** `variant="paper"` is the paper's algorithm to the letter: the estimators are those
of its equations gradCU and mu_grad, the projections those of Algorithm 1, and the answer is the
average of the iterates, averaged over independent runs. What a step does, and why it costs O(log n),
is in `rlfd_gym.solvers.smd.kernels`. `variant="proximal"`, the default, does not sample what is known
(the penalty, and what the expert contributes), see `rlfd_gym.problem.theorem` and
`rlfd_gym.solvers.smd.proximal`. It has closed forms for the ℓ2 and the ℓ1 penalty, weights included,
and for `Intervals`. A `Hull` and a `BlackBoxProblem` keep the paper's step.

**Sizes.** The convergence theorems (`rlfd_gym.problem.theorem`) give sizes for either variant. Where
there are tables, the proximal variant chooses its own by the duality gap and starts anew from the
best point, unless sizes are given or asked of the theorem: see `rlfd_gym.solvers.smd.stages`, also
for how a point is repaired before it is judged.

**Starts.** Runs of the paper's variant start at random points: c and u uniform in their boxes, μ
uniform in the simplex. With the theorem's step sizes μ starts at 1/n instead, because the proof needs
KL(μ, μ_0) ≤ log n. On a hull the mixture w is treated like μ.

A run's random numbers come from its own child of one `SeedSequence`, and the runs are added up in
batches that depend only on the number of steps and runs. So the result does not depend on `n_jobs`
or on joblib's backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._warnings import warn
from rlfd_gym.beliefs import Hull
from rlfd_gym.beliefs.belief import BOUNDS
from rlfd_gym.problem import BlackBoxProblem, Problem, RLfDProblem
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.problem.theorem import ProximalTheorem, Theorem
from rlfd_gym.solvers.smd import stages
from rlfd_gym.solvers.smd.checkpoints import SmdState, Start
from rlfd_gym.solvers.smd.course import Course
from rlfd_gym.solvers.smd.runs import Plan, keeps_runs
from rlfd_gym.solvers.smd.stages import Search

Seed = int | np.random.SeedSequence | np.random.Generator
LARGE_EXPONENT = 500.0  # exp overflows at 709
LARGEST_STEP = 1e9  # of cost, value and mixture
VARIANTS = ("proximal", "paper")
GAP = 0.01  # asked for if nothing else is
MOST = 10_000_000  # steps to reach a gap in, unless n_iterations says otherwise
BLIND = 100_000  # steps if there is no gap to reach


def solve_smd(
    problem: RLfDProblem | BlackBoxProblem,
    n_iterations: int | None = None,
    step_size: float | tuple[float, ...] | None = None,
    epsilon: float | None = None,
    n_runs: int = 1,
    n_jobs: int = 1,
    seed: Seed = 0,
    record_every: int | None = None,
    *,
    variant: str = "proximal",
    gap: float | None = None,
    repair: bool | None = None,
    bound: str = "corrected",
    initial: Solution | None = None,
    callback: Callable[[Solution], Any] | None = None,
    callback_every: int | None = None,
    progress_bar: bool = False,
) -> Solution:
    """Solve RLfD_α by Algorithm 1, up to a duality gap or for a number of steps.

    Args:
        problem: the learning problem. For a `BlackBoxProblem`, next states are drawn from its
            oracle, all runs in lockstep. With the belief `Hull`, the cost is sought among the
            mixtures of a basis.
        n_iterations: T, the number of steps of each run; with a `gap`, the most of them. By
            default as many as the gap takes, up to 10 million; without tables 100,000.
        step_size: one η for all variables, or the pair (η_cu, η_μ), or the three (η_c, η_u, η_μ),
            or on a hull (η_w, η_u, η_μ). By default sizes are chosen by the gap; in the paper's
            variant and without tables, they are the theorem's for `n_iterations` steps.
        epsilon: target accuracy. The theorem's number of steps and step sizes are used, for which
            the expected gap is at most this; `n_iterations` is ignored.
        n_runs: N, the number of independent runs to average over.
        n_jobs: how many runs joblib makes at a time, in threads unless `joblib.parallel_config`
            says otherwise.
        seed: an int, `SeedSequence` or `Generator`.
        record_every: record the gap and the changes in `solution.history` each time that many
            steps are made.
        variant: "proximal", or "paper" for Algorithm 1 to the letter. See the module.
        gap: stop as soon as the duality gap, in the units of the costs and not relative to the
            value, is at most this. If `n_iterations` come first, a warning says so. By default 0.01
            if there are tables and nothing else says when to stop. It is looked at where a stage
            ends, and every `callback_every` steps.
        repair: whether to judge the averages with the optimal value of the cost, the best cost for
            the value and the occupancy of the policy as well, and return the best. By default where
            there are tables, in the proximal variant.
        bound: which second-moment bound the theorem's steps of the paper's variant use,
            "corrected" or "paper".
        initial: a solution of the same problem to continue: its runs make `n_iterations` more
            steps each, by default of the same sizes. A solution does not keep its runs if they
            take over 512 MiB together, as many runs of a very large problem do.
        callback: a function that is called with the solution so far, every `callback_every` steps
            and at the end; if it returns `False`, the solve stops. If the runs are too large to be
            kept, it is called only at the end.
        callback_every: how many steps lie between two calls; by default `n_iterations`.
        progress_bar: whether to show a progress bar.

    Returns:
        A `Solution`. `state.last` is the last iterate, averaged over the runs. In `stats` are
        "step_sizes", the ones that were used last, and where averages may be repaired "gap" and
        "raw_gap": the duality gap of the solution, and that of the averages as they were.

        If one run is made at a time, Ctrl-C returns what there is, with `finished=False`; with
        `n_jobs` above one it stops all runs and raises.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.gridworld(size=6, noise=0, alpha=0.1, known=1)
        >>> solution = solve_smd(problem, gap=0.02)
        >>> bool(solution.duality_gap <= 0.02)
        True
        >>> paper = solve_smd(problem, n_iterations=solution.n_iterations, variant="paper")
        >>> bool(paper.duality_gap > 4 * solution.duality_gap)
        True
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be an RLfDProblem or a BlackBoxProblem, got {type(problem).__name__}")
    theorem = problem.theorem if _checks.one_of("variant", variant, VARIANTS) == "paper" else problem.proximal_theorem
    _checks.one_of("bound", bound, BOUNDS)
    problem.belief.start(np.random.default_rng(0), True)  # raises for a belief that Algorithm 1 does not handle
    if variant == "paper":
        theorem.second_moments()
    if initial is not None and epsilon is not None:
        raise ValueError("initial and epsilon exclude each other: the theorem's steps are counted from the start")
    jobs = _checks.integer("n_jobs", n_jobs, -(2**31))
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    tables = isinstance(problem, RLfDProblem)
    proximal = variant == "proximal" and tables
    fix = proximal if repair is None else _checks.flag("repair", repair)
    if (fix or gap is not None) and not tables:
        raise ValueError(
            f"{'gap' if gap is not None else 'repair'} needs tables, which a BlackBoxProblem does not have"
        )
    # When to stop, the step sizes η, where the runs begin, and how often to look at them.
    state = _checked_state(problem, initial, variant)
    if step_size is None and state is not None and state.search is None:
        step_size = state.step_sizes
    target = None if gap is None else _checks.number("gap", gap, 0.0, np.inf, open_ends=True)
    if target is None and tables and n_iterations is None and epsilon is None:
        target = GAP
    most = (MOST if tables else BLIND) if n_iterations is None else n_iterations
    steps, etas = _schedule(problem, theorem, most, step_size, epsilon, bound)
    runs = _starts(_checks.integer("n_runs", n_runs, 1, _checks.MOST_TIMES), seed, state)
    keep = keeps_runs(problem, len(runs))
    staged = proximal and keep and step_size is None and epsilon is None
    every = steps if callback_every is None or not keep else _checks.integer("callback_every", callback_every, 1)
    record = 0 if record_every is None else _checks.integer("record_every", record_every, 1)
    made = 0 if state is None else state.runs[0].steps
    course = Course(
        problem=problem,
        plan=Plan(
            steps, etas, step_size is None, record, keep, proximal and not isinstance(problem.belief, Hull), staged
        ),
        search=_search(problem, state, fix) if staged else None,
        repair=fix,
        made=made,
        variant=variant,
        history=History() if initial is None else initial.history,
    )
    # All runs make steps up to the end of a stage or the next callback, which sees the solution so far.
    solution: Solution | None = None
    with _progress_bar(progress_bar, steps * len(runs)) as bar:
        while course.made < made + steps:
            until = min(made + steps, made + ((course.made - made) // every + 1) * every)
            try:
                total = course.advance(until, runs, jobs, bar.update)
            except KeyboardInterrupt:
                if solution is None or jobs != 1:
                    raise
                return replace(solution, finished=False)
            if solution is not None and total.n_runs < len(runs):  # all runs, up to the last callback
                return replace(solution, finished=False)
            runs, looks = list(total.runs), course.made == until
            if looks or not total.finished or (target is not None and course.stage_ended):
                solution = course.solution(total)
                reached = target is not None and solution.duality_gap <= target
                answer = callback(solution) if callback is not None and (looks or reached) else None
                if not solution.finished or reached or (isinstance(answer, (bool, np.bool_)) and not answer):
                    break
    assert solution is not None  # there is at least one step
    if target is not None and solution.finished and solution.duality_gap > target and course.made == made + steps:
        warn(
            f"the duality gap is {solution.duality_gap:.2g} after {steps} steps, above the {target:g} that was asked "
            "for: give n_iterations, or continue with initial=",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


def _search(problem: Problem, state: SmdState | None, repair: bool) -> Search:
    """Return where the choice of steps stands, or its beginning."""
    if state is not None and state.search is not None:
        return state.search
    assert isinstance(problem, RLfDProblem)
    return stages.first(problem, repair)


def _schedule(
    problem: Problem,
    theorem: Theorem,
    n_iterations: int,
    step_size: float | tuple[float, ...] | None,
    epsilon: float | None,
    bound: str,
) -> tuple[int, tuple[float, ...]]:
    """Return T and the step sizes (η_cu, η_μ), or on a hull (η_w, η_u, η_μ)."""
    largest = 2 * problem.n_pairs / (1 - problem.discount)  # entry of the estimator for μ, by the paper's lemma
    steps = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    if epsilon is None:
        accuracy = theorem.accuracy(steps, bound)
    elif step_size is None:
        accuracy, steps = epsilon, theorem.iterations(epsilon, bound)
        if steps > _checks.MOST_STEPS:
            raise ValueError(
                f"epsilon={epsilon!r} asks for {steps:g} steps, more than the {_checks.MOST_STEPS:g} allowed"
            )
    else:
        raise ValueError("step_size and epsilon exclude each other: epsilon brings the theorem's own step sizes")
    # The theorem's sizes, or those that were given.
    if step_size is None:
        *others, eta_mu = theorem.step_sizes(accuracy, bound)
        return steps, (*others, min(eta_mu, 0.5 / largest))  # the proof needs η_μ · largest entry ≤ 1/2
    names = theorem.names
    given = tuple(step_size) if isinstance(step_size, (tuple, list)) else (step_size,) * len(names)
    if len(given) == 2 and isinstance(theorem, ProximalTheorem):
        given = (given[0], *given)
    if len(given) != len(names):
        several = {2: "a pair", 3: "three"}[len(names)]
        raise ValueError(f"step_size must be a number or {several} (for {', for '.join(names)}), got {step_size!r}")
    etas = tuple(_checks.number("step_size", eta, 0.0) for eta in given)
    *others, eta_mu = etas
    if max(others) > LARGEST_STEP:
        raise ValueError(
            f"step_size must be at most {LARGEST_STEP:g} for all but the occupancy, got {step_size!r}: averages are "
            f"kept as sums over steps, and so large ones leave errors of about {2e-16 * max(others):.0e} in each sum"
        )
    if eta_mu * largest > LARGE_EXPONENT:
        warn(
            f"step_size {eta_mu:g} for the occupancy lets one step change a weight by exp(±{eta_mu * largest:.0f}); "
            f"the theorem asks for at most exp(±1/2), a step size of {0.5 / largest:.1e}",
            RuntimeWarning,
            stacklevel=3,
        )
    return steps, etas


def _checked_state(problem: Problem, initial: Solution | None, variant: str) -> SmdState | None:
    """Return the state to continue from, which must be of this problem and variant, and have its runs."""
    if initial is None:
        return None
    state = _checks.instance("initial", initial, Solution).state
    if not isinstance(state, SmdState) or not state.runs or state.fingerprint != problem.fingerprint():
        raise ValueError("initial must be a solution of the same problem by solve_smd that kept its runs")
    if state.variant != variant:
        raise ValueError(f"initial is of variant={state.variant!r}, which its runs cannot change to {variant!r}")
    return state


def _starts(n_runs: int, seed: Seed, state: SmdState | None) -> list[Start]:
    """Return a random stream for each fresh run, or the runs to continue."""
    if state is not None:
        if n_runs not in (1, len(state.runs)):
            raise ValueError(f"n_runs is {n_runs}, but initial has {len(state.runs)} runs to continue")
        return list(state.runs)
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**63))
    if not isinstance(seed, np.random.SeedSequence):
        seed = np.random.SeedSequence(_checks.integer("seed", seed, 0))
    # The children are made by number. With `spawn`, a second call with the same SeedSequence would
    # give a different result.
    return [np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, i)) for i in range(n_runs)]


def _progress_bar(wanted: bool, total: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=total, unit="step", unit_scale=True, desc="SMD-RLfD", disable=not wanted)
