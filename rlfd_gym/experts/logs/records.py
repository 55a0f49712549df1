"""The rows of a log as records of fixed width: read from any source, a part at a time, and kept.

A record has the number of a row, four bytes for the code of each value, and two readings of each
time and amount, until all rows are known and tell which is meant (`rlfd_gym.experts.logs.values`).
Records are kept in a `Spool`: in memory if they are few, on disk otherwise. What stays in memory are
the distinct values.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym.experts.logs import columns as held
from rlfd_gym.experts.logs import values as spelled
from rlfd_gym.experts.logs.columns import TIME, Column, Numbering, Table, Times, check_names, parts
from rlfd_gym.experts.logs.spool import Records, Spool
from rlfd_gym.experts.logs.values import DATES, DECIMALS, Dialect, Readings

ROW, MALFORMED = "row", "malformed"
SECOND = " in the other reading"


@dataclass(frozen=True, eq=False)
class Rawlog:
    """All rows of a log, in the order in which they came.

    Attributes:
        columns: the columns by role, without codes: their values, and how often each occurs.
        numbers: the name of the column of each field of numbers: of "time" and "amount 0", …
        readings: which reading is meant, 0 or 1, for each of these fields.
        spool: the records.
        unit: what the numbers of rows count, "line" or "row".
        notes: how values were read where there was a choice.
    """

    columns: dict[str, Column]
    numbers: dict[str, str]
    readings: dict[str, int]
    spool: Spool
    unit: str
    notes: tuple[str, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of a record with one reading of each number."""
        fields = [(ROW, np.int32), (MALFORMED, np.bool_), *((role, np.int32) for role in self.columns)]
        return np.dtype([*fields, *((field, np.float64) for field in self.numbers)])

    def parts(self) -> Iterator[Records]:
        """Return the records, a part at a time, with the reading that is meant."""
        for raw in self.spool:
            yield self._settled(raw)

    def table(self, records: Records) -> Table:
        """Return records as a table."""
        amounts = {name: field for field, name in self.numbers.items() if field != TIME}
        return Table(
            columns={role: replace(one, codes=_copied(records, role)) for role, one in self.columns.items()},
            times=Times(self.numbers[TIME], _copied(records, TIME)) if TIME in self.numbers else None,
            rows=_copied(records, ROW),
            unit=self.unit,
            malformed=_copied(records, MALFORMED),
            amounts={name: _copied(records, field) for name, field in amounts.items()},
            notes=self.notes,
        )

    def whole(self) -> Table:
        """Return all rows as a table."""
        return self.table(self._settled(self.spool.together(range(len(self.spool)))))

    def _settled(self, raw: Records) -> Records:
        records = np.zeros(len(raw), self.dtype)
        for field in self.dtype.names or ():
            records[field] = raw[field + SECOND if self.readings.get(field) else field]
        return records


class Builder:
    """Reads rows, a part at a time.

    Args:
        roles: the name of the column for each role.
        amounts: the names of the columns to read as numbers.
        unit: what the numbers of rows count, "line" or "row".
    """

    def __init__(self, roles: Mapping[str, str], amounts: Sequence[str] = (), unit: str = "row") -> None:
        """Start without rows."""
        self.roles = {role: name for role, name in roles.items() if role != TIME}
        self.names = dict.fromkeys([*roles.values(), *amounts])
        self._unit, self._n_rows = unit, 0
        self._seen: dict[str, Numbering] = {role: Numbering() for role in self.roles}
        self._tallies = {role: np.zeros(0, np.int64) for role in self.roles}
        self._readings: dict[str, Readings] = {TIME: spelled.moments(roles[TIME])} if TIME in roles else {}
        self._readings |= {f"amount {k}": spelled.amounts(name) for k, name in enumerate(dict.fromkeys(amounts))}
        fields = [(ROW, np.int32), (MALFORMED, np.bool_), *((role, np.int32) for role in self.roles)]
        fields += [(field + which, np.float64) for field in self._readings for which in ("", SECOND)]
        self._spool, self._waiting = Spool(np.dtype(fields)), list[Records]()

    def extend(
        self, columns: Mapping[str, Sequence[Any]], rows: Sequence[int] | None = None, malformed: Sequence[int] = ()
    ) -> None:
        """Add the values of some more rows, by the name of their column.

        Args:
            columns: the values.
            rows: the numbers of the rows. By default they go on.
            malformed: the places of the malformed ones among them.
        """
        n_rows = len(next(iter(columns.values()), ()))
        numbers = range(self._n_rows, self._n_rows + n_rows) if rows is None else rows
        records = np.zeros(n_rows, self._spool.dtype)
        records[ROW] = numbers
        records[MALFORMED][list(malformed)] = True
        for role, name in self.roles.items():
            records[role] = np.fromiter(map(self._seen[role].__getitem__, columns[name]), np.int32, n_rows)
        for field, readings in self._readings.items():
            records[field], records[field + SECOND] = readings.extend(columns[readings.name], numbers)
        self._n_rows += n_rows
        self._waiting.append(records)
        if sum(map(len, self._waiting)) >= held.PART:
            self._keep()

    def log(self, dialect: Dialect | None = None, clean: Callable[[Any], Any] = lambda value: value) -> Rawlog:
        """Return what was read; `clean` is applied to each distinct value."""
        self._keep()
        spoken, notes, readings = dialect or Dialect(), [], {}
        for field, read in self._readings.items():
            if field == TIME:
                settled = read.settled(spoken.dates, "dates", DATES, self._unit)
            else:
                settled = read.settled(spoken.decimal, "decimal", DECIMALS, self._unit, spoken.separator == ";")
            readings[field] = settled[0]
            notes += [settled[1]] if settled[1] else []
        columns = {
            role: Column(
                name,
                np.zeros(0, np.int32),
                [clean(value) for value in self._seen[role]],
                spoken.decimal or ".",
                self._tallies[role][: len(self._seen[role])],
            )
            for role, name in self.roles.items()
        }
        names = {field: read.name for field, read in self._readings.items()}
        return Rawlog(columns, names, readings, self._spool, self._unit, tuple(notes))

    def _keep(self) -> None:
        """Put the rows that wait into the spool, and count their values."""
        records = np.concatenate([np.zeros(0, self._spool.dtype), *self._waiting])
        self._waiting.clear()
        for role, tally in self._tallies.items():
            codes, counts = np.unique(records[role], return_counts=True)
            if len(self._seen[role]) > len(tally):
                more = 2 * len(self._seen[role]) - len(tally)
                self._tallies[role] = np.concatenate([tally, np.zeros(more, np.int64)])
            self._tallies[role][codes] += counts
        self._spool.add(records)


def read_records(
    source: Any, roles: Mapping[str, str], amounts: Sequence[str] = (), dialect: Dialect | None = None
) -> Rawlog:
    """Read the columns `roles[role]` of a path, a DataFrame or a mapping of arrays.

    The columns `amounts` are read as numbers.
    """
    if isinstance(source, (str, os.PathLike)):
        from rlfd_gym.experts.logs.files import read_file  # here, because it imports this module

        return read_file(source, roles, amounts, dialect)
    names = list(dict.fromkeys([*roles.values(), *amounts]))
    if isinstance(source, Mapping):
        check_names(roles, amounts, source, "the table")
        vectors = {name: _vector(name, source[name]) for name in names}
    else:
        check_names(roles, amounts, source.columns, "the table")
        vectors = {name: source[name] for name in names}
    sizes = {name: len(vectors[name]) for name in names}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must have one length, got {sizes}")
    builder = Builder(roles, amounts)
    for part in parts(max(sizes.values(), default=0)):
        builder.extend({name: _listed(values, part) for name, values in vectors.items()})
    return builder.log(dialect)


def read_table(
    source: Any, roles: Mapping[str, str], amounts: Sequence[str] = (), dialect: Dialect | None = None
) -> Table:
    """Read all rows of a source as a table, see `read_records`.

    >>> source = {"stock": [3, 1, 3], "order": ["few", "many", None]}
    >>> table = read_table(source, {"state": "stock", "action": "order"})
    >>> table.columns["state"].values, table.columns["state"].codes.tolist()
    ([3, 1], [0, 1, 0])
    """
    return read_records(source, roles, amounts, dialect).whole()


def column_names(source: Any, dialect: Dialect | None = None) -> list[str] | None:
    """Return the names of a source's columns; `None` if it is no table."""
    if isinstance(source, (str, os.PathLike)):
        from rlfd_gym.experts.logs.files import names_in_file  # here, because it imports this module

        return names_in_file(source, dialect)
    if isinstance(source, Mapping):
        return [str(name) for name in source]
    return [str(name) for name in source.columns] if hasattr(source, "columns") else None


def _copied(records: Records, field: str) -> NDArray[Any]:
    return np.ascontiguousarray(records[field])


def _vector(name: str, values: Any) -> NDArray[Any]:
    """Return values of shape (T,) or (T, 1) as an array of shape (T,)."""
    array = _checks.as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one entry per row: (T,) or (T, 1)")
    return array


def _listed(values: Any, part: slice) -> list[Any]:
    """Return some entries of an array or a Series as a list of hashable objects."""
    if hasattr(values, "iloc"):
        some = values.iloc[part]
        return [None if missing else value for value, missing in zip(some.tolist(), some.isna(), strict=True)]
    return values[part].tolist()
