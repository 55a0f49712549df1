"""The best certified bounds so far.

Whatever is proposed is brought into the boxes and the simplex, and judged.

The bounds of `RLfDProblem.bounds` hold for every point there, so no method has to be trusted.
`upper` depends on the cost and the value only, `lower` on the occupancy only, so the best of each
are kept separately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import occupancy_of, policy_of
from rlfd_gym.problem.problem import RLfDProblem

GAP = 1e-6  # what the programs promise, for a value up to one
PERCENT = 0.01  # of the value, which the matrix-free method promises

Promise = Callable[[float, float], float]
"""From (upper, lower) to the largest duality gap that keeps it."""


def to_rounding(upper: float, lower: float) -> float:
    """The promise of the programs: `GAP`, relative to the value where that exceeds one."""
    return GAP * max(1.0, upper)


def to_a_percent(upper: float, lower: float) -> float:
    """The promise of the matrix-free method: 1% of the value, or `GAP` if that is more."""
    return max(GAP, PERCENT * lower)


@dataclass
class Incumbent:
    """The best certified bounds so far, and the points that prove them."""

    problem: RLfDProblem
    cost: FloatArray = field(init=False)
    value: FloatArray = field(init=False)
    occupancy: FloatArray = field(init=False)
    upper: float = np.inf
    lower: float = -np.inf

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    def keeps(self, promise: Promise) -> bool:
        """Whether the gap is as small as promised."""
        return self.gap <= promise(self.upper, self.lower)

    def offer(self, cost: FloatArray, value: FloatArray, occupancy: FloatArray) -> float:
        """Bring a point into the boxes and the simplex, keep what is better than before, return
        its own gap.

        The value is shifted before it is cut: a constant shift of u changes neither bound.
        """
        c = np.clip(cost, -1.0, 1.0)
        shift = 0.5 * (value.max() + value.min()) if np.abs(value).max() > 1.0 else 0.0
        u = np.clip(value - shift, -1.0, 1.0)
        mu = np.maximum(occupancy, 0.0)
        mu = mu / mu.sum() if mu.any() else self.problem.expert
        upper, lower = self.problem.bounds(c, u, mu)
        if upper < self.upper:
            self.cost, self.value, self.upper = c, u, upper
        if lower > self.lower:
            self.occupancy, self.lower = mu, lower
        return upper - lower


def repaired(problem: RLfDProblem, occupancy: FloatArray, tolerance: float) -> FloatArray:
    """Return the occupancy of an occupancy's own policy, with the flow of the expert."""
    mdp = problem.mdp
    return occupancy_of(mdp, policy_of(mdp, occupancy), source=mdp.flow(problem.expert), tolerance=tolerance)


def polish(best: Incumbent) -> None:
    """Offer all combinations of μ repaired, the cost that answers it, and either cost's value."""
    problem = best.problem
    occupancies = [best.occupancy, repaired(problem, best.occupancy, 1e-14)]
    costs = [best.cost, *(problem.best_cost(mu) for mu in occupancies)]
    for cost in costs:
        value = problem.mdp.optimal(cost).value
        for mu in occupancies:
            best.offer(cost, value, mu)
