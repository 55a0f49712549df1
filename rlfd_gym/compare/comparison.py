"""A comparison: the cells of its design are run, stored and shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlfd_gym import _checks
from rlfd_gym.compare import storage
from rlfd_gym.compare.cells import MEASURED, Cell, CellError, Row
from rlfd_gym.compare.design import LISTS, Design
from rlfd_gym.compare.facts import Facts, facts_of
from rlfd_gym.compare.headline import headline_of
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.notes import notes_of
from rlfd_gym.compare.running import Lost, outcomes
from rlfd_gym.compare.tables import Summary, Table, summaries_of, table_of
from rlfd_gym.compare.tasks import TASKS

if TYPE_CHECKING:
    from rich.console import RenderResult

Item = TypeVar("Item")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of a comparison; it prints as tables, in a terminal and in a notebook.

    Printing does not solve anything.

    Attributes:
        design: what was compared.
        cells: the results of the cells, each read as its method is known.
        rows: the results, one row for each cell and reading of the design.
        facts: what is known about each task, by the name of the task.

    Example:
        >>> from rlfd_gym import compare
        >>> result = compare.run(tasks=["inventory"], methods=["cloning"], demonstrations=["exact"])
        >>> [row.method for row in result.rows]
        ['optimum', 'expert', 'prior', 'random', 'cloning']
        >>> print(result.table("inventory").title)
        Inventory: the expert believes prices (5, 8, 15), the prior (4, 2, 14)
    """

    design: Design
    cells: list[Row] = field(repr=False)
    facts: dict[str, Facts] = field(repr=False)

    @cached_property
    def rows(self) -> list[Row]:
        """The results, one row for each cell and reading of the design."""
        return [read for row in self.cells for read in self.design.read(row)]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Comparison:
        """Read the finished cells of a folder; the methods and tasks need not be registered."""
        path = Path(folder)
        design = storage.stored_design(path)
        return cls(design, storage.stored_rows(path, design), storage.stored_facts(path))

    def summaries(self, task: str | None = None) -> list[Summary]:
        """Return the means over seeds, with their intervals."""
        return _summaries([row for row in self.rows if task in (None, row.task)])

    def all_summaries(self) -> list[Summary]:
        """Return the means over seeds in every reading, whatever the tables show."""
        return _summaries(self._in_all_readings())

    def table(self, task: str) -> Table:
        """Return the table of a task; `print` it, or use its `.markdown()`."""
        facts = self.facts[_checks.one_of("task", task, self.design.tasks)]
        notes = notes_of(facts, [row for row in self.cells if row.task == task], self.design.seeds)
        means = self.summaries(task)
        return table_of(facts.title, means, self.design.demonstrations, notes, headline_of(means))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the results to a CSV file, one line per cell and reading, whatever the tables show."""
        storage.write_records(path, [row.values() for row in self._in_all_readings()])

    def write(self, folder: str | os.PathLike[str]) -> Path:
        """Write rows, means, pictures, a page, and last the design; return the path of the page."""
        from rlfd_gym.compare.page import write_page

        out = Path(folder)
        out.mkdir(parents=True, exist_ok=True)
        self.to_csv(out / "results.csv")
        storage.write_records(out / "summary.csv", [summary.values() for summary in self.all_summaries()])
        about = storage.about(self.design, self.facts, self.cells, finished=True)
        for task, described in about["tasks"].items():
            described["headline"] = headline_of(self.summaries(task))
        page = write_page(self, out, about)
        storage.write_json(out, about)
        return page

    def _in_all_readings(self) -> list[Row]:
        return [row.read_as(kind) for kind in MEASURED for row in self.cells]

    def __str__(self) -> str:
        """Return the tables as text."""
        return "\n\n".join(str(self.table(task)) for task in self.design.tasks)

    def __rich_console__(self, *_: object) -> RenderResult:
        """Print the tables with rich."""
        for task in self.design.tasks:
            yield self.table(task)
            yield ""

    def _repr_html_(self) -> str:
        """Return the tables as HTML, for notebooks."""
        return "\n".join(self.table(task)._repr_html_() for task in self.design.tasks)


def run(
    *,
    tasks: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    seeds: int | None = None,
    demonstrations: Iterable[int | str] | None = None,
    alphas: Iterable[float] | None = None,
    readings: Iterable[str] | None = None,
    iterations: int | None = None,
    runs: int | None = None,
    jobs: int = 1,
    scheduler: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: bool = False,
) -> Comparison:
    """Compare methods on tasks; `Design` has the defaults for arguments that are `None`.

    Args:
        tasks: names from `TASKS`.
        methods: names from `METHODS`; the reference rows are always included.
        seeds: the number of seeds 0, 1, … to average over.
        demonstrations: numbers of demonstrations, and "exact" for the expert's exact occupancy.
        alphas: weights of the prior.
        readings: how to read the policies: "own", the reading that each method is known by,
            "occupancy" (the mixture) or "mode" (the most frequent action of each state). Every cell
            is measured in both, so this costs nothing, and the CSV files always have both.
        iterations: steps of each run of the stochastic solvers.
        runs: runs that a stochastic solver averages over.
        jobs: the number of cells run at a time, in processes; -1 for all cores. Results do not
            depend on it.
        scheduler: the address of a Dask scheduler, "tcp://…": cells run on its workers, which must
            have the same versions as this process; `jobs` then plays no part.
        out: a folder. Each finished cell is stored there, and at the end tables, pictures and a
            page are written.
        resume: continue the comparison in `out`: its finished cells and its design are kept, and
            the arguments given here are added to the design.
        progress: whether to show progress on stderr.

    Raises:
        KeyboardInterrupt: after Ctrl-C.
        CellError: a method failed without giving up, or workers died. A worker that dies costs its
            cell; the other cells are run before the error is raised.
        ConnectionError: the scheduler, or all of its workers, are lost.
        ProvenanceError: stored cells, or workers, do not fit to this comparison.
        InUseError: another process has a comparison in `out` under way.

    The first three say how to continue; finished cells are kept.

    Example:
        >>> result = run(tasks=["inventory"], methods=["cloning"], demonstrations=["exact"])
        >>> {row.method: round(row.share_closed, 2) for row in result.rows}
        {'optimum': 1.0, 'expert': 0.0, 'prior': 0.91, 'random': 0.02, 'cloning': 0.0}
    """
    given: dict[str, Any] = {
        "tasks": tasks, "methods": methods, "seeds": seeds, "demonstrations": demonstrations, "alphas": alphas,
        "readings": readings, "iterations": iterations, "runs": runs,
    }  # fmt: skip
    for name, value in given.items():
        if isinstance(value, str):
            raise TypeError(f"{name} must be a list, got a string; write [{value!r}]")
    chosen = {name: tuple(v) if name in LISTS else v for name, v in given.items() if v is not None}
    folder = None if out is None else Path(out)
    if resume and folder is None:
        raise ValueError("resume: out is None, expected the folder to continue in")
    with nullcontext() if folder is None else storage.reserved(folder, resume):
        if folder is not None and resume:
            stored = Comparison.load(folder)
            storage.require_resumable(folder, stored.cells)
        else:
            stored = Comparison(Design.of(**chosen), [], {})
        return _run(stored, stored.design.with_added(**chosen), folder, jobs, scheduler, progress)


def _run(
    stored: Comparison, design: Design, folder: Path | None, jobs: int, scheduler: str | None, progress: bool
) -> Comparison:
    """Run the cells of a design that are not stored yet, and store them in a folder."""
    facts = stored.facts | {task: facts_of(TASKS[task]) for task in design.tasks if task not in stored.facts}
    if folder is not None:
        storage.write_start(folder, design, facts, stored.cells)
    cells = design.cells()
    done, lost = {row.cell: row for row in stored.cells}, []
    missing = sorted((cell for cell in cells if cell not in done), key=_turn)
    calls = [(TASKS[cell.task], METHODS[cell.method], cell, design.iterations, design.runs) for cell in missing]

    def so_far() -> str:
        how = "nothing was stored, as no out= was given" if folder is None else f"continue with --resume {folder}"
        return f"{len(done)} of {len(cells)} cells finished; {how}"

    try:
        for outcome in _watched(outcomes(calls, jobs, scheduler), len(missing), len(cells), progress):
            if isinstance(outcome, Lost):
                lost.append(outcome)
                continue
            done[outcome.cell] = outcome
            if folder is not None:
                outcome.save(folder / "cells")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted with {so_far()}") from None
    except (CellError, ConnectionError) as error:
        raise type(error)(f"{error}; {so_far()}") from error
    if lost:
        listed = "".join(f"\n  {one.cell}: {one.reason}" for one in lost)
        raise CellError(f"workers died, and with them {len(lost)} cells:{listed}\n{so_far()}")
    comparison = Comparison(design, [done[cell] for cell in cells], facts)
    if folder is not None:
        comparison.write(folder)
    return comparison


def _summaries(rows: Iterable[Row]) -> list[Summary]:
    """Return the means over seeds of the rows that have numbers."""
    return summaries_of([row for row in rows if row.true_cost is not None])


def _turn(cell: Cell) -> tuple[bool, bool]:
    """Return the key that sorts cells: slow ones first, so that no core waits long at the end.

    Cells that load torch come before all others, because joblib mistakes a process that grows a
    lot after its first cell for one that leaks memory.
    """
    method = METHODS[cell.method]
    return not method.needs_imitation, method.most_seeds is None


def _watched(rows: Iterable[Item], missing: int, total: int, wanted: bool) -> Iterator[Item]:
    """Show progress as a bar in a terminal, and as a line for each tenth elsewhere."""
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
