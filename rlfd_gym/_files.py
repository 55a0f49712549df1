"""Files that are either complete or absent, and that hold no code.

**One file** is written under a name of its own beside its target, brought to the disk, and only then
renamed: whatever happens, and however many write at once, the target has the whole of one content.
What a killed writer leaves behind (a stray) is removed by a later write to the same folder once that
is safe: nobody holds the lock that every writer has on its file, and an hour has passed. Where files
cannot be locked (Windows, some network shares), strays stay.

**Arrays** are stored in an npz file with a JSON header. Reading believes nothing: the header comes
first, and an array is unpacked only if its own header promises the type and shape that are expected
and its size is that of this shape.

**Cells of CSV files** that a spreadsheet would take for formulas begin with an apostrophe, as one
would type them there; `unguarded` takes it away again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows
    fcntl = None

HEADER = "header"
MOST_HEADER = 2**25  # bytes of a header
MOST_BYTES = 2**29  # of those arrays of a file whose lengths only the file tells
SHOWN = ".rlfd_gym.shown"
OURS = re.compile(r"\.rlfd_gym-[0-9a-f]{32}\.(tmp|set)")
STRAY_AGE = 3600.0  # seconds
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")

PathLike = str | os.PathLike[str]


@contextmanager
def replacing(path: PathLike) -> Iterator[IO[bytes]]:
    """Open a file that replaces `path` once it is written completely.

    If writing fails, nothing is left behind. A link stays, and the file that it leads to is
    replaced. The permissions are those of the file before, or those of any new file.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is no file that could be replaced")
    temporary = own_name(target.parent, "tmp")
    try:
        with open(temporary, "xb") as file:
            lock(file.fileno(), wait=True)
            if target.exists():
                os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            written = os.fstat(file.fileno()).st_mtime
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)
    clear_strays(target.parent, written)


def write(path: PathLike, content: bytes) -> None:
    """Write a file completely or not at all, and make its folders.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write(Path(folder) / "new" / "file.txt", b"all or nothing")
        ...     print((Path(folder) / "new" / "file.txt").read_text())
        all or nothing
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(content)


def check_folder(path: PathLike, name: str = "out") -> Path:
    """Return the path of a folder that can be written to or made; nothing is made yet.

    Scripts ask before they begin to work.

    Example:
        >>> check_folder("results").name
        'results'
    """
    folder = Path(path)
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise ValueError(f"{name}: {there} is a file, expected a folder")
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"\0")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ValueError(f"{name}: nothing can be written to {there} ({error.strerror})") from error
    return folder


def save_arrays(
    path: PathLike, kind: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and a header that says what they are."""
    # `tolist` turns NumPy's numbers and arrays into Python's.
    text = np.array(json.dumps({"format": kind, "version": version, **header}, default=lambda value: value.tolist()))
    if text.nbytes > MOST_HEADER:
        raise ValueError(f"{path}: the header takes {text.nbytes} bytes, more than the {MOST_HEADER} that are read")
    with replacing(path) as file:
        np.savez_compressed(file, allow_pickle=False, **{HEADER: text}, **arrays)


def load_arrays(path: PathLike, kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return (header, arrays) of a file written by `save_arrays`, executing nothing in it."""
    with stored_arrays(path, kind, version) as stored:
        try:
            return stored.header, {name: stored.read(name) for name in stored.names}
        except ValueError as error:
            raise ValueError(f"{path} is damaged ({error})") from error


@contextmanager
def stored_arrays(path: PathLike, kind: str, version: int) -> Iterator[Stored]:
    """Open a file written by `save_arrays`; only its header is unpacked so far."""
    with open(path, "rb") as file:
        try:
            stored = Stored(zipfile.ZipFile(file))
            found, number = stored.header["format"], stored.header["version"]
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(f"{path} is damaged or no {kind} file ({type(error).__name__}: {error})") from error
        if found != kind:
            raise ValueError(f"{path} is a {found!r} file, expected {kind!r}")
        if type(number) is not int or not 1 <= number <= version:
            raise ValueError(
                f"{path} has version {number!r}, this rlfd_gym reads up to {version}; a newer one wrote it"
            )
        yield stored


class Stored:
    """The arrays of an open file, unpacked one by one as they are asked for.

    Attributes:
        header: what the file says of itself.
        names: the names of its arrays.
    """

    header: dict[str, Any]
    names: tuple[str, ...]

    def __init__(self, archive: zipfile.ZipFile) -> None:
        """Read the directory and the header."""
        self._archive, self._left = archive, MOST_BYTES
        self._members = {item.filename.removesuffix(".npy"): item for item in archive.infolist()}
        if len(self._members) != len(archive.infolist()):
            raise ValueError("two arrays have one name")
        dtype, shape, size = self.layout(HEADER)
        if dtype.kind != "U" or shape != () or size > MOST_HEADER:
            raise ValueError(f"its header is {dtype} of shape {shape}, expected a text")
        self.header = json.loads(str(self._unpack(HEADER)))
        self.names = tuple(name for name in self._members if name != HEADER)

    def layout(self, name: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
        """Return an array's type, shape and size in bytes, without unpacking it."""
        with self._open(name) as (item, member):
            versions = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
            shape, _, dtype = versions[npy.read_magic(member)](member)
            start = member.tell()
        if dtype.kind not in "biufU" or dtype.itemsize == 0:
            raise ValueError(f"{name} holds {dtype}, expected numbers or texts")
        size = dtype.itemsize
        for length in shape:
            size *= length
        if min(shape, default=0) < 0 or start + size != item.file_size:
            raise ValueError(f"{name} takes {item.file_size} bytes, but its shape is {shape}")
        return dtype, shape, size

    def read(
        self, name: str, dtype: DTypeLike | None = None, shape: tuple[int | None, ...] | None = None
    ) -> NDArray[Any]:
        """Unpack an array, or raise a `ValueError` unless it has this type and shape.

        `None` in the place of a length, of the shape or of the type leaves it open; arrays of open
        lengths may take `MOST_BYTES` altogether.
        """
        found, lengths, size = self.layout(name)
        wanted = lengths if shape is None else shape
        fits = len(lengths) == len(wanted) and all(a in (None, b) for a, b in zip(wanted, lengths, strict=True))
        if not fits or (dtype is not None and found != np.dtype(dtype)):
            kind = found if dtype is None else np.dtype(dtype)
            raise ValueError(f"{name} is {found} of shape {lengths}, expected {kind} of shape {wanted}")
        if shape is None or None in shape:
            self._left -= size
            if self._left < 0:
                raise ValueError(f"{name} takes {size} bytes; with those before, more than {MOST_BYTES}")
        return self._unpack(name)

    def _unpack(self, name: str) -> NDArray[Any]:
        with self._open(name) as (_, member):
            return npy.read_array(member, allow_pickle=False)

    @contextmanager
    def _open(self, name: str) -> Iterator[tuple[zipfile.ZipInfo, IO[bytes]]]:
        """Open a member of the archive; whatever is wrong with it is a `ValueError`."""
        if name not in self._members:
            raise ValueError(f"there is no array {name!r}")
        item = self._members[name]
        if item.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{name} is compressed in a way that arrays are not")
        try:
            with self._archive.open(item) as member:
                yield item, member
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(f"{name} is damaged ({type(error).__name__}: {error})") from error


def guarded(cell: Any) -> Any:
    """Return a cell of a CSV file such that no spreadsheet takes a text for a formula.

    >>> [guarded(cell) for cell in ("=1+1", "'=1+1", "-3.5", -3.5, "a=b")]
    ["'=1+1", "''=1+1", '-3.5', -3.5, 'a=b']
    """
    return f"'{cell}" if isinstance(cell, str) and _is_formula(cell.lstrip("'")) else cell


def unguarded(text: str) -> str:
    """Return the text that `guarded` was given."""
    return text[1:] if text.startswith("'") and _is_formula(text.lstrip("'")) else text


def _is_formula(text: str) -> bool:
    """Whether a text begins like a formula and is no number."""
    if not text.startswith(FORMULA):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def shown_set(target: Path) -> Path | None:
    """Return the set of files that a folder shows, if any; see `rlfd_gym._file_sets`."""
    try:
        name = Path(os.readlink(target / SHOWN)).name
    except OSError:
        return None
    return target / name if OURS.fullmatch(name) else None


def own_name(folder: Path, suffix: str) -> Path:
    """Return a path in a folder that nobody else uses, on this machine or another."""
    return folder / f".rlfd_gym-{uuid.uuid4().hex}.{suffix}"


def clear_strays(folder: Path, now: float) -> None:
    """Remove what writers that are dead left in a folder; `now` is by the clock of its file system."""
    # A folder may hold thousands of files, and every one that is written to it comes here: paths only for strays.
    names = [name for name in os.listdir(folder) if name.startswith(".rlfd_gym") and OURS.fullmatch(name)]
    shown = shown_set(folder) if names else None
    for path in (folder / name for name in names):
        if path != shown and _is_abandoned(path, now):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _is_abandoned(path: Path, now: float) -> bool:
    """Whether something is old, and nobody holds its lock; False where that cannot be known."""
    try:
        if now - path.lstat().st_mtime < STRAY_AGE:
            return False
        if path.is_symlink():  # which is renamed as soon as it is made
            return True
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return lock(descriptor, wait=False)
    finally:
        os.close(descriptor)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, where folders can be locked."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        lock(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; return whether that was possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system lets one do so."""
    with suppress(PermissionError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # some file systems sync no folders
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
