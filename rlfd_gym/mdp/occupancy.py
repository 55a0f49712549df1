"""Exact conversions between policies, occupancies and values.

For a policy π, P_π(s, s') = Σ_a π(a|s) P(s'|s, a) and c_π(s) = Σ_a π(a|s) c(s, a) give

    value       (I - γ P_π) V = (1-γ) c_π
    occupancy   (I - γ P_πᵀ) ν = (1-γ) ν₀,    μ(s, a) = ν(s) π(a|s).

Both have the form x = b + γ M x, where ‖M‖ = 1 in the sup-norm (values) or the ℓ1-norm
(occupancies). They are solved by

* an LU factorisation where that is cheap: a dense one for up to 128 states, where a sparse one
  takes ten times as long to set up, a sparse one for up to 2000 or if every state has one next
  state, and a banded one if states that follow each other have near numbers, as on a chain;
* otherwise BiCGSTAB preconditioned with a symmetric Gauss-Seidel sweep (the sweep carries mass along
  paths, the Krylov space spreads it);
* if this does not make progress, as on long cycles, a banded LU factorisation in the Cuthill-McKee
  order, unless the matrix is too wide for it;
* and otherwise plain Gauss-Seidel sweeps: with M = L + U, a sweep maps the residual to
  γU(I - γL)⁻¹r, which is at most γ times as large in that norm.

Each is repeated on the residual r = b + γ M x - x until ‖r‖ ≤ tolerance ‖b‖. Since
‖x - x*‖ ≤ ‖r‖/(1-γ) and ‖x*‖ ≤ ‖b‖/(1-γ), this bounds the error of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dgbtrf, dgbtrs, dgesv
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.pairs import dot

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

TOLERANCE = 1e-12
DENSE_STATES = 128  # up to here dense systems are faster than sparse ones; larger ones would wait for BLAS's threads
LU_STATES = 2_000  # up to here a factorisation is fast even if it fills up
NARROW = 4  # entries beside the diagonal, up to which a banded factorisation takes no longer than a few sweeps
BANDED_WORK = 2_000_000_000  # multiplications of a banded factorisation that is better than sweeps
KRYLOV_STEPS = 100
EPS = float(np.finfo(float).eps)
SCALE_ERROR = 1e-7  # of a sum that should be one: where γ is next to one, rounding divided by 1-γ can be more
SWEEPS = 200  # of Gauss-Seidel at a time, if Krylov steps do not help

Solver = Callable[[FloatArray, float], FloatArray]


def occupancy_of(
    mdp: TabularMDP, policy: ArrayLike, *, source: FloatArray | None = None, tolerance: float = TOLERANCE
) -> FloatArray:
    """Return the occupancy of a policy.

    `source` replaces ν₀ as the right-hand side of Tγ μ = ν₀. For an expert estimated from samples
    it is Tγ μ_E, which may have negative entries. Negative mass that results from these is set to
    zero.
    """
    pi = check_policy(mdp, policy)
    chain = policy_chain(mdp, pi).T.tocsr()
    start = mdp.initial if source is None else source
    states = solve_discounted(chain, (1 - mdp.discount) * start, mdp.discount, norm=1, tolerance=tolerance)
    mass = np.maximum(states, 0.0)
    if source is None and abs(mass.sum() - 1) > SCALE_ERROR:
        mass /= mass.sum()
    return np.asarray(mass[mdp.pair_states] * pi)


def flow_of(mdp: TabularMDP, occupancy: FloatArray) -> FloatArray:
    """Return Tγ μ without checking μ, for the inner loops of solvers."""
    mass = np.add.reduceat(occupancy, mdp.state_starts[:-1])
    return (mass - mdp.discount * (mdp.transitions.T @ occupancy)) / (1 - mdp.discount)


def cost_of_value(mdp: TabularMDP, value: FloatArray) -> FloatArray:
    """Return Tγᵀ u without checking u, for the inner loops of solvers."""
    return (value[mdp.pair_states] - mdp.discount * (mdp.transitions @ value)) / (1 - mdp.discount)


def policy_of(mdp: TabularMDP, occupancy: ArrayLike) -> FloatArray:
    """Return the policy that divides each state's mass as `occupancy` does.

    Only the ratios within a state matter.
    """
    mu = _checks.nonnegative("occupancy", mdp.pairs(occupancy, "occupancy", largest=np.inf))
    return shares(mu, mdp.state_starts)


def shares(weights: FloatArray, state_starts: IntArray) -> FloatArray:
    """Return each pair's share of its state's weight, or equal shares if that weight is zero."""
    counts = np.diff(state_starts)
    weights = weights / max(weights.max(), np.finfo(float).tiny)  # no overflow in the sums
    totals = np.repeat(np.add.reduceat(weights, state_starts[:-1]), counts)
    return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), np.repeat(1.0 / counts, counts))


def value_of(mdp: TabularMDP, policy: ArrayLike, cost: ArrayLike) -> FloatArray:
    """Return the normalised value of a policy under `cost`."""
    pi = check_policy(mdp, policy)
    c = mdp.pairs(cost, "cost")
    stage = (1 - mdp.discount) * mdp.sum_by_state(pi * c)
    return solve_discounted(policy_chain(mdp, pi), stage, mdp.discount, norm=np.inf)


def check_policy(mdp: TabularMDP, policy: ArrayLike) -> FloatArray:
    """Return `policy` as conditional probabilities over each state's pairs, or raise an error."""
    pi = _checks.nonnegative("policy", mdp.pairs(policy, "policy"))
    sums = mdp.sum_by_state(pi)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > _checks.SUM_TOLERANCE:
        raise ValueError(f"policy must sum to 1 over each state's pairs, but it sums to {sums[worst]} in state {worst}")
    return pi / sums[mdp.pair_states]


def check_occupancy(mdp: TabularMDP, occupancy: ArrayLike, name: str = "occupancy") -> FloatArray:
    """Return `occupancy` as an exactly normalised probability vector over pairs.

    `name` is what an error calls the argument.
    """
    per = "feasible state-action pair (mdp.n_pairs)"
    return _checks.distribution(name, mdp.pairs(occupancy, name), mdp.n_pairs, per)


def occupancy_of_table(mdp: TabularMDP, values: ArrayLike, name: str) -> FloatArray:
    """Return an occupancy given as a vector over pairs, or as a table with nothing where infeasible.

    `name` is what an error calls the argument.
    """
    array = _checks.numbers(name, values)
    if array.ndim == 2:
        shape = (mdp.n_states, mdp.n_actions)
        if array.shape != shape:
            raise ValueError(f"{name}, an occupancy table, has shape {array.shape}, expected {shape}")
        outside = array.copy()
        outside[mdp.pair_states, mdp.pair_actions] = 0.0
        if outside.any():
            state, action = np.argwhere(outside)[0]
            raise ValueError(
                f"{name}: the occupancy table has {outside[state, action]} at state {state}, action {action}, "
                "which is not feasible"
            )
        array = array[mdp.pair_states, mdp.pair_actions]
    elif array.shape == (mdp.n_states,) != (mdp.n_pairs,):
        raise ValueError(
            f"{name} has shape {array.shape}, an occupancy over states, as MCEIRL takes; what was done there is "
            "missing: pass a table over states × actions that sums to 1, such as occupancy[:, None] / occupancy.sum() "
            "* policy for a discounted occupancy, or what rlfd_gym.experts.occupancy_from_states infers"
        )
    return _checks.distribution(name, array, mdp.n_pairs, "feasible state-action pair (mdp.n_pairs)")


def policy_chain(mdp: TabularMDP, policy: FloatArray) -> sp.csr_array:
    """Return P_π, the sparse (n_states, n_states) transition matrix under a policy."""
    used = np.flatnonzero(policy)
    starts = np.searchsorted(used, mdp.state_starts)
    mix = sp.csr_array((policy[used], used, starts), shape=(mdp.n_states, mdp.n_pairs))
    return mix @ mdp.transitions


def solve_discounted(
    matrix: sp.csr_array, rhs: FloatArray, discount: float, *, norm: float, tolerance: float = TOLERANCE
) -> FloatArray:
    """Solve x = rhs + γ M x, where M does not increase the given norm (1 or infinity)."""
    n = rhs.shape[0]
    system = matrix.toarray() if n <= DENSE_STATES else matrix
    x, r = np.zeros(n), rhs
    target = tolerance * np.linalg.norm(rhs, norm)
    rounding = (int(np.diff(matrix.indptr).max(initial=0)) + 3) * EPS  # of r, as a share of x: it has so many terms
    left = np.linalg.norm(r, norm)
    for solve, share in solvers(matrix, discount):
        while left > target:
            candidate = x + solve(r, max(1e-6, tolerance))
            r_new = rhs - candidate + discount * (system @ candidate)
            before, after = left, np.linalg.norm(r_new, norm)
            if after < before:
                x, r, left = candidate, r_new, after
            if not after <= share * before:
                break
        # What rounding leaves of r would take sweeps 1/(1-γ) steps to nibble at.
        if left <= max(target, rounding * np.linalg.norm(x, norm)):
            break
    return np.asarray(x)


def solvers(matrix: sp.csr_array, discount: float) -> Iterator[tuple[Solver, float]]:
    """Return ways to solve x = rhs + γ M x, each with the share of the residual that it should leave at most.

    They take rhs and the relative residual to stop at, and may do better or worse.
    """
    n = matrix.shape[0]
    if n <= DENSE_STATES:
        # It factorises anew for a refinement, which is hardly ever needed.
        yield partial(_dense, np.asfortranarray(np.eye(n) - discount * matrix.toarray())), 0.1
    elif n <= LU_STATES or matrix.nnz <= n:
        yield _sparse(matrix, discount), 0.1
    elif _width(matrix, min(n, 1_000)) <= NARROW and _width(matrix, n) <= NARROW:
        yield _banded(matrix, discount), 0.1
    else:
        matrix.sum_duplicates()
        yield partial(_krylov, matrix, discount), 0.1
        order = reverse_cuthill_mckee(sp.csr_matrix(matrix), symmetric_mode=False)
        ordered = matrix[order][:, order]
        if n * _width(ordered, n) ** 2 <= BANDED_WORK:
            yield _banded(ordered, discount, order), 0.1
    # Only rounding can leave more than this: then x is as exact as floating point allows.
    yield partial(_sweep, matrix, discount), (1 + discount) / 2


def _dense(system: FloatArray, rhs: FloatArray, rtol: float) -> FloatArray:
    """Solve a dense system; NumPy's solver would use several threads from 100 rows on, and wait for them."""
    return np.asarray(dgesv(system, rhs)[2])


def _sparse(matrix: sp.csr_array, discount: float) -> Solver:
    """Factorise I - γ M with SuperLU."""
    factors = splu(sp.csc_array(sp.eye_array(matrix.shape[0], format="csr") - discount * matrix))
    return lambda rhs, rtol: np.asarray(factors.solve(rhs))


def _width(matrix: sp.csr_array, n_rows: int) -> int:
    """Return how far from the diagonal the entries of the first rows are."""
    rows = np.repeat(np.arange(n_rows), np.diff(matrix.indptr[: n_rows + 1]))
    return int(np.abs(matrix.indices[: rows.size] - rows).max(initial=0))


def _banded(matrix: sp.csr_array, discount: float, order: IntArray | None = None) -> Solver:
    """Factorise I - γ M within its band; `order` says where each row of M was before."""
    n = matrix.shape[0]
    width = _width(matrix, n)
    rows = np.repeat(np.arange(n), np.diff(matrix.indptr))
    bands = np.zeros((3 * width + 1, n), order="F")
    bands[2 * width + rows - matrix.indices, matrix.indices] = -discount * matrix.data
    bands[2 * width] += 1.0
    factors, pivots, _ = dgbtrf(bands, width, width, overwrite_ab=True)

    def solve(rhs: FloatArray, rtol: float) -> FloatArray:
        if order is None:
            return np.asarray(dgbtrs(factors, width, width, rhs, pivots)[0])
        x = np.empty_like(rhs)
        x[order] = dgbtrs(factors, width, width, rhs[order], pivots)[0]
        return x

    return solve


def _krylov(matrix: sp.csr_array, discount: float, rhs: FloatArray, rtol: float) -> FloatArray:
    """Return a rough solution by BiCGSTAB, preconditioned from the right with a Gauss-Seidel sweep."""
    from rlfd_gym._rows import rows_of  # compiled: loaded only for problems that need it
    from rlfd_gym.mdp import _sweeps

    rows = rows_of(matrix)
    x, r = np.zeros_like(rhs), rhs.copy()
    p, v = np.zeros_like(rhs), np.zeros_like(rhs)
    rho = alpha = omega = 1.0
    goal = rtol * rtol * dot(rhs, rhs)
    for _ in range(KRYLOV_STEPS):
        old, rho = rho, dot(rhs, r)
        if rho == 0.0 or omega == 0.0:
            break
        p = r + rho / old * alpha / omega * (p - omega * v)
        ahead = np.zeros_like(rhs)
        _sweeps.gauss_seidel(*rows, discount, p, 1, ahead)
        v = ahead - discount * (matrix @ ahead)
        along = dot(rhs, v)
        if along == 0.0:
            break
        alpha = rho / along
        x += alpha * ahead
        r -= alpha * v
        if dot(r, r) <= goal:
            break
        ahead = np.zeros_like(rhs)
        _sweeps.gauss_seidel(*rows, discount, r, 1, ahead)
        t = ahead - discount * (matrix @ ahead)
        if not t.any():
            break
        omega = dot(t, r) / dot(t, t)
        x += omega * ahead
        r -= omega * t
        if dot(r, r) <= goal:
            break
    return x


def _sweep(matrix: sp.csr_array, discount: float, rhs: FloatArray, rtol: float) -> FloatArray:
    """Return a rough solution by symmetric Gauss-Seidel sweeps.

    Each sweep multiplies the residual by at most γ².
    """
    from rlfd_gym._rows import rows_of  # compiled: loaded only for problems that need it
    from rlfd_gym.mdp import _sweeps

    x = np.zeros_like(rhs)
    _sweeps.gauss_seidel(*rows_of(matrix), discount, rhs, SWEEPS, x)
    return x
