r"""`Prices`: the cost is linear in a few prices, each known up to a range.

With features C of K columns, the possible costs are c = offset + Cw with low ≤ w ≤ high, such as
"holding a unit costs between 0.3 and 3". With a prior ŵ of the prices and α > 0, the penalty is
Ω = α‖w - ŵ‖²; by default there is none. For d = μ_E - μ and g = Cᵀd the inner minimum is, price by
price, that of α(w - ŵ)² + gw over [low, high],

    w*_k = clip(ŵ_k - g_k/2α, low_k, high_k),     or for α = 0: low_k where g_k > 0, else high_k,

and the excess of other prices over it is the sum of the nonnegative terms

    (w_k - w*_k) (α (w_k + w*_k - 2ŵ_k) + g_k).

With equal ends the learning problem is planning with these prices. If the ranges contain prices
under which the expert is optimal, its value is 0 and imitation is the answer. The costs need not
lie in [-1, 1]: values are then bounded by the largest cost of the set instead of 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.beliefs.belief import FEASIBILITY, FEW, Belief, checked_scale
from rlfd_gym.beliefs.program import Program
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.pairs import Pairs

Range = float | tuple[float, float]
"""What is known about a price: the price itself, or (low, high)."""


@dataclass(frozen=True, eq=False, init=False)
class Prices(Belief):
    """The belief that each of a few prices lies in a range.

    Args:
        features: C, (n_pairs, K): how much of each price a pair pays.
        low: the smallest possible price of each feature.
        high: the largest possible price of each feature.
        offset: a part of the cost that is known, a number or over pairs.
        prior: ŵ, the guess of the prices, which needs `alpha`; by default the middle of the ranges.
        alpha: α ≥ 0, the weight of the penalty α‖w - ŵ‖²; without a prior 0.
        names: what the prices are called, in results; by default "price 0", "price 1" and so on.
        scale: if the cost offset + Cw is in money, the map to learning units. Prices stay in
            money. Without it the cost is taken as it is, also outside [-1, 1].

    Example:
        >>> belief = Prices([[1.0, 0.0], [0.0, -1.0]], low=[0.2, 0.5], high=[0.4, 1.0])
        >>> worst = belief.best(np.array([0.5, -0.5]))        # d = μ_E - μ
        >>> worst.tolist(), belief.cost(worst).tolist()
        ([0.2, 0.5], [0.2, -0.5])
    """

    features: FloatArray = field(repr=False)
    low: FloatArray
    high: FloatArray
    offset: FloatArray = field(repr=False)
    names: tuple[str, ...]

    def __init__(
        self,
        features: ArrayLike,
        low: ArrayLike,
        high: ArrayLike,
        offset: ArrayLike = 0.0,
        *,
        prior: ArrayLike | None = None,
        alpha: float | None = None,
        names: Sequence[str] | None = None,
        scale: CostScale | None = None,
    ) -> None:
        """Check and copy the arguments."""
        scale = checked_scale(scale)
        columns = check_basis(features, box=False, name="features")
        n_pairs, size = columns.shape
        ends = [
            _checks.finite_vector(name, values, size, "column of features")
            for name, values in (("low", low), ("high", high))
        ]
        called = tuple(f"price {k}" for k in range(size)) if names is None else tuple(map(str, names))
        if len(called) != size:
            raise ValueError(f"names has {len(called)} entries, expected {size}: one per column of features")
        bad = np.flatnonzero(ends[0] > ends[1])
        if bad.size:
            k = bad[0]
            raise ValueError(f"low must not exceed high; {called[k]} has {ends[0][k]} > {ends[1][k]}")
        if prior is not None and alpha is None:
            raise ValueError(
                "alpha is None, but there is a prior: give its weight, for prices as they are; 0 ignores it"
            )
        weight = _checks.number("alpha", 0.0 if alpha is None else alpha, 0.0)
        if prior is None and weight > 0:
            raise ValueError(f"prior is None, so alpha must be 0, got {alpha!r}")
        middle = 0.5 * (ends[0] + ends[1])
        guess = middle if prior is None else _checks.finite_vector("prior", prior, size, "column of features")
        known = _checks.numbers("offset", offset)
        known = np.full(n_pairs, _checks.number("offset", offset)) if known.ndim == 0 else known
        known = _checks.pair_vector("offset", known, n_pairs)
        if scale is not None:
            columns, known = columns * scale.factor, scale.to_box(known)
        self._fill(
            prior=guess.copy(),
            alpha=weight,
            scale=scale,
            features=columns.copy(),
            low=ends[0].copy(),
            high=ends[1].copy(),
            offset=known.copy(),
            names=called,
        )

    @classmethod
    def named(cls, features: ArrayLike, ranges: Mapping[str, Range], **options: Any) -> Prices:
        """Make the belief from the range (low, high) of each price, or the price itself, by name.

        >>> Prices.named([[1.0, 0.0], [0.0, -1.0]], {"buy": (0.2, 0.4), "sell": 1}).low.tolist()
        [0.2, 1.0]
        """
        _checks.instance("ranges", ranges, Mapping, "from names to ranges (low, high)")  # type: ignore[type-abstract]
        size, ends = check_basis(features, box=False, name="features").shape[1], []
        if len(ranges) != size:
            raise ValueError(f"ranges has {len(ranges)} entries, expected {size}: one per column of features")
        for name, given in ranges.items():
            several = isinstance(given, (tuple, list)) or getattr(given, "ndim", 0) == 1
            pair: list[Any] = list(given) if several else [given, given]  # type: ignore[arg-type]
            if len(pair) != 2:
                raise ValueError(f"{name} must be a number or a range (low, high), got {given!r}")
            low, high = (_checks.number(name, end) for end in pair)
            if low > high:
                raise ValueError(f"{name} must be a range (low, high) with low ≤ high, got {given!r}")
            ends.append((low, high))
        lows, highs = np.array(ends).reshape(-1, 2).T
        return cls(features, lows, highs, names=tuple(ranges), **options)

    def with_alpha(self, alpha: float) -> Prices:
        """Return the same belief with another α."""
        return self._with(alpha=_checks.number("alpha", alpha, 0.0))

    def over(self, pairs: Pairs) -> Prices:
        """Return the belief itself, after checking that it has one row per pair."""
        check_basis(self.features, pairs.n_pairs, box=False, name="features")
        return self

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest cost of each pair over the ranges."""
        middle = self.cost(0.5 * (self.low + self.high))
        half = np.abs(self.features) @ (0.5 * (self.high - self.low))
        return middle - half, middle + half

    def vertices(self) -> FloatArray | None:
        """Return the corners of the ranges."""
        if self.alpha > 0 or 2 ** np.count_nonzero(self.low < self.high) > FEW:
            return None
        return np.array(list(product(*(sorted({low, high}) for low, high in zip(self.low, self.high, strict=True)))))

    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost offset + Cw."""
        return self.offset + self.features @ x

    def vector(self, x: Any) -> FloatArray:
        """Return the prices as a finite vector, or raise an error."""
        return _checks.finite_vector("prices", x, self.low.size, "column of features")

    def check(self, x: FloatArray) -> FloatArray:
        """Return the prices with rounding removed, or raise an error if one leaves its range."""
        inside = np.clip(x, self.low, self.high)
        k = int(np.argmax(np.abs(inside - x)))
        if abs(inside[k] - x[k]) > FEASIBILITY * max(1.0, abs(x[k])):
            raise ValueError(
                f"prices must lie in their ranges for bounds to hold; {self.names[k]} is {x[k]}, its range is "
                f"[{self.low[k]:g}, {self.high[k]:g}]"
            )
        return inside

    def penalty(self, x: FloatArray) -> float:
        """Return α‖w - ŵ‖²."""
        return float(self.alpha * np.sum((x - self.prior) ** 2))

    def best(self, d: FloatArray) -> FloatArray:
        """Return w*; for α = 0, with the middle of the range where g_k = 0."""
        g = self.features.T @ d
        if self.alpha > 0:
            return np.clip(self.prior - g / (2 * self.alpha), self.low, self.high)
        return np.where(g > 0, self.low, np.where(g < 0, self.high, 0.5 * (self.low + self.high)))

    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far Ω + <d, c> at x is above its minimum, as a sum of nonnegative terms."""
        best = self.best(d)
        return float(np.sum((x - best) * (self.alpha * (x + best - 2 * self.prior) + self.features.T @ d)))

    def scope(self, x: FloatArray) -> str:
        """Describe the ranges of the prices and, with a penalty, the distance to the prior."""
        ranges = (
            f"{name} = {low:.4g}" if low == high else f"{low:.4g} ≤ {name} ≤ {high:.4g}"
            for name, low, high in zip(self.names, self.low, self.high, strict=True)
        )
        near = f", within {np.linalg.norm(x - self.prior):.3g} of the prior prices" if self.alpha > 0 else ""
        return f"with {', '.join(ranges)}{near}"

    def gradient(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """Return 2α(w - ŵ) + Cᵀd."""
        return 2 * self.alpha * (x - self.prior) + self.features.T @ d

    def program(self) -> Program:
        """Return the part of the small program in w that does not depend on the expert."""
        size, weight = self.low.size, 2 * self.alpha
        rows = np.zeros((0, size)), np.zeros(0)
        return Program(
            self.features, self.offset, weight * np.eye(size), -weight * self.prior, self.low, self.high, *rows
        )
