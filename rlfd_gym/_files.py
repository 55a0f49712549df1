"""Files that are either complete or absent, and that hold no code.

Arrays are stored in an npz file with a JSON header.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

HEADER = "header"


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` once it is written completely.

    If writing fails, nothing is left behind.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file completely or not at all, and make its folders."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


def save_arrays(
    path: str | os.PathLike[str], kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and a header that says what they are."""
    # `tolist` turns NumPy's numbers and arrays into Python's.
    text = json.dumps({"format": kind, "version": version, **header}, default=lambda value: value.tolist())
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **{HEADER: np.array(text)}, **arrays)


def load_arrays(
    path: str | os.PathLike[str], kind: str, version: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return (header, arrays) of a file written by `save_arrays`, executing nothing in it."""
    with open(path, "rb") as file:
        try:
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            arrays = {name: archive[name] for name in archive.files}
            header = json.loads(str(arrays.pop(HEADER)))
            found, number = header["format"], header["version"]
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(f"{path} is damaged or no {kind} file ({type(error).__name__}: {error})") from error
    if found != kind:
        raise ValueError(f"{path} is a {found!r} file, expected {kind!r}")
    if not isinstance(number, int) or number > version:
        raise ValueError(f"{path} has version {number!r}, this rlfd_gym reads up to {version}; a newer one wrote it")
    return header, arrays
