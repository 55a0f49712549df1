"""Compiled sweeps over the tables, for problems too large for factorisations.

All functions take the arrays of a CSR matrix.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import cached


@cached()
def bellman(data, indices, indptr, state_starts, stage, discount, u, best, pairs):
    """Set best = L u and `pairs` to the first greedy pair of each state.

    Returns the least and the largest entry of L u - u.
    """
    low, high = np.inf, -np.inf
    for s in range(u.size):
        minimum = np.inf
        for i in range(state_starts[s], state_starts[s + 1]):
            q = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                q += data[k] * u[indices[k]]
            q = stage[i] + discount * q
            if q < minimum:
                minimum = q
                pairs[s] = i
        best[s] = minimum
        low = min(low, minimum - u[s])
        high = max(high, minimum - u[s])
    return low, high


@cached()
def improve(data, indices, indptr, state_starts, stage, discount, u):
    """Set u(s) ← (L u)(s) in place, through the states and back.

    Working in place lets a change travel along a whole path in one sweep.
    """
    n = u.size
    for step in range(2 * n):
        s = step if step < n else 2 * n - 1 - step
        minimum = np.inf
        for i in range(state_starts[s], state_starts[s + 1]):
            q = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                q += data[k] * u[indices[k]]
            minimum = min(minimum, stage[i] + discount * q)
        u[s] = minimum


@cached()
def evaluate(data, indices, indptr, pairs, stage, discount, u, n_sweeps):
    """Return u after n_sweeps times u ← stage + γ P u, with the chosen pair of each state."""
    out = np.empty_like(u)
    for _ in range(n_sweeps):
        for s in range(u.size):
            i = pairs[s]
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += data[k] * u[indices[k]]
            out[s] = stage[i] + discount * total
        u, out = out, u
    return u


@cached()
def gauss_seidel(data, indices, indptr, discount, rhs, n_sweeps):
    """Return an approximate solution of x = rhs + γ M x.

    It starts from zero and goes n_sweeps times through the rows and back.
    """
    n = rhs.size
    x = np.zeros(n)
    for step in range(2 * n * n_sweeps):
        i = step % (2 * n)
        if i >= n:
            i = 2 * n - 1 - i
        total, diagonal = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j == i:
                diagonal += data[k]
            else:
                total += data[k] * x[j]
        x[i] = (rhs[i] + discount * total) / (1.0 - discount * diagonal)
    return x


@cached()
def bicgstab(data, indices, indptr, discount, rhs, rtol, limit):
    """Return a rough solution of x = rhs + γ M x by BiCGSTAB.

    It is preconditioned from the right with `gauss_seidel`. The vectors are too short for a
    threaded dot product to be worth it, so nothing here calls one.
    """
    n = rhs.size
    x, r, shadow = np.zeros(n), rhs.copy(), rhs.copy()
    p, v = np.zeros(n), np.zeros(n)
    rho, alpha, omega = 1.0, 1.0, 1.0
    goal = rtol * rtol * _dot(rhs, rhs)
    for _ in range(limit):
        old, rho = rho, _dot(shadow, r)
        if rho == 0.0 or omega == 0.0:
            break
        beta = rho / old * alpha / omega
        for i in range(n):
            p[i] = r[i] + beta * (p[i] - omega * v[i])
        ahead = gauss_seidel(data, indices, indptr, discount, p, 1)
        _residual_map(data, indices, indptr, discount, ahead, v)
        alpha = _dot(shadow, v)
        if alpha == 0.0:
            break
        alpha = rho / alpha
        for i in range(n):
            x[i] += alpha * ahead[i]
            r[i] -= alpha * v[i]
        if _dot(r, r) <= goal:
            break
        ahead = gauss_seidel(data, indices, indptr, discount, r, 1)
        t = np.empty(n)
        _residual_map(data, indices, indptr, discount, ahead, t)
        omega = _dot(t, t)
        if omega == 0.0:
            break
        omega = _dot(t, r) / omega
        for i in range(n):
            x[i] += omega * ahead[i]
            r[i] -= omega * t[i]
        if _dot(r, r) <= goal:
            break
    return x


@cached()
def _residual_map(data, indices, indptr, discount, x, out):
    """Set out = x - γ M x."""
    for i in range(x.size):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        out[i] = x[i] - discount * total


@cached()
def _dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total
