"""What the values of a log mean: numbers, texts, dates, or nothing, in the spelling of any country.

A value means a whole number (3, 3.0, "3"), a fraction, a text, or nothing (None, NaN, "", "NA").
Amounts may carry a currency, and groups of three digits: "€ 1.234,50", "$1,234.50", "1 234.50",
"(12.50)" for a negative one.

**Two readings.** "1,500" is 1.5 where the comma is the decimal sign and 1500 elsewhere;
"02/01/2023" is in January where the day comes first and in February elsewhere. Each value of a
column is therefore read both ways (`Readings`). If some values can only be read in one way, such as
"12,5" or "25/12/2023", all values of the column are read in that way, and the report says so. If
values can be read in both ways and mean different things, the column is refused and the error names
the option that settles it. Nothing is guessed.
"""

from __future__ import annotations

import re
import sys
from array import array as growing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from numbers import Integral, Real
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray

PART = 2**16  # rows at a time
REMEMBERED = 2**12  # values whose reading is kept
NOTHING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "nat", "<na>"})
DECIMALS = (".", ",")
DATES = ("day-first", "month-first")
SEPARATORS = (",", ";", "\t", "|")

_CURRENCY = re.compile(r"^(?:[$€£¥₹]|[A-Z]{3}\b|kr\b|Fr\.)|(?:[$€£¥₹]|\b[A-Z]{3}|\bkr|\bFr\.)$")
_BLANKS = " \u00a0\u2009\u202f'’"
_DATE = re.compile(r"^(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})(?:[ T](\d{1,2}:\d{2}(?::\d{2})?))?$")
_YEAR_FIRST = re.compile(r"^(\d{4})[/.-](\d{1,2})[/.-](\d{1,2})(.*)$")
_MONTH = re.compile(r"^\d{4}-\d{2}$")
_NUMBERS = {
    sign: re.compile(
        rf"[+-]?(?:(?:[1-9]\d{{0,2}}(?:{re.escape(group)}\d{{3}})+|[1-9]\d{{0,2}}(?:[{_BLANKS}]\d{{3}})+|\d+)"
        rf"(?:{re.escape(sign)}\d*)?|{re.escape(sign)}\d+)(?:[eE][+-]?\d+)?"
    )
    for sign, group in ((".", ","), (",", "."))
}


@dataclass(frozen=True)
class Dialect:
    """How a text file spells its values; `None` means that the file tells, or it is asked.

    Attributes:
        separator: between fields: ",", ";", a tab or "|". By default, as in the header.
        decimal: the decimal sign, "." or ",".
        dates: "day-first" or "month-first", for dates such as 02/01/2023. ISO dates need nothing.
        encoding: such as "latin-1". By default UTF-8, or UTF-16 if the file begins like that.

    Example:
        >>> Dialect(decimal=",", dates="day-first").number("1.234,50 €")
        1234.5
    """

    separator: str | None = None
    decimal: str | None = None
    dates: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        """Check that the choices exist."""
        for name, known in (("separator", SEPARATORS), ("decimal", DECIMALS), ("dates", DATES)):
            if getattr(self, name) is not None:
                _checks.one_of(name, getattr(self, name), known)
        if self.encoding is not None:
            _checks.instance("encoding", self.encoding, str, 'such as "latin-1"')
            try:
                "".encode(self.encoding)
            except LookupError:
                raise ValueError(f"encoding={self.encoding!r} is not known to Python; try 'latin-1'") from None

    def number(self, text: str) -> float:
        """Return the amount that a text spells; NaN if it is none."""
        return amount(text, self.decimal or ".")


def meaning(value: Any, decimal: str = ".") -> int | float | str | None:
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
            number = amount(text, ",") if decimal == "," and isinstance(value, str) else float(text)
        except ValueError:
            return text
        if np.isnan(number):
            return text
        return int(number) if number.is_integer() else number
    return text


def amount(text: str, decimal: str) -> float:
    """Return the number that a text spells with this decimal sign; NaN if it spells none.

    >>> [amount(text, ",") for text in ("1.234,5", "€ 12", "(3,50)", "1.5")]
    [1234.5, 12.0, -3.5, nan]
    """
    rest = _CURRENCY.sub("", text.strip().replace("−", "-")).strip()
    negative = rest.startswith("(") and rest.endswith(")")
    rest = rest[1:-1].strip() if negative else rest
    if rest.endswith("-"):  # as some accounting programs put it
        negative, rest = True, rest[:-1]
    rest = _CURRENCY.sub("", rest).strip()
    if not _NUMBERS[decimal].fullmatch(rest):
        return np.nan
    for sign in _BLANKS + ("," if decimal == "." else "."):
        rest = rest.replace(sign, "")
    number = float(rest.replace(",", "."))
    return -number if negative else number


class Readings:
    """Reads one number for each row of a column in two ways, until the rows tell which is meant.

    Args:
        name: the name of the column.
        read: returns both readings of a value, which are equal where the value is clear, and NaN
            where it cannot be read in that way.
    """

    def __init__(self, name: str, read: Callable[[Any], tuple[float, float]]) -> None:
        """Start without rows."""
        self.name = name
        self._read = read
        self._known = _Known(read)
        self._examples: dict[str, tuple[Any, int]] = {}

    def extend(self, values: Sequence[Any], numbers: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return both readings of the values of some more rows, which have these numbers."""
        if len(self._known) > REMEMBERED:
            self._known = _Known(self._read)
        places = np.fromiter(map(self._known.__getitem__, values), np.int64, len(values))
        first, second = np.array(self._known.first)[places], np.array(self._known.second)[places]
        lacking = np.isnan(first), np.isnan(second)
        kinds = {
            "first": ~lacking[0] & lacking[1],
            "second": lacking[0] & ~lacking[1],
            "either": ~lacking[0] & ~lacking[1] & (first != second),
        }
        for kind, rows in kinds.items():
            if kind not in self._examples and rows.any():
                place = int(np.argmax(rows))
                self._examples[kind] = values[place], numbers[place]
        if "comma" not in self._examples and kinds["either"].any():
            with_comma = [k for k in np.flatnonzero(kinds["either"]).tolist() if "," in str(values[k])]
            if with_comma:
                self._examples["comma"] = values[with_comma[0]], numbers[with_comma[0]]
        return first, second

    def settled(
        self, chosen: str | None, option: str, names: tuple[str, str], unit: str, sure: bool = True
    ) -> tuple[int, str]:
        """Return which reading is meant, 0 or 1, and a note on it, "" if there was no choice.

        Args:
            chosen: the user's choice, one of `names`, or `None`.
            option: what the choice is called.
            names: what the two readings are called.
            unit: what the numbers of rows count, "line" or "row".
            sure: whether every value that can mean two things needs a choice. Otherwise only those
                with a comma do: "1.500" is read as elsewhere.
        """
        if chosen is not None or not self._examples:
            return names.index(chosen or names[0]), ""
        told = {kind: f"{value!r} ({unit} {row})" for kind, (value, row) in self._examples.items()}
        if "first" in told and "second" in told:
            raise ValueError(
                f"{self.name} mixes two spellings: {told['first']} needs {option}={names[0]!r}, {told['second']} "
                f"needs {option}={names[1]!r}. Correct one of them, or choose: values of the other one are then missing"
            )
        for place, kind in enumerate(("first", "second")):
            if kind in told:
                value = told[kind]
                plain = place == 0 and option == "decimal" and "either" not in told
                return place, "" if plain else f"{self.name}: {option}={names[place]!r}, as in {value}"
        if not sure and "comma" not in told:
            return 0, ""
        kind = "comma" if "comma" in told else "either"
        first, second = self._read(self._examples[kind][0])
        raise ValueError(
            f"{self.name} holds {told[kind]}, which is {_shown(first, option)} with {option}={names[0]!r} and "
            f"{_shown(second, option)} with {option}={names[1]!r}: say which"
        )


class _Known(dict[Any, int]):
    """Values that were read already, as places in two lists of readings."""

    def __init__(self, read: Callable[[Any], tuple[float, float]]) -> None:
        super().__init__()
        self.read, self.first, self.second = read, growing("d"), growing("d")

    def __missing__(self, value: Any) -> int:
        for numbers, number in zip((self.first, self.second), self.read(value), strict=True):
            numbers.append(number)
        self[value] = place = len(self.first) - 1
        return place


def amounts(name: str) -> Readings:
    """Return an empty column of amounts of money or other numbers."""
    return Readings(name, _both_amounts)


def moments(name: str) -> Readings:
    """Return an empty column of times, as sortable numbers."""
    return Readings(name, both_moments)


def _both_amounts(value: Any) -> tuple[float, float]:
    if isinstance(value, str):
        return amount(value, "."), amount(value, ",")
    what = meaning(value)
    number = float(what) if isinstance(what, (int, float)) and abs(what) <= sys.float_info.max else np.nan
    return number, number


def both_moments(value: Any) -> tuple[float, float]:
    """Return a sortable number for a number or a date, with the day first and the month first.

    It is NaN where the value is neither.

    >>> day, month = both_moments("02/01/2023")
    >>> (month - day) / 86400
    30.0
    """
    what = meaning(value)
    if not isinstance(what, str):
        moment = np.nan if what is None or abs(what) > sys.float_info.max else float(what)
        return moment, moment
    if found := _DATE.match(what):
        first, second, year, clock = found.groups()
        year = year if len(year) == 4 else f"20{year}"
        clock = f"T{clock.zfill(5) if clock.count(':') == 1 else clock.zfill(8)}" if clock else ""
        return tuple(  # type: ignore[return-value]
            _iso(f"{year}-{month:0>2}-{day:0>2}{clock}") for day, month in ((first, second), (second, first))
        )
    if found := _YEAR_FIRST.match(what):
        year, month, day, rest = found.groups()
        what = f"{year}-{month:0>2}-{day:0>2}{rest}"
    return (_iso(f"{what}-01" if _MONTH.match(what) else what),) * 2


def _iso(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return np.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


def _shown(number: float, option: str) -> str:
    """Write one reading of a value: a number, or a date."""
    if option == "decimal":
        return f"{number:g}"
    return f"{datetime.fromtimestamp(number, timezone.utc):%d %B %Y}".lstrip("0")
