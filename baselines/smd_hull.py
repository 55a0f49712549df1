"""SMD-H: stochastic mirror descent with the cost confined to the convex hull of a basis.

This is the paper's variant of Algorithm 1 for the setting of Syed, Bowling and Schapire (2008) and
Kamoutsi, Banjac and Lygeros (2021). With a basis C of K columns, the cost is Cw for weights w in a
simplex, and

    w ← normalise(w ∘ exp(-η (2αn (Cᵢw - ĉᵢ) Cᵢ + C_e - C_j)))          i ~ U(n), e ~ μ_E, j ~ μ

replaces the projected step for c. All else is SMD-RLfD, and uses its code in
`rlfd_gym.solvers.smd`; either variant of it makes this step, and the default chooses its sizes by the
gap. The belief is `rlfd_gym.beliefs.Hull`; its convergence theorem is in
`rlfd_gym.problem.theorem`.

At α = 0 and for the occupancy of a policy the optimum is minus that of LPAL on the same basis: the
margin by which an apprentice can beat the expert under every cost of the hull. It is 0 if one of
these costs makes the expert optimal. An expert estimated from samples need not have the flow
Tγμ_E = ν₀ that LPAL asks of apprentices, and then the two optima differ.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from rlfd_gym.problem import HullProblem, RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.smd import solve_smd


def solve_smd_hull(problem: RLfDProblem, basis: ArrayLike, *arguments: Any, **options: Any) -> Solution:
    """Solve RLfD_α over the hull of a basis by stochastic mirror descent.

    Args:
        problem: the learning problem, with the expert, and the prior if there is one.
        basis: C, (n_pairs, K), each column a cost in [-1, 1]; `scale_basis` makes it so.
        arguments: those of `rlfd_gym.solve_smd` after the problem, by place or by name. The step
            sizes are three here, (η_w, η_u, η_μ).
        options: the same by name.

    Returns:
        A `Solution` with `mixture` w and `cost` Cw. `upper` and `lower` bound the optimum over the
        hull.

    Example:
        >>> from rlfd_gym.baselines import scale_basis
        >>> from rlfd_gym.problem import examples
        >>> basis = scale_basis(examples.inventory_env().features)
        >>> solution = solve_smd_hull(examples.inventory(alpha=0), basis, n_iterations=50_000)
        >>> solution.mixture.shape, bool(solution.lower <= 0)
        ((3,), True)
    """
    return solve_smd(HullProblem(problem, basis), *arguments, **options)
