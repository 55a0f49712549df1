"""The incumbent: the best certified bounds that any method has found so far, and its deadline.

Whatever a method proposes is brought into the boxes and the simplex, and judged there. The bounds
of `RLfDProblem.bounds` hold for every point of these sets, so no method has to be trusted. `upper`
depends only on the cost and the value, `lower` only on the occupancy, so the best of each are kept
separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import occupancy_of, policy_of
from rlfd_gym.problem.problem import RLfDProblem

GAP = 1e-6  # the duality gap that the programs promise, for a value up to one
PERCENT = 0.01  # the duality gap that the matrix-free method promises, as a share of the value

Promise = Callable[[float, float], float]
"""A function from (upper, lower) to the largest duality gap that keeps the promise."""


def to_rounding(upper: float, lower: float) -> float:
    """Return the promise of the programs: `GAP`, relative to the value where that exceeds one."""
    return GAP * max(1.0, upper)


def to_a_percent(upper: float, lower: float) -> float:
    """Return the promise of the matrix-free method: 1% of the value, or `GAP` if that is more."""
    return max(GAP, PERCENT * lower)


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
    """Return the occupancy that an occupancy's own policy has with the flow of the expert."""
    mdp = problem.mdp
    return occupancy_of(mdp, policy_of(mdp, occupancy), source=mdp.flow(problem.expert), tolerance=tolerance)


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
