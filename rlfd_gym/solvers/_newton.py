"""Compiled loops over the pairs for the matrix-free solver (`rlfd_gym.solvers.matrix_free`).

The transition matrix P is passed as the three arrays of its CSR format.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import cached


@cached()
def prox(z, anchor, expert, prior, low, high, curvature, tau, raw, occupancy, slopes):
    """Compute every pair's prox step, before and after clipping at 0, and its derivative in z."""
    for i in range(z.size):
        raw[i], slope = _prox_one(z[i], anchor[i], expert[i], prior[i], low[i], high[i], curvature, tau)
        occupancy[i] = max(raw[i], 0.0)
        slopes[i] = slope if raw[i] > 0.0 else 0.0


@cached(inline="always")
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


@cached()
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


@cached()
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


@cached()
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


@cached()
def greedy(data, indices, indptr, state_starts, stage, discount, value, improved, pairs):
    """Set improved = L value, L the Bellman operator, and `pairs` to each state's first best pair.

    Returns the least and the largest entry of L value - value.
    """
    low, high = np.inf, -np.inf
    for s in range(value.size):
        least = np.inf
        for i in range(state_starts[s], state_starts[s + 1]):
            ahead = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                ahead += data[k] * value[indices[k]]
            ahead = stage[i] + discount * ahead
            if ahead < least:
                least = ahead
                pairs[s] = i
        improved[s] = least
        low = min(low, least - value[s])
        high = max(high, least - value[s])
    return low, high


@cached()
def relax(data, indices, indptr, state_starts, stage, discount, value, n_sweeps):
    """Set value(s) ← (L value)(s) in place, n_sweeps times through the states and back."""
    n = value.size
    for step in range(2 * n * n_sweeps):
        s = step % (2 * n)
        if s >= n:
            s = 2 * n - 1 - s
        least = np.inf
        for i in range(state_starts[s], state_starts[s + 1]):
            ahead = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                ahead += data[k] * value[indices[k]]
            least = min(least, stage[i] + discount * ahead)
        value[s] = least


@cached()
def normal_diagonal(data, indices, indptr, state_starts, discount, weights):
    """Return the diagonal of T D Tᵀ."""
    diagonal = np.zeros(state_starts.size - 1)
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
    return diagonal


@cached()
def weigh(data, indices, indptr, back_data, back_indices, back_indptr, row_indices, row_indptr, weights, ridge):
    """Return the entries of T D Tᵀ + diag r, where `row_indices` and `row_indptr` say, of T and Tᵀ in CSR format."""
    entries, row = np.empty(row_indices.size), np.zeros(row_indptr.size - 1)
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
    return entries


@cached()
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


@cached()
def begin(data, indices, indptr, state_starts, discount, weights, ridge, share, rhs, x):
    """Begin conjugate gradients for (T D Tᵀ + diag r - share r rᵀ) x = rhs at the given x.

    The method uses a Jacobi preconditioner. `share` is 1/Σr, or 0 to leave the last term out.
    Returns what `advance` needs: the preconditioner, the residual r of x, the first direction p,
    memory for a product, and the sizes (<r, z>, ‖r‖₁), where z is the preconditioned residual.
    """
    n = rhs.size
    diagonal = normal_diagonal(data, indices, indptr, state_starts, discount, weights)
    r, p, ap, sizes = rhs.copy(), np.empty(n), np.empty(n), np.zeros(2)
    if np.any(x != 0.0):
        _normal_product(data, indices, indptr, state_starts, discount, weights, ridge, share, x, ap)
        r -= ap
    for s in range(n):
        diagonal[s] = max(diagonal[s] + ridge[s], 1e-300)
        p[s] = r[s] / diagonal[s]
        sizes[0] += r[s] * p[s]
        sizes[1] += abs(r[s])
    return diagonal, r, p, ap, sizes


@cached()
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
