r"""Bounds on the least improvement that hold with probability 1 - η, from N trajectories.

Let Z_k be the occupancy of trajectory k: its discounted counts. The Z_k are independent with mean
μ_E, and none of them was used to learn the policy, whose occupancy is μ. With the belief's inner
minimum g, the least improvement on the expert is g(μ_E - μ), up to the penalty of what is covered.

**McDiarmid's inequality**, for every belief. The function g is a minimum of linear functions, so
it is concave, and E g(Z̄ - μ) ≤ g(μ_E - μ) for the mean Z̄: on average it promises too little. One
trajectory moves <Z̄, c> by at most B/N, where B bounds how far apart two entries of one cost can
be. So with probability 1 - η

    g(μ_E - μ)  ≥  g(Z̄ - μ) - B √(ln(1/η) / 2N).

**Empirical Bernstein inequality** (Maurer and Pontil, 2009), for beliefs without a penalty that
have few vertices: the corners of `Prices`, the columns of a `Hull`. There g is the least of a few
means, <μ_E - μ, c_v> over the vertices c_v. Let V be the policy's value under c_v. Shaping changes
no improvement, so c_v may be replaced by the policy's advantage, a_v = c_v - Tγᵀ V. Then <μ, a_v> = 0
and

    <μ_E - μ, c_v> = <μ_E, a_v>,

the mean of the numbers x_k = <Z_k, a_v>. They vary less than <Z_k, c_v>: where a trajectory starts
and what chance does to it is no longer in them, only what the expert chose to do. With their
variance s² (divided by N - 1), b_v = max a_v - min a_v and m vertices, with probability 1 - η for
all vertices at once

    <μ_E, a_v>  ≥  x̄ - √(2 s² ln(2m/η) / N) - 7 b_v ln(2m/η) / 3(N - 1).

McDiarmid's margin is of the order B/√N, this one of the order s/√N. `safe_bound` takes the better
of the two, each at η/2; beliefs with many vertices only have McDiarmid's, at η.

**The bootstrap** resamples the trajectories and takes the η-quantile of g. It is tighter, and
approximate: its coverage is measured, not proven.

**Truncated trajectories.** The mass γ^T after the end of a trajectory was not seen. McDiarmid's
bound and the bootstrap put it on the last state, divided as the demonstrator does there; where
some action leaves that state, McDiarmid's bound subtracts B times the mass. Bernstein's puts it on
the pair with the least advantage, of the last state if no action leaves it and of all otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.experts.demonstrations import Demonstrations, absorbing_states, check_timed, demonstrated_pairs
from rlfd_gym.mdp.occupancy import policy_of
from rlfd_gym.mdp.tables import TabularMDP


class Trajectories(NamedTuple):
    """What independent trajectories show, one row or entry for each."""

    mdp: TabularMDP
    seen: sp.csr_array  # discounted counts of the pairs, (N, n_pairs)
    tails: FloatArray  # γ^T, the mass after the end
    last: IntArray  # the state at the end
    absorbed: NDArray[np.bool_]  # whether no action leaves that state
    each: sp.csr_array  # the occupancies Z_k: `seen`, with the tail on the last state

    @classmethod
    def of(cls, shown: Demonstrations, mdp: TabularMDP) -> Trajectories:
        """Read the trajectories of demonstrations, or raise an error if they have no times."""
        check_timed(shown, "trajectory")
        assert shown.lengths is not None  # `check_timed` has seen to it
        assert shown.next_states is not None
        pairs, number = demonstrated_pairs(shown, mdp), len(shown.lengths)
        shape, numbers = (number, mdp.n_pairs), np.arange(number)
        masses, owners = number * shown.weights(mdp.discount), np.repeat(numbers, shown.lengths)
        seen = sp.csr_array((masses, (owners, pairs)), shape=shape)
        last, tails = shown.next_states[shown.ends], number * shown.tails(mdp.discount)
        policy = policy_of(mdp, np.bincount(pairs, minlength=mdp.n_pairs).astype(np.float64))
        # The pairs of each last state, as rows (trajectory, pair, mass).
        counts = np.diff(mdp.state_starts)[last]
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        ending = np.repeat(mdp.state_starts[last], counts) + offsets
        after = np.repeat(tails, counts) * policy[ending]
        each = seen + sp.csr_array((after, (np.repeat(numbers, counts), ending)), shape=shape)
        return cls(mdp, seen, tails, last, absorbing_states(mdp)[last], sp.csr_array(each))

    @property
    def unknown(self) -> float:
        """The mean mass of which not even the state is known."""
        return float(self.tails[~self.absorbed].sum()) / len(self.tails)

    def least(self, cost: FloatArray) -> FloatArray:
        """Return the least <Z_k, c> of each trajectory, whatever it did after its end."""
        after = np.where(self.absorbed, self.mdp.min_by_state(cost)[self.last], cost.min())
        return np.asarray(self.seen @ cost + self.tails * after)


def safe_bound(shown: Trajectories, policy: FloatArray, belief: Belief, estimate: float, eta: float) -> float:
    """Return a lower bound on the least improvement, with probability 1 - η.

    `estimate` is the least improvement on the mean of the trajectories.
    """
    vertices = belief.vertices()
    if vertices is None:
        return estimate - _mcdiarmid(shown, belief, eta)
    bounds = _bernstein(shown, policy, belief, vertices, eta / 2), estimate - _mcdiarmid(shown, belief, eta / 2)
    return max(bounds)


def bootstrap(
    shown: Trajectories, occupancy: FloatArray, belief: Belief, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return g of the mean of resampled trajectories, once for each resample."""
    number = len(shown.tails)
    values = np.empty(n_resamples)
    for b in range(n_resamples):
        weights = rng.multinomial(number, np.full(number, 1 / number)) / number
        d = shown.each.T @ weights - occupancy
        x = belief.best(d)
        values[b] = belief.penalty(x) + d @ belief.cost(x)
    return values


def _mcdiarmid(shown: Trajectories, belief: Belief, eta: float) -> float:
    """Return the margin of McDiarmid's inequality, and that of the mass that was not seen."""
    return belief.spread * (math.sqrt(math.log(1 / eta) / (2 * len(shown.tails))) + shown.unknown)


def _bernstein(shown: Trajectories, policy: FloatArray, belief: Belief, vertices: FloatArray, eta: float) -> float:
    """Return the least bound of the empirical Bernstein inequality over the vertices."""
    mdp, least = shown.mdp, math.inf
    for x in vertices:
        cost = belief.cost(x)
        advantage = cost - mdp.flow_transpose(mdp.value_of(policy, cost))
        least = min(least, bernstein_bound(shown.least(advantage), float(np.ptp(advantage)), eta / len(vertices)))
    return least


def bernstein_bound(sample: FloatArray, width: float, eta: float) -> float:
    """Return a lower bound on the mean of independent numbers, with probability 1 - η.

    `width` is how far apart two of the numbers can be. One number alone bounds nothing.

    >>> round(bernstein_bound(np.array([0.1, 0.2] * 500), width=1.0, eta=0.05), 3)
    0.137
    """
    number = len(sample)
    if number < 2:
        return -math.inf
    confidence = math.log(2 / eta)
    spread = math.sqrt(2 * float(np.var(sample, ddof=1)) * confidence / number)
    return float(sample.mean()) - spread - 7 * width * confidence / (3 * (number - 1))
