r"""Solve problems with the belief `Ball` by their multiplier.

The learning problem min R(c) over ‖c - ĉ‖ ≤ r has a multiplier α ≥ 0 for the constraint in the
form ‖c - ĉ‖² ≤ r². For the right α its solution is that of `NearPrior(ĉ, α)`, whose distance
r(α) = ‖c_α - ĉ‖ falls as α grows. Because c_α - ĉ = (μ - μ_E)/2α, the distance is at most
‖μ - μ_E‖/2α ≤ √2/2α, which bounds α from above. Three cases:

* r is nearly 0: planning with the prior; for an expert from whose own start one cannot plan, the
  linear program of `Intervals` with equal ends.
* r(α) ≤ r for every α > 0: the ball contains a cost under which the expert is optimal. The value
  is 0, and imitation is the answer. `r(α)` does not change any more below some small α.
* Otherwise r(α) = r has a solution. It is found by a safeguarded secant method on log r over
  log α. An error of δ in log α costs O(δ²) in either bound, so few solves are needed.

`NearPrior` has the box [-1, 1], a ball has none. Dividing costs by M = max|ĉ| + r makes the box
slack: R(c) + α‖c - ĉ‖² = M (R(c') + αM‖c' - ĉ'‖²) for c = Mc', ĉ = Mĉ'. Every point that is found
is brought into the ball and judged there (`Incumbent`). A large α hides the last digits of R(c), so
the best answers to the occupancies that were found are judged as well (`polish`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rlfd_gym.beliefs import Ball, Intervals, NearPrior
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, polish

MAX_SOLVES = 40
SMALLEST = 1e-12  # of α, relative to its upper bound: below, r(α) no longer changes


def improve(best: Incumbent, belief: Ball, promise: Promise, solve: Callable[[RLfDProblem, float], Incumbent]) -> int:
    """Improve `best` until it keeps the promise.

    `solve` solves a problem with another belief. Returns how many of these were solved.
    """
    problem, prior, radius, size = best.problem, belief.prior, belief.radius, belief.largest or 1.0
    plan = problem.mdp.optimal(prior)
    best.offer(prior, plan.value, problem.expert)
    best.offer(prior, plan.value, plan.occupancy)
    if best.keeps(promise):
        return 0
    if radius <= promise(best.upper, best.lower):
        fixed = solve(problem.with_belief(Intervals(prior / size, prior / size)), best.deadline)
        best.offer(prior, size * fixed.value, fixed.occupancy)
        if radius == 0 or best.keeps(promise):
            return 1
    high = np.sqrt(0.5) / radius  # r(high) ≤ radius
    low = SMALLEST * high
    alpha, count = 0.1 * high, 0
    known: list[tuple[float, float]] = []  # (log α, log r(α)), the last two
    while count < MAX_SOLVES and not best.out_of_time():
        count += 1
        near = solve(problem.with_belief(NearPrior(prior / size, alpha * size)), best.deadline)
        cost = size * near.cost
        best.offer(cost, size * near.value, near.occupancy)
        if not best.keeps(promise):
            polish(best)
        if best.keeps(promise):
            break
        # Where α is too small the cost is too far away.
        distance = float(np.linalg.norm(cost - prior))
        if distance > radius:
            low = alpha
        else:
            high = alpha
        known = [*known[-1:], (np.log(alpha), np.log(max(distance, 1e-300) / radius))]
        alpha = _next(known, low, high)
    return count


def _next(known: list[tuple[float, float]], low: float, high: float) -> float:
    """Return the next α to try, by the secant of log r(α) - log r, or bisection where that fails.

    Bisection goes down by a factor of 100 at most, because `low` may be far below. From a single
    point on, log r(α) is taken to fall with slope -1, as it does for large α.
    """
    bottom, top = np.log(low), np.log(high)
    point, above = known[-1]
    slope = -1.0
    if len(known) == 2 and known[0][0] != point:
        slope = (above - known[0][1]) / (point - known[0][0])
    step = point - above / slope if slope < 0 else np.inf
    margin = 0.01 * (top - bottom)
    if not bottom + margin < step < top - margin:
        step = max(0.5 * (bottom + top), top - np.log(100.0))
    return float(np.exp(step))
