"""Demonstrations for others: a Minari data set.

Each trajectory becomes an episode. Its rewards are minus the environment's true cost, and its last
step is a termination where the trajectory says so (`terminal`), else a truncation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlfd_gym._install import require
from rlfd_gym.experts.demonstrations import demonstrated_pairs, read_demonstrations
from rlfd_gym.mdp.adapters import model_of_env, unwrap


def to_minari(demonstrations: Any, env: Any, dataset_id: str, **description: Any) -> Any:
    """Store trajectories as a Minari data set, and return it.

    Minari keeps it in its own folder (`MINARI_DATASETS_PATH`), whence `minari.load_dataset` reads
    it again; `occupancy_from_demonstrations` and `RLfDTrainer` take what either returns.

    Args:
        demonstrations: trajectories, of any kind that `occupancy_from_demonstrations` reads.
        env: the tabular environment that they are from; its cost gives the rewards.
        dataset_id: Minari's name for it, such as "inventory/expert-v0".
        description: what else `minari.create_dataset_from_buffers` takes, such as `author=` and
            `algorithm_name=`.

    Example:
        For an expert of the inventory, into a folder of its own:

        >>> import os, tempfile, warnings
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost).policy
        >>> walks = rlfd_gym.demonstrate(env.mdp, expert, 10, 100, seed=0)
        >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")                # of Minari's own
        ...     os.environ["MINARI_DATASETS_PATH"] = folder
        ...     stored = to_minari(walks, env, "inventory/expert-v0", algorithm_name="optimal")
        ...     stored.total_episodes
        10
        >>> del os.environ["MINARI_DATASETS_PATH"]
    """
    minari = require("minari", "to_minari", "data")
    data_collector = require("minari.data_collector", "to_minari", "data")
    mdp, cost = model_of_env(env)
    read = read_demonstrations(demonstrations)
    if read.lengths is None or read.next_states is None:
        raise ValueError("demonstrations must be trajectories: transitions without times are no episodes")
    rewards = -cost[demonstrated_pairs(read, mdp)]
    episodes = []
    for number, (end, length) in enumerate(zip(read.ends, read.lengths, strict=True)):
        steps = slice(end - length + 1, end + 1)
        last = np.arange(length) == length - 1
        terminal = bool(read.terminal[number])
        episodes.append(
            data_collector.EpisodeBuffer(
                id=number,
                observations=[*read.states[steps], read.next_states[end]],
                actions=list(read.actions[steps]),
                rewards=rewards[steps].tolist(),
                terminations=(last & terminal).tolist(),
                truncations=(last & (not terminal)).tolist(),
            )
        )
    base = unwrap(env)
    spaces = {"observation_space": base.observation_space, "action_space": base.action_space}
    settings = {"env": getattr(base, "spec", None), **spaces, **description}
    return minari.create_dataset_from_buffers(dataset_id, episodes, **settings)
