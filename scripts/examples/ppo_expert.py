"""Learn from the rollouts of a PPO expert from Stable-Baselines3 on the inventory.

python scripts/examples/ppo_expert.py

The expert and RLfDTrainer's apprentice are evaluated in the same way. PPO does not support action
masks and orders more than fits; the shop cuts such orders, and the trainer reads them that way.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch as th
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from rlfd_gym import RLfDTrainer
from rlfd_gym.report import run_script
from rlfd_gym.trainer import quiet_logger


def main(steps: int) -> None:
    """Train the expert and the apprentice, and print their mean returns."""
    th.set_num_threads(1)  # the networks are tiny
    venv = VecMonitor(DummyVecEnv([lambda: RolloutInfoWrapper(gym.make("rlfd_gym/Inventory-v0"))] * 16))
    world = venv.get_attr("unwrapped")[0]
    expert = PPO("MlpPolicy", venv, n_steps=64, batch_size=256, gamma=world.discount, seed=0)
    expert.learn(steps)
    demos = rollout.rollout(
        expert,
        venv,
        rollout.make_sample_until(min_episodes=40),
        rng=np.random.default_rng(0),
        deterministic_policy=True,
    )
    trainer = RLfDTrainer(
        demos,
        venv,
        rng=0,
        prior=world.cost_for(4, 2, 14),  # prices that are not quite right; the true ones are 3, 0.5 and 15
        custom_logger=quiet_logger(),
    )
    trainer.train()
    print("mean return of 100 episodes of 100 orders:")
    for name, policy in (("PPO expert", expert), ("apprentice", trainer.policy)):
        mean, _ = evaluate_policy(policy, venv, n_eval_episodes=100)
        print(f"{name} {mean:7.2f}")
    print(f"duality gap {trainer.duality_gap:.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", type=int, nargs="?", default=50_000, help="steps of PPO (default 50000)")
    run_script(lambda: main(parser.parse_args().steps))
