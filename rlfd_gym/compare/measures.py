"""The measures of a policy and a learned cost, each of them one entry in `MEASURES`.

Rows, means over seeds, the columns of tables and CSV files, bold numbers and the legend all follow
from an entry.

**True expected cost.** ρ(π) = <μ_π, c_true>, by exact policy evaluation.

**Share of the gap closed.** (ρ_E - ρ_A) / (ρ_E - ρ*), with ρ the true expected cost of the
expert, the apprentice and the optimum: 0 for the expert, 1 for the optimum, negative for a policy
worse than the expert.

**Intervals** over seeds are Student's. On skewed numbers they cover less often than they say. With
185 to 200 seeds as populations (cloning, LP-IRL, LPAL and RLfD with α = 0.1 on the inventory and the
lake, cloning on the windy gridworld; 1 and 10 demonstrations) the 95% intervals over five seeds
cover 66% (LPAL from one demonstration on the lake) to 95% of the time, over ten 82% to 95%, over
twenty 90% to 96%. The BCa bootstrap covers 61% to 87% over five and 85% to 98% over twenty, from 150
samples each. So methods that are quick have twenty seeds. `scripts/study_intervals.py` measures it.

**Improvement.** ρ_E - ρ_A under the true cost.

**Guaranteed improvement.** The least improvement on the expert over all costs of the task's belief
(`rlfd_gym.guarantee`), given the expert's exact occupancy, whatever the method was shown. The
numbers in the rows and in the CSV files may be negative. A number that is not positive is no
guarantee, and tables show a dash. The mean over seeds is a guarantee as well, for a policy drawn
at random from those of the seeds: the least of a mean is at least the mean of the least.

**Distance of the learned cost to the truth.** No behaviour distinguishes a cost c from k c + Tγᵀu
with k > 0: scale and shaping cannot be identified, and are removed (`rlfd_gym.mdp.shaping`),

    inf over k > 0, u of ‖k c - Tγᵀu - c_true‖₂   /   min over u of ‖c_true - Tγᵀu‖₂.

This is the sine of the angle between the two costs without shaping: 0 if c ranks all policies as
the truth does, and 1 if c says nothing about the truth or points the wrong way.

**Duality gap.** The gap of the problem that the method itself solves, by its own bounds. A method
whose gap is above `UNSOLVED` has not solved its problem, and no number of it is set in bold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym._checks import FloatArray
from rlfd_gym.compare.tasks import Instance
from rlfd_gym.mdp.shaping import nearest_scale, without_shaping
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.guarantee import guarantee
from rlfd_gym.problem.solution import Apprentice, Solution

UNSOLVED = 0.05  # a duality gap above which an answer is far from the solution
NOTHING = "–"  # what tables show where nothing is guaranteed


@dataclass(frozen=True)
class Measure:
    """A number that is measured, as an entry of `MEASURES`.

    Attributes:
        name: the name of the number in `Row.measures` and in the CSV files.
        title: the head of its column.
        legend: what the column shows; it is printed after the title and a colon.
        compute: the function that computes the number from what was learned and from the task
            with its true cost; it returns `None` where there is no such number.
        format: the function that turns the number into text.
        best: whether the lowest or the highest number of the column is bold, if any.
        interval: whether the means over seeds come with a 95% interval, `name_margin` in the CSV
            file.
        of_policy: whether the number depends on the policy, and so on how that is read.

    Example:
        >>> MEASURES["share_closed"].format(0.36)
        '36%'
    """

    name: str
    title: str
    legend: str
    compute: Callable[[Apprentice, Instance], float | None] = field(repr=False)
    format: Callable[[float], str] = field(default="{:.2f}".format, repr=False)
    best: Literal["lowest", "highest"] | None = None
    interval: bool = False
    of_policy: bool = True


def measured(
    apprentice: Apprentice, policies: Mapping[str, FloatArray], instance: Instance
) -> dict[str, dict[str, float | None]]:
    """Return every measure of an apprentice, by reading and name, given its policies by reading."""
    same = {name: m.compute(apprentice, instance) for name, m in MEASURES.items() if not m.of_policy}
    readings = {kind: replace(apprentice, policy=policy) for kind, policy in policies.items()}
    return {
        kind: {name: same[name] if name in same else m.compute(read, instance) for name, m in MEASURES.items()}
        for kind, read in readings.items()
    }


def legend() -> str:
    """Return a paragraph that explains the columns of a table.

    Example:
        >>> "gap" in legend(), "time: of one solve." in legend()
        (True, True)
    """
    columns = [f"{measure.title}: {measure.legend}." for name, measure in MEASURES.items() if name != MAIN]
    columns.append("time: of one solve.")
    main = MEASURES[MAIN]
    return (
        f"{main.title} {main.legend}. {' '.join(columns)} Columns with a name show the level furthest right. Bold: the "
        f"best of those that solved their problem (gap up to {UNSOLVED:g}), unless another row shows the same. "
        "As mode: the policy takes the most frequent action of each state; else it mixes actions as was learned."
    )


def share_closed(cost: float, expert: float, optimum: float) -> float:
    """Return the share of the gap that is closed; `nan` for an optimal expert.

    >>> share_closed(-0.75, expert=-0.5, optimum=-1.0)
    0.5
    """
    return (expert - cost) / (expert - optimum) if expert - optimum > 1e-9 else float("nan")


def cost_distance(mdp: TabularMDP, cost: ArrayLike, truth: ArrayLike) -> float:
    """Return the relative distance defined in the module's docstring, between 0 and 1.

    >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], [1, 0], discount=0.5)
    >>> truth = np.array([-1.0, 0.0, 1.0])
    >>> round(cost_distance(mdp, 3 * truth + 7, truth), 9), cost_distance(mdp, -truth, truth)
    (0.0, 1.0)
    """
    costs = np.column_stack([mdp.pairs(cost, "cost"), mdp.pairs(truth, "truth")])
    own, wanted = without_shaping(mdp, costs).T
    nothing = float(np.linalg.norm(wanted))
    if nothing == 0:
        raise ValueError("truth must tell policies apart, but under it all policies have the same cost")
    return min(float(np.linalg.norm(nearest_scale(own, wanted) * own - wanted)) / nothing, 1.0)


@lru_cache(maxsize=4)  # three measures ask for it, one after the other
def _true_cost(apprentice: Apprentice, instance: Instance) -> float:
    return instance.mdp.expected_cost(apprentice.policy, instance.truth)


def _share_closed(apprentice: Apprentice, instance: Instance) -> float:
    return share_closed(_true_cost(apprentice, instance), *instance.ends)


def _improvement(apprentice: Apprentice, instance: Instance) -> float:
    return instance.ends[0] - _true_cost(apprentice, instance)


def _guaranteed(apprentice: Apprentice, instance: Instance) -> float | None:
    if instance.belief is None:
        return None
    return guarantee(instance.mdp, apprentice.policy, expert=instance.expert, belief=instance.belief).improvement


def _cost_distance(apprentice: Apprentice, instance: Instance) -> float | None:
    return cost_distance(instance.mdp, apprentice.cost, instance.truth) if isinstance(apprentice, Solution) else None


def _duality_gap(apprentice: Apprentice, instance: Instance) -> float | None:
    gap = apprentice.duality_gap if isinstance(apprentice, Solution) else math.nan
    return None if math.isnan(gap) else gap


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share + 0.0:.0f}%".replace("-0%", "0%")


def _signed(number: float) -> str:
    return f"{number:.3f}".replace("-0.000", "0.000")


def _positive(number: float) -> str:
    text = _signed(number)
    return text if float(text) > 0 else NOTHING


MEASURES = {
    measure.name: measure
    for measure in (
        Measure(
            "true_cost",
            "true expected cost",
            "by exact evaluation, mean ± 95% interval over seeds (Student's: over five seeds it covers 66% to 95% of "
            "the time, over twenty 90% to 96%), after that many demonstrations or from the expert's exact occupancy",
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
            "improvement",
            "better",
            "true improvement on the expert",
            _improvement,
            _signed,
            best="highest",
        ),
        Measure(
            "guaranteed",
            "guaranteed",
            f"least improvement on the expert over all costs of the task's belief, {NOTHING} where that is nothing",
            _guaranteed,
            _positive,
            best="highest",
        ),
        Measure(
            "equivalent_distance",
            "dist",
            "distance of the learned cost to the truth up to scale and shaping, 0 the truth, 1 tells nothing",
            _cost_distance,
            best="lowest",
            of_policy=False,
        ),
        Measure("duality_gap", "gap", "duality gap of its own problem", _duality_gap, "{:.0e}".format, of_policy=False),
    )
}
"""The measures by name, in the order of their columns."""
MAIN = "true_cost"
"""The measure that tables show at every level and that figures draw; others have one column."""
