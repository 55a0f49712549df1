"""The map between raw costs, such as money, and the box [-1, 1].

Learning uses costs in [-1, 1]. A raw cost r (money, say) is mapped there by the affine map that
takes [low, high] to [-1, 1],

    c = 2 (r - low) / (high - low) - 1,        r = low + (c + 1) (high - low) / 2,

which does not change the ranking of policies. Costs that are to be compared, such as the true
cost, the expert's cost and the prior, must share one scale.
"""

from __future__ import annotations

from dataclasses import dataclass

from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray

SMALLEST_RANGE = 1 / _checks.LARGEST  # by which numbers can be divided


@dataclass(frozen=True)
class CostScale:
    """The affine map between raw costs in [low, high] and the box [-1, 1], in both directions.

    Attributes:
        low: the raw cost that is mapped to -1.
        high: the raw cost that is mapped to 1.

    >>> scale = CostScale(low=-100.0, high=0.0)
    >>> scale.to_box([-100.0, -50.0, 0.0]).tolist()
    [-1.0, 0.0, 1.0]
    >>> scale.from_box([0.5]).tolist()
    [-25.0]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check that the range is not empty."""
        _checks.number("low", self.low)
        _checks.number("high", self.high)
        if not self.high - self.low > SMALLEST_RANGE:
            raise ValueError(f"low must be below high, got low={self.low} and high={self.high}")

    @classmethod
    def spanning(cls, raw: ArrayLike) -> CostScale:
        """Return the scale that maps the smallest raw cost to -1 and the largest to 1."""
        values = _costs("raw", raw)
        if values.size == 0:
            raise ValueError("raw costs must not be empty")
        low, high = float(values.min()), float(values.max())
        if not high - low > SMALLEST_RANGE:
            raise ValueError(f"raw costs must differ to set a scale, but lie in [{low}, {high}]; give low and high")
        return cls(low, high)

    @property
    def factor(self) -> float:
        """How many learning units one unit of money is."""
        return 2.0 / (self.high - self.low)

    def to_box(self, raw: ArrayLike) -> FloatArray:
        """Return raw costs as learning costs; those outside [low, high] are outside the box."""
        return 2.0 * (_costs("raw", raw) - self.low) / (self.high - self.low) - 1.0

    def from_box(self, cost: ArrayLike) -> FloatArray:
        """Return learning costs as raw costs."""
        return self.low + (_costs("cost", cost) + 1.0) * (self.high - self.low) / 2.0


def _costs(name: str, values: ArrayLike) -> FloatArray:
    """Return costs of any shape as finite numbers."""
    return _checks.finite(name, _checks.numbers(name, values))
