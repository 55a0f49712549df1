"""Several files that appear together, replacing those from before as a set.

They lie in a hidden folder of their own. In the folder that people look at there are links through
one more link, `SHOWN`, to the hidden folder that is shown:

    report.html -> .rlfd_gym.shown/report.html        .rlfd_gym.shown -> .rlfd_gym-3f….set

Replacing this one link, which is atomic, replaces all files at once. Files that lay there before the
first set go through the same link beforehand. The folder itself stays where it is, with everything
else in it: it may be a volume, or somebody's current folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rlfd_gym._files import SHOWN, PathLike, clear_strays, locked, own_name, shown_set, sync_folder, write


@contextmanager
def replacing_set(folder: PathLike) -> Iterator[Path]:
    """Give an empty folder for files that then appear in `folder` together, replacing their namesakes.

    Whenever this is stopped, `folder` shows the files from before or all of the new ones; other
    files in it are left alone. Where links cannot be made, the files are moved one by one.
    """
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    new, old = own_name(target, "set"), None
    new.mkdir()
    with locked(new):
        try:
            yield new
            sync_folder(new)
            with locked(target):  # one set after the other
                if _can_link(target):
                    old = _show(target, new)
                else:
                    for path in new.iterdir():
                        os.replace(path, target / path.name)
                sync_folder(target)
        finally:
            if shown_set(target) != new:
                shutil.rmtree(new, ignore_errors=True)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    clear_strays(target, target.stat().st_mtime)


def _show(target: Path, new: Path) -> Path:
    """Show a new set of files in a folder, and return the old set, which nothing leads to any more."""
    old = shown_set(target)
    if old is None:  # the first set: the old one is what lies in the folder
        old = own_name(target, "set")
        old.mkdir()
        _link(target / SHOWN, old.name)
    old.mkdir(exist_ok=True)
    names = os.listdir(new)
    for name in names:
        place, link = target / name, os.path.join(SHOWN, name)
        if not (place.is_symlink() and os.readlink(place) == link):
            if place.exists():  # seen through the link until the whole set is replaced
                write(old / name, place.read_bytes())
            _link(place, link)
    _link(target / SHOWN, new.name)
    for name in set(os.listdir(old)).difference(names):
        if (target / name).is_symlink() and os.readlink(target / name) == os.path.join(SHOWN, name):
            (target / name).unlink()
    return old


def _link(place: Path, to: str) -> None:
    """Put a link in place, or replace what is there by it, in one step."""
    temporary = own_name(place.parent, "tmp")
    os.symlink(to, temporary)
    os.replace(temporary, place)


def _can_link(folder: Path) -> bool:
    trial = own_name(folder, "tmp")
    try:
        os.symlink("nowhere", trial)
    except (OSError, NotImplementedError):
        return False
    trial.unlink()
    return True
