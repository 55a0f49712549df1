"""What made a cell: the packages that its numbers depend on, and the code of this library.

A comparison is made with one version of each package. Cells state theirs, and those of others, be
it a folder or the workers of a cluster, are refused by a `ProvenanceError`. The version of a
library that is being worked on says little, so cells also state a digest of its code.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
import re
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import rlfd_gym

PACKAGES = ("gymnasium", "numba", "numpy", "piqp", "scipy")
WITH_IMITATION = ("imitation", "seals", "stable-baselines3", "torch")
OF_TASKS = ("icu-sepsis",)


class ProvenanceError(ValueError):
    """Results that were made in different ways cannot be compared.

    Example:
        >>> try:
        ...     require_same({"numpy": "1"}, {"numpy": "2"}, "rows.csv", "Run again")
        ... except ProvenanceError as error:
        ...     print(error)
        rows.csv: numpy 1, here 2. Run again
    """


@cache
def versions(imitation: bool = True, tasks: bool = True) -> dict[str, str]:
    """Return the versions that numbers depend on.

    Without `imitation` and without `tasks`, only what all methods use, and no task's data.
    """
    found = {"rlfd_gym": rlfd_gym.__version__, "python": platform.python_version()}
    for package in PACKAGES + (WITH_IMITATION if imitation else ()) + (OF_TASKS if tasks else ()):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@cache
def code() -> dict[str, str]:
    """Return a digest of the library's modules, and the commit of its checkout if it is in one."""
    return {"digest": _digest(), "git_commit": commit()}


def require_same(theirs: Mapping[str, str], ours: Mapping[str, str], who: str, remedy: str) -> None:
    """Check that what others were made with is what we have; name all that differs."""
    different = [
        f"{name} {theirs[name]}, here {ours.get(name, 'none')}" for name in theirs if theirs[name] != ours.get(name)
    ]
    if different:
        raise ProvenanceError(f"{who}: {'; '.join(different)}. {remedy}")


def commit() -> str:
    """Return the commit of the checkout that the library is imported from; "" if it is in none.

    The files of git are read. Running git would also run what a repository tells it to run, and
    would find the repository of another project around an installed library.
    """
    root = Path(rlfd_gym.__file__).resolve().parents[1]
    try:
        if 'name = "rlfd-gym"' not in (root / "pyproject.toml").read_text():
            return ""
        own = root / ".git"
        if own.is_file():  # a worktree
            own = root / own.read_text().removeprefix("gitdir:").strip()
        common = own / (own / "commondir").read_text().strip() if (own / "commondir").is_file() else own
        found = (own / "HEAD").read_text().strip()
        if found.startswith("ref: "):
            found = _branch(common, found.removeprefix("ref: "))
    except (OSError, UnicodeDecodeError):
        return ""
    return found if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found) else ""


def _digest() -> str:
    """Return a digest of the library's modules, the same wherever they are installed."""
    texts: dict[str, bytes] = {}
    for package in ("rlfd_gym", "rlfd_gym.envs", "rlfd_gym.baselines"):
        spec = find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in Path(folder).rglob("*.py"):
                texts[f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    whole = b"".join(name.encode() + b"\0" + texts[name] + b"\0" for name in sorted(texts))
    return hashlib.sha256(whole).hexdigest()[:16]


def _branch(git: Path, name: str) -> str:
    """Return what a branch points to, from its own file or from the list of packed branches."""
    if (git / name).is_file():
        return (git / name).read_text().strip()
    packed = (git / "packed-refs").read_text().splitlines()
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")
