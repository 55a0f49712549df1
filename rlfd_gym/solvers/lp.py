r"""Solve problems with the ℓ1 regulariser, or with intervals, as sparse linear programs, by HiGHS.

The box on c and the simplex make the dual a program over occupancies. For each pair the best
answer c* to μ is the slope of a function φᵢ,

    φᵢ'(μ) = -1 for μ < μ_E,i - αᵢ,  ĉᵢ (clipped to [-1, 1]) in between,  +1 for μ > μ_E,i + αᵢ.

With `Intervals` the ends are lowᵢ and highᵢ instead of -1 and 1, and αᵢ = 0. So φᵢ is convex and
piecewise linear. The box on the value becomes ‖r‖₁, and the problem reads

    min over μ ≥ 0, r   Σᵢ φᵢ(μᵢ) + ‖r‖₁     subject to   Tγ(μ - μ_E) + r = 0,   Σ r = 0.

The last row is Σ μ = 1, because Tγᵀ1 = 1. With one variable per piece, μ = μ_E + a + b - e with
|a| ≤ αᵢ, the program has S + 1 rows, whatever the number of pairs. The multipliers (y, t) of its
rows give the value u = y + t, and the best cost that is compatible with y is read off:
αᵢ|c - ĉᵢ| + μ_E,i c is least over c ≥ (Tγᵀy)ᵢ at the larger of (Tγᵀy)ᵢ and

    ĉᵢ (clipped to [-1, 1])   where μ_E,i ≤ αᵢ,        -1 (or lowᵢ)   elsewhere.

So most entries are exactly the prior's floating point numbers. An entry that HiGHS puts there up
to its tolerance is within `AT_PRIOR` of the prior and is set to it. The interior point method of
HiGHS with its crossover ends at a vertex: where many costs are optimal, it finds one of the
sparsest kind, though not the sparsest of all. For α near the tolerance the crossover may fail
("Unknown"). The dual simplex method does not, and is used then; it is slower on large programs.
Masses are multiplied by n, because they are of the order 1/n and the tolerances are absolute.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import OutOfTime, solve_lp
from rlfd_gym.beliefs import Intervals, NearPrior
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, imitate, polish, to_rounding

AT_PRIOR = 1e-9  # a cost this near to the prior is set to it: ten times the tolerance
TOLERANCE = 1e-10  # the smallest that HiGHS accepts


def improve(best: Incumbent) -> int:
    """Improve `best` by HiGHS and, if needed, by repairing its point.

    Returns the number of steps that HiGHS made, 0 if the time was over before or HiGHS failed.
    """
    try:
        cost, value, mu, iterations = linear_program(best.problem, best.deadline)
    except OutOfTime:
        return 0
    except SolverError:
        imitate(best)
        iterations = 0
    else:
        best.offer(cost, np.clip(value, -1.0, 1.0), mu)
    if not best.keeps(to_rounding(best.problem)):
        polish(best)
    return iterations


def linear_program(problem: RLfDProblem, deadline: float = np.inf) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve a problem with the ℓ1 regulariser or with intervals, and return (c, u, μ, steps).

    The steps are those of the method that succeeded. For γ within 1e-9 of one all may fail.
    """
    mdp, n, n_states, belief = problem.mdp, problem.n_pairs, problem.n_states, problem.belief
    low, high = (np.broadcast_to(end, n) for end in belief.ends())
    expert, prior, alpha = n * problem.expert, np.clip(problem.prior, low, high), np.zeros(n)
    if not isinstance(belief, Intervals):
        alpha = n * _checks.instance("belief", belief, NearPrior).pair_alpha
    flow, identity = mdp.flow_matrix(), sp.eye_array(n_states)
    far = np.flatnonzero(expert > alpha)  # elsewhere μ cannot be below μ_E - α
    # The rows over a, b, e (on `far` only), r⁺ and r⁻: Tγ(a + b - e) + r = 0 and Σ r = 0.
    sums = np.repeat([0.0, 1.0, -1.0], [2 * n + far.size, n_states, n_states])
    rows = sp.vstack([sp.hstack([flow, flow, -flow[:, far], identity, -identity]), sums[None, :]])
    # The bounds of the pieces: |a| ≤ α with μ ≥ 0, b ≥ 0, 0 ≤ e ≤ μ_E - α, r⁺ ≥ 0, r⁻ ≥ 0.
    nothing = np.zeros(n + far.size + 2 * n_states)
    bounds = np.column_stack(
        [
            np.concatenate([-np.minimum(alpha, expert), nothing]),
            np.concatenate([alpha, np.full(n, np.inf), (expert - alpha)[far], np.full(2 * n_states, np.inf)]),
        ]
    )
    for method in ("highs-ipm", "highs-ds"):
        result = solve_lp(
            np.concatenate([prior, high, -low[far], np.ones(2 * n_states)]),
            A_eq=sp.csc_array(rows),
            b_eq=np.zeros(n_states + 1),
            bounds=bounds,
            method=method,
            options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
            deadline=deadline,
        )
        if result.status == 0:
            break
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of RLfD_α, which has a solution: {result.message}")
    # Back to μ, and from the multipliers (y, t) to the value and the best cost.
    near, above, below = np.split(result.x[: 2 * n + far.size], [n, 2 * n])
    mu = expert + near + above
    mu[far] -= below
    y, t = result.eqlin.marginals[:-1], result.eqlin.marginals[-1]
    cost = np.maximum(mdp.flow_transpose(y), np.where(expert <= alpha, prior, low))
    return np.where(np.abs(cost - prior) <= AT_PRIOR, prior, cost), y + t, np.maximum(mu, 0.0) / n, int(result.nit)
