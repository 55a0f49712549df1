"""Solve both environments and say what there is to gain: optimal against random orders and moves.

python scripts/compare.py
"""

from __future__ import annotations

import gymnasium as gym

import rlfd_gym
from rlfd_gym.envs import TabularEnv

TASKS = ("rlfd_gym/Inventory-v0", "rlfd_gym/WindyGridworld-v0")


def main() -> None:
    """Print one row per environment."""
    print("Expected discounted cost, normalised by (1-γ), in the learning box [-1, 1]: exact, lower is better.\n")
    print(f"{'environment':<28}{'states':>8}{'pairs':>8}{'discount':>10}{'optimal':>10}{'random':>10}")
    for name in TASKS:
        env = gym.make(name).unwrapped
        assert isinstance(env, TabularEnv)
        mdp, cost = rlfd_gym.TabularMDP.from_env(env), rlfd_gym.cost_of_env(env)
        best, random = mdp.optimal(cost).expected_cost, mdp.expected_cost(mdp.uniform_policy(), cost)
        print(f"{name:<28}{mdp.n_states:>8}{mdp.n_pairs:>8}{mdp.discount:>10g}{best:>10.4f}{random:>10.4f}")


if __name__ == "__main__":
    main()
