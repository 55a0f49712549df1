"""Mixture: a share of what the prior asks for, and the rest of what the expert does.

With an optimal occupancy μ*_ĉ for the prior ĉ, the apprentice has the occupancy

    μ = (1-λ) μ_E + λ μ*_ĉ,

which is that of one stationary policy. This is the trivial rival with a prior: it goes straight
from the expert to the prior's plan, and needs no weight α, no box and no program. Its true cost is
(1-λ) times the expert's plus λ times the plan's. It can therefore be better than the expert, but
never better than both, unlike RLfD_α, which leaves the expert only where the prior gains most.

In states where μ has no mass, the policy is the prior's plan. A μ_E that was counted in samples need
not be the occupancy of a policy; the returned occupancy is then the one of the returned policy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def mixture(mdp: TabularMDP, expert: Any, prior: ArrayLike, *, share: float = 0.5) -> Solution:
    """Mix the expert's occupancy with one that is optimal for the prior.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        prior: ĉ, a cost over pairs.
        share: λ, from 0 (the expert) to 1 (the prior's plan).

    Returns:
        A solution whose cost is the prior.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> mdp, prior = problem.mdp, problem.prior
        >>> solution = mixture(mdp, problem.expert, prior, share=0.25)
        >>> best, expert = mdp.optimal(prior).expected_cost, float(problem.expert @ prior)
        >>> bool(abs(solution.occupancy @ prior - (0.75 * expert + 0.25 * best)) < 1e-9)
        True
    """
    mu_e = expert_occupancy(mdp, expert, prior)
    c = mdp.pairs(prior, "prior")
    part = _checks.number("share", share, 0.0, 1.0)
    plan = mdp.optimal(c)
    mixed = (1 - part) * mu_e + part * plan.occupancy
    empty = (mdp.sum_by_state(mixed) == 0)[mdp.pair_states]
    policy = np.where(empty, plan.policy, mdp.policy_of(mixed))
    return Solution(policy=policy, occupancy=mdp.occupancy_of(policy), cost=c, value=plan.value, method="mixture")
