"""The pictures of a comparison, four for each task, drawn from its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.compare.cells import EXACT, Row
from rlfd_gym.compare.facts import Facts
from rlfd_gym.compare.tables import Summary, last_level
from rlfd_gym.report import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from rlfd_gym.compare.comparison import Comparison

MARKERS = "osD^vPX*<>ph"
COLUMNS = 5
CAPTIONS = {
    "costs": "True expected cost (lower is better) with its 95% interval over seeds, from the expert's exact occupancy "
    "where the method was run with it. Dotted: the expert.",
    "demonstrations": "True expected cost against the number of demonstrations, with 95% intervals over seeds.",
    "cost of cells": "Learned costs for seed 0, the mean over the actions of each cell, each minus its median and "
    "divided by its largest absolute value.",
    "cost of orders": "Learned costs for seed 0, stock on hand down and order to the right, each minus its median and "
    "divided by its largest absolute value.",
    "arrows": "Policies for seed 0. An arrow is as long as the action is likely.",
    "orders": "Policies for seed 0. Blue: the most likely order at each stock, the middle 80% of the orders as a band; "
    "green: the optimum; black: the expert.",
}


def figures_of(comparison: Comparison, task: str) -> Iterator[tuple[str, Figure, str]]:
    """Draw the pictures of a task; yield (name, figure, caption) of each."""
    summaries, facts = comparison.summaries(task), comparison.facts[task]
    shown = _shown([row for row in comparison.rows if row.task == task and row.seed == 0 and row.policy is not None])
    yield "costs", bars(summaries), CAPTIONS["costs"]
    if len(comparison.design.demonstrations) > 1:
        yield (
            "demonstrations",
            against_demonstrations(summaries, comparison.design.demonstrations),
            CAPTIONS["demonstrations"],
        )
    if any(row.cost is not None and not row.reference for row in shown.values()):
        kind = "cost of cells" if facts.grid else "cost of orders"
        yield "learned", learned_costs(facts, shown), CAPTIONS[kind]
    yield "policies", policies(facts, shown), CAPTIONS["arrows" if facts.grid else "orders"]


def bars(summaries: Sequence[Summary]) -> Figure:
    """Draw the true expected cost, with one bar for each row of the table."""
    last = list(last_level(summaries).values())
    figure, axes = plots.new_figure(size=(7.0, 0.8 + 0.24 * len(last)))
    axis = axes[0, 0]
    place = np.arange(len(last))
    margins = [summary.true_cost_margin or 0.0 for summary in last]
    axis.barh(place, [s.true_cost for s in last], xerr=margins, color=[_colour(s) for s in last],
              error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "#555555"})  # fmt: skip
    axis.set_yticks(place, [summary.label for summary in last])
    axis.invert_yaxis()
    axis.axvline(next(s.true_cost for s in last if s.method == "expert"), color=plots.BLACK, linestyle=":", linewidth=1)
    axis.axvline(0.0, color=plots.GREY, linewidth=0.8)
    axis.set_xlabel("true expected cost")
    axis.grid(False, axis="y")
    return figure


def against_demonstrations(summaries: Sequence[Summary], levels: Sequence[int | str]) -> Figure:
    """Draw the true expected cost against the demonstrations, with and without a prior or a belief."""
    figure, axes = plots.new_figure(1, 2, size=(10.0, 4.2), sharey=True)
    names = {"expert's exact\noccupancy" if level == EXACT else str(level): level for level in levels}
    for axis, knows in zip(axes[0], (True, False), strict=True):
        for reference in ("optimum", "expert"):
            cost = next(s.true_cost for s in summaries if s.method == reference)
            axis.axhline(cost, color=plots.COLOURS[reference], linestyle=":", linewidth=1.2)
            axis.text(1.0, cost, f" {reference}", transform=axis.get_yaxis_transform(), va="center", fontsize=8)
        lines: dict[str, list[Summary]] = {}
        for summary in summaries:
            if not summary.reference and (summary.uses_prior or summary.uses_belief) == knows:
                lines.setdefault(summary.label, []).append(summary)
        for k, (name, line) in enumerate(lines.items()):
            x = np.array([levels.index(s.demonstrations) for s in line]) + 0.5 * (k - (len(lines) - 1) / 2) / max(
                len(lines), 10
            )
            axis.errorbar(
                x, [s.true_cost for s in line], yerr=[s.true_cost_margin or 0.0 for s in line], label=name,
                color=plots.SEQUENCE[k % len(plots.SEQUENCE)], marker=MARKERS[k % len(MARKERS)], markersize=4,
                linewidth=1.2, elinewidth=0.8, capsize=2,
            )  # fmt: skip
        axis.set_xticks(range(len(names)), list(names))
        axis.set_xlabel("demonstrations")
        axis.set_title("methods that know a prior or a belief" if knows else "methods that know neither")
        if lines:
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.26), ncols=3, fontsize=8, frameon=False)
    means = [s.true_cost for s in summaries]
    room = 0.15 * (max(means) - min(means))
    axes[0, 0].set_ylim(min(means) - room, max(means) + room)  # wide intervals may leave the picture
    axes[0, 0].set_ylabel("true expected cost")
    return figure


def learned_costs(facts: Facts, shown: dict[str, Row]) -> Figure:
    """Draw the true cost, the prior, and the cost that each method learned."""
    names = {"optimum": "truth", "prior": "prior"}  # the costs with which these two reference rows plan
    costs = {
        names.get(row.method, row.label): row.cost
        for row in shown.values()
        if row.cost is not None and (row.method in names or not row.reference)
    }
    figure, axes = _panels(len(costs))
    for axis, (name, cost) in zip(axes, costs.items(), strict=False):
        axis.set_title(name, fontsize=8)
        image = _draw_cost(axis, facts, _normalised(cost))
    figure.colorbar(image, ax=list(axes), shrink=0.5, label="cost, normalised")
    return figure


def policies(facts: Facts, shown: dict[str, Row]) -> Figure:
    """Draw the policy of each method."""
    known = {name: row.policy for name, row in shown.items() if row.policy is not None}
    left_out = ("random",) if facts.grid else ("random", "optimum", "expert")
    drawn = {name: policy for name, policy in known.items() if name not in left_out}
    figure, axes = _panels(len(drawn))
    for axis, (name, policy) in zip(axes, drawn.items(), strict=False):
        axis.set_title(name, fontsize=8)
        if facts.grid is not None:
            plots.draw_policy(axis, facts.grid, facts.pairs, policy)
            continue
        beside = {other: known[other] for other in ("optimum", "expert")}
        colours = {"optimum": plots.COLOURS["optimum"], "expert": plots.BLACK, name: plots.COLOURS["apprentice"]}
        plots.draw_orders(
            axis, facts.pairs, {**beside, name: policy}, plots.COLOURS | colours,
            state_label="stock on hand (units)", action_label="order (units)",
        )  # fmt: skip
        axis.tick_params(labelsize=7)
        axis.xaxis.label.set_fontsize(7)
        axis.yaxis.label.set_fontsize(7)
        axis.label_outer()
    return figure


def _shown(rows: Sequence[Row]) -> dict[str, Row]:
    """Return the row of each method at the last level, by label."""
    return {row.label: row for row in last_level(rows).values()}


def _panels(number: int) -> tuple[Figure, Sequence[Axes]]:
    """Return a figure and its small square panels; panels that are not needed stay blank."""
    columns = min(COLUMNS, number)
    rows = -(-number // columns)
    figure, axes = plots.new_figure(rows, columns, size=(2.1 * columns, 2.2 * rows))
    for axis in axes.ravel()[number:]:
        axis.set_visible(False)
    return figure, list(axes.ravel()[:number])


def _draw_cost(axis: Axes, facts: Facts, cost: FloatArray) -> Any:
    if facts.grid is not None:
        return plots.draw_cost(axis, facts.grid, facts.pairs, cost)
    axis.grid(False)
    return axis.imshow(facts.pairs.table(cost), cmap=plots.COST_MAP, vmin=-1, vmax=1)


def _normalised(cost: FloatArray) -> FloatArray:
    centred = np.asarray(cost) - np.median(cost)
    size = float(np.abs(centred).max())
    return centred / size if size > 1e-9 else np.zeros_like(centred)


def _colour(summary: Summary) -> str:
    if summary.reference:
        return plots.COLOURS[summary.method]
    if summary.method.startswith("rlfd"):
        return plots.COLOURS["apprentice"]
    return plots.COLOURS["hull"] if summary.uses_basis else plots.PURPLE
