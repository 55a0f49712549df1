r"""How an occupancy is read as a policy.

An occupancy μ says how often each pair is visited. A state s with mass ν(s) = Σ_b μ(s, b) has

    the mixture   π(a|s) = μ(s, a) / ν(s),      the paper's definition, and
    the mode      the most frequent action, arg max over a of μ(s, a).

An expert who errs at random is mended by the mode, which leaves the errors out. One who is
consistently wrong is not: there the mixture is the smaller step away from the expert.

**Where there is no mass** an occupancy says nothing, but a learned cost does: at the solution of
the learning problem μ is optimal for the learned cost, so it takes only actions that are optimal
for it. `planned_policy` continues this rule in states without mass: all actions that are optimal
for the learned cost, with equal probability. They matter when the expert was estimated from few
demonstrations, which start in some states only, while the policy is used from all. Without a cost
the policy is uniform there.

A solver leaves a little mass everywhere, of the order of its duality gap ε. What it has left in
states that the solution does not reach is not a choice. So a state has *no mass* if it is one of
the lightest, which together hold at most `negligible`: ε in the exact solvers (for costs up to
one), 0 elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.forward import optimal_actions
from rlfd_gym.mdp.occupancy import policy_of, shares
from rlfd_gym.mdp.pairs import Pairs

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

READINGS = ("occupancy", "mode", "greedy")
"""The mixture, the most frequent actions, and the plan for the learned cost."""
TIE = 1e-6  # actions whose probabilities differ by no more are equally likely: solvers are not more exact


def mode_of(pairs: Pairs, policy: ArrayLike) -> FloatArray:
    """Return the policy that takes the most likely action of each state.

    Actions that are equally likely, up to 1e-6, share the probability evenly. So a state about
    which nothing is known stays one.

    >>> pairs = Pairs.of_mask([[True, True], [True, True]])
    >>> mode_of(pairs, [0.2, 0.8, 0.5, 0.5]).tolist()
    [0.0, 1.0, 0.5, 0.5]
    """
    pi = shares(_checks.nonnegative("policy", pairs.pairs(policy, "policy")), pairs.state_starts)
    likely = pi >= pairs.max_by_state(pi)[pairs.pair_states] - TIE
    return shares(likely.astype(np.float64), pairs.state_starts)


def planned_policy(mdp: TabularMDP, occupancy: ArrayLike, cost: ArrayLike, negligible: float = 0.0) -> FloatArray:
    """Return the policy of an occupancy; in states without mass, plan with `cost`.

    Args:
        mdp: the environment's tables.
        occupancy: the mass of each pair.
        cost: the learned cost, over pairs. It is planned with only if there are such states.
        negligible: the mass that all states without mass may hold together.

    Example:
        >>> from rlfd_gym import TabularMDP
        >>> P, states, actions = [[0, 1], [1, 0], [0, 1], [1, 0]], [0, 0, 1, 1], [0, 1, 0, 1]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> planned_policy(mdp, [0.25, 0.75, 0, 0], cost=[0, 0, 1, 0]).tolist()
        [0.25, 0.75, 0.0, 1.0]
    """
    pi = policy_of(mdp, occupancy)
    light = massless(mdp.sum_by_state(occupancy), negligible)
    return pi if not light.any() else np.where(light[mdp.pair_states], optimal_actions(mdp, cost), pi)


def massless(masses: FloatArray, negligible: float) -> NDArray[np.bool_]:
    """Return which states have no mass: the lightest, which together hold at most `negligible`.

    >>> massless(np.array([0.5, 0.0, 0.5, 1e-9, 2e-9]), 2e-9).tolist()
    [False, True, False, True, False]
    """
    order = np.argsort(masses, kind="stable")
    light = np.zeros(len(masses), dtype=bool)
    light[order[np.cumsum(masses[order]) <= negligible]] = True
    return light
