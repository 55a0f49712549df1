"""The measures of a policy and a learned cost, each of them one entry in `MEASURES`.

Rows, means over seeds, the columns of tables and CSV files, bold numbers and the legend all follow
from an entry.

**True expected cost.** ρ(π) = <μ_π, c_true>, by exact policy evaluation.

**Share of the gap closed.** (ρ_E - ρ_A) / (ρ_E - ρ*), with ρ the true expected cost of the
expert, the apprentice and the optimum: 0 for the expert, 1 for the optimum, negative for a policy
worse than the expert.

**Distance of the learned cost to the truth.** No behaviour distinguishes a cost c from a c + b
with a > 0: scale and shift cannot be identified. They are removed by the best fit in ℓ1-norm,

    min over a ≥ 0, b of ‖a c + b - c_true‖₁   /   min over b of ‖b - c_true‖₁,

which is 0 if c is the truth up to scale and shift, and 1 if c says nothing about the truth (a = 0
fits best); costs that point the wrong way also give 1. It is solved through its dual, a linear
program with two rows,

    max <y, c_true>   over   |y| ≤ 1,   <y, 1> = 0,   <y, c> ≤ 0.

(Potentials, c + Tγᵀu, cannot be identified either. They are not removed, because they do not
stay the same for another start or another discount.)

**Duality gap.** The gap of the problem that the method itself solves, by its own bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from rlfd_gym._errors import SolverError
from rlfd_gym.compare.tasks import Instance
from rlfd_gym.problem.solution import Apprentice, Solution


@dataclass(frozen=True)
class Measure:
    """An entry of the registry.

    Attributes:
        name: the name of the number in `Row.measures` and in the CSV files.
        title: the head of its column.
        legend: what the column shows; it is printed after "title: ".
        compute: the function that computes the number from what was learned and from the task
            with its true cost; it returns `None` where there is no such number.
        format: the function that turns the number into text.
        best: whether the lowest or the highest number of the column is bold, if any.
        interval: whether the means over seeds come with a 95% interval, `name_margin` in the CSV
            file.
    """

    name: str
    title: str
    legend: str
    compute: Callable[[Apprentice, Instance], float | None] = field(repr=False)
    format: Callable[[float], str] = field(default="{:.2f}".format, repr=False)
    best: Literal["lowest", "highest"] | None = None
    interval: bool = False


def measured(apprentice: Apprentice, instance: Instance) -> dict[str, float | None]:
    """Return every measure of an apprentice, by name."""
    return {name: measure.compute(apprentice, instance) for name, measure in MEASURES.items()}


def legend() -> str:
    """Return a paragraph that explains the columns of a table."""
    columns = [f"{measure.title}: {measure.legend}." for name, measure in MEASURES.items() if name != MAIN]
    columns.append("time: of one solve.")
    main = MEASURES[MAIN]
    return f"{main.title} {main.legend}. {' '.join(columns)} Columns with a name show the level furthest right."


def share_closed(cost: float, expert: float, optimum: float) -> float:
    """Return the share of the gap that is closed; `nan` for an optimal expert.

    >>> share_closed(-0.75, expert=-0.5, optimum=-1.0)
    0.5
    """
    return (expert - cost) / (expert - optimum) if expert - optimum > 1e-9 else float("nan")


def cost_distance(cost: ArrayLike, truth: ArrayLike) -> float:
    """Return the relative ℓ1 distance defined in the module's docstring, between 0 and 1.

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
        raise SolverError(f"HiGHS did not solve the fit of the learned cost to the truth: {result.message}")
    return float(np.clip(-result.fun, 0.0, 1.0)) + 0.0  # no -0.0


def _true_cost(apprentice: Apprentice, instance: Instance) -> float:
    return instance.mdp.expected_cost(apprentice.policy, instance.truth)


def _share_closed(apprentice: Apprentice, instance: Instance) -> float:
    return share_closed(_true_cost(apprentice, instance), *instance.ends)


def _cost_distance(apprentice: Apprentice, instance: Instance) -> float | None:
    return cost_distance(apprentice.cost, instance.truth) if isinstance(apprentice, Solution) else None


def _duality_gap(apprentice: Apprentice, instance: Instance) -> float | None:
    gap = apprentice.duality_gap if isinstance(apprentice, Solution) else math.nan
    return None if math.isnan(gap) else gap


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share + 0.0:.0f}%".replace("-0%", "0%")


MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            "true_cost",
            "true expected cost",
            "by exact evaluation, mean ± 95% interval over seeds, after that many demonstrations or from the expert's "
            "exact occupancy",
            _true_cost,
            "{:.3f}".format,
            best="lowest",
            interval=True,
        ),
        Measure(
            "share_closed",
            "closed",
            "share of the way from the expert to the optimum",
            _share_closed,
            _percent,
            best="highest",
            interval=True,
        ),
        Measure(
            "cost_distance",
            "dist",
            "of the learned cost to the truth up to scale and shift, 0 the truth, 1 tells nothing",
            _cost_distance,
            best="lowest",
        ),
        Measure("duality_gap", "gap", "duality gap of its own problem", _duality_gap, "{:.0e}".format),
    )
}
"""The measures by name, in the order of their columns."""
MAIN = "true_cost"
"""The measure that tables show at every level and that figures draw; others have one column."""
