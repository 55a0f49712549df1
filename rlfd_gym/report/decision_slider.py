"""The slider of a decision's page: the same decision for other α, or other widths of the ranges.

All positions are computed beforehand (`Decision.path`) and put into the page as JSON, in the words
and digits in which they are shown; a small script, `slider.js`, chooses among them. Without a
script, and on paper, a table shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.decision import Decision, Recommendation
from rlfd_gym.decision.words import money, period_of
from rlfd_gym.report.html import embedded

WIDE, TALL = 100.0, 40.0  # of the chart, in its own units


def slider(decision: Decision, shown: Sequence[Recommendation]) -> str:
    """Return the slider, its chart, the policy at its position, and the table in its place."""
    about = slider_data(decision, shown)
    last, chosen = len(about["points"]) - 1, about["chosen"]
    state, action = (decision.log.names.get(role, role) for role in ("state", "action"))
    numbers = "".join(
        f'<div><dt>{escape(name)}</dt><dd data-number="{k}">{escape(number)}</dd></div>'
        for k, (name, number) in enumerate(zip(about["names"], about["points"][chosen]["numbers"], strict=True))
    )
    rows = "".join(
        f'<tr><th scope="row">{escape(str(one.state))}</th><td>{escape(str(one.present))}</td><td></td><td></td></tr>'
        for one in shown
    )
    heads = "".join(
        f'<th scope="col">{escape(name)}</th>'
        for name in (state, f"{action} now", f"{action} at this position", f"{period_of(decision)}s seen")
    )
    left, right = map(escape, _ends(decision))
    return f"""<p class="note">{escape(_explained(decision))}</p>
<section class="slider" data-path="path" hidden>
<label for="setting">{escape(_label(decision))}</label>
<input type="range" id="setting" min="0" max="{last}" step="1" value="{chosen}">
<div class="ends" aria-hidden="true"><span>{left}</span><span>{right}</span></div>
<output for="setting" id="position" aria-live="polite"></output>
<dl class="numbers">{numbers}</dl>
{_chart(decision)}
<div class="scroll"><table class="fit" id="policy"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>
</section>
<div class="static">{_static(about)}</div>
<script type="application/json" id="path">{embedded(about)}</script>"""


def slider_data(decision: Decision, shown: Sequence[Recommendation]) -> dict[str, Any]:
    """Return what the script shows at each position, as text.

    `names` says what the numbers of a position are; `actions` and `rows` have an entry for each
    state that is shown.
    """
    path, log = decision.path, decision.log
    period, earns = period_of(decision), decision.present.value < 0
    amounts = -path.expected_cost if earns else path.expected_cost
    names = [
        f"{'earns' if earns else 'costs'} a {period}",
        f"{'more' if earns else 'less'} than now",
        "guaranteed",
    ]
    open_prices = [k for k, price in enumerate(decision.prices) if price.range[0] < price.range[1]]
    names += [f"acts as if {decision.prices[k].name} cost" for k in open_prices]
    places = {label: s for s, label in enumerate(log.state_labels)}
    states = [places[one.state] for one in shown]
    visits, points = log.mdp.table(log.visits, fill=0.0), []
    present = [one.present for one in decision.recommendations]
    everywhere = [places[one.state] for one in decision.recommendations]
    for k, value in enumerate(path.values.tolist()):
        numbers = [amounts[k], path.improvement[k], path.guaranteed[k], *path.prices[k, open_prices]]
        actions = path.actions[k]
        points.append(
            {
                "value": f"{value:.3g}",
                "numbers": [money(float(number)) for number in numbers],
                "actions": [str(log.action_labels[actions[s]]) for s in states],
                "rows": [int(visits[s, actions[s]]) for s in states],
                "changed": sum(
                    log.action_labels[actions[s]] != now for s, now in zip(everywhere, present, strict=True)
                ),
            }
        )
    return {
        "parameter": "α" if path.parameter == "alpha" else "width of your ranges",
        "names": names,
        "present": [str(one.present) for one in shown],
        "states": len(decision.recommendations),
        "least": decision.least_rows,
        "chosen": path.chosen,
        "points": points,
    }


def _label(decision: Decision) -> str:
    if decision.path.parameter == "alpha":
        return "How much your prior counts against the log (α)"
    return "How wide your ranges are (1: as you gave them)"


def _ends(decision: Decision) -> tuple[str, str]:
    if decision.path.parameter == "alpha":
        return "do as the log does", "do as the prior says"
    return "you know the prices", "you know less than you said"


def _explained(decision: Decision) -> str:
    moved = "another weight of your prior" if decision.path.parameter == "alpha" else "narrower and wider ranges"
    promised, saving = money(decision.promised), money(decision.saving.value)
    became = f": in the answers above, {promised} became {saving}" if promised != saving else ""
    return (
        f"The same decision for {moved}. These numbers are what the estimated model promises, before they are "
        f"corrected for having been chosen on the same log{became}."
    )


def _static(about: dict[str, Any]) -> str:
    """Return the numbers of all positions as a table."""
    header = [about["parameter"], *about["names"], "states that change"]
    lines = []
    for k, point in enumerate(about["points"]):
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in [*point["numbers"], point["changed"]])
        chosen = " (used)" if k == about["chosen"] else ""
        lines.append(f'<tr><th scope="row">{escape(point["value"])}{chosen}</th>{cells}</tr>')
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = f"<thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll"><table class="fit">{body}</table></div>'


def _chart(decision: Decision) -> str:
    """Return improvement and guarantee at all positions, as lines, and where the slider stands."""
    path = decision.path
    both = np.concatenate([path.improvement, path.guaranteed, [0.0]])
    high = float(both.max())
    low = max(float(both.min()), -high)  # below, nothing is guaranteed, and the numbers say how little
    span = high - low or 1.0
    places = np.linspace(0, WIDE, len(path.values)) if len(path.values) > 1 else np.array([0.0])

    def line(numbers: FloatArray) -> str:
        heights = TALL * (high - numbers) / span
        return " ".join(f"{x:.2f},{y:.2f}" for x, y in zip(places, heights, strict=True))

    zero, here = TALL * high / span, places[path.chosen]
    more = "more" if decision.present.value < 0 else "less"
    return f"""<figure class="chart" aria-hidden="true"><div class="axis">{money(high)}</div>
<svg viewBox="0 0 {WIDE:g} {TALL:g}" preserveAspectRatio="none">
<line class="zero" x1="0" x2="{WIDE:g}" y1="{zero:.2f}" y2="{zero:.2f}"/>
<line class="marker" id="marker" x1="{here:.2f}" x2="{here:.2f}" y1="0" y2="{TALL:g}"/>
<polyline class="improvement" points="{line(path.improvement)}"/>
<polyline class="guaranteed" points="{line(path.guaranteed)}"/></svg><div class="axis">{money(low)}</div>
<figcaption><span class="key improvement">{more} than now</span>
<span class="key guaranteed">guaranteed</span></figcaption></figure>"""
