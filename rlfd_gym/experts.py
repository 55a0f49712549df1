"""Experts to learn from when there is no human at hand: each is a true occupancy measure.

An expert who is optimal for a wrong cost is `mdp.optimal(wrong_cost).occupancy`.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp import TabularMDP


def noisy_expert(mdp: TabularMDP, cost: ArrayLike, noise: float) -> FloatArray:
    """The occupancy of an expert who acts optimally for `cost`, but at random with probability `noise`.

    >>> import gymnasium as gym, rlfd_gym
    >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    >>> [round(float(noisy_expert(env.mdp, env.cost, noise) @ env.cost), 3) for noise in (0.0, 0.3, 1.0)]
    [-0.243, -0.188, -0.037]
    """
    share = _checks.number("noise", noise, 0.0, 1.0)
    return mdp.occupancy_of((1 - share) * mdp.optimal(cost).policy + share * mdp.uniform_policy())
