r"""`Intervals`: the cost of every pair is known up to an interval.

The possible costs are lowᵢ ≤ cᵢ ≤ highᵢ, pair by pair, within the box [-1, 1]. No cost is more
plausible than another: Ω = 0. For d = μ_E - μ the inner minimum has a closed form,

    c*ᵢ = lowᵢ where dᵢ > 0,   highᵢ where dᵢ < 0,      Σᵢ min(lowᵢ dᵢ, highᵢ dᵢ),

and the excess of another cost over it is the sum of the nonnegative terms (cᵢ - c*ᵢ) dᵢ. With equal
ends the learning problem is planning; with the whole box it is imitation.

**Algorithm 1** needs no estimate of a penalty, so its estimator for c is e_{i_E} - e_{i_t}, with a
second moment of at most 2. The step is the paper's, projected on the intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.belief import FEASIBILITY, Belief, checked_scale, in_learning_units
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.pairs import Pairs


@dataclass(frozen=True, eq=False, init=False)
class Intervals(Belief):
    """The belief that the cost of every pair lies in an interval.

    Args:
        low: the smallest possible cost of each pair, over pairs or as a table.
        high: the largest possible cost of each pair.
        scale: if both are in money, the map to learning units.

    The parts of the intervals outside [-1, 1] are left out. An interval without a point in the box
    is an error.

    Example:
        >>> belief = Intervals(low=[-0.5, 0.0], high=[0.5, 0.2])
        >>> belief.best(np.array([0.1, -0.1])).tolist()       # d = μ_E - μ
        [-0.5, 0.2]
    """

    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)

    def __init__(self, low: ArrayLike, high: ArrayLike, *, scale: CostScale | None = None) -> None:
        """Check and copy the arguments."""
        scale = checked_scale(scale)
        ends = [_checks.finite_array(name, values) for name, values in (("low", low), ("high", high))]
        if ends[0].shape != ends[1].shape:
            raise ValueError(f"low has shape {ends[0].shape} and high has shape {ends[1].shape}, expected the same")
        lower, upper = (in_learning_units(end, scale) for end in ends)
        if lower.ndim == 1:  # a table may have anything at infeasible actions: `over` judges it
            _check_order(*ends)
            lower, upper = _in_the_box(lower, upper)
        self._fill(prior=0.5 * (lower + upper), alpha=0.0, scale=scale, low=lower, high=upper)

    def over(self, pairs: Pairs) -> Intervals:
        """Return the belief over an environment's pairs, with its arrays checked."""
        low, high = pairs.pairs(self.low, "low"), pairs.pairs(self.high, "high")
        _check_order(low, high)
        low, high = _in_the_box(low, high)
        return self._with(low=low, high=high, prior=0.5 * (low + high))

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the two ends of the intervals."""
        return self.low, self.high

    @property
    def largest(self) -> float:
        """1: values are kept in [-1, 1], as in the paper."""
        return 1.0

    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost, which is x itself."""
        return x

    def vector(self, x: Any) -> FloatArray:
        """Return the cost as a finite vector over pairs, or raise an error."""
        return _checks.pair_vector("cost", x, self.low.size)

    def check(self, x: FloatArray) -> FloatArray:
        """Return the cost with rounding removed, or raise an error if it leaves the intervals."""
        inside = self.nearest(x)
        worst = int(np.argmax(np.abs(inside - x)))
        if abs(inside[worst] - x[worst]) > FEASIBILITY:
            raise ValueError(
                f"cost must lie in its intervals for bounds to hold; entry {worst} is {x[worst]}, its interval is "
                f"[{self.low[worst]:g}, {self.high[worst]:g}]"
            )
        return inside

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the cost clipped to the intervals."""
        return np.clip(x, self.low, self.high)

    def penalty(self, x: FloatArray) -> float:
        """Return 0: all costs in the intervals are equally plausible."""
        return 0.0

    def best(self, d: FloatArray) -> FloatArray:
        """Return c*, with the middle of the interval where dᵢ = 0."""
        return np.where(d > 0, self.low, np.where(d < 0, self.high, self.prior))

    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far <d, c> at x is above its minimum, as a sum of nonnegative terms."""
        return float(np.sum((x - self.best(d)) * d))

    def scope(self, x: FloatArray) -> str:
        """Describe the costs in the intervals, without what was left out."""
        return "in [-1, 1] and in the given intervals"

    def gradient(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """Return d."""
        return d

    def second_moment(self, bound: str) -> float:
        """Return 2, or what the paper's lemma has for α = 0."""
        return 0.0 if bound == "paper" else 2.0

    def start(self, rng: np.random.Generator, uniform: bool) -> FloatArray:
        """Draw a cost uniformly from the intervals."""
        return rng.uniform(self.low, self.high)


def _check_order(low: FloatArray, high: FloatArray) -> None:
    """Raise an error if an interval is empty."""
    bad = np.flatnonzero(low > high)
    if bad.size:
        raise ValueError(f"low must not exceed high; entry {bad[0]} has {low[bad[0]]} > {high[bad[0]]}")


def _in_the_box(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return intervals without what is outside the box, or raise an error if nothing remains."""
    bad = np.flatnonzero((low > 1 + FEASIBILITY) | (high < -1 - FEASIBILITY))
    if bad.size:
        raise ValueError(
            f"low and high miss the box [-1, 1] of learning costs: entry {bad[0]} is "
            f"[{low[bad[0]]:g}, {high[bad[0]]:g}]; if they are in money, give scale=CostScale(lowest, highest)"
        )
    return np.clip(low, -1.0, 1.0), np.clip(high, -1.0, 1.0)
