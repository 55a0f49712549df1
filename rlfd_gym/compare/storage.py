"""The folder of a comparison: what was requested, what is finished, and where it was made.

results.json           the design, the facts, the versions; whether all cells are finished
cells/<name>.npz       one file for each finished cell
tasks/<name>.npz       one file for the facts about each task
results.csv            the rows, without policies and costs
summary.csv            the means of the rows over seeds
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import rlfd_gym
from rlfd_gym._files import write
from rlfd_gym.compare.cells import Cell, Row
from rlfd_gym.compare.design import Design
from rlfd_gym.compare.facts import Facts
from rlfd_gym.report.tables import write_csv

PACKAGES = ("gymnasium", "joblib", "numba", "numpy", "piqp", "scipy", "imitation", "stable-baselines3", "torch")


def require_new(folder: Path) -> None:
    """Check that a new comparison can be started in a folder."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"out: {folder} is a file, expected a folder")
    if (folder / "results.json").exists():
        raise ValueError(f"out: {folder} holds a comparison already; resume it, or choose another folder")


def stored_design(folder: Path) -> Design:
    """Return the design of the comparison in a folder."""
    if not (folder / "results.json").exists():
        raise ValueError(f"resume: there is no comparison in {folder}: it has no results.json")
    try:
        text = json.loads((folder / "results.json").read_text())["design"]
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in text.items()}
        return Design(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"resume: {folder / 'results.json'} is not that of a comparison ({type(error).__name__}: {error})"
        ) from error


def stored_rows(folder: Path) -> dict[Cell, Row]:
    """Return the finished cells of a folder."""
    rows = [Row.load(path) for path in (folder / "cells").glob("*.npz")]
    return {row.cell: row for row in rows}


def stored_facts(folder: Path) -> dict[str, Facts]:
    """Return the stored facts about tasks, by the names of the tasks."""
    return {path.stem: Facts.load(path) for path in (folder / "tasks").glob("*.npz")}


def write_start(folder: Path, design: Design, facts: Mapping[str, Facts]) -> None:
    """Write what is known before the cells are run."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    for task in design.tasks:
        facts[task].save(folder / "tasks" / f"{task}.npz")
    write_json(folder, design, facts, finished=False)


def write_json(folder: Path, design: Design, facts: Mapping[str, Facts], finished: bool) -> None:
    """Write results.json."""
    tasks = {task: facts[task].values() for task in design.tasks}
    content = {"finished": finished, "design": asdict(design), "tasks": tasks, **_provenance()}
    write(folder / "results.json", (json.dumps(content, indent=2) + "\n").encode())


def write_records(path: str | os.PathLike[str], records: Sequence[dict[str, Any]]) -> None:
    """Write records to a CSV file, one column per name; missing entries are left empty."""
    names = list(dict.fromkeys(name for record in records for name in record))
    write_csv(path, names, ([record.get(name) for name in names] for record in records))


def _provenance() -> dict[str, Any]:
    """Return the machine and the versions with which a comparison was made."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    git = ["git", "-C", str(Path(__file__).resolve().parent)]
    describe = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        commit = subprocess.run(describe, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""  # installed from a wheel, or git is missing
    return {
        "rlfd_gym": rlfd_gym.__version__,
        "git_commit": commit,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
    }
