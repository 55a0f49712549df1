r"""Confidence bounds on means, from draws that were not used to choose what is averaged.

**Numbers** (an empirical Bernstein bound with a fixed centre). Let X₁ … X_m be independent draws
with mean θ, each at least x - R for a centre x and a range R > 0 that were fixed before. For every
0 < λ < 1, also fixed before, with probability 1 - η

    θ  ≥  X̄ - (R/λm) [ ln(1/η) + ψ(λ) Σ_k ((X_k - x)/R)² ],        ψ(λ) = -ln(1-λ) - λ.

Proof. The function (ln(1+y) - y)/y² increases in y > -1, so for ξ ≥ -1 its value at y = λξ is at
least that at y = -λ, which says exp(λξ - ψ(λ)ξ²) ≤ 1 + λξ (Fan, Grama and Liu 2015). Take
ξ = (X_k - x)/R, and expectations: E exp(λξ - ψ(λ)ξ²) ≤ 1 + λ(θ-x)/R ≤ exp(λ(θ-x)/R), hence
E exp(λ(X_k-θ)/R - ψ(λ)ξ²) ≤ 1. The product over k has mean at most one, too, and by Markov's
inequality it exceeds 1/η with probability η at most.

If every draw equals its centre, the margin is R ln(1/η)/(λm): of order 1/m, not 1/√m. With the sum
of squares Q that earlier draws predict, λ = 1/(1 + √(Q/(2 ln(1/η)))) is nearly best; a poor
prediction makes the bound wider, not wrong. Draws -X_k give the bound from above.

**Vectors** (Pinelis 1994, theorem 3.3). Let Z₁ … Z_N be independent and equally distributed in a
Euclidean space, ‖Z_k‖ ≤ D, E‖Z_k‖² ≤ σ². Then ‖Z_k - EZ‖ ≤ 2D, and with probability 1 - η

    ‖Z̄ - EZ‖  ≤  r/N,      r = a + √(a² + 2 ln(2/η) N σ²),   a = (2D/3) ln(2/η).

The dimension does not enter. The bound σ² comes from the numbers Y_k = ‖Z_k‖² in [0, D²], by the
first bound for -Y_k with the centre 0, R = D² and λ = 1/2, where Y_k²/D⁴ ≤ Y_k/D²: with
probability 1 - η

    E‖Z‖²  ≤  (1 + 2ψ(1/2)) Ȳ + 2D² ln(1/η)/N.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray

LARGEST_RATE = 0.99
PSI_HALF = math.log(2.0) - 0.5  # ψ(1/2)


def rate(squares: Any, log_term: float) -> FloatArray:
    """Return the λ for a predicted sum of squares, in units of R²."""
    return np.minimum(1.0 / (1.0 + np.sqrt(np.asarray(squares) / (2.0 * log_term))), LARGEST_RATE)


def margin(range_: Any, squares: Any, rates: Any, log_term: float, count: Any) -> FloatArray:
    """Return by how much the mean of `count` draws may exceed the true mean.

    Args:
        range_: R, how far a draw can be below its centre.
        squares: Σ_k ((X_k - x)/R)², as seen, or as predicted to plan with.
        rates: λ.
        log_term: ln(1/η).
        count: m.

    Example:
        Of 100 draws in [0, 1] all were equal to one, as was foreseen.

        >>> round(float(margin(1.0, 0.0, 0.9, math.log(20), 100)), 3)
        0.033
    """
    lam = np.asarray(rates)
    psi = -np.log1p(-lam) - lam
    return np.asarray(range_ * (log_term + psi * squares) / (lam * np.maximum(count, 1)))


def mean_square(average: float, largest: float, log_term: float, count: int) -> float:
    """Return a bound on E‖Z‖² from the average of ‖Z_k‖² ≤ `largest`."""
    return min(largest, (1 + 2 * PSI_HALF) * average + 2 * largest * log_term / count)


def norm_margin(square: float, largest: float, log_term: float, count: int) -> float:
    """Return how far the average of `count` vectors may be from its mean.

    `square` bounds E‖Z‖², `largest` bounds ‖Z‖, and `log_term` is ln(2/η).
    """
    a = 2 * largest * log_term / 3
    return (a + math.sqrt(a * a + 2 * log_term * count * square)) / count
