"""Labels: the states and actions that values stand for, or what is wrong with a value.

A label is a whole number or a text. The majority of a column's entries decides which of the two
the column holds: among whole numbers the text "12 pcs" is a fault, among texts the number 40 is
the text "40". Faults are found per distinct value and come with their reasons, so that bad rows
can be counted and listed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.logs.columns import Column, column_of_objects

Label = int | str

MISSING = "is missing"


@dataclass(frozen=True, eq=False)
class Labelled:
    """A column with the labels of its values.

    Attributes:
        column: the column.
        labels: the label of each of its values; `None` for a faulty value.
        faults: for each value, what is wrong with it; "" if nothing is.
    """

    column: Column
    labels: list[Label | None]
    faults: list[str]

    def kinds_of_fault(self) -> list[str]:
        """Return what is wrong with values of this column; "is missing" always comes first."""
        return list(dict.fromkeys([MISSING, *(fault for fault in self.faults if fault)]))

    def rows_with(self, fault: str) -> NDArray[np.bool_]:
        """Return which rows have a value with this fault."""
        return self.column.spread([found == fault for found in self.faults], fault == MISSING)

    def negative_rows(self) -> NDArray[np.bool_]:
        """Return which rows have a negative number as their label."""
        return self.column.spread([isinstance(label, int) and label < 0 for label in self.labels], False)

    def labels_in(self, rows: NDArray[np.bool_]) -> set[Label | None]:
        """Return the labels that occur in the given rows."""
        return {self.labels[code] for code in np.unique(self.column.codes[rows])}

    def numbers(self, places: Mapping[Label | None, int]) -> IntArray:
        """Return the place of each row's label; -1 where the row has none."""
        return self.column.spread([places.get(label, -1) for label in self.labels], -1)


def label_columns(columns: list[Column], given: tuple[Label, ...] | None = None) -> list[Labelled]:
    """Label the values of columns that share their labels, such as states and next states.

    Whether they hold whole numbers or texts is decided for all of them together, by the `given`
    labels if there are any.

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
    known = None if given is None else set(given)
    return [_label(column, means, numbers, known) for column, means in zip(columns, meanings, strict=True)]


def given_labels(name: str, labels: Iterable[Any] | None) -> tuple[Label, ...] | None:
    """Check the labels that the user gives: all whole numbers or all texts, none twice."""
    if labels is None:
        return None
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise TypeError(f"{name} must be a sequence of labels, got {labels!r}")
    column = column_of_objects(name, list(labels))
    means = column.meanings()
    found = _label(column, means, not any(isinstance(what, str) for what in means), None)
    if not column.values or len(column.codes) > len(column.values) or any(found.faults):
        raise ValueError(f"{name} must hold whole numbers or texts, at least one, none missing and none twice")
    return tuple(label for label in found.labels if label is not None)


def _label(column: Column, means: list[int | float | str | None], numbers: bool, known: set[Label] | None) -> Labelled:
    """Label the values of a column of numbers or texts; only known labels are valid, if given."""
    judged = [_judge(value, what, numbers, known) for value, what in zip(column.values, means, strict=True)]
    return Labelled(column, [label for label, _ in judged], [fault for _, fault in judged])


def _judge(
    value: Any, what: int | float | str | None, numbers: bool, known: set[Label] | None
) -> tuple[Label | None, str]:
    """Return a value's label, or `None` and what is wrong with it."""
    if what is None:
        return None, MISSING
    if numbers and not isinstance(what, int):
        return None, "is no whole number"
    label: Label = what if isinstance(what, int) and numbers else str(value).strip()
    return (label, "") if known is None or label in known else (None, "is not among the labels given")
