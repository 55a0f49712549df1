"""The slider of a comparison's page: what the weight of the prior does to each method of a task.

A method that was run for several α has a path over α. The slider shows the numbers of all such
methods at one α side by side, at the most informative level of each. All positions are in the page;
the script is that of a decision's page (`slider.js`).
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from rlfd_gym.compare.measures import MAIN, MEASURES
from rlfd_gym.compare.tables import Summary, last_level
from rlfd_gym.report.html import embedded

NONE = "not run"  # in the place of the first number, where a method was not run at an α


def slider_over_alpha(task: str, summaries: Sequence[Summary]) -> list[str]:
    """Return the slider as a part of a page; nothing where no method has several α."""
    data, labels = slider_data(summaries)
    if not labels:
        return []
    name, last = escape(task, quote=True), len(data["points"]) - 1
    heads = "".join(f'<th scope="col">{escape(measure.title)}</th>' for measure in MEASURES.values())
    blank = "<td></td>" * len(MEASURES)
    rows = "".join(f'<tr><th scope="row">{escape(label)}</th>{blank}</tr>' for label in labels)
    return [
        f"""<section class="slider" data-path="path-{name}" hidden>
<label for="alpha-{name}">How much the prior counts against the expert (α)</label>
<input type="range" id="alpha-{name}" min="0" max="{last}" step="1" value="{last // 2}">
<div class="ends" aria-hidden="true"><span>do as the expert does</span><span>do as the prior says</span></div>
<output for="alpha-{name}" aria-live="polite"></output>
<div class="scroll"><table><thead><tr><th></th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
</section>
<script type="application/json" id="path-{name}">{embedded(data)}</script>"""
    ]


def slider_data(summaries: Sequence[Summary]) -> tuple[dict[str, Any], list[str]]:
    """Return what the script shows at each α, as text, and the labels of the methods that have a path."""
    paths: dict[tuple[str, str], dict[float, Summary]] = {}
    for (method, alpha, reading), summary in last_level(summaries).items():
        if alpha is not None:
            paths.setdefault((method, reading), {})[alpha] = summary
    paths = {key: found for key, found in paths.items() if len(found) > 1}
    alphas = sorted({alpha for found in paths.values() for alpha in found})
    labels = [_label(next(iter(found.values()))) for found in paths.values()]
    points = []
    for alpha in alphas:
        at = [found.get(alpha) for found in paths.values()]
        costs = [_texts(summary)[0] for summary in at]
        points.append({"value": f"{alpha:g}", "numbers": costs, "table": [_texts(summary) for summary in at]})
    return {"parameter": "α", "names": labels, "chosen": None, "points": points}, labels  # none of them was chosen


def _label(summary: Summary) -> str:
    return summary.title + (" as mode" if summary.reading == "mode" else "")


def _texts(summary: Summary | None) -> list[str]:
    """Return the measures of a method at one α, the main one first."""
    assert next(iter(MEASURES)) == MAIN
    if summary is None:
        return [NONE, *[""] * (len(MEASURES) - 1)]
    numbers = [summary.measures.get(name) for name in MEASURES]
    return [
        "" if number is None else measure.format(number)
        for number, measure in zip(numbers, MEASURES.values(), strict=True)
    ]
