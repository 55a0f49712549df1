"""The page on a decision: four answers, what to do in each state, a slider, and details at the end.

The page is one file that opens offline. It begins with the sentences of `rlfd_gym.decision.words`,
in the log's own words and money. The slider (`rlfd_gym.report.decision_slider`) shows the decision
for other α, or other widths of the ranges. What needs mathematics is folded up at the end.

    decision = decide(log, price_belief(log, {"holding": (0.3, 3)}, {"holding": "stock + order"}))
    write_decision(decision, folder, title="Learned from log.csv")
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from rlfd_gym._file_sets import replacing_set
from rlfd_gym.beliefs import Prices
from rlfd_gym.decision import Decision, Recommendation
from rlfd_gym.decision.resampling import only, supported
from rlfd_gym.decision.stated import in_money
from rlfd_gym.decision.words import money, period_of, sentences
from rlfd_gym.report.decision_slider import slider
from rlfd_gym.report.html import Report, asset
from rlfd_gym.report.tables import write_csv

DIGITS = 6  # of numbers in the CSV files
SHOWN_STATES, SHOWN_COSTS = 100, 12  # on the page; the CSV files have all of them
HEADLINES = 2  # sentences in large letters: what is earned now, and how much more it could be


def write_decision(
    decision: Decision,
    folder: str | os.PathLike[str],
    *,
    title: str,
    warnings: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write report.html, cost.csv, policy.csv and path.csv as a set; return the path of the page.

    Args:
        decision: what `decide` returns.
        folder: where to write; it is created if necessary.
        title: the heading of the page.
        warnings: warnings for the reader, one sentence each.
        command: the command that made the page.
    """
    with replacing_set(folder) as new:
        write_pairs(decision, new)
        header, rows = path_rows(decision)
        write_csv(Path(new) / "path.csv", header, rows, DIGITS)
        page = decision_page(decision, title=title, warnings=warnings)
        page.details("Technical details", technical(decision, command))
        page.write(Path(new) / "report.html")
    return Path(folder) / "report.html"


def write_pairs(decision: Decision, folder: str | os.PathLike[str]) -> None:
    """Write cost.csv, which can be used as a prior, and policy.csv: a line for each pair."""
    log, out = decision.log, Path(folder)
    states, actions = zip(*log.pair_labels(), strict=True)
    before = in_money(decision.belief, decision.belief.cost(decision.belief.prior))
    header = ["state", "action", "cost", "prior", "visits", "cost_low", "cost_high"]
    columns = states, actions, decision.cost, before, log.visits, decision.cost_low, decision.cost_high
    write_csv(out / "cost.csv", header, zip(*columns, strict=True), DIGITS)
    time = log.mdp.sum_by_state(log.mdp.occupancy_of(decision.policy))[log.mdp.pair_states]
    header = ["state", "action", "probability", "logged_share", "visits", "time_in_state"]
    rows = zip(states, actions, decision.policy, log.policy, log.visits, time, strict=True)
    write_csv(out / "policy.csv", header, rows, DIGITS)


def path_rows(decision: Decision) -> tuple[list[str], Iterable[Any]]:
    """Return the header and the rows of path.csv: amounts and prices along α or the width."""
    path = decision.path
    names = list(decision.belief.names) if isinstance(decision.belief, Prices) else []
    numbers = [path.values, path.expected_cost, path.improvement, path.guaranteed, *path.prices.T]
    header = [path.parameter, "expected_cost", "improvement", "guaranteed", *(f"price of {name}" for name in names)]
    return header, np.column_stack(numbers).tolist()


def decision_page(decision: Decision, *, title: str, warnings: Sequence[str] = ()) -> Report:
    """Return the page up to the slider: the answers, what to do, and what things seem to cost."""
    page = Report(title, style=asset("slider.css") + asset("decision.css"))
    said = sentences(decision)
    page.block(f'<p class="lead">{escape(" ".join(said[:HEADLINES]))}</p>')
    page.block(f'<ul class="answers">{"".join(f"<li>{escape(one)}</li>" for one in said[HEADLINES:])}</ul>')
    for text in warnings:
        page.block(_warning(text))
    page.heading("What to do")
    page.block(_recommendations(decision))
    page.heading("What your manager acts as if things cost")
    page.block(_table(*_costs(decision)))
    page.heading("How much this depends on what you told")
    page.block(slider(decision, [one for one in decision.recommendations if one in _shown(decision)]))
    page.block(f"<script>\n{asset('slider.js')}</script>")
    return page


def technical(decision: Decision, command: str = "") -> Report:
    """Return the details that need mathematics, and the report on the log, as parts of a page."""
    page, log = Report("Technical details"), decision.log
    page.heading("How it was learned")
    page.table(["what", "value"], technical_rows(decision))
    page.heading("The log")
    page.table(["what", "number"], log.report.rows())
    return with_command(page, command)


def technical_rows(decision: Decision) -> list[list[str]]:
    """Return α, gap, regret and the like, each with its name."""
    log = decision.log
    pairs = supported(log, decision.least_rows)
    small = only(log.mdp, pairs)
    best = small.expected_cost(small.optimal(decision.cost[pairs]).policy, decision.cost[pairs])
    regret = float(log.mdp.occupancy_of(log.policy) @ decision.cost) - best
    rows = [["α", f"{decision.alpha:.4g}"]] if decision.alpha is not None else []
    rows += [["why this α", decision.reason]] if decision.reason else []
    return [
        *rows,
        ["discount γ", f"{log.mdp.discount:g}"],
        ["pairs that may be recommended", f"{pairs.size} of {log.mdp.n_pairs}"],
        ["duality gap, in [-1, 1]", f"{decision.solution.duality_gap:.1e}"],
        [
            "present rule's regret under the learned cost",
            money(regret),
        ],
        ["saving that the estimated model promises", money(decision.promised)],
        ["the same, corrected for optimism", money(decision.saving.value)],
        ["costs of the guarantee", decision.scope],
        ["intervals", f"{decision.confidence:.0%}, {decision.n_resamples} times {decision.method}"],
    ]


def with_command(page: Report, command: str) -> Report:
    """Return the page with the command that made it, if there is one."""
    return page.heading("How this was made").code(command) if command else page


def _warning(text: str) -> str:
    """Return a warning; what comes after its first colon is folded up."""
    short, sign, rest = text.partition(": ")
    head = f"<b>Warning:</b> {escape(short)}"
    if not sign:
        return f'<p class="warning">{head}.</p>'
    return f'<details class="warning"><summary>{head}</summary><p>{escape(rest)}.</p></details>'


def _shown(decision: Decision) -> list[Recommendation]:
    """Return the states where most time is spent."""
    return sorted(decision.recommendations, key=lambda one: -one.time)[:SHOWN_STATES]


def _recommendations(decision: Decision) -> str:
    """Return the table of what to do in each state, next to what is done."""
    state, action = (decision.log.names.get(role, role) for role in ("state", "action"))
    unit = f"{period_of(decision)}s seen"
    shown, rows = _shown(decision), []
    for one in decision.recommendations:
        if one in shown:
            chance = "" if one.probability > 0.995 else f" ({one.probability:.0%})"
            seen = f"only {one.rows:,}" if one.few else f"{one.rows:,}"
            cells = [one.state, f"{one.present} ({one.present_share:.0%})", f"{one.present_rows:,}"]
            classes = " ".join(["changed"] * one.changed + ["few"] * one.few)
            rows.append((classes, [*map(str, cells), f"{one.action}{chance}", seen, f"{one.agreement:.0%}"]))
    header = [state, f"{action} now (share)", unit, f"{action} instead", unit, "agreement"]
    notes = [
        f"Bold: something else than now, in {decision.n_changed} of {len(decision.recommendations)} states.",
        f"“only”: fewer than {decision.least_rows}, so the present action is kept." if decision.n_few else "",
        f"Agreement: how many of {decision.n_resamples} resamples of your log recommend the same.",
        f"The {SHOWN_STATES} states where most time is spent; policy.csv has all."
        if len(shown) < len(decision.recommendations)
        else "",
    ]
    return _table(header, rows, emphasised=3) + f'<p class="note">{escape(" ".join(filter(None, notes)))}</p>'


def _costs(decision: Decision) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the table of prices, or of the costs that were changed most."""
    if decision.prices:
        header = ["price", "your range", "acts as if", "interval"]
        prices = [
            [one.name, _between(*one.range), money(one.price.value), _between(one.price.low, one.price.high)]
            for one in decision.prices
        ]
        return header, [("", row) for row in prices]
    before = in_money(decision.belief, decision.belief.cost(decision.belief.prior))
    state, action = (decision.log.names.get(role, role) for role in ("state", "action"))
    pairs, rows = decision.log.pair_labels(), []
    for k in np.argsort(-np.abs(decision.cost - before), kind="stable")[:SHOWN_COSTS]:
        interval = _between(decision.cost_low[k], decision.cost_high[k])
        amounts = [money(before[k]), money(decision.cost[k]), interval, f"{decision.log.visits[k]:,}"]
        rows.append(("", [*map(str, pairs[k]), *amounts]))
    return [state, action, "you said", "acts as if", "interval", "rows"], rows


def _between(low: float, high: float) -> str:
    return money(low) if low == high else f"{money(low)} to {money(high)}"


def _table(header: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]], emphasised: int = -1) -> str:
    """Return a table that fits a phone; rows have classes, and changed ones an emphasised cell."""
    lines = ["".join(f'<th scope="col">{escape(name)}</th>' for name in header)]
    for classes, row in rows:
        cells = [escape(cell) for cell in row]
        if "changed" in classes.split():
            cells[emphasised] = f"<b>{cells[emphasised]}</b>"
        first = f'<th scope="row">{cells[0]}</th>'
        marked = f' class="{classes}"' if classes else ""
        lines.append(f"<tr{marked}>{first}{''.join(f'<td>{cell}</td>' for cell in cells[1:])}</tr>")
    body = f"<thead><tr>{lines[0]}</tr></thead><tbody>{''.join(lines[1:])}</tbody>"
    return f'<div class="scroll"><table class="fit">{body}</table></div>'
