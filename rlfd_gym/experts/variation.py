r"""Which kind of error demonstrations can show: does the expert act alike in the same state?

An expert who errs at random does different things in the same state, and its most frequent action
is right: the mode mends it (`rlfd_gym.mdp.reading`). One who is consistently wrong does the same
thing each time. Nothing in its demonstrations says that it is wrong, so only a prior mends it.

The *variation* is the probability that two visits of a state, by different trajectories, choose
different actions. With n(k, s, a) visits of trajectory k, N their sums over k and states weighted
by how often they are visited,

    v(s) = 1 - Σ_a [N(s, a)² - Σ_k n(k, s, a)²] / [N(s)² - Σ_k n(k, s)²],
    v = Σ_s N(s) v(s) / Σ_s N(s).

Visits of one trajectory are not compared with each other, because they are not independent. So
v(s) is an unbiased estimate of 1 - Σ_a π(a|s)². Only states count in which there is a choice that
matters: with two actions or more, not absorbing, and visited by two trajectories or more. Where
there is one trajectory only, or where transitions have no times, each visit counts as a trajectory
of its own.

The interval is the bootstrap's over trajectories. An expert who was never seen to vary may vary
nevertheless: with m visits that could have differed from an earlier one, a variation of more than
1 - η^{1/m} would have shown itself with probability 1 - η, so the interval goes up to that at
least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.demonstrations import Demonstrations, absorbing_states, check_known, read_demonstrations
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.mdp.tables import TabularMDP

LITTLE = 0.05  # an expert who varies less hardly varies
AT_A_TIME = 4_000_000  # numbers that the bootstrap holds at a time


@dataclass(frozen=True)
class ActionVariation:
    """How often an expert chooses another action on another visit of the same state.

    It prints as a sentence.

    Attributes:
        estimate: the probability that two visits of a state choose different actions; `nan` if no
            state with a choice was visited twice.
        low: the lower end of its interval; 0 if nothing is known.
        high: the upper end of its interval; 1 if nothing is known.
        confidence: the confidence of the interval.
        n_repeated: how many visits could have differed from one of an earlier trajectory.
        shared: the share of all visits, of states with a choice, that are of states which more
            than one trajectory has visited: only about these anything is known.

    Example:
        >>> print(ActionVariation(0.4, 0.34, 0.45, confidence=0.95, n_repeated=120, shared=0.9))
        The expert varies its action in 40% (34-45%) of repeated visits: if it errs, it errs at
        random, which the mode mends.
    """

    estimate: float
    low: float
    high: float
    confidence: float
    n_repeated: int
    shared: float

    def __str__(self) -> str:
        """Return which kind of error the demonstrations can show."""
        if np.isnan(self.estimate):
            return "No state with a choice was visited by two demonstrations: whether the expert varies is unknown."
        share = f"{_percent(self.estimate)}% ({_percent(self.low)}-{_percent(self.high)}%) of repeated visits"
        if self.low > LITTLE:
            return f"The expert varies its action in {share}: if it errs, it errs at random, which the mode mends."
        if self.high < LITTLE:
            return f"The expert hardly varies its action, in {share}: if it is wrong, only a prior mends it."
        return f"The expert varies its action in {share}: that may be few errors at random, or none."


def action_variation(
    demonstrations: Any, mdp: Pairs, *, confidence: float = 0.95, n_resamples: int = 200, seed: int = 0
) -> ActionVariation:
    """Estimate how much the expert's actions vary in the same state, with an interval.

    Args:
        demonstrations: trajectories or transitions, in any form that
            `occupancy_from_demonstrations` takes.
        mdp: the environment's tables, or its pairs; then absorbing states count as well.
        confidence: the confidence of the interval.
        n_resamples: how many resamples the bootstrap takes.
        seed: the seed of the bootstrap.

    Example:
        >>> from rlfd_gym import demonstrate, noisy_expert
        >>> from rlfd_gym.problem import examples
        >>> env = examples.gridworld_env()
        >>> policy = env.mdp.policy_of(noisy_expert(env.mdp, env.cost, 0.3))
        >>> variation = action_variation(demonstrate(env.mdp, policy, 50, 40, seed=0), env.mdp)
        >>> 0.3 < variation.low < variation.estimate < variation.high < 0.5
        True
    """
    _checks.instance("mdp", mdp, Pairs, "see TabularMDP.from_env")
    eta = 1.0 - _checks.number("confidence", confidence, 0.0, 1.0, open_ends=True)
    resamples = _checks.integer("n_resamples", n_resamples, 1, _checks.MOST_TIMES)
    rng = _checks.generator("seed", seed)
    if isinstance(demonstrations, np.ndarray):
        raise TypeError("demonstrations must be trajectories or transitions: an occupancy does not show visits")
    read = demonstrations if isinstance(demonstrations, Demonstrations) else read_demonstrations(demonstrations)
    visits = _visits(read, mdp)
    number, size = visits[0].shape
    estimate, repeated, shared = (values[0] for values in _variation(*visits, np.ones((1, number))))
    if np.isnan(estimate):
        return ActionVariation(np.nan, 0.0, 1.0, float(confidence), 0, 0.0)
    found: list[FloatArray] = []
    rows = max(1, AT_A_TIME // max(1, size, number))
    for start in range(0, resamples, rows):
        weights = rng.multinomial(number, np.full(number, 1 / number), size=min(rows, resamples - start))
        found.append(_variation(*visits, weights.astype(np.float64))[0])
    drawn = np.concatenate(found)
    drawn = drawn[~np.isnan(drawn)]  # resamples in which no state was visited twice
    ends = np.quantile(drawn, [eta / 2, 1 - eta / 2]) if len(drawn) else (0.0, 1.0)
    most = 1 - (eta / 2) ** (1 / max(1.0, repeated))
    low, high = min(float(ends[0]), estimate), max(float(ends[1]), estimate, most)
    return ActionVariation(float(estimate), low, min(1.0, high), float(confidence), int(repeated), float(shared))


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.01 else f"{100 * share:.1g}"


def _visits(read: Demonstrations, mdp: Pairs) -> tuple[sp.csr_array, sp.csr_array]:
    """Return n(k, i) over trajectories and visited pairs i that count, and which state i is of."""
    check_known(read, mdp.feasible)
    pairs = mdp.pair_index(read.states, read.actions)
    choice = np.diff(mdp.state_starts) > 1
    if isinstance(mdp, TabularMDP):
        choice &= ~absorbing_states(mdp)
    lengths = np.ones(len(pairs), dtype=np.int64) if read.lengths is None or len(read.lengths) == 1 else read.lengths
    owners = np.repeat(np.arange(len(lengths)), lengths)
    counts = choice[read.states]
    used, columns = np.unique(pairs[counts], return_inverse=True)
    states, rows = np.unique(mdp.pair_states[used], return_inverse=True)
    each = sp.csr_array((np.ones(len(columns)), (owners[counts], columns)), shape=(len(lengths), len(used)))
    of_state = sp.csr_array((np.ones(len(used)), (np.arange(len(used)), rows)), shape=(len(used), len(states)))
    return each, of_state


def _variation(
    each: sp.csr_array, of_state: sp.csr_array, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return v, the number of repeated visits and the share of shared ones.

    A row of `weights` says how often each trajectory was drawn; copies of one trajectory are not
    compared with each other.
    """
    total, by_state = weights @ each, each @ of_state
    all_visits = total @ of_state
    same = (total**2 - weights**2 @ each.power(2)) @ of_state
    compared = all_visits**2 - weights**2 @ by_state.power(2)
    seen = compared > 0
    mass = np.where(seen, all_visits, 0.0)
    varies = np.where(seen, 1 - same / np.where(seen, compared, 1.0), 0.0)
    known = mass.sum(axis=1)
    estimate = np.divide((mass * varies).sum(axis=1), known, out=np.full(len(known), np.nan), where=known > 0)
    # Of each state, the visits by all trajectories but the one that visited it most.
    largest = sp.csr_array(by_state).max(axis=0).toarray().ravel() if by_state.shape[1] else np.zeros(0)
    repeated = np.maximum(all_visits - largest, 0.0).sum(axis=1)
    everything = all_visits.sum(axis=1)
    return estimate, repeated, known / np.where(everything > 0, everything, 1.0)
