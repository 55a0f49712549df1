"""Rows of fixed width, kept in blocks: in memory while they are few, then in a temporary file.

The file lies in Python's folder for such files (`tempfile`, the variable TMPDIR) and has no name: it is
gone with the last thing that uses it, also after a crash.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym.experts.logs import columns

Records = NDArray[np.void]


class Spool:
    """Blocks of rows, on disk once they have more than `columns.HELD` rows in all.

    Args:
        dtype: of a row.

    Example:
        >>> spool = Spool(np.dtype([("state", np.int32)]))
        >>> [spool.add(np.array([(state,)] * 2, spool.dtype)) for state in (7, 8)]
        [0, 1]
        >>> spool.n_rows, spool.load(1)["state"].tolist()
        (4, [8, 8])
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        """Start without rows."""
        self.dtype, self.n_rows = dtype, 0
        self._held: list[Records] = []
        self._places: list[tuple[int, int]] = []  # the first row and the number of rows of each block
        self._file: IO[bytes] | None = None

    def add(self, rows: Records) -> int:
        """Keep some more rows, and return the number of their block."""
        self._places.append((self.n_rows, len(rows)))
        self.n_rows += len(rows)
        self._held.append(rows)
        if self._file is None and self.n_rows > columns.HELD:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 it lives as long as the rows
            weakref.finalize(self, self._file.close)
        if self._file is not None:
            self._file.seek(0, 2)
            for block in self._held:
                self._file.write(block.tobytes())
            self._held.clear()
        return len(self._places) - 1

    def load(self, block: int) -> Records:
        """Return the rows of a block."""
        if self._file is None:
            return self._held[block]
        start, length = self._places[block]
        self._file.seek(start * self.dtype.itemsize)
        return np.frombuffer(self._file.read(length * self.dtype.itemsize), self.dtype)

    def together(self, blocks: Iterable[int]) -> Records:
        """Return the rows of some blocks, one after the other."""
        found = [self.load(block) for block in blocks]
        return np.concatenate(found) if found else np.zeros(0, self.dtype)

    def clear(self) -> None:
        """Forget all rows, and free their memory or disk."""
        if self._file is not None:
            self._file.close()
        self._held, self._places, self._file, self.n_rows = [], [], None, 0

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self._places)

    def __iter__(self) -> Iterator[Records]:
        """Return the rows, a block at a time."""
        return map(self.load, range(len(self)))


def in_file(parts: Iterable[Sequence[NDArray[np.int64]]], n_columns: int, n_rows: int) -> list[NDArray[np.int64]]:
    """Return columns of whole numbers that come in parts; read from a file when used, if they are long."""
    if n_rows <= columns.HELD:
        return [np.concatenate(column) for column in zip(*parts, strict=True)]
    width, done = np.dtype(np.int64).itemsize, 0
    with tempfile.TemporaryFile() as file:
        for part in parts:
            for k, column in enumerate(part):
                file.seek((k * n_rows + done) * width)
                file.write(column.astype(np.int64).tobytes())
            done += len(part[0])
        file.flush()
        return list(np.asarray(np.memmap(file, np.int64, "r", shape=(n_columns, n_rows))))
