r"""Exact solutions of the learning problem for every belief, each with the bounds that prove it.

| belief | method |
|---|---|
| `NearPrior`, "l2" | "qp" (a factorised interior point method) or "matrix-free" |
| `NearPrior`, "l1" | "lp", or where that is slow "matrix-free" |
| `Intervals` | "lp", or where that is slow "matrix-free" |
| `Prices`, `Hull` | "cutting-planes", or "qp" if one cannot plan from the expert's own start |
| `Ball` | "multiplier": some problems with the belief `NearPrior` |

**Promises.** "matrix-free" (see `rlfd_gym.solvers.matrix_free`) closes the duality gap to 1% of the
part of the value that can change. "qp" and "lp" close it to 1e-6, relative to that part where it
exceeds one, and to 1% of it where that is less. `rlfd_gym.solvers.incumbent` says what can change.
If a promise was not kept, a `RuntimeWarning` names the gap. That happens at a `time_limit`, and
where γ is so near to one (within 1e-7) that rounding stops every method.

**The policy** is that of the occupancy. In states without mass, up to the gap that was promised, it
takes the actions that are optimal for the learned cost; see `rlfd_gym.mdp.reading`.

**"auto"** predicts the work of the factorisation from the transitions: k² multiplications for a
pair with k entries in its row, and the squared profile of Tγ Tγᵀ in reverse Cuthill-McKee order, a
crude bound on the fill-in. Grids fill in little; random graphs with a few thousand states are
nearly dense. If the prediction is a matter of seconds and there are at most `QP_PAIRS` pairs
(`LP_PAIRS` for linear programs, which also may need `LP_WORK` only), the program is solved.
Otherwise the matrix-free method is used, whose own parts choose by the work that they have done. If
the one chosen does not keep its promise, the other continues where that is affordable, and `method`
names both.

**α = 0.** The lower bound of μ is -‖μ_E - μ‖₁ - ‖Tγ(μ_E - μ)‖₁, so μ = μ_E is the only optimal
occupancy, and every cost under which the expert is optimal is as good as another: all have the
value 0. "qp", and so "auto" on problems that are quick, solves the linear program. As an interior
point method it returns a cost from the middle of the set, which tells the expert's actions from
others as clearly as the box allows. "matrix-free", and "auto" on all other problems, return the
constant cost nearest to the prior, which is certainly optimal, at any size, and of no further use.
Of all the costs that explain the expert, `project_prior` finds the one nearest to the prior, the
limit of the solutions as α → 0.

**`regulariser="l1"`** makes the problem a linear program ("lp", by HiGHS, see
`rlfd_gym.solvers.lp`), whose solution is a vertex and closes the gap to rounding. That is a matter
of seconds for a thousand pairs that lead anywhere, or ten thousand on a line. "matrix-free"
(`rlfd_gym.solvers.sparse_point`) is an interior point method for the same program, and sets costs
that come near the prior to it as far as its promise allows: 50,000 pairs take about 2 s on all
kinds of MDPs. At α = 0 the regularisers coincide and "auto" does what it does for "l2".
"""

from __future__ import annotations

import math
import time

from rlfd_gym import _checks
from rlfd_gym._warnings import warn
from rlfd_gym.beliefs import Ball, Belief, Hull, Intervals, NearPrior, Prices
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.problem.guarantee import guarantee_at
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.protocol import Point
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers import ball, lp, matrix_free, prices, qp, sparse_point
from rlfd_gym.solvers.incumbent import Incumbent, Promise, imitate, to_a_percent, to_rounding

METHODS = {
    "NearPrior with norm l2": ("auto", "qp", "matrix-free"),
    "NearPrior with norm l1": ("auto", "lp", "matrix-free"),
    "Intervals": ("auto", "lp", "matrix-free"),
    "Prices": ("auto", "cutting-planes", "qp"),
    "Hull": ("auto", "cutting-planes", "qp"),
    "Ball": ("auto", "multiplier"),
}
QP_PAIRS = 100_000
LP_PAIRS, LP_WORK = 20_000, 1e7  # up to here a linear program takes seconds
QUICK_WORK = 5e8  # multiplications of one factorisation: about 2 s for the 20 that a solve needs
AFFORDABLE_WORK = 1e10  # a minute or two: where the matrix-free method fails


def solve_exact(problem: RLfDProblem, method: str = "auto", *, time_limit: float | None = None) -> Solution:
    """Solve the learning problem and prove the solution by bounds.

    Args:
        problem: the learning problem, with any belief of `rlfd_gym.beliefs`. The expert may be an
            occupancy or an estimate of one.
        method: "auto" chooses by the belief and the structure of the transitions, see the module's
            docstring, also for α = 0. For `NearPrior` the choice is between "qp" (to 1e-6) and
            "matrix-free" (to 1% of the value; "first-order" is its name in version 0.1), or with
            `norm="l1"` "lp" (to 1e-6) and "matrix-free"; for `Intervals` the same two; for
            `Prices` and `Hull` between "cutting-planes" and "qp".
        time_limit: a number of seconds, after which the best bounds found so far are returned.
            A program that takes less than about half a second is finished nevertheless, and so is
            a step of the matrix-free method (a few tenths of a second at 6,000 pairs) and the
            compilation of its kernels (seconds, the first time on a machine).

    Returns:
        A solution whose `method` says what was used, and whose `guarantee` says by how much it is
        better than the expert at least. `n_iterations` counts interior point steps ("qp", "lp"),
        matrix-vector products and policies ("matrix-free"), forward problems ("cutting-planes") or
        problems with the belief `NearPrior` ("multiplier"). `finished` is False if the time
        limit came before the promise was kept; the programs have no bounds on the way, so those
        returned then may be just what imitating the expert gives.

    Raises:
        KeyboardInterrupt: on Ctrl-C, within a second.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> solution = solve_exact(examples.inventory(alpha=0.1))
        >>> solution.method, solution.duality_gap < 1e-6
        ('exact: qp', True)
    """
    belief = _checks.instance("problem", problem, RLfDProblem).belief
    method = "matrix-free" if isinstance(method, str) and method == "first-order" else method
    name = _kind(belief)
    _checks.one_of(f"for the belief {name}, method", method, METHODS[name])
    limit = None if time_limit is None else _checks.number("time_limit", time_limit, 0.0)
    deadline = math.inf if limit is None else time.monotonic() + limit
    if isinstance(belief, (Prices, Hull)):
        point, used, iterations, promise = _solve_few(problem, belief, method, deadline)
    else:
        best = Incumbent(problem, deadline)
        used, iterations, promise = _solve(best, method)
        if best.out_of_time() and not best.keeps(promise):
            imitate(best)  # at once, and maybe better than what there is
        point = Point(best.cost, best.value, best.occupancy)
    upper, lower = problem.bounds(*point)
    cost = belief.cost(point.x)
    policy = planned_policy(
        problem.mdp, point.occupancy, cost, _negligible(upper - lower, promise(upper, lower), belief)
    )
    solution = Solution(
        policy=policy,
        occupancy=point.occupancy,
        cost=cost,
        mixture=point.x if isinstance(belief, (Prices, Hull)) else None,
        value=point.value,
        upper=upper,
        lower=lower,
        method=f"exact: {used}",
        n_iterations=iterations,
        guarantee=guarantee_at(problem, point, upper, lower, policy),
        finished=is_kept(upper - lower, promise(upper, lower)) or time.monotonic() < deadline,
    )
    warn_about_gap(solution, promise(upper, lower))
    return solution


def _kind(belief: Belief) -> str:
    """Return the name of a belief in `METHODS`, or raise an error if it has none."""
    name = type(belief).__name__
    if isinstance(belief, NearPrior):
        return f"{name} with norm {belief.norm}"
    if name not in METHODS:
        raise TypeError(f"solve_exact has no method for the belief {name}; it has methods for {', '.join(METHODS)}")
    return name


def _solve_few(
    problem: RLfDProblem, belief: Prices | Hull, method: str, deadline: float
) -> tuple[Point, str, int, Promise]:
    """Solve a problem whose cost depends on a few numbers."""
    quick = problem.n_pairs <= QP_PAIRS
    promise = (to_rounding if quick else to_a_percent)(problem)
    if method == "qp" or (method == "auto" and quick and not prices.has_start(problem)):
        point, steps = prices.one_program(problem, belief, deadline)
        return point, "qp", steps, to_rounding(problem)
    point, count = prices.cutting_planes(problem, belief, promise, deadline)
    return point, "cutting planes", count, promise


def _solve(best: Incumbent, method: str) -> tuple[str, int, Promise]:
    """Improve `best` by the given method, or for "auto" by one chosen by structure.

    Returns the name of what was used, its number of iterations and its promise.
    """
    problem = best.problem
    rounding, percent = to_rounding(problem), to_a_percent(problem)
    if isinstance(problem.belief, Ball):
        promise = rounding if problem.n_pairs <= QP_PAIRS else percent
        return "multiplier", ball.improve(best, problem.belief, promise, _solve_near), promise
    if method in ("qp", "lp"):
        return method, (qp if method == "qp" else lp).improve(best), rounding
    work = math.inf if method == "matrix-free" else qp.factorisation_work(problem.mdp)
    sparse = problem.regulariser == "l1" and problem.alpha > 0
    without_program = sparse_point.improve if sparse else matrix_free.improve
    if sparse or isinstance(problem.belief, Intervals):
        name, program, most, quickest = "lp", lp.improve, LP_PAIRS, LP_WORK
    else:
        name, program, most, quickest = "qp", qp.improve, QP_PAIRS, QUICK_WORK
    quick = problem.n_pairs <= most and work <= quickest
    if name == "qp" and problem.alpha == 0 and not quick:
        imitate(best)
        return "closed form", 0, percent
    if quick:
        iterations = program(best)
        if best.keeps(rounding) or (name == "qp" and problem.alpha == 0) or best.out_of_time():
            return name, iterations, rounding
        return f"{name}, then matrix-free", iterations + without_program(best, rounding), rounding
    products = without_program(best, percent)
    if work > AFFORDABLE_WORK or problem.n_pairs > QP_PAIRS or best.keeps(percent) or best.out_of_time():
        return "matrix-free", products, percent
    return f"matrix-free, then {name}", products + program(best), percent


def _solve_near(problem: RLfDProblem, deadline: float) -> Incumbent:
    """Solve a problem with the belief `NearPrior` or `Intervals`, as "auto" does."""
    best = Incumbent(problem, deadline)
    _solve(best, "auto")
    return best


def _negligible(gap: float, goal: float, belief: Belief) -> float:
    """Return the mass that a solution cannot tell from none: its gap, as far as that was promised."""
    return min(max(gap, 0.0), goal) / (belief.largest or 1.0) if math.isfinite(gap) else 0.0


def is_kept(gap: float, goal: float) -> bool:
    """Return whether a gap keeps a promise, up to the rounding of the bounds; `nan` does not."""
    return math.isfinite(gap) and gap <= goal * (1 + 1e-9)


def warn_about_gap(solution: Solution, goal: float) -> None:
    """Warn the caller of the public function if the promise was not kept."""
    if not is_kept(solution.duality_gap, goal):
        late = "" if solution.finished else " because the time was over"
        warn(
            f"{solution.method}: the duality gap is {solution.duality_gap:.2g}, not {goal:.2g} as promised{late}; the "
            f"bounds {solution.lower:.6g} and {solution.upper:.6g} hold nevertheless",
            RuntimeWarning,
            stacklevel=3,
        )
