r"""Finite horizons, also without a discount, through tables over (time, state).

Over H steps with a discount 0 < γ ≤ 1 a policy has the cost

    C(π) = 1/Z Σ_{t<H} γᵗ E c_t(s_t, a_t),        Z = Σ_{t<H} γᵗ,

for γ = 1 the plain average of H steps. Its best policies depend on time. The library's problems never
end and have a discount below 1; a finite horizon becomes one of them if time is part of the state:

    (t, s) → (t+1, s')  with probability P(s'|s, a),      (H-1, s) → end,      end → end.

The pair i at time t has the number t·n + i, and the state s the number t·S + s; the end is the last
state, with one action. The tables need a discount γ' < 1, which may be any: at time t it takes the
weight (1-γ')γ'ᵗ, and a cost that is weighted by

    w_t = (γ/γ')^{t-(H-1)}        becomes        (1-γ')γ'ᵗ w_t = (1-γ') γ'^{H-1} γ^{t-(H-1)},

which is γᵗ up to the constant K = Z (1-γ') (γ'/γ)^{H-1}. So for the weighted cost, which is 0 at the
end, the expected cost of every policy in these tables is exactly K · C(π), and the ranking of
policies, the best policy and the regret are those of the finite horizon. The values are

    V'(t, s) = (1-γ') w_t J_t(s),     J_t(s) = min over a of c_t(s, a) + γ Σ P(s'|s, a) J_{t+1}(s'),

J_H = 0: plain backward induction.

**Which γ'.** With γ' = min(γ, H/(H+1)) the weights are in [1/e, 1]: a cost in the box [-1, 1] stays in
it and is seen at every time, and at least half of the mass is before the end. A γ' near 1 would give
nearly all mass to the end, and a small one would hide late steps.

**Learning.** Any belief and solver works on these tables. A `NearPrior` or `Intervals` may learn
another cost for every time; `Prices` and `Hull` over `weighted(features)` keep one cost for all times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.tables import TabularMDP

SMALLEST_WEIGHT = 1e-290  # of a time, so that its share among pairs is still a number


class TimedWalk(NamedTuple):
    """A trajectory over (time, state), with imitation's names for its parts.

    Example:
        >>> walk = TimedWalk(obs=np.array([0, 3, 4]), acts=np.array([1, 0]), terminal=True)
        >>> len(walk.acts)
        2
    """

    obs: IntArray
    acts: IntArray
    terminal: bool


@dataclass(frozen=True, eq=False)
class OverTime:
    """A finite horizon as tables over (time, state); `over_time` makes it.

    Attributes:
        base: the tables of one step.
        horizon: H, the number of steps.
        discount: γ over the horizon, which may be 1.
        mdp: the tables over (time, state), with their own discount γ'.
        weights: w_t, by which costs are weighted.

    Example:
        >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], [1, 0], discount=0.5)
        >>> over = over_time(mdp, horizon=4)
        >>> over.mdp.n_states, over.weighted([0.0, 1.0, -1.0]).shape
        (9, (13,))
    """

    base: TabularMDP
    horizon: int
    discount: float
    mdp: TabularMDP
    weights: FloatArray = field(repr=False)

    def weighted(self, cost: ArrayLike) -> FloatArray:
        """Return the weighted cost over (time, pair), from one for all times or one for each.

        `cost` is over pairs, or (horizon, n_pairs). A matrix of features, (n_pairs, K), gives one.
        """
        values = _checks.finite("cost", _checks.numbers("cost", cost))
        n, h = self.base.n_pairs, self.horizon
        if values.shape[:1] == (n,) and values.shape != (h, n):
            values = np.broadcast_to(values, (h, *values.shape))
        elif values.shape != (h, n):
            raise ValueError(
                f"cost has shape {values.shape}, expected ({n},), ({n}, K) or ({h}, {n}): pairs, and times"
            )
        rows = self.weights.reshape(-1, *[1] * (values.ndim - 1)) * values
        return np.concatenate([rows.reshape(-1, *values.shape[2:]), np.zeros((1, *values.shape[2:]))])

    def cost(self, weighted: ArrayLike) -> FloatArray:
        """Return the cost of each time, (horizon, n_pairs), from a weighted one such as a learned cost."""
        return self._rows("weighted", weighted) / self.weights[:, None]

    def policy(self, policy: ArrayLike) -> FloatArray:
        """Return a policy of each time, (horizon, n_pairs), from one over (time, pair)."""
        return self._rows("policy", policy).copy()

    def repeated(self, policy: ArrayLike) -> FloatArray:
        """Return the policy over (time, pair) that acts alike at all times."""
        return np.append(np.tile(self.base.pairs(policy, "policy"), self.horizon), 1.0)

    def occupancy(self, occupancy: ArrayLike) -> FloatArray:
        """Return the distribution over pairs at each time, (horizon, n_pairs): every row sums to one."""
        mass = (1 - self.mdp.discount) * self.mdp.discount ** np.arange(self.horizon)
        return self._rows("occupancy", occupancy) / mass[:, None]

    def value(self, value: ArrayLike) -> FloatArray:
        """Return the cost to go J_t(s), (horizon, n_states), from a value over (time, state)."""
        values = _checks.finite_vector("value", value, self.mdp.n_states, "state (mdp.n_states)")
        return values[:-1].reshape(self.horizon, -1) / ((1 - self.mdp.discount) * self.weights[:, None])

    def average(self, expected: float) -> float:
        """Return C(π), the cost per step, from an expected cost under the weighted cost."""
        inner, t = self.mdp.discount, np.arange(self.horizon)
        constant = (1 - inner) * float((inner**t * self.weights).sum())
        return _checks.number("expected", expected) / constant

    def states(self, observations: ArrayLike) -> IntArray:
        """Return the states s₀, s₁, … of one trajectory as states over (time, state)."""
        seen = _checks.integers("observations", observations)
        if seen.ndim != 1 or not 2 <= seen.size <= self.horizon + 1:
            raise ValueError(
                f"observations has shape {seen.shape}, expected between 2 and {self.horizon + 1} states, one more than "
                "steps of the horizon"
            )
        if seen.min() < 0 or seen.max() >= self.base.n_states:
            raise ValueError(
                f"observations must be in 0..{self.base.n_states - 1}, the states, got {seen.min()}..{seen.max()}"
            )
        return np.minimum(np.arange(seen.size) * self.base.n_states + seen, self.mdp.n_states - 1)

    def trajectories(self, trajectories: Iterable[Any]) -> list[TimedWalk]:
        """Return trajectories over (time, state), for `occupancy_from_demonstrations(…, over.mdp)`."""
        return [
            TimedWalk(self.states(walk.obs), _checks.integers("acts", walk.acts), bool(walk.terminal))
            for walk in trajectories
        ]

    def _rows(self, name: str, values: ArrayLike) -> FloatArray:
        """Return a vector over (time, pair) as one row for each time, without the end."""
        return self.mdp.pairs(values, name)[:-1].reshape(self.horizon, -1)


def over_time(mdp: TabularMDP, horizon: int, discount: float = 1.0) -> OverTime:
    """Return a finite horizon as tables over (time, state), in which it is solved exactly.

    Args:
        mdp: the tables of one step; their own discount plays no role.
        horizon: H, the number of steps.
        discount: γ over the horizon; 1 for the plain average over its steps, as `MCEIRL` has it.

    Example:
        Moving costs 1 once and then earns 1 a step, so that it pays while three steps are left.

        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> over = over_time(mdp, horizon=4)
        >>> plan = over.mdp.optimal(over.weighted([0.0, 1.0, -1.0]))
        >>> over.policy(plan.policy)[:, 1].tolist()[:2], round(over.average(plan.expected_cost), 12)
        ([1.0, 1.0], -0.5)
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    h = _checks.integer("horizon", horizon, 1, _checks.MOST_STATES // mdp.n_states)
    outer = _checks.number("discount", discount, 0.0, 1.0)
    if outer == 0:
        raise ValueError("discount must be positive, got 0")
    inner = min(outer, h / (h + 1))
    if inner ** (h - 1) < SMALLEST_WEIGHT:
        raise ValueError(f"discount is {outer:g}: at the end of a horizon of {h} steps its power is no number any more")
    p, n_states = mdp.transitions, mdp.n_states
    end, times = h * n_states, np.arange(h)
    steps = np.minimum(((times[:, None] + 1) * n_states + p.indices).ravel(), end)  # the last ones lead to the end
    lengths = np.append(np.tile(np.diff(p.indptr), h), 1)
    table = sp.csr_array(
        (np.append(np.tile(p.data, h), 1.0), np.append(steps, end), np.concatenate([[0], np.cumsum(lengths)])),
        shape=(len(lengths), end + 1),
    )
    states = np.append((times[:, None] * n_states + mdp.pair_states).ravel(), end)
    start = np.zeros(end + 1)
    start[:n_states] = mdp.initial
    expanded = TabularMDP(table, states, np.append(np.tile(mdp.pair_actions, h), 0), start, inner, mdp.n_actions)
    return OverTime(mdp, h, outer, expanded, np.asarray((outer / inner) ** (times - (h - 1.0)), dtype=np.float64))
