"""The report of a comparison: a page of HTML that opens offline, and its pictures as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlfd_gym.compare.figures import figures_of
from rlfd_gym.compare.measures import legend
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.slider import slider_over_alpha
from rlfd_gym.report import plots
from rlfd_gym.report.html import Report, asset

if TYPE_CHECKING:
    from rlfd_gym.compare.comparison import Comparison


def write_page(comparison: Comparison, folder: Path, about: Mapping[str, Any]) -> Path:
    """Write `report.html` and the pictures to a folder; `about` is what `results.json` says."""
    page = Report("Apprenticeship learning, side by side").text(f"In the tables: {legend()}")
    tables = {task: comparison.table(task) for task in comparison.design.tasks}
    names = {task: table.title.split(":")[0] for task, table in tables.items()}
    for task, table in tables.items():
        page.heading(table.title, anchor=task)
        if len(tables) > 1:
            page.links("Other tasks:", {other: name for other, name in names.items() if other != task})
        table.add_to(page)
        page.parts += slider_over_alpha(task, comparison.summaries(task))
        for name, figure, caption in figures_of(comparison, task):
            page.picture(plots.save(figure, folder / f"{task}_{name}.png", dpi=110), caption)
    if any('class="slider"' in part for part in page.parts):
        page.style = asset("slider.css")
        page.block(f"<script>\n{asset('slider.js')}</script>")
    explained = [METHODS[name] for name in comparison.design.methods if name in METHODS]
    page.heading("The methods").text(
        "Settings follow one rule, without the truth: the default of a method's authors, where they name none this "
        "library's, and where only data can tell a choice by held-out demonstrations. A weight of a prior is not "
        "chosen: there is a row for each."
    )
    page.table(["method", "what it does", "setting"], [[m.title, m.explanation, m.setting] for m in explained])
    page.heading("How this was made")
    page.text("results.csv has every cell, summary.csv the means, results.json the following:")
    page.code(json.dumps(about, indent=2))
    page.write(folder / "report.html")
    return folder / "report.html"
