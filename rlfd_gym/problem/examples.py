"""The paper's instances, for documentation, tests and scripts.

>>> inventory(alpha=0.1).n_pairs, gridworld().n_pairs
(136, 400)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlfd_gym import _checks
from rlfd_gym.experts.made_up import noisy_expert
from rlfd_gym.problem.problem import RLfDProblem

if TYPE_CHECKING:
    from rlfd_gym.envs import InventoryEnv, WindyGridworldEnv

# Prices are (order, holding, sell). The expert overestimates the cost of holding stock.
EXPERT_PRICES = (5, 8, 15)
PRIOR_PRICES = (4, 2, 14)  # a guess near the truth


def inventory_env(**options: Any) -> InventoryEnv:
    """Make the paper's inventory; `options` are those of `rlfd_gym.envs.InventoryEnv`."""
    from rlfd_gym.envs import InventoryEnv  # the core uses Gymnasium only here

    return InventoryEnv(**options)


def inventory(alpha: float = 0.0, *, regulariser: str = "l2", **options: Any) -> RLfDProblem:
    """Pose the paper's inventory problem.

    The expert overestimates the holding cost, and the prior is near the truth.
    """
    env = inventory_env(**options)
    weight = _checks.number("alpha", alpha, 0.0)
    expert = env.mdp.optimal(env.cost_for(*EXPERT_PRICES)).occupancy
    return RLfDProblem(env.mdp, expert, env.cost_for(*PRIOR_PRICES), weight, regulariser)


def gridworld_env(size: int = 10, **options: Any) -> WindyGridworldEnv:
    """Make the paper's windy gridworld of size × size cells.

    `options` are those of `rlfd_gym.envs.WindyGridworldEnv`.
    """
    from rlfd_gym.envs import WindyGridworldEnv  # the core uses Gymnasium only here

    return WindyGridworldEnv(height=size, width=size, **options)


def gridworld(
    size: int = 10,
    noise: float = 0.3,
    alpha: float = 0.0,
    *,
    known: float = 0.5,
    seed: int = 0,
    regulariser: str = "l2",
    **options: Any,
) -> RLfDProblem:
    """Pose the paper's gridworld problem.

    The expert acts at random with probability `noise`. The prior knows the share `known` of the
    obstacles and of the goals, drawn with `seed`.
    """
    env = gridworld_env(size, **options)
    weight = _checks.number("alpha", alpha, 0.0)
    expert = noisy_expert(env.mdp, env.cost, noise)
    return RLfDProblem(env.mdp, expert, env.partial_prior(known, seed=seed), weight, regulariser)
