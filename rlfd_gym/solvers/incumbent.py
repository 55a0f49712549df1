"""The incumbent: the best certified bounds that any method has found so far, and its deadline.

Whatever a method proposes is brought into the boxes and the simplex, and judged there. The bounds
of `RLfDProblem.bounds` hold for every point of these sets, so no method has to be trusted. `upper`
depends only on the cost and the value, `lower` only on the occupancy, so the best of each are kept
separately.

**What is promised** is said here, in one place. The value of a problem has a part that nothing can
change: if the prior is outside the box, every cost in the box pays at least the penalty of the
prior clipped to the box. And the rest has a largest possible size, its *range*: a constant cost
explains every expert, so the value is at most the penalty of the constant cost nearest to the
prior. A gap means something only in comparison with the rest, v = value - constant part ≤ range:

    to a per cent     1% of v, or 1e-6 if that is more, but not more than 1e-4 of the range
    to rounding       1e-6 max(1, v), or what "to a per cent" asks for if that is less

So 1e-6 is not an excuse where αn is so small that the whole range is hardly more. Neither asks for
more than the accuracy of the programs (`ROUNDING`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.occupancy import flow_of, policy_chain, policy_of, solve_discounted
from rlfd_gym.problem.problem import RLfDProblem

GAP = 1e-6  # the duality gap that the programs promise, for a value up to one
PERCENT = 0.01  # the duality gap that the matrix-free methods promise, as a share of what can change

SHARE = 1e-4  # of the range of the value, which no promise exceeds where the value is nearly 0
ROUNDING = 2e-8  # for a value up to one: the tolerances of PIQP and HiGHS, below which no gap is asked for

Promise = Callable[[float, float], float]
"""A function from (upper, lower) to the largest duality gap that keeps the promise."""


def to_a_percent(problem: RLfDProblem) -> Promise:
    """Return the promise of the matrix-free methods: 1% of the part of the value that can change."""
    constant, widest = _changeable(problem)
    least = min(GAP, SHARE * widest)

    def promise(upper: float, lower: float) -> float:
        return max(PERCENT * (lower - constant), least, ROUNDING * max(1.0, upper))

    return promise


def to_rounding(problem: RLfDProblem) -> Promise:
    """Return the promise of the programs: `GAP`, or 1% of what can change if that is less."""
    constant, percent = _changeable(problem)[0], to_a_percent(problem)

    def promise(upper: float, lower: float) -> float:
        return min(GAP * max(1.0, upper - constant), percent(upper, lower))

    return promise


def _changeable(problem: RLfDProblem) -> tuple[float, float]:
    """Return the part of the value that no cost changes, and the range of the rest."""
    belief = problem.belief
    if not isinstance(belief, NearPrior) or belief.alpha == 0:
        return 0.0, np.inf
    constant = belief.penalty(np.clip(belief.prior, -1.0, 1.0))
    middle = np.full(problem.n_pairs, np.clip(belief.prior.mean(), -1.0, 1.0))
    return constant, belief.penalty(middle) - constant


@dataclass
class Incumbent:
    """The best certified bounds so far, the points that prove them, and until when to improve them."""

    problem: RLfDProblem
    deadline: float = np.inf
    """A time of `time.monotonic`."""
    cost: FloatArray = field(init=False)
    value: FloatArray = field(init=False)
    occupancy: FloatArray = field(init=False)
    upper: float = np.inf
    lower: float = -np.inf

    @property
    def gap(self) -> float:
        """The duality gap, upper - lower."""
        return self.upper - self.lower

    def out_of_time(self) -> bool:
        """Return whether the deadline has passed."""
        return time.monotonic() >= self.deadline

    def keeps(self, promise: Promise) -> bool:
        """Return whether the gap is as small as promised."""
        return bool(np.isfinite(self.gap)) and self.gap <= promise(self.upper, self.lower)

    def offer(self, cost: FloatArray, value: FloatArray, occupancy: FloatArray) -> float:
        """Judge a point, keep what is better than before, and return the point's own gap.

        The point is first brought into the belief's set, the box of values and the simplex. The
        value is shifted before it is clipped, because a constant shift of u changes neither bound.
        A point that is not finite proves nothing.
        """
        if not all(np.isfinite(part).all() for part in (cost, value, occupancy)):
            return np.inf
        belief: Any = self.problem.belief  # one whose x is the cost itself
        c, limit = belief.nearest(cost), belief.largest
        shift = 0.5 * (value.max() + value.min()) if np.abs(value).max() > limit else 0.0
        u = np.clip(value - shift, -limit, limit)
        mu = np.maximum(occupancy, 0.0)
        mu = mu / mu.sum() if mu.any() else self.problem.expert
        upper, lower = self.problem.bounds(c, u, mu)
        if upper < self.upper:
            self.cost, self.value, self.upper = c, u, upper
        if lower > self.lower:
            self.occupancy, self.lower = mu, lower
        return upper - lower


def imitate(best: Incumbent) -> None:
    """Offer what needs no solver: the expert's occupancy, with a constant cost or with the prior.

    A constant cost and value have q = 0, because Tγᵀ1 = 1, and the expert's occupancy has d = 0.
    At α = 0 both bounds are 0 then.
    """
    problem = best.problem
    constant = float(np.clip(problem.prior.mean(), -1.0, 1.0))
    best.offer(np.full(problem.n_pairs, constant), np.full(problem.n_states, constant), problem.expert)
    if problem.alpha > 0:
        best.offer(problem.prior, np.zeros(problem.n_states), problem.expert)


def repaired(problem: RLfDProblem, occupancy: FloatArray, tolerance: float) -> FloatArray:
    """Return the occupancy μ that an occupancy's own policy has with the flow of the expert.

    ‖Tγ(μ_E - μ)‖₁ is at most the tolerance, but for negative mass, which is set to zero. Late in a
    method the flow is nearly right, and what is solved for is the change; far from it, that would
    cancel, and all of μ is.
    """
    mdp, target = problem.mdp, flow_of(problem.mdp, problem.expert)
    policy, states, missing = policy_of(mdp, occupancy), np.zeros(mdp.n_states), target
    change = target - flow_of(mdp, occupancy)
    if np.abs(change).sum() <= 1.0:
        states, missing = mdp.sum_by_state(occupancy), change
    left = float(np.abs(missing).sum())
    if left > tolerance:
        chain = policy_chain(mdp, policy).T.tocsr()
        states = states + solve_discounted(
            chain, (1 - mdp.discount) * missing, mdp.discount, norm=1, tolerance=tolerance / left
        )
    return np.asarray(np.maximum(states, 0.0)[mdp.pair_states] * policy)


def ends_of(problem: RLfDProblem) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest possible cost of each pair."""
    low, high = (np.broadcast_to(end, problem.n_pairs) for end in problem.belief.ends())
    return low, high


def floor_of(problem: RLfDProblem) -> FloatArray:
    """Return argmin h, for h(c) = Ω(c) + <μ_E, c>: the best cost where q ≥ 0 does not bind.

    A cost that has the value u is at least Tγᵀu, and h is a sum of convex functions of one entry
    each, for beliefs about each pair on its own. So the cost with the least upper bound among those
    that have this value is max(Tγᵀu, argmin h), entry by entry, clipped to the belief's ends.
    """
    return problem.belief.best(problem.expert)


def polish(best: Incumbent) -> None:
    """Offer the points that repairing the incumbent's occupancy leads to.

    These are all combinations of an occupancy (μ or μ repaired), a cost (the incumbent's or the
    best answer to one of the occupancies) and the optimal value of that cost.
    """
    problem = best.problem
    occupancies = [best.occupancy, repaired(problem, best.occupancy, 1e-14)]
    costs = [best.cost, *(problem.best_cost(mu) for mu in occupancies)]
    for cost in costs:
        value = problem.mdp.optimal(cost).value
        for mu in occupancies:
            best.offer(cost, value, mu)
