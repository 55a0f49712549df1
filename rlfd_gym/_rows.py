"""Compiled kernels that go through the rows of a sparse matrix: how they take one, and how threads share its rows.

A kernel takes the arrays of a CSR matrix as `rows_of` returns them. Its indices are unsigned, and so are the counters:
for signed ones the compiled code would look at each whether it counts from the end, which takes as long as the
arithmetic. Its last arguments are the first and the last row to work on, and it computes every row in the same way
whatever the parts are, so that no result depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from rlfd_gym._compiled import CONFIG, inlined

ONE = np.uint64(1)  # Python's 1 would make a sum with an unsigned number a float
LEAST_SHARED = 1_000_000  # entries that a kernel passes, from which on sharing them is worth it


def rows_of(matrix: Any) -> tuple[Any, Any, Any]:
    """Return the arrays of a CSR matrix as kernels take them."""
    starts = np.asarray(matrix.indptr, dtype=np.int64).view(np.uint64)
    return matrix.data, np.asarray(matrix.indices, dtype=np.int32).view(np.uint32), starts


@inlined
def row_times(data: Any, indices: Any, k: Any, end: Any, x: Any) -> Any:
    """Return the product of the row that has the entries from k to end with a vector."""
    total = data.dtype.type(0)
    while k < end:
        total += data[k] * x[indices[k]]
        k += ONE
    return total


class Threads:
    """As many threads as numba may use, from when they are first needed until this object is deleted."""

    @cached_property
    def pool(self) -> ThreadPoolExecutor:
        """The threads."""
        return ThreadPoolExecutor(CONFIG.NUMBA_NUM_THREADS)

    def share(self, kernel: Callable[..., Any], arguments: tuple[Any, ...], n_rows: int, entries: int) -> list[Any]:
        """Run a kernel that passes so many entries, and return its results for each part of the rows."""
        if not is_shared(entries):
            return [kernel(*arguments, 0, n_rows)]
        cuts = np.linspace(0, n_rows, CONFIG.NUMBA_NUM_THREADS + 1).astype(int).tolist()
        return list(self.pool.map(lambda part: kernel(*arguments, *part), pairwise(cuts)))


def is_shared(entries: int) -> bool:
    """Return whether sharing a kernel that passes so many entries is worth it."""
    return entries >= LEAST_SHARED and CONFIG.NUMBA_NUM_THREADS > 1
