"""Learn from an imperfect expert on both environments, and say what was gained.

python scripts/compare.py
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from rlfd_gym import RLfDProblem, noisy_expert, solve_exact, solve_smd
from rlfd_gym.envs import InventoryEnv, WindyGridworldEnv

ALPHA = {"inventory": 1.0, "windy gridworld": 0.1}


def main() -> None:
    """Print one table per environment."""
    print("True expected cost, exact policy evaluation, in the learning box [-1, 1]: lower is better.")
    for name, make in {"inventory": inventory, "windy gridworld": gridworld}.items():
        problem, truth = make(ALPHA[name])
        mdp = problem.mdp
        exact = solve_exact(problem)
        smd = solve_smd(problem, n_iterations=2_000_000, n_runs=4, n_jobs=2)
        rows = [
            ("optimum", mdp.optimal(truth).expected_cost, None),
            ("expert", float(problem.expert @ truth), None),
            ("prior alone", mdp.expected_cost(mdp.optimal(problem.prior).policy, truth), None),
            ("RLfD, exact", mdp.expected_cost(exact.policy, truth), exact.duality_gap),
            ("RLfD, SMD", mdp.expected_cost(smd.policy, truth), smd.duality_gap),
            ("random", mdp.expected_cost(mdp.uniform_policy(), truth), None),
        ]
        print(f"\n{name}, alpha = {problem.alpha:g}\n{'':<14}{'true cost':>10}{'duality gap':>14}")
        for label, cost, gap in rows:
            print(f"{label:<14}{cost:>10.4f}" + ("" if gap is None else f"{gap:>14.1e}"))


def inventory(alpha: float) -> tuple[RLfDProblem, np.ndarray]:
    """The paper's: an expert who overrates the holding cost, and a prior with slightly wrong prices."""
    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    assert isinstance(env, InventoryEnv)
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    return RLfDProblem(env.mdp, expert, env.cost_for(4, 2, 14), alpha), env.cost


def gridworld(alpha: float) -> tuple[RLfDProblem, np.ndarray]:
    """An expert with 30% random moves, and a prior that knows a random half of the obstacles and goals."""
    env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    assert isinstance(env, WindyGridworldEnv)
    expert = noisy_expert(env.mdp, env.cost, 0.3)
    return RLfDProblem(env.mdp, expert, env.partial_prior(0.5, seed=0), alpha), env.cost


if __name__ == "__main__":
    main()
