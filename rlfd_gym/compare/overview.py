"""The comparison at a glance, and its page of documentation.

The overview has a row for each method, α and reading, and three columns for each task: the share of
the way from the expert to the optimum that is closed, at the middle level of what was shown and at
the last, beside the improvement that is guaranteed there. It answers where a belief is worth having, where copying
the expert's most frequent actions is enough, and where planning with the prior alone is.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlfd_gym import _checks
from rlfd_gym._files import write
from rlfd_gym.compare.cells import EXACT, level_key
from rlfd_gym.compare.comparison import Comparison
from rlfd_gym.compare.measures import MEASURES, NOTHING, UNSOLVED, Measure, legend
from rlfd_gym.compare.tables import Summary, Table
from rlfd_gym.report.html import Cell as PageCell

CLOSED, GUARANTEED = MEASURES["share_closed"], MEASURES["guaranteed"]
MARKS = "<!-- overview: by `rlfd compare --docs docs` -->", "<!-- end of the overview -->"
Row = tuple[str, float | None, str]


def overview(comparison: Comparison, rows: Sequence[Row] | None = None) -> Table:
    """Return the overview as a table.

    Args:
        comparison: what `run` returned.
        rows: the rows, each a method, its α or `None`, and its reading, "occupancy" or "mode". By
            default, all methods in the readings that the tables show.

    Example:
        >>> from rlfd_gym import compare
        >>> result = compare.run(tasks=["inventory"], methods=["cloning"], demonstrations=["exact"])
        >>> print(overview(result, [("cloning", None, "occupancy"), ("prior", None, "occupancy")]).markdown())
        |  | inventory, exact | guaranteed |
        |---|---:|---:|
        | cloning | 0% | – |
        | prior alone | **91%** | **0.074** |
    """
    _checks.instance("comparison", comparison, Comparison)
    found: dict[tuple[Any, ...], Summary] = {
        (*_key(s), s.task, s.demonstrations): s for s in comparison.all_summaries()
    }
    wanted = list(dict.fromkeys(_key(s) for s in comparison.summaries())) if rows is None else list(rows)
    levels = sorted({s.demonstrations for s in found.values() if not s.reference} or {EXACT}, key=level_key)
    shown = list(dict.fromkeys((levels[(len(levels) - 1) // 2], levels[-1])))
    header, columns = [""], []
    for task in comparison.design.tasks:
        for level in shown:
            header.append(f"{task}, {_level(level)}")
            columns.append([_at(found, row, task, level) for row in wanted])
        header.append("guaranteed")
        columns.append([_at(found, row, task, shown[-1]) for row in wanted])
    cells = [
        _cells(column, GUARANTEED if head == "guaranteed" else CLOSED)
        for head, column in zip(header[1:], columns, strict=True)
    ]
    labels = [PageCell(next((s.label for s in line if s is not None), "")) for line in zip(*columns, strict=True)]
    lines = [line for line in zip(labels, *cells, strict=True) if line[0].text]
    title = "Share of the way from the expert to the optimum, and the improvement that is guaranteed"
    return Table(title=title, header=tuple(header), rows=tuple(lines), reference=())


def write_docs(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    rows: Sequence[Row] | None = None,
    readme_rows: Sequence[Row] | None = None,
) -> list[Path]:
    """Write the page of documentation, and the overview into the README beside the folder.

    The README takes it between two marks; without them it is left alone. Returns what was written.

    Args:
        comparison: what `run` returned.
        folder: where `comparison.md` is written.
        rows: the rows of the overview, as for `overview`.
        readme_rows: the rows of the README's overview; by default the same.

    Example:
        >>> import tempfile
        >>> from rlfd_gym import compare
        >>> result = compare.run(tasks=["inventory"], methods=["cloning"], demonstrations=["exact"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in compare.write_docs(result, folder)]
        ['comparison.md']
    """
    docs = Path(folder)
    table = overview(comparison, rows).markdown()
    parts = [
        "# The comparison",
        "Written by `rlfd compare --docs docs`; do not edit it by hand. Numbers in per cent are the share of the way "
        "from the expert to the optimum under the true cost: 0% is as good as the expert, less is worse. Guaranteed: "
        "the least improvement on the expert for every cost within the ranges of the task. A policy is read as a "
        'mixture unless its row says "as mode". Bold: the best of a column, among rows that solved their problem '
        f"(gap up to {UNSOLVED:g}).",
        "## At a glance",
        table,
    ]
    for task in comparison.design.tasks:
        one = comparison.table(task)
        parts += [f"## {one.title}", one.headline, one.markdown(), *one.notes]
    text = "\n\n".join([*parts, "## What the columns are", legend()]) + "\n"
    docs.mkdir(parents=True, exist_ok=True)
    write(docs / "comparison.md", text.encode())
    readme, written = docs.parent / "README.md", [docs / "comparison.md"]
    if readme.is_file() and all(mark in readme.read_text() for mark in MARKS):
        between = re.compile(f"{re.escape(MARKS[0])}.*{re.escape(MARKS[1])}", re.DOTALL)
        small = table if readme_rows is None else overview(comparison, readme_rows).markdown()
        block = f"{MARKS[0]}\n{small}\n{MARKS[1]}"
        write(readme, between.sub(lambda _: block, readme.read_text()).encode())
        written.append(readme)
    return written


def _key(summary: Summary) -> Row:
    return summary.method, summary.alpha, summary.reading


def _level(level: int | str) -> str:
    return "exact" if level == EXACT else f"{level} demos"


def _at(found: dict[tuple[Any, ...], Summary], row: Row, task: str, level: int | str) -> Summary | None:
    """Return a row's means on a task; reference rows do not depend on the level."""
    here = found.get((*row, task, level)) or found.get((*row, task, EXACT))
    return here if here is None or here.reference or here.demonstrations == level else None


def _cells(summaries: Sequence[Summary | None], measure: Measure) -> list[PageCell]:
    """Return the cells of a column; those that show the best number are bold."""
    texts, values = [], []
    for s in summaries:
        value = None if s is None else s.measures.get(measure.name)
        value = None if value is None or math.isnan(value) else value
        texts.append("" if value is None else measure.format(value))
        gap = None if s is None else s.measures.get("duality_gap")
        values.append(None if gap is not None and gap > UNSOLVED else value)
    rivals = [(value, text) for value, text in zip(values, texts, strict=True) if value is not None]
    best = max(rivals)[1] if rivals else NOTHING
    return [
        PageCell(text, bold=value is not None and text == best != NOTHING)
        for text, value in zip(texts, values, strict=True)
    ]
