"""Means over seeds, and the table of a task: one row per method, one column per number of demonstrations.

The last four columns are those of the most informative level that the method was run at: the expert's exact occupancy,
or else the largest number of demonstrations. The best of each column is bold; the reference rows come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rlfd_gym.compare.cells import EXACT, Row
from rlfd_gym.compare.measures import mean_and_margin
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.tasks import TASKS
from rlfd_gym.report.html import Cell as PageCell
from rlfd_gym.report.html import Report

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table as RichTable

WIDTH = 100
LEGEND = (
    "true expected cost by exact evaluation, mean ± 95% interval over seeds, after so many demonstrations or from the "
    "expert's exact occupancy. closed: share of the way from the expert to the optimum. dist: of the learned cost to "
    "the truth up to scale and shift, 0 the truth, 1 tells nothing. gap: duality gap of its own problem. time: "
    "of one solve. The last four at the level furthest right."
)


@dataclass(frozen=True)
class Summary:
    """The mean of a method's rows over seeds."""

    task: str
    method: str
    alpha: float | None
    demonstrations: int | str
    n: int
    """Seeds, 1 where nothing is random."""
    true_cost: float
    true_cost_margin: float | None
    """Half the width of the 95% interval."""
    share_closed: float
    share_closed_margin: float | None
    cost_distance: float | None
    duality_gap: float | None
    seconds: float

    def values(self) -> dict[str, Any]:
        """The fields by name."""
        return asdict(self)


@dataclass(frozen=True)
class Table:
    """A table of text, with its bold cells and its reference rows; prints in a terminal, a page, a README."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    reference: tuple[int, ...]
    notes: tuple[str, ...] = ()
    """Sentences to print under it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """For rich. Where it is too narrow for a line, intervals go to the next one: no digit is left out."""
        from rich.text import Text

        table = self._rich()
        width = console.measure(table, options=options.update_width(1000)).maximum
        yield Text(self.title, style="bold")
        yield table if width <= options.max_width else self._rich(narrow=True)
        yield from self.notes

    def __str__(self) -> str:
        """As plain text, at most 100 columns wide."""
        try:
            from rich.console import Console
        except ImportError as error:
            raise ImportError('tables need rich: pip install "rlfd-gym[report]"', name="rich") from error

        console = Console(width=WIDTH, color_system=None, force_terminal=False, highlight=False)
        with console.capture() as captured:
            console.print(self)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def markdown(self) -> str:
        """For a README."""
        lines = ["| " + " | ".join(self.header) + " |", "|---|" + "---:|" * (len(self.header) - 1)]
        for row in self.rows:
            lines.append("| " + " | ".join(f"**{cell.text}**" if cell.bold else cell.text for cell in row) + " |")
        return "\n".join(lines)

    def add_to(self, page: Report) -> Report:
        """On a page of HTML."""
        page.table(self.header, self.rows, self.reference)
        for note in self.notes:
            page.text(note)
        return page

    def _repr_html_(self) -> str:
        return "\n".join(self.add_to(Report("").text(self.title)).parts)

    def _rich(self, narrow: bool = False) -> RichTable:
        from rich import box
        from rich.table import Table as RichTable
        from rich.text import Text

        frame = box.Box("    \n    \n -- \n    \n    \n -- \n    \n    \n", ascii=True)
        table = RichTable(box=frame, padding=0, pad_edge=False)
        for number, name in enumerate(self.header):
            table.add_column(name, justify="right" if number else "left", no_wrap=not narrow, overflow="fold")
        for number, row in enumerate(self.rows):
            style = "dim" if number in self.reference else ""
            texts = [cell.text.replace("±", "\n±") if narrow else cell.text for cell in row]
            cells = [Text(text, style="bold" if cell.bold else "") for text, cell in zip(texts, row, strict=True)]
            table.add_row(*cells, style=style, end_section=number + 1 == len(self.reference))
        return table


def summaries_of(rows: Sequence[Row]) -> list[Summary]:
    """Means over seeds, in the order of the rows, all of which have numbers."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.task, row.method, row.alpha, row.demonstrations), []).append(row)
    return [_summary(group) for group in groups.values()]


def label(item: Row | Summary) -> str:
    """The method's title, with its α."""
    return METHODS[item.method].title + ("" if item.alpha is None else f" α={item.alpha:g}")


def last_level(items: Sequence[Any]) -> dict[tuple[str, float | None], Any]:
    """Of rows or summaries, for each method and α the one at the most informative level."""
    found: dict[tuple[str, float | None], Any] = {}
    for item in items:
        best = found.setdefault((item.method, item.alpha), item)
        if level_key(item.demonstrations) > level_key(best.demonstrations):
            found[item.method, item.alpha] = item
    return found


def level_key(level: int | str) -> float:
    """To sort numbers of demonstrations by, the exact occupancy last."""
    return math.inf if level == EXACT else float(level)


def table_of(task: str, summaries: Sequence[Summary], levels: Sequence[int | str], notes: Sequence[str] = ()) -> Table:
    """The table of one task."""
    found = {(summary.method, summary.alpha, summary.demonstrations): summary for summary in summaries}
    lines = []
    for last in last_level(summaries).values():
        if METHODS[last.method].reference:  # the same whatever is demonstrated
            lines.append((last, [None] * (len(levels) - 1) + [last]))
        else:
            lines.append((last, [found.get((last.method, last.alpha, level)) for level in levels]))
    own = [line for line in lines if not METHODS[line[0].method].reference]
    lowest = [_best(None if costs[k] is None else costs[k].true_cost for _, costs in own) for k in range(len(levels))]
    most = _best(-last.share_closed for last, _ in own)
    nearest = _best(last.cost_distance for last, _ in own)
    rows = []
    for last, costs in lines:
        reference = METHODS[last.method].reference
        cells = [PageCell(label(last))]
        for cost, best in zip(costs, lowest, strict=True):
            text = "" if cost is None else _mean(cost.true_cost, cost.true_cost_margin)
            cells.append(PageCell(text, cost is not None and not reference and _same(cost.true_cost, best)))
        cells += [
            PageCell(_percent(last.share_closed), not reference and _same(-last.share_closed, most, 2)),
            PageCell(_decimal(last.cost_distance), not reference and _same(last.cost_distance, nearest, 2)),
            PageCell("" if last.duality_gap is None else f"{last.duality_gap:.0e}"),
            PageCell("" if reference else _time(last.seconds)),
        ]
        rows.append(tuple(cells))
    header = ("", *map(str, levels), "closed", "dist", "gap", "time")
    reference_rows = tuple(k for k, (last, _) in enumerate(lines) if METHODS[last.method].reference)
    return Table(TASKS[task].title, header, tuple(rows), reference_rows, tuple(notes))


def _summary(group: Sequence[Row]) -> Summary:
    first = group[0]
    cost, cost_margin = mean_and_margin([row.true_cost for row in group if row.true_cost is not None])
    share, share_margin = mean_and_margin([row.share_closed for row in group if row.share_closed is not None])
    distances = [row.cost_distance for row in group if row.cost_distance is not None]
    gaps = [row.duality_gap for row in group if row.duality_gap is not None]
    return Summary(
        first.task, first.method, first.alpha, first.demonstrations, len(group), cost, cost_margin, share, share_margin,
        mean_and_margin(distances)[0] if distances else None,
        mean_and_margin(gaps)[0] if gaps else None,
        mean_and_margin([row.seconds for row in group])[0],
    )  # fmt: skip


def _best(values: Any) -> float | None:
    return min((value for value in values if value is not None and not math.isnan(value)), default=None)


def _same(value: float | None, best: float | None, decimals: int = 3) -> bool:
    """Equal as far as the table shows."""
    return value is not None and best is not None and round(value, decimals) == round(best, decimals)


def _mean(mean: float, margin: float | None) -> str:
    return f"{mean:.3f}" + ("" if margin is None else f"±{margin:.3f}")


def _percent(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * share + 0.0:.0f}%".replace("-0%", "0%")


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _time(seconds: float) -> str:
    return f"{seconds:.1f}s" if seconds >= 0.1 else f"{1000 * seconds:.0f}ms"
