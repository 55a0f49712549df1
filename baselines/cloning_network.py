"""Behavioural cloning with a network, by the `imitation` library.

It learns from single transitions. As always in imitation, each of them counts once, so early and
late steps weigh the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from imitation.algorithms.bc import BC

from rlfd_gym import _checks
from rlfd_gym.baselines._imitation import contained, network_policy, shown_transitions
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Apprentice
from rlfd_gym.trainer.logging import quiet_logger

BATCH = 128


def cloning_network(
    mdp: TabularMDP, expert: Any, *, n_batches: int = 500, n_samples: int = 5000, seed: int = 0
) -> Apprentice:
    """Clone the expert by imitation's `BC`, with its default network.

    Args:
        mdp: the environment's tables.
        expert: demonstrations, each of whose transitions counts once, as in imitation; or the
            expert's occupancy over pairs, from which `n_samples` transitions are drawn.
        n_batches: the number of gradient steps, of 128 transitions each.
        n_samples: see `expert`.
        seed: the seed of the network, its training and the transitions drawn.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import cloning_network
        >>> env = gym.make("rlfd_gym/Inventory-v0", max_inventory=5, demand_mean=3.0).unwrapped
        >>> expert = env.mdp.optimal(env.cost).occupancy
        >>> solution = cloning_network(env.mdp, expert=expert, n_batches=150)
        >>> bool(abs(solution.occupancy @ env.cost - expert @ env.cost) < 0.1)
        True
    """
    _checks.integer("seed", seed, 0)
    batches = _checks.integer("n_batches", n_batches, 1, _checks.MOST_STEPS)
    rng = np.random.default_rng(seed)
    shown = shown_transitions(mdp, expert, _checks.integer("n_samples", n_samples, 1, _checks.MOST_STATES), rng)
    with contained(seed):
        trainer = BC(
            observation_space=spaces.Discrete(mdp.n_states),
            action_space=spaces.Discrete(mdp.n_actions),
            rng=rng,
            demonstrations=shown,
            batch_size=min(BATCH, len(shown)),
            device="cpu",
            custom_logger=quiet_logger(),
        )
        trainer.train(n_batches=batches, progress_bar=False, log_interval=batches + 1)
    policy = network_policy(mdp, trainer.policy)
    return Apprentice(policy=policy, occupancy=mdp.occupancy_of(policy), method="bc", n_iterations=batches)
