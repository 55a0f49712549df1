"""Compiled loops over the pairs for the matrix-free solver (`rlfd_gym.solvers.matrix_free`).

The transition matrix P is passed as the three arrays of its CSR format.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._compiled import compiled, inlined
from rlfd_gym.mdp.pairs import dot


@compiled
def prox(z, anchor, expert, prior, low, high, curvature, tau, raw, occupancy, slopes):
    """Compute every pair's prox step, before and after clipping at 0, and its derivative in z."""
    for i in range(z.size):
        raw[i], slope = _prox_one(z[i], anchor[i], expert[i], prior[i], low[i], high[i], curvature, tau)
        occupancy[i] = max(raw[i], 0.0)
        slopes[i] = slope if raw[i] > 0.0 else 0.0


@inlined
def _prox_one(z, anchor, expert, prior, low, high, curvature, tau):
    """Return the prox step m of one pair and its slope.

    It has three pieces, depending on where the cost is with respect to its ends.
    """
    m = (curvature * tau * (z - prior) + tau * expert + curvature * anchor) / (curvature + tau)
    cost = z - (m - anchor) / tau
    if cost > high:
        return anchor + tau * (z - high), tau
    if cost < low:
        return anchor + tau * (z - low), tau
    return m, curvature * tau / (curvature + tau)


@compiled
def line_search(z, dz, gain, anchor, expert, prior, low_end, high_end, curvature, tau):
    """Return a step length at which the directional derivative has fallen to a tenth.

    It is found by a safeguarded Newton method, as the derivative is a monotone function.
    """
    length, low, high, first = 0.0, 0.0, np.inf, 0.0
    for trial in range(32):
        slope, bend = gain, 0.0
        for i in range(z.size):
            there = z[i] + length * dz[i]
            m, d = _prox_one(there, anchor[i], expert[i], prior[i], low_end[i], high_end[i], curvature, tau)
            if m > 0.0:
                slope -= m * dz[i]
                bend += d * dz[i] * dz[i]
        if trial == 0:
            first, length = slope, 1.0
            continue
        if abs(slope) <= 0.1 * abs(first):
            break
        if slope > 0.0:
            low = length
        else:
            high = length
        new = length + slope / bend if bend > 0.0 else np.inf
        if not low < new < high:
            new = 0.5 * (low + high) if high < np.inf else 4.0 * length
        length = new
    return length


@compiled
def wake_idle_states(state_starts, raw, slopes, nominal):
    """Give each state without active pairs a slope at its most nearly active one.

    With these slopes T D Tᵀ is not singular.
    """
    for s in range(state_starts.size - 1):
        best, idle = state_starts[s], True
        for i in range(state_starts[s], state_starts[s + 1]):
            idle = idle and slopes[i] == 0.0
            if raw[i] > raw[best]:
                best = i
        if idle:
            slopes[best] = nominal


@compiled
def blend(old, new, expert, prior, low_end, high_end, curvature):
    """Return how far to go from one occupancy to another for the best lower bound.

    It is found by bisection on the derivative of the bound.
    """
    low, high = 0.0, 1.0
    for trial in range(20):
        t = 1.0 if trial == 0 else 0.5 * (low + high)
        slope = 0.0
        for i in range(old.size):
            change = new[i] - old[i]
            off = old[i] + t * change - expert[i]
            if curvature > 0.0:
                cost = prior[i] + off / curvature
            else:
                cost = np.inf if off > 0.0 else -np.inf if off < 0.0 else prior[i]
            slope -= change * min(high_end[i], max(low_end[i], cost))
        if slope > 0.0:
            low = t
        else:
            high = t
        if low == 1.0:
            break
    return low


def normal_diagonal(*matrix: Any) -> FloatArray:
    """Return the diagonal of T D Tᵀ, of a matrix that is given as P, γ and D are elsewhere here."""
    diagonal = np.zeros(matrix[3].size - 1)
    _add_diagonal(*matrix, diagonal)
    return diagonal


@compiled
def _add_diagonal(data, indices, indptr, state_starts, discount, weights, diagonal):
    """Add the diagonal of T D Tᵀ to a vector."""
    scale = 1.0 / (1.0 - discount) ** 2
    for s in range(diagonal.size):
        for i in range(state_starts[s], state_starts[s + 1]):
            weight, own = weights[i] * scale, 1.0
            for k in range(indptr[i], indptr[i + 1]):
                if indices[k] == s:
                    own -= discount * data[k]
                else:
                    diagonal[indices[k]] += weight * (discount * data[k]) ** 2
            diagonal[s] += weight * own * own


@compiled
def weigh(
    data, indices, indptr, back_data, back_indices, back_indptr, row_indices, row_indptr, weights, ridge, row, entries
):
    """Set the entries of T D Tᵀ + diag r, where `row_indices` and `row_indptr` say, of T and Tᵀ in CSR format.

    `row` is memory for a row, which is zero before and after.
    """
    for s in range(row.size):
        row[s] = ridge[s]
        for k in range(indptr[s], indptr[s + 1]):
            i = indices[k]
            weight = data[k] * weights[i]
            for j in range(back_indptr[i], back_indptr[i + 1]):
                row[back_indices[j]] += weight * back_data[j]
        for k in range(row_indptr[s], row_indptr[s + 1]):
            entries[k] = row[row_indices[k]]
            row[row_indices[k]] = 0.0


@compiled
def _normal_product(data, indices, indptr, state_starts, discount, weights, ridge, share, x, out):
    """out = (T D Tᵀ + diag r - share r rᵀ) x, in one pass over the pairs with weight."""
    common = 0.0
    for s in range(x.size):
        common += ridge[s] * x[s]
    common *= share
    for s in range(x.size):
        out[s] = ridge[s] * (x[s] - common)
    scale = 1.0 / (1.0 - discount) ** 2
    for s in range(x.size):
        for i in range(state_starts[s], state_starts[s + 1]):
            if weights[i] != 0.0:
                ahead = 0.0
                for k in range(indptr[i], indptr[i + 1]):
                    ahead += data[k] * x[indices[k]]
                total = scale * weights[i] * (x[s] - discount * ahead)
                out[s] += total
                total *= discount
                for k in range(indptr[i], indptr[i + 1]):
                    out[indices[k]] -= data[k] * total


def begin(*system: Any) -> tuple[FloatArray, ...]:
    """Begin conjugate gradients for (T D Tᵀ + diag r - share r rᵀ) x = b at the given x.

    The system is given as `advance` takes it, with b and x last; `share` is 1/Σr, or 0 to leave the
    last term out. Returns what `advance` needs: the Jacobi preconditioner, the residual r of x, the
    first direction p, memory for a product, and the sizes (<r, z>, ‖r‖₁), where z is the
    preconditioned residual.
    """
    *matrix, rhs, x = system
    diagonal = np.maximum(normal_diagonal(*matrix[:6]) + matrix[6], 1e-300)
    r, ap = rhs.copy(), np.empty_like(rhs)
    if x.any():
        _normal_product(*matrix, x, ap)
        r -= ap
    p = r / diagonal
    return diagonal, r, p, ap, np.array([dot(r, p), np.abs(r).sum()])


@compiled
def advance(
    data, indices, indptr, state_starts, discount, weights, ridge, share, x, goal, limit, diagonal, r, p, ap, sizes
):
    """Continue conjugate gradients until ‖residual‖₁ ≤ goal, for at most `limit` products.

    Changes x and all that `begin` returned, in place. Returns the number of products; the method
    has ended if it is below `limit`.
    """
    n = x.size
    rz, size = sizes
    iteration = 0
    while iteration < limit and size > goal:
        iteration += 1
        _normal_product(data, indices, indptr, state_starts, discount, weights, ridge, share, p, ap)
        bend = 0.0
        for s in range(n):
            bend += p[s] * ap[s]
        if not (bend > 0.0 and rz > 0.0):
            size = 0.0  # rounding has taken over: no more steps
            break
        # Move along p, then find the next direction.
        length = rz / bend
        new, size = 0.0, 0.0
        for s in range(n):
            x[s] += length * p[s]
            r[s] -= length * ap[s]
            new += r[s] * r[s] / diagonal[s]
            size += abs(r[s])
        ratio = new / rz
        rz = new
        for s in range(n):
            p[s] = r[s] / diagonal[s] + ratio * p[s]
    sizes[0], sizes[1] = rz, size
    return iteration
