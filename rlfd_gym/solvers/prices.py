r"""Solve problems whose cost depends on a few numbers, by cutting planes or as one program.

For `Prices` and `Hull` the cost is c(x) = Cx + shift with K numbers x in a polytope X. The problem

    min over x ∈ X   F(x) = Ω(x) + R(c(x)),        R(c) = <μ_E, c> - min over occupancies μ of <μ, c>

is convex, and R∘c is piecewise linear: each occupancy μ_j, with the expert's own start Tγ μ_E, is
a *cut*, because R(c(x)) ≥ <μ_E - μ_j, c(x)> everywhere, with equality where μ_j is optimal.

**Cutting planes.** Repeat: solve the forward problem at x, which gives F(x), an upper bound, and
one more cut; minimise the model Ω(x) + max_j <μ_E - μ_j, c(x)> over X, a program with K + 1
variables whose optimum is a lower bound. Its multipliers λ_j sum to one, and the mixture
μ_A = Σ λ_j μ_j of the planned occupancies proves that bound: it is the belief's inner minimum for
μ_A. One forward solve per cut is all that depends on the size of the MDP. The expert's own
occupancy is the first cut, so no lower bound is negative. An expert estimated from samples may have
negative entries in Tγ μ_E. Without them the cuts are those of a problem nearby, whose solution the
bounds judge as they judge every other.

The minimiser of the model jumps from one end of X to another while there are few cuts. So, once a
point is known, the next x is half-way between the best point and the minimiser of the model
(in-out separation, Ben-Ameur and Neto, 2007). If the cut made there is one that the model already
has, or the minimiser has stayed where it was, the minimiser itself is next.

**One program.** With negative entries in Tγ μ_E the least <μ, c> is no forward problem, and the box
on the value matters. As long as it is not too large, the problem is then solved as

    min over x ∈ X, v, t   Ω(x) + <μ_E, c(x) - Tγᵀv> - t   s.t.   c(x) - Tγᵀv ≥ t,   0 ≤ v ≤ 2M

with the apprentice's occupancy as the multiplier of the first rows (see `rlfd_gym.solvers.qp`), M
the largest cost, and the value u = v - M. Without a penalty it is a linear program, for HiGHS: on
degenerate ones, such as with a single action, the interior point method PIQP may run out of steps.

Both programs are written in y with x = low + (high - low) y, because prices may differ in size.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import OutOfTime, run
from rlfd_gym.beliefs import Hull, Prices
from rlfd_gym.beliefs.program import Program
from rlfd_gym.mdp.occupancy import occupancy_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.protocol import Point
from rlfd_gym.solvers.incumbent import Promise

BALANCED = 1e-9  # rounding: a start with no entry below minus this has no negative entry
MAX_CUTS = 1_000
SAME_CUT = 1e-13  # a cut that raises the model by less, relative to the largest cost, is not new
SAME_POINT = 1e-6  # a minimiser that moves by less, relative to the ranges, has stayed
TOLERANCE = 1e-11  # of the small programs


def has_start(problem: RLfDProblem) -> bool:
    """Return whether the expert's own start Tγ μ_E has no negative entry: one can plan from it."""
    return bool(problem.mdp.flow(problem.expert).min() >= -BALANCED)


def cutting_planes(
    problem: RLfDProblem, belief: Prices | Hull, promise: Promise, deadline: float = np.inf
) -> tuple[Point, int]:
    """Solve a problem by cutting planes until the promise is kept or the deadline has passed.

    Returns the best point and the number of forward problems that were solved.
    """
    mdp, expert, program = problem.mdp, problem.expert, belief.program()
    start = np.maximum(mdp.flow(expert), 0.0)
    start /= start.sum()  # 1 already, unless negative entries were cut off
    model = _Model(program, expert)
    model.add(expert)
    best, upper, count = None, np.inf, 0
    x = target = belief.check(_middle(program))
    while True:
        # The forward problem at x: an upper bound, and a cut.
        count += 1
        cost = belief.cost(x)
        plan = mdp.optimal(cost)
        regret, known = dot(expert, cost) - dot(start, plan.value), model.height(x)
        if best is None or belief.penalty(x) + regret < upper:
            best, upper = Point(x, plan.value, expert), belief.penalty(x) + regret
        model.add(occupancy_of(mdp, plan.policy, source=start))
        # The model with the new cut: a lower bound, and where it is attained.
        before, target = target, model.minimise()
        lower = belief.penalty(target) + model.height(target)
        new = regret - known > SAME_CUT * belief.largest
        stuck = (x is target and not new) or count == MAX_CUTS or time.monotonic() >= deadline
        if stuck or upper - lower <= 0.5 * promise(upper, lower):
            return best._replace(occupancy=model.mixture()), count
        stays = np.all(np.abs(target - before) <= SAME_POINT * (program.high - program.low))
        x = target if stays or not new else belief.check(0.5 * (best.x + target))


def one_program(problem: RLfDProblem, belief: Prices | Hull, deadline: float = np.inf) -> tuple[Point, int]:
    """Solve a problem as one program; return its point and the number of steps.

    If the deadline comes first, the point is the middle of the set with the expert's occupancy.
    """
    mdp, n, n_states, p = problem.mdp, problem.n_pairs, problem.n_states, belief.program()
    width, size = p.high - p.low, belief.largest or 1.0
    # The objective over (y, v, t) with u/M = v + t, divided by M and multiplied by n, as μ is of the order 1/n.
    slope = (p.linear + p.hessian @ p.low + p.matrix.T @ problem.expert) * width
    gradient = n * np.concatenate([slope / size, -mdp.flow(problem.expert), [-1.0]])
    curvature = n / size * p.hessian * np.outer(width, width)
    # c - Tγᵀv - t ≥ 0, in units of M.
    rows = sp.csc_matrix(
        sp.hstack([sp.csr_array(p.matrix * width / size), -mdp.flow_matrix().T, sp.csr_array(-np.ones((n, 1)))])
    )
    least = -(p.shift + p.matrix @ p.low) / size
    equal = sp.csc_matrix(np.hstack([p.equal * width, np.zeros((len(p.equal), n_states + 1))]))
    total = p.total - p.equal @ p.low
    low = np.concatenate([np.zeros(width.size + n_states), [-np.inf]])
    high = np.concatenate([np.ones(width.size), np.full(n_states, 2.0), [np.inf]])
    solve = _by_piqp if belief.alpha > 0 else _by_highs
    program = (curvature, gradient, equal, total, rows, least, low, high)
    try:
        x, mu, steps = run(solve, program, {}, rows.nnz, deadline)
    except OutOfTime:
        return Point(belief.check(_middle(p)), np.zeros(n_states), problem.expert), 0
    value = belief.largest * (np.clip(x[width.size : -1], 0.0, 2.0) - 1.0)
    mu = np.maximum(mu, 0.0)
    return Point(_in_set(p, x[: width.size]), value, mu / mu.sum() if mu.any() else problem.expert), steps


def _by_piqp(
    curvature: FloatArray, gradient: FloatArray, equal: Any, total: FloatArray, rows: Any, least: FloatArray, *box: Any
) -> tuple[FloatArray, FloatArray, int]:
    """Solve the program with a penalty; return the variables, the rows' multipliers and the steps."""
    import piqp  # compiled: loaded only when asked for

    rest = gradient.size - len(curvature)
    hessian = sp.block_diag([curvature, sp.csc_matrix((rest, rest))], format="csc")
    solver = piqp.SparseSolver()
    _tighten(solver, 1e-9)
    some = equal.shape[0] > 0
    solver.setup(hessian, gradient, equal if some else None, total if some else None, rows, least, None, *box)
    solver.solve()  # its verdict is ignored: the bounds say what the result is worth
    return solver.result.x, solver.result.z_l, int(solver.result.info.iter)


def _by_highs(
    curvature: FloatArray, gradient: FloatArray, equal: Any, total: FloatArray, rows: Any, least: FloatArray, *box: Any
) -> tuple[FloatArray, FloatArray, int]:
    """Solve the program without a penalty, by HiGHS."""
    from scipy.optimize import linprog  # slow to load

    accuracy = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    result = linprog(gradient, -rows, -least, equal, total, np.column_stack(box), "highs", options=accuracy)
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program, which has a solution: {result.message}")
    return result.x, -result.ineqlin.marginals, int(result.nit)


@dataclass
class _Model:
    """The cuts so far: the occupancies, and <μ_E - μ_j, c(x)> = heights_j + <slopes_j, x>."""

    program: Program
    expert: FloatArray
    occupancies: list[FloatArray] = field(default_factory=list)
    slopes: list[FloatArray] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    weights: FloatArray = field(default_factory=lambda: np.ones(1))

    def add(self, occupancy: FloatArray) -> None:
        """Add the cut of an occupancy."""
        d = self.expert - occupancy
        self.occupancies.append(occupancy)
        self.slopes.append(self.program.matrix.T @ d)
        self.heights.append(dot(self.program.shift, d))

    def height(self, x: FloatArray) -> float:
        """Return max_j <μ_E - μ_j, c(x)>."""
        return float(np.max(np.array(self.heights) + np.array(self.slopes) @ x))

    def minimise(self) -> FloatArray:
        """Return the minimiser of the model, and keep the multipliers of the cuts."""
        import piqp  # compiled: loaded only when asked for

        p = self.program
        k, width, slopes = p.low.size, p.high - p.low, np.array(self.slopes)
        heights, slopes = np.array(self.heights) + slopes @ p.low, slopes * width
        size = max(float(np.abs(slopes).max()), float(np.abs(heights).max())) or 1.0
        # min ½ yᵀHy + <h, y> + t  subject to  slopes y - t ≤ -heights, all divided by `size`.
        hessian = np.zeros((k + 1, k + 1))
        hessian[:k, :k] = p.hessian * np.outer(width, width) / size
        some = len(p.equal) > 0
        solver = piqp.DenseSolver()
        _tighten(solver, TOLERANCE)
        solver.setup(
            hessian,
            np.append((p.linear + p.hessian @ p.low) * width / size, 1.0),
            np.column_stack([p.equal * width, np.zeros(len(p.equal))]) if some else None,
            p.total - p.equal @ p.low if some else None,
            np.column_stack([slopes / size, -np.ones(len(slopes))]),
            None,
            -heights / size,
            np.append(np.zeros(k), -np.inf),
            np.append(np.ones(k), np.inf),
        )
        solver.solve()
        weights = np.maximum(solver.result.z_u, 0.0)
        self.weights = weights / weights.sum()
        return _in_set(p, solver.result.x[:k])

    def mixture(self) -> FloatArray:
        """Return the mixture of the occupancies by the multipliers of the last model."""
        used = np.flatnonzero(self.weights > 0)
        return np.asarray(sum(self.weights[j] * self.occupancies[j] for j in used))


def _tighten(solver: Any, tolerance: float) -> None:
    """Ask PIQP for an accuracy."""
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = tolerance
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = tolerance


def _in_set(p: Program, y: FloatArray) -> FloatArray:
    """Return x = low + (high - low) y, with rounding removed."""
    x = p.low + (p.high - p.low) * np.clip(y, 0.0, 1.0)
    return x / x.sum() if len(p.equal) else x


def _middle(p: Program) -> FloatArray:
    """Return the middle of the box, or of the simplex."""
    return _in_set(p, np.full(p.low.size, 0.5))
