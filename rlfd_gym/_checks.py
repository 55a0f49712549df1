"""Checks of the arguments that users pass in.

Each check returns the argument in a clean form, or raises an error that names the argument, what
was passed and what was expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
T = TypeVar("T")

# How far the sum of probabilities may be from one (float32 tables); they are then normalised.
SUM_TOLERANCE = 1e-6


def finite_vector(name: str, values: ArrayLike, length: int, per: str) -> FloatArray:
    """Return `values` as a finite float vector of the given length.

    `per` says what each entry stands for, in error messages.
    """
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be an array of {length} numbers, one entry per {per}; got {type(values).__name__} ({error})"
        ) from None
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}, expected ({length},): one entry per {per}")
    bad = np.flatnonzero(~np.isfinite(vector))
    if bad.size:
        raise ValueError(f"{name} must be finite; entry {bad[0]} is {vector[bad[0]]} ({bad.size} such entries)")
    return vector


def pair_vector(name: str, values: ArrayLike, n_pairs: int) -> FloatArray:
    """Return `values` as a finite vector over feasible state-action pairs."""
    return finite_vector(name, values, n_pairs, "feasible state-action pair (mdp.n_pairs)")


def finite_array(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as a float vector or table.

    A vector must be finite. A table may have gaps: whether they matter is checked where it is
    turned into a vector.
    """
    array = as_array(name, values, np.float64)
    if array.ndim == 2:
        return array
    return finite_vector(name, array, array.size, "feasible state-action pair (mdp.n_pairs)")


def nonnegative(name: str, vector: FloatArray) -> FloatArray:
    """Return `vector` itself if no entry is below zero, or raise an error."""
    worst = int(np.argmin(vector)) if vector.size else 0
    if vector.size and vector[worst] < 0:
        raise ValueError(f"{name} must not be negative; entry {worst} is {vector[worst]}")
    return vector


def distribution(name: str, values: ArrayLike, length: int, per: str) -> FloatArray:
    """Return a probability vector, exactly normalised.

    `values` must be nonnegative and sum to one within `SUM_TOLERANCE`.
    """
    vector = nonnegative(name, finite_vector(name, values, length, per))
    total = vector.sum()
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, but it sums to {total}")
    return vector / total


def number(name: str, value: Any, low: float = -np.inf, high: float = np.inf, *, open_ends: bool = False) -> float:
    """Return `value` as a float inside [low, high], or (low, high) with `open_ends`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (Real, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}: {value!r}")
    result = float(value)
    inside = low < result < high if open_ends else low <= result <= high
    if not inside or not np.isfinite(result):
        left, right = "()" if open_ends else "[]"
        raise ValueError(f"{name} must be a finite number in {left}{low:g}, {high:g}{right}, got {value!r}")
    return result


def one_of(name: str, value: Any, known: Iterable[str]) -> str:
    """Return `value` itself if it is a known name; the error suggests the nearest one."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        near = difflib.get_close_matches(str(value), names, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} must be one of {', '.join(names)}; got {value!r}{hint}")
    return value


def instance(name: str, value: Any, kind: type[T], hint: str = "") -> T:
    """Return `value` itself if it is of the given class, or raise a `TypeError`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIORaeio" else "a"
        raise TypeError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}{hint and f'; {hint}'}")
    return value


def integer(name: str, value: Any, low: int) -> int:
    """Return `value` as an int of at least `low`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}: {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    return int(value)


def integers(name: str, values: ArrayLike) -> IntArray:
    """Return `values` as an int64 array; floats are refused rather than rounded."""
    array = as_array(name, values)
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got an array of {array.dtype}")
    if array.dtype == np.uint64 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} holds {array.max()}, which is no index")
    return array.astype(np.int64, copy=False)


def as_array(name: str, values: Any, dtype: Any = None) -> NDArray[Any]:
    """Return `values` as an array; the error for ragged or non-numeric input gives the name."""
    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be an array: {error}") from None


class Locked:
    """The base of frozen dataclasses whose arrays cannot be written to, also after unpickling."""

    def _fill(self, **values: Any) -> None:
        """Set the fields, and make their arrays read-only: those of sparse matrices, too."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
            sparse = getattr(value, "format", None) == "csr"
            for array in (value.data, value.indices, value.indptr) if sparse else (value,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the fields: unpickling makes their arrays writeable."""
        self._fill(**state)


def discount_factor(value: Any) -> float:
    """Return the discount γ, strictly between 0 and 1 and at most 1 - 1e-12."""
    discount = number("discount", value, 0.0, 1.0, open_ends=True)
    if 1.0 - discount < 1e-12:
        raise ValueError(f"discount must be at most 1 - 1e-12 in double precision, got {value!r}")
    return discount
