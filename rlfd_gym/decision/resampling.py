r"""How optimistic a promise on a log was, by models that could have made the log.

**Promises.** A policy that was chosen because it is good in the estimated model P̂ is better there
than in truth. Let S(π; P) be the saving of policy π in the model P, π_A what was learned from P̂, and
π_b what is learned from the b-th draw P_b (`rlfd_gym.experts.logs.drawing`). Then

    o = mean over b of  S(π_b; P_b) - S(π_b; P̂)

estimates by how much S(π_A; P̂) promises too much: P_b is to P̂ as P̂ is to the truth. The saving is
estimated by mean_b S(π_A; P_b) - o, and its interval by the quantiles of S(π_A; P_b) - o.

This works only where P̂ is worth something: the best of many pairs that were seen once or twice
looks good by luck, and no resampling of one row shows that. So only actions that were seen
`least_rows` times may be recommended, or the present one. `scripts/study_logs.py` measures bias and
coverage on a simulated shop, see `docs/logs_coverage.md`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.drawing import Draw as Draw  # found here as well
from rlfd_gym.experts.logs.drawing import draws as draws
from rlfd_gym.experts.logs.log import Logged
from rlfd_gym.mdp.tables import TabularMDP


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


def _action(log: Log) -> str:
    return log.names.get("action", "action")
