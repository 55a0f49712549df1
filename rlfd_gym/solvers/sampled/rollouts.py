r"""How far the true occupancy of a policy is from its occupancy under estimated tables.

Follow π through the oracle from N starts s₀ ~ ν₀, T steps each. With ê(s₀) the state occupancy of π
from s₀ under P̂,

    Z_k = (1-γ) Σ_{t<T} γᵗ e_{s_t} - (1-γ^T) ê(s₀)

has the mean δ up to the tail: the steps from T on and the share γ^T of ê add at most 2γ^T in
ℓ1-norm. Where P̂ predicts the walk exactly, Z_k = 0 up to that. The Z_k are independent, so the
vector bound of `rlfd_gym.solvers.sampled.bounds` applies to them in any Euclidean norm:

* ‖x‖² = Σ_s ρ_s x_s² with ρ_s = Σ_a π(a|s)², the norm of x(s)π(a|s) over pairs, for ‖δ‖;
* ‖x‖² = Σ_s x_s²/w_s with w ≥ 0, Σ w = 1, which is at least ‖x‖₁² (Cauchy and Schwarz), for ‖δ‖₁.

Both are bounded with η/2 each, of which one half is for the second moment. A walk ends early where
all walks are in states that the oracle declares absorbing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.occupancy import policy_chain
from rlfd_gym.solvers.sampled.bounds import mean_square, norm_margin
from rlfd_gym.solvers.sampled.certificate import Candidate
from rlfd_gym.solvers.sampled.draws import Oracle

PREDICTED = 2_000  # states up to which the occupancy from every start is computed
CHUNK = 4_000_000  # numbers in the walks that are followed at a time


class Distance(NamedTuple):
    """Bounds on ‖δ‖ and ‖δ‖₁, and the average squared norm of a walk, to plan the next ones."""

    euclidean: float = math.inf
    total: float = 2.0
    square: float = 1.0


def horizon_of(discount: float, walks: int) -> int:
    """Return T with γ^T about 1/(4N): the tail then matters little."""
    return max(1, math.ceil(math.log(4 * max(walks, 1)) / -math.log(discount)))


def distance(candidate: Candidate, oracle: Oracle, walks: int, eta: float) -> Distance:
    """Follow the policy and return bounds on how far its occupancy is from μ'."""
    if walks < 1:
        return Distance()
    mdp, problem = candidate.tables, candidate.problem
    n_states, gamma = mdp.n_states, mdp.discount
    expected = mdp.sum_by_state(candidate.occupancy)
    predicted = None
    if n_states <= PREDICTED:
        chain = policy_chain(mdp, candidate.policy).toarray()
        predicted = (1 - gamma) * np.linalg.inv(np.eye(n_states) - gamma * chain)
    heavy = 0.5 * expected / expected.sum() + 0.5 / n_states
    metrics = mdp.sum_by_state(candidate.policy**2), 1.0 / heavy
    steps, size = horizon_of(gamma, walks), max(1, CHUNK // n_states)
    sums, squares = np.zeros(n_states), np.zeros(2)
    cumulative = np.cumsum(candidate.policy)
    starts = oracle.rng.choice(n_states, size=walks, p=problem.initial)
    for first in range(0, walks, size):
        begun = starts[first : first + size]
        seen = _follow(oracle, cumulative, mdp.state_starts, begun, steps, gamma)
        seen -= (1 - gamma**steps) * (expected[None, :] if predicted is None else predicted[begun])
        sums += seen.sum(axis=0)
        squares += [float((seen**2 @ metric).sum()) for metric in metrics]
    bounds, tail = [], 2 * gamma**steps
    for metric, square in zip(metrics, squares / walks, strict=True):
        largest = math.sqrt(2 * metric.max())  # of the difference of two measures of mass one at most
        moment = mean_square(square, largest**2, math.log(4 / eta), walks)
        drift = math.sqrt(float(metric @ (sums / walks) ** 2))
        bounds.append(drift + norm_margin(moment, largest, math.log(8 / eta), walks))
    return Distance(bounds[0] + tail * math.sqrt(metrics[0].max()), min(2.0, bounds[1] + tail), squares[0] / walks)


def _follow(
    oracle: Oracle, cumulative: FloatArray, state_starts: IntArray, begun: IntArray, steps: int, gamma: float
) -> FloatArray:
    """Follow walks and return (1-γ) Σ γᵗ e_{s_t}, a row for each."""
    seen = np.zeros((len(begun), len(state_starts) - 1))
    rows, states, weight = np.arange(len(begun)), begun.copy(), 1 - gamma
    for t in range(steps):
        moving = np.flatnonzero(~oracle.absorbing[states])
        if not moving.size:  # all stay where they are
            seen[rows, states] += weight * (1 - gamma ** (steps - t)) / (1 - gamma)
            break
        seen[rows, states] += weight
        weight *= gamma
        if t == steps - 1:
            break
        here = states[moving]
        before = np.where(here > 0, cumulative[state_starts[here] - 1], 0.0)
        total = cumulative[state_starts[here + 1] - 1] - before
        pairs = np.searchsorted(cumulative, before + total * oracle.rng.random(len(here)), side="right")
        pairs = np.clip(pairs, state_starts[here], state_starts[here + 1] - 1)
        states[moving] = oracle.next_states(pairs)
    return seen
