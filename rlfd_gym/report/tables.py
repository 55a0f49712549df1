"""Tables of results: CSV files, and the interval of a mean.

**Intervals** are Student's: for the mean of n independent values with the sample standard
deviation s, the interval is mean ± t_{0.975, n-1} s/√n. A single value has none.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._files import check_folder, guarded, unguarded, write

__all__ = ["check_folder", "half_width", "mean_and_margin", "read_csv", "write", "write_csv"]

CONFIDENCE = 0.95


def write_csv(
    path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Iterable[Any]], digits: int | None = None
) -> None:
    """Write a CSV file, completely or not at all; missing folders are created.

    Floats are written with `digits` significant digits; by default, with as many as are needed to
    read the same numbers back. A text that a spreadsheet would run as a formula begins with an
    apostrophe in the file; `read_csv`, `read_log` and `read_costs` take it away again.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "rows.csv")
        ...     write_csv(path, ["name", "gap"], [["=formula", 0.123456]], digits=3)
        ...     print(path.read_text(), end="")
        name,gap
        '=formula,0.123
    """
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(map(guarded, header))
    for row in rows:
        lines.writerow(f"{x:.{digits}g}" if digits is not None and isinstance(x, float) else guarded(x) for x in row)
    write(path, text.getvalue().encode())


def read_csv(path: str | os.PathLike[str]) -> tuple[list[str], list[list[str]]]:
    """Return (header, rows) of a file that `write_csv` has written, as texts.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_csv(f"{folder}/rows.csv", ["a", "b"], [[1, "=x"]])
        ...     read_csv(f"{folder}/rows.csv")
        (['a', 'b'], [['1', '=x']])
    """
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = ([unguarded(text) for text in row] for row in csv.reader(file))
    return header, rows


def mean_and_margin(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean, and the half-width of its 95% interval if there are several values.

    >>> mean, margin = mean_and_margin([1.0, 3.0])
    >>> mean, round(margin, 2)
    (2.0, 12.71)
    >>> mean_and_margin([1.0])
    (1.0, None)
    """
    x = _checks.numbers("values", values)
    _checks.finite_vector("values", x, max(1, x.size), "value")
    return float(x.mean()), float(half_width(x.std(ddof=1), len(x))) if len(x) > 1 else None


def half_width(std: ArrayLike, n: int, ddof: int = 1) -> Any:
    """Return the half-width of the 95% interval of a mean of n values; `nan` for a single value.

    `std` is the standard deviation of the values, or an array of standard deviations, computed
    with the divisor n - `ddof` as in NumPy.

    Example:
        >>> round(float(half_width(1.0, n=20)), 3)
        0.468
    """
    from scipy.stats import t as student  # takes half a second to import

    spread = _checks.finite("std", _checks.numbers("std", std))
    _checks.integer("ddof", ddof, 0, 1)
    if _checks.integer("n", n, 1) < 2:
        return spread * np.nan
    return student.ppf(0.5 + CONFIDENCE / 2, n - 1) * spread / np.sqrt(n - 1 + ddof)
