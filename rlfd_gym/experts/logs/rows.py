"""The good rows of a log as indices and episodes, and the numbers of their labels.

Only labels of good rows get numbers. An episode counts up to its first gap: a bad row, or a row that
does not begin in the state in which the previous row ended.

There may be more rows than memory: they are kept in a `Spool`, and read a part at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.columns import Codes
from rlfd_gym.experts.logs.faults import BadRows
from rlfd_gym.experts.logs.labels import Label, folded
from rlfd_gym.experts.logs.spool import Spool, in_file

FREE_INDICES = 10_000  # up to that many indices exist however few of them were seen
RAREST = (
    10  # beyond that, one in ten must have been seen: otherwise the numbers are labels, or one of them is a mistake
)
FIELDS = ("state", "action", "next_state")

LabelPairs = set[tuple[Label | None, Label | None]]


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the good rows.

    Attributes:
        states: the number of each row's state.
        actions: the number of each row's action.
        next_states: the number of each row's next state.
        episodes: the number of each row's episode; 0 where the log has none.
        kept: which rows are before the first gap of their episode.
        amounts: the columns of numbers, by name.
    """

    states: IntArray
    actions: IntArray
    next_states: IntArray
    episodes: IntArray
    kept: NDArray[np.bool_]
    amounts: dict[str, FloatArray]


@dataclass(frozen=True, eq=False)
class EpisodeCounts:
    """The episodes of a log, counted.

    Attributes:
        used: which of them have good rows.
        lengths: the number of rows of each before its first gap; 0 where it begins with one.
        firsts: for each state, the number of episodes that begin there, but for those of length 0.
        lasts: for each state, the number of episodes whose last good row led there.
    """

    used: NDArray[np.bool_]
    lengths: IntArray
    firsts: IntArray
    lasts: IntArray


@dataclass(frozen=True, eq=False)
class Rows:
    """The good rows of a log, and what there is to say of the others.

    Attributes:
        n_rows: the number of rows of the log.
        n_used: the number of good rows.
        bad: the bad rows, by reason.
        state_labels: the label of each state.
        action_labels: the label of each action.
        left: which states were left in a good row.
        episodes: the episodes, counted; `None` where the log has none.
        feasible: the pairs that exist, as state · n_actions + action, ascending; `None` if they
            were not given.
        n_last: rows that nothing follows, in a log without next states; they are not good.
        notes: what was decided on the way, for the report.
        amounts: the names of the columns of numbers.
        spool: the good rows, by episode and time if there are any, otherwise as they came. Instead
            of numbers they have the places of their labels among all labels of the log.
        numbers: the number of each of these labels, for each of `FIELDS`; -1 for those in bad rows.
    """

    n_rows: int
    n_used: int
    bad: tuple[BadRows, ...]
    state_labels: tuple[Label, ...]
    action_labels: tuple[Label, ...]
    left: NDArray[np.bool_]
    episodes: EpisodeCounts | None
    feasible: IntArray | None
    n_last: int
    notes: tuple[str, ...]
    amounts: tuple[str, ...]
    spool: Spool
    numbers: tuple[Codes, Codes, Codes]

    def parts(self) -> Iterator[Part]:
        """Return the good rows, a part at a time."""
        for records in self.spool:
            s, a, following = (
                one[records[field]].astype(np.int64) for field, one in zip(FIELDS, self.numbers, strict=True)
            )
            yield Part(
                s,
                a,
                following,
                records["episode"].astype(np.int64),
                np.ascontiguousarray(records["kept"]),
                {name: np.ascontiguousarray(records[f"amount {k}"]) for k, name in enumerate(self.amounts)},
            )


def episodes_of(rows: Rows) -> Demonstrations:
    """Return the episodes up to their first gaps."""
    assert rows.episodes is not None
    lengths = rows.episodes.lengths[rows.episodes.lengths > 0]
    if not len(lengths):
        raise ValueError("transitions: every episode begins with a bad row, so none can be used; leave out episode")
    unknown = np.zeros(len(lengths), dtype=bool)  # logs do not say whether an end was final
    kept = ([part.states[part.kept], part.actions[part.kept], part.next_states[part.kept]] for part in rows.parts())
    states, actions, following = in_file(kept, len(FIELDS), int(lengths.sum()))
    return Demonstrations(states, actions, following, lengths, unknown)


def numbered(
    name: str, used: set[Label], known: tuple[Label, ...] | None, indices: bool, sequence: tuple[Label, ...]
) -> tuple[Label, ...]:
    """Return the labels in the order of their numbers: the known ones, or those that good rows use.

    Args:
        name: the name of the column.
        used: the labels in good rows.
        known: the labels that were given.
        indices: whether numbers are indices, so that all of them exist up to the largest.
        sequence: the order of the labels; others come after them.
    """
    if known is not None:
        return known
    whole = [label for label in used if isinstance(label, int)]
    if indices and whole:
        return _all_indices(name, whole)
    return in_sequence(whole or [label for label in used if isinstance(label, str)], sequence)


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


def pair_keys(pairs: LabelPairs, states: tuple[Label, ...], actions: tuple[Label, ...]) -> IntArray:
    """Return the pairs whose labels have numbers, as state · n_actions + action, ascending."""
    state_places = {label: k for k, label in enumerate(states)}
    action_places = {label: k for k, label in enumerate(actions)}
    inside = [(s, a) for s, a in pairs if s in state_places and a in action_places]
    return np.sort([state_places[s] * len(actions) + action_places[a] for s, a in inside])
