r"""D-REX in tables: a cost that explains why the expert gets worse the more noise is added.

Disturbance-based reward extrapolation ranks by noise instead of asking for rankings. For noise
levels ε, let μ_ε be the occupancy of (1-ε) π_E + ε · uniform. The less noise, the better it is
assumed to be. With the pairwise logistic likelihood of these rankings (Bradley and Terry; Luce and
Shepard), the cost is

    min over c in the box   Σ_{ε<ε'} log(1 + exp(<μ_ε - μ_ε', c>)) + α ‖c - ĉ‖²,

where the second term is a Gaussian prior around ĉ, or a weight decay for ĉ = 0. The apprentice
plans with the learned cost. It extrapolates: it continues in the direction from noise to expert,
and may end beyond the expert. The assumption is made for experts that err evenly at random. An
expert that is consistently wrong still gets worse with noise, so D-REX extrapolates its errors.

The paper learns a network from trajectories that are drawn; here the occupancies are exact. The
sum is convex in c, and L-BFGS-B minimises it.

**Bounds.** With f = g + α‖· - ĉ‖² and g convex, for each point c₀ and all c

    f(c) ≥ f(c₀) + <∇f(c₀), c - c₀> + α ‖c - c₀‖²,

and the minimum of the right-hand side over the box is a lower bound, in closed form for each pair.

Brown, Goo and Niekum, "Better-than-demonstrator imitation learning via automatically-ranked
demonstrations", CoRL 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution

LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
STEPS = 1000  # of L-BFGS-B; a few dozen are usual, and the bounds say whether they were enough


def drex(
    mdp: TabularMDP,
    expert: Any,
    prior: ArrayLike | None = None,
    *,
    alpha: float = 0.1,
    noise_levels: ArrayLike = LEVELS,
) -> Solution:
    """Learn a cost that ranks the expert with less noise before the one with more; plan with it.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        prior: ĉ, a cost over pairs; `None` for the zero cost.
        alpha: the weight of the prior, at least 0.
        noise_levels: the ε's, at least two different numbers in [0, 1]. The default has the five
            levels of the authors' Atari experiments, with 0 for the least.

    Returns:
        A solution whose policy is optimal for the learned cost. `upper` and `lower` bound the
        minimum, and `stats["ranked"]` is the share of the pairs ε < ε' that the cost ranks so.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> solution = drex(problem.mdp, problem.expert, problem.prior, alpha=0.01)
        >>> solution.stats["ranked"], solution.duality_gap < 1e-8
        (1.0, True)
    """
    weight = _checks.number("alpha", alpha, 0.0)
    mu_e = expert_occupancy(mdp, expert, prior if weight else None)
    centre = np.zeros(mdp.n_pairs) if prior is None else mdp.pairs(prior, "prior")
    differences = _ranked_differences(mdp, mu_e, _levels(noise_levels))
    cost, steps = _learned(differences, centre, weight)
    plan = mdp.optimal(cost)
    upper, gradient = objective(cost, differences, centre, weight)
    return Solution(
        policy=plan.policy,
        occupancy=plan.occupancy,
        cost=cost,
        value=plan.value,
        upper=upper,
        lower=upper + _least_change(cost, gradient, weight),
        method="drex",
        n_iterations=steps,
        stats={"ranked": float(np.mean(differences @ cost < 0))},
    )


def objective(cost: FloatArray, differences: FloatArray, prior: FloatArray, alpha: float) -> tuple[float, FloatArray]:
    """Return the objective of the module's docstring and its gradient.

    The rows of `differences` are μ_ε - μ_ε' for ε < ε'.
    """
    margins, away = differences @ cost, cost - prior
    value = np.logaddexp(0.0, margins).sum() + alpha * (away @ away)
    return float(value), differences.T @ expit(margins) + 2 * alpha * away


def _levels(values: ArrayLike) -> FloatArray:
    levels = _checks.numbers("noise_levels", values)
    if levels.ndim != 1 or len(np.unique(levels)) < 2:
        raise ValueError(
            f"noise_levels has shape {levels.shape} and {np.unique(levels).size} different numbers, expected a list of "
            "at least two"
        )
    if not ((levels >= 0) & (levels <= 1)).all():
        raise ValueError(f"noise_levels must lie in [0, 1], got {levels.min()} to {levels.max()}")
    return np.unique(levels)


def _ranked_differences(mdp: TabularMDP, mu_e: FloatArray, levels: FloatArray) -> FloatArray:
    """Return μ_ε - μ_ε' for ε < ε', one row each."""
    policy, uniform = mdp.policy_of(mu_e), mdp.uniform_policy()
    occupancies = np.array([mdp.occupancy_of((1 - e) * policy + e * uniform) for e in levels])
    less, more = np.triu_indices(len(levels), 1)
    return occupancies[less] - occupancies[more]


def _learned(differences: FloatArray, prior: FloatArray, alpha: float) -> tuple[FloatArray, int]:
    """Minimise the objective over the box; return the cost and the number of steps."""
    from scipy.optimize import minimize  # slow to load

    # Divided by its curvature at most, so that the stopping rule means the same for every α.
    scale = max(1e-12, 2 * alpha + np.sum(differences**2) / 4)

    def scaled(cost: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(cost, differences, prior, alpha)
        return value / scale, gradient / scale

    result = minimize(
        scaled,
        np.clip(prior, -1.0, 1.0),
        jac=True,
        method="L-BFGS-B",
        bounds=[(-1.0, 1.0)] * len(prior),
        options={"maxiter": STEPS, "ftol": 0.0, "gtol": 1e-9, "maxcor": 20},
    )
    return np.clip(result.x, -1.0, 1.0), int(result.nit)


def _least_change(cost: FloatArray, gradient: FloatArray, alpha: float) -> float:
    """Return the least of <∇f, d> + α‖d‖² over all d for which cost + d is in the box."""
    best = np.where(gradient > 0, -1.0, 1.0) - cost
    if alpha > 0:
        step = -gradient / (2 * alpha)
        best = np.where(np.abs(step) < np.abs(best), step, best)
    return float(np.minimum(0.0, gradient * best + alpha * best**2).sum())
