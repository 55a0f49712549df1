r"""The soft forward problem: an agent that prefers cheaper actions, but not without exception.

An agent of rationality β > 0 takes action a in state s with probability proportional to
exp(-β Q(s, a)). With V the soft minimum of Q over the actions,

    Q = c + γ P V,      V(s) = -β⁻¹ log Σ_a exp(-β Q(s, a)),      log π(a|s) = -β (Q(s, a) - V(s)).

As everywhere in this library values are normalised: u = (1-γ) V, and ρ^β_c = <ν₀, u>.

**What it is.** u is the least, over all policies, of the expected cost minus β⁻¹ times the
discounted entropy, and π attains it. For every occupancy μ therefore

    -<μ, log π> = β (<μ, c> - ρ^β_c)   ≥   β H(μ),        H(μ) = -<μ, log π_μ>,

and since the entropy of a policy is at most log A, where A is the largest number of actions of a
state, ρ^β_c lies between ρ*_c - log A/β and ρ*_c. ρ^β is concave in c with gradient μ_π.

**The solver** is Newton's method for V = S V, where S is the soft Bellman operator. The derivative
of S at V is γ P_π, π being the soft policy for V, so a step solves

    (I - γ P_π) (V⁺ - V) = S V - V:

it evaluates π, cost and entropy together, and is also known as soft policy iteration. As S is
monotone and concave, from the first step on the iterates fall to the fixed point, each at least
γ times as far from it as the one before, and in the end quadratically.

**The error.** S is monotone and S(V + k) = S V + γk, so MacQueen's bounds hold as they do for the
hard minimum: with δ = S V - V the fixed point is within γ/(1-γ) · (max δ - min δ)/2 of
S V + γ/(1-γ) · (max δ + min δ)/2. `SoftPlan.value_error` is this number, times 1-γ, plus what
rounding may have added.

**The second derivative.** G = ∂(Q - V)/∂c has one row and column per pair, and

    -∇² ρ^β = β Gᵀ diag(μ_π) G.

With R(s, i) = π_i for the pairs i of state s, zero for others, ∂V/∂c = (I - γ P_π)⁻¹ R, and hence
G = I + K R with the tall matrix K = (γP - E)(I - γ P_π)⁻¹, where E repeats a state's value for its
pairs. G(Tγᵀu) = 0 for every u: shaping a cost does not change what the agent does.

Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", ICML
2010.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.linalg import splu

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.occupancy import LU_STATES, policy_chain, solve_discounted
from rlfd_gym.mdp.tables import TabularMDP

TOLERANCE = 1e-10  # of normalised values, for costs up to one
LEAST_RATIONALITY = 1e-150  # below which 1/β squared overflows
DENSE_STATES = 300  # up to here dense matrices are faster than sparse ones
PATIENCE = 20  # steps without progress: only rounding can cause these

Solve = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class SoftPlan:
    """What an agent of limited rationality does, with its value and its occupancy.

    Attributes:
        mdp: the MDP that the plan is for.
        rationality: β.
        value: u = (1-γ) V, over states, up to `value_error`.
        policy: the soft policy, over pairs; each entry is positive, unless it underflows.
        log_policy: the logarithm of `policy`, which never underflows.
        expected_cost: ρ^β = <ν₀, u>, the expected cost less β⁻¹ times the entropy.
        value_error: a proven bound on the error of each entry of `value`.
        n_iterations: the steps of Newton's method.
        occupancy: the occupancy of `policy`, over pairs; computed on first use.

    Example:
        >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], [1, 0], discount=0.5)
        >>> plan = soft_optimal(mdp, [0.0, 0.5, -1.0], rationality=2.0)
        >>> plan.policy.round(2).tolist(), plan.value_error < 1e-9
        ([0.45, 0.55, 1.0], True)
    """

    mdp: TabularMDP
    rationality: float
    value: FloatArray = field(repr=False)
    policy: FloatArray = field(repr=False)
    log_policy: FloatArray = field(repr=False)
    expected_cost: float
    value_error: float
    n_iterations: int
    _backward: Solve = field(repr=False)

    @cached_property
    def occupancy(self) -> FloatArray:
        """The occupancy of `policy`, over pairs; computed on first use."""
        mass = np.maximum(self._backward((1 - self.mdp.discount) * self.mdp.initial), 0.0)
        return np.asarray((mass / mass.sum())[self.mdp.pair_states] * self.policy)

    def occupancy_from(self, source: FloatArray) -> FloatArray:
        """Return μ with Tγ μ = `source` that divides each state's mass as `policy` does.

        For the initial distribution this is `occupancy`. The source may have negative entries, as
        that of an occupancy estimated from samples has, and then so may μ.
        """
        mass = self._backward((1 - self.mdp.discount) * source)
        return np.asarray(mass[self.mdp.pair_states] * self.policy)


def soft_optimal(
    mdp: TabularMDP,
    cost: ArrayLike,
    rationality: float,
    *,
    start: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
) -> SoftPlan:
    """Return what an agent of the given rationality does under `cost`.

    Args:
        mdp: the environment's tables.
        cost: c, over pairs.
        rationality: β. Towards infinity the agent is optimal; towards 0 it only wants a choice,
            and acts at random where every state offers the same number of actions.
        start: a normalised value to start from, such as `plan.value` for a similar cost.
        tolerance: the error allowed in normalised values, relative to max|c| or log A/β, their
            size, if that exceeds one. If the discount is so close to one that double precision
            does not suffice, a warning says so.

    Example:
        In state 0 one may stay (action 0) or move (action 1); state 1 is never left.

        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> cost = [0.0, 1.0, -1.0]
        >>> [round(soft_optimal(mdp, cost, beta).expected_cost, 3) for beta in (1, 10, 1000)]
        [-0.481, -0.048, -0.0]
        >>> mdp.optimal(cost).expected_cost
        0.0
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    c = mdp.pairs(cost, "cost")
    beta = _checks.number("rationality", rationality, LEAST_RATIONALITY, np.inf, open_ends=True)
    goal = _checks.number("tolerance", tolerance, 0.0)
    if start is None:
        value = mdp.min_by_state(c) / (1 - mdp.discount)
    else:
        value = _checks.finite_vector("start", start, mdp.n_states, "state (mdp.n_states)") / (1 - mdp.discount)
    plan = solve_soft(mdp, c, beta, value, goal, dense_transitions(mdp))
    if plan.value_error > goal * _size(mdp, c, beta):
        warn(
            f"the soft value is only known to within {plan.value_error:.1e}, not {goal:.0e}, because rounding at the "
            f"discount {mdp.discount} and rationality {beta:.3g} allows no more",
            RuntimeWarning,
            stacklevel=2,
        )
    return plan


def dense_transitions(mdp: TabularMDP) -> FloatArray | None:
    """Return P as a dense array if that is what `solve_soft` works with, otherwise `None`."""
    return np.asarray(mdp.transitions.toarray()) if mdp.n_states <= DENSE_STATES else None


def solve_soft(
    mdp: TabularMDP,
    cost: FloatArray,
    beta: float,
    value: FloatArray,
    tolerance: float = TOLERANCE,
    dense: FloatArray | None = None,
) -> SoftPlan:
    """Return the plan by Newton's method from V = `value`, without checks, for inner loops.

    `value` is not normalised; `dense` is what `dense_transitions` returns. Where rounding stops
    the iteration first, `value_error` is larger than the tolerance.
    """
    gamma, starts, states = mdp.discount, mdp.state_starts[:-1], mdp.pair_states
    p = mdp.transitions if dense is None else dense
    goal = tolerance * _size(mdp, cost, beta) / (1 - gamma)
    least, stalled, steps = np.inf, 0, 0
    while True:
        # S V, δ and the soft policy.
        q = cost + gamma * (p @ value)
        lowest = np.minimum.reduceat(q, starts)
        weights = np.exp(-beta * (q - lowest[states]))
        totals = np.add.reduceat(weights, starts)
        log_totals = np.log(totals)
        after = lowest - log_totals / beta
        policy = weights / totals[states]
        delta = after - value
        low, high = float(delta.min()), float(delta.max())
        if not np.isfinite(high - low):
            raise SolverError(f"soft values overflow at the rationality {beta:g}; costs reach {np.abs(cost).max():g}")
        # MacQueen's bounds; stop once they are close, or rounding hides all progress.
        error = gamma / (1 - gamma) * (high - low) / 2
        rounding = _rounding(mdp, cost, value, beta) / (1 - gamma)
        forward, backward = _solvers(mdp, policy, dense)
        stalled = 0 if error < 0.9 * least else stalled + 1
        least = min(least, error)
        if error + rounding <= goal or error <= rounding or stalled > PATIENCE:
            final = after + gamma / (1 - gamma) * (low + high) / 2
            return SoftPlan(
                mdp=mdp,
                rationality=beta,
                value=(1 - gamma) * final,
                policy=policy,
                log_policy=-beta * (q - lowest[states]) - log_totals[states],
                expected_cost=float((1 - gamma) * (mdp.initial @ final)),
                value_error=(1 - gamma) * (error + rounding),
                n_iterations=steps,
                _backward=backward,
            )
        value, steps = value + forward(delta), steps + 1


def sensitivity(plan: SoftPlan, dense: FloatArray | None = None) -> FloatArray:
    """Return K of the module's docstring, (n_pairs, n_states), with which G = I + K R."""
    mdp = plan.mdp
    p = np.asarray(mdp.transitions.toarray()) if dense is None else dense
    ahead = mdp.discount * p
    ahead[np.arange(mdp.n_pairs), mdp.pair_states] -= 1.0
    chain = np.add.reduceat(plan.policy[:, None] * p, mdp.state_starts[:-1])
    system = np.eye(mdp.n_states) - mdp.discount * chain
    return np.asarray(la.solve(system.T, ahead.T, check_finite=False).T)


def curvature(plan: SoftPlan, dense: FloatArray | None = None, weights: FloatArray | None = None) -> FloatArray:
    """Return Gᵀ diag(μ) G, dense, (n_pairs, n_pairs): -∇²ρ^β divided by β.

    `weights` over pairs replace μ. It costs n_pairs · n_states² + n_pairs² operations, no more: with D = diag(μ) it is
    D + DKR + (DKR)ᵀ + Rᵀ(KᵀDK)R, and R has one entry per pair.
    """
    mdp, mu = plan.mdp, plan.occupancy if weights is None else weights
    k = sensitivity(plan, dense)
    share, rows = plan.policy, mdp.pair_states
    left = np.ascontiguousarray((mu[:, None] * k).T)  # KᵀD; Rᵀ repeats a state's row for its pairs
    both = left + ((left @ k)[:, rows] * share)
    result = share[:, None] * left[rows]
    result = result.T + share[:, None] * both[rows]
    result[np.diag_indices_from(result)] += mu
    return np.asarray(result)


def _solvers(mdp: TabularMDP, policy: FloatArray, dense: FloatArray | None) -> tuple[Solve, Solve]:
    """Return functions that solve with I - γP_π and with its transpose."""
    if dense is not None:
        chain = np.add.reduceat(policy[:, None] * dense, mdp.state_starts[:-1])
        factors = la.lu_factor(np.eye(mdp.n_states) - mdp.discount * chain, overwrite_a=True, check_finite=False)
        return (
            lambda rhs: np.asarray(la.lu_solve(factors, rhs, check_finite=False)),
            lambda rhs: np.asarray(la.lu_solve(factors, rhs, trans=1, check_finite=False)),
        )
    matrix = policy_chain(mdp, policy)
    if mdp.n_states <= LU_STATES:
        lu = splu(sp.csc_array(sp.eye_array(mdp.n_states, format="csr") - mdp.discount * matrix))
        return lu.solve, partial(lu.solve, trans="T")
    return (
        lambda rhs: solve_discounted(matrix, rhs, mdp.discount, norm=np.inf),
        lambda rhs: solve_discounted(matrix.T.tocsr(), rhs, mdp.discount, norm=1),
    )


def _size(mdp: TabularMDP, cost: FloatArray, beta: float) -> float:
    """Return how large normalised values may be, at least one."""
    return max(1.0, float(np.abs(cost).max()), float(np.log(mdp.n_actions)) / beta)


def _rounding(mdp: TabularMDP, cost: FloatArray, value: FloatArray, beta: float) -> float:
    """Return a bound on the rounding error of an entry of S V.

    Such an entry is a sum of as many products as the row has entries, and a logarithm.
    """
    terms = int(np.diff(mdp.transitions.indptr).max()) + 3
    size = max(float(np.abs(cost).max()), float(np.abs(value).max()), float(np.log(mdp.n_actions)) / beta)
    return float(terms * np.finfo(float).eps * size)
