"""The folder of a comparison: what was requested, what is finished, and where it was made.

results.json           the design, the facts, the versions; whether all cells are finished
cells/<name>.npz       one file for each finished cell
tasks/<name>.npz       one file for the facts about each task
results.csv            the rows, without policies and costs
summary.csv            the means of the rows over seeds
"""

from __future__ import annotations

import errno
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from rlfd_gym._files import write
from rlfd_gym._warnings import warn
from rlfd_gym.compare import provenance
from rlfd_gym.compare.cells import Row
from rlfd_gym.compare.design import SETTINGS, Design
from rlfd_gym.compare.facts import Facts
from rlfd_gym.compare.provenance import ProvenanceError
from rlfd_gym.report.tables import write_csv

UNLOCKABLE = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class InUseError(OSError):
    """Another process has a comparison in this folder under way.

    Example:
        >>> issubclass(InUseError, OSError)
        True
    """


@contextmanager
def reserved(folder: Path, resume: bool) -> Iterator[None]:
    """Reserve a folder for this process: for a new comparison, or to continue the one in it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: {folder} is a file, expected a folder")
    if resume:
        _require_stored(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # The operating system holds the lock, so that it ends with its process, however that ends, and
    # also keeps apart two containers on one disk. The file stays: its owner is for the message only.
    with open(folder / ".lock", "a+") as file:
        try:
            _lock(file)
        except OSError as error:
            if error.errno not in UNLOCKABLE:
                file.seek(0)
                owner = file.read().strip() or "another process"
                raise InUseError(
                    f"out: {folder} is in use by {owner}; wait until it ends, or choose another folder"
                ) from None
            warn(f"{folder} is on a disk without locks: use it from one process only", RuntimeWarning, stacklevel=4)
        if not resume and (folder / "results.json").exists():
            raise ValueError(f"out: {folder} holds a comparison already; resume it, or choose another folder")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        yield


def _lock(file: IO[str]) -> None:
    """Lock a file for this process, or raise an `OSError` at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(1 << 30)  # beyond the text, which others may read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _require_stored(folder: Path) -> None:
    if not (folder / "results.json").exists():
        raise ValueError(f"resume: there is no comparison in {folder}: it has no results.json")


def stored_design(folder: Path) -> Design:
    """Return the design of the comparison in a folder."""
    _require_stored(folder)
    try:
        text = json.loads((folder / "results.json").read_text())["design"]
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in text.items()}
        return Design(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"resume: {folder / 'results.json'} is not that of a comparison ({type(error).__name__}: {error})"
        ) from error


def stored_rows(folder: Path, design: Design) -> list[Row]:
    """Return the finished cells of a folder in their order, all made in the same way."""
    rows = [Row.load(path) for path in sorted((folder / "cells").glob("*.npz"))]
    wanted = {name: str(getattr(design, name)) for name in SETTINGS}
    found: dict[str, str] = {}
    for row in rows:
        path = folder / "cells" / row.cell.file_name
        if not design.has(row.cell):
            raise ProvenanceError(f"{path} is a cell of another comparison. Delete it")
        made_with = {name: str(value) for name, value in row.settings.items()}
        provenance.require_same(made_with, wanted, str(path), "A comparison has one setting for all cells: delete it")
        known = {name: row.versions[name] for name in row.versions if name in found}
        provenance.require_same(known, found, f"{path} differs from other cells", "Delete those of one kind")
        found |= row.versions
    return sorted(rows, key=lambda row: design.place(row.cell))


def versions_of(rows: Iterable[Row]) -> dict[str, str]:
    """Return the versions that rows were made with."""
    return {name: number for row in rows for name, number in row.versions.items()}


def require_resumable(folder: Path, rows: Sequence[Row]) -> None:
    """Check that cells which are added now will be made in the same way as the stored ones."""
    remedy = "Install the versions of the stored cells, or start another comparison"
    provenance.require_same(versions_of(rows), provenance.versions(), f"resume: the cells of {folder} have", remedy)
    others = [row for row in rows if row.code["digest"] != provenance.code()["digest"]]
    if others:
        warn(
            f"{len(others)} of {len(rows)} cells in {folder} were made by other code of rlfd_gym "
            f"{others[0].versions['rlfd_gym']}; they are kept as they are",
            RuntimeWarning,
            stacklevel=4,
        )


def stored_facts(folder: Path) -> dict[str, Facts]:
    """Return the stored facts about tasks, by the names of the tasks."""
    return {path.stem: Facts.load(path) for path in (folder / "tasks").glob("*.npz")}


def write_start(folder: Path, design: Design, facts: Mapping[str, Facts], rows: Sequence[Row]) -> None:
    """Write what is known before the cells are run."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for task in design.tasks:
        facts[task].save(folder / "tasks" / f"{task}.npz")
    write_json(folder, about(design, facts, rows, finished=False))


def about(design: Design, facts: Mapping[str, Facts], rows: Sequence[Row], finished: bool) -> dict[str, Any]:
    """Return the content of results.json; the versions are those that the rows were made with."""
    return {
        "finished": finished,
        "design": asdict(design),
        "tasks": {task: facts[task].values() for task in design.tasks},
        "versions": versions_of(rows) or provenance.versions(),
        "code": list({row.code["digest"]: row.code for row in rows}.values()) or [provenance.code()],
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def write_json(folder: Path, content: Mapping[str, Any]) -> None:
    """Write results.json."""
    write(folder / "results.json", (json.dumps(content, indent=2) + "\n").encode())


def write_records(path: str | os.PathLike[str], records: Sequence[dict[str, Any]]) -> None:
    """Write records to a CSV file, one column per name; missing entries are left empty."""
    names = list(dict.fromkeys(name for record in records for name in record))
    write_csv(path, names, ([record.get(name) for name in names] for record in records))
