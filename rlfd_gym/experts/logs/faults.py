"""Which rows of a log are bad and why, with their values and what mends them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym.experts.logs.columns import Codes, Column, Table

LISTED = 5  # at most that many things are listed
SET_ASIDE = 255  # instead of the number of a reason

MENDS = (
    ("not among the labels given", "if they exist, add them to the labels (or the prior that lists them)"),
    ("not among the feasible pairs", "if they exist, add them to the feasible pairs"),
    ("is no whole number", 'correct them, or give decimal="," if that is how numbers are spelled'),
    ("is too large a number", "correct them, or put a letter before them if they are codes"),
    ("nor a date", 'correct them, or give dates="day-first" or "month-first"'),
    ("number of fields", "put quotes around fields that hold the separator"),
    ("is negative", "pass the columns as a mapping if negative numbers are labels"),
    ("as an earlier row", "name a column that tells the rows of an episode apart"),
)
"""What a reason contains, and what mends such rows."""


@dataclass(frozen=True)
class BadRows:
    """Rows that were left out for one reason.

    Attributes:
        reason: what is wrong with them.
        count: how many there are.
        first: the first few: lines of a text file, counted from 1, or rows, counted from 0.
        unit: "line" or "row".
        values: the most frequent of the values that are wrong, as text.
    """

    reason: str
    count: int
    first: tuple[int, ...]
    unit: str
    values: tuple[str, ...] = ()

    @property
    def where(self) -> str:
        """The first few of them, as text."""
        return f"{self.unit} {', '.join(map(str, self.first))}{', …' if self.count > len(self.first) else ''}"

    @property
    def mend(self) -> str:
        """What mends such rows, as text; empty if nobody knows."""
        return next((mend for part, mend in MENDS if part in self.reason), "")

    def __str__(self) -> str:
        """Say what is wrong, how often and where, and name the values."""
        shown = f": {', '.join(self.values)}" if self.values else ""
        return f"{self.reason}, {self.count} ({self.where}{shown})"


class Faults:
    """A record of which rows of a table are bad, and why.

    A row with several faults counts for the one blamed first.
    """

    def __init__(self, table: Table) -> None:
        """Start with the rows that are malformed in the file."""
        self.table = table
        self.reasons: list[tuple[str, Column | None]] = []
        self._fault = np.zeros(len(table.rows), dtype=np.uint8)  # the number of the reason, from 1; 0 for none
        self.blame(table.malformed, "another number of fields than the header")
        self.n_set_aside = 0

    @property
    def good(self) -> NDArray[np.bool_]:
        """The rows that have not been blamed so far."""
        return self._fault == 0

    def blame(self, rows: NDArray[np.bool_], reason: str, column: Column | None = None) -> None:
        """Mark rows as bad for a reason, unless they are bad already; their values may be shown."""
        self.reasons.append((reason, column))
        self._fault[rows & self.good] = len(self.reasons)

    def set_aside(self, rows: NDArray[np.bool_]) -> None:
        """Leave out rows that nothing is wrong with."""
        self.n_set_aside += int((rows & self.good).sum())
        self._fault[rows & self.good] = SET_ASIDE

    def put_off(self, row: int) -> None:
        """Leave out a row, whatever is wrong with it: it comes again in the next part of the log."""
        self._fault[row] = SET_ASIDE

    def rows_with(self, number: int) -> NDArray[np.int64]:
        """Return the rows that are bad for a reason, by its number in `reasons`."""
        return np.flatnonzero(self._fault == number + 1)

    def bad_rows(self) -> tuple[BadRows, ...]:
        """Return the bad rows by reason, in the order in which they were blamed."""
        found = FaultCounts()
        found.add(self)
        return found.bad_rows()


class FaultCounts:
    """The bad rows of all parts of a log, by reason; each part has to blame for the same reasons."""

    def __init__(self) -> None:
        """Start without parts."""
        self.n_good, self.n_rows, self.n_set_aside, self._unit = 0, 0, 0, "row"
        self._kinds: list[_Kind] = []

    def add(self, faults: Faults) -> None:
        """Add the faults of a part of the log."""
        n_good = int(faults.good.sum())
        self.n_good += n_good
        self.n_set_aside += faults.n_set_aside
        self._unit = faults.table.unit
        self._kinds = self._kinds or [_Kind(reason, column) for reason, column in faults.reasons]
        self.n_rows += n_good + faults.n_set_aside
        for number, ((_, column), kind) in enumerate(zip(faults.reasons, self._kinds, strict=True)):
            rows = faults.rows_with(number)
            self.n_rows += len(rows)
            if len(rows):
                kind.add(faults.table.rows[rows], None if column is None else column.codes[rows])

    def bad_rows(self) -> tuple[BadRows, ...]:
        """Return the bad rows by reason, in the order in which they were blamed."""
        return tuple(
            BadRows(kind.reason, kind.count, tuple(kind.first), self._unit, kind.values())
            for kind in self._kinds
            if kind.count
        )


class _Kind:
    """The rows that are bad for one reason: the first of them, and their values."""

    def __init__(self, reason: str, column: Column | None) -> None:
        self.reason, self.column, self.count = reason, column, 0
        self.first: list[int] = []
        self._codes: dict[int, tuple[int, int]] = {}  # how often a value occurs, and the first row that has it

    def add(self, rows: Codes, codes: Codes | None) -> None:
        """Count rows, by their numbers, with the codes of their values."""
        self.count += len(rows)
        self.first = sorted([*self.first, *np.sort(rows)[:LISTED].tolist()])[:LISTED]
        if codes is None:
            return
        by_row = np.argsort(rows, kind="stable")
        found, first, counts = np.unique(codes[by_row], return_index=True, return_counts=True)
        for code, row, count in zip(found.tolist(), rows[by_row[first]].tolist(), counts.tolist(), strict=True):
            before, earliest = self._codes.get(code, (0, row))
            self._codes[code] = before + count, min(earliest, row)

    def values(self) -> tuple[str, ...]:
        """Return the most frequent values, as short texts; nothing where nothing is."""
        if self.column is None:
            return ()
        often = sorted(self._codes, key=lambda code: (-self._codes[code][0], self._codes[code][1]))
        shown = [repr(_short(self.column.values[code])) for code in often[:LISTED] if code >= 0]
        shown = [text for text in shown if text not in ("None", "''")]
        return (*shown, "…") if shown and len(often) > LISTED else tuple(shown)


def told(bad: Iterable[BadRows]) -> str:
    """Return the bad rows as a sentence, each reason with what mends it."""
    return "; ".join(f"{kind}{f' [{kind.mend}]' if kind.mend else ''}" for kind in bad)


def listed(things: Iterable[Any]) -> str:
    """Return the first few things as text, with dots if there are more."""
    everything = list(things)
    return ", ".join(map(str, everything[:LISTED])) + (", …" if len(everything) > LISTED else "")


def _short(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= 30 else f"{text[:27]}…"
