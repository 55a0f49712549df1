r"""Models and behaviours that could have made a log: what resampling a log draws.

A draw is a model P and a behaviour π that are as uncertain as the log leaves them. With many
episodes, whole episodes are resampled: each has a random weight (the Bayesian bootstrap), so that
nothing is assumed about the rows of an episode. More than a thousand episodes are resampled in a
thousand groups of whole episodes, which bounds the memory that they take. With few, rows are
resampled within their pair: given the pair, next states are independent in a Markov log, and the
weights N(s, a, s') of the posterior are drawn as gammas. Either way half a row is added to each pair,
spread as the next states of all rows of its state (κ = `POOLED`): a pair that was seen once is not
certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.logs.log import Log
from rlfd_gym.mdp.tables import TabularMDP

POOLED = 0.5
PATIENCE = 2.0  # seconds before a bar is shown


@dataclass(frozen=True, eq=False)
class Draw:
    """A model and a behaviour that could have made the log.

    Attributes:
        mdp: the model.
        policy: the behaviour, over pairs.
        visits: the weight of each pair.
        weights: the weight of each transition, in the order of `Log.counts`.
    """

    mdp: TabularMDP
    policy: FloatArray
    visits: FloatArray
    weights: FloatArray


def draws(log: Log, number: int, rng: np.random.Generator, progress_bar: bool = False) -> Iterator[Draw]:
    """Return models and behaviours that could have made the log, with a bar if that takes long."""
    counts, mdp = log.counts, log.mdp
    around = _around(log)
    assumed = log.visits == 0
    fixed = sp.diags_array(assumed.astype(np.float64)) @ mdp.transitions
    seen = sp.diags_array((~assumed).astype(np.float64))
    for _ in _counted(number, progress_bar):
        if log.groups is None:
            data = rng.standard_gamma(counts.data)
        else:
            data = rng.standard_exponential(log.groups.shape[0]) @ log.groups
        weights = sp.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
        visits = np.asarray(weights.sum(axis=1), dtype=np.float64)
        extra = sp.csr_array(
            (rng.standard_gamma(POOLED * around.data), around.indices, around.indptr), shape=around.shape
        )
        total = weights + seen @ extra + fixed
        sums = np.asarray(total.sum(axis=1))
        model = sp.csr_array(sp.diags_array(1 / sums) @ total)
        drawn = TabularMDP(model, mdp.pair_states, mdp.pair_actions, mdp.initial, mdp.discount, mdp.n_actions)
        yield Draw(drawn, drawn.policy_of(np.where(assumed, 0.0, visits)), visits, data)


def _counted(number: int, progress_bar: bool) -> Iterable[int]:
    """Return the numbers of the resamples, with a bar on stderr where that is a terminal."""
    if not progress_bar:
        return range(number)
    from tqdm.auto import tqdm

    return tqdm(range(number), desc="resamples", delay=PATIENCE, disable=None)


def _around(log: Log) -> sp.csr_array:
    """Return for each pair how the next states of all rows of its state are distributed."""
    mdp = log.mdp
    sums = sp.csr_array(
        (np.ones(mdp.n_pairs), (mdp.pair_states, np.arange(mdp.n_pairs))), shape=(mdp.n_states, mdp.n_pairs)
    )
    by_state = sp.csr_array(sums @ log.counts)
    totals = np.asarray(by_state.sum(axis=1))
    return sp.csr_array((sp.diags_array(1 / np.maximum(totals, 1.0)) @ by_state)[mdp.pair_states])
