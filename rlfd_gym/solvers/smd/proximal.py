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
pair, with αᵢ = 0 where there is no penalty. `ends` is None for the box [-1, 1]. Both are known when
the kernels are compiled.

The kernels check nothing: they receive arrays that are already checked.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._compiled import aligned, compiled, inlined
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point, Problem
from rlfd_gym.solvers.smd.alias import SLOT, alias_draw
from rlfd_gym.solvers.smd.intrinsics import FAN, prefetch
from rlfd_gym.solvers.smd.kernels import BLOCK, HINT_FROM, NOT_FINITE, OK, Z_RANGE, update_mu, weight_of
from rlfd_gym.solvers.smd.lazy import Powers, decay, decayed, drift, powers_of, pulled, slide
from rlfd_gym.solvers.smd.records import aligned_copy
from rlfd_gym.solvers.smd.tree import node_draw, tree_draw, tree_rebuild, tree_set, tree_shape, tree_total

DRAWS = 4  # uniforms per step, and sampled indices
VISITED, VISITED_NEXT, TRIED, TRIED_NEXT = range(DRAWS)  # j, s', k, s'_k

PAIR = np.dtype(
    [
        ("x", "f8"),  # the cost, after `since` steps
        ("x_sum", "f8"),  # over the steps before
        ("anchor", "f8"),  # τ for the ℓ2 penalty, otherwise the prior
        ("log_weight", "f8"),
        ("mu_sum", "f8"),
        ("clock", "f8"),  # A when mu_sum was last brought up to date
        ("row", "u4"),  # first slot of this pair's alias table
        ("since", "u4"),  # steps between the last flush and x
        ("state", "i4"),
        ("row_length", "i4"),
    ]
)
STATE = np.dtype([("x", "f8"), ("x_sum", "f8"), ("flow", "f8"), ("since", "i8")])  # of the value; flow is b
R_STEPS, INVERSE_Z, FLUSHES, TOTAL = range(4)  # entries of ProximalRun.clock
LINEAR = 1e-150  # a penalty below this weight is none: its multiples would overflow


class Step(NamedTuple):
    """The constants of a step."""

    discount: float
    scale: float  # 1 / (1-γ)
    eta: float
    eta_value: float
    eta_mu: float  # n η_μ
    period: int  # steps between flushes
    powers: Powers


class ProximalRun(NamedTuple):
    """One run's iterate and lazy sums; the kernels change it in place."""

    pair_buffer: FloatArray  # n records PAIR
    state_buffer: FloatArray  # S records STATE
    tree: FloatArray  # (nodes, FAN): one level after the other, the weights first
    levels: IntArray  # the first node of each level
    clock: FloatArray  # steps and A since the last flush; flushes and steps so far
    step: Step
    slopes: FloatArray | None = None  # (n, 2); None for the ℓ2 penalty
    ends: FloatArray | None = None  # (n, 2), the interval of each pair's cost; None for [-1, 1]

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

    @property
    def steps(self) -> int:
        """How many steps the run has made."""
        return int(self.clock[TOTAL])

    def average(self) -> Point:
        """Return the averages over the steps made so far, without changing the run."""
        return _settled(self)[0]

    def iterate(self) -> Point:
        """Return the current iterate, without changing the run."""
        return _settled(self)[1]

    def copy(self) -> ProximalRun:
        """Return a copy that can be continued without changing the original."""
        own = (aligned_copy(array) for array in (self.pair_buffer, self.state_buffer, self.tree))
        return ProximalRun(*own, self.levels, self.clock.copy(), self.step, self.slopes, self.ends)

    def with_step(self, step: Step) -> ProximalRun:
        """Return a copy that continues with other step sizes; the same ones change nothing."""
        own = self.copy()
        if step[:6] == self.step[:6]:
            return own
        flush(own)
        return own._replace(step=step)


def step_of(problem: Problem, etas: tuple[float, ...]) -> Step:
    """Return the constants of a step for the step sizes (η_c, η_u, η_μ)."""
    n, (eta, eta_value, eta_mu) = problem.n_pairs, etas
    period = max(4 * n, 4096)
    kappa = 2.0 * problem.alpha * eta if is_quadratic(problem) else 0.0
    powers = powers_of(kappa, period)
    return Step(problem.discount, 1.0 / (1.0 - problem.discount), eta, eta_value, n * eta_mu, period, powers)


def is_quadratic(problem: Problem) -> bool:
    """Return whether the penalty is α‖c - ĉ‖² with an α that is not negligible."""
    return problem.regulariser == "l2" and problem.alpha > LINEAR


def start(problem: Problem, point: Point, step: Step, expert: FloatArray, flow: FloatArray) -> ProximalRun:
    """Start a run at a point, for an expert's occupancy μ_E with the flow b = Tγ μ_E."""
    belief: Any = problem.belief
    pairs, states = aligned(problem.n_pairs, PAIR), aligned(problem.n_states, STATE)
    if problem.row_starts[-1] > np.iinfo(np.uint32).max:
        raise ValueError('problem has more than 2**32 transitions; use variant="paper"')
    pairs["state"], pairs["row"] = problem.pair_states, problem.row_starts[:-1]
    pairs["row_length"] = np.diff(problem.row_starts)
    slopes = None
    if is_quadratic(problem):
        pairs["anchor"] = belief.prior - expert / (2.0 * belief.alpha)
    else:
        pairs["anchor"] = belief.prior
        weight = getattr(belief, "pair_alpha", 0.0) if problem.regulariser == "l1" else 0.0
        slopes = np.column_stack([expert + weight, expert - weight])
    ends = np.column_stack([belief.low, belief.high]) if isinstance(belief, Intervals) else None
    # The iterate, with all sums empty.
    pairs["x"], states["x"], states["flow"] = point.x, point.value, flow
    for records in (pairs, states):
        records["x_sum"], records["since"] = 0.0, 0
    pairs["mu_sum"], pairs["clock"] = 0.0, 0.0
    with np.errstate(divide="ignore"):
        pairs["log_weight"] = np.log(point.occupancy)
    levels, size = tree_shape(problem.n_pairs)
    tree = aligned(size * FAN, np.dtype("f8")).reshape(size, FAN)
    tree[:] = 0.0
    run = ProximalRun(pairs.view(np.float64), states.view(np.float64), tree, levels, np.zeros(4), step, slopes, ends)
    flush(run)
    run.clock[FLUSHES] = 0
    return run


def _settled(run: ProximalRun) -> tuple[Point, Point]:
    """Return the averages over the steps so far, and the current iterate, without changing the run."""
    own, count = run.copy(), run.clock[TOTAL]
    weights = own.weights / own.weights.sum()
    flush(own)
    pairs, states = own.pairs, own.states
    last = Point(pairs["x"].copy(), states["x"].copy(), weights)
    if count == 0:
        return last, last
    low, high = (-1.0, 1.0) if run.ends is None else (run.ends[:, 0], run.ends[:, 1])
    cost, value = np.clip(pairs["x_sum"] / count, low, high), np.clip(states["x_sum"] / count, -1.0, 1.0)
    return Point(cost, value, pairs["mu_sum"] / pairs["mu_sum"].sum()), last


@compiled
def advance(run, slot_buffer, draws, samples):
    """Make len(draws) steps in place; `samples` receives the sampled indices.

    Returns a status code.
    """
    pairs, states = run.pair_buffer.view(PAIR), run.state_buffer.view(STATE)
    slots, tree, levels, clock = slot_buffer.view(SLOT), run.tree, run.levels, run.clock
    slopes, ends, step = run.slopes, run.ends, run.step
    z = tree_total(tree, levels)
    now = int(clock[R_STEPS])
    inverse_z = clock[INVERSE_Z]
    hint = len(pairs) >= HINT_FROM
    rest = np.empty(BLOCK)
    for begin in range(0, len(draws), BLOCK):
        end = min(begin + BLOCK, len(draws))
        draw_ahead(pairs, states, slots, tree, draws[begin:end], samples[begin:end])
        if hint:
            hint_ahead(pairs, states, slots, tree, levels, draws[begin:end], samples[begin:end], rest)
        for t in range(begin, end):
            k, next_k = samples[t, TRIED], samples[t, TRIED_NEXT]
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
    here, then = read_value(states, step, now, tried.state), read_value(states, step, now, next_k)
    slack = read_cost(pairs, slopes, ends, step, now, k) - step.scale * (here - step.discount * then)
    return update_mu(tried, tree[k // FAN, k % FAN], inverse_z, -step.eta_mu * slack)


@inlined
def interval(ends, i):
    """Return the ends of the interval of pair i."""
    if ends is None:
        return -1.0, 1.0
    return ends[i, 0], ends[i, 1]


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
    return min(max(state.x + (now - state.since) * (step.eta_value * state.flow), -1.0), 1.0)


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
    pair.x = min(max(moved, low), high)
    pair.x_sum += total
    pair.since = np.uint32(now + 1)


@inlined
def update_value(states, step, now, here, then):
    """Make the u part of a step; the states may coincide, so first move both, then project both."""
    _drift_value(states, step, now, here)
    _drift_value(states, step, now, then)
    states[here].x -= step.eta_value * step.scale
    states[then].x += step.eta_value * step.scale * step.discount
    states[here].x = min(max(states[here].x, -1.0), 1.0)
    states[then].x = min(max(states[then].x, -1.0), 1.0)


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
    pairs, states = run.pair_buffer.view(PAIR), run.state_buffer.view(STATE)
    tree, levels, clock, step, slopes, ends = run.tree, run.levels, run.clock, run.step, run.slopes, run.ends
    now = int(clock[R_STEPS])
    inverse_z = clock[INVERSE_Z]
    weights = tree.reshape(tree.size)
    for s in range(len(states)):
        state = states[s]
        value, total = value_path(state, step, now)
        state.x = min(max(value, -1.0), 1.0)
        state.x_sum += total - value  # the iterate of this step is not among the sum's yet
        state.since = 0
    # log Z, or where Z is out of range the largest logarithm, is subtracted from all of them.
    z = tree_total(tree, levels)
    largest = -np.inf
    for i in range(len(pairs)):
        largest = max(largest, pairs[i].log_weight)
    shift = math.log(z) if 1.0 / Z_RANGE < z < Z_RANGE else largest
    for i in range(len(pairs)):
        pair = pairs[i]
        value, total = cost_path(pairs, slopes, ends, step, now, i)
        low, high = interval(ends, i)
        pair.x = min(max(value, low), high)
        pair.x_sum += total - value
        pair.since = np.uint32(0)
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
def draw_ahead(pairs, states, slots, tree, draws, samples):
    """Draw k and s'_k of a block of steps; each pass prefetches what the next one reads."""
    n = len(pairs)
    for t in range(len(draws)):
        k = int(draws[t, TRIED] * n)
        samples[t, TRIED] = k
        prefetch(pairs, k)
        prefetch(tree, k // FAN)
    for t in range(len(draws)):
        pair = pairs[samples[t, TRIED]]
        prefetch(slots, np.int64(pair.row) + int(draws[t, TRIED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, TRIED]]
        then = np.int64(alias_draw(slots, np.int64(pair.row), pair.row_length, draws[t, TRIED_NEXT]))
        samples[t, TRIED_NEXT] = then
        prefetch(states, then)


@compiled
def hint_ahead(pairs, states, slots, tree, levels, draws, samples, rest):
    """Prefetch what the draws of j in a block will probably lead to, see `prefetch.hint_ahead`."""
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
        prefetch(slots, np.int64(pair.row) + int(draws[t, VISITED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, VISITED]]
        prefetch(states, np.int64(alias_draw(slots, np.int64(pair.row), pair.row_length, draws[t, VISITED_NEXT])))
