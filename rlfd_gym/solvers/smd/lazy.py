r"""What becomes of a cost or a value in steps that do not draw it: where it stands, and its sum.

In a step of the proximal variant (`rlfd_gym.problem.theorem`) that draws neither pair i nor state
s, cᵢ and u_s still move, by the part of the problem that is known. They move by the same map in each
such step, so r steps have a closed form. With x₀ = x now and x_m after m steps, the functions here
return x_r and Σ_{m=0..r} x_m.

**ℓ2** (`decay`). A step is x ← clip(x - (κ/(1+κ))(x - τ)). Let F(m) = 1 - (1+κ)^-m and
D(r) = Σ_{m≤r} F(m). As long as the path is inside its interval,

    x_r = x - (x - τ) F(r),          Σ_{m≤r} x_m = (r+1) x - (x - τ) D(r).

It is monotone. If τ is outside, the path ends at the bound b that lies between, which it reaches
after h whole steps, F(h) ≤ (x - b)/(x - τ). F and D come from tables: for r = aB + b,

    F(r) = F(aB) + (1 - F(aB)) F(b),        D(r) = D(aB) + b F(aB) + (1 - F(aB)) D(b).

All terms are nonnegative, so nothing cancels however small κ is, and a step has no exponential.

**ℓ1, or no penalty** (`drift`). Right of the prior ĉ a step moves x down by R = η(μ_E + α), left of it
by L = η(μ_E - α), which may be negative. The step that would cross ĉ lands on ĉ, or if L > 0 at
x - L where that is left of ĉ. Without a penalty R = L, and ĉ does not matter.

**Values** (`slide`). u_s moves by η b_s per step, up to the end of its box.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._compiled import inlined

SHORT = 256  # B of the module's docstring
STEEPEST = 700.0  # the largest log(1+κ): beyond it one step goes all the way, and exp would underflow


class Powers(NamedTuple):
    """The tables of F and D: of 0 … B-1 steps, and of multiples of B."""

    log: float  # log(1+κ)
    moved: FloatArray  # F(b)
    moved_sum: FloatArray  # D(b)
    far: FloatArray  # F(aB)
    far_sum: FloatArray  # D(aB)


def powers_of(kappa: float, longest: int) -> Powers:
    """Build the tables for up to `longest` steps in a row.

    >>> table = powers_of(1.0, longest=1000)
    >>> table.moved[:4].tolist()                              # of the way to τ
    [0.0, 0.5, 0.75, 0.875]
    """
    log = min(math.log1p(kappa), STEEPEST)
    moved = -np.expm1(-log * np.arange(SHORT + 1))
    moved_sum = np.cumsum(moved)
    far = -np.expm1(-log * SHORT * np.arange(longest // SHORT + 1))
    grown = SHORT * far + (1.0 - far) * moved_sum[-1]
    far_sum = np.concatenate([[0.0], np.cumsum(grown[:-1])])
    return Powers(log, moved[:-1].copy(), moved_sum[:-1].copy(), far, far_sum)


@inlined
def within(x, low, high):
    """Return x clipped to an interval; a nan stays one."""
    above = low if x < low else x
    return high if above > high else above


@inlined
def decayed(x, steps, powers, target, low, high):
    """Return x_r alone, for the ℓ2 penalty."""
    return within(x - (x - target) * _moved(powers, steps), low, high)


@inlined
def decay(x, steps, powers, target, low, high):
    """Return x_r and Σ_{m≤r} x_m, for the ℓ2 penalty."""
    away = x - target
    value = x - away * _moved(powers, steps)
    if low <= value <= high:
        return value, (steps + 1.0) * x - away * _moved_sum(powers, steps)
    bound = low if value < low else high
    inside = 0
    if x != bound:  # h: the steps before the bound is reached
        inside = np.int64(within(-math.log1p(-(x - bound) / away) / powers.log, 0.0, float(steps)))
    return bound, (inside + 1.0) * x - away * _moved_sum(powers, inside) + (steps - inside) * bound


@inlined
def _moved(powers, steps):
    many = powers.far[steps // SHORT]
    return many + (1.0 - many) * powers.moved[steps % SHORT]


@inlined
def _moved_sum(powers, steps):
    a, b = steps // SHORT, steps % SHORT
    return powers.far_sum[a] + b * powers.far[a] + (1.0 - powers.far[a]) * powers.moved_sum[b]


@inlined
def slide(x, steps, speed, end):
    """Return x_r and Σ_{m≤r} x_m, for a path that moves by `speed` per step and stops at `end`."""
    if speed == 0.0 or x == end:
        return x, (steps + 1.0) * x
    inside = np.floor((end - x) / speed)
    if inside >= steps:
        return x + steps * speed, (steps + 1.0) * (x + 0.5 * steps * speed)
    return end, (inside + 1.0) * (x + 0.5 * inside * speed) + (steps - inside) * end


@inlined
def drift(x, steps, right, left, prior, low, high):
    """Return x_r and Σ_{m≤r} x_m, for the ℓ1 penalty or none; `right` and `left` are R and L."""
    total = 0.0
    if x > prior:
        if left <= 0.0 or prior <= low:  # the path ends at the prior, or at the end of its interval
            return slide(x, steps, -right, max(prior, low))
        before = np.ceil((x - prior) / right) - 1.0  # whole steps right of the prior
        if before >= steps:
            return slide(x, steps, -right, low)
        before = max(before, 0.0)
        total = (before + 1.0) * (x - 0.5 * before * right)
        x = max(pulled(x - before * right, right, left, prior), low)
        steps = steps - int(before) - 1
    value, rest = slide(x, steps, -left, low if left > 0.0 else min(max(prior, low), high))
    return value, total + rest


@inlined
def pulled(y, right, left, prior):
    """Return the proximal step from y, not clipped: soft(y - ημ_E - ĉ, ηα) + ĉ."""
    if y - right >= prior:
        return y - right
    return min(y - left, prior)
