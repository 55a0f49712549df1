r"""The interface of all beliefs about the cost.

A *belief* is a closed convex set 𝒞 of costs that are considered possible, with a convex penalty
Ω ≥ 0 that is larger for less plausible costs. With the expert's occupancy μ_E, the learning
problem is the same for all beliefs:

    min over c ∈ 𝒞  of  Ω(c) + the expert's regret under c
        =  max over occupancies μ  of  min over c ∈ 𝒞  of  Ω(c) + <d, c>,          d = μ_E - μ.

Each belief writes its costs in its own coordinates: c = C(x). For `NearPrior`, `Intervals` and
`Ball`, x is the cost itself; for `Hull`, x is the mixture w of a basis, c = Cw; for `Prices`, x is
the vector of prices. A belief defines which x are allowed, what the inner minimum is, and how far
a given x is from it. From this `rlfd_gym.problem` computes certified bounds and guarantees, and
the solvers compute solutions.

**The covered costs.** Let x* be the best answer to d. Then <d, c> ≥ <d, C(x*)> for every c ∈ 𝒞
with Ω(c) ≤ Ω(x*): otherwise c would be a better answer. For a belief without a penalty these are
all its costs; `scope` describes them in words.

**Money.** Learning uses one scale of costs. Arguments in money are converted by a `CostScale`,
which the belief remembers as `scale`, so that results can be reported in money.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.pairs import Pairs

FEASIBILITY = 1e-9  # how far rounding may put a point outside its set
BOUNDS = ("corrected", "paper")
FEW = 64  # vertices: so many can be looked at one by one

SomeBelief = TypeVar("SomeBelief", bound="Belief")


@dataclass(frozen=True, eq=False, init=False)
class Belief(_checks.Locked, ABC):
    """A set of possible costs, with a penalty for each.

    Attributes:
        prior: the guess from which the penalty measures the distance, in the coordinates of the
            penalty: the cost ĉ or, for `Prices`, the prices. Without a penalty, a point in the
            middle of the set.
        alpha: α ≥ 0, the weight of the penalty; 0 for beliefs without one.
        scale: the map from the money that the belief was stated in; `None` if it was stated in
            learning units.

    Example:
        >>> from rlfd_gym.beliefs import Intervals
        >>> belief = Intervals([-0.5, 0.0], [0.5, 1.0])
        >>> isinstance(belief, Belief), belief.alpha, belief.best(np.array([1.0, -1.0])).tolist()
        (True, 0.0, [-0.5, 1.0])
    """

    prior: FloatArray = field(repr=False)
    alpha: float
    scale: CostScale | None = field(default=None, kw_only=True)

    @property
    def guess(self) -> FloatArray | None:
        """The cost that is held most likely, over pairs; `None` if no cost is."""
        return self.cost(self.prior)

    def with_alpha(self: SomeBelief, alpha: float) -> SomeBelief:
        """Return the same belief with another α."""
        raise TypeError(f"{type(self).__name__} has no penalty, so it takes no alpha; got {alpha!r}")

    def stated_in(self: SomeBelief, scale: CostScale) -> SomeBelief:
        """Return the same belief, with results to be reported in money as well."""
        return self._with(scale=scale)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest cost of each pair over 𝒞, or bounds on them."""
        return np.full(1, -1.0), np.full(1, 1.0)

    @cached_property
    def largest(self) -> float:
        """The largest absolute cost in 𝒞, or a bound on it. Values need not be larger."""
        low, high = self.ends()
        return float(max(-low.min(), high.max()))

    @property
    def spread(self) -> float:
        """A bound on how far apart two entries of one cost in 𝒞 can be."""
        low, high = self.ends()
        return float(high.max() - low.min())

    def vertices(self) -> FloatArray | None:
        """Return some x as rows, such that every cost of 𝒞 is a mixture of their C(x).

        Return `None` if more than `FEW` are needed, or if there is a penalty.
        """
        return None

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
    def penalty(self, x: FloatArray) -> float:
        """Return Ω(C(x))."""

    @abstractmethod
    def best(self, d: FloatArray) -> FloatArray:
        """Return an x that minimises Ω(C(x)) + <d, C(x)> over 𝒞."""

    @abstractmethod
    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far Ω + <d, c> at x is above its minimum, as a sum of nonnegative terms."""

    def scope(self, x: FloatArray) -> str:
        """Describe the costs c ∈ 𝒞 with Ω(c) ≤ Ω(x), to follow "for every cost"."""
        return f"that the belief {type(self).__name__} holds possible"

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
        return TypeError(f"Algorithm 1 has no estimator for the belief {type(self).__name__}; use solve_exact")

    def _with(self: SomeBelief, **changes: Any) -> SomeBelief:
        """Return a copy with other fields, which must be checked already."""
        fields = {name: value for name, value in vars(self).items() if name != "largest"}  # it is computed anew
        copy = object.__new__(type(self))
        copy._fill(**fields | changes)
        return copy


def checked_scale(scale: CostScale | None) -> CostScale | None:
    """Return the scale that a belief is stated in, or raise an error if it is something else."""
    return None if scale is None else _checks.instance("scale", scale, CostScale)


def in_learning_units(values: FloatArray, scale: CostScale | None) -> FloatArray:
    """Return a copy of costs, which are in money if there is a scale; gaps of a table stay gaps."""
    return values.copy() if scale is None else 2.0 * (values - scale.low) / (scale.high - scale.low) - 1.0


def in_box(name: str, vector: FloatArray, limit: float = 1.0) -> FloatArray:
    """Return a vector clipped to [-limit, limit]; if that removes more than rounding, raise an error."""
    worst = int(np.argmax(np.abs(vector)))
    if abs(vector[worst]) > limit * (1 + FEASIBILITY):
        box = f"[{-limit:g}, {limit:g}]"
        raise ValueError(f"{name} must lie in {box} for bounds to hold; entry {worst} is {vector[worst]}")
    return np.clip(vector, -limit, limit)
