"""Made-up experts, as a true occupancy or as trajectories.

For an expert that is optimal for a wrong cost, take `mdp.optimal(wrong_cost).occupancy`.
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

MOST_DRAWS = 2**31  # numbers that are drawn at a time, 16 GiB


@dataclass(frozen=True, eq=False)
class Walk:
    """One trajectory, with imitation's names for its parts.

    Attributes:
        obs: the states, one more than actions.
        acts: the actions.
        infos: always `None`.
        terminal: whether the trajectory terminated; by default it was truncated.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> mdp = examples.inventory_env().mdp
        >>> walk = demonstrate(mdp, mdp.uniform_policy(), 1, 5, seed=0)[0]
        >>> len(walk.obs), len(walk.acts), walk.terminal
        (6, 5, False)
    """

    obs: IntArray = field(repr=False)
    acts: IntArray = field(repr=False)
    infos: None = None
    terminal: bool = False


def noisy_expert(mdp: TabularMDP, cost: ArrayLike, noise: float) -> FloatArray:
    """Return the occupancy of an expert that acts at random with probability `noise`.

    Otherwise it acts optimally for `cost`.

    >>> import gymnasium as gym, rlfd_gym
    >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    >>> experts = [noisy_expert(env.mdp, env.cost, noise) for noise in (0.0, 0.3, 1.0)]
    >>> [round(float(expert @ env.cost), 3) for expert in experts]
    [-0.243, -0.188, -0.037]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    share = _checks.number("noise", noise, 0.0, 1.0)
    return mdp.occupancy_of((1 - share) * mdp.optimal(cost).policy + share * mdp.uniform_policy())


def demonstrate(
    mdp: TabularMDP, policy: ArrayLike, n_trajectories: int, length: int, seed: int | np.random.SeedSequence
) -> list[Walk]:
    """Draw trajectories of a policy from the tables, without an environment.

    All trajectories are drawn at the same time, and the first k of them do not depend on
    `n_trajectories`.

    >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
    >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
    >>> [walk] = demonstrate(mdp, [0, 1, 1], n_trajectories=1, length=3, seed=0)
    >>> walk.obs.tolist(), walk.acts.tolist()       # it moves, then stays
    ([0, 1, 1, 1], [1, 0, 0])
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    pi = check_policy(mdp, policy)
    number, steps = _checks.integer("n_trajectories", n_trajectories, 1), _checks.integer("length", length, 1)
    if number * (1 + 2 * steps) > MOST_DRAWS:
        raise ValueError(f"n_trajectories, length: {number} × {steps} steps are too many to draw at a time")
    start, *uniforms = _checks.generator("seed", seed).random((number, 1 + 2 * steps)).T
    first = _Rows(sp.csr_array(mdp.initial[None]))
    choices = _Rows(sp.csr_array((pi, np.arange(mdp.n_pairs), mdp.state_starts), shape=(mdp.n_states, mdp.n_pairs)))
    moves = _Rows(mdp.transitions)
    states, pairs = np.empty((steps + 1, number), dtype=np.int64), np.empty((steps, number), dtype=np.int64)
    states[0] = first.draw(np.zeros(number, dtype=np.int64), start)
    for t in range(steps):
        pairs[t] = choices.draw(states[t], uniforms[2 * t])
        states[t + 1] = moves.draw(pairs[t], uniforms[2 * t + 1])
    return [Walk(states[:, k].copy(), mdp.pair_actions[pairs[:, k]]) for k in range(number)]


class _Rows:
    """The distributions in the rows of a matrix, one after the other as one long distribution."""

    def __init__(self, matrix: sp.csr_array) -> None:
        self._columns, self._starts = matrix.indices, matrix.indptr
        self._ends = np.cumsum(matrix.data)
        self._before = np.concatenate([[0.0], self._ends])[matrix.indptr]

    def draw(self, rows: IntArray, uniforms: FloatArray) -> IntArray:
        """Draw a column for each of the given rows, by the probabilities in the row."""
        before, following = self._before[rows], rows + 1
        chance = before + uniforms * (self._before[following] - before)
        entry = np.searchsorted(self._ends, chance, side="right")
        entry = np.minimum(np.maximum(entry, self._starts[rows]), self._starts[following] - 1)
        return np.asarray(self._columns[entry], dtype=np.int64)
