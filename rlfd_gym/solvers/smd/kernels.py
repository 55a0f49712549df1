"""The step of Algorithm 1 (SMD-RLfD) at a cost that does not grow with the problem, but for a logarithm.

With everything evaluated at the old iterate (c, u, μ), one step draws

    i ~ U(n),   j ~ μ, s' ~ P(j),   e ~ μ_E, s'_e ~ P(e),   k ~ U(n), s'_k ~ P(k)            (equations gradCU, mu_grad)

and sets, with z = 1/(1-γ),

    c ← clip(c - η (2αn (cᵢ - ĉᵢ) eᵢ + e_e - e_j))
    u ← clip(u - η z (e_{s(j)} - γ e_{s'} - e_{s(e)} + γ e_{s'_e}))
    μ ← normalise(μ ∘ exp(-η_μ n (c_k - z (u_{s(k)} - γ u_{s'_k})) e_k)).

and with the ℓ1 regulariser αn sign(cᵢ - ĉᵢ), 0 at the kink, in the place of 2αn (cᵢ - ĉᵢ). Coinciding indices add up.
The output is the average of the iterates after each step. As at most 3 entries of c, 4 of u and one of μ move, all else
is kept lazily:

**Sampling μ.** μ = w / Z with unnormalised weights w = exp(l) in a sum tree (`_tree`). The logarithm l is what is
updated: a weight below exp(-700) is 0 in the tree but not lost, and a step too large for exp leads to a rescaling, not
to inf.

**Average of c (and u).** With r steps since the last flush, keep C = Σ_{τ≤t} c_τ - r c_t. A step that leaves c alone
leaves C alone; one that moves it from a to b does C -= r (b - a). This telescopes, so coinciding indices may be moved
one after the other and projected at the end.

**Average of μ.** With the clock A = Σ 1/Z_τ since the last flush, an untouched pair has Σ μ_τ = w (A - A_last), A_last
being A at its last touch. A touch adds this term, which is not negative, to the pair's sum before w changes.

**Flush.** A is a long sum of terms of different size. The difference A - A_last has an absolute error of eps A, which
reaches the average of μ as eps w A ≤ eps Z A per touch. While Z stands still, Z A is the number of steps since the
flush. So a flush (fold all sums, A = 0, rescale w so that Z = 1, rebuild the tree) every `period` steps, and as soon as
Z A > 64 period, bounds the error of an average by about 64 eps times the touches per pair and period, however wildly Z
moves. With period ≥ 4n this costs O(1) per step. Z outside [1e-100, 1e100] flushes too.

**Cache misses.** All that belongs to a pair is one 64-byte record. Draws that do not depend on the iterate are made for
`BLOCK` steps ahead, in passes, each of which prefetches what the next one reads. For j, which does depend on it, a pass
samples from the tree as it is at the start of the block: a hint what to prefetch, never used as the sample.

**Convex hull.** With a basis C the cost is Cw, w in a simplex (`hull`): a pair's cost is then read as Cᵢw, and the step
for c is one for w (`_simplex`), which moves every entry and so has nothing to be lazy about. Everything else is the
same code. Which of the two it is, is known when the kernels are compiled (`hull` is None or not): no step asks.

The kernels check nothing: `smd` and `oracles` hand them arrays that are already checked.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._compiled import aligned, compiled, inlined
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.solvers.smd.alias import SLOT, alias_draw, distribution_table, row_tables
from rlfd_gym.solvers.smd.simplex import combine, mirror_step
from rlfd_gym.solvers.smd.tree import (
    FAN,
    node_draw,
    prefetch,
    tree_draw,
    tree_rebuild,
    tree_set,
    tree_shape,
    tree_total,
)

DRAWS = 7  # uniforms per step, and sampled indices
ANCHOR, VISITED, VISITED_NEXT, EXPERT, EXPERT_NEXT, TRIED, TRIED_NEXT = range(DRAWS)  # i, j, s', e, s'_e, k, s'_k

BLOCK = 16  # steps whose draws are made ahead
HINT_FROM = 1 << 14  # pairs from which hints pay: below, the records stay in the second-level cache
LOG_FLOOR = -700.0  # below, a weight is 0 in the tree (no subnormals)
Z_RANGE = 1e100

OK, NOT_FINITE = 0, 1  # status codes

PAIR = np.dtype(
    [
        ("cost", "f8"),
        ("cost_sum", "f8"),
        ("prior", "f8"),
        ("log_weight", "f8"),
        ("mu_sum", "f8"),
        ("clock", "f8"),  # A when mu_sum was last brought up to date
        ("row", "i8"),  # first slot of this pair's alias table
        ("state", "i4"),
        ("row_length", "i4"),
    ]
)
STATE = np.dtype([("value", "f8"), ("value_sum", "f8")])
R_STEPS, INVERSE_Z, FLUSHES, TOTAL = range(4)  # entries of Run.clock


class Hull(NamedTuple):
    """The basis C, and the weights w of a run as they are and as they add up."""

    basis: FloatArray  # (n, K)
    gram: FloatArray  # CᵀC
    log_weight: FloatArray  # largest entry 0
    weight: FloatArray
    weight_sum: FloatArray


class Run(NamedTuple):
    """One run's iterate and lazy sums; the kernels change it in place.

    Records travel as plain float64 arrays and are viewed as records inside: numba may take 0.4 ms a call to recognise
    arrays of records as arguments.
    """

    pair_buffer: FloatArray  # n records PAIR
    state_buffer: FloatArray  # S records STATE
    tree: FloatArray  # (nodes, FAN): levels one after the other, that of the weights first
    levels: np.ndarray[Any, Any]  # int64, the first node of each level
    clock: FloatArray  # r and A of the module docstring, flushes and steps so far
    hull: Hull | None = None  # None on the box

    @property
    def pairs(self) -> np.ndarray[Any, Any]:
        """The records of the pairs, as a view."""
        return self.pair_buffer.view(PAIR)

    @property
    def states(self) -> np.ndarray[Any, Any]:
        """The records of the states, as a view."""
        return self.state_buffer.view(STATE)

    @property
    def weights(self) -> FloatArray:
        """The unnormalised occupancy, as a view of the tree."""
        return self.tree.reshape(-1)[: len(self.pairs)]


class Tables(NamedTuple):
    """What all runs on one problem share: alias tables of the transitions and of the expert."""

    slot_buffer: FloatArray
    expert_buffer: FloatArray


class Constants(NamedTuple):
    """The constants of a step."""

    discount: float
    pull: float  # 2αn η, or -αn η for the ℓ1 regulariser: the sign says which
    eta: float
    eta_value: float  # η / (1-γ)
    eta_mu: float  # n η_μ
    scale: float  # 1 / (1-γ)
    period: float  # steps between flushes


class Point(NamedTuple):
    """A point (c, u, μ)."""

    cost: FloatArray
    value: FloatArray
    occupancy: FloatArray


class HullPoint(NamedTuple):
    """A point (w, u, μ)."""

    weights: FloatArray
    value: FloatArray
    occupancy: FloatArray


def tables_of(mdp: TabularMDP, expert: FloatArray) -> Tables:
    """The alias tables of a problem."""
    return Tables(row_tables(mdp.transitions).view(np.float64), distribution_table(expert).view(np.float64))


def signed_alpha(alpha: float, regulariser: str) -> float:
    """α as the kernels want it: negative for the ℓ1 regulariser."""
    return -alpha if regulariser == "l1" else alpha


def constants(n_pairs: int, discount: float, alpha: float, *etas: float) -> Constants:
    """The constants of a step from the parameters of the paper, α signed.

    etas are (η_cu, η_μ), or (η_w, η_u, η_μ) on a hull.
    """
    scale = 1.0 / (1.0 - discount)
    eta, eta_value, eta_mu = etas[0], etas[-2], etas[-1]
    return Constants(
        discount,
        (2.0 * alpha if alpha > 0 else alpha) * n_pairs * eta,
        eta,
        eta_value * scale,
        n_pairs * eta_mu,
        scale,
        float(max(4 * n_pairs, 4096)),
    )


def start(
    pair_states: np.ndarray[Any, Any],
    row_starts: np.ndarray[Any, Any],
    prior: FloatArray,
    iterate: Point | HullPoint,
    *,
    log_weight: FloatArray | None = None,
    count: int = 0,
    average: Point | HullPoint | None = None,
    basis: FloatArray | None = None,
    log_mixture: FloatArray | None = None,
) -> Run:
    """A run at the given iterate, after `count` steps with the given average; with a basis, on its hull.

    `log_weight` and `log_mixture` are the logarithms of occupancy and hull weights where these have vanished from
    double precision.
    """
    n, n_states = len(iterate.occupancy), len(iterate.value)
    pairs, states = aligned(n, PAIR), aligned(n_states, STATE)
    pairs["cost"] = iterate.cost if isinstance(iterate, Point) else 0.0
    pairs["prior"], pairs["clock"], pairs["state"] = prior, 0.0, pair_states
    pairs["row"], pairs["row_length"] = row_starts[:-1], np.diff(row_starts)
    states["value"] = iterate.value
    pairs["cost_sum"] = count * average.cost if isinstance(average, Point) else 0.0
    pairs["mu_sum"] = 0.0 if average is None else count * average.occupancy
    states["value_sum"] = 0.0 if average is None else count * average.value
    levels, size = tree_shape(n)
    tree = aligned(size * FAN, np.dtype("f8")).reshape(size, FAN)
    tree[:] = 0.0
    clock = np.zeros(4)
    with np.errstate(divide="ignore"):
        pairs["log_weight"] = np.log(iterate.occupancy) if log_weight is None else log_weight
        hull = None
        if basis is not None:
            assert isinstance(iterate, HullPoint)
            logs = np.log(iterate.weights) if log_mixture is None else log_mixture.copy()
            total = count * average.weights if isinstance(average, HullPoint) else np.zeros(len(logs))
            hull = Hull(basis, basis.T @ basis, logs - logs.max(), iterate.weights.copy(), total)
    run = Run(pairs.view(np.float64), states.view(np.float64), tree, levels, clock, hull)
    flush(run.pairs, run.states, tree, levels, clock)
    clock[FLUSHES] = 0
    return run


def average_of(run: Run, count: int) -> Point | HullPoint:
    """The averages over the `count` steps made so far; changes nothing."""
    pairs, states = run.pairs, run.states
    steps, inverse_z = run.clock[R_STEPS], run.clock[INVERSE_Z]
    value = (states["value_sum"] + steps * states["value"]) / count
    occupancy = (pairs["mu_sum"] + run.weights * (inverse_z - pairs["clock"])) / count
    occupancy = occupancy / occupancy.sum()  # one up to rounding
    if run.hull is not None:
        return HullPoint(run.hull.weight_sum / run.hull.weight_sum.sum(), value, occupancy)
    return Point((pairs["cost_sum"] + steps * pairs["cost"]) / count, value, occupancy)


def iterate_of(run: Run) -> Point | HullPoint:
    """The current iterate; changes nothing."""
    value, occupancy = run.states["value"].copy(), run.weights / run.weights.sum()
    if run.hull is not None:
        return HullPoint(run.hull.weight.copy(), value, occupancy)
    return Point(run.pairs["cost"].copy(), value, occupancy)


@compiled
def advance(pair_buffer, state_buffer, tree, levels, clock, hull, slot_buffer, expert_buffer, step, draws, samples):
    """Make len(draws) steps in place; `samples` receives the sampled indices; returns a status code."""
    pairs, states = pair_buffer.view(PAIR), state_buffer.view(STATE)
    slots, expert = slot_buffer.view(SLOT), expert_buffer.view(SLOT)
    discount, pull, eta, eta_value, eta_mu, scale, period = step
    z = tree_total(tree, levels)
    steps = clock[R_STEPS]
    inverse_z = clock[INVERSE_Z]
    limit = 64.0 * period
    hint = len(pairs) >= HINT_FROM
    rest = np.empty(BLOCK)
    for begin in range(0, len(draws), BLOCK):
        end = min(begin + BLOCK, len(draws))
        draw_ahead(pairs, states, slots, expert, tree, draws[begin:end], samples[begin:end])
        if hint:
            hint_ahead(pairs, states, slots, tree, levels, draws[begin:end], samples[begin:end], rest)
        for t in range(begin, end):
            i, e, k = samples[t, ANCHOR], samples[t, EXPERT], samples[t, TRIED]
            next_e, next_k = samples[t, EXPERT_NEXT], samples[t, TRIED_NEXT]
            # the weight first, though it is set last: exp and the draw do not depend on each other and run side by side
            tried = pairs[k]
            slack = read_cost(tried, hull, k) - scale * (states[tried.state].value - discount * states[next_k].value)
            weight = update_mu(tried, tree[k // FAN, k % FAN], inverse_z, -eta_mu * slack)
            j = tree_draw(tree, levels, draws[t, VISITED] * z)
            z = tree_set(tree, levels, k, weight)

            visited = pairs[j]
            next_j = alias_draw(slots, visited.row, visited.row_length, draws[t, VISITED_NEXT])
            samples[t, VISITED] = j
            samples[t, VISITED_NEXT] = next_j
            update_cost(pairs, hull, steps, eta, pull, i, j, e)
            update_value(states, steps, eta_value, discount, visited.state, next_j, pairs[e].state, next_e)
            # written so that a nan takes the branch
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
    """The draws i, j and k of one step of each run; what comes after j and k is for an oracle to say."""
    for r in range(len(draws)):
        n = len(pair_buffers[r].view(PAIR))
        samples[r, ANCHOR] = int(draws[r, ANCHOR] * n)
        samples[r, TRIED] = int(draws[r, TRIED] * n)
        samples[r, VISITED] = tree_draw(trees[r], levels, draws[r, VISITED] * tree_total(trees[r], levels))


@compiled
def apply(pair_buffers, state_buffers, trees, levels, clocks, step, samples):
    """One step on the box of each run, with all seven indices given; returns a status code."""
    discount, pull, eta, eta_value, eta_mu, scale, period = step
    for r in range(len(samples)):
        pairs, states = pair_buffers[r].view(PAIR), state_buffers[r].view(STATE)
        tree, clock = trees[r], clocks[r]
        i, j, e, k = samples[r, ANCHOR], samples[r, VISITED], samples[r, EXPERT], samples[r, TRIED]
        tried = pairs[k]
        slack = tried.cost - scale * (states[tried.state].value - discount * states[samples[r, TRIED_NEXT]].value)
        weight = update_mu(tried, tree[k // FAN, k % FAN], clock[INVERSE_Z], -eta_mu * slack)
        z = tree_set(tree, levels, k, weight)
        update_cost(pairs, None, clock[R_STEPS], eta, pull, i, j, e)
        update_value(
            states, clock[R_STEPS], eta_value, discount,
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
    """exp without subnormals, and capped: a capped weight only lives until the flush it causes. A nan stays one."""
    if log_weight <= LOG_FLOOR:
        return 0.0
    return math.exp(-LOG_FLOOR if log_weight > -LOG_FLOOR else log_weight)


@inlined
def move_cost(pair, steps, change):
    """c += change, not projected yet."""
    old = pair.cost
    new = old + change
    pair.cost = new
    pair.cost_sum -= steps * (new - old)


@inlined
def clip_cost(pair, steps):
    """Project c on [-1, 1]."""
    old = pair.cost
    new = min(max(old, -1.0), 1.0)
    pair.cost = new
    pair.cost_sum -= steps * (new - old)


@inlined
def move_value(state, steps, change):
    """u += change, not projected yet."""
    old = state.value
    new = old + change
    state.value = new
    state.value_sum -= steps * (new - old)


@inlined
def clip_value(state, steps):
    """Project u on [-1, 1]."""
    old = state.value
    new = min(max(old, -1.0), 1.0)
    state.value = new
    state.value_sum -= steps * (new - old)


@inlined
def update_value(states, steps, eta, discount, here, then, expert_here, expert_then):
    """The u part of a step; states may coincide, so first move all, then project all."""
    move_value(states[here], steps, -eta)
    move_value(states[then], steps, eta * discount)
    move_value(states[expert_here], steps, eta)
    move_value(states[expert_then], steps, -eta * discount)
    clip_value(states[here], steps)
    clip_value(states[then], steps)
    clip_value(states[expert_here], steps)
    clip_value(states[expert_then], steps)


@inlined
def read_cost(pair, hull, k):
    """The cost of pair k."""
    if hull is None:
        return pair.cost
    return combine(hull.basis, hull.weight, k)


@inlined
def update_cost(pairs, hull, steps, eta, pull, i, j, e):
    """The c part of a step, or the w part of one on a hull."""
    if hull is None:
        update_box(pairs, steps, eta, pull, i, j, e)
    else:
        drift = pull * (combine(hull.basis, hull.weight, i) - pairs[i].prior) if pull > 0.0 else 0.0
        mirror_step(hull.basis, hull.log_weight, hull.weight, hull.weight_sum, drift, eta, i, j, e)


@inlined
def update_box(pairs, steps, eta, pull, i, j, e):
    """The c part of a step on the box; pairs may coincide, so first move all, then project all."""
    if pull > 0.0:
        anchor = pairs[i]
        move_cost(anchor, steps, pull * (anchor.prior - anchor.cost))
    elif pull < 0.0:
        anchor = pairs[i]
        move_cost(anchor, steps, pull * np.sign(anchor.cost - anchor.prior))
    move_cost(pairs[j], steps, eta)
    move_cost(pairs[e], steps, -eta)
    clip_cost(pairs[i], steps)
    clip_cost(pairs[j], steps)
    clip_cost(pairs[e], steps)


@inlined
def update_mu(pair, weight, clock, change):
    """log w += change, with the sum of mu brought up to date first; returns the new weight, to be set in the tree."""
    pair.mu_sum += weight * (clock - pair.clock)
    pair.clock = clock
    pair.log_weight += change
    return weight_of(pair.log_weight)


@compiled
def flush(pairs, states, tree, levels, clock):
    """Fold the lazy sums, rescale the weights to sum to 1, rebuild the tree, restart the clocks; returns Z."""
    steps = clock[R_STEPS]
    inverse_z = clock[INVERSE_Z]
    weights = tree.reshape(tree.size)
    for s in range(len(states)):
        states[s].value_sum += steps * states[s].value
    z = tree_total(tree, levels)
    largest = -np.inf
    for i in range(len(pairs)):
        largest = max(largest, pairs[i].log_weight)
    shift = math.log(z) if 1.0 / Z_RANGE < z < Z_RANGE else largest
    for i in range(len(pairs)):
        pair = pairs[i]
        pair.cost_sum += steps * pair.cost
        pair.mu_sum += weights[i] * (inverse_z - pair.clock)
        pair.clock = 0.0
        pair.log_weight -= shift
        weights[i] = weight_of(pair.log_weight)
    tree_rebuild(tree, levels)
    clock[R_STEPS] = 0.0
    clock[INVERSE_Z] = 0.0
    clock[FLUSHES] += 1
    return tree_total(tree, levels)


@compiled
def draw_ahead(pairs, states, slots, expert, tree, draws, samples):
    """Make the draws of a block of steps that do not depend on the iterate; prefetch what the next pass reads."""
    n = len(pairs)
    for t in range(len(draws)):
        i = int(draws[t, ANCHOR] * n)
        k = int(draws[t, TRIED] * n)
        samples[t, ANCHOR] = i
        samples[t, TRIED] = k
        prefetch(expert, int(draws[t, EXPERT] * len(expert)))
        prefetch(pairs, k)
        prefetch(pairs, i)
        prefetch(tree, k // FAN)
    for t in range(len(draws)):
        e = np.int64(alias_draw(expert, 0, len(expert), draws[t, EXPERT]))
        samples[t, EXPERT] = e
        prefetch(pairs, e)
        pair = pairs[samples[t, TRIED]]
        prefetch(slots, pair.row + int(draws[t, TRIED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, EXPERT]]
        prefetch(slots, pair.row + int(draws[t, EXPERT_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
        pair = pairs[samples[t, TRIED]]
        then = np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, TRIED_NEXT]))
        samples[t, TRIED_NEXT] = then
        prefetch(states, then)
    for t in range(len(draws)):
        pair = pairs[samples[t, EXPERT]]
        then = np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, EXPERT_NEXT]))
        samples[t, EXPERT_NEXT] = then
        prefetch(states, then)


@compiled
def hint_ahead(pairs, states, slots, tree, levels, draws, samples, rest):
    """Prefetch what the draws from mu of a block will probably lead to: draws from mu as it is now, level by level."""
    z = tree_total(tree, levels)
    for t in range(len(draws)):
        samples[t, VISITED] = 0
        rest[t] = draws[t, VISITED] * z
        for level in range(1, min(4, len(levels))):
            prefetch(tree, levels[level] + samples[t, TRIED] // FAN ** (level + 1))
    for level in range(len(levels) - 1, -1, -1):
        for t in range(len(draws)):
            pair = np.int64(samples[t, VISITED])
            child, rest[t] = node_draw(tree, levels[level] + pair, rest[t])
            pair = FAN * pair + child
            samples[t, VISITED] = pair
            if level > 0:
                prefetch(tree, levels[level - 1] + pair)
            else:
                prefetch(pairs, pair)
    for t in range(len(draws)):
        pair = pairs[samples[t, VISITED]]
        prefetch(slots, pair.row + int(draws[t, VISITED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, VISITED]]
        prefetch(states, np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, VISITED_NEXT])))
