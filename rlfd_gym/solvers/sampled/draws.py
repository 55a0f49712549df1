"""What was drawn from an oracle: how often each pair led to each state.

The oracle is asked for many pairs at a time. It may declare two things about itself, and then the
rows of these pairs are known after one draw, or none: `absorbing`, a boolean vector of the states
that no action leaves, and `deterministic = True`, if every pair has one next state only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem

DENSE = 20_000_000  # pairs × states up to which draws are counted in one dense array


@dataclass
class Oracle:
    """The oracle of a problem, how often it was asked, and what it declares."""

    problem: BlackBoxProblem
    rng: np.random.Generator
    batch: int
    update: Callable[[int], Any] = lambda calls: None
    calls: int = 0
    absorbing: NDArray[np.bool_] = field(init=False)
    known: NDArray[np.bool_] = field(init=False)
    """The pairs whose row is certain after one draw, or none."""

    def __post_init__(self) -> None:
        """Read what the oracle declares."""
        n_states, oracle = self.problem.n_states, self.problem.oracle
        stays: Any = getattr(oracle, "absorbing", None)
        if stays is None or callable(stays):
            stays = np.zeros(n_states, dtype=bool)
        self.absorbing = np.asarray(stays)
        if self.absorbing.shape != (n_states,) or self.absorbing.dtype != np.bool_:
            raise ValueError(
                f"oracle: absorbing must be a boolean vector over the {n_states} states, got "
                f"{self.absorbing.dtype} of shape {self.absorbing.shape}"
            )
        certain = _checks.flag("oracle: deterministic", getattr(oracle, "deterministic", False))
        self.known = self.absorbing[self.problem.pair_states] | certain

    def next_states(self, pairs: IntArray) -> IntArray:
        """Draw a next state of each pair, in parts of at most `batch`."""
        parts = [self._ask(pairs[first : first + self.batch]) for first in range(0, len(pairs), self.batch)]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _ask(self, pairs: IntArray) -> IntArray:
        problem = self.problem
        answer = problem.oracle.sample_next(problem.pair_states[pairs], problem.pair_actions[pairs], self.rng)
        arrived = _checks.integers("oracle: what sample_next returns", answer)
        if arrived.shape != pairs.shape or arrived.min() < 0 or arrived.max() >= problem.n_states:
            raise ValueError(
                f"oracle: sample_next must return states 0..{problem.n_states - 1} in the shape {pairs.shape} of "
                f"what it is asked, got shape {arrived.shape}"
            )
        self.calls += len(pairs)
        self.update(len(pairs))
        return arrived

    def count(self, numbers: IntArray) -> sp.csr_array:
        """Draw each pair the given number of times and return how often it led to each state."""
        shape = (self.problem.n_pairs, self.problem.n_states)
        total, done, ends = sp.csr_array(shape), 0, np.cumsum(numbers)
        while done < ends[-1]:
            upto = min(done + max(self.batch, 1), int(ends[-1]))
            pairs = np.searchsorted(ends, np.arange(done, upto), side="right")
            total = total + counted(pairs, self._ask(pairs), shape)
            done = upto
        return sp.csr_array(total)


def counted(pairs: IntArray, following: IntArray, shape: tuple[int, int]) -> sp.csr_array:
    """Return how often each pair was followed by each state."""
    if shape[0] * shape[1] <= DENSE and 8 * len(pairs) >= shape[0] * shape[1]:
        counts = np.bincount(pairs * shape[1] + following, minlength=shape[0] * shape[1])
        return sp.csr_array(counts.reshape(shape).astype(np.float64))
    return sp.csr_array(sp.coo_array((np.ones(len(pairs)), (pairs, following)), shape=shape))


def tables_of(problem: BlackBoxProblem, counts: sp.csr_array, absorbing: NDArray[np.bool_]) -> TabularMDP:
    """Return the estimated tables: relative frequencies; a pair without draws stays in its state."""
    visits = counts.sum(axis=1)
    stay = absorbing[problem.pair_states] | (visits == 0)
    inverse = np.where(stay, 0.0, 1.0 / np.maximum(visits, 1.0))
    places = np.arange(problem.n_pairs), problem.pair_states
    stays = sp.csr_array((stay.astype(np.float64), places), shape=counts.shape)
    rows = sp.diags_array(inverse) @ counts + stays
    pairs = problem.pairs
    return TabularMDP(rows, pairs.pair_states, pairs.pair_actions, problem.initial, problem.discount, pairs.n_actions)


def spread(rows: sp.csr_array, value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the variance of a value after each pair."""
    mean = rows @ value
    shifted = value - value.mean()
    centred = rows @ shifted
    return mean, np.maximum(rows @ shifted**2 - centred**2, 0.0)
