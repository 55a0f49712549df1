"""LPAL: apprenticeship learning over a hull of costs as one linear program.

The true cost is believed to be some mixture Cw of the K columns of a basis, w in the simplex. With
the occupancies of policies F = {μ ≥ 0, Tγμ = ν₀}, the apprentice plays

    β* = min over μ ∈ F   max over w in the simplex   <Cw, μ - μ_E>
       = min B   subject to   c_i·(μ - μ_E) ≤ B for each column c_i,   μ ∈ F,

where B is how much worse than the expert the apprentice is under the worst cost of the hull. Since
the expert's own policy is feasible, β* ≤ 0: the apprentice is never worse than the expert,
whatever mixture is the truth, and it is better by at least -β*. (An expert estimated from samples
need not lie in F, and β* may then be positive.) The multipliers of the K rows sum to one: they are
the weights of the cost under which the apprentice is optimal.

**Bounds.** For every w in the simplex and every occupancy μ ∈ F

    min over μ' ∈ F of <Cw, μ' - μ_E>   ≤   β*   ≤   max_i c_i·(μ - μ_E).

Both are evaluated outside the linear program, by a forward solve and a policy's true occupancy.

Syed, Bowling and Schapire, "Apprenticeship learning using linear programming", ICML 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import solve_lp
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution

LARGEST_ENTRY = 1e15  # of a matrix, for HiGHS


def lpal(mdp: TabularMDP, expert: Any, basis: ArrayLike) -> Solution:
    """Find the apprentice that is best against the worst mixture of the basis, by HiGHS.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). The scale of its columns says how much each counts; see
            `scale_basis`.

    Returns:
        A solution with the multipliers as `mixture`, the cost Cw, and the bounds `upper` and
        `lower` of β*.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import lpal, scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.3)
        >>> solution = lpal(env.mdp, expert=expert, basis=scale_basis(env.features))
        >>> solution.upper < -0.007, solution.duality_gap < 1e-6  # better than the expert
        (True, True)
    """
    mu_e = expert_occupancy(mdp, expert)
    c = check_basis(basis, mdp.n_pairs, box=False)
    if np.abs(c).max() > LARGEST_ENTRY:
        raise ValueError(f"basis must have entries of at most {LARGEST_ENTRY:g} for HiGHS, got {np.abs(c).max():g}")
    n, k = c.shape
    result = solve_lp(
        np.append(np.zeros(n), 1.0),
        A_ub=sp.hstack([sp.csr_array(c.T), -np.ones((k, 1))]),
        b_ub=c.T @ mu_e,
        A_eq=sp.hstack([mdp.flow_matrix(), sp.csr_array((mdp.n_states, 1))]),
        b_eq=mdp.initial,
        bounds=[(0, None)] * n + [(None, None)],
        method="highs",
    )
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of LPAL: {result.message}")
    weights = np.maximum(-result.ineqlin.marginals, 0.0)
    found = np.maximum(result.x[:n], 0.0)
    return hull_solution(mdp, c, mu_e, weights / weights.sum(), found, method="lpal", n_iterations=int(result.nit))


def hull_solution(
    mdp: TabularMDP,
    basis: FloatArray,
    mu_e: FloatArray,
    weights: FloatArray,
    found: FloatArray,
    **rest: Any,
) -> Solution:
    """Return the solution of a game over the hull, for the occupancy that was found.

    It has the cost Cw, the optimal value of that cost, and the bounds of β* of the module's
    docstring. Where the occupancy has no mass, its policy plans with the cost.
    """
    cost = basis @ weights
    plan = mdp.optimal(cost)
    policy = planned_policy(mdp, found, cost)
    occupancy = mdp.occupancy_of(policy)
    return Solution(
        policy=policy,
        occupancy=occupancy,
        cost=cost,
        mixture=weights,
        value=plan.value,
        upper=float((basis.T @ (occupancy - mu_e)).max()),
        lower=plan.expected_cost - plan.value_error - float(cost @ mu_e),
        **rest,
    )
