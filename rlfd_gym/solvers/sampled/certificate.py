r"""Bounds on the optimum under the true transitions, from draws alone, with probability 1 - η.

The problem is min over c of F(c) = Ω(c) + <μ_E, c> - ρ*_c, where ρ*_c is the least expected cost
<μ, c> over all policies from the start ν₀. Everything in it is known except the transitions P,
of which there are estimates P̂. A cost c and a policy π are given, chosen by any method from draws
D₀. Fresh draws D₁, of numbers of each pair that depend on D₀ only, turn them into bounds.

**Theorem.** With probability 1 - η over D₁, whatever D₀ is,

    L  ≤  g(μ_E - μ_π)  ≤  min F  ≤  F(c)  ≤  U,

where μ_π is the true occupancy of π and g(d) = min over c' of Ω(c') + <d, c'>. So the pair (c, π)
has a duality gap of at most U - L under the true transitions.

**The upper bound.** Let u be any vector over states, chosen from D₀, and q = c - Tγᵀu its slack
under P. Since <μ, c> = <ν₀, u> + <μ, q> for every occupancy μ, ρ*_c ≥ <ν₀, u> + min q. For pair i,

    q_i = c_i - (u(s_i) - γ P_i u)/(1-γ),

and the numbers u(s') of the fresh draws of i are independent with mean P_i u. They are at least
min u, so `rlfd_gym.solvers.sampled.bounds` gives a lower bound ℓ_i of P_i u, with the centre P̂_i u
and the range P̂_i u - min u. With η/2n for each of the n pairs, all hold together, and

    U = Ω(c) + <μ_E, c> - <ν₀, u> - min over i of (c_i - (u(s_i) - γ ℓ_i)/(1-γ)).

**Which u.** With u = V*_c under P̂, the least of the slacks would be the worst margin of all pairs.
Instead, u = V* for the cost c - γb/(1-γ) under P̂, where b_i is the margin that is expected of pair
i. Then ℓ_i ≥ P̂_i u - b_i is enough for q_i ≥ 0, and the price is only what the margins cost along
one policy, <ν₀, V*_c - u>. Pairs that are bad anyway may have a large margin for nothing, and draws
are given to those for which it matters (`allocate`). Values below some end v are set to v, which
keeps the ranges small. It costs nothing unless a cost below v is in such a state, because
v ≤ (1-γ)c_i + γ P_i u if v ≤ c_i and v ≤ u. Several vectors u, for several ends and sizes of b
(`SHAPES`), share the η/2; the best is taken.

**The lower bound.** Let μ' be the occupancy of π under P̂, and c* the belief's best answer to
μ_E - μ'. With û ≥ (1-γ) c*_π + γ P_π û, again by margins of the fresh draws, this time from above,
<μ_π, c*> ≤ <ν₀, û> + the largest violation. The cost that is worst for μ_π may be another than c*:
with δ = μ_π - μ',

    g(μ_E - μ_π)  ≥  Ω(c*) + <μ_E - μ_π, c*> - ‖δ‖²/4α        for Ω = α‖c - ĉ‖²,
    g(μ_E - μ_π)  ≥  g(μ_E - μ') - ‖δ‖₁                       for every penalty,

the first because the gradient of the concave function g is the best answer c*(d), which
is 1/2α-Lipschitz, the second because |c'| ≤ 1. The norms of δ are bounded by following π through the
oracle, see `rlfd_gym.solvers.sampled.rollouts`; both use δ(s, a) = δ(s) π(a|s).

**Adaptivity.** Solving and certifying may be repeated, with the old D₁ added to D₀. If round k uses
η_k = 6η/(π²k²), all its statements hold together with probability 1 - η, since Σ 1/k² = π²/6. So
the best round may be taken, and a round may be stopped for.

Pairs whose row the oracle declares to be known have no margin.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.forward import Plan, optimal
from rlfd_gym.mdp.occupancy import occupancy_of, value_of
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.solvers.sampled.bounds import margin, rate
from rlfd_gym.solvers.sampled.draws import spread

SHAPES = tuple((safety, beyond) for beyond in (0.02, 0.25, 1.0) for safety in (0.0, 1.5, 3.0))
PLANNED = (1.5, 0.25)  # the shape by which draws are allocated
EVEN = 0.05  # of the draws, given to all pairs alike
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Candidate:
    """What is to be certified: a cost and a policy, and the tables that they were learned from.

    Attributes:
        problem: the problem.
        tables: P̂.
        numbers: how many draws of each pair are in P̂.
        known: which pairs' rows are known.
        cost: c.
        policy: π.
    """

    problem: BlackBoxProblem
    tables: TabularMDP
    numbers: FloatArray
    known: NDArray[np.bool_]
    cost: FloatArray
    policy: FloatArray
    occupancy: FloatArray = field(init=False)
    """μ', that of π under P̂."""
    best_cost: FloatArray = field(init=False)
    """c*."""

    def __post_init__(self) -> None:
        """Compute the occupancy, and the best answer to it."""
        object.__setattr__(self, "occupancy", occupancy_of(self.tables, self.policy))
        d = self.problem.expert_occupancy - self.occupancy
        object.__setattr__(self, "best_cost", self.problem.belief.best(d))

    @cached_property
    def plan(self) -> Plan:
        """The optimal plan for c under P̂."""
        return optimal(self.tables, self.cost)

    @cached_property
    def _evaluation(self) -> FloatArray:
        return value_of(self.tables, self.policy, self.best_cost)

    def value_of(self, sign: float) -> FloatArray:
        """Return V* for c (upper bound), or the value of π for c* (lower bound), under P̂."""
        return self.plan.value if sign > 0 else self._evaluation

    def believed(self) -> tuple[float, float]:
        """Return F(c) and g(μ_E - μ') as if P̂ were the truth."""
        belief, expert = self.problem.belief, self.problem.expert_occupancy
        upper = belief.penalty(self.cost) + expert @ self.cost - self.plan.expected_cost
        return float(upper), self.least(self.best_cost, float(self.occupancy @ self.best_cost))

    def least(self, cost: FloatArray, apprentice: float) -> float:
        """Return Ω(c) + <μ_E, c> - the apprentice's expected cost."""
        return float(self.problem.belief.penalty(cost) + self.problem.expert_occupancy @ cost - apprentice)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two bounds: a vector u to test by draws, for which margins were planned.

    Attributes:
        sign: 1 for the upper bound, where u must be low; -1 for the lower bound, where it is high.
        value: u.
        rates: λ of each pair.
        loss: what the margins cost, by the plan.
    """

    sign: float
    value: FloatArray
    rates: FloatArray
    loss: float


def plan_side(
    candidate: Candidate, sign: float, fresh: FloatArray, log_term: float, shape: tuple[float, float]
) -> Side:
    """Return the u of one bound, with the margins that `fresh` draws of each pair will have.

    `shape` says how many standard deviations between old and new draws the margins allow for, and by
    which share of its range u may go beyond the values under P̂.
    """
    gamma, numbers, fresh = candidate.tables.discount, np.maximum(candidate.numbers, 1), np.maximum(fresh, 1)
    cost = candidate.cost if sign > 0 else candidate.best_cost
    value = candidate.value_of(sign)
    safety, beyond = shape
    end = _end(cost, value, sign, beyond)
    centre, variances = spread(candidate.tables.transitions, value)
    ranges = np.maximum(sign * (centre - end), 0.0)
    squares = fresh * (variances / np.where(ranges > 0, ranges, 1.0) ** 2 + 0.5 / numbers)
    rates = rate(squares, log_term)
    margins = margin(ranges, squares, rates, log_term, fresh) + safety * np.sqrt(variances * (1 / fresh + 1 / numbers))
    margins = np.where(candidate.known, 0.0, np.minimum(margins, ranges))
    careful = cost - sign * gamma / (1 - gamma) * margins
    tested = (
        optimal(candidate.tables, careful).value if sign > 0 else value_of(candidate.tables, candidate.policy, careful)
    )
    tested = sign * np.maximum(sign * tested, sign * end)
    return Side(sign, tested, rates, float(sign * candidate.problem.initial @ (value - tested)))


def shortfall(candidate: Candidate, side: Side, fresh: sp.csr_array, log_term: float) -> float:
    """Return by how much <ν₀, u> may be wrong: -min q, or the largest violation for the lower bound."""
    mdp, u, sign = candidate.tables, side.value, side.sign
    gamma, counts = mdp.discount, fresh.sum(axis=1)
    centre, end = mdp.transitions @ u, u.min() if sign > 0 else u.max()
    ranges = np.maximum(sign * (centre - end), 0.0)  # how far a draw can be on the bad side of its centre
    scale = np.where(ranges > 0, ranges, 1.0)
    # Σ (u(s') - centre)² over the fresh draws, by the entries of their counts.
    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(fresh.indptr))
    moved = (u[fresh.indices] - centre[pairs]) / scale[pairs]
    squares = np.bincount(pairs, weights=fresh.data * moved**2, minlength=mdp.n_pairs)
    mean = np.where(counts > 0, (fresh @ u) / np.maximum(counts, 1), 0.0)
    far = margin(ranges, squares, side.rates, log_term, counts)
    after = np.where((counts > 0) & (ranges > 0), mean - sign * far, end)  # without a range: the end alone
    after = np.maximum(after, end) if sign > 0 else np.minimum(after, end)
    after = np.where(candidate.known, centre, after)
    cost = candidate.cost if sign > 0 else candidate.best_cost
    slack = cost - (u[mdp.pair_states] - gamma * after) / (1 - gamma)
    if sign > 0:
        return -float(slack.min())
    return float(mdp.sum_by_state(candidate.policy * slack).max())


def allocate(candidate: Candidate, budget: int, log_term: float) -> IntArray:
    """Return how often to draw each pair: so often that its margin does no harm, if that is possible.

    A margin b costs the upper bound nothing if γb/(1-γ) is below the slack of the pair under P̂, and
    along the optimal policy and π it costs its share of the occupancy. Half of the draws make the
    margins smaller than half the slack, or than a tolerance where that is larger, which is as small
    as the draws allow. The other half goes to the two policies, a few draws to every pair.
    """
    n, free, mdp = candidate.problem.n_pairs, ~candidate.known, candidate.tables
    gamma = mdp.discount
    if not free.any():
        return np.zeros(n, dtype=np.int64)
    slack = np.maximum(candidate.cost - mdp.flow_transpose(candidate.plan.value), 0.0)
    noise = (math.sqrt(2 * log_term) + PLANNED[0]) ** 2
    harmless, needs, visited = (1 - gamma) / gamma * slack / 2, np.zeros(n), np.zeros(n)
    terms = []
    for sign, weights in ((1.0, candidate.plan.occupancy), (-1.0, candidate.occupancy)):
        ranges, variances, allowed = _scales(candidate, sign)
        terms.append((ranges * log_term, noise * variances))
        urgent = free & (allowed > 0) & ((sign > 0) | (candidate.policy > 0))
        needs = np.maximum(needs, np.where(urgent, _draws(*terms[-1], allowed / 2), 0.0))
        visited += weights

    def for_slack(tolerance: float) -> FloatArray:
        return np.maximum(needs, _draws(*terms[0], np.maximum(harmless, (1 - gamma) / gamma * tolerance))) * free

    def for_policies(price: float) -> FloatArray:
        each = [np.sqrt(price * visited * a) + (price * visited * np.sqrt(b) / 2) ** (2 / 3) for a, b in terms]
        return np.maximum(*each) * free

    few = EVEN * budget * free / free.sum()
    numbers = few + _spending(for_slack, budget / 2, -1.0) + _spending(for_policies, budget * (0.5 - EVEN), 1.0)
    numbers *= max(budget - int(free.sum()), 0) / numbers.sum()
    return np.where(free, 1 + np.floor(numbers), 0).astype(np.int64)


def _draws(range_term: FloatArray, variance_term: FloatArray, margins: FloatArray) -> FloatArray:
    """Return how many draws have (at most) these margins."""
    least = np.maximum(margins, TINY)
    return np.asarray(2 * range_term / least + 4 * variance_term / least**2)


def _spending(numbers: Callable[[float], FloatArray], budget: float, sign: float) -> FloatArray:
    """Return the numbers whose sum is the budget; they grow with the parameter, or fall if sign < 0."""
    low, high = -30.0, 30.0  # powers of ten
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = numbers(10.0**middle).sum() <= budget
        low, high = (middle, high) if fits == (sign > 0) else (low, middle)
    found = numbers(10.0 ** (low if sign > 0 else high))
    total = found.sum()
    return found * min(1.0, budget / total) if total > 0 else found


def _scales(candidate: Candidate, sign: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return range and variance after each pair, and what the end of u allows; 0 where it allows all."""
    gamma, cost = candidate.tables.discount, candidate.cost if sign > 0 else candidate.best_cost
    value = candidate.value_of(sign)
    end = _end(cost, value, sign, PLANNED[1])
    centre, variances = spread(candidate.tables.transitions, value)
    allowed = sign * ((1 - gamma) * cost + gamma * centre - end) / gamma
    return np.maximum(sign * (centre - end), 0.0), variances, np.where(sign * (cost - end) < 0, allowed, 0.0)


def _end(cost: FloatArray, value: FloatArray, sign: float, beyond: float) -> float:
    """Return the end beyond which no value goes; at the extreme cost itself no draw is needed."""
    return float(sign * max((sign * value).min() - beyond * np.ptp(value), (sign * cost).min()))
