r"""`Ball`: the cost is at most a distance r from a prior ĉ.

The possible costs are ‖c - ĉ‖₂ ≤ r, and no cost is more plausible than another: Ω = 0. For
d = μ_E - μ the inner minimum has a closed form,

    c* = ĉ - r d/‖d‖,          <d, ĉ> - r‖d‖,

and the excess of another cost over it is a sum of two nonnegative terms,

    <d, c - ĉ> + r‖d‖  =  ‖d‖/2r · (‖c - c*‖² + r² - ‖c - ĉ‖²).

`Ball(ĉ, r)` is `NearPrior(ĉ, α)` with the multiplier α of the constraint: both have the same
solution where r is the distance of NearPrior's learned cost from the prior, as long as the box
[-1, 1] does not bind there. A ball has no box: its costs may leave [-1, 1] by up to r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.belief import FEASIBILITY, Belief, checked_scale, in_learning_units
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.pairs import Pairs


@dataclass(frozen=True, eq=False, init=False)
class Ball(Belief):
    """The belief that the cost is at most a given distance from a prior.

    Args:
        prior: ĉ, over pairs or as a table.
        radius: r ≥ 0, in the ℓ2-norm over pairs.
        scale: if both are in money, the map to learning units.

    Example:
        >>> belief = Ball(prior=[0.5, -0.5], radius=0.5)
        >>> belief.best(np.array([0.3, -0.4])).round(3).tolist()       # d = μ_E - μ
        [0.2, -0.1]
    """

    radius: float

    def __init__(self, prior: ArrayLike, radius: float, *, scale: CostScale | None = None) -> None:
        """Check and copy the arguments."""
        scale = checked_scale(scale)
        guess, r = _checks.finite_array("prior", prior).copy(), _checks.number("radius", radius, 0.0)
        if scale is not None:
            guess, r = in_learning_units(guess, scale), r * scale.factor
        if guess.ndim == 1:  # a table may have anything at infeasible actions: `over` judges it
            _meets_the_box(guess, r)
        self._fill(prior=guess, alpha=0.0, scale=scale, radius=r)

    def over(self, pairs: Pairs) -> Ball:
        """Return the belief over an environment's pairs, with its arrays checked."""
        prior = pairs.pairs(self.prior, "prior")
        _meets_the_box(prior, self.radius)
        return self._with(prior=prior)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return ĉ - r and ĉ + r."""
        return self.prior - self.radius, self.prior + self.radius

    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost, which is x itself."""
        return x

    def vector(self, x: Any) -> FloatArray:
        """Return the cost as a finite vector over pairs, or raise an error."""
        return _checks.pair_vector("cost", x, self.prior.size)

    def check(self, x: FloatArray) -> FloatArray:
        """Return the cost with rounding removed, or raise an error if it is not in the ball."""
        distance = float(np.linalg.norm(x - self.prior))
        if distance > self.radius + FEASIBILITY:
            raise ValueError(
                f"cost must lie within {self.radius:g} of the prior for bounds to hold, it is {distance:g} away"
            )
        return self.nearest(x)

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the nearest cost in the ball."""
        distance = float(np.linalg.norm(x - self.prior))
        return x if distance <= self.radius else self.prior + (self.radius / distance) * (x - self.prior)

    def penalty(self, x: FloatArray) -> float:
        """Return 0: all costs in the ball are equally plausible."""
        return 0.0

    def best(self, d: FloatArray) -> FloatArray:
        """Return c*, or the prior if d = 0."""
        size = float(np.linalg.norm(d))
        return self.prior - (self.radius / size) * d if size > 0 else self.prior

    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far <d, c> at x is above its minimum, as a sum of nonnegative terms."""
        size = float(np.linalg.norm(d))
        if self.radius == 0 or size == 0:
            return 0.0
        inside = max(self.radius**2 - float(np.sum((x - self.prior) ** 2)), 0.0)
        return size / (2 * self.radius) * (float(np.sum((x - self.best(d)) ** 2)) + inside)

    def scope(self, x: FloatArray) -> str:
        """Describe the costs in the ball."""
        return f"within {self.radius:.3g} of the prior (in ℓ2 norm)"


def _meets_the_box(prior: FloatArray, radius: float) -> None:
    """Raise an error if no cost of the ball is in the box."""
    outside = float(np.linalg.norm(np.maximum(np.abs(prior) - 1.0, 0.0)))
    if outside > radius + FEASIBILITY:
        raise ValueError(
            f"prior is {outside:g} away from the box [-1, 1] of learning costs, and radius is only {radius:g}; "
            "if both are in money, give scale=CostScale(lowest, highest)"
        )
