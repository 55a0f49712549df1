"""Compiled sweeps over the tables, for problems too large for factorisations.

All functions take the arrays of a CSR matrix as `rlfd_gym._rows` says, and those that threads share the first and the
last state to work on.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import compiled
from rlfd_gym._rows import ONE, row_times


@compiled
def longest_rows(indptr, state_starts, longest):
    """Set the number of entries of each state's longest row."""
    for s in range(longest.size):
        most = np.uint64(0)
        for i in range(state_starts[s], state_starts[s + 1]):
            length = indptr[i + 1] - indptr[i]
            most = length if length > most else most
        longest[s] = most


@compiled
def bellman(data, indices, indptr, state_starts, stage, discount, u, best, pairs, first, last):
    """Set best = L u and `pairs` to the first greedy pair of each state.

    Returns the least and the largest entry of L u - u, and how much more than the best the pairs of
    before cost, at most.
    """
    low, high, excess = np.inf, -np.inf, 0.0
    for s in range(np.uint64(first), np.uint64(last)):
        least, before = np.inf, np.inf
        old = chosen = np.uint64(pairs[s])
        for i in range(np.uint64(state_starts[s]), np.uint64(state_starts[s + ONE])):
            q = stage[i] + discount * row_times(data, indices, indptr[i], indptr[i + ONE], u)
            before = q if i == old else before
            chosen = i if q < least else chosen
            least = min(least, q)
        excess = max(excess, before - least)
        pairs[s] = chosen
        best[s] = least
        low = min(low, least - u[s])
        high = max(high, least - u[s])
    return low, high, excess


@compiled
def settle(data, indices, indptr, state_starts, stage, discount, u, slack, q, pairs, first, last):
    """Set `pairs` to the first pair of each state that costs at most `slack` more than the best.

    Returns how far any other than the best pairs is from costing just that much. `q` is for the costs.
    """
    margin = np.inf
    for s in range(np.uint64(first), np.uint64(last)):
        begin, end = np.uint64(state_starts[s]), np.uint64(state_starts[s + ONE])
        least = np.inf
        for i in range(begin, end):
            q[i] = stage[i] + discount * row_times(data, indices, indptr[i], indptr[i + ONE], u)
            least = min(least, q[i])
        chosen = end
        for i in range(begin, end):
            over = q[i] - least
            if over <= slack and chosen == end:
                chosen = i
            if over > 0.0:
                margin = min(margin, abs(over - slack))
        pairs[s] = chosen
    return (margin,)


@compiled
def take_rows(data, indices, indptr, pairs, taken, to_data, to_indices, to_indptr, first, last):
    """Copy the row of each state's pair to the state's place, unless it is there already.

    A row that is shorter than its place ends in zeros.
    """
    for s in range(np.uint64(first), np.uint64(last)):
        if taken[s] != pairs[s]:
            taken[s] = pairs[s]
            k, end = indptr[np.uint64(pairs[s])], indptr[np.uint64(pairs[s]) + ONE]
            for j in range(to_indptr[s], to_indptr[s + ONE]):
                to_data[j] = data[k] if k < end else 0.0
                to_indices[j] = indices[k] if k < end else s
                k += ONE
    return (0,)


@compiled
def evaluate(data, indices, indptr, stage, discount, u, out, first, last):
    """Set out = stage + γ M u. Returns the least and the largest entry of out - u."""
    low, high = np.inf, -np.inf
    k = indptr[np.uint64(first)]
    for s in range(np.uint64(first), np.uint64(last)):
        end = indptr[s + ONE]
        out[s] = stage[s] + discount * row_times(data, indices, k, end, u)
        k = end
        low = min(low, out[s] - u[s])
        high = max(high, out[s] - u[s])
    return low, high


@compiled
def evaluate_until(aim, most, data, indices, indptr, stage, discount, u, out):
    """Evaluate until the span of the change is at most `aim`, `most` times at most, by turns into `out` and u.

    Returns the number of times.
    """
    for done in range(most):
        low, high = evaluate(data, indices, indptr, stage, discount, u, out, 0, u.size)
        u, out = out, u
        if high - low <= aim:
            return done + 1
    return most


@compiled
def improve(data, indices, indptr, state_starts, stage, discount, u, pairs):
    """Set u(s) ← (L u)(s) in place, through the states and back, and `pairs` to the best pairs.

    Working in place lets a change travel along a whole path in one sweep.
    """
    n = np.uint64(u.size)
    for step in range(n + n):
        s = step if step < n else n + n - ONE - step
        least, chosen = np.inf, np.uint64(pairs[s])
        for i in range(np.uint64(state_starts[s]), np.uint64(state_starts[s + ONE])):
            q = stage[i] + discount * row_times(data, indices, indptr[i], indptr[i + ONE], u)
            chosen = i if q < least else chosen
            least = min(least, q)
        u[s] = least
        pairs[s] = chosen


@compiled
def gauss_seidel(data, indices, indptr, discount, rhs, n_sweeps, x):
    """Bring x nearer to the solution of x = rhs + γ M x: go n_sweeps times through the rows and back."""
    n = np.uint64(rhs.size)
    for _ in range(n_sweeps):
        for step in range(n + n):
            i = step if step < n else n + n - ONE - step
            total, diagonal = 0.0, 0.0
            for k in range(indptr[i], indptr[i + ONE]):
                apart = 0.0 if indices[k] == i else data[k]
                total += apart * x[indices[k]]
                diagonal += data[k] - apart
            x[i] = (rhs[i] + discount * total) / (1.0 - discount * diagonal)
