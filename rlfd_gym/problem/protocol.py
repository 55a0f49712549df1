"""What a solver may ask of a problem, with or without tables."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.beliefs.hull import in_simplex
from rlfd_gym.problem.theorem import Theorem, theorem_of


class Point(NamedTuple):
    """A point (x, u, μ).

    X is the belief's own variable, the cost c or the mixture w of a basis.
    """

    x: FloatArray
    value: FloatArray
    occupancy: FloatArray


class Problem(ABC):
    """What Algorithm 1 asks of a problem; the base class of those that it solves."""

    n_pairs: int
    n_states: int
    discount: float
    state_starts: IntArray
    """Pairs of state s are state_starts[s] … state_starts[s+1]-1."""
    belief: Belief

    @property
    def prior(self) -> FloatArray:
        """ĉ, the guess of the cost."""
        return self.belief.prior

    @property
    def alpha(self) -> float:
        """α, how much the prior weighs."""
        return self.belief.alpha

    @property
    def regulariser(self) -> str:
        """The norm of the penalty, "l2" or "l1"."""
        return getattr(self.belief, "norm", "l2")

    @property
    def theorem(self) -> Theorem:
        """The convergence theorem of Algorithm 1 for this problem."""
        return theorem_of(self.n_pairs, self.n_states, self.discount, self.belief)

    def second_moments(self, bound: str = "corrected") -> tuple[float, ...]:
        """Return the theorem's bounds on the second moments.

        (v_cu, v_μ), or (v_w, v_u, v_μ) on a hull.
        """
        return self.theorem.second_moments(bound)

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, ...]:
        """Return the theorem's step sizes for an expected gap of at most `epsilon`.

        (η_cu, η_μ), or (η_w, η_u, η_μ).
        """
        return self.theorem.step_sizes(epsilon, bound)

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return the theorem's T.

        After that many steps of those sizes the expected gap is at most `epsilon`.
        """
        return self.theorem.iterations(epsilon, bound)

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε that the theorem promises after `n_iterations` steps of its sizes."""
        return self.theorem.accuracy(n_iterations, bound)

    def bounds(self, x: Any, value: Any, occupancy: Any) -> tuple[float, float]:
        """Return (upper, lower), certified bounds on the optimum.

        `nan` where there are no tables to compute them.
        """
        return np.nan, np.nan

    def start(self, rng: np.random.Generator, uniform: bool) -> Point:
        """Draw a point to start Algorithm 1 from.

        With `uniform`, the simplices' part of it in their middle.
        """
        x, value = self.belief.start(rng, uniform), rng.uniform(-1, 1, self.n_states)
        return Point(x, value, in_simplex(rng, self.n_pairs, uniform))

    def fingerprint(self) -> tuple[float | str, ...]:
        """Return numbers that tell this problem from others."""
        basis = getattr(self.belief, "basis", None)
        arrays = (self.expert_vector, self.prior, *(() if basis is None else (basis,)))
        sums = (zlib.crc32(np.ascontiguousarray(array).tobytes()) for array in arrays)
        return (self.n_pairs, self.n_states, self.discount, self.alpha, self.regulariser, *sums)

    @property
    @abstractmethod
    def expert_vector(self) -> FloatArray | IntArray:
        """The expert in numbers, for the fingerprint."""
