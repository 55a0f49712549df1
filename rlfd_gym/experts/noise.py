"""The standard error of an occupancy estimated from demonstrations."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym.experts.demonstrations import Demonstrations, estimate_occupancy, read_demonstrations
from rlfd_gym.mdp.tables import TabularMDP


def occupancy_noise(
    demonstrations: Any, mdp: TabularMDP, *, discounting: str = "trajectory", n_bootstrap: int = 200, seed: int = 0
) -> float:
    """Return the bootstrap standard error, in ℓ1-norm, of an occupancy from demonstrations.

    Whole trajectories are drawn with replacement and the occupancy is estimated again, as
    `occupancy_from_demonstrations` does. The standard error is the root mean square of the ℓ1
    distances from the original estimate, times √(K/(K-1)), without which K trajectories would look
    less noisy than they are. It cannot account for what no trajectory has shown.

    Args:
        demonstrations: at least two trajectories, in any form that `occupancy_from_demonstrations`
            takes.
        mdp: the environment's tables.
        discounting: as for `occupancy_from_demonstrations`.
        n_bootstrap: the number of resamples.
        seed: the seed of the resampling.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> mdp = gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4).unwrapped.mdp
        >>> walks = rlfd_gym.demonstrate(mdp, mdp.uniform_policy(), 250, 20, seed=0)
        >>> occupancy_noise(walks[:10], mdp) > 3 * occupancy_noise(walks, mdp)
        True
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    read = demonstrations if isinstance(demonstrations, Demonstrations) else read_demonstrations(demonstrations)
    if read.lengths is None or len(read.lengths) < 2:
        found = "transitions without times" if read.lengths is None else "one trajectory"
        raise ValueError(f"demonstrations must hold at least two trajectories for a standard error, got {found}")
    rng, number = _checks.generator("seed", seed), len(read.lengths)
    with warnings.catch_warnings():
        # Estimating the occupancy itself already warns about early ends.
        warnings.simplefilter("ignore", UserWarning)
        estimate = estimate_occupancy(read, mdp, discounting=discounting)
        squares = [
            np.abs(
                estimate_occupancy(_only(read, rng.integers(number, size=number)), mdp, discounting=discounting)
                - estimate
            ).sum()
            ** 2
            for _ in range(_checks.integer("n_bootstrap", n_bootstrap, 2))
        ]
    return math.sqrt(float(np.mean(squares)) * number / (number - 1))


def _only(read: Demonstrations, which: Any) -> Demonstrations:
    """Return the trajectories with these indices, in this order and with repetitions."""
    assert read.lengths is not None
    assert read.next_states is not None
    lengths = read.lengths[which]
    begins = np.cumsum(lengths) - lengths
    index = np.arange(lengths.sum()) + np.repeat((read.ends - read.lengths + 1)[which] - begins, lengths)
    return replace(
        read,
        states=read.states[index],
        actions=read.actions[index],
        next_states=read.next_states[index],
        lengths=lengths,
        terminal=read.terminal[which],
    )
