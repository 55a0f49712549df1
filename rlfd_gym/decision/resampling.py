r"""Models and behaviours that could have made a log, and how optimistic a promise was.

**Draws.** A draw is a model P and a behaviour π that are as uncertain as the log leaves them. With
many episodes, whole episodes are resampled: each has a random weight (the Bayesian bootstrap), so
that nothing is assumed about the rows of an episode. More than a thousand episodes are resampled in a
thousand groups of whole episodes, which bounds the memory that they take. With few, rows are resampled within their
pair: given the pair, next states are independent in a Markov log, and the weights N(s, a, s') of the
posterior are drawn as gammas. Either way half a row is added to each pair, spread as the next states
of all rows of its state (κ = `POOLED`): a pair that was seen once is not certain.

**Promises.** A policy that was chosen because it is good in the estimated model P̂ is better there
than in truth. Let S(π; P) be the saving of policy π in the model P, π_A what was learned from P̂, and
π_b what is learned from the b-th draw P_b. Then

    o = mean over b of  S(π_b; P_b) - S(π_b; P̂)

estimates by how much S(π_A; P̂) promises too much: P_b is to P̂ as P̂ is to the truth. The saving is
estimated by mean_b S(π_A; P_b) - o, and its interval by the quantiles of S(π_A; P_b) - o.

This works only where P̂ is worth something: the best of many pairs that were seen once or twice
looks good by luck, and no resampling of one row shows that. So only actions that were seen
`least_rows` times may be recommended, or the present one. `scripts/study_logs.py` measures bias and
coverage on a simulated shop, see `docs/logs_coverage.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.log import Logged
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


def with_columns_redrawn(log: Log, draw: Draw, rng: np.random.Generator) -> Log:
    """Return the log with the weights of a draw on the rows behind its columns of numbers.

    The weight of a transition is split at random among its rows. So what is sold and what is left
    are as dependent as in the log: who sells more by chance has less next week.
    """
    columns = {}
    for name, column in log.columns.items():
        rows = column.by_transition
        split = sp.csr_array((rng.standard_gamma(rows.data), rows.indices, rows.indptr), shape=rows.shape)
        with np.errstate(invalid="ignore"):
            share = np.asarray(rows.sum(axis=1)) / log.counts.data / np.asarray(split.sum(axis=1))
        weights = sp.diags_array(np.where(np.isfinite(share), share, 0.0) * draw.weights) @ split
        columns[name] = Logged.of(name, column.values, sp.csr_array(weights), log.counts, column.exact)
    return replace(log, columns=columns)


def how_resampled(log: Log) -> str:
    """Return in words what was resampled."""
    unit = log.names.get("episode", "episode")
    if log.groups is None:
        few = (
            ""
            if log.report.n_episodes is None
            else ", because there is only one episode"
            if log.report.n_episodes == 1
            else f", because there are only {log.report.n_episodes} episodes ({unit})"
        )
        return f"by resampling the rows of each {log.names.get('state', 'state')} and {_action(log)}{few}"
    return f"by resampling whole episodes ({unit})"


def supported(log: Log, least_rows: int) -> IntArray:
    """Return the pairs that may be recommended: those with enough rows, and the present ones."""
    enough = log.visits >= least_rows
    starts = log.mdp.state_starts[:-1]
    most = np.maximum.reduceat(log.visits, starts)[log.mdp.pair_states]
    first: NDArray[np.int64] = np.full(log.mdp.n_states, log.mdp.n_pairs)
    present = np.flatnonzero(log.visits == most)
    np.minimum.at(first, log.mdp.pair_states[present], present)
    enough[first] = True
    return np.flatnonzero(enough)


def only(mdp: TabularMDP, pairs: IntArray) -> TabularMDP:
    """Return the MDP with some of its pairs; each state must keep one."""
    rows = mdp.transitions[pairs]
    return TabularMDP(rows, mdp.pair_states[pairs], mdp.pair_actions[pairs], mdp.initial, mdp.discount, mdp.n_actions)


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


def _action(log: Log) -> str:
    return log.names.get("action", "action")
