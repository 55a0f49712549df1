"""Columns of a log, from wherever they come, as codes: entry i of a column stands for `values[codes[i]]`.

A value means a whole number (3, 3.0, "3"), a fraction, a text, or nothing (None, NaN, "", "NA"). What a column holds is
what most of its entries are: among whole numbers the text "12 pcs" is a fault, among texts the number 40 is the text
"40". Faults are found per distinct value and come with their reasons, so that rows can be counted and listed.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import os
import sys
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray

Label = int | str

NOTHING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "nat", "<na>"})
SUFFIXES = (".csv", ".csv.gz", ".parquet")


@dataclass(frozen=True, eq=False)
class Column:
    """A column as codes, -1 where there is nothing."""

    name: str
    codes: IntArray
    values: list[Any]

    @property
    def counts(self) -> IntArray:
        """How many entries have each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def spread(self, per_value: Iterable[Any], missing: Any) -> NDArray[Any]:
        """One entry per row of something known per value."""
        return np.array([*per_value, missing])[self.codes]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns that were asked for, by role, and how to name their rows."""

    columns: dict[str, Column]
    rows: IntArray
    """The number of each row: of its line in a text file, counted from 1; of its place elsewhere, counted from 0."""
    unit: str = "row"
    malformed: tuple[int, ...] = ()
    """Places of the rows of a text file that have another number of fields than its header; they hold nothing."""


def read_table(source: Any, roles: Mapping[str, str]) -> Table:
    """The columns `roles[role]` of a path, a DataFrame or a mapping of arrays.

    >>> table = read_table({"stock": [3, 1, 3], "order": ["few", "many", None]}, {"state": "stock", "action": "order"})
    >>> table.columns["state"].values, table.columns["state"].codes.tolist()
    ([1, 3], [1, 0, 1])
    """
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
        if suffix.lower() not in SUFFIXES:
            raise ValueError(f"{path} ends in {suffix!r}, expected one of {', '.join(SUFFIXES)}")
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not a file")
        if suffix.lower() != ".parquet":
            try:
                return _read_text(path, roles)
            except (UnicodeDecodeError, csv.Error) as error:
                raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from None
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{path} is damaged or not compressed by gzip: {error}") from None
        source, where = _import_pandas().read_parquet(path), str(path)
    else:
        where = "the table"
    if isinstance(source, Mapping):
        check_names(roles, source, where)
        columns = {role: from_values(name, source[name]) for role, name in roles.items()}
    else:
        check_names(roles, source.columns, where)
        columns = {role: Column(name, *_factorize(source[name])) for role, name in roles.items()}
    sizes = {column.name: len(column.codes) for column in columns.values()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"columns must have one length, got {sizes}")
    return Table(columns, np.arange(max(sizes.values(), default=0)))


def from_values(name: str, values: Any) -> Column:
    """The column of an array: numbers, texts or objects, of shape (T,) or (T, 1)."""
    array = _checks.as_array(name, values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}, expected one entry per row: (T,) or (T, 1)")
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    distinct, codes = np.unique(array, return_inverse=True)
    return Column(name, codes.astype(np.int64), distinct.tolist())


def check_names(roles: Mapping[str, str], present: Iterable[Any], where: str) -> None:
    """Each role's column must be there, once; the error says which ones are, and the nearest."""
    names = [str(name) for name in present]
    for role, name in roles.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found = ", ".join(names) or "none"
            raise ValueError(f"{role}={name!r}: {where} has no such column, it has {found}{hint}")
        if names.count(name) > 1:
            raise ValueError(f"{role}={name!r}: {where} has {names.count(name)} such columns, which one is not clear")


def meaning(value: Any) -> int | float | str | None:
    """What a value means: a whole number, a fraction, a text, or nothing.

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
            number = float("text" if "_" in text else text)
        except ValueError:
            return text
        return int(number) if number.is_integer() else number
    return text


def labels_of(columns: list[Column], given: tuple[Label, ...] | None = None) -> list[list[tuple[Label | None, str]]]:
    """For each value of each column its label, or `None` and what is wrong with it.

    The columns share their labels, and so one decision: whole numbers or texts. `given` labels decide it for them.
    """
    meanings = [[meaning(value) for value in column.values] for column in columns]
    votes: dict[type, int] = dict.fromkeys((int, float, str, type(None)), 0)
    for column, means in zip(columns, meanings, strict=True):
        for what, count in zip(means, column.counts, strict=True):
            votes[type(what)] += int(count)
    numbers = votes[int] >= votes[float] + votes[str]
    if given is not None:
        numbers = all(isinstance(label, int) for label in given)
    elif not numbers and votes[float] > votes[str]:
        names = " and ".join(column.name for column in columns)
        raise ValueError(f"{names} must hold whole numbers or texts, got mostly fractions: round or bin them first")
    known = None if given is None else set(given)
    return [
        [_judged(value, what, numbers, known) for value, what in zip(column.values, means, strict=True)]
        for column, means in zip(columns, meanings, strict=True)
    ]


def given_labels(name: str, labels: Iterable[Any] | None) -> tuple[Label, ...] | None:
    """The label table that the user hands in: all whole numbers or all texts, none twice."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a sequence of labels, got {labels!r}")
    column = _from_objects(name, list(labels))
    means = [meaning(label) for label in column.values]
    numbers = not any(isinstance(what, str) for what in means)
    judged = [_judged(label, what, numbers, None) for label, what in zip(column.values, means, strict=True)]
    if not judged or len(column.codes) > len(judged) or not all(fault == "" for _, fault in judged):
        raise ValueError(f"{name} must hold whole numbers or texts, at least one, none missing and none twice")
    return tuple(label for label, _ in judged if label is not None)


def moments_of(column: Column) -> FloatArray:
    """A sortable number for each value of a time column, NaN for what is neither a number nor an ISO date."""
    return np.array([_moment(value) for value in column.values], dtype=np.float64)


def _judged(
    value: Any, what: int | float | str | None, numbers: bool, known: set[Label] | None
) -> tuple[Label | None, str]:
    """A value's label, or what is wrong with it."""
    if what is None:
        return None, "is missing"
    if numbers and not isinstance(what, int):
        return None, "is no whole number"
    label: Label = what if isinstance(what, int) and numbers else str(value).strip()
    return (label, "") if known is None or label in known else (None, "is not among the labels given")


def _moment(value: Any) -> float:
    what = meaning(value)
    if not isinstance(what, str):
        return np.nan if what is None or abs(what) > sys.float_info.max else float(what)
    try:
        moment = datetime.fromisoformat(what)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _read_text(path: Path, roles: Mapping[str, str]) -> Table:
    """The columns of a CSV file, separated by commas, semicolons or tabs as its header is. Empty lines are no rows."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=max(",;\t", key=first.count), skipinitialspace=True, strict=True)
        header = [name.strip() for name in next(reader, [])]
        check_names(roles, header, str(path))
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
        except csv.Error as error:  # unless strict, a quote that is not closed swallows rows in silence
            last = lines[-1] if lines else 1
            raise ValueError(f"{path}: the row after line {last} is no CSV, see its quotes: {error}") from None
    columns = {role: _from_objects(name, [row[k] for row in fields]) for k, (role, name) in enumerate(roles.items())}
    return Table(columns, np.array(lines, dtype=np.int64), "line", tuple(malformed))


def _from_objects(name: str, values: Iterable[Any]) -> Column:
    seen: dict[Any, int] = {}
    codes = [seen.setdefault(value, len(seen)) for value in values]
    return Column(name, np.array(codes, dtype=np.int64), list(seen))


def _factorize(series: Any) -> tuple[IntArray, list[Any]]:
    codes, distinct = _import_pandas().factorize(series)
    return codes.astype(np.int64), list(distinct)


def _import_pandas() -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError('tables are read with pandas: pip install "rlfd-gym[logs]"', name="pandas") from None
    return pandas
