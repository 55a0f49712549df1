r"""Exact solutions of RLfD_α, each with the bounds that prove it, and the projection of a prior (IRL-IO_ĉ).

**IO-AL_α is a sparse convex quadratic program** in the cost c and the value u,

    min over c ∈ [-1,1]ⁿ, u   α‖c - ĉ‖² + <μ_E, c - Tγᵀu>      subject to   c - Tγᵀu ≥ 0          ("qp", by PIQP)

whose multiplier of row i is the apprentice's occupancy μᵢ. The Hessian is diagonal and each row begins with an
identity block, which the factorisation eliminates first; what remains is a matrix with the pattern of Tγ Tγᵀ, one row
per state. As μᵢ is of the order 1/n, the objective is multiplied by n: otherwise it drowns in the solver's absolute
tolerance.

If the expert is the occupancy of a policy, Tγ μ_E = ν₀ ≥ 0 and |u| ≤ 1 costs nothing. An expert estimated from samples
may have negative entries in Tγ μ_E, and u may leave the box that RLfD_α has. Because Tγᵀ1 = 1, that box amounts to
max u - min u ≤ 2; where this is violated the program is solved once more with 0 ≤ u - low ≤ 2, low one more variable.

**Promises.** "qp" closes the duality gap to `QP_GAP` max(1, upper); "first-order", see `rlfd_gym.first_order`, to 1%
of the value of the problem (or `QP_GAP`, if that is more). A `RuntimeWarning` names the gap where a promise was not
kept.

**"auto"** predicts the work of the factorisation from the transitions:
k² multiplications for a pair with k entries in its row, and the squared profile of Tγ Tγᵀ in reverse Cuthill-McKee
order, a crude bound on the fill-in. Grids fill in little, random graphs with a few thousand states are nearly dense.
Where that says seconds and there are at most `QP_PAIRS` pairs, the program is solved; elsewhere the first-order
method's quick part is tried, and where it stalls, the program if it is affordable, and the slow part if not.

**α = 0.** The lower bound of μ is -‖μ_E - μ‖₁ - ‖Tγ(μ_E - μ)‖₁, so μ = μ_E is the only optimal occupancy, and every
cost under which the expert is optimal is as good as another: all have the value 0. "qp", and so "auto" on problems
that are quick, solves the linear program, and as an interior point method returns a cost from the middle of the set,
which tells the expert's actions from others as clearly as the box allows. "first-order", and "auto" on the rest, return
the constant cost nearest to the prior: optimal for certain, at any size, and of no further use. Of all the costs that
explain the expert, `project_prior` finds the one nearest to the prior, the limit of the solutions as α → 0.

**`regulariser="l1"`** makes it a linear program ("lp", by HiGHS, see `rlfd_gym._linear`), which ends at a vertex and
closes the gap to rounding; the promise is `QP_GAP`, as for "qp". "auto" takes it at any size, since the matrix-free
method knows the quadratic only: on grids 400 pairs take about 20 ms, 40,000 about 4 s and 250,000 about 25 s. At α = 0
the regularisers coincide and "auto" does what it does for "l2".
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import reverse_cuthill_mckee

from rlfd_gym import _checks, _linear, first_order
from rlfd_gym._checks import FloatArray
from rlfd_gym.first_order import Best
from rlfd_gym.mdp import TabularMDP
from rlfd_gym.problem import RLfDProblem
from rlfd_gym.solution import Solution

METHODS = {"l2": ("auto", "qp", "first-order"), "l1": ("auto", "lp")}
QP_GAP = 1e-6
FIRST_ORDER_GAP = 0.01
QP_PAIRS = 100_000
QUICK_WORK = 1.5e9  # multiplications of one factorisation: about 5 s for the 20 that a solve needs
AFFORDABLE_WORK = 1e10  # a minute or two
PREDICTABLE_WORK = 1e8  # above, the prediction itself would take seconds and gigabytes
SUPPORT = 1e-12  # mass below which the expert does not count as having taken an action
NOTHING = 4e-9  # a spread this small may be the error of the four forward solves
TELLING = 0.01  # share of the prior's spread between policies below which `project_prior` warns


def solve_exact(problem: RLfDProblem, method: str = "auto") -> Solution:
    """Solve RLfD_α and prove it.

    Args:
        problem: the learning problem. The expert may be an occupancy or an estimate of one.
        method: "qp" (interior point with factorisations, to 1e-6), "first-order" (matrix-free, to 1% of the value), or
            "auto", which chooses by the structure of the transitions; see the module's docstring, also for α = 0.
            With `regulariser="l1"` there is "lp" (to 1e-6), which "auto" takes, too.

    Returns:
        A solution whose `method` says what was used. `n_iterations` counts the interior point steps of "qp" and "lp",
        or the products with the matrix of "first-order".

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> problem = rlfd_gym.RLfDProblem(env.mdp, expert, prior=env.cost_for(4, 2, 14), alpha=0.1)
        >>> solution = solve_exact(problem)
        >>> solution.method, solution.duality_gap < 1e-6
        ('exact: qp', True)
    """
    if not isinstance(problem, RLfDProblem):
        raise TypeError(f"problem must be an RLfDProblem, got {type(problem).__name__}")
    _checks.one_of(f'with regulariser="{problem.regulariser}", method', method, METHODS[problem.regulariser])
    best = Best(problem, FIRST_ORDER_GAP, QP_GAP)
    if problem.regulariser == "l1" and (method == "lp" or problem.alpha > 0):
        method, iterations = "lp", _linear_program(best)
    elif method == "auto":
        method, iterations = _solve_by_structure(best)
    elif method == "qp":
        iterations = _quadratic_program(best)
    elif problem.alpha == 0:
        method, iterations = "closed form", _imitation(best)
    else:
        iterations = _first_order(best)
    upper, lower = problem.bounds(best.cost, best.value, best.occupancy)
    solution = Solution(
        policy=problem.mdp.policy_of(best.occupancy),
        occupancy=best.occupancy,
        cost=best.cost,
        value=best.value,
        upper=upper,
        lower=lower,
        method=f"exact: {method}",
        n_iterations=iterations,
    )
    _warn_about_gap(solution, best.goal)
    return solution


def project_prior(mdp: TabularMDP, expert: ArrayLike, prior: ArrayLike) -> Solution:
    """The cost nearest to the prior under which the expert is optimal (IRL-IO_ĉ of the paper).

        min over c, u ∈ the boxes   ‖c - ĉ‖²    subject to   c - Tγᵀu ≥ 0,   <μ_E, c - Tγᵀu> = 0

    It always has a solution: under a constant cost every expert is optimal. What happens for an expert who is not
    optimal under anything like the prior is that the projection drifts towards such costs. `details` says how far:

    * `"surviving_variation"`: the variance of the learned cost over that of the prior (cut to the box). The costs that
      explain the expert form a convex cone that contains the constants. While the box is not active, Pythagoras
      therefore holds, var c + ‖c - ĉ‖²/n = var ĉ: this is the share of the prior's variation that survived, between 0
      and 1, and free of scale and shift. `nan` for a constant prior.
    * `"surviving_spread"`: max_π ρ_c - min_π ρ_c relative to the same under the prior: how far apart the learned cost
      still holds policies. (A cost Tγᵀu varies from pair to pair and yet tells no policies apart.) Below 1% a
      `RuntimeWarning` is given.
    * `"regret"`: <μ_E, q> - min q ≥ 0, by how much the expert may fail to be optimal; rounding only, where Tγ μ_E = ν₀.

    The bounds are those of this program: `upper` = ‖c - ĉ‖² of the returned cost, which satisfies the constraints up to
    rounding, and `lower` = Σᵢ min over |c'| ≤ 1 of ((c' - ĉᵢ)² - νᵢ c') - ‖Tγ ν‖₁, a lower bound for every ν that is
    nonnegative where the expert has no mass: subtract <ν, c - Tγᵀu>, which is nonnegative for feasible points, and
    minimise over the boxes. The occupancy returned is the expert's own.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> solution = project_prior(env.mdp, expert, env.cost_for(4, 2, 14))
        >>> 0 < solution.details["surviving_variation"] < 1
        True
    """
    problem = RLfDProblem(mdp, expert)
    guess = _checks.pair_vector("prior", prior, mdp.n_pairs)
    taken = problem.expert > SUPPORT
    cost, value, multiplier, iterations = _projection(mdp, guess, taken)
    cost, value = _explaining(mdp, cost, value, taken)

    upper = float(np.sum((cost - guess) ** 2))
    lower = _projection_bound(mdp, guess, np.where(taken, multiplier, np.maximum(multiplier, 0.0)))
    slack = cost - mdp.flow_transpose(value)
    spread, prior_spread = policy_spread(mdp, cost), policy_spread(mdp, np.clip(guess, -1.0, 1.0))
    variance = float(np.var(np.clip(guess, -1.0, 1.0)))
    solution = Solution(
        policy=mdp.policy_of(problem.expert),
        occupancy=problem.expert,
        cost=cost,
        value=value,
        upper=upper,
        lower=min(lower, upper),
        method="projection of the prior",
        n_iterations=iterations,
        details={
            "surviving_variation": float(np.var(cost)) / variance if variance > 0 else float("nan"),
            "surviving_spread": spread / prior_spread if prior_spread > NOTHING else float("nan"),
            "regret": float(problem.expert @ slack - slack.min()),
        },
    )
    _warn_about_gap(solution, QP_GAP * max(min(1.0, float(np.abs(guess).max()) ** 2), upper))
    if spread <= max(TELLING * prior_spread, NOTHING):
        warnings.warn(
            f"the projected cost tells almost no policies apart: under it the best and the worst policy differ by "
            f"{spread:.2g}, under the prior by {prior_spread:.2g}. The expert is far from optimal for any cost "
            f"near the prior; solve_exact with alpha > 0 lets the expert be suboptimal",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


def _warn_about_gap(solution: Solution, goal: float) -> None:
    """Say so, to the caller of the public function, where the promise was not kept."""
    if solution.duality_gap > goal * (1 + 1e-9):
        warnings.warn(
            f"{solution.method}: the duality gap is {solution.duality_gap:.2g}, not {goal:.2g} as promised; the bounds "
            f"{solution.lower:.6g} and {solution.upper:.6g} hold nevertheless",
            RuntimeWarning,
            stacklevel=3,
        )


def _imitation(best: Best) -> int:
    """α = 0 in closed form: q = 0 because Tγᵀ1 = 1, so upper = 0; and d = 0, so lower = 0."""
    problem = best.problem
    constant = float(np.clip(problem.prior.mean(), -1.0, 1.0))
    best.offer(np.full(problem.mdp.n_pairs, constant), np.full(problem.mdp.n_states, constant), problem.expert)
    return 0


def _first_order(best: Best) -> int:
    """Both parts of the matrix-free method; returns the products with the matrix."""
    products = first_order.newton(best.problem, best)
    if not best.reached:
        products += first_order.interior_point(best.problem, best)
    return products


def _solve_by_structure(best: Best) -> tuple[str, int]:
    """What "auto" does; returns the method that gave the answer and its iterations."""
    problem = best.problem
    work = factorisation_work(problem.mdp)
    if problem.mdp.n_pairs <= QP_PAIRS and work <= QUICK_WORK:
        iterations = _quadratic_program(best)
        if best.reached or problem.alpha == 0:
            return "qp", iterations
        return "qp, then first-order", iterations + _first_order(best)
    if problem.alpha == 0:
        return "closed form", _imitation(best)
    products = first_order.newton(problem, best)
    if best.reached:
        return "first-order", products
    if work <= AFFORDABLE_WORK:
        return "qp", _quadratic_program(best)
    return "first-order", products + first_order.interior_point(problem, best)


def factorisation_work(mdp: TabularMDP) -> float:
    """About how many multiplications an interior point step of the quadratic program takes, within a factor of ten."""
    p = mdp.transitions
    row = np.diff(p.indptr).astype(np.float64) + 1
    by_pairs = 10 * float(row @ row)  # scattered updates, so much slower than those within the factor
    if by_pairs > PREDICTABLE_WORK:
        return by_pairs + mdp.n_states**3 / 3  # the product below would take long: assume the worst
    pattern = sp.csr_array((np.ones(p.nnz, dtype=np.float32), p.indices, p.indptr), shape=p.shape)
    pattern = pattern + sp.csr_array(
        (np.ones(mdp.n_pairs, dtype=np.float32), mdp.pair_states, np.arange(mdp.n_pairs + 1)), shape=p.shape
    )
    graph = sp.coo_matrix(pattern.T @ pattern)
    position = np.empty(mdp.n_states, dtype=np.int64)
    position[reverse_cuthill_mckee(sp.csr_matrix(graph), symmetric_mode=True)] = np.arange(mdp.n_states)
    first = np.arange(mdp.n_states)
    np.minimum.at(first, position[graph.row], position[graph.col])
    profile = (np.arange(mdp.n_states) - first).astype(np.float64)
    return by_pairs + float(profile @ profile)


def _quadratic_program(best: Best) -> int:
    """Improve `best` by PIQP and, if need be, by repairing its points; returns the interior point steps."""
    cost, value, mu, iterations = _io_al(best.problem, spread=False)
    if np.ptp(value) > 2.0 + 1e-7:
        cost, value, mu, iterations = _io_al(best.problem, spread=True)
    # Where the expert never comes, u may be far below -1. Cutting it there keeps c - Tγᵀu ≥ 0; only for an expert
    # estimated from samples can it be better to shift u, which `offer` does with values outside the box.
    if best.problem.alpha == 0:
        mu = best.problem.expert  # known: see the module's docstring
    best.offer(cost, np.clip(value, -1.0, 1.0), mu)
    best.relative, best.absolute = 0.0, QP_GAP * max(1.0, best.upper)
    if best.gap > QP_GAP:
        best.offer(cost, value, mu)
    if best.gap > QP_GAP:
        _polish(best)
    return iterations


def _linear_program(best: Best) -> int:
    """Improve `best` by HiGHS and, if need be, by repairing its point; returns the interior point steps."""
    cost, value, mu, iterations = _linear.linear_program(best.problem)
    best.offer(cost, np.clip(value, -1.0, 1.0), mu)
    best.relative, best.absolute = 0.0, QP_GAP * max(1.0, best.upper)
    if best.gap > QP_GAP:
        _polish(best)
    return iterations


def _polish(best: Best) -> None:
    """Offer μ repaired, the cost that answers it, and the optimal value of either cost, in all combinations."""
    problem = best.problem
    occupancies = [best.occupancy, first_order.repaired(problem, best.occupancy, 1e-14)]
    costs = [best.cost, *(problem.best_cost(mu) for mu in occupancies)]
    for cost in costs:
        value = problem.mdp.optimal(cost).value
        for mu in occupancies:
            best.offer(cost, value, mu)


def _io_al(problem: RLfDProblem, *, spread: bool) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """(c, u, μ times n, steps) of IO-AL_α times n, with 0 ≤ u - low ≤ 2 if `spread` is set."""
    mdp = problem.mdp
    n, n_states, extra = mdp.n_pairs, mdp.n_states, int(spread)
    weight = n * 2 * problem.alpha
    hessian = np.concatenate([np.full(n, weight), np.zeros(n_states + extra)])
    gradient = np.concatenate(
        [n * problem.expert - weight * problem.prior, -n * mdp.flow(problem.expert), np.zeros(extra)]
    )
    rows = [[sp.eye_array(n), -mdp.flow_matrix().T, *[None] * extra]]
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if spread:
        rows.append([None, sp.eye_array(n_states), sp.csr_array(-np.ones((n_states, 1)))])
        lower, upper = np.append(lower, np.zeros(n_states)), np.append(upper, np.full(n_states, 2.0))
    box = np.concatenate([np.ones(n), np.full(n_states + extra, np.inf)])
    result = solve_piqp(hessian, gradient, None, sp.block_array(rows), lower, upper if spread else None, box)
    return result.x[:n].copy(), result.x[n : n + n_states].copy(), result.z_l[:n].copy(), int(result.info.iter)


def _projection(mdp: TabularMDP, prior: FloatArray, taken: Any) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """(c, u, multiplier of c - Tγᵀu, steps) of IRL-IO_ĉ: q = 0 on the pairs that are taken, q ≥ 0 on the others."""
    n = mdp.n_pairs
    scale = float(np.abs(prior).max()) or 1.0  # all but the box is homogeneous: solve at the scale of the prior
    hessian = np.concatenate([np.full(n, 2.0), np.zeros(mdp.n_states)])
    gradient = np.concatenate([-2.0 * prior / scale, np.zeros(mdp.n_states)])
    slack = sp.csr_array(sp.block_array([[sp.eye_array(n), -mdp.flow_matrix().T]]))
    others = np.flatnonzero(~taken)
    box = np.full(hessian.size, 1.0 / scale)
    result = solve_piqp(
        hessian, gradient, slack[np.flatnonzero(taken)], slack[others], np.zeros(others.size), None, box, 1e-10
    )
    multiplier = np.zeros(n)
    multiplier[taken] = -result.y
    multiplier[others] = result.z_l[: others.size]
    return scale * result.x[:n], scale * result.x[n:], scale * multiplier, int(result.info.iter)


def _projection_bound(mdp: TabularMDP, prior: FloatArray, nu: FloatArray) -> float:
    """A lower bound on the squared distance, for every ν that is nonnegative where the expert has no mass."""
    answer = np.clip(prior + nu / 2, -1.0, 1.0)
    return float(np.sum((answer - prior) ** 2 - nu * answer) - np.abs(mdp.flow(nu)).sum())


def solve_piqp(
    hessian: FloatArray,
    gradient: FloatArray,
    equal: Any,
    rows: Any,
    lower: FloatArray,
    upper: FloatArray | None,
    box: FloatArray,
    tolerance: float = 1e-8,
) -> Any:
    """PIQP's result for min ½ x'Hx + g'x, equal x = 0, lower ≤ rows x ≤ upper, |x| ≤ box; H is diagonal."""
    import piqp  # compiled: loaded only when asked for

    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.eps_abs, settings.eps_rel = tolerance, 0.1 * tolerance
    settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = tolerance * gradient.size, 0.1 * tolerance
    some_equal, some_rows = equal is not None and equal.shape[0], rows.shape[0] > 0
    solver.setup(
        sp.csc_matrix(sp.diags_array(hessian)),
        gradient,
        sp.csc_matrix(equal) if some_equal else None,
        np.zeros(equal.shape[0]) if some_equal else None,
        sp.csc_matrix(rows) if some_rows else None,
        lower if some_rows else None,
        upper,
        -box,
        box,
    )
    solver.solve()  # what its verdict is worth shows in the bounds
    return solver.result


def _explaining(mdp: TabularMDP, cost: FloatArray, value: FloatArray, taken: Any) -> tuple[FloatArray, FloatArray]:
    """The constraints of IRL-IO_ĉ made exact: q = 0 where taken, q ≥ 0 elsewhere, then shrunk into the boxes."""
    z = mdp.flow_transpose(value)
    cost = np.where(taken, z, np.maximum(cost, z))
    size = max(1.0, float(np.abs(cost).max()), float(np.abs(value).max()))
    return cost / size, value / size


def policy_spread(mdp: TabularMDP, cost: FloatArray) -> float:
    """max_π ρ_c - min_π ρ_c."""
    return max(0.0, -mdp.optimal(-cost).expected_cost - mdp.optimal(cost).expected_cost)
