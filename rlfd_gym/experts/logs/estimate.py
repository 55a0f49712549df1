r"""The model and the expert, estimated from nothing but logged rows (state, action, next state).

Let N(s, a, s') be the number of rows and S(s) the set of states that were seen to follow s,
whatever the action. The model is

    P̂(s' | s, a) = (N(s, a, s') + κ) / (N(s, a) + κ |S(s)|)     for s' in S(s), 0 elsewhere,

the posterior mean under a symmetric Dirichlet prior with κ = `smoothing` pseudo-counts on each
state of S(s). The prior is local so that P̂ stays sparse and leads nowhere that the log has not
shown from s. κ = 0, the default, is the maximum likelihood estimate; κ > 0 pulls the actions of a
state towards each other, which steadies pairs that were seen a few times.

**What the log does not show** is decided by the caller, and reported. A pair that was never seen
is "infeasible" (the default: nothing is known about where it leads, so the action must not be
taken), or it is feasible and stays in its state ("self"), or it leads to every state of S(s) with
equal probability ("uniform": what the formula says for N = 0). The last two are guesses, and an
apprentice may come to rely on them.

A state that was never left (the end of an episode, or of the log) either stays where it is
("stay": it is final), or continues in a state drawn from those of all rows ("continue": only the
log ended there). A log in which most episodes end in such states means the former, other logs with
episodes the latter: a shop whose last week happens to be its only one with a full shelf does not
keep it full for ever. Where only pairs that were seen are feasible, the state's first action is
made feasible for this purpose.

**The expert** is the occupancy of the logged behaviour. With "policy", the default, μ_E is the
occupancy under P̂ of π̂(a|s) = N(s, a) / N(s): all rows count equally, and Tγ μ_E = ν₀ holds
exactly, but behaviour that depends on more than the state is averaged. With "episodes", each step
has the weight (1-γ)γᵗ, as in `rlfd_gym.experts.demonstrations`; only about the first 1/(1-γ) steps
of an episode count, up to its first gap, and `docs/logs_coverage.md` shows what that costs. An
episode is cut at a bad row, and at a row that does not begin in the state in which the previous row
ended; from there it is continued under P̂ and π̂, like a truncated episode. Rows after a cut still
count for P̂ and π̂.

**Bad rows** are left out, counted by reason and listed. A warning says how many there are, and
above `max_dropped` of all rows an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.columns import parts
from rlfd_gym.experts.logs.log import Logged
from rlfd_gym.experts.logs.rows import Rows
from rlfd_gym.mdp.tables import TabularMDP

UNVISITED = ("infeasible", "self", "uniform")
EXPERTS = ("policy", "episodes")
ENDS = ("stay", "continue")
MANY_EPISODES, MOST_GROUPS = 30, 1000  # from so many episodes on they are resampled; in at most so many groups
MOST_VALUES = 100_000  # of a logged column: beyond, only means are kept


def initial_distribution(
    rows: Rows, episodes: Demonstrations | None, given: ArrayLike | None
) -> tuple[FloatArray, str]:
    """Return ν₀ and where it comes from."""
    n_states = len(rows.state_labels)
    if given is not None:
        return _checks.distribution("initial", given, n_states, "state (the labels of the log)"), "given"
    if episodes is not None and episodes.lengths is not None:
        first = episodes.states[episodes.ends - episodes.lengths + 1]
        return np.bincount(first, minlength=n_states) / len(first), "first states of the episodes"
    return rows.left / rows.left.sum(), "uniform over the states that were left"


def which_ends(rows: Rows) -> str:
    """Return how states that were never left are to be treated, as the episodes tell."""
    if rows.order is None or rows.episodes is None:
        return "stay"
    order = rows.order[rows.good[rows.order]]
    last = np.flatnonzero(np.append(np.diff(rows.episodes[order]) != 0, True))
    ended = ~rows.left[rows.next_states[order[last]]]
    return "stay" if 2 * ended.sum() > len(last) else "continue"


def estimate(
    rows: Rows, discount: float, initial: FloatArray, smoothing: float, unvisited: str, ends: str
) -> tuple[TabularMDP, sp.csr_array]:
    """Return the P̂ of the module's docstring as an MDP, and N(s, a, s')."""
    # The pairs that were seen, or all that exist, by the key state · n_actions + action.
    n_states, n_actions = len(rows.state_labels), len(rows.action_labels)
    each = np.arange(n_states) * n_actions
    if unvisited == "infeasible":
        pairs = np.unique(np.concatenate([np.unique(keys) for keys, _ in _good_parts(rows)]))
        possible = each if rows.feasible is None else rows.feasible
    else:
        pairs = possible = np.arange(n_states * n_actions) if rows.feasible is None else rows.feasible
    for more in (possible, each):  # a state without any pair gets its first one
        lacking = np.setdiff1d(more // n_actions, pairs // n_actions)
        firsts = more[np.searchsorted(more // n_actions, lacking)]
        pairs = np.union1d(pairs, firsts)
    pair_states = pairs // n_actions

    # N(s, a, s') and N(s, a).
    counts = sp.csr_array((len(pairs), n_states))
    for keys, following in _good_parts(rows):
        places = np.searchsorted(pairs, keys), following
        counts = counts + sp.csr_array((np.ones(len(keys)), places), shape=counts.shape)
    visits = counts.sum(axis=1)

    # S(s), as a 0/1 row per pair; a state that was never left is followed by itself.
    triples = counts.tocoo()
    seen = sp.csr_array((triples.data, (pair_states[triples.row], triples.col)), shape=(n_states, n_states))
    stay = sp.eye_array(n_states, format="csr")
    successors = (seen + sp.diags_array(np.where(rows.left, 0.0, 1.0))).sign()[pair_states]
    guess = stay[pair_states] if unvisited == "self" else successors

    # N + κ on S(s) where the pair was seen, the guess elsewhere; each row then sums to one.
    known = (visits > 0).astype(np.float64)
    weights = counts + sp.diags_array(smoothing * known) @ successors + sp.diags_array(1 - known) @ guess
    if ends == "continue" and unvisited != "self":
        ended = (~rows.left).astype(np.float64)
        anywhere = sp.csr_array(np.bincount(pair_states, weights=visits, minlength=n_states)[None])
        weights = (
            sp.diags_array(1 - ended[pair_states]) @ weights + sp.csr_array(ended[pair_states][:, None]) @ anywhere
        )
    transitions = sp.diags_array(1 / weights.sum(axis=1)) @ weights
    counts.sort_indices()
    return TabularMDP(transitions, pair_states, pairs % n_actions, initial, discount, n_actions), counts


def episode_groups(rows: Rows, mdp: TabularMDP, counts: sp.csr_array) -> sp.csr_array | None:
    """Return how often each entry of `counts` was seen in each group of episodes.

    Return `None` where there are too few episodes to resample.
    """
    if rows.episodes is None:
        return None
    good = rows.good & (rows.episodes >= 0)
    numbers = np.unique(rows.episodes[good])
    if len(numbers) < MANY_EPISODES:
        return None
    group_of = np.zeros(int(numbers[-1]) + 1, dtype=np.int64)
    group_of[numbers] = np.arange(len(numbers)) % MOST_GROUPS
    keys = np.repeat(np.arange(mdp.n_pairs), np.diff(counts.indptr)) * mdp.n_states + counts.indices
    groups = sp.csr_array((min(len(numbers), MOST_GROUPS), counts.nnz))
    for part in parts(len(good)):
        some = good[part]
        episode, s, a, following = (
            column[part][some].astype(np.int64)
            for column in (rows.episodes, rows.states, rows.actions, rows.next_states)
        )
        places = np.searchsorted(keys, mdp.pair_index(s, a) * mdp.n_states + following)
        groups = groups + sp.csr_array((np.ones(len(s)), (group_of[episode], places)), shape=groups.shape)
    return groups


def logged_columns(
    rows: Rows, mdp: TabularMDP, counts: sp.csr_array, amounts: Mapping[str, FloatArray]
) -> dict[str, Logged]:
    """Return the columns of numbers by transition and value."""
    return {name: _logged(name, rows, mdp, counts, numbers) for name, numbers in amounts.items()}


def _logged(name: str, rows: Rows, mdp: TabularMDP, counts: sp.csr_array, numbers: FloatArray) -> Logged:
    good: NDArray[np.bool_] = rows.good & np.isfinite(numbers)
    values = np.unique(numbers[good])
    exact = len(values) <= MOST_VALUES
    keys = np.repeat(np.arange(mdp.n_pairs), np.diff(counts.indptr)) * mdp.n_states + counts.indices
    n = counts.nnz
    found, sums = sp.csr_array((n, len(values) if exact else n)), np.zeros((2, n))
    for part in parts(len(good)):
        some = good[part]
        if not some.any():
            continue
        s, a, following = (
            column[part][some].astype(np.int64) for column in (rows.states, rows.actions, rows.next_states)
        )
        entries = np.searchsorted(keys, mdp.pair_index(s, a) * mdp.n_states + following)
        amounts = numbers[part][some]
        for power in (0, 1):
            sums[power] += np.bincount(entries, weights=amounts ** (power + 1), minlength=n)
        places = np.searchsorted(values, amounts) if exact else entries
        found = found + sp.csr_array((np.ones(len(entries)), (entries, places)), shape=found.shape)
    if not exact:
        n_rows = np.asarray(found.sum(axis=1))
        means = sums[0] / np.maximum(n_rows, 1.0)
        spread = np.sqrt(np.maximum(sums[1] / np.maximum(n_rows, 1.0) - means**2, 0.0))
        values, found = (
            np.concatenate([means - spread, means + spread]),
            sp.hstack([found / 2, found / 2], format="csr"),
        )
    return Logged.of(name, values, sp.csr_array(found), counts, exact)


def _good_parts(rows: Rows) -> Iterator[tuple[IntArray, IntArray]]:
    """Return state · n_actions + action and the next state of the good rows, a part at a time."""
    columns = rows.states, rows.actions, rows.next_states
    for part in parts(len(rows.good)):
        s, a, following = (column[part][rows.good[part]].astype(np.int64) for column in columns)
        yield s * len(rows.action_labels) + a, following
