r"""Bounds on the least improvement that hold with probability 1 - η, from N trajectories.

Let Z_k be the occupancy of trajectory k: its discounted counts. The Z_k are independent with mean
μ_E, and none of them was used to learn the policy, whose occupancy is μ. With the belief's inner
minimum g, the least improvement on the expert is g(μ_E - μ), up to the penalty of what is covered.

**McDiarmid's inequality**, for every belief. The function g is a minimum of linear functions, so
it is concave, and E g(Z̄ - μ) ≤ g(μ_E - μ) for the mean Z̄: on average it promises too little. One
trajectory moves <Z̄, c> by at most B/N, where B bounds how far apart two entries of one cost can
be. So with probability 1 - η

    g(μ_E - μ)  ≥  g(Z̄ - μ) - B √(ln(1/η) / 2N).

**Betting**, for beliefs without a penalty that have few vertices: the corners of `Prices`, the
columns of a `Hull`. There g is the least of a few means, <μ_E - μ, c_v> over the vertices c_v. Let V
be the policy's value under c_v. Shaping changes no improvement, so c_v may be replaced by the
policy's advantage, a_v = c_v - Tγᵀ V. Then <μ, a_v> = 0 and

    <μ_E - μ, c_v> = <μ_E, a_v>,

the mean of the numbers x_k = <Z_k, a_v>. They vary less than <Z_k, c_v>: where a trajectory starts
and what chance does to it is no longer in them, only what the expert chose to do. They lie between
the least and the largest entry of a_v; let y_k be x_k on the scale on which these are 0 and 1.

Somebody who doubts that the mean of y is at most m starts with 1 and bets the share λ_k ≥ 0 of the
wealth on the k-th number, which multiplies the wealth by 1 + λ_k (y_k - m). The share may depend
on what came before, and λ_k m < 1, so that the wealth stays positive. If the mean is m, no bet
gains on average, and by Markov's inequality the wealth is 1/η or more with probability η at most.
So with probability 1 - η the mean is one of the m at which the wealth stays below 1/η. The wealth
falls as m grows, which leaves a lower bound (Waudby-Smith and Ramdas, 2024). With

    λ_k = √(2 ln(1/η) / N s²),       at most 0.9/m,

where s² estimates the variance of y from the first k-1 numbers, its margin is about
s √(2 ln(1/η) / N) for large N, however far apart the costs are. With K vertices, all statements at
η/K each hold together with probability 1 - η. The trajectories are put in random order first, in
case they were sorted by what they show.

**The bootstrap** resamples the trajectories and takes the η-quantile of g. Where there are many
vertices it is much tighter than the safe bound. It is approximate: its coverage is measured, not
proven.

**Truncated trajectories.** The mass γ^T after the end of a trajectory was not seen. McDiarmid's
bound and the bootstrap put it on the last state, divided as the demonstrator does there; where
some action leaves that state, McDiarmid's bound subtracts B times the mass. The bets put it on the
pair with the least advantage, of the last state if no action leaves it and of all otherwise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.experts.demonstrations import Demonstrations, absorbing_states, demonstrated_pairs
from rlfd_gym.mdp.occupancy import policy_of
from rlfd_gym.mdp.tables import TabularMDP

FIRST_VARIANCE = 0.02  # of numbers in [0, 1], before any is seen
MOST_LOSS = 0.9  # the largest share of the wealth that one bet can lose
HALVINGS = 50


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
        if shown.lengths is None or shown.next_states is None:
            raise ValueError(
                "expert has transitions without times, from which no guarantee can be computed; pass trajectories, or "
                "an occupancy and no confidence"
            )
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


def safe_bound(
    shown: Trajectories,
    policy: FloatArray,
    belief: Belief,
    estimate: float,
    eta: float,
    rng: np.random.Generator,
) -> float:
    """Return a lower bound on the least improvement, with probability 1 - η.

    `estimate` is the least improvement on the mean of the trajectories, and `rng` draws the order
    in which bets are made on them.
    """
    mdp, vertices, number = shown.mdp, belief.vertices(), len(shown.tails)
    if vertices is None:
        return estimate - belief.spread * (math.sqrt(math.log(1 / eta) / (2 * number)) + shown.unknown)
    order, bounds = rng.permutation(number), []
    for x in vertices:
        cost = belief.cost(x)
        advantage = cost - mdp.flow_transpose(mdp.value_of(policy, cost))
        ends = float(advantage.min()), float(advantage.max())
        bounds.append(betting_bound(shown.least(advantage)[order], *ends, eta / len(vertices)))
    return min(bounds)


def betting_bound(sample: FloatArray, low: float, high: float, eta: float) -> float:
    """Return a lower bound on the mean of independent numbers in [low, high].

    It holds with probability 1 - η.

    >>> round(betting_bound(np.array([0.1, 0.2] * 50), low=-1.0, high=1.0, eta=0.05), 3)
    0.111
    """
    if high <= low:
        return low
    y, goal = np.clip((sample - low) / (high - low), 0.0, 1.0), math.log(1 / eta)
    seen = np.arange(2, len(y) + 2)  # the first guess counts as one number
    means = (0.5 + np.cumsum(y)) / seen
    variances = (FIRST_VARIANCE + np.cumsum((y - means) ** 2)) / seen
    bets = np.sqrt(2 * goal / (len(y) * np.concatenate([[FIRST_VARIANCE], variances[:-1]])))
    least, most = 0.0, 1.0  # the wealth reaches its goal at the first, or it is the least possible mean
    for _ in range(HALVINGS):
        m = 0.5 * (least + most)
        reached = np.log1p(np.minimum(bets, MOST_LOSS / m) * (y - m)).sum() >= goal
        least, most = (m, most) if reached else (least, m)
    return low + (high - low) * least


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
