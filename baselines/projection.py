"""Projection: a policy whose features come as near to the expert's as possible.

With ψ(μ) = Cᵀμ and ψ_E = ψ(μ_E), start from ψ' = ψ(μ₀), where μ₀ is the occupancy of the uniform
policy, and repeat

    w = ψ' - ψ_E;    stop if ‖w‖ ≤ ε;    μ_t = an optimal occupancy for Cw/‖w‖;
    ψ' ← the point nearest to ψ_E on the segment from ψ' to ψ(μ_t).

At the end, the best mixture of all occupancies that were found, the minimum over λ in the simplex
of ‖Σ λ_t ψ(μ_t) - ψ_E‖, is an occupancy again, and so one stationary policy. If
‖ψ(μ) - ψ_E‖ ≤ ε, then |<Cw, μ - μ_E>| ≤ ε for every ‖w‖ ≤ 1: under each such cost the apprentice
costs what the expert costs, up to ε. The method matches the expert and never aims to beat it.

**Bounds.** With ŵ = w/‖w‖, μ_t is optimal, so <ŵ, ψ> ≥ <ŵ, ψ(μ_t)> for the features ψ of every
policy, and the distance of the nearest of them to ψ_E lies between

    max_t <ŵ_t, ψ(μ_t) - ψ_E>   ≤   min over μ of ‖ψ(μ) - ψ_E‖   ≤   ‖ψ(μ) - ψ_E‖ of the mixture.

The minimum is 0 for an expert that is the occupancy of a policy; it need not be for one estimated
from samples. So the loop also ends once the bounds, with ψ' instead of the mixture, are within ε of
each other.

**The mixture by nonnegative least squares.** Let D have the columns ψ(μ_t) - ψ_E. Minimise
‖Dx‖² + (1 - Σx)² over x ≥ 0: for x = rλ the best r leaves ‖Dλ‖²/(1 + ‖Dλ‖²), which grows with
‖Dλ‖, so λ = x/Σx is optimal in the simplex.

Abbeel and Ng, "Apprenticeship learning via inverse reinforcement learning", ICML 2004, section
3.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.baselines._planning import Planner
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def projection(
    mdp: TabularMDP, expert: Any, basis: ArrayLike, *, epsilon: float = 1e-3, n_iterations: int = 1000
) -> Solution:
    """Match the expert's features by the projection method.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). Its columns are the features, and their scale says how much each
            counts.
        epsilon: the distance in feature space at which to stop.
        n_iterations: the largest number of forward solves.

    Returns:
        A solution with bounds of the least distance. `mixture` is the last direction ŵ, and `cost`
        is Cŵ, under which the last policy was optimal. Both are zero if the uniform policy was
        within `epsilon` to begin with.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import projection, scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.3)
        >>> solution = projection(env.mdp, expert=expert, basis=scale_basis(env.features))
        >>> solution.upper < 1e-3, solution.lower
        (True, 0.0)
    """
    mu_e = expert_occupancy(mdp, expert)
    c = check_basis(basis, mdp.n_pairs, box=False)
    tolerance = _checks.number("epsilon", epsilon, 0.0)
    limit = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    target = c.T @ mu_e
    found = [mdp.occupancy_of(mdp.uniform_policy())]
    nearest, weights, lower = c.T @ found[0], np.zeros(c.shape[1]), 0.0
    planner = Planner(mdp)
    while len(found) <= limit:
        away = nearest - target
        distance = float(np.linalg.norm(away))
        if distance - lower <= tolerance:
            break
        # ŵ, an optimal occupancy for Cŵ, and the lower bound that it proves.
        weights = away / distance
        occupancy, least = planner.plan(c @ weights)
        found.append(occupancy)
        lower = max(lower, least - float(weights @ target))
        # ψ' moves to the point nearest to ψ_E on the segment.
        towards = c.T @ occupancy - nearest
        if (length := float(towards @ towards)) > 0:
            nearest = nearest + min(1.0, max(0.0, float(-away @ towards) / length)) * towards

    mixture = _nearest_mixture((np.array(found) @ c - target).T) @ np.array(found)
    cost = c @ weights
    policy = planned_policy(mdp, mixture, cost)
    occupancy = mdp.occupancy_of(policy)
    return Solution(
        policy=policy,
        occupancy=occupancy,
        cost=cost,
        mixture=weights,
        upper=float(np.linalg.norm(c.T @ occupancy - target)),
        lower=lower,
        method="projection",
        n_iterations=len(found) - 1,
    )


def _nearest_mixture(differences: FloatArray) -> FloatArray:
    """Return the λ in the simplex that minimises ‖Dλ‖; see the module's docstring."""
    rows = np.vstack([differences, np.ones(differences.shape[1])])
    x, _ = nnls(rows, np.append(np.zeros(len(differences)), 1.0))
    return np.asarray(x / x.sum())
