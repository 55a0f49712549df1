"""What is reported of a policy and a learned cost.

**Share of the gap closed.** (ρ_E - ρ_A) / (ρ_E - ρ*), with ρ the true expected cost, by exact policy evaluation, of the
expert, the apprentice and the optimum: 0 for the expert, 1 for the optimum, negative for worse than the expert.

**Distance of the learned cost to the truth.** No behaviour tells a cost c from a c + b with a > 0: scale and shift
cannot be identified. They are removed by the best fit in ℓ1-norm,

    min over a ≥ 0, b of ‖a c + b - c_true‖₁   /   min over b of ‖b - c_true‖₁,

which is 0 where c is the truth up to scale and shift, and 1 where it tells nothing (a = 0 fits best): costs that point
the wrong way included. It is solved through its dual, a linear program with two rows,

    max <y, c_true>   over   |y| ≤ 1,   <y, 1> = 0,   <y, c> ≤ 0.

(Potentials, c + Tγᵀu, cannot be identified either. They are not removed: they stay the same neither for another start
nor for another discount.)

**Intervals.** Student's, for the mean over seeds: mean ± t_{0.975, n-1} s/√n; none for a single value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.stats import t as student

CONFIDENCE = 0.95


def share_closed(cost: float, expert: float, optimum: float) -> float:
    """How much of the way from the expert to the optimum was made; `nan` for an optimal expert.

    >>> share_closed(-0.75, expert=-0.5, optimum=-1.0)
    0.5
    """
    return (expert - cost) / (expert - optimum) if expert - optimum > 1e-9 else float("nan")


def cost_distance(cost: ArrayLike, truth: ArrayLike) -> float:
    """The relative ℓ1 distance of the module's docstring, between 0 and 1.

    >>> truth = np.array([-1.0, 0.0, 0.5, 1.0])
    >>> abs(cost_distance(3 * truth + 7, truth)) < 1e-9, cost_distance(-truth, truth)
    (True, 1.0)
    """
    c, target = np.asarray(cost, dtype=np.float64), np.asarray(truth, dtype=np.float64)
    nothing = float(np.abs(target - np.median(target)).sum())
    spread = float(np.ptp(c))
    if nothing == 0:
        raise ValueError(f"truth must not be constant, but all its entries are {target[0]}")
    if spread <= 1e-9 * max(1.0, float(np.abs(c).max())):
        return 1.0  # a constant, up to rounding
    result = linprog(
        -target / nothing,
        A_ub=((c - c.min()) / spread)[None],  # with <y, 1> = 0 this is the same row, and well scaled
        b_ub=[0.0],
        A_eq=np.ones((1, c.size)),
        b_eq=[0.0],
        bounds=(-1.0, 1.0),
    )
    if result.status != 0:
        raise RuntimeError(f"HiGHS did not solve the fit of the learned cost to the truth: {result.message}")
    return float(np.clip(-result.fun, 0.0, 1.0)) + 0.0  # no -0.0


def mean_and_margin(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the half-width of its 95% interval if there are several values.

    >>> mean, margin = mean_and_margin([1.0, 3.0])
    >>> mean, round(margin, 2)
    (2.0, 12.71)
    >>> mean_and_margin([1.0])
    (1.0, None)
    """
    x = np.asarray(values, dtype=np.float64)
    if len(x) < 2:
        return float(x.mean()), None
    margin = student.ppf(0.5 + CONFIDENCE / 2, len(x) - 1) * x.std(ddof=1) / np.sqrt(len(x))
    return float(x.mean()), float(margin)
