"""Project the prior on the costs that make the expert optimal (IRL-IO_ĉ of the paper).

    min over c, u ∈ the boxes   ‖c - ĉ‖²    subject to   c - Tγᵀu ≥ 0,   <μ_E, c - Tγᵀu> = 0

This program always has a solution: under a constant cost every expert is optimal. If the expert is
far from optimal under every cost near the prior, the projection drifts towards a constant cost. The
costs that explain the expert form a convex cone that contains the constants. While the box is not
active, Pythagoras therefore holds,

    var c + ‖c - ĉ‖²/n = var ĉ,

so that var c / var ĉ is the share of the prior's variation that survived.

**Bounds.** `upper` is ‖c - ĉ‖² of the returned cost, which satisfies the constraints up to rounding,
and

    lower = Σᵢ min over |c'| ≤ 1 of ((c' - ĉᵢ)² - νᵢ c') - ‖Tγ ν‖₁

is a lower bound for every ν that is nonnegative where the expert has no mass: subtract
<ν, c - Tγᵀu>, which is nonnegative for feasible points, and minimise over the boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._programs import solve_qp
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import warn_about_gap
from rlfd_gym.solvers.incumbent import GAP
from rlfd_gym.solvers.projection_newton import Projection, project
from rlfd_gym.solvers.qp import factorisation_work

SUPPORT = 1e-12  # mass below which the expert does not count as having taken an action
NOTHING = 4e-9  # a spread this small may be the error of the four forward solves
QP_PAIRS, QP_WORK = 2_000, 1e7  # where the program takes a second
ACCURACY = 1e-4  # the gap that "matrix-free" promises, as a share of what can change
TELLING = 0.01  # share of the prior's spread between policies below which `project_prior` warns


def project_prior(mdp: TabularMDP, expert: ArrayLike, prior: ArrayLike, method: str = "auto") -> Solution:
    """Find the cost nearest to the prior under which the expert is optimal (IRL-IO_ĉ).

    There always is one, because under a constant cost every expert is optimal. `stats` says how
    much of the prior is left in it:

    * `"surviving_variation"`: the variance of the learned cost over that of the prior (clipped to
      [-1, 1]): the share of the prior's variation that survived, between 0 and 1, which does not
      depend on scale and shift. It is `nan` for a constant prior.
    * `"surviving_spread"`: max_π ρ_c - min_π ρ_c relative to the same difference under the prior,
      which says how far apart policies still are under the learned cost. (A cost Tγᵀu varies from
      pair to pair and yet tells no policies apart.) Below 1% there is a `RuntimeWarning`.
    * `"regret"`: <μ_E, q> - min q ≥ 0 with q = c - Tγᵀu, by how much the expert may fail to be
      optimal. Where Tγ μ_E = ν₀, it is rounding only.

    The bounds are those of ‖c - ĉ‖², see the module. The returned occupancy is the expert's own;
    where it has no mass, the policy plans with the cost.

    `method` is "qp" (by PIQP, to 1e-6), "matrix-free" (`rlfd_gym.solvers.projection_newton`, to
    1e-4 of the part of the distance that can change) or "auto", which takes "qp" where that is a
    matter of a second.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> solution = project_prior(problem.mdp, problem.expert, problem.prior)
        >>> 0 < solution.stats["surviving_variation"] < 1
        True
    """
    problem = RLfDProblem(mdp, expert)
    guess = mdp.pairs(prior, "prior")
    best = Projection(mdp, guess, problem.expert > SUPPORT)
    _checks.one_of("method", method, ("auto", "qp", "matrix-free"))
    promise = _promise(guess)
    if method == "qp" or (method == "auto" and mdp.n_pairs <= QP_PAIRS and factorisation_work(mdp) <= QP_WORK):
        *point, iterations = _projection(mdp, guess, best.taken)
        best.offer(*point)
        goal = GAP * max(min(1.0, float(np.abs(guess).max()) ** 2), best.upper)
    else:
        iterations = project(best, promise)
        goal = promise(best.upper)
    cost, value, upper = best.cost, best.value, best.upper

    # What is left of the prior.
    slack = cost - mdp.flow_transpose(value)
    spread, prior_spread = policy_spread(mdp, cost), policy_spread(mdp, np.clip(guess, -1.0, 1.0))
    variance = float(np.var(np.clip(guess, -1.0, 1.0)))
    solution = Solution(
        policy=planned_policy(mdp, problem.expert, cost, SUPPORT),
        occupancy=problem.expert,
        cost=cost,
        value=value,
        upper=upper,
        lower=min(best.lower, upper),
        method="irl-io",
        n_iterations=iterations,
        stats={
            "surviving_variation": float(np.var(cost)) / variance if variance > 0 else float("nan"),
            "surviving_spread": spread / prior_spread if prior_spread > NOTHING else float("nan"),
            "regret": dot(problem.expert, slack) - float(slack.min()),
        },
    )
    warn_about_gap(solution, goal)
    if spread <= max(TELLING * prior_spread, NOTHING):
        warn(
            f"the projected cost tells almost no policies apart: under it the best and the worst policy differ by "
            f"{spread:.2g}, under the prior by {prior_spread:.2g}. The expert is far from optimal for any cost "
            f"near the prior; solve_exact with alpha > 0 lets the expert be suboptimal",
            RuntimeWarning,
            stacklevel=2,
        )
    return solution


def _promise(prior: FloatArray) -> Callable[[float], float]:
    """Return the gap that "matrix-free" promises, as a function of the upper bound.

    Every cost in the box is at least as far from the prior as the prior clipped to it, and a
    constant cost is no farther than what follows.
    """
    inside = np.clip(prior, -1.0, 1.0)
    constant, farthest = float(np.sum((inside - prior) ** 2)), float(np.sum((inside.mean() - prior) ** 2))
    least = max(GAP * (farthest - constant), 1e-3 * GAP * constant, 1e-12 * float(np.abs(prior).max()) ** 2)
    return lambda upper: max(ACCURACY * (upper - constant), least)


def _projection(mdp: TabularMDP, prior: FloatArray, taken: Any) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve IRL-IO_ĉ and return (c, u, multiplier of q = c - Tγᵀu, steps).

    The constraints are q = 0 on the pairs that the expert takes and q ≥ 0 on the others.
    """
    n = mdp.n_pairs
    scale = float(np.abs(prior).max()) or 1.0  # all but the box is homogeneous: solve at the scale of the prior
    hessian = np.concatenate([np.full(n, 2.0), np.zeros(mdp.n_states)])
    gradient = np.concatenate([-2.0 * prior / scale, np.zeros(mdp.n_states)])
    slack = sp.csr_array(sp.block_array([[sp.eye_array(n), -mdp.flow_matrix().T]]))
    others = np.flatnonzero(~taken)
    box = np.full(hessian.size, 1.0 / scale)
    result = solve_qp(
        hessian, gradient, slack[np.flatnonzero(taken)], slack[others], np.zeros(others.size), None, box, 1e-10
    )
    multiplier = np.zeros(n)
    multiplier[taken] = -result.y
    multiplier[others] = result.z[: others.size]
    return scale * result.x[:n], scale * result.x[n:], scale * multiplier, result.n_iterations


def policy_spread(mdp: TabularMDP, cost: FloatArray) -> float:
    """Return max_π ρ_c - min_π ρ_c."""
    return max(0.0, -mdp.optimal(-cost).expected_cost - mdp.optimal(cost).expected_cost)
