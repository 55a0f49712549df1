"""How the library compiles its kernels with numba, and how it aligns memory for them.

| decorator | for |
|---|---|
| `compiled` | kernels, whose memory all comes from their callers |
| `allocating` | kernels that make arrays of their own |
| `inlined` | parts of kernels; called from Python they are plain Python |

The kernels do not use fastmath. `error_model="numpy"` makes divisions that have no branch for
raising an error. Parts are inlined, because a call would pass every array as several words on the stack.

**Compilation** is what the first use on a machine waits for. So numba counts no references where
nothing is allocated (`_nrt`), makes no entries for C, and for parts none for Python either, and only
whole kernels are kept. Importing this module loads numba, so it is only imported where kernels are
needed.

**Where compiled code is kept.** Numba would put it next to the sources, where an uninstallation does
not find it and leaves a folder behind that Python takes for a package. So it is kept in the user's
cache, `~/.cache/rlfd_gym` or below `XDG_CACHE_HOME` (on Windows, `LOCALAPPDATA`), or else in a folder
of the user's own among the temporary files; numba gives each version of each source its own files
there, and replaces a file whole, so that processes may share them. `NUMBA_CACHE_DIR` comes before
both. Where the folder cannot be written to, kernels are compiled without a cache.
"""

from __future__ import annotations

import functools
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from numba import njit
from numba.extending import register_jitable

CONFIG: Any = numba.config  # its settings are made at run time
_choosing = threading.Lock()


def cached(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel, and keeps the compiled code where it can."""
    options = {"nogil": True, "no_cfunc_wrapper": True, **options}

    def decorate(function: Callable[..., Any]) -> Any:
        with _choosing:  # numba reads its setting when it is asked to cache, and here alone
            theirs = CONFIG.CACHE_DIR
            ours = _cache_folder(theirs)
            if ours is not None:
                CONFIG.CACHE_DIR = ours
                try:
                    return njit(cache=True, **options)(function)
                finally:
                    CONFIG.CACHE_DIR = theirs
        _warn_of_no_cache()
        return njit(**options)(function)

    return decorate


allocating = cached(error_model="numpy")
compiled = cached(error_model="numpy", _nrt=False)
inlined = register_jitable(
    error_model="numpy", forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False
)


@functools.cache
def _cache_folder(chosen: str) -> str | None:
    """Return the folder to keep compiled code in, the one `chosen` by the user if there is one; `None` for none."""
    return next(filter(_can_be_written, [chosen] if chosen else _folders()), None)


def _folders() -> Iterator[str]:
    """Return the folders to try."""
    home = os.path.join(os.path.expanduser("~"), ".cache")
    cache = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or home
    if os.path.isabs(cache):
        yield os.path.join(cache, "rlfd_gym", f"numba-{numba.__version__}")
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = os.path.join(tempfile.gettempdir(), "rlfd_gym" if user is None else f"rlfd_gym-{user}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return
    # Compiled code is run: nobody else may have put it there.
    if stat.S_ISDIR(found.st_mode) and (user is None or (found.st_uid == user and not found.st_mode & 0o022)):
        yield os.path.join(folder, f"numba-{numba.__version__}")


def _can_be_written(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _warn_of_no_cache() -> None:
    """Say it once in a process, of which it is a fact; no solve is to blame."""
    warnings.warn(
        "compiled kernels cannot be kept, because neither NUMBA_CACHE_DIR nor the user's cache nor a temporary folder "
        "can be written to: every process compiles them anew, which takes seconds each time; set NUMBA_CACHE_DIR to a "
        "folder that can be written",
        RuntimeWarning,
        stacklevel=2,
    )


def aligned(length: int, dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return an uninitialised array that begins on a cache line (NumPy promises 16 bytes only)."""
    raw = np.empty(length * dtype.itemsize + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + length * dtype.itemsize].view(dtype)
