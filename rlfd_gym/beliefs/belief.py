r"""The interface of all beliefs about the cost.

A *belief* is a closed convex set 𝒞 of costs that are considered possible, with a convex penalty
Ω ≥ 0 that is larger for less plausible costs. With the expert's occupancy μ_E, the learning
problem is the same for all beliefs:

    min over c ∈ 𝒞  of  Ω(c) + the expert's regret under c
        =  max over occupancies μ  of  min over c ∈ 𝒞  of  Ω(c) + <d, c>,          d = μ_E - μ.

Each belief writes its costs in its own coordinates: c = C(x). For `NearPrior`, x is the cost
itself; for `Hull`, x is the mixture w of a basis, c = Cw. A belief defines which x are allowed,
what the inner minimum is, and how far a given x is from it. From this `rlfd_gym.problem` computes
certified bounds, and the solvers compute solutions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.pairs import Pairs

BOUNDS = ("corrected", "paper")
SomeBelief = TypeVar("SomeBelief", bound="Belief")


@dataclass(frozen=True, eq=False, init=False)
class Belief(_checks.Locked, ABC):
    """A set of possible costs, with a penalty for each.

    Attributes:
        prior: ĉ, the guess of the cost from which the penalty measures the distance.
        alpha: α ≥ 0, the weight of the penalty.
    """

    prior: FloatArray = field(repr=False)
    alpha: float

    def with_alpha(self: SomeBelief, alpha: float) -> SomeBelief:
        """Return the same belief with another α."""
        return replace(self, alpha=alpha)

    @abstractmethod
    def over(self: SomeBelief, pairs: Pairs) -> SomeBelief:
        """Return the belief over an environment's pairs.

        Vectors are checked against the pairs, and tables are turned into vectors.
        """

    @abstractmethod
    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost C(x), over pairs."""

    @abstractmethod
    def vector(self, x: Any) -> FloatArray:
        """Return x as a finite vector of the right length, or raise an error."""

    @abstractmethod
    def check(self, x: FloatArray) -> FloatArray:
        """Return x with rounding removed, or raise an error if C(x) is not in 𝒞 up to rounding."""

    @abstractmethod
    def penalty(self, cost: FloatArray) -> float:
        """Return Ω(c)."""

    @abstractmethod
    def best(self, d: FloatArray) -> FloatArray:
        """Return an x that minimises Ω(C(x)) + <d, C(x)> over 𝒞."""

    @abstractmethod
    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far Ω + <d, c> at x is above its minimum, as a sum of nonnegative terms."""

    def gradient(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """Return the (sub)gradient of Ω(C(x)) + <d, C(x)> in x: what Algorithm 1 estimates."""
        raise self._not_for_algorithm_1()

    def second_moment(self, bound: str) -> float:
        """Return a bound on E‖g‖² for Algorithm 1's estimator g of the gradient in x."""
        raise self._not_for_algorithm_1()

    def start(self, rng: np.random.Generator, uniform: bool) -> FloatArray:
        """Draw an x to start Algorithm 1 from; with `uniform`, the middle of a simplex."""
        raise self._not_for_algorithm_1()

    def _not_for_algorithm_1(self) -> TypeError:
        return TypeError(f"Algorithm 1 has no estimator for the belief {type(self).__name__}; use another solver")
