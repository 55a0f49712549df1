"""How the library compiles its kernels with numba, and how it aligns memory for them.

The kernels do not use fastmath. `error_model="numpy"` makes divisions that have no branch for
raising an error. `forceinline` avoids calls, which would pass every array as several words on the
stack. Importing this module loads numba, so it is only imported where kernels are needed. Where
numba can write no cache, kernels are compiled without one.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel, and keeps the compiled code where it can."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # numba found no folder that it can write to
            _warn_of_no_cache()
            return njit(nogil=True, **options)(function)

    return decorate


compiled = cached(error_model="numpy")
inlined = cached(error_model="numpy", forceinline=True)


@functools.cache
def _warn_of_no_cache() -> None:
    """Say it once in a process, of which it is a fact; no solve is to blame."""
    warnings.warn(
        "compiled kernels cannot be kept, because neither the folder of rlfd_gym nor the home can be written to: every "
        "process compiles them anew, which takes up to a minute; set NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=2,
    )


def aligned(length: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an uninitialised array that begins on a cache line (NumPy promises 16 bytes only)."""
    raw = np.empty(length * dtype.itemsize + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + length * dtype.itemsize].view(dtype)
