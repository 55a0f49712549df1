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
count for P̂ and π̂. This is the one estimate that takes memory for each row.

**Bad rows** are left out, counted by reason and listed. A warning says how many there are, and
above `max_dropped` of all rows an error.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs.log import Logged
from rlfd_gym.experts.logs.rows import Part, Rows
from rlfd_gym.mdp.tables import TabularMDP

UNVISITED = ("infeasible", "self", "uniform")
EXPERTS = ("policy", "episodes")
ENDS = ("stay", "continue")
MANY_EPISODES, MOST_GROUPS = 30, 1000  # from so many episodes on they are resampled; in at most so many groups
MOST_VALUES = 100_000  # of a logged column: beyond, only mean and variance of each transition are kept
MOST_ENTRIES = 4_000_000  # transitions with a value; beyond, likewise


def initial_distribution(rows: Rows, given: ArrayLike | None) -> tuple[FloatArray, str]:
    """Return ν₀ and where it comes from."""
    n_states = len(rows.state_labels)
    if given is not None:
        return _checks.distribution("initial", given, n_states, "state (the labels of the log)"), "given"
    if rows.episodes is not None:
        return rows.episodes.firsts / rows.episodes.firsts.sum(), "first states of the episodes"
    return rows.left / rows.left.sum(), "uniform over the states that were left"


def which_ends(rows: Rows) -> str:
    """Return how states that were never left are to be treated, as the episodes tell."""
    if rows.episodes is None:
        return "stay"
    lasts = rows.episodes.lasts
    return "stay" if 2 * lasts[~rows.left].sum() > lasts.sum() else "continue"


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
    used = np.flatnonzero(rows.episodes.used)
    if len(used) < MANY_EPISODES:
        return None
    group_of = np.zeros(len(rows.episodes.used), dtype=np.int64)
    group_of[used] = np.arange(len(used)) % MOST_GROUPS
    groups = sp.csr_array((min(len(used), MOST_GROUPS), counts.nnz))
    for part, entries in _entries(rows, mdp, counts):
        places = group_of[part.episodes], entries
        groups = groups + sp.csr_array((np.ones(len(entries)), places), shape=groups.shape)
    return groups


def logged_columns(rows: Rows, mdp: TabularMDP, counts: sp.csr_array) -> dict[str, Logged]:
    """Return the columns of numbers by transition and value."""
    return {name: _logged(name, rows, mdp, counts) for name in rows.amounts}


def _logged(name: str, rows: Rows, mdp: TabularMDP, counts: sp.csr_array) -> Logged:
    values = _values(name, rows)
    if values is not None:
        found = sp.csr_array((counts.nnz, len(values)))
        for part, entries in _entries(rows, mdp, counts):
            there = np.isfinite(part.amounts[name])
            places = entries[there], np.searchsorted(values, part.amounts[name][there])
            found = found + sp.csr_array((np.ones(len(places[0])), places), shape=found.shape)
            if found.nnz > MOST_ENTRIES:
                break
        else:
            return Logged.of(name, values, sp.csr_array(found), counts, exact=True)
    n_rows, total, squares = np.zeros((3, counts.nnz))
    for part, entries in _entries(rows, mdp, counts):
        there = np.isfinite(part.amounts[name])
        amounts = part.amounts[name][there]
        for sums, weights in ((n_rows, None), (total, amounts), (squares, amounts**2)):
            sums += np.bincount(entries[there], weights=weights, minlength=counts.nnz)
    means = total / np.maximum(n_rows, 1.0)
    spread = np.sqrt(np.maximum(squares / np.maximum(n_rows, 1.0) - means**2, 0.0))
    some = np.flatnonzero(n_rows)
    half = sp.csr_array((n_rows[some] / 2, (some, some)), shape=(counts.nnz, counts.nnz))
    both = sp.hstack([half, half], format="csr")
    return Logged.of(name, np.concatenate([means - spread, means + spread]), sp.csr_array(both), counts, exact=False)


def _values(name: str, rows: Rows) -> FloatArray | None:
    """Return the distinct values of a column of numbers, sorted; `None` if they are too many."""
    values = np.zeros(0)
    for part in rows.parts():
        amounts = part.amounts[name]
        values = np.union1d(values, amounts[np.isfinite(amounts)])
        if len(values) > MOST_VALUES:
            return None
    return values


def _entries(rows: Rows, mdp: TabularMDP, counts: sp.csr_array) -> Iterator[tuple[Part, IntArray]]:
    """Return the good rows, a part at a time, with the place of each row's transition in `counts`."""
    keys = np.repeat(np.arange(mdp.n_pairs), np.diff(counts.indptr)) * mdp.n_states + counts.indices
    for part in rows.parts():
        yield part, np.searchsorted(keys, mdp.pair_index(part.states, part.actions) * mdp.n_states + part.next_states)


def _good_parts(rows: Rows) -> Iterator[tuple[IntArray, IntArray]]:
    """Return state · n_actions + action and the next state of the good rows, a part at a time."""
    for part in rows.parts():
        yield part.states * len(rows.action_labels) + part.actions, part.next_states
