"""The columns of a log, read from any source and held as codes.

Entry i of a column stands for `values[codes[i]]`. Each distinct value is examined once; the result
is then spread over the rows. A column of times or amounts, in which nearly every value is another,
is held as numbers instead.

Logs are long and their values few, so a column takes four bytes a row, and whatever needs more is
done in parts of `PART` rows. `rlfd_gym.experts.logs.files` reads files, `values` says what a value
means.
"""

from __future__ import annotations

import difflib
import os
from array import array as growing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.logs import values as spelled
from rlfd_gym.experts.logs.values import DATES, DECIMALS, Dialect, Readings, meaning

Codes = NDArray[np.int32]

PART = spelled.PART
TIME = "time"  # the role of a column that is held as numbers


@dataclass(frozen=True, eq=False)
class Column:
    """A column as codes.

    Attributes:
        name: the name of the column.
        codes: for each row, the position of its value in `values`; -1 where there is nothing.
        values: the distinct values.
        decimal: the decimal sign of its texts.
    """

    name: str
    codes: Codes
    values: list[Any]
    decimal: str = "."

    @property
    def counts(self) -> IntArray:
        """The number of entries with each value."""
        found = np.zeros(len(self.values) + 1, dtype=np.int64)
        for part in parts(len(self.codes)):
            found += np.bincount(self.codes[part] + 1, minlength=len(found))
        return found[1:]

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
    """The requested columns, and how to name their rows.

    Attributes:
        columns: the columns by role, "state", "action", ..., but for the times.
        times: the column with the role "time", if it was requested.
        rows: the number of each row: its line in a text file, counted from 1; otherwise its
            position, counted from 0.
        unit: what the numbers count, "line" or "row".
        malformed: the positions of the rows of a text file whose number of fields differs from
            that of the header; these rows hold nothing.
        amounts: the columns that were requested as numbers, by name; NaN where there is none.
        notes: how values were read where there was a choice.
    """

    columns: dict[str, Column]
    times: Times | None
    rows: Codes
    unit: str = "row"
    malformed: tuple[int, ...] = ()
    amounts: dict[str, FloatArray] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Builder:
    """Columns that grow while a source is read, a part at a time.

    Args:
        roles: the name of the column for each role.
        amounts: the names of the columns to hold as numbers.
    """

    def __init__(self, roles: Mapping[str, str], amounts: Sequence[str] = ()) -> None:
        """Start without rows."""
        self.roles = {role: name for role, name in roles.items() if role != TIME}
        self._seen: dict[str, _Numbering] = {role: _Numbering() for role in self.roles}
        self._codes = {role: growing("i") for role in self.roles}
        self._times = spelled.moments(roles[TIME]) if TIME in roles else None
        self._amounts = {name: spelled.amounts(name) for name in amounts}
        self.names = dict.fromkeys([*roles.values(), *amounts])

    def extend(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add the values of some more rows, by the name of their column."""
        for role, name in self.roles.items():
            self._codes[role].extend(map(self._seen[role].__getitem__, columns[name]))
        if self._times is not None:
            self._times.extend(columns[self._times.name])
        for name, readings in self._amounts.items():
            readings.extend(columns[name])

    def table(
        self,
        rows: Codes | None = None,
        unit: str = "row",
        malformed: Sequence[int] = (),
        dialect: Dialect | None = None,
        clean: Callable[[Any], Any] = lambda value: value,
    ) -> Table:
        """Return what was read; `clean` is applied to each distinct value."""
        spoken = dialect or Dialect()
        n_rows = len(next(iter(self._codes.values()))) if self._codes else 0
        places = np.arange(n_rows, dtype=np.int32) if rows is None else rows
        notes: list[str] = []

        def settled(readings: Readings, chosen: str | None, option: str, names: tuple[str, str]) -> FloatArray:
            sure = option != "decimal" or spoken.separator == ";"
            numbers, note = readings.settled(chosen, option, names, lambda row: f"{unit} {places[row]}", sure)
            notes.extend([note] if note else [])
            return numbers

        return Table(
            columns={
                role: Column(
                    self.roles[role],
                    np.array(self._codes.pop(role), np.int32),
                    [clean(value) for value in self._seen[role]],
                    spoken.decimal or ".",
                )
                for role in self.roles
            },
            times=None
            if self._times is None
            else Times(self._times.name, settled(self._times, spoken.dates, "dates", DATES)),
            rows=places,
            unit=unit,
            malformed=tuple(malformed),
            amounts={
                name: settled(readings, spoken.decimal, "decimal", DECIMALS) for name, readings in self._amounts.items()
            },
            notes=tuple(notes),
        )


class _Numbering(dict[Any, int]):
    """The number of each distinct value, in the order of first occurrence."""

    def __missing__(self, value: Any) -> int:
        if value != value:  # a NaN, of which every one is another
            return self[None]
        self[value] = number = len(self)
        return number


def read_table(
    source: Any, roles: Mapping[str, str], amounts: Sequence[str] = (), dialect: Dialect | None = None
) -> Table:
    """Read the columns `roles[role]` of a path, a DataFrame or a mapping of arrays.

    The columns `amounts` are read as numbers.

    >>> source = {"stock": [3, 1, 3], "order": ["few", "many", None]}
    >>> table = read_table(source, {"state": "stock", "action": "order"})
    >>> table.columns["state"].values, table.columns["state"].codes.tolist()
    ([3, 1], [0, 1, 0])
    """
    if isinstance(source, (str, os.PathLike)):
        from rlfd_gym.experts.logs.files import read_file  # here, because it imports this module

        return read_file(source, roles, amounts, dialect)
    names = list(dict.fromkeys([*roles.values(), *amounts]))
    if isinstance(source, Mapping):
        check_names(roles, amounts, source, "the table")
        held = {name: _vector(name, source[name]) for name in names}
    else:
        check_names(roles, amounts, source.columns, "the table")
        held = {name: source[name] for name in names}
    sizes = {name: len(held[name]) for name in names}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must have one length, got {sizes}")
    builder = Builder(roles, amounts)
    for part in parts(max(sizes.values(), default=0)):
        builder.extend({name: _listed(name, values, part) for name, values in held.items()})
    return builder.table(dialect=dialect)


def column_names(source: Any, dialect: Dialect | None = None) -> list[str] | None:
    """Return the names of a source's columns; `None` if it is no table."""
    if isinstance(source, (str, os.PathLike)):
        from rlfd_gym.experts.logs.files import names_in_file  # here, because it imports this module

        return names_in_file(source, dialect)
    if isinstance(source, Mapping):
        return [str(name) for name in source]
    return [str(name) for name in source.columns] if hasattr(source, "columns") else None


def column_of_objects(name: str, values: Iterable[Any]) -> Column:
    """Return a column of hashable objects, with its values in the order of first occurrence."""
    seen = _Numbering()
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


def _vector(name: str, values: Any) -> NDArray[Any]:
    """Return values of shape (T,) or (T, 1) as an array of shape (T,)."""
    array = _checks.as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one entry per row: (T,) or (T, 1)")
    return array


def _listed(name: str, values: Any, part: slice) -> list[Any]:
    """Return some entries of an array or a Series as a list of hashable objects."""
    if hasattr(values, "iloc"):
        some = values.iloc[part]
        return [None if missing else value for value, missing in zip(some.tolist(), some.isna(), strict=True)]
    return values[part].tolist()
