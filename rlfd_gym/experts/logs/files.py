"""Logs in files: CSV in the spelling of any spreadsheet, compressed or not, and parquet.

Files are read in parts of `columns.PART` rows, and beyond `columns.HELD` rows a temporary file holds
what was asked for (about a hundred bytes a row on disk at the most). Memory holds a chunk of the rows,
the distinct values and what is counted. Ten million rows of 10,000 shops take 41 s of the processor, and
the process 168 MB at its peak, a million rows 171 MB (`python scripts/benchmark.py --only logs`).

A CSV file may have a byte order mark, Excel's first line `sep=;`, and fields separated by commas,
semicolons, tabs or bars: the header tells. Rows with another number of fields than the header hold
nothing, and are reported. UTF-8 is expected; whatever else it is written in has to be named.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

from rlfd_gym._files import unguarded
from rlfd_gym._install import command
from rlfd_gym.experts.logs import columns
from rlfd_gym.experts.logs.columns import check_names
from rlfd_gym.experts.logs.records import Builder, Rawlog
from rlfd_gym.experts.logs.values import SEPARATORS, Dialect

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet")
MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
AT_ONCE = 2**9  # rows that are held as Python objects
_SEP = re.compile(r"^sep=(.)\s*$", re.IGNORECASE)


def read_file(
    source: str | os.PathLike[str],
    roles: Mapping[str, str],
    amounts: Sequence[str] = (),
    dialect: Dialect | None = None,
) -> Rawlog:
    """Read the columns `roles[role]` of a file, and the columns `amounts` as numbers."""
    path, spoken = Path(source), dialect or Dialect()
    if _kind_of(path) == ".parquet":
        return _read_parquet(path, roles, amounts, spoken)
    return _in_text(path, spoken, lambda file: _read_rows(file, path, roles, amounts, spoken))


def names_in_file(source: str | os.PathLike[str], dialect: Dialect | None = None) -> list[str]:
    """Return the names of a file's columns."""
    path, spoken = Path(source), dialect or Dialect()
    if _kind_of(path) == ".parquet":
        return list(_parquet(path).schema_arrow.names)
    return _in_text(path, spoken, lambda file: _header(file, spoken)[1])


def _kind_of(path: Path) -> str:
    """Return the kind of file that a path names, one of `SUFFIXES`."""
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    if suffix.lower() not in SUFFIXES:
        raise ValueError(f"{path} ends in {suffix!r}, expected one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not a file")
    return suffix.lower()


def _in_text(path: Path, dialect: Dialect, act: Callable[[IO[str]], Any]) -> Any:
    """Open a text file, compressed or not, and act on it; errors name the file."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as bytes_:
            start = bytes_.read(4)
        encoding = dialect.encoding or next((name for mark, name in MARKS if start.startswith(mark)), "utf-8-sig")
        with opened(path, "rt", encoding=encoding, newline="") as file:
            return act(file)
    except UnicodeDecodeError as error:
        line, byte = _undecodable(path, error.encoding)
        raise ValueError(
            f"{path} is no CSV file in {error.encoding.upper()}: line {line} holds the byte {byte}. If a spreadsheet "
            "wrote it, give encoding='latin-1' or 'cp1252'"
        ) from None
    except csv.Error as error:
        raise ValueError(f"{path} is no CSV file in UTF-8: {error}") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged or not compressed by gzip: {error}") from None


def _undecodable(path: Path, encoding: str) -> tuple[int, str]:
    """Return the first line that cannot be decoded, counted from 1, and its first bad byte."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                return number, f"0x{line[error.start]:02x}"
    return 1, "at its end"


def _header(file: IO[str], dialect: Dialect) -> tuple[Any, list[str], str, int]:
    """Return a reader of the rows, the names of the columns, the separator, and the lines before."""
    first = file.readline()
    said = _SEP.match(first)
    names = first if said is None else file.readline()
    file.seek(0)
    if said is not None:
        file.readline()
    separator = dialect.separator or (said and said.group(1)) or max(SEPARATORS, key=names.count)
    reader = csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True)
    return reader, [unguarded(name.strip()) for name in next(reader, [])], separator, int(said is not None)


def _read_rows(file: IO[str], path: Path, roles: Mapping[str, str], amounts: Sequence[str], dialect: Dialect) -> Rawlog:
    """Read rows whose fields are separated as in their header. Empty lines are skipped."""
    reader, header, separator, before = _header(file, dialect)
    check_names(roles, amounts, header, str(path))
    builder = Builder(roles, amounts, "line")
    places = {name: header.index(name) for name in builder.names}
    lines, nothing, last = list[int](), [None] * len(header), 1
    try:
        for rows in _parts(reader, lines):
            bad = [k for k, row in enumerate(rows) if len(row) != len(header)]
            for k in bad:
                rows[k] = nothing
            fields = list(zip(*rows, strict=True))
            numbers = [line + before for line in lines] if before else lines
            builder.extend({name: fields[place] for name, place in places.items()}, numbers, bad)
            last = lines[-1]
            lines.clear()
    except csv.Error as error:  # unless strict, an unclosed quote silently swallows rows
        last = lines[-1] if lines else last
        raise ValueError(f"{path}: the row after line {last} is no CSV, see its quotes: {error}") from None
    return builder.log(Dialect(separator, dialect.decimal, dialect.dates, dialect.encoding), _unguarded)


def _parts(reader: Any, lines: list[int]) -> Iterator[list[list[Any]]]:
    """Return the rows that are not empty, a part at a time, and note the line of each."""

    def counted() -> Iterator[list[Any]]:
        for row in reader:
            if row:
                lines.append(reader.line_num)
                yield row

    rows = counted()
    while part := list(islice(rows, min(columns.PART, AT_ONCE))):
        yield part


def _unguarded(value: Any) -> Any:
    """Return a value without the apostrophe that `write_csv` puts before formulas."""
    return unguarded(value) if isinstance(value, str) else value


def _parquet(path: Path) -> Any:
    """Open a parquet file; errors name it."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ImportError(f"parquet is read with pyarrow: {command('logs')}", name="pyarrow") from None
    try:
        return parquet.ParquetFile(path)
    except ArrowException as error:
        raise ValueError(f"{path} is damaged or no parquet file: {error}") from None


def _read_parquet(path: Path, roles: Mapping[str, str], amounts: Sequence[str], dialect: Dialect) -> Rawlog:
    """Read the columns of a parquet file, a batch at a time."""
    file = _parquet(path)
    from pyarrow import ArrowException

    check_names(roles, amounts, file.schema_arrow.names, str(path))
    builder = Builder(roles, amounts)
    try:
        for batch in file.iter_batches(columns.PART, columns=list(builder.names)):
            builder.extend({name: _values(batch.column(name)) for name in builder.names})
    except ArrowException as error:
        raise ValueError(f"{path} is damaged or no parquet file: {error}") from None
    return builder.log(dialect)


def _values(array: Any) -> list[Any]:
    """Return the values of an Arrow array; times to the microsecond, as Python has them."""
    from pyarrow import types

    if types.is_timestamp(array.type) and array.type.unit == "ns":
        from pyarrow import timestamp

        array = array.cast(timestamp("us", array.type.tz), safe=False)
    return array.to_pylist()
