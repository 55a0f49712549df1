"""The interface that problems offer to solvers, with or without tables."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.beliefs.hull import in_simplex
from rlfd_gym.problem.theorem import Theorem, theorem_of


class Point(NamedTuple):
    """A point (x, u, μ).

    Attributes:
        x: the belief's own variable, the cost c or the mixture w of a basis.
        value: u, over states.
        occupancy: μ, over pairs.

    Example:
        >>> from rlfd_gym import solve_exact
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> solution = solve_exact(problem)
        >>> point = Point(solution.cost, solution.value, solution.occupancy)
        >>> problem.duality_gap(*point) < 1e-6
        True
    """

    x: FloatArray
    value: FloatArray
    occupancy: FloatArray


class Problem(_checks.Locked, ABC):
    """The base class of the problems that Algorithm 1 solves.

    Attributes:
        n_pairs: the number of feasible pairs.
        n_states: the number of states.
        discount: γ.
        state_starts: the pairs of state s are state_starts[s] … state_starts[s+1]-1.
        belief: what is believed about the cost.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> isinstance(problem, Problem), problem.n_pairs, problem.discount
        (True, 136, 0.9)
    """

    n_pairs: int
    n_states: int
    discount: float
    state_starts: IntArray
    belief: Belief

    @property
    def prior(self) -> FloatArray:
        """ĉ, the guess of the cost."""
        return self.belief.prior

    @property
    def alpha(self) -> float:
        """α, the weight of the prior."""
        return self.belief.alpha

    @property
    def regulariser(self) -> str:
        """The norm of the penalty, "l2" or "l1"."""
        return getattr(self.belief, "norm", "l2")

    @property
    def theorem(self) -> Theorem:
        """The convergence theorem of the paper's Algorithm 1 for this problem."""
        return theorem_of(self.n_pairs, self.n_states, self.discount, self.belief)

    @property
    def proximal_theorem(self) -> Theorem:
        """The convergence theorem of the proximal variant; on a hull it is the same as `theorem`."""
        return theorem_of(self.n_pairs, self.n_states, self.discount, self.belief, "proximal")

    @property
    @abstractmethod
    def pair_states(self) -> IntArray:
        """The state of each pair."""

    @property
    def row_starts(self) -> IntArray:
        """Where the transitions of each pair begin in the tables; 0 throughout without tables."""
        return np.zeros(self.n_pairs + 1, dtype=np.int64)

    def second_moments(self, bound: str = "corrected") -> tuple[float, ...]:
        """Return the theorem's second moments: (v_cu, v_μ), or (v_w, v_u, v_μ) on a hull."""
        return self.theorem.second_moments(bound)

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, ...]:
        """Return the theorem's step sizes for an expected gap of at most `epsilon`.

        They are (η_cu, η_μ), or (η_w, η_u, η_μ) on a hull.
        """
        return self.theorem.step_sizes(epsilon, bound)

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return T, the number of steps after which the expected gap is at most `epsilon`."""
        return self.theorem.iterations(epsilon, bound)

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε that the theorem promises after `n_iterations` of its steps."""
        return self.theorem.accuracy(n_iterations, bound)

    def bounds(self, x: Any, value: Any, occupancy: Any) -> tuple[float, float]:
        """Return (upper, lower), certified bounds on the optimum, or `nan` without tables."""
        return np.nan, np.nan

    def start(self, rng: np.random.Generator, uniform: bool) -> Point:
        """Draw a point to start Algorithm 1 from.

        With `uniform`, the parts of it that lie in a simplex are in its middle.
        """
        _checks.instance("rng", rng, np.random.Generator)
        _checks.flag("uniform", uniform)
        x, value = self.belief.start(rng, uniform), rng.uniform(-1, 1, self.n_states)
        return Point(x, value, in_simplex(rng, self.n_pairs, uniform))

    def fingerprint(self) -> tuple[float | str, ...]:
        """Return numbers that distinguish this problem from others."""
        believed = [value for value in vars(self.belief).values() if isinstance(value, np.ndarray)]
        numbers = (self.n_pairs, self.n_states, self.discount, type(self.belief).__name__, self.alpha, self.regulariser)
        return (*numbers, *checksums(*believed), *self.world_sums)

    @property
    @abstractmethod
    def world_sums(self) -> tuple[int, ...]:
        """The checksums of the environment and the expert, for the fingerprint; computed once."""


def checksums(*arrays: FloatArray | IntArray) -> tuple[int, ...]:
    """Return a checksum of each array."""
    return tuple(zlib.crc32(np.ascontiguousarray(array).data) for array in arrays)
