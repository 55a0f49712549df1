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
apprentice may come to rely on them. A state that was never left (the end of an episode, or of the
log) is absorbing; where only pairs that were seen are feasible, its first action is made feasible
for this purpose.

**The expert** is the occupancy of the logged behaviour. With "episodes", each step has the weight
(1-γ)γᵗ, as in `rlfd_gym.experts.demonstrations`; only about the first 1/(1-γ) steps of an episode
count. With "policy", μ_E is the occupancy under P̂ of π̂(a|s) = N(s, a) / N(s): all rows count
equally, and Tγ μ_E = ν₀ holds exactly, but behaviour that depends on more than the state is
averaged. An episode is cut at a bad row, and at a row that does not begin in the state in which
the previous row ended; from there it is continued under P̂ and π̂, like a truncated episode. Rows
after a cut still count for P̂ and π̂.

**Bad rows** are left out, counted by reason and listed. A warning says how many there are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.demonstrations import Demonstrations, estimate_occupancy, read_demonstrations
from rlfd_gym.experts.logs.columns import Table, parts, read_table
from rlfd_gym.experts.logs.labels import Label, given_labels, label_columns
from rlfd_gym.experts.logs.report import THIN, LogReport
from rlfd_gym.experts.logs.rows import Rows, clean, episodes_of, listed
from rlfd_gym.mdp.tables import TabularMDP

UNVISITED = ("infeasible", "self", "uniform")
EXPERTS = ("episodes", "policy")


@dataclass(frozen=True, eq=False, repr=False)
class Log(_checks.Locked):
    """What was read from a log: the model, the expert, and the user's words for both.

    Attributes:
        mdp: the model P̂.
        expert: μ_E, the occupancy of the logged behaviour.
        policy: π̂, how often each action was taken in its state.
        visits: N(s, a), over pairs; 0 where the transitions were not seen but assumed.
        state_labels: the log's word for each state.
        action_labels: the log's word for each action.
        report: what the log contained and how it was used.
        episodes: the episodes up to their cuts, as indices; `None` where the log has none.
    """

    mdp: TabularMDP
    expert: FloatArray
    policy: FloatArray
    visits: IntArray
    state_labels: tuple[Label, ...]
    action_labels: tuple[Label, ...]
    report: LogReport
    episodes: Demonstrations | None

    def __post_init__(self) -> None:
        """Lock the arrays."""
        self._fill(**vars(self))

    def __repr__(self) -> str:
        """Say in one line how large the log and its model are."""
        report, mdp = self.report, self.mdp
        episodes = "" if report.n_episodes is None else f", {report.n_episodes:,} episodes"
        return (
            f"Log({report.n_used:,} of {report.n_rows:,} rows used{episodes}, {mdp.n_states} states, "
            f"{mdp.n_actions} actions, {mdp.n_pairs} pairs, discount {mdp.discount:g})"
        )

    def pair_labels(self) -> list[tuple[Label, Label]]:
        """Return the (state, action) of each pair, in the log's words."""
        states, actions = self.mdp.pair_states.tolist(), self.mdp.pair_actions.tolist()
        return [(self.state_labels[s], self.action_labels[a]) for s, a in zip(states, actions, strict=True)]

    def pair_values(self, name: str, table: Mapping[tuple[Label, Label], float]) -> FloatArray:
        """Return a vector over pairs from a table by labels.

        A pair that the table lacks is an error.
        """
        _checks.instance(name, table, Mapping, "by (state label, action label)")  # type: ignore[type-abstract]
        pairs = self.pair_labels()
        lacking = [pair for pair in pairs if pair not in table]
        if lacking:
            raise ValueError(
                f"{name} lacks {len(lacking)} of the {len(pairs)} state-action pairs of the log: {listed(lacking)}"
            )
        return self.mdp.pairs([table[pair] for pair in pairs], name)


def read_log(
    transitions: Any,
    *,
    discount: float,
    state: str = "state",
    action: str = "action",
    next_state: str = "next_state",
    episode: str | None = None,
    time: str | None = None,
    state_labels: Iterable[Any] | None = None,
    action_labels: Iterable[Any] | None = None,
    feasible: Iterable[tuple[Label, Label]] | None = None,
    smoothing: float = 0.0,
    unvisited: str = "infeasible",
    initial: ArrayLike | None = None,
    expert: str | None = None,
) -> Log:
    """Estimate the model and the expert from a log; see the module's docstring.

    Args:
        transitions: a tuple of arrays (states, actions, next_states); imitation's trajectories or
            `Transitions`; or a pandas DataFrame, a mapping of arrays, or the path of a CSV or
            parquet file, with the named columns.
        discount: γ.
        state, action, next_state: the columns to read.
        episode: the column that tells episodes apart. Trajectories are always episodes.
        time: the column that orders the rows of an episode, numbers or ISO dates. Without it the
            rows are taken in the order in which they come.
        state_labels, action_labels: the labels that exist, in the desired order; rows with other
            labels are bad. By default, the labels in the good rows of a table, sorted. Arrays and
            trajectories hold indices instead: 0, 1, … up to the largest seen; rows with negative
            indices are bad. If more than 10,000 indices would exist and fewer than a tenth of them
            were seen, the log is refused: give the labels that exist. So is a log that spells a
            number with and without leading zeros, "01" and "1".
        feasible: the pairs (state label, action label) that exist; rows with other pairs are bad.
            By default, all pairs exist.
        smoothing: κ ≥ 0, pseudo-counts.
        unvisited: "infeasible", "self" or "uniform".
        initial: ν₀ over states. By default, the distribution of the first states of the episodes,
            or, without episodes, uniform over the states that were left.
        expert: "episodes" or "policy". By default, "episodes" if the log has any.

    Example:
        >>> orders = ["none", "some", "none", "none"]
        >>> rows = {"stock": [2, 0, 1, 2], "order": orders, "next": [1, 2, 0, 0]}
        >>> columns = {"state": "stock", "action": "order", "next_state": "next"}
        >>> log = read_log(rows, **columns, discount=0.9)
        >>> log.pair_labels()
        [(0, 'some'), (1, 'none'), (2, 'none')]
        >>> log.mdp.transitions.toarray()[2].tolist()
        [0.5, 0.5, 0.0]
    """
    weight = _checks.number("smoothing", smoothing, 0.0)
    _checks.discount_factor(discount)
    _checks.one_of("unvisited", unvisited, UNVISITED)
    _checks.one_of("expert", EXPERTS[0] if expert is None else expert, EXPERTS)
    if time is not None and episode is None:
        raise ValueError(f"time={time!r} orders the rows of episodes, but no episode column is named")

    # Read the good rows as indices, and warn about the others.
    roles = {"state": state, "action": action, "next_state": next_state, "episode": episode, "time": time}
    given = ((role, name) for role, name in roles.items() if name is not None or role not in ("episode", "time"))
    named = {role: _checks.instance(role, name, str, "the name of a column") for role, name in given}
    rows = clean(
        *_read(transitions, named),
        known_states=given_labels("state_labels", state_labels),
        known_actions=given_labels("action_labels", action_labels),
        known_pairs=None if feasible is None else set(feasible),
    )
    if rows.bad:
        left_out = f"{len(rows.good) - rows.good.sum()} of {len(rows.good)} logged rows are bad and left out"
        warn(f"{left_out}: {'; '.join(map(str, rows.bad))}", UserWarning, stacklevel=2)
    episodes = None if rows.order is None else episodes_of(rows)
    if episodes is None and expert == "episodes":
        raise ValueError('expert="episodes", but the log has no episodes; name their column, or use "policy"')
    rows = replace(rows, episodes=None, order=None)  # which are as long as the log

    # Estimate the model, then the expert in it.
    start, source = _initial(rows, episodes, initial)
    mdp, visits = _estimate(rows, discount, start, weight, unvisited)
    policy = mdp.policy_of(visits)
    if episodes is None or expert == "policy":
        occupancy, how = mdp.occupancy_of(policy), "the policy of all rows, under the estimated model"
    else:
        occupancy, how = estimate_occupancy(episodes, mdp, estimator="count", policy=policy), "discounted episodes"
    return Log(
        mdp=mdp,
        expert=occupancy,
        policy=policy,
        visits=visits,
        state_labels=rows.state_labels,
        action_labels=rows.action_labels,
        report=_report(rows, episodes, visits, unvisited=unvisited, initial=source, expert=how),
        episodes=episodes,
    )


def read_costs(
    source: Any, *, state: str = "state", action: str = "action", cost: str = "cost"
) -> dict[tuple[Label, Label], float]:
    """Read a prior: a table of costs by (state, action), in the user's words.

    The source is a path, a DataFrame or a mapping. Unlike a log it must be complete: a missing or
    repeated entry is an error.

    >>> read_costs({"state": [0, 0, 1], "action": ["few", "many", "few"], "cost": [5, 2.5, "1.0"]})
    {(0, 'few'): 5.0, (0, 'many'): 2.5, (1, 'few'): 1.0}
    """
    roles = {"state": state, "action": action, "cost": cost}
    for role, name in roles.items():
        _checks.instance(role, name, str, "the name of a column")
    if not isinstance(source, (str, os.PathLike, Mapping)) and (
        isinstance(source, type) or not hasattr(source, "columns")
    ):
        raise TypeError(f"source must be a path, a DataFrame or a mapping, got {type(source).__name__}")
    table = read_table(source, roles)
    states, actions = (label_columns([table.columns[role]])[0].labels for role in ("state", "action"))
    amounts = table.columns["cost"].meanings()
    costs: dict[tuple[Label, Label], float] = {}
    codes = np.stack([column.codes for column in table.columns.values()], axis=1)
    for number, (i, j, k) in zip(table.rows.tolist(), codes.tolist(), strict=True):
        s, a, amount = (None, None, None) if min(i, j, k) < 0 else (states[i], actions[j], amounts[k])
        if s is None or a is None or not isinstance(amount, (int, float)) or abs(amount) > sys.float_info.max:
            raise ValueError(f"costs: {table.unit} {number} must have a {state}, an {action} and a number as {cost}")
        if (s, a) in costs:
            raise ValueError(f"costs: {table.unit} {number} repeats {state} {s}, {action} {a}")
        costs[s, a] = float(amount)
    if not costs:
        raise ValueError("costs must have at least one row")
    return costs


def _read(transitions: Any, roles: Mapping[str, str]) -> tuple[Table, bool]:
    """Read any of the supported kinds of log.

    Also return whether its columns hold indices rather than labels.
    """
    if isinstance(transitions, (str, os.PathLike, Mapping)) or hasattr(transitions, "columns"):
        return read_table(transitions, roles), False
    if "episode" in roles:
        raise ValueError(f"episode={roles['episode']!r} names a column of a table, but transitions are none")
    items = transitions if isinstance(transitions, (tuple, list)) else ()
    if len(items) == 3 and not any(isinstance(item, Mapping) or hasattr(item, "obs") for item in items):
        arrays = dict(zip(("state", "action", "next_state"), transitions, strict=True))
    else:
        read = read_demonstrations(transitions)
        if read.next_states is None:
            raise ValueError("transitions must tell the next states (next_obs)")
        arrays = {"state": read.states, "action": read.actions, "next_state": read.next_states}
        if read.lengths is not None:
            arrays["episode"] = np.repeat(np.arange(len(read.lengths)), read.lengths)
    return read_table(arrays, {name: name for name in arrays}), True


def _initial(rows: Rows, episodes: Demonstrations | None, given: ArrayLike | None) -> tuple[FloatArray, str]:
    """Return ν₀ and where it comes from."""
    n_states = len(rows.state_labels)
    if given is not None:
        return _checks.distribution("initial", given, n_states, "state (the labels of the log)"), "given"
    if episodes is not None and episodes.lengths is not None:
        first = episodes.states[episodes.ends - episodes.lengths + 1]
        return np.bincount(first, minlength=n_states) / len(first), "first states of the episodes"
    return rows.left / rows.left.sum(), "uniform over the states that were left"


def _estimate(
    rows: Rows, discount: float, initial: FloatArray, smoothing: float, unvisited: str
) -> tuple[TabularMDP, IntArray]:
    """Return the P̂ of the module's docstring as an MDP, and N(s, a)."""
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
    visits = counts.sum(axis=1).astype(np.int64)

    # S(s), as a 0/1 row per pair; a state that was never left is followed by itself.
    triples = counts.tocoo()
    seen = sp.csr_array((triples.data, (pair_states[triples.row], triples.col)), shape=(n_states, n_states))
    stay = sp.eye_array(n_states, format="csr")
    successors = (seen + sp.diags_array(np.where(rows.left, 0.0, 1.0))).sign()[pair_states]
    guess = stay[pair_states] if unvisited == "self" else successors

    # N + κ on S(s) where the pair was seen, the guess elsewhere; each row then sums to one.
    known = (visits > 0).astype(np.float64)
    weights = counts + sp.diags_array(smoothing * known) @ successors + sp.diags_array(1 - known) @ guess
    transitions = sp.diags_array(1 / weights.sum(axis=1)) @ weights
    return TabularMDP(transitions, pair_states, pairs % n_actions, initial, discount, n_actions), visits


def _good_parts(rows: Rows) -> Iterator[tuple[IntArray, IntArray]]:
    """Return state · n_actions + action and the next state of the good rows, a part at a time."""
    columns = rows.states, rows.actions, rows.next_states
    for part in parts(len(rows.good)):
        s, a, following = (column[part][rows.good[part]].astype(np.int64) for column in columns)
        yield s * len(rows.action_labels) + a, following


def _report(
    rows: Rows, episodes: Demonstrations | None, visits: IntArray, *, unvisited: str, initial: str, expert: str
) -> LogReport:
    """Count what the log contained, and say how it was used."""
    n_states, n_actions = len(rows.state_labels), len(rows.action_labels)
    n_visited, n_used = int((visits > 0).sum()), int(rows.good.sum())
    n_possible = n_states * n_actions if rows.feasible is None else len(rows.feasible)
    return LogReport(
        n_rows=len(rows.good),
        n_used=n_used,
        bad=rows.bad,
        n_states=n_states,
        n_actions=n_actions,
        n_visited=n_visited,
        n_thin=int(((visits > 0) & (visits < THIN)).sum()),
        n_unvisited=n_possible - n_visited,
        unvisited=unvisited,
        ends=tuple(rows.state_labels[s] for s in np.flatnonzero(~rows.left)),
        initial=initial,
        expert=expert,
        n_episodes=None if episodes is None or episodes.lengths is None else len(episodes.lengths),
        n_behind_gaps=0 if episodes is None else n_used - len(episodes.states),
    )
