r"""The problem on estimated tables, solved exactly.

The problem is min over c of Ω(c) + <μ_E, c> - ρ*_c, where ρ*_c is planned from ν₀ in the tables P̂,
and μ_E was counted: it need not be an occupancy under P̂, as `rlfd_gym.solve_exact` assumes.

**ℓ2, α > 0.** Let μ' be the occupancy of the expert's policy under P̂, and e = μ' - μ_E. Then

    α‖c - ĉ‖² + <μ_E, c>  =  α‖c - (ĉ + e/2α)‖² + <μ', c> + constant,

so the problem is that of `solve_exact` with the expert μ' and the prior ĉ + e/2α.

**ℓ1, or α = 0.** A linear program in c = ĉ + p - m and u: minimise α Σ(p + m) + <μ_E, c> - <ν₀, u>
over c ≥ Tγᵀu in the box; the multipliers of c ≥ Tγᵀu are the occupancy. If α = 0 and the expert is
optimal for some cost, it is for many, and `solve_exact` takes one in the middle.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import solve_lp
from rlfd_gym._warnings import collected_warnings
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.occupancy import occupancy_of, policy_of
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.exact import solve_exact

CONSISTENT = 1e-7  # a value of the linear program at α = 0 that counts as zero


def solve_estimated(problem: BlackBoxProblem, tables: TabularMDP) -> tuple[FloatArray, FloatArray]:
    """Return the optimal cost, and the policy of the optimal occupancy, under the tables."""
    belief = problem.belief
    expert = occupancy_of(tables, policy_of(tables, problem.expert_occupancy))
    if belief.norm == "l2" and belief.alpha > 0:
        prior = belief.prior + (expert - problem.expert_occupancy) / (2 * belief.alpha)
        return _exact(RLfDProblem(tables, expert, belief=NearPrior(prior, belief.alpha, outside_box=True)))
    cost, occupancy, value = _linear_program(problem, tables)
    if belief.alpha == 0 and value > -CONSISTENT:
        return _exact(RLfDProblem(tables, expert, alpha=0.0))
    return cost, planned_policy(tables, occupancy, cost, 1e-9)


def _exact(problem: RLfDProblem) -> tuple[FloatArray, FloatArray]:
    """Solve a problem with tables; whatever gap is left is part of what is certified."""
    with collected_warnings():
        solution = solve_exact(problem)
    return solution.cost, solution.policy


def _linear_program(problem: BlackBoxProblem, tables: TabularMDP) -> tuple[FloatArray, FloatArray, float]:
    """Return the cost, the occupancy and the value by HiGHS."""
    n, belief, expert = problem.n_pairs, problem.belief, problem.expert_occupancy
    prior = np.clip(belief.prior, -1.0, 1.0)
    # -(p - m) + Tγᵀu ≤ ĉ
    identity = sp.eye_array(n)
    rows = sp.csc_array(sp.hstack([-identity, identity, tables.flow_matrix().T]))
    least, most = np.zeros(2 * n), np.concatenate([1 - prior, 1 + prior])
    bounds = np.column_stack(
        [np.append(least, np.full(tables.n_states, -1.0)), np.append(most, np.ones(tables.n_states))]
    )
    objective = np.concatenate([belief.pair_alpha + expert, belief.pair_alpha - expert, -problem.initial])
    result = solve_lp(objective, A_ub=rows, b_ub=prior, bounds=bounds, method="highs")
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of the estimated tables: {result.message}")
    plus, minus, _ = np.split(result.x, [n, 2 * n])
    occupancy = np.maximum(-result.ineqlin.marginals, 0.0)
    return np.clip(prior + plus - minus, -1.0, 1.0), occupancy, float(result.fun + expert @ prior)
