"""What the library's answers are compared with.

Algorithm 1 in plain NumPy with given samples, and the compiled steps that are compared with it.
Programs from the textbook. Moments of the estimators in closed form.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import piqp
from checks import dense_flow
from numba import njit
from plain_smd import descend, pull
from scipy.optimize import linprog
from strategies import random_point

from rlfd_gym import RLfDProblem
from rlfd_gym.beliefs import Ball, Hull, Prices
from rlfd_gym.problem import Point


def replay(problem: RLfDProblem, eta: float, eta_mu: float, start, samples, draws, basis=None, eta_value=None):
    """Dense steps with given samples (i, j, s', e, s'_e, k, s'_k).

    Weights are kept as logarithms, so that the comparison also holds where a plain product would underflow. Returns the
    averages, the last iterate, and the largest distance of a draw from the interval of the distribution function of μ
    that belongs to the j that was taken for it.
    """
    prior, states, gamma = problem.prior, problem.mdp.pair_states.tolist(), problem.mdp.discount
    x, u, mu = (vector.copy() for vector in start)  # x is c, or w
    n = len(mu)
    eta_value = eta if eta_value is None else eta_value
    ends = problem.belief.ends() if basis is None else ()
    with np.errstate(divide="ignore"):
        log_mu = np.log(mu)
    sums = [np.zeros_like(x), np.zeros_like(u), np.zeros_like(mu)]
    miss = 0.0
    for (i, j, next_j, e, next_e, k, next_k), draw in zip(samples.tolist(), draws.tolist(), strict=True):
        c = x if basis is None else basis @ x
        upper = mu[: j + 1].sum()
        miss = max(miss, draw - upper, (upper - mu[j]) - draw)
        g_mu = n * (c[k] - (u[states[k]] - gamma * u[next_k]) / (1 - gamma))
        g_c = np.zeros(n)
        for pair, change in ((i, n * pull(problem, c[i], prior[i])), (e, 1.0), (j, -1.0)):
            g_c[pair] += change
        g_u = np.zeros(len(u))
        for state, change in ((states[j], 1.0), (next_j, -gamma), (states[e], -1.0), (next_e, gamma)):
            g_u[state] += change
        x = descend(x, g_c, eta, basis, *ends)
        u = np.minimum(np.maximum(u - eta_value * g_u / (1 - gamma), -1.0), 1.0)
        log_mu[k] -= eta_mu * g_mu
        log_mu -= log_mu.max()
        mu = np.exp(log_mu)
        z = mu.sum()
        log_mu -= np.log(z)
        mu /= z
        for total, new in zip(sums, (x, u, mu), strict=True):
            total += new
    return [total / len(samples) for total in sums], (x, u, mu), miss


def begin(problem: RLfDProblem, point=None):
    """A compiled run at a point, by default a random one; the problem's tables; the point."""
    from rlfd_gym.solvers.smd import records

    if point is None:
        x, value, occupancy = random_point(problem, 0)
        point = Point(problem.belief.nearest(x), value, occupancy)
    return records.start(problem, point), records.tables_of(problem), point


def kernel(part):
    """A part of a kernel as a kernel of its own, which Python can call."""
    return njit(lambda *arguments: part(*arguments))


def advance(run, tables, step, n_steps: int, seed: int = 1):
    """Compiled steps with random draws: (draws, samples)."""
    from rlfd_gym.solvers.smd import kernels, records

    draws = np.random.default_rng(seed).random((n_steps, records.DRAWS))
    samples = np.empty((n_steps, records.DRAWS), np.int32)
    assert kernels.advance(run, tables, step, draws, samples, kernels.memory_of_hints(len(run.pairs))) == kernels.OK
    return draws, samples


def quadratic_program(hessian, gradient, **constraints):
    """The solution of a dense quadratic program by PIQP, to rounding."""
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.setup(hessian, gradient, **constraints)
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result


def hull_optimum(hull: RLfDProblem):
    """min over (w, u, t) of α‖Cw - ĉ‖² + <μ_E, q> - t with q = Cw - Tγᵀu ≥ t, by PIQP: (value, (w, u, μ))."""
    basis, flow = hull.belief.basis, dense_flow(hull.mdp)
    (n, size), n_states = basis.shape, hull.n_states
    hessian = np.zeros((size + n_states + 1,) * 2)
    hessian[:size, :size] = 2 * hull.alpha * basis.T @ basis
    gradient = np.r_[basis.T @ (hull.expert - 2 * hull.alpha * hull.prior), -flow @ hull.expert, -1.0]
    result = quadratic_program(
        hessian,
        gradient,
        A=np.r_[np.ones(size), np.zeros(n_states + 1)][None],
        b=np.ones(1),
        G=np.column_stack([basis, -flow.T, -np.ones(n)]),
        h_l=np.zeros(n),
        x_l=np.r_[np.zeros(size), np.full(n_states, -1.0), -1e3 / (1 - hull.discount)],
        x_u=np.r_[np.ones(size), np.ones(n_states), 1e3 / (1 - hull.discount)],
    )
    x, mu = result.x, np.maximum(result.z_l[:n], 0)
    value = 0.5 * x @ hessian @ x + gradient @ x + hull.alpha * np.sum(hull.prior**2)
    w, u = np.maximum(x[:size], 0), np.clip(x[size:-1], -1, 1)
    return value, (w / w.sum(), u, mu / mu.sum())


def sparse_optimum(problem: RLfDProblem) -> float:
    """The optimum with the ℓ1 penalty from its definition: variables c, u, |c - ĉ| ≤ a, t ≤ qᵢ, dense, by HiGHS."""
    n, n_states = problem.n_pairs, problem.n_states
    T, zero = dense_flow(problem.mdp), np.zeros
    objective = np.r_[problem.expert, -T @ problem.expert, pair_alpha(problem), -1.0]
    rows = np.block(
        [
            [np.eye(n), zero((n, n_states)), -np.eye(n), zero((n, 1))],
            [-np.eye(n), zero((n, n_states)), -np.eye(n), zero((n, 1))],
            [-np.eye(n), T.T, zero((n, n)), np.ones((n, 1))],
        ]
    )
    bounds = [(-1, 1)] * (n + n_states) + [(0, None)] * n + [(None, None)]
    result = linprog(objective, rows, np.r_[problem.prior, -problem.prior, zero(n)], bounds=bounds, method="highs-ds")
    assert result.status == 0
    return result.fun


def pair_alpha(problem: RLfDProblem) -> np.ndarray:
    """αᵢ from its definition."""
    weights = problem.belief.weights
    return problem.alpha * (np.ones(problem.n_pairs) if weights is None else weights)


def second_moment_cu(problem: RLfDProblem, c, mu) -> float:
    """E‖g_cu‖² in closed form, from the independence of i and the rest."""
    mdp, n, gamma = problem.mdp, problem.n_pairs, problem.discount
    a = n * pull(problem, c, problem.prior)
    cost_part = np.mean(a**2) + 2 * np.mean(a * (problem.expert - mu)) + 2 - 2 * problem.expert @ mu
    P, b = mdp.transitions.toarray(), np.eye(mdp.n_states)[mdp.pair_states]
    flow_of = b - gamma * P  # the mean of e_s - γ e_s' given the pair
    squares = 1 + gamma**2 - 2 * gamma * P[np.arange(n), mdp.pair_states]
    cross = (mu @ flow_of) @ (problem.expert @ flow_of)
    return cost_part + (mu @ squares + problem.expert @ squares - 2 * cross) / (1 - gamma) ** 2


def believed_optimum(problem: RLfDProblem) -> float:
    """The optimum of any belief from its definition, dense.

    Without a penalty it is max over μ in the simplex of min over 𝒞 of <d, c> - M‖Tγ d‖₁ with d = μ_E - μ, by HiGHS. The
    variables are μ, r ≥ |Tγ d| and s, the inner minimum: price by price, pair by pair, or of all columns at once. The
    norm of a ball is cut by its tangents until they are exact.
    """
    belief, expert, T = problem.belief, problem.expert, dense_flow(problem.mdp)
    if isinstance(belief, Hull) and belief.alpha > 0:
        return hull_optimum(problem)[0]
    if isinstance(belief, Prices) and belief.alpha > 0:
        return _prices_with_a_penalty(problem, T)
    n, n_states, known, size = problem.n_pairs, problem.n_states, np.zeros(problem.n_pairs), 1.0
    if isinstance(belief, Prices):
        matrix, known, size = belief.features, belief.offset, largest_cost(belief)
    elif isinstance(belief, Ball):
        matrix, known, size = np.zeros((n, 0)), belief.prior, np.abs(belief.prior).max() + belief.radius
    else:
        matrix = belief.basis if isinstance(belief, Hull) else np.eye(n)
    # Rows G and the variable of s that each bounds: s ≤ G d.
    if isinstance(belief, (Hull, Ball)):
        rows, owner = matrix.T, np.zeros(matrix.shape[1], dtype=int)
    else:
        rows = np.vstack([end[:, None] * matrix.T for end in (belief.low, belief.high)])
        owner = np.tile(np.arange(matrix.shape[1]), 2)
    parts = 1 if isinstance(belief, (Hull, Ball)) else matrix.shape[1]
    balance = np.vstack([np.hstack([sign * T, np.zeros((n_states, parts)), -np.eye(n_states)]) for sign in (-1, 1)])
    while True:
        inner = np.column_stack([rows, np.eye(parts)[owner], np.zeros((len(rows), n_states))])
        result = linprog(
            np.r_[known, -np.ones(parts), np.full(n_states, size)],
            np.vstack([inner, balance]),
            np.r_[rows @ expert, -T @ expert, T @ expert],
            np.r_[np.ones(n), np.zeros(parts + n_states)][None],
            [1.0],
            [(0, None)] * n + [(None, 0 if isinstance(belief, Ball) else None)] * parts + [(0, None)] * n_states,
            method="highs-ds",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert result.status == 0
        d = expert - result.x[:n]
        norm = np.linalg.norm(d)
        if not isinstance(belief, Ball) or -result.x[n] >= belief.radius * norm - 1e-9:
            return known @ expert - result.fun
        rows, owner = np.vstack([rows, -belief.radius / norm * d]), np.append(owner, 0)


def largest_cost(belief: Prices) -> float:
    """The largest absolute cost over all corners of the ranges."""
    corners = np.array(list(product(*zip(belief.low, belief.high, strict=True))))
    return float(np.abs(belief.offset[:, None] + belief.features @ corners.T).max())


def _prices_with_a_penalty(problem: RLfDProblem, T: np.ndarray) -> float:
    """min over (w, u, t) of α‖w - ŵ‖² + <μ_E, q> - t with q = offset + Cw - Tγᵀu ≥ t, by PIQP."""
    belief, expert, n_states = problem.belief, problem.expert, problem.n_states
    k, size = belief.low.size, largest_cost(belief)
    far = 1e3 * size / (1 - problem.discount)
    hessian = np.zeros((k + n_states + 1,) * 2)
    hessian[:k, :k] = 2 * belief.alpha * np.eye(k)
    gradient = np.r_[belief.features.T @ expert - 2 * belief.alpha * belief.prior, -T @ expert, -1.0]
    x = quadratic_program(
        hessian,
        gradient,
        G=np.column_stack([belief.features, -T.T, -np.ones(len(expert))]),
        h_l=-belief.offset,
        x_l=np.r_[belief.low, np.full(n_states, -size), -far],
        x_u=np.r_[belief.high, np.full(n_states, size), far],
    ).x
    return 0.5 * x @ hessian @ x + gradient @ x + belief.alpha * np.sum(belief.prior**2) + expert @ belief.offset
