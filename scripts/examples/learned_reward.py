"""Train another agent on the learned reward: RLfDTrainer, then PPO on nothing but its reward.

python scripts/examples/learned_reward.py
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch as th
from imitation.rewards.reward_wrapper import RewardVecEnvWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import RLfDTrainer
from rlfd_gym.report import run_script
from rlfd_gym.trainer import quiet_logger


def main(steps: int) -> None:
    """Train the apprentice, then PPO on its reward, and print their true expected costs."""
    th.set_num_threads(1)  # the networks are tiny
    venv = DummyVecEnv([lambda: gym.make("rlfd_gym/Inventory-v0")] * 16)
    world = venv.get_attr("unwrapped")[0]
    mdp, cost = world.mdp, world.cost
    expert = mdp.optimal(world.cost_for(5, 8, 15)).occupancy  # it thinks that holding stock is expensive
    trainer = RLfDTrainer(
        expert,
        venv,
        rng=0,
        prior=world.cost_for(4, 2, 14),
        policy_kind="greedy",
        custom_logger=quiet_logger(),
    )
    trainer.train()
    paid = RewardVecEnvWrapper(venv, trainer.reward_net.predict_processed)
    agent = PPO("MlpPolicy", paid, n_steps=64, batch_size=256, gamma=world.discount, seed=0)
    agent.learn(steps)

    orders = np.array(
        [world.cut_action(s, int(a)) for s, a in enumerate(agent.predict(np.arange(16), deterministic=True)[0])]
    )
    table = np.zeros((16, 16))
    table[np.arange(16), orders] = 1.0
    policies = {
        "apprentice": mdp.pairs(trainer.policy.probabilities.numpy()),
        "PPO on its reward": mdp.pairs(table),
        "random orders": mdp.uniform_policy(),
    }
    learned = trainer.solution.cost
    print(f"{'expected cost':<20}{'learned':>10}{'true':>10}")
    print(f"{'expert':<20}{expert @ learned:>10.4f}{expert @ cost:>10.4f}")
    for name, policy in policies.items():
        print(f"{name:<20}{mdp.expected_cost(policy, learned):>10.4f}{mdp.expected_cost(policy, cost):>10.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", type=int, nargs="?", default=50_000, help="steps of PPO (default 50000)")
    run_script(lambda: main(parser.parse_args().steps))
