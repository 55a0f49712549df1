"""From records to good rows: which rows of a log are bad and why, and the order of the others.

A row is bad for the first reason that applies, in the order of the columns. The rows of an episode
are ordered by time, or, without times, as they come. A log without a column of next states tells
them by its order: see `rlfd_gym.experts.logs.ordering`.

Rows are cleaned a chunk at a time (`rlfd_gym.experts.logs.chunks`). Where an episode goes on in the
next chunk, its last row is put off: here it only follows the row before it, and it comes again at the
beginning of the next chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.logs import columns as held
from rlfd_gym.experts.logs.chunks import Chunks
from rlfd_gym.experts.logs.columns import TIME, Codes, Table, parts
from rlfd_gym.experts.logs.faults import FaultCounts, Faults, told
from rlfd_gym.experts.logs.labels import Label, Labelled, label_columns
from rlfd_gym.experts.logs.ordering import Episodes, Steps, following_rows, note_on_steps
from rlfd_gym.experts.logs.records import Rawlog
from rlfd_gym.experts.logs.rows import FIELDS, EpisodeCounts, LabelPairs, Rows, numbered, pair_keys
from rlfd_gym.experts.logs.spool import Records, Spool


def clean(
    log: Rawlog,
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
    columns = log.columns
    both = [columns[role] for role in ("state", "next_state") if role in columns]
    state, *following = label_columns(both, known_states, fold=fold)
    (action,) = label_columns([columns["action"]], known_actions, fold=fold)
    notes = [*log.notes, *state.notes, *action.notes]
    episodes = Episodes.of(columns["episode"]) if "episode" in columns else None
    labelled = {"state": state, "action": action} | ({"next_state": following[0]} if following else {})
    chunks = Chunks(log, episodes)

    def ordered() -> Iterator[_Chunk]:
        return _ordered(log, chunks, labelled, episodes, known_pairs, indices)

    # A log without next states has the state of the following row instead, if that is not behind a gap.
    usual = None
    if not following:
        steps = Steps()
        for chunk in ordered() if TIME in log.numbers else ():
            assert chunk.table.times is not None
            steps.add(chunk.order, chunk.episodes, chunk.table.times)
        usual = steps.usual()
        notes.append(note_on_steps(log.numbers.get(TIME), usual))
    good = _GoodRows(log, labelled, None if episodes is None else len(episodes.sizes(columns["episode"].counts)))
    for chunk in ordered():
        good.add(chunk if following else _with_following(chunk, usual, indices))
    bad, counts = good.faults.bad_rows(), good.faults
    if not counts.n_good:
        alone = "every episode has a single row, so nothing follows" if counts.n_set_aside else "it is empty"
        reasons = told(bad) or alone
        raise ValueError(f"transitions: no good row is left of {counts.n_rows}: {reasons}")

    # Only labels of good rows get numbers.
    state_labels = numbered(state.column.name, good.labels("state"), known_states, indices, sequence)
    action_labels = numbered(action.column.name, good.labels("action"), known_actions, indices, sequence)
    numbers = good.numbers("state", state_labels), good.numbers("action", action_labels)
    return Rows(
        n_rows=counts.n_rows,
        n_used=counts.n_good,
        bad=bad,
        state_labels=state_labels,
        action_labels=action_labels,
        left=_counted(good.left, numbers[0], len(state_labels)) > 0,
        episodes=None if episodes is None else good.episodes(numbers[0], len(state_labels)),
        feasible=None if known_pairs is None else pair_keys(known_pairs, state_labels, action_labels),
        n_last=counts.n_set_aside,
        notes=tuple(notes),
        amounts=tuple(name for field, name in log.numbers.items() if field != TIME),
        spool=good.spooled(),
        numbers=(*numbers, numbers[0]),
    )


@dataclass(frozen=True, eq=False)
class _Chunk:
    """A chunk of the log: its rows, what is wrong with them, and their order."""

    table: Table
    labelled: dict[str, Labelled]
    faults: Faults
    episodes: Codes
    order: Codes  # the last row is put off if the episode goes on
    goes_on: bool


def _ordered(
    log: Rawlog,
    chunks: Chunks,
    labelled: dict[str, Labelled],
    episodes: Episodes | None,
    known_pairs: LabelPairs | None,
    indices: bool,
) -> Iterator[_Chunk]:
    """Return each chunk of the log with its faults and its order."""
    put_off = np.zeros(0, log.dtype)
    for new, goes_on in chunks:
        records = np.concatenate([put_off, new]) if len(put_off) else new
        table = log.table(records)
        here = {role: replace(one, column=table.columns[role]) for role, one in labelled.items()}
        faults = Faults(table)
        # Rows without a state, an action or a next state are bad,
        for one in here.values():
            _blame_values(one, indices, faults)
        # and so are rows whose action does not exist in their state,
        if known_pairs is not None:
            _blame_pairs(here["state"], here["action"], known_pairs, faults)
        # and rows whose place in an episode is unknown.
        if episodes is None:
            numbers, order = np.zeros(len(records), np.int32), np.arange(len(records), dtype=np.int32)
        else:
            numbers, order = episodes.in_order(table.columns["episode"], table.times, faults)
        later = goes_on and len(order) > 0
        put_off = records[order[-1:]] if later else records[:0]
        if later:
            faults.put_off(int(order[-1]))
        yield _Chunk(table, here, faults, numbers, order, later)


def _with_following(chunk: _Chunk, usual: float | None, indices: bool) -> _Chunk:
    """Return a chunk with the states of the following rows as next states."""
    after = following_rows(chunk.order, chunk.episodes, chunk.table.times, usual, chunk.faults)
    state = chunk.labelled["state"]
    codes = np.where(after >= 0, state.column.codes[after], np.int32(-1))
    column = replace(state.column, name=f"{state.column.name} of the next row", codes=codes)
    following = Labelled(column, state.labels, state.faults)
    _blame_values(following, indices, chunk.faults)
    return replace(chunk, labelled=chunk.labelled | {"next_state": following})


class _GoodRows:
    """Collects the good rows of all chunks, and counts the others.

    Labels get numbers only when all rows are known. Until then, they have places among the labels
    that occur in any row; states and next states share them.
    """

    def __init__(self, log: Rawlog, labelled: dict[str, Labelled], n_episodes: int | None) -> None:
        """Start without rows."""
        states = [label for role in ("state", "next_state") if role in labelled for label in labelled[role].labels]
        self._places: dict[str, dict[Label | None, int]] = {"state": _places(states)}
        self._places |= {"action": _places(labelled["action"].labels), "next_state": self._places["state"]}
        self._used = {role: np.zeros(len(places), np.int64) for role, places in self._places.items()}
        self._fields = [field for field in log.numbers if field != TIME]
        types = [*((field, np.int32) for field in (*FIELDS, "episode")), ("kept", np.bool_)]
        dtype = np.dtype([*types, *((field, np.float64) for field in self._fields)])
        self._spool, self._waiting = Spool(dtype), np.zeros(0, dtype)
        self.faults = FaultCounts()
        self._with_episodes = n_episodes is not None
        self._lengths, self._seen = np.zeros(n_episodes or 0, np.int64), np.zeros(n_episodes or 0, bool)
        self._firsts, self._lasts = np.zeros((2, len(self._places["state"])), np.int64)
        self._open = -1, -1, True  # an episode that may go on, where its last row led, whether there was a gap
        self._last = -1, -1  # the episode of the last good row, and where it led

    def add(self, chunk: _Chunk) -> None:
        """Add the rows of a chunk."""
        self.faults.add(chunk.faults)
        order = chunk.order[:-1] if chunk.goes_on else chunk.order
        good = chunk.faults.good[order]
        s, a, following = (chunk.labelled[role].numbers(self._places[role])[order] for role in FIELDS)
        episode = chunk.episodes[order]
        kept = np.zeros(len(order), bool)
        if self._with_episodes:
            first, kept = self._kept(episode, s, following, good)
            self._firsts += np.bincount(s[first & kept], minlength=len(self._firsts))
            self._lengths += np.bincount(episode[kept], minlength=len(self._lengths))
        rows = np.zeros(int(good.sum()), self._spool.dtype)
        for field, column in zip((*FIELDS, "episode", "kept"), (s, a, following, episode, kept), strict=True):
            rows[field] = column[good]
        for field, amounts in zip(self._fields, chunk.table.amounts.values(), strict=True):
            rows[field] = amounts[order[good]]
        if len(rows):
            self._note(rows)
            self._keep(np.concatenate([self._waiting, rows]))

    def labels(self, role: str) -> set[Label]:
        """Return the labels in good rows, of states in the next ones as well."""
        used = self._used[role] + (self._used["next_state"] if role == "state" else 0)
        return {label for label, place in self._places[role].items() if label is not None and used[place]}

    def numbers(self, role: str, labels: tuple[Label, ...]) -> Codes:
        """Return the number of each label that has a place, -1 if it has none."""
        number = {label: k for k, label in enumerate(labels)}
        return np.array([number.get(label, -1) for label in self._places[role] if label is not None], np.int32)

    @property
    def left(self) -> IntArray:
        """For each place of a state, how often it was left."""
        return self._used["state"]

    def episodes(self, numbers: Codes, n_states: int) -> EpisodeCounts:
        """Return the episodes, counted, with the numbers of the states."""
        lasts = self._lasts.copy()
        lasts[self._last[1]] += 1
        return EpisodeCounts(
            self._seen, self._lengths, _counted(self._firsts, numbers, n_states), _counted(lasts, numbers, n_states)
        )

    def spooled(self) -> Spool:
        """Return the good rows."""
        self._spool.add(self._waiting)
        self._waiting = self._waiting[:0]
        return self._spool

    def _kept(
        self, episode: Codes, s: Codes, following: Codes, good: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which rows are the first of their episode, and which have no gap before them."""
        first = np.ones(len(episode), dtype=bool)
        first[1:] = np.diff(episode) != 0

        # A gap is a bad row, or a row that does not begin where the previous row ended.
        gap = ~good
        gap[1:] |= ~first[1:] & (s[1:] != following[:-1])
        if len(episode) and episode[0] == self._open[0]:
            first[0] = False
            gap[0] |= self._open[2] or s[0] != self._open[1]

        # A row is kept if its episode has had no gap so far: if there have been as many gaps as
        # before the episode's first row.
        gaps = np.cumsum(gap, dtype=np.int32)
        before = np.where(first, gaps - gap, np.int32(0))
        kept = gaps == np.maximum.accumulate(before, out=before)
        if len(episode):
            self._open = int(episode[-1]), int(following[-1]), not kept[-1]
        return first, kept

    def _note(self, rows: Records) -> None:
        """Note which labels and episodes good rows have, and where each episode led last."""
        for role in FIELDS:
            self._used[role] += np.bincount(rows[role], minlength=len(self._used[role]))
        if self._with_episodes:
            episode, following = rows["episode"], rows["next_state"]
            self._seen[episode] = True
            ends = np.flatnonzero(np.diff(episode))
            self._lasts += np.bincount(following[ends], minlength=len(self._lasts))
            if self._last[0] not in (-1, episode[0]):
                self._lasts[self._last[1]] += 1
            self._last = int(episode[-1]), int(following[-1])

    def _keep(self, rows: Records) -> None:
        """Put rows into the spool, in blocks whose size does not depend on the chunks."""
        size = 4 * held.PART
        for start in range(0, len(rows) - size + 1, size):
            self._spool.add(rows[start : start + size].copy())
        self._waiting = rows[len(rows) - len(rows) % size :].copy()


def _places(labels: list[Label | None]) -> dict[Label | None, int]:
    """Return a place for each label, in the order of first occurrence."""
    return {label: k for k, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}


def _counted(counts: IntArray, numbers: Codes, n_labels: int) -> IntArray:
    """Return counts by number from counts by place."""
    there = numbers >= 0
    return np.bincount(numbers[there], weights=counts[there], minlength=n_labels).astype(np.int64)


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
