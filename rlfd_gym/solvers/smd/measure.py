"""Make steps of Algorithm 1 and measure the duality gap every few steps, in compiled code.

The gap is the compiled twin of `RLfDProblem.duality_gap`: the same three terms, in one pass over
the pairs. Records every few steps, as in the paper's figures, would otherwise take nearly thirty
times as long. Tests compare the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._compiled import allocating, inlined
from rlfd_gym.beliefs import Hull
from rlfd_gym.beliefs.near_prior import L1
from rlfd_gym.beliefs.simplex import excess_of
from rlfd_gym.problem import RLfDProblem
from rlfd_gym.solvers.smd.intrinsics import WEIGHT, view
from rlfd_gym.solvers.smd.kernels import OK, advance, read_cost
from rlfd_gym.solvers.smd.records import INVERSE_Z, PAIR, R_STEPS, STATE, TOTAL
from rlfd_gym.solvers.smd.simplex import combine
from rlfd_gym.solvers.smd.tree import tree_total

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.checkpoints import Checkpoint

COLUMNS = 5  # what is recorded: the gap, and the changes of c, u, μ and w


class Measuring(NamedTuple):
    """How often to measure, what the gap is computed from, and scratch space."""

    every: int
    data: FloatArray  # of the transitions, as are the next two
    indices: IntArray
    indptr: IntArray
    expert: FloatArray
    alpha: float
    slack: FloatArray
    imbalance: FloatArray
    value: FloatArray
    mean: FloatArray  # of w; empty on the box
    linear: FloatArray  # Cᵀ(d - 2αĉ)


def measuring_of(problem: RLfDProblem, every: int) -> Measuring:
    """Return what is needed to measure the gap of a problem every `every` steps."""
    p, n, n_states = problem.mdp.transitions, problem.n_pairs, problem.n_states
    size = problem.belief.basis.shape[1] if isinstance(problem.belief, Hull) else 0
    scratch = np.empty(n), np.empty(n_states), np.empty(n_states), np.empty(size), np.empty(size)
    return Measuring(every, p.data, p.indices, p.indptr, problem.expert, problem.alpha, *scratch)


def row_of(problem: RLfDProblem, checkpoint: Checkpoint) -> list[float]:
    """Return what is recorded of a run of any kind, as `measure` does for those of the paper's variant."""
    now, last = checkpoint.average, checkpoint.run.iterate()
    costs = [problem.belief.cost(point.x) for point in (last, now)]
    pairs = [(costs[0], costs[1]), (last.value, now.value), (last.occupancy, now.occupancy)]
    pairs += [(last.x, now.x)] if len(now.x) != problem.n_pairs else []
    changes = [float(np.abs(one - other).sum()) / max(checkpoint.run.steps - 1, 1) for one, other in pairs]
    return [problem.duality_gap(*now), *changes, 0.0][:COLUMNS]


@allocating
def advance_and_measure(run, tables, step, draws, samples, rest, measuring, records):
    """Make steps as `advance` does, and write a row of `records` every `measuring.every` steps.

    Returns a status code.
    """
    rows = 0
    done = 0
    while done < len(draws):
        size = min(measuring.every - int(run.clock[TOTAL]) % measuring.every, len(draws) - done)
        status = advance(run, tables, step, draws[done : done + size], samples, rest)
        if status != OK:
            return status
        done += size
        if int(run.clock[TOTAL]) % measuring.every == 0:
            records[rows] = measure(run, run.mixture, run.ends, step, measuring)
            rows += 1
    return OK


@allocating
def measure(run, mixture, ends, step, measuring):
    """Return the duality gap of the average, and the changes of c, u, μ and w in the last step.

    The changes are ℓ1-norms of the differences of consecutive averages,
    avg_t - avg_{t-1} = (x_t - avg_t) / (t-1). On the box there is no w, and its change is 0.
    `mixture` and `ends` are those of the run; they are arguments of their own so that numba sees
    whether they are None.
    """
    pairs, states = view(run.pair_buffer, PAIR), view(run.state_buffer, STATE)
    weights = view(run.tree, WEIGHT)
    data, indices, indptr = measuring.data, measuring.indices, measuring.indptr
    expert, alpha, slack = measuring.expert, measuring.alpha, measuring.slack
    imbalance, value = measuring.imbalance, measuring.value
    steps, inverse_z, z = run.clock[R_STEPS], run.clock[INVERSE_Z], tree_total(run.tree, run.levels)
    count, discount, scale = int(run.clock[TOTAL]), step.discount, 1.0 / (1.0 - step.discount)
    change_cost, change_value, change_mu, gap, smallest = 0.0, 0.0, 0.0, 0.0, np.inf
    # The average of u.
    for s in range(len(states)):
        value[s] = (states[s].x_sum + steps * states[s].x) / count
        change_value += abs(states[s].x - value[s])
        imbalance[s] = 0.0
    # The averages of c and μ, with q (`slack`), Tγ d (`imbalance`) and the belief's excess.
    mean, linear = measuring.mean, measuring.linear
    if mixture is not None:
        mean[:] = mixture.weight_sum / mixture.weight_sum.sum()
        linear[:] = 0.0
    for i in range(len(pairs)):
        pair = pairs[i]
        cost = mean_cost(pair, mixture, mean, i, steps, count)
        mu = (pair.mu_sum + weights[i] * (inverse_z - pair.clock)) / count
        change_cost += abs(read_cost(pair, mixture, i) - cost)
        change_mu += abs(weights[i] / z - mu)
        d = expert[i] - mu
        after = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            after += data[k] * value[indices[k]]
            imbalance[indices[k]] -= discount * scale * data[k] * d
        imbalance[pair.state] += scale * d
        slack[i] = cost - scale * (value[pair.state] - discount * after)
        smallest = min(smallest, slack[i])
        if ends is not None:
            gap += (cost - (ends[i, 0] if d > 0.0 else ends[i, 1])) * d
        elif mixture is None:
            gap += excess(step.kind, cost, pair.prior, alpha, d)
        else:
            for k in range(len(linear)):
                linear[k] += mixture.basis[i, k] * (d - 2.0 * alpha * pair.prior)
    # <μ, q - min q> and ‖Tγ d‖₁ - <u, Tγ d>; on a hull the excess comes last.
    for i in range(len(pairs)):
        gap += (pairs[i].mu_sum + weights[i] * (inverse_z - pairs[i].clock)) / count * (slack[i] - smallest)
    for s in range(len(states)):
        gap += abs(imbalance[s]) - value[s] * imbalance[s]
    before = max(count - 1, 1)
    change_weights = 0.0
    if mixture is not None:
        gap += excess_of(mixture.gram, linear, alpha, mean)
        change_weights = np.abs(mixture.weight - mean).sum()
    return gap, change_cost / before, change_value / before, change_mu / before, change_weights / before


@inlined
def excess(kind, cost, prior, alpha, d):
    """Return by how much Ω(c) + dc exceeds its minimum: `NearPrior.excess` for one pair."""
    if kind == L1 and alpha > 0.0:
        best = min(max(prior, -1.0), 1.0) if abs(d) <= alpha else -np.sign(d)
        above = (d + alpha) * (max(cost, prior) - max(best, prior))
        return above + (d - alpha) * (min(cost, prior) - min(best, prior))
    best = -np.sign(d) if alpha == 0.0 else min(max(prior - d / (2.0 * alpha), -1.0), 1.0)
    return (cost - best) * (alpha * (cost + best - 2.0 * prior) + d)


@inlined
def mean_cost(pair, mixture, mean, i, steps, count):
    """Return the average cost of pair i."""
    if mixture is None:
        return (pair.x_sum + steps * pair.x) / count
    return combine(mixture.basis, mean, i)
