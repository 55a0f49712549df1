"""GAIL, generative adversarial imitation learning, by the `imitation` library.

It learns from single transitions. As always in imitation, each of them counts once, so early and
late steps weigh the same. What GAIL's discriminator says at the end is not a cost, so no cost is
returned.

Ho and Ermon, "Generative adversarial imitation learning", NIPS 2016.
"""

from __future__ import annotations

import tempfile
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from imitation.algorithms.adversarial.gail import GAIL
from imitation.rewards.reward_nets import BasicRewardNet
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from rlfd_gym import _checks
from rlfd_gym.baselines._imitation import contained, network_policy, shown_transitions
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Apprentice
from rlfd_gym.trainer.logging import quiet_logger

ROUND = 2048  # steps between two updates of GAIL's discriminator
ENVIRONMENTS = 8


def gail(
    mdp: TabularMDP, expert: Any, *, n_timesteps: int = 50_000, n_samples: int = 5000, seed: int = 0
) -> Apprentice:
    """Imitate the expert by imitation's `GAIL` with Stable-Baselines3's PPO, which is slow.

    The tables are simulated in episodes that leave out at most 1e-4 of the discounted mass. An
    infeasible action does what the nearest feasible one does. The discriminator, which never saw
    the expert ask for it, teaches the learner not to.

    Args:
        mdp: the environment's tables.
        expert: demonstrations, each of whose transitions counts once, as in imitation; or the
            expert's occupancy over pairs, from which `n_samples` transitions are drawn.
        n_timesteps: the number of simulated steps to learn from, in rounds of 2048; at least one
            round.
        n_samples: see `expert`.
        seed: the seed of the networks, their training, the simulation and the transitions drawn.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import gail
        >>> small = dict(max_inventory=5, demand_mean=3.0, discount=0.7)
        >>> env = gym.make("rlfd_gym/Inventory-v0", **small).unwrapped
        >>> expert = env.mdp.optimal(env.cost).occupancy
        >>> solution = gail(env.mdp, expert, n_timesteps=2048)  # one round only
        >>> solution.method
        'gail'
    """
    _checks.integer("seed", seed, 0)
    steps = _checks.integer("n_timesteps", n_timesteps, ROUND, _checks.MOST_STEPS)
    shown = shown_transitions(
        mdp, expert, _checks.integer("n_samples", n_samples, 1, _checks.MOST_STATES), np.random.default_rng(seed)
    )
    with contained(seed), tempfile.TemporaryDirectory() as folder:
        venv = DummyVecEnv([lambda: _Simulation(mdp)] * ENVIRONMENTS)
        venv.seed(seed)
        learner = PPO(
            "MlpPolicy",
            venv,
            n_steps=ROUND // ENVIRONMENTS,
            batch_size=256,
            learning_rate=1e-3,
            gamma=mdp.discount,
            seed=seed,
            device="cpu",
        )
        trainer = GAIL(
            demonstrations=shown,
            demo_batch_size=min(512, len(shown)),
            n_disc_updates_per_round=8,  # as in imitation's tutorial
            venv=venv,
            gen_algo=learner,
            reward_net=BasicRewardNet(venv.observation_space, venv.action_space),
            custom_logger=quiet_logger(folder),
            log_dir=folder,
            allow_variable_horizon=True,
        )
        trainer.train(total_timesteps=steps)
    policy = network_policy(mdp, learner.policy)
    return Apprentice(
        policy=policy,
        occupancy=mdp.occupancy_of(policy),
        method="gail",
        n_iterations=steps // ROUND,
    )


class _Simulation(gym.Env[Any, Any]):
    """The tables as an environment without rewards."""

    def __init__(self, mdp: TabularMDP) -> None:
        self.mdp = mdp
        self.observation_space = spaces.Discrete(mdp.n_states)
        self.action_space = spaces.Discrete(mdp.n_actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        self.state = int(self.np_random.choice(self.mdp.n_states, p=self.mdp.initial))
        return self.state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        first, end = self.mdp.state_starts[self.state : self.state + 2]
        pair = int(first + np.argmin(np.abs(self.mdp.pair_actions[first:end] - action)))
        p = self.mdp.transitions
        row = slice(p.indptr[pair], p.indptr[pair + 1])
        self.state = int(self.np_random.choice(p.indices[row], p=p.data[row]))
        self.time += 1
        return self.state, 0.0, False, self.time >= self.mdp.horizon(), {}
