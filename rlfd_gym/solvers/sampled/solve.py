r"""Learning from an oracle alone, with a certificate: `solve_sampled`.

**Rounds.** First every pair is drawn a few times. Each round then learns a cost and a policy from
all draws so far, and certifies them by fresh ones (`rlfd_gym.solvers.sampled.certificate` has the
theorem): draws of the pairs, more where the certificate needs them, and walks with the policy.
A round has twice as many draws as all before it, and the next round learns from them too. It ends
when the certified gap is small enough or the calls are spent; the best round is returned, and
η_k = 6η/(π²k²) in round k makes that honest.

**Methods.** "model" solves the problem of the estimated tables exactly. "smd" is Algorithm 1 on
draws, see `rlfd_gym.solvers.sampled.descent`. Its own draws are also what certifying starts from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import warn
from rlfd_gym.problem.black_box import BlackBoxProblem, observed_start
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.sampled.bounds import mean_square, norm_margin
from rlfd_gym.solvers.sampled.certificate import PLANNED, SHAPES, Candidate, Side, allocate, plan_side, shortfall
from rlfd_gym.solvers.sampled.draws import Oracle, tables_of
from rlfd_gym.solvers.sampled.estimated import solve_estimated
from rlfd_gym.solvers.sampled.rollouts import Distance, distance, horizon_of

METHODS = ("model", "smd")
FIRST = 10  # draws of each pair before the first round
DEFAULT_GAP = 0.05  # of the value, if nothing else is asked for
MOST_CALLS = 10_000_000  # unless `calls` says otherwise
BATCH = 200_000
GROWTH = 2  # the draws of a round, as a multiple of all before it
NO_START = 0.01  # negative mass in the expert's start that is worth a warning


class Round(NamedTuple):
    """What a round has learned and certified."""

    candidate: Candidate
    value: FloatArray
    upper: float
    lower: float
    estimated: tuple[float, float]
    calls: int


def solve_sampled(
    problem: BlackBoxProblem,
    gap: float | None = None,
    calls: int | None = None,
    confidence: float = 0.95,
    seed: int | np.random.SeedSequence | np.random.Generator = 0,
    *,
    relative: float | None = None,
    method: str = "model",
    batch: int = BATCH,
    callback: Callable[[Solution], Any] | None = None,
) -> Solution:
    """Learn from an oracle alone, and certify the result under the true transitions.

    Args:
        problem: the problem; its `initial` is where policies start.
        gap: stop once the certified gap is this small.
        calls: how many next states may be drawn at most; by default ten million. Without `gap` and
            `relative`, all of them are used.
        confidence: 1 - η, the probability with which the bounds hold.
        seed: an int, `SeedSequence` or `Generator`.
        relative: stop once the certified gap is at most this share of the certified lower bound on
            the value, such as 0.05. It is the default if neither `gap` nor `calls` is given.
        method: "model" draws every pair, and more where the certificate needs it, and solves the
            estimated tables exactly; "smd" is Algorithm 1 on draws.
        batch: the largest number of next states to ask the oracle for at a time.
        callback: called with the solution after each round; if it returns `False`, stop.

    Returns:
        A `Solution`, whose `upper` and `lower` bound the optimum under the true transitions with
        probability `confidence`, and `duality_gap` the gap of its cost and its policy's true
        occupancy. `occupancy` is that under the estimated tables. `stats` has `calls`, `rounds`,
        `confidence`, `estimated_gap` (as if the estimated tables were the truth) and
        `improvement`: with the same probability the policy is better than the expert, as its
        transitions count it, by so much at least for every cost that the belief covers as
        `rlfd_gym.guarantee` explains. `finished` says whether the gap that was asked for is reached.

    Example:
        A shop that sells up to two articles, of which only a simulator is known.

        >>> from rlfd_gym import BlackBoxProblem, SampledExpert
        >>> from rlfd_gym.problem import examples
        >>> shop = examples.inventory_env(max_inventory=2, demand_mean=1.0)
        >>> expert = SampledExpert([0, 1, 0, 2], [1, 0, 2, 0], [1, 0, 2, 0])       # four weeks
        >>> sizes = {"n_states": 3, "n_actions": 3, "discount": 0.8}
        >>> known = {"prior": shop.cost, "alpha": 1.0, "feasible": shop.mdp.feasible}
        >>> problem = BlackBoxProblem(shop, expert, **sizes, **known)
        >>> solution = solve_sampled(problem, calls=200_000)
        >>> solution.stats["calls"] <= 200_000, solution.stats["estimated_gap"] < solution.duality_gap < 0.1
        (True, True)
    """
    _checks.instance("problem", problem, BlackBoxProblem)
    goals = (
        None if gap is None else _checks.number("gap", gap, 0.0),
        None if relative is None else _checks.number("relative", relative, 0.0, 1.0),
    )
    if gap is None and relative is None and calls is None:
        goals = None, DEFAULT_GAP
    most = MOST_CALLS if calls is None else _checks.integer("calls", calls, 1, _checks.MOST_STEPS)
    eta = 1.0 - _checks.number("confidence", confidence, 0.0, 1.0, open_ends=True)
    _checks.one_of("method", method, METHODS)
    oracle = Oracle(problem, _checks.generator("seed", seed), _checks.integer("batch", batch, 1, 10**9))
    least = 2 * (2 * int((~oracle.known).sum()) + 1)
    if most < least:
        raise ValueError(f"calls must be at least {least}, so that each pair is drawn four times; got {most}")
    _warn_about_start(problem)
    best: Round | None = None
    rounds, moment, reached = 0, 0.5, False
    counts = _first_draws(oracle, most)
    learner = _learner(method, problem, oracle)
    while not reached:
        budget = min(GROWTH * max(oracle.calls, 1), most - oracle.calls)
        if most - oracle.calls - budget < budget:
            budget = most - oracle.calls  # too few would be left for another round
        if best is not None and (budget < max(least, oracle.calls // 2) or not (~oracle.known).any()):
            break
        rounds += 1
        limit = oracle.calls + budget
        cost, policy, counts = learner(counts, budget)
        latest, counts, moment = _certified(
            oracle, counts, cost, policy, limit - oracle.calls, 6 * eta / (math.pi * rounds) ** 2, moment
        )
        if best is None or latest.upper - latest.lower < best.upper - best.lower:
            best = latest
        reached = _reached(best, *goals)
        solution = _solution(best, method, rounds, confidence, oracle.calls, reached or goals == (None, None))
        if callback is not None and _stops(callback(solution)):
            break
    return solution


def _first_draws(oracle: Oracle, most: int) -> sp.csr_array:
    """Draw every pair that is not known a few times, and one of a deterministic oracle once."""
    free = int((~oracle.known).sum())
    times = max(1, min(FIRST, most // (4 * free))) if free else 0
    staying = oracle.absorbing[oracle.problem.pair_states]
    return oracle.count(np.where(oracle.known, np.where(staying, 0, 1), times))


def _learner(method: str, problem: BlackBoxProblem, oracle: Oracle) -> Callable[..., Any]:
    """Return the function that learns a cost and a policy from counts, with some more draws."""
    if method == "smd":
        from rlfd_gym.solvers.sampled.descent import Descent  # here, because the other method does not need it

        return Descent(problem, oracle).learn
    return lambda counts, budget: (*solve_estimated(problem, tables_of(problem, counts, oracle.absorbing)), counts)


def _certified(
    oracle: Oracle,
    counts: sp.csr_array,
    cost: FloatArray,
    policy: FloatArray,
    budget: int,
    eta: float,
    moment: float,
) -> tuple[Round, sp.csr_array, float]:
    """Certify a cost and a policy by fresh draws; return the round, all counts, and a walk's moment."""
    problem, tables = oracle.problem, tables_of(oracle.problem, counts, oracle.absorbing)
    candidate = Candidate(problem, tables, counts.sum(axis=1), oracle.known, cost, policy)
    free = max(int((~oracle.known).sum()), 1)
    logs = {1.0: math.log(2 * free * len(SHAPES) / eta), -1.0: math.log(4 * free * len(SHAPES) / eta)}
    walks = _walks(candidate, budget, eta, moment, logs[-1.0])
    walks = min(walks, max(budget - free, 0) // horizon_of(tables.discount, walks))
    drawn = budget - walks * horizon_of(tables.discount, walks)
    numbers = allocate(candidate, max(drawn, free), logs[-1.0])
    plans = {
        sign: [plan_side(candidate, sign, numbers.astype(np.float64), logs[sign], shape) for shape in SHAPES]
        for sign in (1.0, -1.0)
    }
    fresh = oracle.count(numbers)
    upper, value = min(((_upper(candidate, side, fresh, logs[1.0]), side.value) for side in plans[1.0]), key=_first)
    apprentice = min(
        problem.initial @ side.value + shortfall(candidate, side, fresh, logs[-1.0]) for side in plans[-1.0]
    )
    apart = distance(candidate, oracle, walks, eta / 4)
    estimated = candidate.believed()
    lower = _lower(candidate, float(apprentice), apart, estimated[1])
    latest = Round(candidate, value, upper, lower, estimated, oracle.calls)
    return latest, sp.csr_array(counts + fresh), apart.square if walks else moment


def _stops(answer: Any) -> bool:
    return isinstance(answer, (bool, np.bool_)) and not answer


def _first(scored: tuple[float, FloatArray]) -> float:
    return scored[0]


def _upper(candidate: Candidate, side: Side, fresh: sp.csr_array, log_term: float) -> float:
    """Return U for one u."""
    least = float(candidate.problem.initial @ side.value) - shortfall(candidate, side, fresh, log_term)
    return candidate.least(candidate.cost, max(least, float(candidate.cost.min())))


def _lower(candidate: Candidate, apprentice: float, apart: Distance, believed: float) -> float:
    """Return L: the better of the two bounds on g(μ_E - μ_π)."""
    belief, bounds = candidate.problem.belief, [believed - apart.total]
    if belief.norm == "l2" and belief.alpha > 0:
        curvature = apart.euclidean**2 / (4 * belief.alpha)
        bounds.append(candidate.least(candidate.best_cost, apprentice) - curvature)
    return max(bounds)


def _walks(candidate: Candidate, budget: int, eta: float, moment: float, log_term: float) -> int:
    """Return how many walks to make: the number that is expected to give the smallest gap."""
    belief, gamma = candidate.problem.belief, candidate.tables.discount
    free = int((~candidate.known).sum())
    if not free:
        return 0 if not budget else max(1, budget // (2 * horizon_of(gamma, budget)))
    even = np.full(candidate.problem.n_pairs, budget / free)
    sides = [plan_side(candidate, sign, even, log_term, PLANNED) for sign in (1.0, -1.0)]
    linear = sum(side.loss for side in sides)
    best, expected = 0, math.inf
    for share in (0.05, 0.1, 0.2, 0.35, 0.5, 0.7):
        walks = int(share * budget) // horizon_of(gamma, max(1, int(share * budget * (1 - gamma))))
        if walks < 1:
            continue
        square = mean_square(moment, 2.0, math.log(16 / eta), walks)
        far = norm_margin(square, math.sqrt(2.0), math.log(32 / eta), walks)
        far = far**2 / (4 * belief.alpha) if belief.norm == "l2" and belief.alpha > 0 else far
        if (total := linear / math.sqrt(1 - share) + far) < expected:
            best, expected = walks, total
    return best


def _reached(best: Round, gap: float | None, relative: float | None) -> bool:
    """Return whether a round is as good as was asked for."""
    certified = best.upper - best.lower
    return (gap is not None and certified <= gap) or (
        relative is not None and best.lower > 0 and certified <= relative * best.lower
    )


def _solution(best: Round, method: str, rounds: int, confidence: float, calls: int, finished: bool) -> Solution:
    """Return a round as a solution."""
    candidate, (above, below) = best.candidate, best.estimated
    return Solution(
        policy=candidate.policy,
        occupancy=candidate.occupancy,
        cost=candidate.cost,
        value=best.value,
        upper=best.upper,
        lower=best.lower,
        method=f"sampled: {method}",
        n_iterations=calls,
        finished=finished,
        stats={
            "calls": calls,
            "rounds": rounds,
            "confidence": confidence,
            "estimated_gap": max(above - below, 0.0),
            "improvement": best.lower - float(candidate.problem.belief.penalty(candidate.cost)),
        },
    )


def _warn_about_start(problem: BlackBoxProblem) -> None:
    """Warn if the expert's transitions do not show where it starts."""
    start = observed_start(problem.expert, problem.n_states, problem.discount)
    lacking = float(-start[start < 0].sum())
    if lacking > NO_START and np.allclose(problem.initial, np.maximum(start, 0.0) / (1 + lacking)):
        warn(
            f"the expert's transitions do not tell where it starts: {lacking:.1%} of the start is negative and was "
            "set to zero; give the distribution as BlackBoxProblem(initial=...)",
            UserWarning,
            stacklevel=3,
        )
