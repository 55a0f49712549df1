"""A comparison: the cells that its settings ask for, run, kept and shown."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import difflib
import io
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import joblib

import rlfd_gym
from rlfd_gym import _checks
from rlfd_gym._files import write
from rlfd_gym.compare.cells import EXACT, Cell, Row, run_cell
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.notes import notes_of
from rlfd_gym.compare.tables import Summary, Table, level_key, summaries_of, table_of
from rlfd_gym.compare.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import RenderResult

PACKAGES = ("gymnasium", "joblib", "numba", "numpy", "piqp", "scipy", "imitation", "stable-baselines3", "torch")


@dataclass(frozen=True)
class Settings:
    """What is compared. The defaults take well under two minutes on two cores."""

    tasks: tuple[str, ...] = field(default_factory=lambda: tuple(TASKS))
    methods: tuple[str, ...] = field(default_factory=lambda: tuple(name for name, m in METHODS.items() if m.chosen))
    """The reference rows are there in any case."""
    seeds: int = 5
    demonstrations: tuple[int | str, ...] = (1, 10, 100, EXACT)
    alphas: tuple[float, ...] = (0.01, 0.1, 1.0)
    iterations: int = 1_000_000
    """Steps of each run of the stochastic solvers."""
    runs: int = 1
    """Runs that a stochastic solver averages over."""

    def __post_init__(self) -> None:
        """Check, and keep everything once, in plain numbers: reference rows first, levels in ascending order."""
        _check_names("tasks", self.tasks, TASKS)
        _check_names("methods", self.methods, METHODS)
        for name, expected in (("demonstrations", f'numbers or "{EXACT}"'), ("alphas", "weights of the prior")):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, expected {expected}")
        references = [name for name, method in METHODS.items() if method.reference]
        levels = {
            level if level == EXACT else _checks.integer(f'demonstrations (or "{EXACT}")', level, 1)
            for level in self.demonstrations
        }
        clean: dict[str, Any] = {
            "tasks": tuple(dict.fromkeys(self.tasks)),
            "methods": tuple(dict.fromkeys([*references, *self.methods])),
            "demonstrations": tuple(sorted(levels, key=level_key)),
            "alphas": tuple(dict.fromkeys(_checks.number("alphas", alpha, 0.0) for alpha in self.alphas)),
        }
        clean |= {name: _checks.integer(name, getattr(self, name), 1) for name in ("seeds", "iterations", "runs")}
        for name, value in clean.items():
            object.__setattr__(self, name, value)

    def cells(self) -> list[Cell]:
        """The cells, task by task, in the order of the methods."""
        return [
            Cell(task, name, alpha, level, seed)
            for task in self.tasks
            for name in self.methods
            for alpha in (self.alphas if METHODS[name].alpha else (None,))
            for level in ((EXACT,) if METHODS[name].reference else self.demonstrations)
            for seed in range(self._seeds(task, name, level))
        ]

    def _seeds(self, task: str, name: str, level: int | str) -> int:
        """How many seeds a cell is run for: one, where nothing is random."""
        method = METHODS[name]
        random = level != EXACT or method.stochastic or (TASKS[task].prior_varies and method.uses_prior)
        return min(self.seeds, method.most_seeds or self.seeds) if random else 1

    def added_to(self, stored: Settings) -> Settings:
        """The stored settings with what these ask for in addition; the solvers' own settings must be the same."""
        for name in ("iterations", "runs"):
            if getattr(self, name) != getattr(stored, name):
                raise ValueError(
                    f"{name} is {getattr(self, name)}, but the stored cells were made with {getattr(stored, name)}; "
                    "a comparison has one setting for all of its cells: start another one"
                )
        union: dict[str, Any] = {
            name: getattr(stored, name) + getattr(self, name)
            for name in ("tasks", "methods", "alphas", "demonstrations")
        }
        return dataclasses.replace(stored, **union, seeds=max(self.seeds, stored.seeds))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of a comparison. It prints as its tables, in a terminal and in a notebook."""

    settings: Settings
    rows: list[Row] = field(repr=False)

    def summaries(self, task: str | None = None) -> list[Summary]:
        """Means over seeds, with their intervals."""
        return summaries_of([row for row in self.rows if task in (None, row.task) and row.true_cost is not None])

    def table(self, task: str) -> Table:
        """The table of a task: `print(...)` it, or take its `.markdown()`."""
        _check_names("task", [task], self.settings.tasks)
        rows = [row for row in self.rows if row.task == task]
        notes = notes_of(task, rows, self.settings.seeds)
        return table_of(task, self.summaries(task), self.settings.demonstrations, notes)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the rows, one per cell."""
        write(path, _csv([row.values() for row in self.rows]))

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write rows, means, settings, pictures and the page that shows all of it; returns the page's path."""
        from rlfd_gym.compare.page import write_page

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        self.to_csv(out / "results.csv")
        write(out / "summary.csv", _csv([summary.values() for summary in self.summaries()]))
        _write_json(out / "results.json", self.settings, finished=True)
        return write_page(self, out)

    def __str__(self) -> str:
        """The tables as text."""
        return "\n\n".join(str(self.table(task)) for task in self.settings.tasks)

    def __rich_console__(self, *_: object) -> RenderResult:
        """For rich."""
        for task in self.settings.tasks:
            yield self.table(task)
            yield ""

    def _repr_html_(self) -> str:
        """For notebooks."""
        return "\n".join(self.table(task)._repr_html_() for task in self.settings.tasks)


def run(
    *,
    tasks: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    seeds: int | None = None,
    demonstrations: Iterable[int | str] | None = None,
    alphas: Iterable[float] | None = None,
    iterations: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = False,
) -> Comparison:
    """Compare methods on tasks; see `Settings` for the defaults of what is `None`.

    Args:
        tasks: names from `TASKS`.
        methods: names from `METHODS`.
        seeds: how many seeds to average over, 0, 1, ….
        demonstrations: numbers of demonstrations, and "exact" for the expert's exact occupancy.
        alphas: weights of the prior.
        iterations: steps of each run of the stochastic solvers.
        runs: runs that a stochastic solver averages over.
        jobs: cells at a time, in processes; -1 for all cores. Results do not depend on it.
        scheduler: the address of a Dask scheduler ("tcp://..."), to run the cells on its workers.
        out: a folder. Each finished cell is kept there, and at the end tables, pictures and a page are written.
        resume: go on in `out`: its finished cells are kept, and its settings too. What is given here is added to them.
        progress: show progress on stderr.

    Ctrl-C raises a `KeyboardInterrupt` that says how to go on.
    """
    given: dict[str, Any] = {
        "tasks": tasks, "methods": methods, "seeds": seeds, "demonstrations": demonstrations, "alphas": alphas,
        "iterations": iterations, "runs": runs,
    }  # fmt: skip
    for name, value in given.items():
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list, got a string; write [{value!r}]")
    chosen = {
        name: tuple(value) if name in ("tasks", "methods", "demonstrations", "alphas") else value
        for name, value in given.items()
        if value is not None
    }
    folder = None if out is None else Path(out)
    settings = _settings(chosen, folder, resume)
    kept = {} if folder is None else _kept(folder, settings)
    if folder is not None:
        _write_json(folder / "results.json", settings, finished=False)
    cells = settings.cells()
    missing = [cell for cell in cells if cell not in kept]
    missing.sort(key=_turn)
    done = dict(kept)
    try:
        for row in _watched(_rows(missing, settings, jobs, scheduler), len(missing), len(cells), progress):
            done[row.cell] = row
            if folder is not None:
                row.save(folder / "cells")
    except KeyboardInterrupt:
        where = "nothing was stored, as no out= was given" if folder is None else f"go on with --resume {folder}"
        raise KeyboardInterrupt(f"interrupted with {len(done)} of {len(cells)} cells finished; {where}") from None
    comparison = Comparison(settings, [done[cell] for cell in cells])
    if folder is not None:
        comparison.write(folder)
    return comparison


def _settings(chosen: dict[str, Any], folder: Path | None, resume: bool) -> Settings:
    """The settings asked for, on top of those stored in the folder where a comparison goes on."""
    if not resume:
        if folder is not None and folder.exists() and not folder.is_dir():
            raise ValueError(f"out: {folder} is a file, expected a folder")
        if folder is not None and (folder / "results.json").exists():
            raise ValueError(f"out: {folder} holds a comparison already; resume it, or choose another folder")
        return Settings(**chosen)
    if folder is None or not (folder / "results.json").exists():
        raise ValueError(f"resume: there is no comparison in {folder}: it has no results.json")
    try:
        text = json.loads((folder / "results.json").read_text())["settings"]
        values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in text.items()}
        stored = Settings(**values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"resume: {folder / 'results.json'} is not that of a comparison ({type(error).__name__}: {error})"
        ) from error
    return dataclasses.replace(stored, **chosen).added_to(stored)


def _kept(folder: Path, settings: Settings) -> dict[Cell, Row]:
    """The finished cells of a folder, those that are asked for."""
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    paths = {cell: folder / "cells" / cell.file_name for cell in settings.cells()}
    return {cell: Row.load(path) for cell, path in paths.items() if path.exists()}


def _rows(cells: Sequence[Cell], settings: Settings, jobs: int, scheduler: str | None) -> Iterator[Row]:
    """The rows of cells, as they come."""
    calls = [(TASKS[cell.task], METHODS[cell.method], cell, settings.iterations, settings.runs) for cell in cells]
    if jobs == 1 and scheduler is None:
        yield from (run_cell(*call) for call in calls)
        return
    with _backend(scheduler):
        parallel = joblib.Parallel(n_jobs=-1 if scheduler else jobs, return_as="generator_unordered")
        yield from parallel(joblib.delayed(run_cell)(*call) for call in calls)


def _turn(cell: Cell) -> tuple[bool, bool]:
    """The slow cells first, so that no core waits long at the end.

    Before them those that load torch: a process of joblib's that grows much after its first cell is taken for leaking.
    """
    method = METHODS[cell.method]
    return not method.needs_imitation, method.most_seeds is None


def _backend(scheduler: str | None) -> contextlib.AbstractContextManager[Any]:
    """Processes on this machine, or a Dask cluster."""
    if scheduler is None:
        return contextlib.nullcontext()
    try:
        import distributed
    except ImportError as error:
        raise ImportError('a scheduler needs dask: pip install "rlfd-gym[cluster]"', name="distributed") from error
    stack = contextlib.ExitStack()
    stack.enter_context(distributed.Client(scheduler))  # type: ignore[no-untyped-call]
    stack.enter_context(joblib.parallel_config(backend="dask"))
    return stack


def _watched(rows: Iterable[Row], missing: int, total: int, wanted: bool) -> Iterator[Row]:
    """Show progress: a bar in a terminal, a line for each tenth elsewhere."""
    if not wanted:
        yield from rows
    elif sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(rows, total=total, initial=total - missing, desc="cells", unit="cell")
    else:
        for number, row in enumerate(rows, start=total - missing + 1):
            yield row
            if number * 10 // total > (number - 1) * 10 // total:
                print(f"{number} of {total} cells", file=sys.stderr, flush=True)


def _check_names(argument: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Every name is known, or an error with the nearest one."""
    known = list(known)
    if not names:
        raise ValueError(f"{argument} is empty, expected some of {', '.join(known)}")
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"expected some of {', '.join(known)}"
            raise ValueError(f"{argument}: there is no {name!r}; {hint}")


def _write_json(path: Path, settings: Settings, finished: bool) -> None:
    content = {"finished": finished, "settings": dataclasses.asdict(settings), **_provenance()}
    write(path, (json.dumps(content, indent=2) + "\n").encode())


def _provenance() -> dict[str, Any]:
    """Where and with what this was made."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            versions[package] = version(package)
    git = [
        "git",
        "-C",
        str(Path(__file__).resolve().parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        commit = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = ""  # installed from a wheel, or no git
    return {
        "rlfd_gym": rlfd_gym.__version__,
        "git_commit": commit,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": versions,
    }


def _csv(records: Sequence[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()
