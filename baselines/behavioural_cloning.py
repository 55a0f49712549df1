"""Behavioural cloning in tables: do what the expert did, where it was seen to act.

    π(a|s) = μ_E(s, a) / Σ_b μ_E(s, b),     uniform over A(s) in states where the expert never was.

From demonstrations π(a|s) is how often a was taken in s. Nothing is learned about the cost, and
nothing about unvisited states. This is the sanity check of every comparison. It equals RLfD on the
box with α = 0, whose only optimal occupancy is the expert's own. The idea is as old as Pomerleau,
"ALVINN: An autonomous land vehicle in a neural network", NIPS 1988.
"""

from __future__ import annotations

from typing import Any

from rlfd_gym.baselines._expert import seen_expert
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Apprentice


def behavioural_cloning(mdp: TabularMDP, expert: Any) -> Apprentice:
    """Copy the expert's policy; act uniformly in states where the expert never was.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.

    Returns:
        An apprentice without a cost. `stats["unvisited_states"]` counts the states about which the
        expert says nothing.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> plan = env.mdp.optimal(env.cost)
        >>> solution = behavioural_cloning(env.mdp, plan.occupancy)
        >>> bool(abs(env.mdp.expected_cost(solution.policy, env.cost) - plan.expected_cost) < 1e-9)
        True
    """
    mu_e, seen = seen_expert(mdp, expert)
    policy = mdp.policy_of(mu_e)
    return Apprentice(
        policy=policy,
        occupancy=mdp.occupancy_of(policy),
        method="cloning",
        stats={"unvisited_states": int((~seen).sum())},
    )
