"""Steps of Algorithm 1 with a look at the duality gap every so often, without leaving compiled code."""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import compiled, inlined
from rlfd_gym.beliefs.simplex import excess_of
from rlfd_gym.solvers.smd.kernels import INVERSE_Z, OK, PAIR, R_STEPS, STATE, advance, read_cost
from rlfd_gym.solvers.smd.simplex import combine
from rlfd_gym.solvers.smd.tree import tree_total

COLUMNS = 5  # what is recorded: the gap, and the changes of c, u, μ and w


@compiled
def advance_and_measure(
    pair_buffer, state_buffer, tree, levels, clock, hull, slot_buffer, expert_buffer, step, draws, samples,
    every, count, data, indices, indptr, expert, alpha, slack, imbalance, value, records,
):  # fmt: skip
    """As `advance`, and every so many steps one row of `records`; returns a status code."""
    rows = 0
    done = 0
    while done < len(draws):
        size = min(every - count % every, len(draws) - done)
        status = advance(
            pair_buffer, state_buffer, tree, levels, clock, hull, slot_buffer, expert_buffer, step,
            draws[done : done + size], samples,
        )  # fmt: skip
        if status != OK:
            return status
        done += size
        count += size
        if count % every == 0:
            records[rows] = measure(
                pair_buffer, state_buffer, tree, levels, clock, hull, step[0], count,
                data, indices, indptr, expert, alpha, slack, imbalance, value,
            )  # fmt: skip
            rows += 1
    return OK


@compiled
def measure(
    pair_buffer, state_buffer, tree, levels, clock, hull, discount, count,
    data, indices, indptr, expert, alpha, slack, imbalance, value,
):  # fmt: skip
    """(duality gap of the average, ℓ1 change of the averages of c, u, μ and w in the last step).

    The gap is that of `problem` or of `hull`; on the box there is no w, and its change is 0.

    The change is that of consecutive averages: avg_t - avg_{t-1} = (x_t - avg_t) / (t-1).
    """
    pairs, states = pair_buffer.view(PAIR), state_buffer.view(STATE)
    weights = tree.reshape(tree.size)
    steps, inverse_z, z = clock[R_STEPS], clock[INVERSE_Z], tree_total(tree, levels)
    scale = 1.0 / (1.0 - discount)
    change_cost, change_value, change_mu, gap, smallest = 0.0, 0.0, 0.0, 0.0, np.inf
    for s in range(len(states)):
        value[s] = (states[s].value_sum + steps * states[s].value) / count
        change_value += abs(states[s].value - value[s])
        imbalance[s] = 0.0
    mean, linear = averaged(hull)
    for i in range(len(pairs)):
        pair = pairs[i]
        cost = mean_cost(pair, hull, mean, i, steps, count)
        mu = (pair.mu_sum + weights[i] * (inverse_z - pair.clock)) / count
        change_cost += abs(read_cost(pair, hull, i) - cost)
        change_mu += abs(weights[i] / z - mu)
        d = expert[i] - mu
        after = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            after += data[k] * value[indices[k]]
            imbalance[indices[k]] -= discount * scale * data[k] * d
        imbalance[pair.state] += scale * d
        slack[i] = cost - scale * (value[pair.state] - discount * after)
        smallest = min(smallest, slack[i])
        if hull is None:
            gap += excess(cost, pair.prior, alpha, d)
        else:
            for k in range(len(linear)):
                linear[k] += hull.basis[i, k] * (d - 2.0 * alpha * pair.prior)
    for i in range(len(pairs)):
        gap += (pairs[i].mu_sum + weights[i] * (inverse_z - pairs[i].clock)) / count * (slack[i] - smallest)
    for s in range(len(states)):
        gap += abs(imbalance[s]) - value[s] * imbalance[s]
    before = max(count - 1, 1)
    change_weights = 0.0
    if hull is not None:
        gap += excess_of(hull.gram, linear, alpha, mean)
        change_weights = np.abs(hull.weight - mean).sum()
    return gap, change_cost / before, change_value / before, change_mu / before, change_weights / before


@inlined
def excess(cost, prior, alpha, d):
    """By how much the penalty plus dc falls between c and its minimum on the box; alpha is negative for ℓ1."""
    if alpha < 0.0:
        best = min(max(prior, -1.0), 1.0) if abs(d) <= -alpha else -np.sign(d)
        above = (d - alpha) * (max(cost, prior) - max(best, prior))
        return above + (d + alpha) * (min(cost, prior) - min(best, prior))
    best = -np.sign(d) if alpha == 0.0 else min(max(prior - d / (2.0 * alpha), -1.0), 1.0)
    return (cost - best) * (alpha * (cost + best - 2.0 * prior) + d)


@inlined
def averaged(hull):
    """The average of w, and zeros to add up Cᵀ(d - 2αĉ) in; empty on the box."""
    if hull is None:
        return np.zeros(0), np.zeros(0)
    return hull.weight_sum / hull.weight_sum.sum(), np.zeros(len(hull.weight))


@inlined
def mean_cost(pair, hull, mean, i, steps, count):
    """The average cost of pair i."""
    if hull is None:
        return (pair.cost_sum + steps * pair.cost) / count
    return combine(hull.basis, mean, i)
