"""Checks of the arguments that users pass in.

Each check returns the argument in a clean form, or raises an error that names the argument, what
was passed and what was expected.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
T = TypeVar("T")

# How far the sum of probabilities may be from one (float32 tables); they are then normalised.
SUM_TOLERANCE = 1e-6
# How far below zero rounding may put a probability; it is then set to zero.
ROUNDING = 1e-12
# The largest size of a cost, a value or a setting: squares and products of such numbers are finite.
LARGEST = 1e50
LARGEST_INTEGER = 2**63 - 1
# No table has more states or actions, no loop more steps (a week at the fastest kernel's pace), and nothing that
# solves each time is repeated more often: numbers beyond these are mistakes, which would never return.
MOST_STATES = 10**8
MOST_STEPS = 10**13
MOST_TIMES = 10**6
NO_NUMBER = (bool, np.bool_, np.timedelta64)  # although Python or NumPy counts them as integers
MAX = float(np.finfo(np.float64).max)


def numbers(name: str, values: Any) -> FloatArray:
    """Return `values` as a float array, which may hold NaN and infinities.

    Only real numbers are taken. Text is not parsed, complex numbers are not cut, and neither dates
    nor truth values count as numbers.
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values
    array = as_array(name, values)
    if not array.size:
        return np.zeros(array.shape)
    if array.dtype.kind == "O":
        for place, item in enumerate(array.flat):
            if isinstance(item, NO_NUMBER) or not isinstance(item, Real):
                found = f"entry {place} is a {type(item).__name__}" if array.ndim else f"got {type(item).__name__}"
                raise TypeError(f"{name} must be an array of numbers; {found}")
    elif array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be an array of numbers; got {array.dtype}")
    try:
        with np.errstate(over="ignore"):  # of extended precision: an infinity is found by the caller
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be an array of numbers that fit into 64 bits: {error}") from None


def finite_vector(name: str, values: ArrayLike, length: int, per: str, largest: float = LARGEST) -> FloatArray:
    """Return `values` as a finite float vector of the given length, no entry beyond `largest`.

    `per` says what each entry stands for, in error messages.
    """
    vector = numbers(name, values)
    if vector.shape != (length,):
        raise ValueError(f"{name} has shape {vector.shape}, expected ({length},): one entry per {per}")
    return finite(name, vector, largest)


def finite(name: str, array: FloatArray, largest: float = LARGEST) -> FloatArray:
    """Return `array` itself if all its entries are finite and none is beyond `largest`."""
    most = min(largest, MAX)
    if array.size and not (array.min() >= -most and array.max() <= most):  # so that no array is made if all is well
        bad = np.argwhere(~(np.abs(array) <= most))
        where = tuple(bad[0].tolist())
        limit = "" if not np.isfinite(array[where]) else f" and at most {largest:g} in size"
        place = where[0] if len(where) == 1 else where
        raise ValueError(f"{name} must be finite{limit}; entry {place} is {array[where]} ({len(bad)} such entries)")
    return array


def pair_vector(name: str, values: ArrayLike, n_pairs: int, largest: float = LARGEST) -> FloatArray:
    """Return `values` as a finite vector over feasible state-action pairs."""
    return finite_vector(name, values, n_pairs, "feasible state-action pair (mdp.n_pairs)", largest)


def finite_array(name: str, values: ArrayLike) -> FloatArray:
    """Return `values` as a float vector or table.

    A vector must be finite. A table may have gaps: whether they matter is checked where it is
    turned into a vector.
    """
    array = numbers(name, values)
    if array.ndim == 2:
        return array
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} has shape {array.shape}, expected a vector over pairs or a table, not empty")
    return finite(name, array)


def nonnegative(name: str, vector: FloatArray) -> FloatArray:
    """Return `vector` if no entry is below zero; entries that are by rounding (`ROUNDING`) become zero."""
    least = float(vector.min()) if vector.size else 0.0
    if least >= 0:
        return vector
    if least < -ROUNDING:
        raise ValueError(f"{name} must not be negative; entry {int(np.argmin(vector))} is {least}")
    return np.maximum(vector, 0.0)


def distribution(name: str, values: ArrayLike, length: int, per: str) -> FloatArray:
    """Return a probability vector, exactly normalised.

    `values` must be nonnegative and sum to one within `SUM_TOLERANCE`.
    """
    vector = nonnegative(name, finite_vector(name, values, length, per))
    total = vector.sum()
    if abs(total - 1.0) > SUM_TOLERANCE:
        raise ValueError(f"{name} must sum to 1, but it sums to {total}")
    return vector / total


def number(name: str, value: Any, low: float = -LARGEST, high: float = LARGEST, *, open_ends: bool = False) -> float:
    """Return `value` as a float inside [low, high], or (low, high) with `open_ends`.

    An end that is missing or infinite is `LARGEST`.
    """
    if isinstance(value, NO_NUMBER) or not isinstance(value, (Real, np.integer, np.floating)):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}{brief(value)}")
    low, high = max(low, -LARGEST), min(high, LARGEST)
    try:
        result = float(value)
    except OverflowError:
        result = np.inf
    if not (low < result < high if open_ends else low <= result <= high):
        left, right = "()" if open_ends else "[]"
        raise ValueError(f"{name} must be a finite number in {left}{low:g}, {high:g}{right}, got {value!r}")
    return result


def brief(value: Any) -> str:
    """Return ": value" for an error, if it is short; tables of others may warn when they are printed."""
    return f": {value!r}" if isinstance(value, (str, bytes, bool, int, float, complex, np.generic)) else ""


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


def path(name: str, value: Any) -> str:
    """Return the path of a file as text."""
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{name} must be a path, got {type(value).__name__}: {value!r}")
    return os.fspath(value)


def items(name: str, values: Any) -> Sequence[Any]:
    """Return `values` itself if it is a list or a tuple, and not a single item."""
    if not isinstance(values, (list, tuple)):
        shown = f": {values!r}" if isinstance(values, (str, int, float)) else ""  # tables may warn when they are shown
        raise TypeError(f"{name} must be a list, got {type(values).__name__}{shown}")
    return values


def integer(name: str, value: Any, low: int, high: int = LARGEST_INTEGER) -> int:
    """Return `value` as an int between `low` and `high`."""
    if isinstance(value, NO_NUMBER) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}: {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")
    if value > high:
        raise ValueError(f"{name} must be at most {high}, got {value}")
    return int(value)


def generator(name: str, seed: Any) -> np.random.Generator:
    """Return the generator of a seed: an int of any size, a `SeedSequence`, or a generator itself."""
    if isinstance(seed, (np.random.Generator, np.random.SeedSequence)):
        return np.random.default_rng(seed)
    if isinstance(seed, NO_NUMBER) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, a SeedSequence or a Generator, got {type(seed).__name__}")
    if seed < 0:
        raise ValueError(f"{name} must be at least 0, got {seed}")
    return np.random.default_rng(seed)


def flag(name: str, value: Any) -> bool:
    """Return `value` as a bool; other values are not judged by their truth."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}: {value!r}")
    return bool(value)


def integers(name: str, values: ArrayLike) -> IntArray:
    """Return `values` as an int64 array; floats are refused rather than rounded."""
    array = as_array(name, values)
    if array.size == 0:
        return np.zeros(array.shape, dtype=np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold integers, got an array of {array.dtype}")
    if array.dtype == np.uint64 and array.max() > LARGEST_INTEGER:
        raise ValueError(f"{name} holds {array.max()}, which is no index")
    return array.astype(np.int64, copy=False)


def as_array(name: str, values: Any) -> NDArray[Any]:
    """Return `values` as an array of any type, if that loses nothing.

    An array with masked entries is refused, and so are pandas objects whose rows are labelled in
    another way than 0, 1, …: their order would be believed and their labels ignored.
    """
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"{name} has {int(np.ma.getmaskarray(values).sum())} masked entries; fill them in or leave them out"
        )
    if hasattr(values, "iloc") and not isinstance(values, type):
        labels = np.asarray(values.index)
        if not np.array_equal(labels, np.arange(len(labels))):
            raise ValueError(
                f"{name} is a {type(values).__name__} whose index is not 0, 1, 2, …; pass .to_numpy() if its rows are "
                "in the right order whatever their labels"
            )
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise TypeError(f"{name} must be an array, got {type(values).__name__}: {error}") from None


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
    discount = number("discount", value, 0.0, 1.0)
    if discount == 1.0:
        raise ValueError(
            "discount must be below 1, got 1, which needs a finite horizon: rlfd_gym.mdp.over_time(mdp, horizon) makes "
            "tables over (time, state) that are exact for it"
        )
    number("discount", discount, 0.0, 1.0, open_ends=True)
    if 1.0 - discount < 1e-12:
        raise ValueError(f"discount must be at most 1 - 1e-12 in double precision, got {value!r}")
    return discount
