"""The columns of a log, or of a part of it, held as codes.

Entry i of a column stands for `values[codes[i]]`. Each distinct value is examined once; the result
is then spread over the rows. A column of times or amounts, in which nearly every value is another,
is held as numbers instead.

Logs are long and their values few: `rlfd_gym.experts.logs.records` reads the rows in parts and keeps
all but a part of them on disk, `files` reads files, `values` says what a value means.
"""

from __future__ import annotations

import difflib
from array import array as growing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs import values as spelled
from rlfd_gym.experts.logs.values import meaning

Codes = NDArray[np.int32]

PART = spelled.PART
HELD = 2**18  # rows that are held in memory; more are kept on disk, and ordered in parts of as many
TIME = "time"  # the role of a column that is held as numbers


@dataclass(frozen=True, eq=False)
class Column:
    """A column as codes.

    Attributes:
        name: the name of the column.
        codes: for each row, the position of its value in `values`; -1 where there is nothing.
        values: the distinct values.
        decimal: the decimal sign of its texts.
        tally: the number of entries with each value in the whole log, if this is a part of it.
    """

    name: str
    codes: Codes
    values: list[Any]
    decimal: str = "."
    tally: IntArray | None = None

    @property
    def counts(self) -> IntArray:
        """The number of entries with each value, in the whole log."""
        return np.bincount(self.codes + 1, minlength=len(self.values) + 1)[1:] if self.tally is None else self.tally

    def meanings(self) -> list[int | float | str | None]:
        """Return what each value means."""
        return [meaning(value, self.decimal) for value in self.values]

    def spread(self, per_value: Iterable[Any], missing: Any, dtype: Any = None) -> NDArray[Any]:
        """Return an array with one entry per row from what is known per value."""
        return np.array([*per_value, missing], dtype=dtype)[self.codes]

    def value_at(self, row: int) -> Any:
        """Return the value of a row."""
        return None if self.codes[row] < 0 else self.values[self.codes[row]]


@dataclass(frozen=True, eq=False)
class Times:
    """A column of times.

    Attributes:
        name: the name of the column.
        moments: for each row, a sortable number; NaN where there is neither a number nor a date.
    """

    name: str
    moments: FloatArray


@dataclass(frozen=True, eq=False)
class Table:
    """The requested columns of a log or of a part of it, and how to name their rows.

    Attributes:
        columns: the columns by role, "state", "action", ..., but for the times.
        times: the column with the role "time", if it was requested.
        rows: the number of each row: its line in a text file, counted from 1; otherwise its
            position, counted from 0.
        unit: what the numbers count, "line" or "row".
        malformed: which rows of a text file have another number of fields than the header; these
            rows hold nothing.
        amounts: the columns that were requested as numbers, by name; NaN where there is none.
        notes: how values were read where there was a choice.
    """

    columns: dict[str, Column]
    times: Times | None
    rows: Codes
    unit: str
    malformed: NDArray[np.bool_]
    amounts: dict[str, FloatArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Numbering(dict[Any, int]):
    """The number of each distinct value, in the order of first occurrence."""

    def __missing__(self, value: Any) -> int:
        """Number a value that is new."""
        if value != value:  # a NaN, of which every one is another
            return self[None]
        self[value] = number = len(self)
        return number


def column_of_objects(name: str, values: Iterable[Any]) -> Column:
    """Return a column of hashable objects, with its values in the order of first occurrence."""
    seen = Numbering()
    codes = growing("i", map(seen.__getitem__, values))
    return Column(name, np.array(codes, dtype=np.int32), list(seen))


def parts(n_rows: int) -> Iterator[slice]:
    """Return slices of at most `PART` rows, which cover all of them in order."""
    return (slice(start, start + PART) for start in range(0, n_rows, PART))


def check_names(roles: Mapping[str, str], amounts: Sequence[str], present: Iterable[Any], where: str) -> None:
    """Check that each role's column exists exactly once; an error names the columns there are."""
    names = [str(name) for name in present]
    for role, name in [*roles.items(), *(("columns", name) for name in amounts)]:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found = ", ".join(names) or "none"
            raise ValueError(f"{role}={name!r}: {where} has no such column, it has {found}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"{role}={name!r}: {where} has {names.count(name)} such columns, which one is not clear")
