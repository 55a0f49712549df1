"""The columns of a log, read from any source and held as codes.

Entry i of a column stands for `values[codes[i]]`. A value means a whole number (3, 3.0, "3"), a
fraction, a text, or nothing (None, NaN, "", "NA"). Each distinct value is examined once; the
result is then spread over the rows.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._files import unguarded

NOTHING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "nat", "<na>"})
SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, eq=False)
class Column:
    """A column as codes.

    Attributes:
        name: the name of the column.
        codes: for each row, the position of its value in `values`; -1 where there is nothing.
        values: the distinct values.
    """

    name: str
    codes: IntArray
    values: list[Any]

    @property
    def counts(self) -> IntArray:
        """The number of entries with each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def meanings(self) -> list[int | float | str | None]:
        """Return what each value means."""
        return [meaning(value) for value in self.values]

    def moments(self) -> FloatArray:
        """Return a sortable number for each value of a time column.

        It is NaN where the value is neither a number nor a date.
        """
        return np.array([_moment(what) for what in self.meanings()], dtype=np.float64)

    def spread(self, per_value: Iterable[Any], missing: Any) -> NDArray[Any]:
        """Return an array with one entry per row from what is known per value."""
        return np.array([*per_value, missing])[self.codes]


@dataclass(frozen=True, eq=False)
class Table:
    """The requested columns, and how to name their rows.

    Attributes:
        columns: the columns by role: "state", "action", ...
        rows: the number of each row: its line in a text file, counted from 1; otherwise its
            position, counted from 0.
        unit: what the numbers count, "line" or "row".
        malformed: the positions of the rows of a text file whose number of fields differs from
            that of the header; these rows hold nothing.
    """

    columns: dict[str, Column]
    rows: IntArray
    unit: str = "row"
    malformed: tuple[int, ...] = ()


def read_table(source: Any, roles: Mapping[str, str]) -> Table:
    """Read the columns `roles[role]` of a path, a DataFrame or a mapping of arrays.

    >>> source = {"stock": [3, 1, 3], "order": ["few", "many", None]}
    >>> table = read_table(source, {"state": "stock", "action": "order"})
    >>> table.columns["state"].values, table.columns["state"].codes.tolist()
    ([1, 3], [1, 0, 1])
    """
    where = "the table"
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if _kind_of(path) != ".parquet":
            return _unguarded(_read_text(path, roles))
        source, where = _import_pandas().read_parquet(path), str(path)
    if isinstance(source, Mapping):
        _check_names(roles, source, where)
        columns = {role: column_of(name, source[name]) for role, name in roles.items()}
    else:
        _check_names(roles, source.columns, where)
        columns = {role: Column(name, *_factorize(source[name])) for role, name in roles.items()}
    sizes = {column.name: len(column.codes) for column in columns.values()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must have one length, got {sizes}")
    return Table(columns, np.arange(max(sizes.values(), default=0)))


def column_of(name: str, values: Any) -> Column:
    """Return an array of numbers, texts or objects, of shape (T,) or (T, 1), as a column."""
    array = _checks.as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one entry per row: (T,) or (T, 1)")
    if array.dtype.kind == "O":
        return column_of_objects(name, array)
    distinct, codes = np.unique(array, return_inverse=True)
    return Column(name, codes.astype(np.int64), distinct.tolist())


def column_of_objects(name: str, values: Iterable[Any]) -> Column:
    """Return a column of hashable objects, with its values in the order of first occurrence."""
    seen: dict[Any, int] = {}
    codes = [seen.setdefault(value, len(seen)) for value in values]
    return Column(name, np.array(codes, dtype=np.int64), list(seen))


def meaning(value: Any) -> int | float | str | None:
    """Return what a value means: a whole number, a fraction, a text, or nothing.

    >>> [meaning(value) for value in (3.0, "3", " 3.50", "12 pcs", "n/a", float("nan"))]
    [3, 3, 3.5, '12 pcs', None, None]
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    text = "" if value is None else str(value).strip()
    if text.lower() in NOTHING:
        return None
    if isinstance(value, (str, Real)):
        try:
            if text.removeprefix("-").isdecimal() and len(text) < sys.float_info.max_10_exp:
                return int(text)
            if "_" in text:  # float would read 1_000 as a number
                return text
            number = float(text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text


def _moment(what: int | float | str | None) -> float:
    if not isinstance(what, str):
        return np.nan if what is None or abs(what) > sys.float_info.max else float(what)
    try:
        moment = datetime.fromisoformat(what)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _check_names(roles: Mapping[str, str], present: Iterable[Any], where: str) -> None:
    """Check that each role's column exists exactly once; an error names the columns there are."""
    names = [str(name) for name in present]
    for role, name in roles.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found = ", ".join(names) or "none"
            raise ValueError(f"{role}={name!r}: {where} has no such column, it has {found}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"{role}={name!r}: {where} has {names.count(name)} such columns, which one is not clear")


def _kind_of(path: Path) -> str:
    """Return the kind of file that a path names, one of `SUFFIXES`."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} ends in {suffix!r}, expected one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return suffix.lower()


def _read_text(path: Path, roles: Mapping[str, str]) -> Table:
    """Read a CSV file, compressed or not; errors name the file."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            return _read_lines(file, path, roles)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged or not compressed by gzip: {error}") from None


def _read_lines(file: IO[str], path: Path, roles: Mapping[str, str]) -> Table:
    """Read lines whose fields are separated as in their header: by commas, semicolons or tabs.

    Empty lines are skipped.
    """
    first = file.readline()
    file.seek(0)
    reader = csv.reader(file, delimiter=max(",;\t", key=first.count), skipinitialspace=True, strict=True)
    header = [unguarded(name.strip()) for name in next(reader, [])]
    _check_names(roles, header, str(path))
    places = [header.index(name) for name in roles.values()]
    fields: list[list[str | None]] = []
    lines: list[int] = []
    malformed: list[int] = []
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                malformed.append(len(lines))
            fields.append([row[k] for k in places] if len(row) == len(header) else [None] * len(places))
            lines.append(reader.line_num)
    except csv.Error as error:  # unless strict, an unclosed quote silently swallows rows
        last = lines[-1] if lines else 1
        raise ValueError(f"{path}: the row after line {last} is no CSV, see its quotes: {error}") from None
    columns = {
        role: column_of_objects(name, [row[k] for row in fields]) for k, (role, name) in enumerate(roles.items())
    }
    return Table(columns, np.array(lines, dtype=np.int64), "line", tuple(malformed))


def _unguarded(table: Table) -> Table:
    """Return a table without the apostrophes that `write_csv` puts before formulas."""
    columns = {
        role: replace(column, values=[unguarded(value) if isinstance(value, str) else value for value in column.values])
        for role, column in table.columns.items()
    }
    return replace(table, columns=columns)


def _factorize(series: Any) -> tuple[IntArray, list[Any]]:
    codes, distinct = _import_pandas().factorize(series)
    return codes.astype(np.int64), list(distinct)


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError('tables are read with pandas: pip install "rlfd-gym[logs]"', name="pandas") from None
    return pandas
