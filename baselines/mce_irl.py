r"""MCE-IRL, maximum causal entropy inverse reinforcement learning, for an infinite horizon.

Among all policies with the expert's features, MCE-IRL takes the one of largest causal entropy. That
is the soft-optimal policy of a cost Cw: with ψ(μ) = Cᵀμ and ψ_E = ψ(μ_E),

    π(a|s) = exp(V(s) - Q(s, a)),    Q = Cw + γPV,    V(s) = -log Σ_a exp(-Q(s, a)),    ψ(μ_π) = ψ_E.

The infinite horizon needs no time index: there is one stationary policy, and values, occupancies
and features are exact. (imitation's `MCEIRL` has a finite horizon only, costs of states only, and
raises an error for an infinite one.) Features are scaled to [0, 1] inside; `mixture` and `cost` are
in the units of the basis.

**The dual.** The weights minimise a smooth convex function. With ρ(w) = (1-γ)<ν₀, V>, the least of
expected cost minus entropy,

    J(w) = <w, ψ_E> - ρ(w) + τ/2 ‖w‖²,      ∇J = ψ_E - ψ(μ_π) + τw,      ∇²J = Cᵀ Gᵀ diag(μ_π) G C + τ,

where G is the derivative of Q - V (`rlfd_gym.mdp.soft`). Newton's method, damped, takes
some twenty steps; where the second derivative is too large a table, L-BFGS does the work.

**The features that can be matched.** At the minimum, feature k is missed by τ|w_k| exactly. τ is
tiny, so this only matters where the weights would have to be infinite: a deterministic expert is
the limit of soft-optimal policies, not one of them. If the features are missed by more than
`tolerance`, a `RuntimeWarning` says so. An occupancy that is counted in samples has features
that perhaps no policy has, because it does not start in ν₀, and w would follow the difference
without end. So ψ_E is taken from the occupancy of the estimated *policy*, μ_E divided by its mass
in each state and run from ν₀. For the occupancy of a policy this changes nothing.

**Bounds.** J(w) is an upper bound of its minimum. Exchanging min and max, the entropy H of any
policy with occupancy μ, minus ‖ψ_E - ψ(μ)‖²/2τ, is a lower one. At μ_π they differ by ‖∇J‖²/2τ.

Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", ICML
2010. For the term with τ, Dudík, Phillips and Schapire, "Maximum entropy density estimation with
generalized regularization", JMLR 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import warn
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.occupancy import LU_STATES, policy_chain
from rlfd_gym.mdp.soft import SoftPlan, dense_transitions, solve_soft
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution

NEWTON_ENTRIES = 20_000_000  # of the table G C, 8 bytes each; beyond it, L-BFGS
SOFT = 1e-12  # accuracy of the soft values
GAP = 1e-9  # between the bounds, at which Newton's method stops
POOR, GOOD = 0.1, 0.5  # shares of the promised progress: below the first more damping, above the second less


def mce_irl(
    mdp: TabularMDP,
    expert: Any,
    basis: ArrayLike | None = None,
    *,
    n_iterations: int = 200,
    tolerance: float = 1e-3,
    regularisation: float = 1e-8,
) -> Solution:
    """Learn a cost whose soft-optimal policy has the expert's features, for an infinite horizon.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). `None` gives each state a cost of its own.
        n_iterations: the largest number of steps.
        tolerance: how far a feature, scaled to [0, 1], may be from the expert's before a warning
            says that they could not be matched. The default is that of imitation's `MCEIRL`.
        regularisation: τ > 0, for scaled features.

    Returns:
        A solution with the soft-optimal policy, the cost Cw, the soft value, `mixture` if a basis
        was given, and bounds of the minimum of J. `stats` has `"feature_mismatch"`, the largest
        difference of a scaled feature, and in `"converged"` whether that is within `tolerance`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import mce_irl
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.3)
        >>> solution = mce_irl(env.mdp, expert)     # a cost for each of the 100 cells
        >>> solution.stats["converged"], solution.stats["feature_mismatch"] < 1e-6
        (True, True)
    """
    mu_e = expert_occupancy(mdp, expert)
    steps = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    goal = _checks.number("tolerance", tolerance, 0.0)
    tau = _checks.number("regularisation", regularisation, 0.0, np.inf, open_ends=True)
    given = None if basis is None else check_basis(basis, mdp.n_pairs, box=False)
    features, spread = _scaled(mdp, given)
    target = features.T @ mdp.occupancy_of(mdp.policy_of(mu_e))
    dual = _Dual(mdp, features, target, tau, dense_transitions(mdp))
    small = mdp.n_states <= LU_STATES and mdp.n_pairs * features.shape[1] <= NEWTON_ENTRIES
    point, taken = (_newton if small else _lbfgs)(dual, steps)

    mismatch = float(np.abs(point.gradient - tau * point.weights).max())
    if mismatch > goal:
        warn(
            f"MCE-IRL misses a feature of the expert: by {mismatch:.1e} of its range, with weights up to "
            f"{np.abs(point.weights).max():.0f}; a deterministic expert is matched by infinite weights only",
            RuntimeWarning,
            stacklevel=2,
        )
    weights = point.weights / spread
    return Solution(
        policy=point.plan.policy,
        occupancy=point.plan.occupancy,
        cost=weights[mdp.pair_states] if given is None else given @ weights,
        value=point.plan.value,
        mixture=None if given is None else weights,
        upper=point.value,
        lower=point.value - float(point.gradient @ point.gradient) / (2 * tau),
        method="mce-irl",
        n_iterations=taken,
        stats={"feature_mismatch": mismatch, "converged": mismatch <= goal},
    )


def _scaled(mdp: TabularMDP, basis: FloatArray | None) -> tuple[sp.csr_array, FloatArray]:
    """Return the features, scaled to [0, 1], and the range of each."""
    if basis is None:
        ones = np.ones(mdp.n_pairs)
        rows = sp.csr_array((ones, mdp.pair_states, np.arange(mdp.n_pairs + 1)), shape=(mdp.n_pairs, mdp.n_states))
        return rows, np.ones(mdp.n_states)
    spread = np.ptp(basis, axis=0)
    spread[spread == 0] = 1.0  # a constant feature says nothing; its weight stays zero
    return sp.csr_array((basis - basis.min(axis=0)) / spread), spread


@dataclass(frozen=True, eq=False)
class _Point:
    """Weights, with J, its gradient, and the soft plan of their cost."""

    weights: FloatArray
    value: float
    gradient: FloatArray
    plan: SoftPlan


@dataclass(frozen=True, eq=False)
class _Dual:
    """J of the module's docstring."""

    mdp: TabularMDP
    features: sp.csr_array
    target: FloatArray
    tau: float
    dense: FloatArray | None

    def at(self, weights: FloatArray, start: FloatArray | None = None) -> _Point:
        """Evaluate J, with soft values that start from `start`, which are not normalised."""
        cost = self.features @ weights
        first = self.mdp.min_by_state(cost) / (1 - self.mdp.discount) if start is None else start
        plan = solve_soft(self.mdp, cost, 1.0, first, SOFT, self.dense)
        value = float(weights @ self.target - plan.expected_cost + self.tau / 2 * (weights @ weights))
        gradient = self.target - self.features.T @ plan.occupancy + self.tau * weights
        return _Point(weights, value, gradient, plan)

    def curvature(self, point: _Point) -> tuple[FloatArray, FloatArray]:
        """Return the second derivative of J, and the derivative of V, (n_states, K)."""
        mdp, plan = self.mdp, point.plan
        chain = policy_chain(mdp, plan.policy).toarray()
        numbers = np.arange(mdp.n_pairs)
        mix = sp.csr_array((plan.policy, numbers, mdp.state_starts), shape=(mdp.n_states, mdp.n_pairs))
        by_state = (mix @ self.features).toarray()
        values = la.solve(np.eye(mdp.n_states) - mdp.discount * chain, by_state, check_finite=False)
        moves = self.features.toarray() + mdp.discount * (mdp.transitions @ values) - values[mdp.pair_states]
        scaled = np.sqrt(plan.occupancy)[:, None] * moves
        matrix = scaled.T @ scaled
        matrix[np.diag_indices_from(matrix)] += self.tau
        return matrix, values


def _newton(dual: _Dual, limit: int) -> tuple[_Point, int]:
    """Minimise J by Newton's method; return the point and the number of steps.

    A policy that is nearly deterministic makes J so flat that a full step goes far too far. So
    the second derivative is damped, by a multiple of the identity that grows until J falls as much
    as it promises, and shrinks as soon as it does (Levenberg and Marquardt).
    """
    point, damping, taken = dual.at(np.zeros(dual.features.shape[1])), 0.0, 0
    matrix, values = dual.curvature(point)
    while taken < limit and point.gradient @ point.gradient > 2 * dual.tau * GAP:
        taken += 1
        damped = matrix.copy()
        damped[np.diag_indices_from(damped)] += damping
        step = -np.asarray(la.solve(damped, point.gradient, assume_a="pos", check_finite=False))
        promised = -float(point.gradient @ step + step @ matrix @ step / 2)
        if promised <= np.finfo(float).eps * max(1.0, abs(point.value)):
            break  # rounding hides all progress
        new = dual.at(point.weights + step, point.plan.value / (1 - dual.mdp.discount) + values @ step)
        kept = (point.value - new.value) / promised
        if kept < POOR:
            damping = max(10 * damping, 1e-6 * float(np.trace(matrix)) / len(step))
            continue
        damping = 0.1 * damping if kept > GOOD else damping
        damping = damping if damping > dual.tau else 0.0
        point = new
        matrix, values = dual.curvature(point)
    return point, taken


def _lbfgs(dual: _Dual, limit: int) -> tuple[_Point, int]:
    """Minimise J by L-BFGS, for problems too large for a table of second derivatives."""
    from scipy.optimize import minimize  # slow to load

    last = [dual.at(np.zeros(dual.features.shape[1]))]

    def function(weights: FloatArray) -> tuple[float, FloatArray]:
        last[0] = dual.at(weights, last[0].plan.value / (1 - dual.mdp.discount))
        return last[0].value, last[0].gradient

    result = minimize(
        function,
        last[0].weights,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": limit, "maxfun": 4 * limit, "ftol": 0.0, "gtol": float(np.sqrt(dual.tau * GAP))},
    )
    return dual.at(result.x, last[0].plan.value / (1 - dual.mdp.discount)), int(result.nit)
