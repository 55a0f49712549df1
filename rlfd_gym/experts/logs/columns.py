"""The columns of a log, read from any source and held as codes.

Entry i of a column stands for `values[codes[i]]`. A value means a whole number (3, 3.0, "3"), a
fraction, a text, or nothing (None, NaN, "", "NA"). Each distinct value is examined once; the
result is then spread over the rows. A column of times, in which nearly every value is another, is
held as numbers instead.

Logs are long and their values few, so a column takes four bytes a row, and whatever needs more is
done in parts of `PART` rows.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
import sys
import zlib
from array import array as growing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._files import unguarded
from rlfd_gym._install import command

Codes = NDArray[np.int32]

PART = 2**16  # rows at a time
TIME = "time"  # the role of a column that is held as numbers
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
    codes: Codes
    values: list[Any]

    @property
    def counts(self) -> IntArray:
        """The number of entries with each value."""
        found = np.zeros(len(self.values) + 1, dtype=np.int64)
        for part in parts(len(self.codes)):
            found += np.bincount(self.codes[part] + 1, minlength=len(found))
        return found[1:]

    def meanings(self) -> list[int | float | str | None]:
        """Return what each value means."""
        return [meaning(value) for value in self.values]

    def moments(self) -> FloatArray:
        """Return a sortable number for each value of a time column.

        It is NaN where the value is neither a number nor a date.
        """
        return np.array([_moment(what) for what in self.meanings()], dtype=np.float64)

    def spread(self, per_value: Iterable[Any], missing: Any, dtype: Any = None) -> NDArray[Any]:
        """Return an array with one entry per row from what is known per value."""
        return np.array([*per_value, missing], dtype=dtype)[self.codes]


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
    """

    columns: dict[str, Column]
    times: Times | None
    rows: Codes
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
    coded: Callable[[str, Any], Column]
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if _kind_of(path) != ".parquet":
            return _unguarded(_read_text(path, roles))
        source, where = _read_parquet(path, roles), str(path)
    if isinstance(source, Mapping):
        _check_names(roles, source, where)
        held, coded = {role: _vector(name, source[name]) for role, name in roles.items()}, column_of
    else:
        _check_names(roles, source.columns, where)
        held, coded = {role: source[name] for role, name in roles.items()}, _column_of_series
    sizes = {name: len(held[role]) for role, name in roles.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must have one length, got {sizes}")
    return Table(
        columns={role: coded(name, held[role]) for role, name in roles.items() if role != TIME},
        times=Times(roles[TIME], _moments(coded, roles[TIME], held[TIME])) if TIME in roles else None,
        rows=np.arange(max(sizes.values(), default=0), dtype=np.int32),
    )


def column_of(name: str, values: Any) -> Column:
    """Return an array of numbers, texts or objects, of shape (T,) or (T, 1), as a column."""
    array = _vector(name, values)
    if array.dtype.kind == "O":
        return column_of_objects(name, array)
    some = [np.unique(array[part]) for part in parts(len(array))]
    distinct = np.unique(np.concatenate([array[:0], *some]))
    codes = np.empty(len(array), dtype=np.int32)
    for part in parts(len(array)):
        codes[part] = np.searchsorted(distinct, array[part])
    return Column(name, codes, distinct.tolist())


def column_of_objects(name: str, values: Iterable[Any]) -> Column:
    """Return a column of hashable objects, with its values in the order of first occurrence."""
    seen: dict[Any, int] = {}
    codes = growing("i", (seen.setdefault(value, len(seen)) for value in values))
    return Column(name, np.array(codes, dtype=np.int32), list(seen))


def parts(n_rows: int) -> Iterator[slice]:
    """Return slices of at most `PART` rows, which cover all of them in order."""
    return (slice(start, start + PART) for start in range(0, n_rows, PART))


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


def _vector(name: str, values: Any) -> NDArray[Any]:
    """Return values of shape (T,) or (T, 1) as an array of shape (T,)."""
    array = _checks.as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one entry per row: (T,) or (T, 1)")
    return array


def _column_of_series(name: str, series: Any) -> Column:
    """Return a pandas Series as a column, with its values in the order of first occurrence."""
    pandas, codes = _import_pandas(), np.empty(len(series), dtype=np.int32)
    seen: dict[Any, int] = {}
    for part in parts(len(series)):
        local, distinct = pandas.factorize(series.iloc[part])
        places = [seen.setdefault(value, len(seen)) for value in distinct]
        codes[part] = np.array([*places, -1], dtype=np.int32)[local]
    return Column(name, codes, list(seen))


def _moments(coded: Callable[[str, Any], Column], name: str, values: Any) -> FloatArray:
    """Return the moments of a column of times, which `coded` reads a part at a time."""
    moments, rows = np.empty(len(values)), getattr(values, "iloc", values)
    for part in parts(len(values)):
        column = coded(name, rows[part])
        moments[part] = column.spread(column.moments(), np.nan)
    return moments


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


def _read_parquet(path: Path, roles: Mapping[str, str]) -> Any:
    """Read the columns of a parquet file into a DataFrame; errors name the file."""
    pandas = _import_pandas()
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f"parquet is read with pyarrow: {command('logs')}", name="pyarrow") from None
    try:
        _check_names(roles, parquet.read_schema(path).names, str(path))
        return pandas.read_parquet(path, columns=list(dict.fromkeys(roles.values())))
    except ArrowException as error:
        raise ValueError(f"{path} is damaged or no parquet file: {error}") from None


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
    places = {role: header.index(name) for role, name in roles.items() if role != TIME}
    seen: dict[str, dict[str | None, int]] = {role: {} for role in places}
    codes = {role: growing("i") for role in places}
    when, moments = header.index(roles[TIME]) if TIME in roles else None, growing("d")
    moment = lru_cache(PART)(lambda text: _moment(meaning(text)))
    lines, malformed = growing("i"), growing("i")
    try:
        for row in reader:
            if not row:
                continue
            whole = len(row) == len(header)
            if not whole:
                malformed.append(len(lines))
            for role, place in places.items():
                known = seen[role]
                codes[role].append(known.setdefault(row[place] if whole else None, len(known)))
            if when is not None:
                moments.append(moment(row[when]) if whole else np.nan)
            lines.append(reader.line_num)
    except csv.Error as error:  # unless strict, an unclosed quote silently swallows rows
        last = lines[-1] if lines else 1
        raise ValueError(f"{path}: the row after line {last} is no CSV, see its quotes: {error}") from None
    return Table(
        columns={role: Column(roles[role], np.array(codes.pop(role), np.int32), list(seen[role])) for role in places},
        times=None if when is None else Times(roles[TIME], np.array(moments, np.float64)),
        rows=np.array(lines, np.int32),
        unit="line",
        malformed=tuple(malformed),
    )


def _unguarded(table: Table) -> Table:
    """Return a table without the apostrophes that `write_csv` puts before formulas."""
    columns = {
        role: replace(column, values=[unguarded(value) if isinstance(value, str) else value for value in column.values])
        for role, column in table.columns.items()
    }
    return replace(table, columns=columns)


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError(f"tables are read with pandas: {command('logs')}", name="pandas") from None
    return pandas
