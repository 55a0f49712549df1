"""Rows of a log: which are bad and why, the numbers of the good ones' states and actions, and the order of episodes.

A row is bad for the first reason that applies, in the order of the columns. Labels that only bad rows have get no
number. Within an episode rows go by their time, or as they come; an episode counts up to its first gap: a bad row, or a
row that does not begin in the state in which the one before ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs import columns as _columns
from rlfd_gym.experts.logs.columns import Column, Label, Table

LISTED = 5  # how many of many things are listed
MOST_INDICES = 100_000_000  # an index above is no index but a label


@dataclass(frozen=True)
class BadRows:
    """Rows that were left out for one reason."""

    reason: str
    count: int
    first: tuple[int, ...]
    """The first few: lines of a text file counted from 1, rows elsewhere counted from 0."""
    unit: str
    """"line" or "row"."""

    @property
    def where(self) -> str:
        """The first few, named."""
        return f"{self.unit} {', '.join(map(str, self.first))}{', …' if self.count > len(self.first) else ''}"

    def __str__(self) -> str:
        """What, how many and where."""
        return f"{self.reason}, {self.count} ({self.where})"


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows as indices, which of them are good, and the order of episodes where there are any."""

    states: IntArray
    actions: IntArray
    next_states: IntArray
    good: NDArray[np.bool_]
    bad: tuple[BadRows, ...]
    state_labels: tuple[Label, ...]
    action_labels: tuple[Label, ...]
    episodes: IntArray | None
    order: IntArray | None
    """Rows, good or bad, by episode and time; without those of unknown place, and without repetitions."""
    feasible: IntArray | None
    """The pairs that exist, as state · n_actions + action, ascending; `None` where nobody said."""

    @property
    def left(self) -> NDArray[np.bool_]:
        """Which states were left in a good row."""
        return np.bincount(self.states[self.good], minlength=len(self.state_labels)) > 0


def clean(
    table: Table,
    indices: bool,
    known_states: tuple[Label, ...] | None,
    known_actions: tuple[Label, ...] | None,
    known_pairs: set[tuple[Label | None, Label | None]] | None,
) -> Rows:
    """Sort the good rows from the bad, and number their labels.

    `indices` says that numbers are indices: none is negative, and those that do not occur exist nevertheless.
    """
    columns = table.columns
    fault = np.zeros(len(table.rows), dtype=np.int64)  # which of `reasons`, from 1
    reasons: list[str] = []

    def blame(rows: NDArray[np.bool_], reason: str) -> None:
        reasons.append(reason)
        fault[rows & (fault == 0)] = len(reasons)

    malformed = np.zeros(len(fault), dtype=bool)
    malformed[list(table.malformed)] = True
    blame(malformed, "another number of fields than the header")
    state, action, following = columns["state"], columns["action"], columns["next_state"]
    both = _columns.labels_of([state, following], known_states)
    labels = {"state": both[0], "next_state": both[1], "action": _columns.labels_of([action], known_actions)[0]}
    for role in ("state", "action", "next_state"):
        _blame_values(columns[role], labels[role], indices, blame)
    if known_pairs is not None:
        pairs = state.codes * len(action.values) + action.codes
        seen = np.unique(pairs[fault == 0])
        found = [
            (labels["state"][i][0], labels["action"][j][0])
            for i, j in zip(*divmod(seen, len(action.values)), strict=True)
        ]
        strange = seen[[pair not in known_pairs for pair in found]]
        blame(np.isin(pairs, strange), f"{state.name} and {action.name} are not among the feasible pairs")
    episodes = order = None
    if "episode" in columns:
        episodes, order = _in_order(columns["episode"], columns.get("time"), fault, blame)

    good = fault == 0
    bad = tuple(
        BadRows(reason, len(rows), tuple(table.rows[rows[:LISTED]].tolist()), table.unit)
        for k, reason in enumerate(reasons, 1)
        if len(rows := np.flatnonzero(fault == k))
    )
    if not good.any():
        told = "; ".join(map(str, bad)) or "it is empty"
        raise ValueError(f"transitions: no good row is left of {len(good)}: {told}")
    state_labels, (states, next_states) = _numbered(
        [state, following], [labels["state"], labels["next_state"]], good, known_states, indices
    )
    action_labels, (actions,) = _numbered([action], [labels["action"]], good, known_actions, indices)
    feasible = None
    if known_pairs is not None:
        place = {label: k for k, label in enumerate(state_labels)}, {label: k for k, label in enumerate(action_labels)}
        inside = [(place[0][s], place[1][a]) for s, a in known_pairs if s in place[0] and a in place[1]]
        feasible = np.sort([s * len(action_labels) + a for s, a in inside])
    return Rows(states, actions, next_states, good, bad, state_labels, action_labels, episodes, order, feasible)


def episodes_of(rows: Rows) -> Demonstrations:
    """The episodes up to their first gaps."""
    assert rows.order is not None
    assert rows.episodes is not None
    order = rows.order
    episode, good, state = rows.episodes[order], rows.good[order], rows.states[order]
    first = np.append(True, episode[1:] != episode[:-1])
    arrives = np.append(-1, rows.next_states[order][:-1])
    gap = ~good | (~first & (state != arrives))
    gaps = np.cumsum(gap)
    whole = gaps - np.maximum.accumulate(np.where(first, gaps - gap, 0)) == 0
    kept = order[whole]
    if not len(kept):
        raise ValueError("transitions: every episode begins with a bad row, so none can be used; leave out episode")
    lengths = np.unique(rows.episodes[kept], return_counts=True)[1]
    unknown = np.zeros(len(lengths), dtype=bool)  # logs do not tell whether an end was final
    return Demonstrations(rows.states[kept], rows.actions[kept], rows.next_states[kept], lengths, unknown)


def listed(things: Iterable[Any]) -> str:
    """The first few things, and dots if there are more."""
    everything = list(things)
    return ", ".join(map(str, everything[:LISTED])) + (", …" if len(everything) > LISTED else "")


Blame = Callable[[NDArray[np.bool_], str], None]


def _blame_values(column: Column, labels: list[tuple[Label | None, str]], indices: bool, blame: Blame) -> None:
    """The rows of a column that hold no label."""
    for fault in dict.fromkeys(["is missing", *(fault for _, fault in labels if fault)]):
        blame(column.spread([found == fault for _, found in labels], fault == "is missing"), f"{column.name} {fault}")
    if indices:
        negative = [isinstance(label, int) and label < 0 for label, _ in labels]
        blame(column.spread(negative, False), f"{column.name} is negative")


def _in_order(episode: Column, time: Column | None, fault: IntArray, blame: Blame) -> tuple[IntArray, IntArray]:
    """Each row's episode, and the rows by episode and time; rows without them, and repetitions, are bad."""
    means = [_columns.meaning(value) for value in episode.values]
    known = episode.spread([what is not None for what in means], False)
    number = {what: k for k, what in enumerate(dict.fromkeys(means))}
    codes = episode.spread([number[what] for what in means], -1)
    blame(~known, f"{episode.name} is missing")
    moments = np.zeros(len(fault))
    if time is not None:
        moments = time.spread(_columns.moments_of(time), np.nan)
        blame(np.isnan(moments), f"{time.name} is missing or neither a number nor an ISO date")
        known &= ~np.isnan(moments)
    order = np.lexsort((moments, codes))
    if time is not None:  # lexsort is stable: of good rows with one time, the first one in the log comes first
        candidates = order[fault[order] == 0]
        same = (np.diff(codes[candidates]) == 0) & (np.diff(moments[candidates]) == 0)
        repeated = np.zeros(len(fault), dtype=bool)
        repeated[candidates[1:][same]] = True
        blame(repeated, f"same {episode.name} and {time.name} as an earlier row")
        known &= ~repeated
    return codes, order[known[order]]


def _numbered(
    columns: list[Column],
    judged: list[list[tuple[Label | None, str]]],
    good: NDArray[np.bool_],
    known: tuple[Label, ...] | None,
    indices: bool,
) -> tuple[tuple[Label, ...], list[IntArray]]:
    """The label table, and each row's number in it for each column; -1 in rows that are not good."""
    if known is None:
        used = {
            values[code][0]
            for column, values in zip(columns, judged, strict=True)
            for code in np.unique(column.codes[good])
        }
        whole = [label for label in used if isinstance(label, int)]
        if indices and whole:
            if max(whole) > MOST_INDICES:
                raise ValueError(f"{columns[0].name} holds {max(whole)}, which is no index; give the labels that exist")
            known = tuple(range(max(whole) + 1))
        else:
            known = tuple(sorted(whole) or sorted(label for label in used if isinstance(label, str)))
    number: dict[Label | None, int] = {label: k for k, label in enumerate(known)}
    return known, [
        np.where(good, column.spread([number.get(label, -1) for label, _ in values], -1), -1)
        for column, values in zip(columns, judged, strict=True)
    ]
