"""The step of Algorithm 1 (SMD-RLfD), in time that grows only with the log of the problem size.

With everything evaluated at the old iterate (c, u, μ), one step (equations gradCU, mu_grad) draws

    i ~ U(n),   j ~ μ, s' ~ P(j),   e ~ μ_E, s'_e ~ P(e),   k ~ U(n), s'_k ~ P(k)

and sets, with z = 1/(1-γ),

    c ← clip(c - η (2αn (cᵢ - ĉᵢ) eᵢ + e_e - e_j))
    u ← clip(u - η z (e_{s(j)} - γ e_{s'} - e_{s(e)} + γ e_{s'_e}))
    μ ← normalise(μ ∘ exp(-η_μ n (c_k - z (u_{s(k)} - γ u_{s'_k})) e_k)).

With the ℓ1 penalty, αn sign(cᵢ - ĉᵢ), which is 0 at the kink, replaces 2αn (cᵢ - ĉᵢ).
Coinciding indices add up. The output is the average of the iterates after each step. As at most 3
entries of c, 4 of u and one of μ move, everything else is kept lazily:

**Sampling μ.** μ = w / Z with unnormalised weights w = exp(l) in a sum tree (`tree`). The
logarithm l is what is updated: a weight below exp(-700) is 0 in the tree but not lost, and a step
too large for exp leads to a rescaling, not to inf.

**Average of c (and u).** With r steps since the last flush, keep C = Σ_{τ≤t} c_τ - r c_t. A step
that leaves c alone leaves C alone; one that moves it from a to b does C -= r (b - a). This
telescopes, so coinciding indices may be moved one after the other and projected at the end.

**Average of μ.** With the clock A = Σ 1/Z_τ since the last flush, an untouched pair has
Σ μ_τ = w (A - A_last), where A_last is A at its last touch. A touch adds this term, which is not
negative, to the pair's sum before w changes.

**Flush.** A is a long sum of terms of different sizes. The difference A - A_last has an absolute
error of eps A, which reaches the average of μ as eps w A ≤ eps Z A per touch. While Z stands
still, Z A is the number of steps since the flush. So a flush (fold all sums, A = 0, rescale w so
that Z = 1, rebuild the tree) every `period` steps, and as soon as Z A > 64 period, bounds the
error of an average by about 64 eps times the touches per pair and period, however wildly Z moves.
With period ≥ 4n this costs O(1) per step. Z outside [1e-100, 1e100] flushes too.

**Cache misses.** All that belongs to a pair is one 64-byte record (`records`). Draws that do not
depend on the iterate are made `BLOCK` steps ahead, so that memory can be requested in time
(`prefetch`).

**Intervals.** With the belief `Intervals`, c is projected on the interval of each pair instead of
[-1, 1]; `ends` is either None or not when the kernels are compiled.

**Convex hull.** With a basis C the cost is Cw, with w in a simplex. A pair's cost is then read as
Cᵢw, and the step for c is one for w (`simplex`). That step moves every entry and so has nothing to
be lazy about. Everything else is the same code. `mixture` is either None or not when the kernels
are compiled, so the choice costs nothing per step.

The kernels check nothing: they receive arrays that are already checked.
"""

from __future__ import annotations

import math

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._compiled import compiled, inlined
from rlfd_gym.beliefs.near_prior import L2
from rlfd_gym.solvers.smd.alias import SLOT, alias_draw
from rlfd_gym.solvers.smd.intrinsics import FAN, WEIGHT, view
from rlfd_gym.solvers.smd.lazy import within
from rlfd_gym.solvers.smd.prefetch import draw_ahead, hint_ahead
from rlfd_gym.solvers.smd.records import (
    ANCHOR,
    EXPERT,
    EXPERT_NEXT,
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
from rlfd_gym.solvers.smd.simplex import combine, mirror_step
from rlfd_gym.solvers.smd.tree import tree_draw, tree_rebuild, tree_set, tree_total

BLOCK = 16  # steps whose draws are made ahead
HINT_FROM = 1 << 14  # pairs from which hints pay; the records of fewer stay in the second-level cache
LOG_FLOOR = -700.0  # below, a weight is 0 in the tree (no subnormals)
Z_RANGE = 1e100

HINTED = (VISITED, VISITED_NEXT, TRIED)  # the columns of draws that `hint_ahead` reads

OK, NOT_FINITE = 0, 1  # status codes


def memory_of_hints(n_pairs: int) -> FloatArray | None:
    """Return the memory that `advance` needs to hint at records ahead; `None` where hints do not pay."""
    return np.empty(BLOCK) if n_pairs >= HINT_FROM else None


@compiled
def advance(run, tables, step, draws, samples, rest):
    """Make len(draws) steps in place; `samples` receives the sampled indices.

    Without `rest` the code for hints is not even compiled. Returns a status code.
    """
    pairs, states = view(run.pair_buffer, PAIR), view(run.state_buffer, STATE)
    slots, expert = view(tables.slot_buffer, SLOT), view(tables.expert_buffer, SLOT)
    tree, levels, clock, mixture, ends = run.tree, run.levels, run.clock, run.mixture, run.ends
    discount, scale, period = step.discount, step.scale, step.period
    z = tree_total(tree, levels)
    steps = clock[R_STEPS]
    inverse_z = clock[INVERSE_Z]
    limit = 64.0 * period
    for begin in range(0, len(draws), BLOCK):
        end = min(begin + BLOCK, len(draws))
        draw_ahead(pairs, states, slots, expert, tree, draws[begin:end], samples[begin:end])
        if rest is not None:
            hint_ahead(pairs, states, slots, tree, levels, draws[begin:end], samples[begin:end], rest, HINTED)
        for t in range(begin, end):
            i, e, k = samples[t, ANCHOR], samples[t, EXPERT], samples[t, TRIED]
            next_e, next_k = samples[t, EXPERT_NEXT], samples[t, TRIED_NEXT]
            # μ: the weight of k is computed first, though it is set last, because its exp and the
            # draw of j do not depend on each other and run side by side.
            tried = pairs[k]
            slack = read_cost(tried, mixture, k) - scale * (states[tried.state].x - discount * states[next_k].x)
            weight = update_mu(tried, tree[k // FAN, k % FAN], inverse_z, -step.eta_mu * slack)
            j = tree_draw(tree, levels, draws[t, VISITED] * z)
            z = tree_set(tree, levels, k, weight)

            # c and u, with s' drawn after j.
            visited = pairs[j]
            next_j = alias_draw(slots, visited.row, visited.row_length, draws[t, VISITED_NEXT])
            samples[t, VISITED] = j
            samples[t, VISITED_NEXT] = next_j
            update_cost(pairs, mixture, ends, steps, step, i, j, e)
            update_value(states, steps, step.eta_value, discount, visited.state, next_j, pairs[e].state, next_e)
            # A flush where it is due; the condition is written so that a nan takes the branch.
            if not (1.0 / Z_RANGE < z < Z_RANGE and z * inverse_z <= limit and steps < period):
                clock[R_STEPS] = steps
                clock[INVERSE_Z] = inverse_z
                z = flush(pairs, states, tree, levels, clock)
                steps = 0.0
                inverse_z = 0.0
                if not 0.0 < z < Z_RANGE:
                    return NOT_FINITE
            inverse_z += 1.0 / z
            steps += 1.0
    clock[R_STEPS] = steps
    clock[INVERSE_Z] = inverse_z
    clock[TOTAL] += len(draws)
    return OK


@compiled
def propose(pair_buffers, trees, levels, draws, samples):
    """Draw i, j and k of one step of each run.

    The states that follow j and k come from an oracle.
    """
    for r in range(len(draws)):
        n = len(view(pair_buffers[r], PAIR))
        samples[r, ANCHOR] = np.int64(draws[r, ANCHOR] * n)
        samples[r, TRIED] = np.int64(draws[r, TRIED] * n)
        samples[r, VISITED] = tree_draw(trees[r], levels, draws[r, VISITED] * tree_total(trees[r], levels))


@compiled
def apply(pair_buffers, state_buffers, trees, levels, clocks, step, samples):
    """Make one step on the box for each run, with all seven indices given.

    Returns a status code.
    """
    discount, scale, period = step.discount, step.scale, step.period
    for r in range(len(samples)):
        pairs, states = view(pair_buffers[r], PAIR), view(state_buffers[r], STATE)
        tree, clock = trees[r], clocks[r]
        i, j, e, k = samples[r, ANCHOR], samples[r, VISITED], samples[r, EXPERT], samples[r, TRIED]
        # μ
        tried = pairs[k]
        slack = tried.x - scale * (states[tried.state].x - discount * states[samples[r, TRIED_NEXT]].x)
        weight = update_mu(tried, tree[k // FAN, k % FAN], clock[INVERSE_Z], -step.eta_mu * slack)
        z = tree_set(tree, levels, k, weight)
        # c and u
        update_cost(pairs, None, None, clock[R_STEPS], step, i, j, e)
        update_value(
            states, clock[R_STEPS], step.eta_value, discount,
            pairs[j].state, samples[r, VISITED_NEXT], pairs[e].state, samples[r, EXPERT_NEXT],
        )  # fmt: skip
        if not (1.0 / Z_RANGE < z < Z_RANGE and z * clock[INVERSE_Z] <= 64.0 * period and clock[R_STEPS] < period):
            z = flush(pairs, states, tree, levels, clock)
            if not 0.0 < z < Z_RANGE:
                return NOT_FINITE
        clock[INVERSE_Z] += 1.0 / z
        clock[R_STEPS] += 1.0
        clock[TOTAL] += 1.0
    return OK


@inlined
def weight_of(log_weight):
    """Return exp(log_weight) without subnormals, and capped.

    A capped weight only lives until the flush that it causes. A nan stays a nan.
    """
    if log_weight <= LOG_FLOOR:
        return 0.0
    return math.exp(-LOG_FLOOR if log_weight > -LOG_FLOOR else log_weight)


@inlined
def move(record, steps, change):
    """x += change, for a pair's cost or a state's value; not projected yet."""
    old = record.x
    new = old + change
    record.x = new
    record.x_sum -= steps * (new - old)


@inlined
def clip(record, steps):
    """Project x on [-1, 1]."""
    old = record.x
    new = within(old, -1.0, 1.0)
    record.x = new
    record.x_sum -= steps * (new - old)


@inlined
def clip_cost(pairs, ends, i, steps):
    """Project the cost of pair i on its interval, or on [-1, 1] if it has none."""
    if ends is None:
        clip(pairs[i], steps)
    else:
        record = pairs[i]
        old = record.x
        new = within(old, ends[i, 0], ends[i, 1])
        record.x = new
        record.x_sum -= steps * (new - old)


@inlined
def update_value(states, steps, eta, discount, here, then, expert_here, expert_then):
    """Make the u part of a step; states may coincide, so first move all, then project all."""
    move(states[here], steps, -eta)
    move(states[then], steps, eta * discount)
    move(states[expert_here], steps, eta)
    move(states[expert_then], steps, -eta * discount)
    clip(states[here], steps)
    clip(states[then], steps)
    clip(states[expert_here], steps)
    clip(states[expert_then], steps)


@inlined
def read_cost(pair, mixture, k):
    """Return the cost of pair k."""
    if mixture is None:
        return pair.x
    return combine(mixture.basis, mixture.weight, k)


@inlined
def update_cost(pairs, mixture, ends, steps, step, i, j, e):
    """Make the c part of a step, or the w part of one on a hull."""
    if mixture is None:
        update_box(pairs, ends, steps, step, i, j, e)
    else:
        pull = step.pull
        drift = pull * (combine(mixture.basis, mixture.weight, i) - pairs[i].prior) if pull > 0.0 else 0.0
        mirror_step(mixture.basis, mixture.log_weight, mixture.weight, mixture.weight_sum, drift, step.eta, i, j, e)


@inlined
def update_box(pairs, ends, steps, step, i, j, e):
    """Make the c part of a step on the box, or on intervals.

    Pairs may coincide, so first move all, then project all.
    """
    if step.pull > 0.0:
        anchor = pairs[i]
        if step.kind == L2:
            move(anchor, steps, step.pull * (anchor.prior - anchor.x))
        else:
            move(anchor, steps, -step.pull * np.sign(anchor.x - anchor.prior))
    move(pairs[j], steps, step.eta)
    move(pairs[e], steps, -step.eta)
    clip_cost(pairs, ends, i, steps)
    clip_cost(pairs, ends, j, steps)
    clip_cost(pairs, ends, e, steps)


@inlined
def update_mu(pair, weight, clock, change):
    """log w += change, after the sum of μ is brought up to date.

    Returns the new weight, to be set in the tree.
    """
    pair.mu_sum += weight * (clock - pair.clock)
    pair.clock = clock
    pair.log_weight += change
    return weight_of(pair.log_weight)


@compiled
def flush(pairs, states, tree, levels, clock):
    """Fold the sums, rescale the weights to sum to 1, rebuild the tree and restart the clocks.

    Returns the new Z.
    """
    steps = clock[R_STEPS]
    inverse_z = clock[INVERSE_Z]
    weights = view(tree, WEIGHT)
    for s in range(len(states)):
        states[s].x_sum += steps * states[s].x
    # log Z, or where Z is out of range the largest logarithm, is subtracted from all of them.
    z = tree_total(tree, levels)
    largest = -np.inf
    for i in range(len(pairs)):
        largest = max(largest, pairs[i].log_weight)
    shift = math.log(z) if 1.0 / Z_RANGE < z < Z_RANGE else largest
    for i in range(len(pairs)):
        pair = pairs[i]
        pair.x_sum += steps * pair.x
        pair.mu_sum += weights[i] * (inverse_z - pair.clock)
        pair.clock = 0.0
        pair.log_weight -= shift
        weights[i] = weight_of(pair.log_weight)
    tree_rebuild(tree, levels)
    clock[R_STEPS] = 0.0
    clock[INVERSE_Z] = 0.0
    clock[FLUSHES] += 1
    return tree_total(tree, levels)
