"""Save demonstrations with imitation, load them lazily, learn from them, and save the result.

python scripts/examples/saved_demonstrations.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import gymnasium as gym
import numpy as np
from imitation.data import rollout, serialize
from imitation.data.wrappers import RolloutInfoWrapper
from imitation.policies.serialize import load_policy
from imitation.rewards.serialize import load_reward
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import RLfDTrainer
from rlfd_gym.report import run_script
from rlfd_gym.trainer import TablePolicy, quiet_logger


def main(folder: Path) -> None:
    """Save and load everything that can be saved."""
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(gym.make("rlfd_gym/WindyGridworld-v0"))])
    venv.seed(0)
    world = venv.get_attr("unwrapped")[0]
    mdp = world.mdp
    walk = 0.9 * mdp.optimal(world.cost).policy + 0.1 * mdp.uniform_policy()
    expert = TablePolicy(venv.observation_space, venv.action_space, mdp.table(walk, fill=0.0))
    demos = rollout.rollout(expert, venv, rollout.make_sample_until(min_episodes=100), rng=np.random.default_rng(0))

    serialize.save(folder / "demonstrations", demos)
    loaded = serialize.load(folder / "demonstrations")  # read from disk while it is iterated over
    quiet = quiet_logger()
    trainer = RLfDTrainer(loaded, venv, rng=0, prior=world.cost, custom_logger=quiet)
    trainer.train()

    trainer.save(folder / "trainer.npz")
    trainer.policy.save(folder / "policy.pt")
    trainer.reward_net.save(folder / "reward.pt")
    again = RLfDTrainer.load(folder / "trainer.npz", venv, custom_logger=quiet)
    policy = load_policy("rlfd", venv, path=folder / "policy.pt")
    reward = load_reward("rlfd", str(folder / "reward.pt"), venv)

    states, actions = mdp.pair_states, mdp.pair_actions
    print(f"{len(loaded)} demonstrations from {type(loaded).__name__}")
    print(f"duality gap {trainer.duality_gap:.1e}, after loading {again.duality_gap:.1e}")
    print(f"same policy: {bool((policy.probabilities == trainer.policy.probabilities).all())}")
    rewards = reward(states, actions, states, np.zeros(len(states), dtype=bool))
    print(f"same reward: {bool((rewards == -trainer.solution.cost).all())}")
    learned = mdp.pairs(trainer.policy.probabilities.numpy())
    print(f"expected cost: expert {mdp.expected_cost(walk, world.cost):.4f}, ", end="")
    print(f"apprentice {mdp.expected_cost(learned, world.cost):.4f}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        run_script(lambda: main(Path(name)))
