r"""Steps chosen by the gap: stages that start anew from the best point, with ever smaller steps.

The theorem's steps are safe and small: on the tasks of the comparison much
larger ones do better. But where there are tables, the duality gap of a point is known. So a solve may begin
with steps that are far too large, keep what they were good for, and start anew with smaller ones.

**Repair.** A bound is only as good as the point that proves it. The averages (c, u, μ) of a run are
judged as they are, and with

    c, V*_c          the optimal value of the cost,
    c(u), u          the best cost for the value,
    c(V*_c), V*_c    both,
    c(V*_b), V*_b    the same from the cost b that answers the occupancy best,

each beside the occupancy of the policy that μ describes (with the expert's own flow Tγ μ_E as its
start). c(u) = max(Tγᵀu, argmin h), with h(c) = Ω(c) + <μ_E, c>, see `incumbent.floor_of`. (On a hull
entries are not free, and c(u) is not tried.) `upper` depends on the cost and the value alone,
`lower` on the occupancy alone. So the best of each side may be taken, from different points too: the
pair is a feasible point, whose bounds are just these two. It is never worse than the raw point.

It is the cost that noise spoils: an entry has few moves to average over, a value those of all pairs
around its state. On the comparison's problems (nine kinds, five seeds, the expert known exactly) gaps
are at most 3.2% of the value after a million steps; the inventory at α = 0.01 had 30% to 80% with the
first of these alone.

**Stages** of L, 2L, 4L … steps, of sizes that shrink from one stage to the next (`SMALLER`). A stage
starts at the best point so far, mixed with a little of the uniform distribution so that no pair is
lost. The noise in an average of T steps of size η is of the order of η + 1/(ηT), hence about √½ for
twice the steps; values, which a repaired point has exactly, need to move less and less, hence ½.
What a stage does depends on the ends of earlier stages alone, not on how many steps are asked for
or on callbacks. So a solve that is continued is the same to the bit.

The sizes were chosen on the tasks of the comparison. A prototype on four of its problems, two seeds
each, showed no benefit of a baseline for the occupancy's gradient to repaired points, and up to twice
the gap where the expert's part is drawn instead of known. Pilots that choose among four sizes were
tried once on each of the nine, and chose badly on one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import Hull
from rlfd_gym.mdp.occupancy import cost_of_value, occupancy_of, policy_of
from rlfd_gym.problem import Point, RLfDProblem
from rlfd_gym.solvers.incumbent import floor_of
from rlfd_gym.solvers.smd.runs import middle

FIRST = 8192  # steps of the first stage, or twice as many as there are pairs
SMALLER = (0.5**0.5, 0.5, 0.8)  # the sizes of a stage, as multiples of those of the stage before
UNIFORM = 1e-3  # the share of the uniform distribution in the occupancy that a stage starts at


@dataclass(frozen=True, eq=False)
class Best:
    """The best bounds so far, and the points that prove them."""

    x: FloatArray
    value: FloatArray
    occupancy: FloatArray
    upper: float
    lower: float

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def point(self) -> Point:
        """The feasible point that has these bounds."""
        return Point(self.x, self.value, self.occupancy)

    def or_better(self, other: Best) -> Best:
        """Return the better of the two on each side."""
        x, value, upper = min((self, other), key=lambda one: one.upper).cost_side
        occupancy, lower = max((self, other), key=lambda one: one.lower).occupancy_side
        return Best(x, value, occupancy, upper, lower)

    @property
    def cost_side(self) -> tuple[FloatArray, FloatArray, float]:
        """What proves the upper bound, and the bound."""
        return self.x, self.value, self.upper

    @property
    def occupancy_side(self) -> tuple[FloatArray, float]:
        """What proves the lower bound, and the bound."""
        return self.occupancy, self.lower


def judged(problem: RLfDProblem, point: Point, repair: bool) -> Best:
    """Return the bounds of a point, or the best ones of the point and its repaired versions."""
    points = [point]
    if repair:
        own, optimal = _own_occupancy(problem, point.occupancy), _optimal_value(problem, point.x)
        points.append(Point(point.x, optimal, own))
        if not isinstance(problem.belief, Hull):
            answered = _optimal_value(problem, problem.best_cost(own))
            points += [Point(_best_cost(problem, value), value, own) for value in (point.value, optimal, answered)]
    return reduce(Best.or_better, [Best(*one, *problem.bounds(*one)) for one in points])


def _optimal_value(problem: RLfDProblem, x: FloatArray) -> FloatArray:
    """Return V*_c in the box of values; a constant shift of u changes neither bound."""
    value, limit = problem.mdp.optimal(problem.belief.cost(x)).value, problem.belief.largest
    return np.clip(value, -limit, limit)


def _best_cost(problem: RLfDProblem, value: FloatArray) -> FloatArray:
    """Return c(u), the cost with the least upper bound of those that have this value."""
    return np.clip(np.maximum(cost_of_value(problem.mdp, value), floor_of(problem)), *problem.belief.ends())


def _own_occupancy(problem: RLfDProblem, occupancy: FloatArray) -> FloatArray:
    """Return the occupancy that the policy of μ has with the flow of the expert."""
    mdp = problem.mdp
    own = occupancy_of(mdp, policy_of(mdp, occupancy), source=mdp.flow(problem.expert))
    return own / own.sum() if own.sum() > 0 else occupancy


@dataclass(frozen=True, eq=False)
class Search:
    """Where the choice of step sizes stands.

    Attributes:
        best: the best bounds at the ends of stages; those of the start before there was one.
        start: where the stage at hand starts.
        number: of the stage at hand, from 0.
        begins: the number of steps at which the stage at hand begins.
        ends: the number of steps at which it ends.
    """

    best: Best = field(repr=False)
    start: Point = field(repr=False)
    number: int
    begins: int
    ends: int

    def sizes(self, problem: RLfDProblem) -> tuple[float, ...]:
        """Return the step sizes of the stage at hand."""
        return tuple(size * smaller**self.number for size, smaller in zip(base(problem), SMALLER, strict=True))

    def after(self, problem: RLfDProblem, found: Best) -> Search:
        """Return where the choice stands after a stage that found these bounds."""
        best, number = self.best.or_better(found), self.number + 1
        x = _mixed(best.x) if isinstance(problem.belief, Hull) else best.x
        start = Point(x, best.value, _mixed(best.occupancy))
        return Search(best, start, number, self.ends, self.ends + shortest(problem) * 2**number)


def first(problem: RLfDProblem, repair: bool) -> Search:
    """Return the first stage: at the prior, its optimal value, and the expert's occupancy."""
    x = middle(problem).x
    point = Point(x, _optimal_value(problem, x), _mixed(problem.expert))
    return Search(judged(problem, point, repair), point, 0, 0, shortest(problem))


def shortest(problem: RLfDProblem) -> int:
    """Return the steps of the first stage."""
    return max(FIRST, 2 * problem.n_pairs)


def base(problem: RLfDProblem) -> tuple[float, ...]:
    """Return the sizes of the first stage for (c, u, μ), or (w, u, μ) on a hull.

    One step moves a cost by 1/20, a value by 1/60, and a weight by a factor of up to exp(±8). The
    estimator of a hull still samples the penalty, so its size is as much smaller as that is larger.
    """
    n, horizon = problem.n_pairs, 1.0 / (1.0 - problem.discount)
    eta = 0.05 / (1.0 + 4.0 * problem.alpha * n) if isinstance(problem.belief, Hull) else 0.05
    return eta, 0.016 / horizon, 4.0 / (n * horizon)


def _mixed(weights: Any) -> FloatArray:
    """Return a distribution with a little of the uniform one, so that no entry is lost."""
    return np.asarray((1.0 - UNIFORM) * weights + UNIFORM / len(weights))
