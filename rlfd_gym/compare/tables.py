"""Means over seeds, and the table of a task: a row per method, a column per level.

A level is a number of demonstrations, or the exact occupancy. The columns of the levels show the
measure `MAIN`. Every other measure has one column, and so does the time; these columns show the
most informative level at which the method was run: the expert's exact occupancy, or else the
largest number of demonstrations. The best number of each column is bold, unless several rows show
the same; methods that have not solved their own problem, by their gap, do not compete. In the
columns of the levels a number is coloured if it is better or worse than the expert's by more than
its interval, and by more than the digits that are shown. The reference rows come first. A policy is
read as a mixture unless its row says "as mode".
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from rlfd_gym.compare.cells import Result, Row, level_key
from rlfd_gym.compare.measures import MAIN, MEASURES, NOTHING, UNSOLVED, Measure
from rlfd_gym.report.html import COLOURS, Report
from rlfd_gym.report.html import Cell as PageCell
from rlfd_gym.report.tables import mean_and_margin

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable

WIDTH = 100
KEY = (
    PageCell("Bold", bold=True),
    PageCell(": the best of its column; "),
    PageCell("blue", tone="better"),
    PageCell(": better than the expert, "),
    PageCell("orange", tone="worse"),
    PageCell(": worse, by more than the interval."),
)
EXPERT = "expert"  # the reference method that colours compare with
AnyResult = TypeVar("AnyResult", bound=Result)


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary(Result):
    """The means of a method's rows over seeds. The fields of `Result` say which method, and where.

    Its `measures` are the means by name. For measures with an interval, `name_margin` is half the
    width of the 95% interval, or `None` for a single seed.

    Attributes:
        n: the number of seeds; 1 if nothing is random.
    """

    n: int

    def values(self) -> dict[str, Any]:
        """Return a record for a CSV file."""
        where = {name: getattr(self, name) for name in ("task", "method", "alpha", "demonstrations", "reading", "n")}
        return where | self.measures | {"seconds": self.seconds}


@dataclass(frozen=True)
class Table:
    """A table of text that prints in a terminal, a notebook, a page or a README.

    Attributes:
        title: the title of the table.
        header: the heads of its columns.
        rows: its cells, some of them bold.
        reference: the numbers of the reference rows, which come first.
        notes: sentences to print below the table.
        headline: what the table shows, in words, to print above it.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    reference: tuple[int, ...]
    notes: tuple[str, ...] = ()
    headline: str = ""

    def __str__(self) -> str:
        """Return the table as plain text, laid out as rich does for 100 columns, without rich.

        If the columns need more space, intervals go to the next line.
        """
        texts = [list(self.header), *([cell.text for cell in row] for row in self.rows)]
        lines = [[[text] for text in row] for row in texts]
        if _width(lines) > WIDTH:
            lines = [[text.replace("±", "\n±").split("\n") for text in row] for row in texts]
        head, *body = (_aligned(row, _widths(lines)) for row in lines)
        if 0 < len(self.reference) < len(body):
            body.insert(len(self.reference), [""])
        table = ["", *head, f" {'-' * (_width(lines) - 2)}", *(line for row in body for line in row), ""]
        notes = [line for note in self._below() for line in _wrapped(note)]
        return "\n".join([*_wrapped(self.title), *_wrapped(self.headline), *table, *notes])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the table with rich.

        If the terminal is too narrow, intervals go to the next line, so that no digit is lost.
        """
        from rich.text import Text

        table = self._rich()
        width = console.measure(table, options=options.update_width(1000)).maximum
        yield Text(self.title, style="bold")
        if self.headline:
            yield Text(self.headline)
        yield table if width <= options.max_width else self._rich(narrow=True)
        if self._is_coloured():
            yield Text.assemble(*((part.text, _style(part)) for part in KEY))
        yield from map(Text, self.notes)  # a string would be read as markup

    def markdown(self) -> str:
        """Return the table in Markdown, for a README."""
        lines = ["| " + " | ".join(self.header) + " |", "|---|" + "---:|" * (len(self.header) - 1)]
        for row in self.rows:
            lines.append("| " + " | ".join(f"**{cell.text}**" if cell.bold else cell.text for cell in row) + " |")
        return "\n".join(lines)

    def add_to(self, page: Report) -> Report:
        """Add the table to a page of HTML."""
        if self.headline:
            page.text(self.headline)
        page.table(self.header, self.rows, self.reference)
        if self._is_coloured():
            page.key(KEY)
        for note in self.notes:
            page.text(note)
        return page

    def _repr_html_(self) -> str:
        return "\n".join(self.add_to(Report("").text(self.title)).parts)

    def _is_coloured(self) -> bool:
        return any(cell.tone for row in self.rows for cell in row)

    def _below(self) -> tuple[str, ...]:
        """Return the key of the colours, if there are any, and the notes."""
        key = ("".join(part.text for part in KEY),) if self._is_coloured() else ()
        return key + self.notes

    def _rich(self, narrow: bool = False) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        frame = box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
        table = RichTable(box=frame, padding=0, pad_edge=False)
        for number, name in enumerate(self.header):
            table.add_column(Text(name), justify="right" if number else "left", no_wrap=not narrow, overflow="fold")
        for number, row in enumerate(self.rows):
            style = "dim" if number in self.reference else ""
            texts = [cell.text.replace("±", "\n±") if narrow else cell.text for cell in row]
            cells = [Text(text, style=_style(cell)) for text, cell in zip(texts, row, strict=True)]
            table.add_row(*cells, style=style, end_section=number + 1 == len(self.reference))
        return table


def summaries_of(rows: Sequence[Row]) -> list[Summary]:
    """Return the means over seeds, in the order of the rows; all rows must have numbers."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.task, row.method, row.alpha, row.demonstrations, row.reading), []).append(row)
    return [_summary(group) for group in groups.values()]


def last_level(results: Sequence[AnyResult]) -> dict[tuple[str, float | None, str], AnyResult]:
    """Return the result at the most informative level for each method, α and reading."""
    found: dict[tuple[str, float | None, str], AnyResult] = {}
    for result in results:
        best = found.setdefault((result.method, result.alpha, result.reading), result)
        if level_key(result.demonstrations) > level_key(best.demonstrations):
            found[result.method, result.alpha, result.reading] = result
    return found


def table_of(
    title: str,
    summaries: Sequence[Summary],
    levels: Sequence[int | str],
    notes: Sequence[str] = (),
    headline: str = "",
) -> Table:
    """Return the table of one task."""
    shown = last_level(summaries)
    lasts = list(shown.values())
    expert = next((last.measures.get(MAIN) for last in lasts if last.reference and last.method == EXPERT), None)
    found = {(s.method, s.alpha, s.reading, s.demonstrations): s for s in summaries}
    columns = [[PageCell(last.label) for last in lasts]]
    for level in levels:
        # The reference rows do not depend on demonstrations: they are shown in the last column.
        at_level = [
            (last if level == levels[-1] else None) if last.reference else found.get((*key, level))
            for key, last in shown.items()
        ]
        columns.append(
            [_toned(cell, s, expert) for cell, s in zip(_column(MEASURES[MAIN], at_level), at_level, strict=True)]
        )
    columns += [_column(measure, lasts) for name, measure in MEASURES.items() if name != MAIN]
    columns.append([PageCell("" if last.reference else _time(last.seconds)) for last in lasts])
    heads = [measure.title for name, measure in MEASURES.items() if name != MAIN]
    return Table(
        title=title,
        header=("", *map(str, levels), *heads, "time"),
        rows=tuple(zip(*columns, strict=True)),
        reference=tuple(k for k, last in enumerate(lasts) if last.reference),
        notes=tuple(notes),
        headline=headline,
    )


def _summary(group: Sequence[Row]) -> Summary:
    measures: dict[str, float | None] = {}
    for name in group[0].measures:
        values = [value for row in group if (value := row.measures.get(name)) is not None]
        measures[name], margin = mean_and_margin(values) if values else (None, None)
        if name in MEASURES and MEASURES[name].interval:
            measures[f"{name}_margin"] = margin
    same = {item.name: getattr(group[0], item.name) for item in fields(Result)}
    seconds = mean_and_margin([row.seconds for row in group])[0]
    return Summary(**same | {"measures": measures, "seconds": seconds, "n": len(group)})


def _column(measure: Measure, summaries: Sequence[Summary | None]) -> list[PageCell]:
    """Return the cells of a measure, with the best one bold, not counting reference rows."""
    means = [None if s is None else s.measures.get(measure.name) for s in summaries]
    texts = ["" if mean is None else measure.format(mean) for mean in means]
    best = _best(measure, summaries, means)
    # A tie, to the digits that the table shows, is not bold, whoever it is with.
    rows = [k for k, s in enumerate(summaries) if best is not None and _competes(s) and texts[k] == texts[best]]
    bold = best if len(rows) == 1 and texts[rows[0]] != NOTHING else None
    cells = []
    for k, (s, text) in enumerate(zip(summaries, texts, strict=True)):
        margin = s.measures.get(f"{measure.name}_margin") if s is not None and measure.name == MAIN else None
        cells.append(PageCell(text + ("" if margin is None else f"±{measure.format(margin)}"), k == bold))
    return cells


def _toned(cell: PageCell, summary: Summary | None, expert: float | None) -> PageCell:
    """Colour a cell of the main measure that differs from the expert by more than its interval."""
    mean = None if summary is None or summary.reference else summary.measures.get(MAIN)
    if summary is None or mean is None or expert is None or math.isnan(mean):
        return cell
    margin = summary.measures.get(f"{MAIN}_margin") or 0.0
    sign = -1.0 if MEASURES[MAIN].best == "highest" else 1.0
    difference = sign * (mean - expert)
    if abs(difference) <= margin or MEASURES[MAIN].format(mean) == MEASURES[MAIN].format(expert):
        return cell
    return replace(cell, tone="better" if difference < 0 else "worse")


def _style(cell: PageCell) -> str:
    return " ".join((["bold"] if cell.bold else []) + ([COLOURS[cell.tone]] if cell.tone else []))


def _best(measure: Measure, summaries: Sequence[Summary | None], means: Sequence[float | None]) -> int | None:
    """Return the row with the best number among those that solved their problem, if any."""
    sign = -1.0 if measure.best == "highest" else 1.0
    rivals = [
        (sign * mean, k)
        for k, (s, mean) in enumerate(zip(summaries, means, strict=True))
        if _competes(s) and not _unsolved(s) and mean is not None and not math.isnan(mean)
    ]
    return min(rivals)[1] if rivals and measure.best is not None else None


def _competes(summary: Summary | None) -> bool:
    return summary is not None and not summary.reference


def _unsolved(summary: Summary | None) -> bool:
    gap = None if summary is None else summary.measures.get("duality_gap")
    return gap is not None and gap > UNSOLVED


def _time(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds >= 0.1 else f"{1000 * seconds:.0f}ms"


def _widths(rows: Sequence[Sequence[Sequence[str]]]) -> list[int]:
    """Return the width of each column; `rows` are rows of cells of lines."""
    return [max(len(line) for row in rows for line in row[k]) for k in range(len(rows[0]))]


def _width(rows: Sequence[Sequence[Sequence[str]]]) -> int:
    """Return the width of a table with a space before, between and after its columns."""
    widths = _widths(rows)
    return sum(widths) + len(widths) + 1


def _aligned(row: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines of a row: the first column left-aligned, the others right-aligned."""
    lines = []
    for number in range(max(map(len, row))):
        texts = [cell[number] if number < len(cell) else "" for cell in row]
        first, *others = (text.rjust(width) for text, width in zip(texts, widths, strict=True))
        lines.append(" ".join([" " + texts[0].ljust(len(first)), *others]).rstrip())
    return lines


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)
