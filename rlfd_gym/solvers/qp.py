r"""Solve RLfD_α as a sparse quadratic program, by PIQP.

**IO-AL_α is a sparse convex quadratic program** ("qp") in the cost c and the value u,

    min over c ∈ [-1,1]ⁿ, u   α‖c - ĉ‖² + <μ_E, c - Tγᵀu>      subject to   c - Tγᵀu ≥ 0.

The multiplier of row i is the apprentice's occupancy μᵢ. The Hessian is diagonal and each row
begins with an identity block, which the factorisation eliminates first; what remains is a matrix
with the pattern of Tγ Tγᵀ, one row per state. As μᵢ is of the order 1/n, the objective is
multiplied by n: otherwise it would be lost in the solver's absolute tolerance.

If the expert is the occupancy of a policy, Tγ μ_E = ν₀ ≥ 0 and |u| ≤ 1 costs nothing. An expert
estimated from samples may have negative entries in Tγ μ_E, and then u may leave the box that it
has in RLfD_α. Because Tγᵀ1 = 1, that box amounts to max u - min u ≤ 2. Where this is violated, the
program is solved once more with 0 ≤ u - low ≤ 2, where low is one more variable.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from rlfd_gym._checks import FloatArray
from rlfd_gym._programs import OutOfTime, solve_qp
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import GAP, Incumbent, imitate, polish, to_rounding

PREDICTABLE_WORK = 1e8  # above, the prediction of the work would itself take seconds and gigabytes
SAMPLE = 50  # states whose neighbours are counted
DENSE, LONG = 0.2, 5e6  # a matrix with such a share of entries, and so many, is taken to be dense without a look


def improve(best: Incumbent) -> int:
    """Improve `best` by PIQP and, if needed, by repairing its points.

    Returns the number of interior point steps, 0 if the time was over before.
    """
    problem = best.problem
    try:
        cost, value, mu, iterations = io_al(problem, spread=False, deadline=best.deadline)
        if np.ptp(value) > 2.0 + 1e-7:
            cost, value, mu, iterations = io_al(problem, spread=True, deadline=best.deadline)
    except OutOfTime:
        return 0
    if problem.alpha == 0:
        mu = problem.expert  # known: see `rlfd_gym.solvers.exact`
    # In states that the expert never visits, u may be far below -1. Clipping it there keeps
    # c - Tγᵀu ≥ 0. Only for an expert estimated from samples can it be better to shift u, which
    # `offer` does with values outside the box.
    best.offer(cost, np.clip(value, -1.0, 1.0), mu)
    if best.gap > GAP:
        best.offer(cost, value, mu)
    if np.isinf(best.gap):
        imitate(best)
    if not best.keeps(to_rounding(best.problem)):
        polish(best)
    return iterations


def io_al(
    problem: RLfDProblem, *, spread: bool, deadline: float = np.inf
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve IO-AL_α times n and return (c, u, μ times n, steps).

    With `spread` the rows 0 ≤ u - low ≤ 2 are added.
    """
    mdp = problem.mdp
    n, n_states, extra = mdp.n_pairs, mdp.n_states, int(spread)
    # The objective over (c, u, low): n α‖c - ĉ‖² + n <μ_E, c - Tγᵀu>.
    weight = n * 2 * problem.alpha
    hessian = np.concatenate([np.full(n, weight), np.zeros(n_states + extra)])
    gradient = np.concatenate(
        [n * problem.expert - weight * problem.prior, -n * mdp.flow(problem.expert), np.zeros(extra)]
    )
    # The rows c - Tγᵀu ≥ 0 and, with `spread`, 0 ≤ u - low ≤ 2; the box |c| ≤ 1.
    rows = [[sp.eye_array(n), -mdp.flow_matrix().T, *[None] * extra]]
    lower, upper = np.zeros(n), np.full(n, np.inf)
    if spread:
        rows.append([None, sp.eye_array(n_states), sp.csr_array(-np.ones((n_states, 1)))])
        lower, upper = np.append(lower, np.zeros(n_states)), np.append(upper, np.full(n_states, 2.0))
    box = np.concatenate([np.ones(n), np.full(n_states + extra, np.inf)])
    result = solve_qp(
        hessian, gradient, None, sp.block_array(rows), lower, upper if spread else None, box, deadline=deadline
    )
    return result.x[:n], result.x[n : n + n_states], result.z[:n], result.n_iterations


def factorisation_work(mdp: TabularMDP) -> float:
    """Predict the multiplications of an interior point step, within a factor of ten."""
    p = mdp.transitions
    row = np.diff(p.indptr).astype(np.float64) + 1
    by_pairs = 10 * float(row @ row)  # scattered, so slower than updates within the factor
    if by_pairs > PREDICTABLE_WORK:
        return by_pairs + mdp.n_states**3 / 3  # the product below would take long: assume the worst
    # The pattern of Tγ Tγᵀ.
    pattern = sp.csr_array((np.ones(p.nnz, dtype=np.float32), p.indices, p.indptr), shape=p.shape)
    pattern = pattern + sp.csr_array(
        (np.ones(mdp.n_pairs, dtype=np.float32), mdp.pair_states, np.arange(mdp.n_pairs + 1)), shape=p.shape
    )
    back = sp.csr_array(pattern.T)
    some = np.unique(np.linspace(0, mdp.n_states - 1, SAMPLE).astype(np.int64))
    neighbours = (back[some] @ pattern).nnz / some.size
    if neighbours > max(DENSE * mdp.n_states, LONG / mdp.n_states):
        return by_pairs + mdp.n_states**3 / 3  # nearly all of it fills in
    graph = sp.coo_matrix(back @ pattern)
    # The squared profile in reverse Cuthill-McKee order bounds the fill-in.
    position = np.empty(mdp.n_states, dtype=np.int64)
    position[reverse_cuthill_mckee(sp.csr_matrix(graph), symmetric_mode=True)] = np.arange(mdp.n_states)
    first = np.arange(mdp.n_states)
    np.minimum.at(first, position[graph.row], position[graph.col])
    profile = (np.arange(mdp.n_states) - first).astype(np.float64)
    return by_pairs + float(profile @ profile)
