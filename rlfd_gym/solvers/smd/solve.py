"""SMD-RLfD, Algorithm 1 of the paper: stochastic mirror descent on RLfD_α.

The estimators are those of the paper's equations gradCU and mu_grad, the projections those of
Algorithm 1, and the answer is the average of the iterates, averaged over independent runs. What a
step does, and why it costs O(log n), is in `rlfd_gym.solvers.smd.kernels`; what the theorem says
about step sizes is in `rlfd_gym.problem.theorem`. With the ℓ1 penalty the estimators are those of
a subgradient.

Runs start at random points as in the paper: c and u uniform in their boxes, μ uniform in the
simplex. With the theorem's step sizes μ starts at 1/n instead, because the proof needs
KL(μ, μ_0) ≤ log n. On a hull the mixture w is treated like μ.

A run's random numbers come from its own child of one `SeedSequence`, and the runs are added up in
batches that depend only on `n_iterations` and `n_runs`. So the result does not depend on `n_jobs`
or on joblib's backend.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.occupancy import shares
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.problem import BlackBoxProblem, Problem, RLfDProblem
from rlfd_gym.problem.guarantee import guarantee_at
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd.runs import Plan, SmdState, Start, Total, keeps_runs, run_all

Seed = int | np.random.SeedSequence | np.random.Generator
LARGE_EXPONENT = 500.0  # exp overflows at 709
LARGEST_STEP = 1e9  # of cost, value and mixture
CHANGES = ("change_cost", "change_value", "change_occupancy", "change_mixture")  # as `measure` records them


def solve_smd(
    problem: RLfDProblem | BlackBoxProblem,
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
    callback: Callable[[Solution], Any] | None = None,
    callback_every: int | None = None,
    progress_bar: bool = False,
) -> Solution:
    """Solve RLfD_α by Algorithm 1 and return the average of the iterates, over all runs.

    Args:
        problem: the learning problem. For a `BlackBoxProblem`, next states are drawn from its
            oracle, all runs in lockstep. With the belief `Hull`, the cost is sought among the
            mixtures of a basis.
        n_iterations: T, the number of steps of each run.
        step_size: one η for all variables, or the pair (η_cu, η_μ), or on a hull the three
            (η_w, η_u, η_μ). `None` takes the theorem's sizes for `n_iterations` steps.
        epsilon: target accuracy. The theorem's number of steps and step sizes are used, for which
            the expected gap is at most this; `n_iterations` is ignored.
        n_runs: N, the number of independent runs to average over.
        n_jobs: how many runs joblib makes at a time, in threads unless `joblib.parallel_config`
            says otherwise.
        seed: an int, `SeedSequence` or `Generator`.
        record_every: record the gap and the changes in `solution.history` each time that many
            steps are made.
        bound: which second-moment bound the theorem's steps use, "corrected" or "paper".
        initial: a solution of the same problem to continue: its runs make `n_iterations` more
            steps each, by default of the same sizes. A solution does not keep its runs if they
            take over 512 MiB together, as many runs of a very large problem do.
        callback: a function that is called with the solution so far, every `callback_every` steps
            and at the end; if it returns `False`, the solve stops. If the runs are too large to be
            kept, it is called only at the end.
        callback_every: how many steps lie between two calls; by default `n_iterations`.
        progress_bar: whether to show a progress bar.

    Returns:
        A `Solution`. `state.last` is the last iterate, averaged over the runs, and
        `stats["step_sizes"]` are the sizes that were used. If one run is made at a time, Ctrl-C
        returns what there is, with `finished=False`; with `n_jobs` above one it stops all runs and
        raises.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.gridworld(size=6, noise=0, alpha=0.1, known=1)
        >>> rough = solve_smd(problem, n_iterations=20_000, seed=1)
        >>> better = solve_smd(problem, n_iterations=2_000_000, seed=1)
        >>> bool(better.duality_gap < rough.duality_gap)
        True
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem must be an RLfDProblem or a BlackBoxProblem, got {type(problem).__name__}")
    problem.theorem.second_moments()  # raises for a belief that Algorithm 1 does not handle
    if initial is not None and epsilon is not None:
        raise ValueError("initial and epsilon exclude each other: the theorem's steps are counted from the start")
    jobs = _checks.integer("n_jobs", n_jobs, -(2**31))
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    # T and the step sizes η, where the runs begin, and how often to look at them.
    state = _checked_state(problem, initial)
    if step_size is None and state is not None:
        step_size = state.step_sizes
    steps, etas = _schedule(problem, n_iterations, step_size, epsilon, bound)
    runs = _starts(_checks.integer("n_runs", n_runs, 1, _checks.MOST_TIMES), seed, state)
    keep = keeps_runs(problem, len(runs))
    every = steps if callback_every is None or not keep else _checks.integer("callback_every", callback_every, 1)
    record = 0 if record_every is None else _checks.integer("record_every", record_every, 1)
    history = History() if initial is None else initial.history
    # All runs make `every` steps, then the callback sees their average.
    solution: Solution | None = None
    with _progress_bar(progress_bar, steps * len(runs)) as bar:
        for done in range(0, steps, every):
            plan = Plan(min(every, steps - done), etas, uniform_start=step_size is None, record_every=record, keep=keep)
            try:
                total = run_all(problem, plan, runs, jobs, bar.update)
            except KeyboardInterrupt:
                if solution is None or jobs != 1:
                    raise
                return replace(solution, finished=False)
            if solution is not None and total.n_runs < len(runs):  # all runs, up to the last callback
                return replace(solution, finished=False)
            history = _history(plan, total, history)
            solution, runs = _solution(problem, plan, total, history), list(total.runs)
            answer = None if callback is None else callback(solution)
            if not solution.finished or (isinstance(answer, (bool, np.bool_)) and not answer):
                break
    assert solution is not None  # there is at least one step
    return solution


def _schedule(
    problem: Problem,
    n_iterations: int,
    step_size: float | tuple[float, ...] | None,
    epsilon: float | None,
    bound: str,
) -> tuple[int, tuple[float, ...]]:
    """Return T and the step sizes (η_cu, η_μ), or on a hull (η_w, η_u, η_μ)."""
    largest = 2 * problem.n_pairs / (1 - problem.discount)  # entry of the estimator for μ, by the paper's lemma
    steps = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    if epsilon is None:
        accuracy = problem.accuracy(steps, bound)
    elif step_size is None:
        accuracy, steps = epsilon, problem.iterations(epsilon, bound)
        if steps > _checks.MOST_STEPS:
            raise ValueError(
                f"epsilon={epsilon!r} asks for {steps:g} steps, more than the {_checks.MOST_STEPS:g} allowed"
            )
    else:
        raise ValueError("step_size and epsilon exclude each other: epsilon brings the theorem's own step sizes")
    # The theorem's sizes, or those that were given.
    if step_size is None:
        *others, eta_mu = problem.step_sizes(accuracy, bound)
        return steps, (*others, min(eta_mu, 0.5 / largest))  # the proof needs η_μ · largest entry ≤ 1/2
    names = problem.theorem.names
    given = step_size if isinstance(step_size, (tuple, list)) else (step_size,) * len(names)
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


def _checked_state(problem: Problem, initial: Solution | None) -> SmdState | None:
    """Return the state to continue from, which must be of this problem and have its runs."""
    if initial is None:
        return None
    state = _checks.instance("initial", initial, Solution).state
    if not isinstance(state, SmdState) or not state.runs or state.fingerprint != problem.fingerprint():
        raise ValueError("initial must be a solution of the same problem by solve_smd that kept its runs")
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


def _solution(problem: RLfDProblem | BlackBoxProblem, plan: Plan, total: Total, history: History) -> Solution:
    """Return the averages over the runs as a solution, with their bounds."""
    average, last = total.mean_average(), total.mean_last()
    cost = problem.belief.cost(average.x)
    upper, lower = problem.bounds(*average)
    mixes = cost is not average.x
    if isinstance(problem, RLfDProblem):
        policy = planned_policy(problem.mdp, average.occupancy, cost)
        promise = guarantee_at(problem, average, upper, lower, policy)
    else:  # without tables one cannot plan where there is no mass
        policy, promise = shares(average.occupancy, problem.state_starts), None
    return Solution(
        policy=policy,
        occupancy=average.occupancy,
        cost=cost,
        mixture=average.x if mixes else None,
        value=average.value,
        upper=upper,
        lower=lower,
        method="smd-hull" if mixes else "smd",
        n_iterations=total.count,
        finished=total.finished,
        history=history,
        stats={"n_runs": total.n_runs, "step_sizes": plan.etas},
        state=SmdState(plan.etas, total.runs, last, problem.fingerprint()),
        guarantee=promise,
    )


def _history(plan: Plan, total: Total, before: History) -> History:
    """Return the records from before, followed by the means over runs of the new ones."""
    if not plan.record_every:
        return before
    mean, squares = (rows / total.n_runs for rows in total.records)
    std = np.sqrt(np.maximum(squares - mean[:, 0] ** 2, 0.0))
    last = total.count // plan.record_every
    iteration = plan.record_every * np.arange(last - len(mean) + 1, last + 1)
    columns = {"iteration": iteration, "duality_gap": mean[:, 0], "duality_gap_std": std}
    columns |= {name: mean[:, 1 + k] for k, name in enumerate(CHANGES[: 4 if total.mixes else 3])}
    return History(**{name: np.concatenate([getattr(before, name), new]) for name, new in columns.items()})


def _progress_bar(wanted: bool, total: int) -> Any:
    from tqdm.auto import tqdm

    return tqdm(total=total, unit="step", unit_scale=True, desc="SMD-RLfD", disable=not wanted)
