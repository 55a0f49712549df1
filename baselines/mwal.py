"""MWAL: the game of LPAL played by multiplicative weights against a planner.

With the columns of the basis in [-1, 1], ψ(μ) = Cᵀμ and ψ_E = ψ(μ_E), set W = 1,
β = 1/(1 + √(2 ln K / T)), and repeat T times

    w_t = W / ΣW,    μ_t = an optimal occupancy for C w_t,    W ← W ∘ β^((2 + ψ_E - ψ(μ_t))/4).

A feature in which the apprentice is more expensive than the expert gains weight, so the next plan
attends to it. The exponent is the normalised loss (the ψ lie in [-1, 1], so it lies in [0, 1]).
The apprentice is the mean of the μ_t, which is an occupancy itself and so one stationary policy;
the cost is that of the mean weights. Hedge's regret bound gives

    max_i c_i·(μ - μ_E)  ≤  β* + 4 (√(2 ln K / T) + ln K / T),      β* of LPAL,

and `stats["regret_bound"]` is the second term. Syed and Schapire state it for features in [0, 1];
the factor 4 comes with the range of ψ_E - ψ(μ_t). The same argument bounds the gap between the two
bounds of β* that the solution carries.

Syed and Schapire, "A game-theoretic approach to apprenticeship learning", NIPS 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.baselines._planning import Planner
from rlfd_gym.baselines.lpal import hull_solution
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def mwal(mdp: TabularMDP, expert: Any, basis: ArrayLike, *, n_iterations: int = 500) -> Solution:
    """Play LPAL's game by multiplicative weights over the columns of the basis.

    The apprentice is nearly as good as that of `lpal`, and needs forward solves alone.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K), with entries in [-1, 1]; see `scale_basis`.
        n_iterations: T, the number of forward solves.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import mwal, scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.3)
        >>> basis = scale_basis(env.features)
        >>> solution = mwal(env.mdp, expert=expert, basis=basis, n_iterations=200)
        >>> solution.duality_gap < solution.stats["regret_bound"]
        True
    """
    mu_e = expert_occupancy(mdp, expert)
    c = check_basis(basis, mdp.n_pairs)
    steps = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    rate = np.log(c.shape[1]) / steps
    log_beta = -np.log1p(np.sqrt(2 * rate))
    target = c.T @ mu_e
    log_weights, total, mean = np.zeros(c.shape[1]), np.zeros(c.shape[1]), np.zeros(mdp.n_pairs)
    planner = Planner(mdp)
    for _ in range(steps):
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        occupancy, _ = planner.plan(c @ weights)
        total += weights / steps
        mean += occupancy / steps
        log_weights += log_beta * (2 + target - c.T @ occupancy) / 4
    return hull_solution(
        mdp,
        c,
        mu_e,
        total,
        mean,
        method="mwal",
        n_iterations=steps,
        stats={"regret_bound": float(4 * (np.sqrt(2 * rate) + rate))},
    )
