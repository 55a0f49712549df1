"""Labels: the states and actions that values stand for, or what is wrong with a value.

A label is a whole number or a text. The majority of a column's entries decides which of the two
the column holds: among whole numbers the text "12 pcs" is a fault, among texts the number 40 is
the text "40". Faults are found per distinct value and come with their reasons, so that bad rows
can be counted and listed.

Whole numbers may be spelled in several ways: 3, 3.0 and "3" are one label. Leading zeros are
different: who writes "01" may mean the number 1, or a code that is not the "1" of another row. Where
both occur among whole numbers, the columns are refused and both spellings are named. Among texts
they are two labels, like any two texts.

Numbers above 2⁵³, which floats cannot tell apart, are faults: nobody has 10²⁵ of anything on a shelf.

Texts that differ only in case and blanks, "Empty" and "empty ", may be folded into one label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym.experts.logs.columns import Codes, Column, column_of_objects

Label = int | str

MISSING = "is missing"
LARGEST = 2**53  # beyond, floats are not exact, and a number is a mistake or a code


@dataclass(frozen=True, eq=False)
class Labelled:
    """A column with the labels of its values.

    Attributes:
        column: the column.
        labels: the label of each of its values; `None` for a faulty value.
        faults: for each value, what is wrong with it; "" if nothing is.
        notes: which texts were taken for spellings of one label.
    """

    column: Column
    labels: list[Label | None]
    faults: list[str]
    notes: tuple[str, ...] = ()

    def kinds_of_fault(self) -> list[str]:
        """Return what is wrong with values of this column; "is missing" always comes first."""
        return list(dict.fromkeys([MISSING, *(fault for fault in self.faults if fault)]))

    def rows_with(self, fault: str) -> NDArray[np.bool_]:
        """Return which rows have a value with this fault."""
        return self.column.spread([found == fault for found in self.faults], fault == MISSING)

    def negative_rows(self) -> NDArray[np.bool_]:
        """Return which rows have a negative number as their label."""
        return self.column.spread([isinstance(label, int) and label < 0 for label in self.labels], False)

    def numbers(self, places: Mapping[Label | None, int]) -> Codes:
        """Return the place of each row's label; -1 where the row has none."""
        return self.column.spread([places.get(label, -1) for label in self.labels], -1, np.int32)


def label_columns(
    columns: list[Column], given: tuple[Label, ...] | None = None, *, fold: bool = False
) -> list[Labelled]:
    """Label the values of columns that share their labels, such as states and next states.

    Whether they hold whole numbers or texts is decided for all of them together, by the `given`
    labels if there are any. With `fold`, texts that differ only in upper and lower case or in
    blanks are one label, in its most frequent spelling or the given one.

    >>> (column,) = label_columns([column_of_objects("stock", [3, "3.0", "12 pcs", None, 5])])
    >>> column.labels, column.faults
    ([3, 3, None, None, 5], ['', '', 'is no whole number', 'is missing', ''])
    """
    meanings = [column.meanings() for column in columns]
    votes: Counter[type] = Counter()
    for column, means in zip(columns, meanings, strict=True):
        for what, count in zip(means, column.counts, strict=True):
            votes[type(what)] += int(count)
    numbers = votes[int] >= votes[float] + votes[str]
    if given is not None:
        numbers = all(isinstance(label, int) for label in given)
    elif not numbers and votes[float] > votes[str]:
        names = " and ".join(column.name for column in columns)
        raise ValueError(f"{names} must hold whole numbers or texts, got mostly fractions: round or bin them first")
    if numbers:
        check_spelling(columns)
    known = None if given is None else set(given)
    spelling, notes = _spellings(columns, meanings, given) if fold and not numbers else ({}, ())
    labelled = [
        _label(column, means, numbers, known, spelling) for column, means in zip(columns, meanings, strict=True)
    ]
    return [replace(labelled[0], notes=notes), *labelled[1:]]


def folded(text: str) -> str:
    """Return what texts have in common that differ only in case and blanks.

    >>> folded(" Half  FULL ")
    'half full'
    """
    return " ".join(text.split()).casefold()


def _spellings(
    columns: list[Column], meanings: list[list[int | float | str | None]], given: tuple[Label, ...] | None
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the label of each text that is spelled unlike its label, and a note on each label."""
    counts: dict[str, Counter[str]] = {}
    for column, means in zip(columns, meanings, strict=True):
        for value, what, count in zip(column.values, means, column.counts, strict=True):
            if what is not None:
                text = str(value).strip()
                counts.setdefault(folded(text), Counter())[text] += int(count)
    chosen = {folded(str(label)): str(label) for label in reversed(given or ())}
    exact = set(map(str, given or ()))
    spelling: dict[str, str] = {}
    notes: list[str] = []
    for key, found in counts.items():
        label = chosen.get(key, found.most_common(1)[0][0])
        others = [text for text in found if text not in {label, *exact}]
        if others:
            spelling |= dict.fromkeys(others, label)
            notes.append(f"{columns[0].name}: {', '.join(map(repr, others))} read as {label!r}")
    return spelling, tuple(notes)


def given_labels(name: str, labels: Iterable[Any] | None) -> tuple[Label, ...] | None:
    """Check the labels that the user gives: all whole numbers or all texts, none twice."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a sequence of labels, got {labels!r}")
    column = column_of_objects(name, list(labels))
    means = column.meanings()
    numbers = not any(isinstance(what, str) for what in means)
    if numbers:
        check_spelling([column])
    found = _label(column, means, numbers, None, {})
    if not column.values or len(column.codes) > len(set(found.labels)) or any(found.faults):
        raise ValueError(f"{name} must hold whole numbers or texts, at least one, none missing and none twice")
    return tuple(label for label in found.labels if label is not None)


def check_spelling(columns: list[Column]) -> None:
    """Refuse columns in which a whole number is spelled with and without leading zeros."""
    spelled: dict[int, Any] = {}
    for column in columns:
        for value, what in zip(column.values, column.meanings(), strict=True):
            if not isinstance(what, int):
                continue
            first = spelled.setdefault(what, value)
            if _leading_zeros(first) != _leading_zeros(value):
                names = " and ".join(dict.fromkeys(column.name for column in columns))
                raise ValueError(
                    f"{names} must spell a number in one way, got {first!r} and {value!r}: drop the leading zeros if "
                    f"both mean {what}, or put a letter before them if they are different codes"
                )


def _leading_zeros(value: Any) -> int:
    digits = str(value).strip().lstrip("+-")
    return len(digits) - len(digits.lstrip("0")) if digits[1:2].isdecimal() else 0


def _label(
    column: Column,
    means: list[int | float | str | None],
    numbers: bool,
    known: set[Label] | None,
    spelling: Mapping[str, str],
) -> Labelled:
    """Label the values of a column of numbers or texts; only known labels are valid, if given."""
    judged = [_judge(value, what, numbers, known, spelling) for value, what in zip(column.values, means, strict=True)]
    return Labelled(column, [label for label, _ in judged], [fault for _, fault in judged])


def _judge(
    value: Any, what: int | float | str | None, numbers: bool, known: set[Label] | None, spelling: Mapping[str, str]
) -> tuple[Label | None, str]:
    """Return a value's label, or `None` and what is wrong with it."""
    if what is None:
        return None, MISSING
    if numbers and not isinstance(what, int):
        return None, "is no whole number"
    if numbers and isinstance(what, int) and abs(what) > LARGEST:
        return None, "is too large a number"
    text = str(value).strip()
    label: Label = what if isinstance(what, int) and numbers else spelling.get(text, text)
    return (label, "") if known is None or label in known else (None, "is not among the labels given")
