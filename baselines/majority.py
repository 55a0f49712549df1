"""Majority action: in each state, what the expert does most often.

    π(a|s) ∝ 1{μ_E(s, a) = max_b μ_E(s, b)}.

This is the mode of the cloned policy, and the trivial rival of every method: an expert that errs
at random, evenly and in less than half of its choices, is mended by it, because errors that are
not repeated are outvoted. An expert that is consistently wrong is copied with its errors. Actions
that are equally frequent share their state evenly, so nothing depends on the numbers of the
actions. In a state where the expert never was, all actions are equally frequent: the policy is
uniform there.
"""

from __future__ import annotations

from typing import Any

from rlfd_gym.baselines._expert import seen_expert
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Apprentice

TIE = 1e-9  # relative difference below which two actions are equally frequent


def majority(mdp: TabularMDP, expert: Any) -> Apprentice:
    """Take the expert's most frequent action; act uniformly where the expert never was.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.

    Returns:
        An apprentice without a cost. `stats` counts in `"unvisited_states"` the states about which
        the expert says nothing, and in `"ties"` the visited ones with several most frequent
        actions.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.3)
        >>> solution = majority(env.mdp, expert)
        >>> optimum = env.mdp.optimal(env.cost).expected_cost
        >>> bool(env.mdp.expected_cost(solution.policy, env.cost) - optimum < 1e-9)
        True
    """
    mu_e, seen = seen_expert(mdp, expert)
    most = mu_e >= (1 - TIE) * mdp.max_by_state(mu_e)[mdp.pair_states]
    policy = mdp.policy_of(most.astype(float))
    several = mdp.sum_by_state(most.astype(float)) > 1
    return Apprentice(
        policy=policy,
        occupancy=mdp.occupancy_of(policy),
        method="majority",
        stats={"unvisited_states": int((~seen).sum()), "ties": int((several & seen).sum())},
    )
