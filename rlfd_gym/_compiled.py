"""How the library compiles its kernels with numba, and how it aligns memory for them.

The kernels do not use fastmath. `error_model="numpy"` makes divisions that have no branch for
raising an error. `forceinline` avoids calls, which would pass every array as several words on the
stack. Importing this module loads numba, so it is only imported where kernels are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

compiled = njit(cache=True, nogil=True, error_model="numpy")
inlined = njit(cache=True, nogil=True, error_model="numpy", forceinline=True)


def aligned(length: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an uninitialised array that begins on a cache line (NumPy promises 16 bytes only)."""
    raw = np.empty(length * dtype.itemsize + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + length * dtype.itemsize].view(dtype)
