"""Learn on FrozenLake and Taxi, with a noisy expert and a rough prior.

The expert acts at random one time in five; the prior can only tell good from bad.

python scripts/examples/toy_text.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TransformReward
from imitation.data import rollout
from imitation.data.wrappers import RolloutInfoWrapper
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import RLfDTrainer, TabularMDP, cost_of_env
from rlfd_gym.report import run_script
from rlfd_gym.trainer import TablePolicy, quiet_logger

NOISE, DISCOUNT, EPISODES = 0.2, 0.95, 200


def main() -> None:
    """Print one line for each environment."""
    print("expected discounted cost, exact, normalised by (1-γ): lower is better")
    print(f"{'':<14}{'optimal':>10}{'expert':>10}{'prior alone':>14}{'apprentice':>12}")
    for name, prior in TASKS.items():
        best, expert, alone, apprentice = compare(newest(name), prior)
        print(f"{newest(name):<14}{best:>10.4f}{expert:>10.4f}{alone:>14.4f}{apprentice:>12.4f}")


def newest(name: str) -> str:
    """Return the id of an environment's newest version: Gymnasium retires old ones."""
    versions = [int(key.rsplit("-v", 1)[1]) for key in gym.registry if key.rsplit("-v", 1)[0] == name]
    return f"{name}-v{max(versions)}"


def compare(name: str, prior: Callable[[Any], Callable[[int, int], float]]) -> tuple[float, float, float, float]:
    """Return the true expected costs of four policies.

    They are the optimal policy, the noisy expert, the prior's own optimal policy and the
    apprentice.
    """
    env = gym.make(name)
    mdp, cost = TabularMDP.from_env(env, discount=DISCOUNT), cost_of_env(env)
    plan = mdp.optimal(cost)  # by value or policy iteration
    noisy = (1 - NOISE) * plan.policy + NOISE * mdp.uniform_policy()

    venv = DummyVecEnv([lambda: RolloutInfoWrapper(TransformReward(gym.make(name), float))])
    venv.seed(0)
    expert = TablePolicy(venv.observation_space, venv.action_space, mdp.table(noisy, fill=0.0))
    demos = rollout.rollout(
        expert, venv, rollout.make_sample_until(min_episodes=EPISODES), rng=np.random.default_rng(0)
    )
    trainer = RLfDTrainer(
        demos,
        env,
        rng=0,
        prior=prior(env),
        alpha=0.01,
        discount=DISCOUNT,
        policy_kind="greedy",
        custom_logger=quiet_logger(),
    )
    trainer.train()
    apprentice = mdp.pairs(trainer.policy.probabilities.numpy())
    alone = mdp.optimal(trainer.prior).policy  # to see what the apprentice adds to the prior
    return plan.expected_cost, *(mdp.expected_cost(policy, cost) for policy in (noisy, alone, apprentice))


def frozen_lake_prior(env: Any) -> Callable[[int, int], float]:
    """Return a prior cost: the goal is good, a hole is bad."""
    tiles = env.unwrapped.desc.ravel()
    return lambda state, action: {b"G": -1.0, b"H": 1.0}.get(tiles[state], 0.0)


def taxi_prior(env: Any) -> Callable[[int, int], float]:
    """Return a prior cost: good where the passenger is at the destination.

    Picking up or dropping off nobody is bad.
    """
    P, decode = env.unwrapped.P, env.unwrapped.decode

    def prior(state: int, action: int) -> float:
        _, _, passenger, destination = decode(state)
        return -1.0 if passenger == destination else 1.0 if P[state][action][0][2] == -10 else 0.0

    return prior


TASKS = {"FrozenLake": frozen_lake_prior, "Taxi": taxi_prior}

if __name__ == "__main__":
    run_script(main)
