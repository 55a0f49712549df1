"""What the tests of the trainer share: trajectories, a simulator without tables, and the rows of a log."""

from __future__ import annotations

import csv

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rlfd_gym import TabularMDP

MARKS = [
    pytest.mark.needs_imitation,
    pytest.mark.filterwarnings("ignore:tried to wrap", "ignore:trying to unwrap"),  # imitation, about discrete states
    pytest.mark.filterwarnings("ignore:demonstrations end early"),
]
QUICK = 20_000


def rollouts(env, policy, episodes, seed=0):
    """imitation's own rollouts of a tabular policy."""
    from imitation.data import rollout
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer.policy import TablePolicy

    mdp = TabularMDP.from_env(env)
    table = TablePolicy(Discrete(mdp.n_states), Discrete(mdp.n_actions), mdp.table(policy, 0.0), seed)
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(env)])
    venv.seed(seed)
    return rollout.rollout(table, venv, rollout.make_sample_until(min_episodes=episodes), rng=np.random.default_rng(0))


def walks(grid, policy, n=200):
    """Rollouts of 15 steps in a gridworld."""
    return rollouts(gym.wrappers.TimeLimit(grid, 15), policy, n)


def trajectory(obs, acts, terminal=True):
    from imitation.data.types import Trajectory

    return Trajectory(obs=np.array(obs), acts=np.array(acts), infos=None, terminal=terminal)


class Simulator(gym.Env):
    """A gridworld that draws next states and tells nothing else."""

    def __init__(self, **settings):
        self.grid = gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3, **settings).unwrapped
        self.observation_space, self.action_space = self.grid.observation_space, self.grid.action_space
        self.discount = 0.7

    def sample_next(self, states, actions, rng):
        return self.grid.sample_next(states, actions, rng)


def rows_of(path):
    """The rows of a CSV log."""
    with open(path) as file:
        return list(csv.DictReader(file))
