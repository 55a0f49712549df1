"""The rows of a log: which are bad and why, and the good ones as indices and episodes.

A row is bad for the first reason that applies, in the order of the columns. Labels that occur
only in bad rows get no number. The rows of an episode are ordered by time, or, without times, as
they come. An episode counts up to its first gap: a bad row, or a row that does not begin in the
state in which the previous row ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.columns import Codes, Column, Table, Times, parts
from rlfd_gym.experts.logs.labels import Label, Labelled, check_spelling, label_columns

LISTED = 5  # at most that many things are listed
FREE_INDICES = 10_000  # up to that many indices exist however few of them were seen
RAREST = (
    10  # beyond that, one in ten must have been seen: otherwise the numbers are labels, or one of them is a mistake
)

LabelPairs = set[tuple[Label | None, Label | None]]


@dataclass(frozen=True)
class BadRows:
    """Rows that were left out for one reason.

    Attributes:
        reason: what is wrong with them.
        count: how many there are.
        first: the first few: lines of a text file, counted from 1, or rows, counted from 0.
        unit: "line" or "row".
    """

    reason: str
    count: int
    first: tuple[int, ...]
    unit: str

    @property
    def where(self) -> str:
        """The first few of them, as text."""
        return f"{self.unit} {', '.join(map(str, self.first))}{', …' if self.count > len(self.first) else ''}"

    def __str__(self) -> str:
        """Say what is wrong, how often and where."""
        return f"{self.reason}, {self.count} ({self.where})"


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows as indices, which of them are good, and the order of the episodes, if any.

    Attributes:
        states: the number of each row's state, -1 in bad rows.
        actions: the number of each row's action, -1 in bad rows.
        next_states: the number of each row's next state, -1 in bad rows.
        good: which rows are good.
        bad: the bad rows, by reason.
        state_labels: the label of each state.
        action_labels: the label of each action.
        episodes: the episode of each row; `None` where the log has none.
        order: rows, good or bad, by episode and time, without repetitions and without rows whose
            episode or time is unknown; `None` where the log has no episodes.
        feasible: the pairs that exist, as state · n_actions + action, ascending; `None` if they
            were not given.
    """

    states: Codes
    actions: Codes
    next_states: Codes
    good: NDArray[np.bool_]
    bad: tuple[BadRows, ...]
    state_labels: tuple[Label, ...]
    action_labels: tuple[Label, ...]
    episodes: Codes | None
    order: Codes | None
    feasible: IntArray | None

    @property
    def left(self) -> NDArray[np.bool_]:
        """Which states were left in a good row."""
        return np.bincount(self.states[self.good], minlength=len(self.state_labels)) > 0


class Faults:
    """A record of which rows of a table are bad, and why.

    A row with several faults counts for the one blamed first.
    """

    def __init__(self, table: Table) -> None:
        """Start with the rows that are malformed in the file."""
        self.table = table
        self._reasons: list[str] = []
        self._fault = np.zeros(len(table.rows), dtype=np.uint8)  # the number of the reason, from 1; 0 for none
        malformed = np.zeros(len(table.rows), dtype=bool)
        malformed[list(table.malformed)] = True
        self.blame(malformed, "another number of fields than the header")

    @property
    def good(self) -> NDArray[np.bool_]:
        """The rows that have not been blamed so far."""
        return self._fault == 0

    def blame(self, rows: NDArray[np.bool_], reason: str) -> None:
        """Mark rows as bad for a reason, unless they are bad already."""
        self._reasons.append(reason)
        self._fault[rows & self.good] = len(self._reasons)

    def bad_rows(self) -> tuple[BadRows, ...]:
        """Return the bad rows by reason, in the order in which they were blamed."""
        found = [(reason, np.flatnonzero(self._fault == k)) for k, reason in enumerate(self._reasons, 1)]
        return tuple(
            BadRows(reason, len(rows), tuple(self.table.rows[rows[:LISTED]].tolist()), self.table.unit)
            for reason, rows in found
            if len(rows)
        )


def clean(
    table: Table,
    indices: bool,
    *,
    known_states: tuple[Label, ...] | None,
    known_actions: tuple[Label, ...] | None,
    known_pairs: LabelPairs | None,
) -> Rows:
    """Separate the good rows from the bad ones, and number their labels.

    With `indices`, numbers are indices: negative ones are bad, and all numbers up to the largest
    exist, whether they occur or not.
    """
    columns, faults = table.columns, Faults(table)
    state, following = label_columns([columns["state"], columns["next_state"]], known_states)
    (action,) = label_columns([columns["action"]], known_actions)

    # Rows without a state, an action or a next state are bad,
    for labelled in (state, action, following):
        _blame_values(labelled, indices, faults)
    # and so are rows whose action does not exist in their state,
    if known_pairs is not None:
        _blame_pairs(state, action, known_pairs, faults)
    # and rows whose place in an episode is unknown.
    episodes = order = None
    if "episode" in columns:
        episodes, order = _in_order(columns["episode"], table.times, faults)

    good, bad = faults.good, faults.bad_rows()
    if not good.any():
        reasons = "; ".join(map(str, bad)) or "it is empty"
        raise ValueError(f"transitions: no good row is left of {len(good)}: {reasons}")

    # Only labels of good rows get numbers.
    state_labels, (states, next_states) = _numbered([state, following], good, known_states, indices)
    action_labels, (actions,) = _numbered([action], good, known_actions, indices)
    return Rows(
        states=states,
        actions=actions,
        next_states=next_states,
        good=good,
        bad=bad,
        state_labels=state_labels,
        action_labels=action_labels,
        episodes=episodes,
        order=order,
        feasible=None if known_pairs is None else _pair_keys(known_pairs, state_labels, action_labels),
    )


def episodes_of(rows: Rows) -> Demonstrations:
    """Return the episodes up to their first gaps."""
    assert rows.order is not None
    assert rows.episodes is not None
    order = rows.order
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(rows.episodes[order]) != 0

    # A gap is a bad row, or a row that does not begin where the previous row ended.
    gap = ~rows.good[order]
    gap[1:] |= ~first[1:] & (rows.states[order[1:]] != rows.next_states[order[:-1]])

    # A row is kept if its episode has had no gap so far: if there have been as many gaps as
    # before the episode's first row.
    gaps = np.cumsum(gap, dtype=np.int32)
    before = np.where(first, gaps - gap, np.int32(0))
    kept = order[gaps == np.maximum.accumulate(before, out=before)]
    del gaps, before
    if not len(kept):
        raise ValueError("transitions: every episode begins with a bad row, so none can be used; leave out episode")
    lengths = np.bincount(rows.episodes[kept])
    lengths = lengths[lengths > 0]
    unknown = np.zeros(len(lengths), dtype=bool)  # logs do not say whether an end was final
    states, actions, following = (
        column[kept].astype(np.int64) for column in (rows.states, rows.actions, rows.next_states)
    )
    return Demonstrations(states, actions, following, lengths, unknown)


def listed(things: Iterable[Any]) -> str:
    """Return the first few things as text, with dots if there are more."""
    everything = list(things)
    return ", ".join(map(str, everything[:LISTED])) + (", …" if len(everything) > LISTED else "")


def _blame_values(labelled: Labelled, indices: bool, faults: Faults) -> None:
    """Blame the rows of a column that hold no label."""
    name = labelled.column.name
    for fault in labelled.kinds_of_fault():
        faults.blame(labelled.rows_with(fault), f"{name} {fault}")
    if indices:
        faults.blame(labelled.negative_rows(), f"{name} is negative")


def _blame_pairs(state: Labelled, action: Labelled, known: LabelPairs, faults: Faults) -> None:
    """Blame the rows whose state and action are not among the known pairs."""
    n_actions, good = len(action.labels), faults.good
    strange = np.zeros(len(good), dtype=bool)
    for part in parts(len(good)):
        pairs = state.column.codes[part].astype(np.int64) * n_actions + action.column.codes[part]
        seen = np.unique(pairs[good[part]])
        found = [(state.labels[i], action.labels[j]) for i, j in zip(*divmod(seen, n_actions), strict=True)]
        strange[part] = np.isin(pairs, seen[[pair not in known for pair in found]])
    faults.blame(strange, f"{state.column.name} and {action.column.name} are not among the feasible pairs")


def _in_order(episode: Column, time: Times | None, faults: Faults) -> tuple[Codes, Codes]:
    """Return each row's episode, and the rows by episode and time.

    Rows without an episode or a time are blamed, and so are repetitions.
    """
    # Episodes are told apart by what their values mean: 7 and "7.0" are the same.
    check_spelling([episode])
    means = episode.meanings()
    number = {what: k for k, what in enumerate(dict.fromkeys(means))}
    codes = episode.spread([number[what] for what in means], -1, np.int32)
    known = episode.spread([what is not None for what in means], False)
    faults.blame(~known, f"{episode.name} is missing")
    if time is None:
        order = np.argsort(codes, kind="stable").astype(np.int32)
        return codes, order[known[order]]

    moments = time.moments
    faults.blame(np.isnan(moments), f"{time.name} is missing or neither a number nor an ISO date")
    known &= ~np.isnan(moments)

    # The sort is stable: of good rows with the same time, the one that is first in the log
    # comes first, and the others repeat it.
    order = np.lexsort((moments, codes)).astype(np.int32)
    candidates = order[faults.good[order]]
    same = np.diff(codes[candidates]) == 0
    same &= np.diff(moments[candidates]) == 0
    repeated = np.zeros(len(codes), dtype=bool)
    repeated[candidates[1:][same]] = True
    faults.blame(repeated, f"same {episode.name} and {time.name} as an earlier row")
    known &= ~repeated
    return codes, order[known[order]]


def _numbered(
    columns: list[Labelled], good: NDArray[np.bool_], known: tuple[Label, ...] | None, indices: bool
) -> tuple[tuple[Label, ...], list[Codes]]:
    """Return all labels in order, and for each column the number of each row's label.

    The number is -1 in rows that are not good.
    """
    if known is None:
        used = set().union(*(labelled.labels_in(good) for labelled in columns))
        whole = [label for label in used if isinstance(label, int)]
        if indices and whole:
            known = _all_indices(columns[0].column.name, whole)
        else:
            known = tuple(sorted(whole) or sorted(label for label in used if isinstance(label, str)))
    places: dict[Label | None, int] = {label: k for k, label in enumerate(known)}
    return known, [np.where(good, labelled.numbers(places), np.int32(-1)) for labelled in columns]


def _all_indices(name: str, seen: list[int]) -> tuple[int, ...]:
    """Return all indices up to the largest one, unless too few of them were seen."""
    n_indices = max(seen) + 1
    if n_indices > max(FREE_INDICES, RAREST * len(seen)):
        raise ValueError(
            f"{name} holds {max(seen)}, which is no index: only {len(seen)} of the {n_indices} indices up to it were "
            f"seen. Correct or renumber it, pass the columns as a mapping if its numbers are labels, or, if all "
            f"{n_indices} exist, say so: {name}_labels=range({n_indices})"
        )
    return tuple(range(n_indices))


def _pair_keys(pairs: LabelPairs, states: tuple[Label, ...], actions: tuple[Label, ...]) -> IntArray:
    """Return the pairs whose labels have numbers, as state · n_actions + action, ascending."""
    state_places = {label: k for k, label in enumerate(states)}
    action_places = {label: k for k, label in enumerate(actions)}
    inside = [(s, a) for s, a in pairs if s in state_places and a in action_places]
    return np.sort([state_places[s] * len(actions) + action_places[a] for s, a in inside])
