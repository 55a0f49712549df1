"""Experts to learn from when there is no human at hand.

As a true occupancy measure, or seen in trajectories.

An expert who is optimal for a wrong cost is `mdp.optimal(wrong_cost).occupancy`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.occupancy import check_policy
from rlfd_gym.mdp.tables import TabularMDP


@dataclass(frozen=True, eq=False)
class Walk:
    """One trajectory, with the names that imitation has for its parts.

    One more state than actions.
    """

    obs: IntArray = field(repr=False)
    acts: IntArray = field(repr=False)
    infos: None = None
    terminal: bool = False


def noisy_expert(mdp: TabularMDP, cost: ArrayLike, noise: float) -> FloatArray:
    """The occupancy of an expert who acts optimally for `cost`, but at random with probability
    `noise`.

    >>> import gymnasium as gym, rlfd_gym
    >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    >>> [round(float(noisy_expert(env.mdp, env.cost, noise) @ env.cost), 3) for noise in (0.0, 0.3, 1.0)]
    [-0.243, -0.188, -0.037]
    """
    share = _checks.number("noise", noise, 0.0, 1.0)
    return mdp.occupancy_of((1 - share) * mdp.optimal(cost).policy + share * mdp.uniform_policy())


def demonstrate(
    mdp: TabularMDP, policy: ArrayLike, n_trajectories: int, length: int, seed: int | np.random.SeedSequence
) -> list[Walk]:
    """Trajectories of a policy, drawn from the tables for all of them at a time.

    No environment is needed.

    The first k of them do not depend on how many are asked for.

    >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    >>> [walk] = demonstrate(mdp, [0, 1, 1], n_trajectories=1, length=3, seed=0)       # moves, then stays
    >>> walk.obs.tolist(), walk.acts.tolist()
    ([0, 1, 1, 1], [1, 0, 0])
    """
    pi = check_policy(mdp, policy)
    number, steps = _checks.integer("n_trajectories", n_trajectories, 1), _checks.integer("length", length, 1)
    start, *uniforms = np.random.default_rng(seed).random((number, 1 + 2 * steps)).T
    first = sp.csr_array(mdp.initial[None])
    choices = sp.csr_array((pi, np.arange(mdp.n_pairs), mdp.state_starts), shape=(mdp.n_states, mdp.n_pairs))
    states, pairs = np.empty((steps + 1, number), dtype=np.int64), np.empty((steps, number), dtype=np.int64)
    states[0] = _draw(first, np.zeros(number, dtype=np.int64), start)
    for t in range(steps):
        pairs[t] = _draw(choices, states[t], uniforms[2 * t])
        states[t + 1] = _draw(mdp.transitions, pairs[t], uniforms[2 * t + 1])
    return [Walk(states[:, k].copy(), mdp.pair_actions[pairs[:, k]]) for k in range(number)]


def _draw(matrix: sp.csr_array, rows: IntArray, uniforms: FloatArray) -> IntArray:
    """A column for each row, by the probabilities in it.

    The entries laid end to end are one long distribution.
    """
    ends = np.cumsum(matrix.data)
    before = np.concatenate([[0.0], ends])[matrix.indptr]
    chance = before[rows] + uniforms * (before[rows + 1] - before[rows])
    entry = np.searchsorted(ends, chance, side="right")
    return np.asarray(matrix.indices[np.clip(entry, matrix.indptr[rows], matrix.indptr[rows + 1] - 1)], dtype=np.int64)
