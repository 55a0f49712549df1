"""Plans for many costs, one after the other, for methods that plan in a loop.

Policy iteration as in `rlfd_gym.mdp.forward`, with two differences that make it several times
faster in a loop. It starts from the policy that was optimal for the cost before: the costs of such
a loop change little, and one evaluation often shows that nothing has to be changed. And it solves
dense systems, which for a few hundred states take less time than to set up sparse ones. Where
several policies are optimal, the one before is kept. Larger MDPs are left to `mdp.optimal`.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as la

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.tables import TabularMDP

DENSE_STATES = 300  # up to here dense systems are faster than sparse ones
TIE = 1e-11  # an action is better only beyond this times 1-γ, for costs up to one
ROUNDING = 1e-12  # of the least expected cost, for costs up to one


class Planner:
    """A function from costs to optimal occupancies, which starts from its last policy."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self._dense = np.asarray(mdp.transitions.toarray()) if mdp.n_states <= DENSE_STATES else None
        self._pairs = mdp.state_starts[:-1].copy()

    def plan(self, cost: FloatArray) -> tuple[FloatArray, float]:
        """Return an optimal occupancy for the cost, and a lower bound on its expected cost.

        >>> rows = [[1, 0], [0, 1], [0, 1]]
        >>> mdp = TabularMDP(rows, [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
        >>> occupancy, least = Planner(mdp).plan(np.array([0.5, 1.0, -1.0]))
        >>> occupancy.tolist(), abs(least) < 1e-11
        ([0.0, 0.5, 0.5], True)
        """
        mdp, p = self.mdp, self._dense
        if p is None:
            plan = mdp.optimal(cost)
            return plan.occupancy, plan.expected_cost - plan.value_error
        gamma, starts = mdp.discount, mdp.state_starts[:-1]
        size = max(1.0, float(np.abs(cost).max()))
        pairs, identity, total = self._pairs, np.eye(mdp.n_states), np.inf
        while True:
            factors = la.lu_factor(identity - gamma * p[pairs], overwrite_a=True, check_finite=False)
            value = la.lu_solve(factors, (1 - gamma) * cost[pairs], check_finite=False)
            q = (1 - gamma) * cost + gamma * (p @ value)
            best = np.minimum.reduceat(q, starts)
            better = q[pairs] - best > TIE * (1 - gamma) * size
            # An improvement lowers the value somewhere and raises it nowhere. Stop once rounding
            # hides this.
            if not better.any() or value.sum() >= total:
                break
            total = float(value.sum())
            hits = np.flatnonzero(q <= best[mdp.pair_states])
            pairs = np.where(better, hits[np.searchsorted(hits, starts)], pairs)
        self._pairs = pairs
        mass = np.maximum(la.lu_solve(factors, (1 - gamma) * mdp.initial, trans=1, check_finite=False), 0.0)
        occupancy = np.zeros(mdp.n_pairs)
        occupancy[pairs] = mass / mass.sum()
        # MacQueen's lower bound on the optimal value.
        least = best + gamma / (1 - gamma) * float((best - value).min())
        return occupancy, float(mdp.initial @ least) - ROUNDING * size
