r"""Learn from several experts of declared skill: the nearest cost to the prior that fits all of them.

Each expert k has an occupancy μ_k and a budget ξ_k ≥ 0: by how much, per step, it is at most worse
than the optimum under the unknown cost (Poiani, Curti, Metelli & Restelli 2024). The program is

    min over c, u ∈ the boxes   ‖c - ĉ‖²   subject to   q = c - Tγᵀu ≥ 0,   <μ_k, q> ≤ ξ_k for all k.

**One value is enough.** The values with c - Tγᵀu ≥ 0 are those below the optimal value of c, in
every state. So the optimal value makes all <μ_k, q> = <μ_k, c> - <Tγ μ_k, u> as small as they can
be, whatever the start Tγ μ_k ≥ 0 of an expert, and then <μ_k, q> is the regret of the expert k.
One expert with the budget 0 gives IRL-IO_ĉ (`rlfd_gym.solvers.projection`).

**There is always a solution.** Under a constant cost all regrets are 0. Budgets that are too small
cannot be noticed: they make the cost less telling, not the program infeasible.

**Bounds.** `upper` is ‖c - ĉ‖² at a point that satisfies all constraints. For λ ≥ 0, ν ≥ 0 and
m = Σ λ_k μ_k add Σ λ_k(<μ_k, q> - ξ_k) - <ν, q> ≤ 0 and minimise over the boxes:

    lower = Σᵢ min over |c'| ≤ 1 of ((c' - ĉᵢ)² + (m - ν)ᵢ c') - ‖Tγ(m - ν)‖₁ - Σ λ_k ξ_k.

Where an expert with the budget 0 has mass, q = 0, and (m - ν)ᵢ may have any sign.

**The apprentice.** At the optimum Tγν = Tγm, and ν is zero where q is not: ν/Λ with Λ = Σ λ_k is an
occupancy that is optimal for the learned cost. Both together solve RLfD_α for the expert m/Λ, the
mixture of the experts by their multipliers, with α = 1/Λ: the budgets choose the weight of the
prior and whom to listen to. An expert with the budget 0 is itself optimal for the learned cost and
is copied. Where this leaves a state without mass, and if no budget is used up, the policy plans
with the learned cost.

**What is promised.** The costs that fit all experts form a convex set, and the learned cost is the
projection of the prior on it. If the declared budgets are right, the true cost c_true is in this
set (if it is in the box), so

    ‖c - c_true‖² ≤ ‖ĉ - c_true‖² - ‖c - ĉ‖²:

the learned cost is nearer to the truth than the prior by at least what it moved, and each further
expert can only raise what is certain. A policy μ that is optimal for c has, by Cauchy-Schwarz, at
most the regret √2 ‖c - c_true‖ under the truth. If a budget is too small, nothing is promised.

**What it is for.** In the experts' own world nothing is safer than to copy the expert with the least
budget, whose regret is at most that. A cost can be taken to another world: other dynamics or
another start, in which no expert has been (`docs/several_experts.md` has a study).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._programs import solve_qp
from rlfd_gym.mdp.occupancy import check_occupancy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import warn_about_gap
from rlfd_gym.solvers.incumbent import GAP
from rlfd_gym.solvers.projection import SUPPORT
from rlfd_gym.solvers.projection_newton import projection_bound

OPTIMAL = 1e-9  # a budget, relative to the prior's size, that is as good as none
UNUSED = 1e-6  # multipliers of a sum below this, relative to the prior's size: no budget is used up
ROUNDING = 1e-15  # a regret that is rounding only
MASS = 1e-6  # mass below which a state counts as not visited by the apprentice
LOSS = 1e-6  # what the apprentice may cost more than the optimum, relative to the prior's size


def solve_experts(mdp: TabularMDP, experts: Iterable[tuple[ArrayLike, float]], prior: ArrayLike) -> Solution:
    """Find the cost nearest to the prior under which no expert is worse than its budget says.

    See the module's docstring for the program, its bounds and what is promised.

    Args:
        mdp: the environment's tables.
        experts: a pair (occupancy, budget) for each expert. The occupancy is over pairs, exact or
            estimated by `occupancy_from_demonstrations`. The budget is by how much, in cost per
            step, the expert is at most worse than the optimum: 0 for an expert that is optimal.
            A budget below 1e-9 of the prior's largest entry counts as 0.
        prior: ĉ, the guess of the cost over pairs.

    Returns:
        A solution with the cost nearest to the prior, a policy that is optimal for it, and bounds
        on the squared distance of that cost to the prior. `stats` has the experts' `"regrets"`
        under the learned cost, their `"multipliers"` λ (`nan` for a budget of 0), and `"alpha"` =
        1/Λ, the weight of the prior with which `RLfDProblem` would have the same solution (`inf` if
        the prior itself fits all experts, 0 if a budget is 0).

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> mdp, prior, expert = problem.mdp, problem.prior, problem.expert
        >>> newcomer = mdp.occupancy_of(mdp.uniform_policy())
        >>> alone, both = (
        ...     solve_experts(mdp, experts, prior)
        ...     for experts in ([(expert, 0.02)], [(expert, 0.02), (newcomer, 0.2)])
        ... )
        >>> alone.upper < both.upper, both.duality_gap < 1e-6
        (True, True)
        >>> [round(regret, 3) for regret in both.stats["regrets"]]
        [0.02, 0.2]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    occupancies, budgets = _checked(mdp, experts)
    guess = mdp.pairs(prior, "prior")
    size = float(np.abs(guess).max()) or 1.0
    # A constant cost fits everybody, so the nearest one is no further than it from the prior, and nobody's regret is
    # larger than this: larger budgets say no more, and would only hide digits.
    budgets = np.minimum(budgets, 2 * size * (1 + mdp.n_pairs**0.5))
    trusted = budgets <= OPTIMAL * size
    others, taken = occupancies[~trusted], np.asarray((occupancies[trusted] > SUPPORT).any(axis=0))
    cost, value, nu, weights, steps = _program(mdp, guess, others, budgets[~trusted], taken)
    cost, value = _fitting(mdp, cost, value, guess, others, budgets[~trusted], taken)

    # The bounds.
    upper = float(np.sum((cost - guess) ** 2))
    difference = np.where(taken, nu, np.maximum(nu, 0.0)) - weights @ others
    lower = projection_bound(mdp, guess, difference) - float(weights @ budgets[~trusted])

    # The apprentice.
    plan, total, multipliers = mdp.optimal(cost), float(weights.sum()), np.full(len(budgets), np.nan)
    multipliers[~trusted] = weights
    used = total > UNUSED * size
    occupancy, policy = plan.occupancy, plan.policy
    if trusted.any():
        occupancy = occupancies[trusted].mean(axis=0)
        policy = _completed(mdp, occupancy, plan.policy)
    elif used and nu.max() > 0:
        mixture = np.maximum(nu, 0.0) / np.maximum(nu, 0.0).sum()
        completed = _completed(mdp, mixture, plan.policy)
        if mdp.expected_cost(completed, cost) <= plan.expected_cost + LOSS * size:
            occupancy, policy = mixture, completed
    regrets = occupancies @ cost - np.array([mdp.flow(mu) @ plan.value for mu in occupancies])
    solution = Solution(
        policy=policy,
        occupancy=occupancy,
        cost=cost,
        value=value,
        upper=upper,
        lower=min(lower, upper),
        method="several-experts",
        n_iterations=steps,
        stats={
            "regrets": [float(regret) for regret in regrets],
            "multipliers": [float(weight) for weight in multipliers],
            "alpha": 0.0 if trusted.any() else 1.0 / total if used else math.inf,
        },
    )
    warn_about_gap(solution, GAP * max(min(1.0, size**2), upper))
    return solution


def _completed(mdp: TabularMDP, occupancy: FloatArray, plan: FloatArray) -> FloatArray:
    """Return the policy of an occupancy, and that of a plan in states without mass."""
    visited = np.bincount(mdp.pair_states, weights=occupancy, minlength=mdp.n_states) > MASS
    return np.where(visited[mdp.pair_states], mdp.policy_of(occupancy), plan)


def _checked(mdp: TabularMDP, experts: Any) -> tuple[FloatArray, FloatArray]:
    """Return the occupancies, of shape (K, n_pairs), and the budgets."""
    pairs = list(_checks.items("experts", experts))
    if not pairs:
        raise ValueError("experts is empty, expected pairs (occupancy, budget)")
    occupancies, budgets = [], []
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"experts[{number}] must be a pair (occupancy, budget), got {type(pair).__name__}")
        occupancies.append(check_occupancy(mdp, pair[0], f"experts[{number}][0]"))
        budgets.append(_checks.number(f"experts[{number}][1], a budget,", pair[1], 0.0))
    return np.array(occupancies), np.array(budgets)


def _program(
    mdp: TabularMDP, prior: FloatArray, occupancies: FloatArray, budgets: FloatArray, taken: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, int]:
    """Solve the program and return (c, u, ν, λ, steps).

    The constraints are q = 0 on the pairs `taken` by experts with the budget 0, q ≥ 0 on the
    others, and <μ_k, q> ≤ ξ_k for the experts with budgets. The rows of these are multiplied by n,
    because the entries of μ_k are of the order 1/n. All is solved at the scale of the prior.
    """
    scale = float(np.abs(prior).max()) or 1.0
    n, others = mdp.n_pairs, np.flatnonzero(~taken)
    slack = sp.csr_array(sp.block_array([[sp.eye_array(n), -mdp.flow_matrix().T]]))
    hessian = np.concatenate([np.full(n, 2.0), np.zeros(mdp.n_states)])
    gradient = np.concatenate([-2.0 * prior / scale, np.zeros(mdp.n_states)])
    regrets = sp.csr_array(-n * occupancies) @ slack
    rows = sp.vstack([slack[others], regrets]) if len(budgets) else slack[others]
    low = np.concatenate([np.zeros(others.size), -n * budgets / scale])
    box = np.full(n + mdp.n_states, 1.0 / scale)
    result = solve_qp(hessian, gradient, slack[np.flatnonzero(taken)], rows, low, None, box, 1e-10)
    nu = np.zeros(n)
    nu[taken] = -result.y
    nu[others] = result.z[: others.size]
    weights = n * np.maximum(result.z[others.size :], 0.0)
    return scale * result.x[:n], scale * result.x[n:], scale * nu, scale * weights, result.n_iterations


def _fitting(
    mdp: TabularMDP,
    cost: FloatArray,
    value: FloatArray,
    prior: FloatArray,
    occupancies: FloatArray,
    budgets: FloatArray,
    taken: NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray]:
    """Make the constraints exact, up to rounding, and return (c, u).

    First q = 0 is made true on the pairs taken and q ≥ 0 on the others, then both are shrunk into
    the boxes, and last they are moved towards a constant until all regrets are within the budgets.
    """
    z = mdp.flow_transpose(value)
    cost = np.where(taken, z, np.maximum(cost, z))
    largest = max(1.0, float(np.abs(cost).max()), float(np.abs(value).max()))
    cost, value = cost / largest, value / largest
    regrets = occupancies @ (cost - mdp.flow_transpose(value))
    over = regrets > np.maximum(budgets, ROUNDING)
    keep = float(np.min(budgets[over] / regrets[over], initial=1.0))
    constant = (1.0 - keep) * float(np.clip(prior.mean(), -1.0, 1.0))
    return keep * cost + constant, keep * value + constant
