"""Which rows of a log are bad and why, with their values and what mends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym.experts.logs.columns import Column, Table

LISTED = 5  # at most that many things are listed

MENDS = (
    ("not among the labels given", "if they exist, add them to the labels (or the prior that lists them)"),
    ("not among the feasible pairs", "if they exist, add them to the feasible pairs"),
    ("is no whole number", 'correct them, or give decimal="," if that is how numbers are spelled'),
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
        """What mends such rows, as text; "" if nobody knows."""
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
        self._reasons: list[tuple[str, Column | None]] = []
        self._fault = np.zeros(len(table.rows), dtype=np.uint8)  # the number of the reason, from 1; 0 for none
        malformed = np.zeros(len(table.rows), dtype=bool)
        malformed[list(table.malformed)] = True
        self.blame(malformed, "another number of fields than the header")
        self.n_set_aside = 0

    @property
    def good(self) -> NDArray[np.bool_]:
        """The rows that have not been blamed so far."""
        return self._fault == 0

    def blame(self, rows: NDArray[np.bool_], reason: str, column: Column | None = None) -> None:
        """Mark rows as bad for a reason, unless they are bad already; their values may be shown."""
        self._reasons.append((reason, column))
        self._fault[rows & self.good] = len(self._reasons)

    def set_aside(self, rows: NDArray[np.bool_]) -> None:
        """Leave out rows that nothing is wrong with."""
        self.n_set_aside += int((rows & self.good).sum())
        self._fault[rows & self.good] = np.iinfo(np.uint8).max

    def bad_rows(self) -> tuple[BadRows, ...]:
        """Return the bad rows by reason, in the order in which they were blamed."""
        found = [(*said, np.flatnonzero(self._fault == k)) for k, said in enumerate(self._reasons, 1)]
        return tuple(
            BadRows(
                reason,
                len(rows),
                tuple(self.table.rows[rows[:LISTED]].tolist()),
                self.table.unit,
                () if column is None else _values(column, rows),
            )
            for reason, column, rows in found
            if len(rows)
        )


def told(bad: Iterable[BadRows]) -> str:
    """Return the bad rows as a sentence, each reason with what mends it."""
    return "; ".join(f"{kind}{f' [{kind.mend}]' if kind.mend else ''}" for kind in bad)


def listed(things: Iterable[Any]) -> str:
    """Return the first few things as text, with dots if there are more."""
    everything = list(things)
    return ", ".join(map(str, everything[:LISTED])) + (", …" if len(everything) > LISTED else "")


def _values(column: Column, rows: NDArray[np.int64]) -> tuple[str, ...]:
    """Return the most frequent values of some rows, as short texts; nothing where nothing is."""
    codes = Counter(column.codes[rows].tolist())
    shown = [repr(_short(column.values[code])) for code, _ in codes.most_common(LISTED) if code >= 0]
    shown = [text for text in shown if text not in ("None", "''")]
    return (*shown, "…") if shown and len(codes) > LISTED else tuple(shown)


def _short(value: Any) -> Any:
    text = str(value)
    return value if len(text) <= 30 else f"{text[:27]}…"
