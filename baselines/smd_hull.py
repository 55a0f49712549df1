"""SMD-H: stochastic mirror descent with the cost confined to the convex hull of a basis.

The paper's variant of Algorithm 1 for the setting of Syed, Bowling and Schapire (2008) and Kamoutsi, Banjac and Lygeros
(2021): with a basis C of K columns, the cost is Cw for weights w in a simplex, and

    w ← normalise(w ∘ exp(-η (2αn (Cᵢw - ĉᵢ) Cᵢ + C_e - C_j)))              i ~ U(n), e ~ μ_E, j ~ μ

takes the place of the projected step for c. All else is SMD-RLfD, and is its code: `smd` and `_kernels`. The problem,
its duality gap and the convergence theorem are in `rlfd_gym.problem.hull`.

At α = 0 and for the occupancy of a policy the optimum is minus that of LPAL on the same basis: the margin by which an
apprentice can beat the expert under every cost of the hull. It is 0 where one of these costs makes the expert optimal.
An expert estimated from samples need not have the flow Tγμ_E = ν₀ that LPAL asks of apprentices: the two differ then.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from rlfd_gym.problem.hull import HullProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.smd.solve import Seed, solve_smd


def solve_smd_hull(
    problem: RLfDProblem,
    basis: ArrayLike,
    n_iterations: int = 100_000,
    step_size: float | tuple[float, float, float] | None = None,
    epsilon: float | None = None,
    n_runs: int = 1,
    n_jobs: int = 1,
    seed: Seed = 0,
    record_every: int | None = None,
    *,
    initial: Solution | None = None,
    progress_bar: bool = False,
) -> Solution:
    """Solve RLfD_α over the hull of a basis; return the average of the iterates, over all runs.

    Args:
        problem: the expert, and the prior if there is one.
        basis: C, (n_pairs, K), each column a cost in [-1, 1]; `scale_basis` makes it so.
        n_iterations: as in `solve_smd`, like all that follow.
        step_size: η for all, or (η_w, η_u, η_μ). `None` takes those of the theorem in `rlfd_gym.problem.hull` for
            `n_iterations` steps.
        epsilon: run that theorem's own T steps, for an expected gap of at most this.
        n_runs: independent runs to average over.
        n_jobs: how many runs at a time.
        seed: an int, `SeedSequence` or `Generator`.
        record_every: record gap and changes every so many steps.
        initial: a solution of the same problem and basis to go on from.
        progress_bar: show one.

    Returns:
        A `Solution` with `mixture` w and `cost` Cw. `upper` and `lower` bound the optimum over the hull.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> problem = rlfd_gym.RLfDProblem(env.mdp, expert)
        >>> solution = solve_smd_hull(problem, basis=scale_basis(env.features), n_iterations=50_000)
        >>> solution.mixture.shape, bool(solution.lower <= 0)
        ((3,), True)
    """
    return solve_smd(
        HullProblem(problem, basis),
        n_iterations,
        step_size,
        epsilon,
        n_runs,
        n_jobs,
        seed,
        record_every,
        initial=initial,
        progress_bar=progress_bar,
    )
