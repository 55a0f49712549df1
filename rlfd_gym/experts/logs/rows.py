"""The rows of a log: which are bad and why, and the good ones as indices and episodes.

A row is bad for the first reason that applies, in the order of the columns. Labels that occur
only in bad rows get no number. The rows of an episode are ordered by time, or, without times, as
they come. An episode counts up to its first gap: a bad row, or a row that does not begin in the
state in which the previous row ended.

A log without a column of next states tells them by its order: see
`rlfd_gym.experts.logs.ordering`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.columns import Codes, Table, parts
from rlfd_gym.experts.logs.faults import BadRows, Faults, told
from rlfd_gym.experts.logs.labels import Label, Labelled, folded, label_columns
from rlfd_gym.experts.logs.ordering import following_rows, in_order

FREE_INDICES = 10_000  # up to that many indices exist however few of them were seen
RAREST = (
    10  # beyond that, one in ten must have been seen: otherwise the numbers are labels, or one of them is a mistake
)

LabelPairs = set[tuple[Label | None, Label | None]]


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
        n_last: rows that nothing follows, in a log without next states; they are not good.
        notes: what was decided on the way, for the report.
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
    n_last: int = 0
    notes: tuple[str, ...] = ()

    @property
    def left(self) -> NDArray[np.bool_]:
        """Which states were left in a good row."""
        return np.bincount(self.states[self.good], minlength=len(self.state_labels)) > 0


def clean(
    table: Table,
    indices: bool,
    *,
    known_states: tuple[Label, ...] | None,
    known_actions: tuple[Label, ...] | None,
    known_pairs: LabelPairs | None,
    sequence: tuple[Label, ...] = (),
    fold: bool = False,
) -> Rows:
    """Separate the good rows from the bad ones, and number their labels.

    With `indices`, numbers are indices: negative ones are bad, and all numbers up to the largest
    exist, whether they occur or not. Labels are numbered in the order of `sequence`, those that it
    lacks after them. With `fold`, texts that differ in case or blanks are one label.
    """
    columns, faults = table.columns, Faults(table)
    both = [columns[role] for role in ("state", "next_state") if role in columns]
    state, *following = label_columns(both, known_states, fold=fold)
    (action,) = label_columns([columns["action"]], known_actions, fold=fold)
    notes = [*table.notes, *state.notes, *action.notes]

    # Rows without a state, an action or a next state are bad,
    for labelled in (state, action, *following):
        _blame_values(labelled, indices, faults)
    # and so are rows whose action does not exist in their state,
    if known_pairs is not None:
        _blame_pairs(state, action, known_pairs, faults)
    # and rows whose place in an episode is unknown.
    episodes = order = None
    if "episode" in columns:
        episodes, order = in_order(columns["episode"], table.times, faults)
    # A log without next states has the state of the following row instead.
    if not following:
        assert episodes is not None
        assert order is not None
        after, note = following_rows(order, episodes, table.times, faults)
        codes = np.where(after >= 0, state.column.codes[after], np.int32(-1))
        column = replace(state.column, name=f"{state.column.name} of the next row", codes=codes)
        following = [Labelled(column, state.labels, state.faults)]
        _blame_values(following[0], indices, faults)
        notes.append(note)

    good, bad = faults.good, faults.bad_rows()
    if not good.any():
        alone = "every episode has a single row, so nothing follows" if faults.n_set_aside else "it is empty"
        reasons = told(bad) or alone
        raise ValueError(f"transitions: no good row is left of {len(good)}: {reasons}")

    # Only labels of good rows get numbers.
    state_labels, (states, next_states) = _numbered([state, *following], good, known_states, indices, sequence)
    action_labels, (actions,) = _numbered([action], good, known_actions, indices, sequence)
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
        n_last=faults.n_set_aside,
        notes=tuple(notes),
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


def _blame_values(labelled: Labelled, indices: bool, faults: Faults) -> None:
    """Blame the rows of a column that hold no label."""
    name = labelled.column.name
    for fault in labelled.kinds_of_fault():
        faults.blame(labelled.rows_with(fault), f"{name} {fault}", labelled.column)
    if indices:
        faults.blame(labelled.negative_rows(), f"{name} is negative", labelled.column)


def _blame_pairs(state: Labelled, action: Labelled, known: LabelPairs, faults: Faults) -> None:
    """Blame the rows whose state and action are not among the known pairs."""
    n_actions, good = len(action.labels), faults.good
    strange = np.zeros(len(good), dtype=bool)
    for part in parts(len(good)):
        pairs = state.column.codes[part].astype(np.int64) * n_actions + action.column.codes[part]
        seen = np.unique(pairs[good[part]])
        found = [(state.labels[i], action.labels[j]) for i, j in zip(*divmod(seen, n_actions), strict=True)]
        strange[part] = np.isin(pairs, seen[[pair not in known for pair in found]])
    reason = f"{state.column.name} and {action.column.name} are not among the feasible pairs"
    faults.blame(strange, reason, action.column)


def _numbered(
    columns: list[Labelled],
    good: NDArray[np.bool_],
    known: tuple[Label, ...] | None,
    indices: bool,
    sequence: tuple[Label, ...],
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
            known = in_sequence(whole or [label for label in used if isinstance(label, str)], sequence)
    places: dict[Label | None, int] = {label: k for k, label in enumerate(known)}
    return known, [np.where(good, labelled.numbers(places), np.int32(-1)) for labelled in columns]


def in_sequence(labels: Iterable[Label], sequence: tuple[Label, ...] = ()) -> tuple[Label, ...]:
    """Return labels in the order of a sequence, and those that it lacks after them.

    These are sorted: numbers by size, also inside texts.

    >>> in_sequence(["full", "shop 10", "shop 9", "empty"], ("empty", "full"))
    ('empty', 'full', 'shop 9', 'shop 10')
    """
    places = {folded(str(label)): place for place, label in reversed(list(enumerate(sequence)))}

    def key(label: Label) -> tuple[int, list[tuple[int, int, str]]]:
        place = places.get(folded(str(label)), len(places))
        if isinstance(label, int):
            return place, [(0, label, "")]
        pieces = [piece for piece in re.split(r"(\d+)", label) if piece]
        return place, [(0, int(piece), piece) if piece.isdecimal() else (1, 0, piece) for piece in pieces]

    return tuple(sorted(labels, key=key))


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
