r"""The most likely cost if the expert is an agent of rationality β: RLfD_α with an entropy bonus.

The soft policy of a cost c (`rlfd_gym.mdp.soft`) explains N decisions of the expert with the
negative log-likelihood -N <μ_E, log π_c>. A Gaussian prior of mean ĉ and spread σ adds
‖c - ĉ‖²/2σ². Divided by βN, what is minimised over the box [-1, 1]ⁿ is

    f(c) = α ‖c - ĉ‖² - <μ_E, log π_c>/β = α ‖c - ĉ‖² + <μ_E, c> - <Tγ μ_E, u_c>,     α = 1/(2σ²βN).

For the occupancy of a policy, Tγ μ_E = ν₀ and the last term is ρ^β_c. An occupancy that was
counted in samples starts where Tγ μ_E says, and ν₀ in its place would not do: what the sample's
flow lacks by chance would be explained by costs, at "likelihoods" above one.

The gradient is 2α(c - ĉ) + μ_E - μ, where μ is the occupancy of π_c from the start Tγ μ_E, and the
Hessian is 2αI + β Gᵀ diag(μ) G. So f is **convex if Tγ μ_E ≥ 0**, as it is for the occupancy of a
policy. Of a count some entries of Tγ μ_E are negative as a rule. Then a local minimum
is found, and the Hessian is replaced by the expected one, with ν_E(s) π_c(a|s) for μ (Fisher's
information, which is what Laplace's approximation wants, too).

**Certificate.** The soft cost is a minimum, <Tγ μ_E, u_c> = min over μ ∈ F of <μ, c> - H(μ)/β,
where F are the occupancies from that start and H(μ) = -<μ, log π_μ> is the entropy. So for convex f

    min over c of f   =   max over μ ∈ F of   H(μ)/β + min over c of α‖c - ĉ‖² + <μ_E - μ, c>,

whose inner minimum is separable: c = ĉ - (μ_E - μ)/2α, clipped to the box. Every policy gives a
lower bound, in particular the soft policy of the c at hand, for which this bound is the one of
strong convexity. Without the entropy this is the dual of RLfD_α. As 0 ≤ H ≤ log A, the optimum
exceeds that of RLfD_α by log A/β at most. Where f is not convex, the lower bound is H(μ_E)/β only:
no policy explains the expert better than its own.

**The solver.** Up to `NEWTON_PAIRS` pairs it is a projected Newton method. Its steps solve the
quadratic model over the box by an active set, and are shortened until f falls. For large β the
Hessian changes abruptly, and β is raised to its value step by step. For more pairs L-BFGS-B takes
over, whose accuracy is what the certificate says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray
from scipy.optimize import minimize

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.soft import SoftPlan, curvature, dense_transitions, solve_soft
from rlfd_gym.mdp.tables import TabularMDP

GAP = 1e-9  # at which Newton's method stops
ROUGH_GAP = 1e-6  # at which a β on the way is left
NEWTON_PAIRS = 1500  # up to here Hessians are formed
NEWTON_STEPS = 100
ROUNDING = 1e-11  # of a start, divided by 1-γ: what is nearer to ν₀ is ν₀
LBFGS_STEPS = 2000
ACTIVE_SETS = 20
GENTLE = 20.0  # the β to begin with
RISE = 4.0  # the ratio between one β and the next


@dataclass(frozen=True, eq=False)
class SoftProblem:
    """What is shown and believed: the tables, μ_E and ĉ, for fits at several α and β.

    Attributes:
        mdp: the tables.
        expert: μ_E, over pairs.
        prior: ĉ, over pairs.
        start: Tγ μ_E, over states.
        convex: whether f is convex, because no entry of `start` is negative.
        dense: the transitions in the form that soft plans are computed with.
    """

    mdp: TabularMDP
    expert: FloatArray = field(repr=False)
    prior: FloatArray = field(repr=False)
    start: FloatArray = field(repr=False)
    convex: bool
    dense: FloatArray | None = field(repr=False)

    @classmethod
    def of(cls, mdp: TabularMDP, expert: FloatArray, prior: FloatArray) -> SoftProblem:
        """Return the problem of checked vectors over pairs."""
        start = mdp.flow(expert)
        if np.abs(start - mdp.initial).max() <= ROUNDING / (1 - mdp.discount):
            start = mdp.initial
        return cls(mdp, expert, prior, start, bool(start.min() >= 0), dense_transitions(mdp))

    def plan(self, cost: FloatArray, beta: float, near: SoftPlan | None = None) -> SoftPlan:
        """Return the soft plan for a cost, starting from one for a near cost."""
        value = self.mdp.min_by_state(cost) if near is None else near.value
        return solve_soft(self.mdp, cost, beta, value / (1 - self.mdp.discount), dense=self.dense)

    @cached_property
    def entropy(self) -> float:
        """H(μ_E), which no policy's -<μ_E, log π> is below."""
        policy = self.mdp.policy_of(self.expert)
        seen = self.expert > 0
        return -float(self.expert[seen] @ np.log(policy[seen]))


@dataclass(frozen=True, eq=False)
class MapPoint:
    """A cost in the box, and how near to the minimum of f it is.

    Attributes:
        cost: c.
        plan: the soft plan for it.
        occupancy: that of its policy from the expert's start.
        alpha: the α of f; β is `plan.rationality`.
        upper: f(c).
        lower: a lower bound on the minimum of f.
        n_iterations: steps taken, of Newton's method or of L-BFGS-B.
    """

    cost: FloatArray = field(repr=False)
    plan: SoftPlan = field(repr=False)
    occupancy: FloatArray = field(repr=False)
    alpha: float
    upper: float
    lower: float
    n_iterations: int = 0

    @property
    def gap(self) -> float:
        """upper - lower, which bounds how far f(c) is from its minimum."""
        return self.upper - self.lower


def soft_map(
    problem: SoftProblem, beta: float, alpha: float, start: MapPoint | None = None, goal: float = GAP
) -> MapPoint:
    """Return the minimiser of f with its certificate.

    `start` is a minimiser for a near β and α; from there β need not be raised step by step.
    `goal` is the gap to stop at, or the decrease that is left to expect if f is not convex.
    """
    at = np.clip(problem.prior, -1.0, 1.0) if start is None else start.cost
    near = None if start is None else start.plan
    if problem.mdp.n_pairs > NEWTON_PAIRS:
        return _lbfgs(problem, beta, alpha, at)
    steps, point = 0, evaluate(problem, at, beta, alpha, near)
    for step in _rising(beta) if start is None else (beta,):
        if step != point.plan.rationality:
            point = evaluate(problem, point.cost, step, alpha, point.plan)
        point = _newton(problem, point, goal if step == beta else max(goal, ROUGH_GAP))
        steps += point.n_iterations
    return replace(point, n_iterations=steps)


def evaluate(
    problem: SoftProblem, cost: FloatArray, beta: float, alpha: float, near: SoftPlan | None = None
) -> MapPoint:
    """Return a cost of the box with f(c) and the lower bound that its soft policy proves."""
    plan = problem.plan(cost, beta, near)
    away, mu = cost - problem.prior, plan.occupancy_from(problem.start)
    rounding = plan.value_error * float(np.abs(problem.start).sum())
    upper = alpha * float(away @ away) + float(problem.expert @ cost) - float(problem.start @ plan.value) + rounding
    lower = problem.entropy / beta
    if problem.convex:
        lower = max(lower, _dual_value(problem, plan, mu, alpha))
    return MapPoint(cost, plan, mu, alpha, upper, lower)


def _dual_value(problem: SoftProblem, plan: SoftPlan, mu: FloatArray, alpha: float) -> float:
    """Return the dual value of a plan's policy, a lower bound on f whatever cost the plan is for."""
    slope = problem.expert - mu
    best = np.clip(problem.prior - slope / (2 * alpha), -1.0, 1.0)
    away = best - problem.prior
    return -float(mu @ plan.log_policy) / plan.rationality + alpha * float(away @ away) + float(slope @ best)


def gradient(problem: SoftProblem, point: MapPoint) -> FloatArray:
    """Return the gradient of f at a point."""
    return 2 * point.alpha * (point.cost - problem.prior) + problem.expert - point.occupancy


def information(problem: SoftProblem, point: MapPoint) -> FloatArray:
    """Return the Hessian of -<μ_E, log π_c>/β at a point, dense; if f is not convex, the expected one."""
    weights = point.occupancy
    if not problem.convex:
        weights = problem.mdp.sum_by_state(problem.expert)[problem.mdp.pair_states] * point.plan.policy
    return point.plan.rationality * curvature(point.plan, problem.dense, weights)


def hessian(problem: SoftProblem, point: MapPoint) -> FloatArray:
    """Return the Hessian of f at a point, dense; if f is not convex, the expected one."""
    matrix = information(problem, point)
    matrix[np.diag_indices_from(matrix)] += 2 * point.alpha
    return matrix


def _rising(beta: float) -> Iterator[float]:
    """Yield rationalities that lead up to β."""
    step = GENTLE
    while step * RISE <= beta:
        yield step
        step *= RISE
    yield beta


def _newton(problem: SoftProblem, point: MapPoint, goal: float) -> MapPoint:
    """Return the minimiser by Newton's method in the box, from a point."""
    steps = 0
    while point.gap > goal and steps < NEWTON_STEPS:
        slope = gradient(problem, point)
        direction = _box_step(hessian(problem, point), slope, point.cost)
        descent, length = float(slope @ direction), 1.0
        if not problem.convex and -descent <= goal:
            break
        while True:
            cost = np.clip(point.cost + length * direction, -1.0, 1.0)
            trial = evaluate(problem, cost, point.plan.rationality, point.alpha, point.plan)
            if trial.upper <= point.upper + 1e-4 * length * descent:
                break
            length /= 2
            if length < 1e-10:  # rounding hides what is left to gain
                return replace(point, n_iterations=steps)
        # Lower bounds stay valid: keep the best one.
        point, steps = replace(trial, lower=max(trial.lower, point.lower)), steps + 1
    return replace(point, n_iterations=steps)


def _box_step(matrix: FloatArray, slope: FloatArray, cost: FloatArray) -> FloatArray:
    """Return d that nearly minimises <g, d> + dᵀHd/2 with c + d in the box.

    Entries are fixed at a bound as soon as the step would cross it, and freed where the model wants
    them back. The best step along the way is returned, so that it is always one of descent.
    """
    low, high = -1.0 - cost, 1.0 - cost
    fixed: NDArray[np.bool_] = ((low >= 0) & (slope > 0)) | ((high <= 0) & (slope < 0))
    step = np.zeros_like(cost)
    best, least = step, 0.0
    for _ in range(ACTIVE_SETS):
        free = np.flatnonzero(~fixed)
        step = step.copy()
        if free.size:
            held = matrix[np.ix_(free, np.flatnonzero(fixed))] @ step[fixed] if fixed.any() else 0.0
            factors = la.cho_factor(matrix[np.ix_(free, free)], check_finite=False)
            step[free] = -la.cho_solve(factors, slope[free] + held, check_finite=False)
        crossing = (step < low) | (step > high)
        step = np.clip(step, low, high)
        model = matrix @ step
        value = float(slope @ step + step @ model / 2)
        if value < least:
            best, least = step, value
        pull = slope + model
        wanted = fixed & (((step <= low) & (pull < 0)) | ((step >= high) & (pull > 0)))
        if not crossing.any() and not wanted.any():
            break
        fixed = (fixed & ~wanted) | crossing
    return best if least < 0 else np.clip(-slope / np.diag(matrix), low, high) * 0.5


def _lbfgs(problem: SoftProblem, beta: float, alpha: float, cost: FloatArray) -> MapPoint:
    """Return the minimiser by L-BFGS-B."""
    latest: list[SoftPlan] = []

    def objective(c: FloatArray) -> tuple[float, FloatArray]:
        point = evaluate(problem, c, beta, alpha, latest[-1] if latest else None)
        latest[:] = [point.plan]
        return point.upper, gradient(problem, point)

    options = {"maxiter": LBFGS_STEPS, "maxfun": 2 * LBFGS_STEPS, "ftol": 0.0, "gtol": 1e-9, "maxcor": 30}
    bounds = [(-1.0, 1.0)] * len(cost)
    result = minimize(objective, cost, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    point = evaluate(problem, np.clip(result.x, -1.0, 1.0), beta, alpha, latest[-1])
    return replace(point, n_iterations=int(result.nit))
