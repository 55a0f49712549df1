"""The step of the proximal variant of Algorithm 1, in time that grows with the log of the size.

What the step is, and what it promises, is in `rlfd_gym.problem.theorem`. It draws

    j ~ μ, s' ~ P(j),   k ~ U(n), s'_k ~ P(k),

moves the cost of j, the values of s(j) and s', and the weight of k. All else moves by the known part
of the problem alone, or not at all, and is kept lazily:

**Costs and values** have the step at which they were last brought up to date. `lazy` says in closed
form where they are now, and what they add up to since then.

**μ, its sum, and the flush** are those of `rlfd_gym.solvers.smd.kernels`. As there, all that belongs
to a pair is one 64-byte record, and draws are made ahead. Unlike there, the sums are over the
iterates *before* each step, which is what the theorem is about.

**Beliefs.** `slopes` is None for the ℓ2 penalty. Otherwise it has μ_E + αᵢ and μ_E - αᵢ of each
pair, with αᵢ = 0 where there is no penalty; which it is, is known when the kernels are compiled.
`ends` has a row for each pair, or a single one for all of them.

The kernels check nothing: they receive arrays that are already checked.
"""

from __future__ import annotations

import math

import numpy as np

from rlfd_gym._compiled import compiled, inlined
from rlfd_gym.solvers.smd.alias import SLOT, alias_draw
from rlfd_gym.solvers.smd.intrinsics import FAN, WEIGHT, prefetch, view
from rlfd_gym.solvers.smd.kernels import BLOCK, NOT_FINITE, OK, Z_RANGE, update_mu
from rlfd_gym.solvers.smd.lazy import decay, decayed, drift, pulled, slide, within
from rlfd_gym.solvers.smd.prefetch import hint_ahead
from rlfd_gym.solvers.smd.proximal_records import (
    FLUSHES,
    INVERSE_Z,
    PAIR,
    R_STEPS,
    STATE,
    TOTAL,
    TRIED,
    TRIED_NEXT,
    VISITED,
    VISITED_NEXT,
)
from rlfd_gym.solvers.smd.tree import tree_draw, tree_rebuild, tree_set, tree_total

HINTED = (VISITED, VISITED_NEXT, TRIED)  # the columns of draws that `hint_ahead` reads


@compiled
def advance(run, slot_buffer, draws, samples, rest):
    """Make len(draws) steps in place; `samples` receives the sampled indices.

    Without `rest` the code for hints is not even compiled. Returns a status code.
    """
    pairs, states = view(run.pair_buffer, PAIR), view(run.state_buffer, STATE)
    slots, tree, levels, clock = view(slot_buffer, SLOT), run.tree, run.levels, run.clock
    slopes, ends, step = run.slopes, run.ends, run.step
    z = tree_total(tree, levels)
    now = np.int64(clock[R_STEPS])
    inverse_z = clock[INVERSE_Z]
    for begin in range(0, len(draws), BLOCK):
        block = slice(begin, begin + BLOCK)
        draw_ahead(pairs, states, slots, tree, draws[block], samples[block])
        if rest is not None:
            hint_ahead(pairs, states, slots, tree, levels, draws[block], samples[block], rest, HINTED)
        for t in range(begin, begin + len(draws[block])):
            k, next_k = np.int64(samples[t, TRIED]), np.int64(samples[t, TRIED_NEXT])
            inverse_z += 1.0 / z
            # μ: the weight of k is computed first, though it is set last, because its exp and the
            # draw of j do not depend on each other and run side by side.
            weight = tried_weight(pairs, states, tree, slopes, ends, step, now, inverse_z, k, next_k)
            j = tree_draw(tree, levels, draws[t, VISITED] * z)
            z = tree_set(tree, levels, k, weight)
            # c and u, with s' drawn after j.
            visited = pairs[j]
            next_j = alias_draw(slots, np.int64(visited.row), visited.row_length, draws[t, VISITED_NEXT])
            samples[t, VISITED] = j
            samples[t, VISITED_NEXT] = next_j
            update_cost(pairs, slopes, ends, step, now, j)
            update_value(states, step, now, visited.state, next_j)
            now += 1
            if not stands(z, inverse_z, now, step.period):
                clock[R_STEPS] = now
                clock[INVERSE_Z] = inverse_z
                z = flush(run)
                now = 0
                inverse_z = 0.0
                if not 0.0 < z < Z_RANGE:
                    return NOT_FINITE
    clock[R_STEPS] = now
    clock[INVERSE_Z] = inverse_z
    clock[TOTAL] += len(draws)
    return OK


@inlined
def stands(z, inverse_z, now, period):
    """Return whether no flush is due; False for a nan."""
    return 1.0 / Z_RANGE < z < Z_RANGE and z * inverse_z <= 64.0 * period and now < period


@inlined
def tried_weight(pairs, states, tree, slopes, ends, step, now, inverse_z, k, next_k):
    """Make the μ part of a step, and return the new weight of pair k, to be set in the tree."""
    tried = pairs[k]
    here, then = read_value(states, step, now, np.int64(tried.state)), read_value(states, step, now, next_k)
    slack = read_cost(pairs, slopes, ends, step, now, k) - step.scale * (here - step.discount * then)
    return update_mu(tried, tree[k // FAN, k % FAN], inverse_z, -step.eta_mu * slack)


@inlined
def interval(ends, i):
    """Return the ends of the interval of pair i."""
    row = i if i < len(ends) else 0
    return ends[row, 0], ends[row, 1]


@inlined
def read_cost(pairs, slopes, ends, step, now, i):
    """Return the cost of pair i as it is now."""
    pair = pairs[i]
    low, high = interval(ends, i)
    steps = now - np.int64(pair.since)
    if slopes is None:
        return decayed(pair.x, steps, step.powers, pair.anchor, low, high)
    return drift(pair.x, steps, step.eta * slopes[i, 0], step.eta * slopes[i, 1], pair.anchor, low, high)[0]


@inlined
def read_value(states, step, now, s):
    """Return the value of state s as it is now."""
    state = states[s]
    return within(state.x + (now - state.since) * (step.eta_value * state.flow), -1.0, 1.0)


@inlined
def cost_path(pairs, slopes, ends, step, now, i):
    """Return the cost of pair i as it is now, and its sum since it was last brought up to date."""
    pair = pairs[i]
    low, high = interval(ends, i)
    steps = now - np.int64(pair.since)
    if slopes is None:
        return decay(pair.x, steps, step.powers, pair.anchor, low, high)
    return drift(pair.x, steps, step.eta * slopes[i, 0], step.eta * slopes[i, 1], pair.anchor, low, high)


@inlined
def value_path(state, step, now):
    """Return a value as it is now, and its sum since it was last brought up to date."""
    speed = step.eta_value * state.flow
    return slide(state.x, now - state.since, speed, 1.0 if speed > 0.0 else -1.0)


@inlined
def update_cost(pairs, slopes, ends, step, now, j):
    """Make the c part of a step: the proximal step from cⱼ + η."""
    pair = pairs[j]
    low, high = interval(ends, j)
    value, total = cost_path(pairs, slopes, ends, step, now, j)
    moved = value + step.eta
    if slopes is None:
        moved -= (moved - pair.anchor) * step.powers.moved[1]
    else:
        moved = pulled(moved, step.eta * slopes[j, 0], step.eta * slopes[j, 1], pair.anchor)
    pair.x = within(moved, low, high)
    pair.x_sum += total
    pair.since = np.uint32(now + 1)


@inlined
def update_value(states, step, now, here, then):
    """Make the u part of a step; the states may coincide, so first move both, then project both."""
    _drift_value(states, step, now, here)
    _drift_value(states, step, now, then)
    states[here].x -= step.eta_value * step.scale
    states[then].x += step.eta_value * step.scale * step.discount
    states[here].x = within(states[here].x, -1.0, 1.0)
    states[then].x = within(states[then].x, -1.0, 1.0)


@inlined
def _drift_value(states, step, now, s):
    """Bring a value up to date and move it by η_u b, if that is not done yet; not projected."""
    state = states[s]
    if state.since <= now:
        value, total = value_path(state, step, now)
        state.x = value + step.eta_value * state.flow
        state.x_sum += total
        state.since = now + 1


@compiled
def flush(run):
    """Bring all up to date, rescale the weights to sum to 1, rebuild the tree, restart the clocks.

    Returns the new Z.
    """
    pairs, states = view(run.pair_buffer, PAIR), view(run.state_buffer, STATE)
    tree, levels, clock, step, slopes, ends = run.tree, run.levels, run.clock, run.step, run.slopes, run.ends
    now = np.int64(clock[R_STEPS])
    inverse_z = clock[INVERSE_Z]
    weights = view(tree, WEIGHT)
    for s in range(len(states)):
        settle_value(states[s], step, now)
    # log Z, or where Z is out of range the largest logarithm, is subtracted from all of them.
    z = tree_total(tree, levels)
    largest = -np.inf
    for i in range(len(pairs)):
        log_weight = pairs[i].log_weight
        largest = log_weight if log_weight > largest else largest
    shift = math.log(z) if 1.0 / Z_RANGE < z < Z_RANGE else largest
    for i in range(len(pairs)):
        settle_cost(pairs, slopes, ends, step, now, i)
        weights[i] = update_mu(pairs[i], weights[i], inverse_z, -shift)
        pairs[i].clock = 0.0
    tree_rebuild(tree, levels)
    clock[R_STEPS] = 0.0
    clock[INVERSE_Z] = 0.0
    clock[FLUSHES] += 1
    return tree_total(tree, levels)


@inlined
def settle_value(state, step, now):
    """Bring a value up to date; the iterate of this step is not among the sum's yet."""
    value, total = value_path(state, step, now)
    state.x = within(value, -1.0, 1.0)
    state.x_sum += total - value
    state.since = 0


@inlined
def settle_cost(pairs, slopes, ends, step, now, i):
    """Bring the cost of pair i up to date, as `settle_value` does."""
    pair = pairs[i]
    value, total = cost_path(pairs, slopes, ends, step, now, i)
    low, high = interval(ends, i)
    pair.x = within(value, low, high)
    pair.x_sum += total - value
    pair.since = np.uint32(0)


@inlined
def draw_ahead(pairs, states, slots, tree, draws, samples):
    """Draw k and s'_k of a block of steps; each pass prefetches what the next one reads."""
    n = len(pairs)
    for t in range(len(draws)):
        k = np.int64(draws[t, TRIED] * n)
        samples[t, TRIED] = k
        prefetch(pairs, k)
        prefetch(tree, k // FAN)
    for t in range(len(draws)):
        pair = pairs[samples[t, TRIED]]
        prefetch(slots, np.int64(pair.row) + np.int64(draws[t, TRIED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, TRIED]]
        then = np.int64(alias_draw(slots, np.int64(pair.row), pair.row_length, draws[t, TRIED_NEXT]))
        samples[t, TRIED_NEXT] = then
        prefetch(states, then)
