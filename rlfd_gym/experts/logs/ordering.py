"""The order of a log's rows: by episode and time, and which row follows which.

A log of states and actions, without next states, tells them by its order: what follows a row is the
state of the next row of its episode. The last row of an episode has none; it is set aside. With
times, a gap is where the step is more than half again as long as is usual, provided that most steps
are alike (within a fifth of their median: months are); the row before a gap is bad.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs.columns import Codes, Column, Times
from rlfd_gym.experts.logs.faults import Faults
from rlfd_gym.experts.logs.labels import check_spelling

ALIKE, MOST = 0.2, 0.8  # steps are alike within this share of their median; that many of them must be
GAP = 1.5  # a step that is so much longer than the median is a gap
MOST_STEPS, DIGITS = 2**20, 16  # beyond so many different steps, they are rounded to so many binary digits


@dataclass(frozen=True, eq=False)
class Episodes:
    """The episodes that the values of a column mean: 7 and "7.0" are the same.

    Attributes:
        name: the name of the column.
        numbers: the number of the episode of each value, in the order of first occurrence.
        known: which values mean an episode.
    """

    name: str
    numbers: Codes
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, column: Column) -> Episodes:
        """Return the episodes of a column."""
        check_spelling([column])
        means = column.meanings()
        number = {what: k for k, what in enumerate(dict.fromkeys(means))}
        numbers = np.fromiter((number[what] for what in means), np.int32, len(means))
        return cls(column.name, numbers, np.fromiter((what is not None for what in means), bool, len(means)))

    def sizes(self, tally: IntArray) -> IntArray:
        """Return the number of rows of each episode, from those of each value."""
        return np.bincount(self.numbers, weights=tally).astype(np.int64)

    def in_order(self, column: Column, time: Times | None, faults: Faults) -> tuple[Codes, Codes]:
        """Return each row's episode, and the rows by episode and time.

        Rows without an episode or a time are blamed, and so are repetitions.
        """
        codes, known = self.numbers[column.codes], self.known[column.codes]
        faults.blame(~known, f"{self.name} is missing")
        if time is None:
            order = np.argsort(codes, kind="stable").astype(np.int32)
            return codes, order[known[order]]

        moments = time.moments
        faults.blame(np.isnan(moments), f"{time.name} is missing or neither a number nor a date")
        known &= ~np.isnan(moments)

        # The sort is stable: of good rows with the same time, the one that is first in the log
        # comes first, and the others repeat it.
        order = np.lexsort((moments, codes)).astype(np.int32)
        candidates = order[faults.good[order]]
        same = np.diff(codes[candidates]) == 0
        same &= np.diff(moments[candidates]) == 0
        repeated = np.zeros(len(codes), dtype=bool)
        repeated[candidates[1:][same]] = True
        faults.blame(repeated, f"same {self.name} and {time.name} as an earlier row")
        known &= ~repeated
        return codes, order[known[order]]


@dataclass
class Steps:
    """The steps between the times of rows that follow each other, and how often each occurs."""

    lengths: FloatArray = field(default_factory=lambda: np.zeros(0))
    counts: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    rounded: bool = False

    def add(self, order: Codes, episodes: Codes, time: Times) -> None:
        """Add the steps of rows in their order."""
        inside = episodes[order[:-1]] == episodes[order[1:]]
        lengths, counts = np.unique(np.diff(time.moments[order])[inside], return_counts=True)
        self._merge(np.concatenate([self.lengths, lengths]), np.concatenate([self.counts, counts]))
        self.rounded |= len(self.lengths) > MOST_STEPS
        if self.rounded:
            digits, exponents = np.frexp(self.lengths)
            self._merge(np.ldexp(np.round(np.ldexp(digits, DIGITS)), exponents - DIGITS), self.counts)

    def usual(self) -> float | None:
        """Return the usual step, their median; `None` if steps differ too much for there to be one."""
        if not len(self.counts):
            return None
        upto, n = np.cumsum(self.counts), int(self.counts.sum())
        middle = self.lengths[np.searchsorted(upto, [(n - 1) // 2, n // 2], side="right")]
        usual = float(middle.mean())
        alike = int(self.counts[np.abs(self.lengths - usual) <= ALIKE * usual].sum())
        return usual if usual > 0 and alike / n >= MOST else None

    def _merge(self, lengths: FloatArray, counts: IntArray) -> None:
        self.lengths, places = np.unique(lengths, return_inverse=True)
        self.counts = np.bincount(places, weights=counts, minlength=len(self.lengths)).astype(np.int64)


def following_rows(order: Codes, episodes: Codes, time: Times | None, usual: float | None, faults: Faults) -> Codes:
    """Return the row that follows each row in its episode, -1 where none does.

    Rows before a gap in time are blamed, and the last rows of episodes are set aside.
    """
    after = np.full(len(episodes), -1, dtype=np.int32)
    inside = episodes[order[:-1]] == episodes[order[1:]]
    after[order[:-1][inside]] = order[1:][inside]
    if time is not None and usual is not None:
        steps = np.diff(time.moments[order])[inside]
        gap = np.zeros(len(episodes), dtype=bool)
        gap[order[:-1][inside][steps > GAP * usual]] = True
        faults.blame(gap, f"the row that should follow in {time.name} is not there")
        after[gap] = -1
    faults.set_aside(after < 0)
    return after


def note_on_steps(time: str | None, usual: float | None) -> str:
    """Return a note on where the next states come from, and whether gaps can be told."""
    note = "next states are those of the following rows"
    return note if time is None or usual is not None else f"{note}; the steps of {time} differ, so gaps cannot be told"
