"""Compiled sweeps over the tables, for problems too large for factorisations. All take CSR arrays."""

from __future__ import annotations

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def bellman(data, indices, indptr, state_starts, stage, discount, u, best, pairs):
    """best = L u and the first greedy pair of each state; returns the least and largest entry of L u - u."""
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


@numba.njit(cache=True, nogil=True)
def improve(data, indices, indptr, state_starts, stage, discount, u):
    """u(s) ← (L u)(s) in place, through the states and back: news travels along whole paths at once."""
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


@numba.njit(cache=True, nogil=True)
def evaluate(data, indices, indptr, pairs, stage, discount, u, n_sweeps):
    """n_sweeps times u ← stage + γ P u for the pair chosen in each state; returns the new u."""
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


@numba.njit(cache=True, nogil=True)
def gauss_seidel(data, indices, indptr, discount, rhs, n_sweeps):
    """An approximate solution of x = rhs + γ M x: from zero, n_sweeps times through the rows and back."""
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
