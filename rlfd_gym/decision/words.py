"""A decision in words: the log's own names, the user's money, and no mathematics."""

from __future__ import annotations

from rlfd_gym.beliefs import NearPrior
from rlfd_gym.decision.answers import Decision, PriceAnswer, Recommendation

PERIODS = ("year", "quarter", "month", "week", "day", "hour", "minute", "shift", "night", "period", "date")
SHOWN = 40  # recommendations in the text
COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


def text(decision: Decision) -> str:
    """Return the decision as text: sentences, then a table of recommendations."""
    return "\n".join([" ".join(sentences(decision)), "", *_table(decision)])


def sentences(decision: Decision) -> list[str]:
    """Return what was found, one sentence each: rule, saving, guarantee, costs, rows."""
    period, unit = period_of(decision), _unit(decision)
    saving, least = decision.saving, decision.guaranteed
    earns = decision.present.value < 0
    verb = "earns" if earns else "costs"
    more = (
        ("earn {} more" if earns else "cost {} less")
        if saving.value >= 0
        else ("earn {} less" if earns else "cost {} more")
    )
    ends = (saving.low, saving.high) if saving.value >= 0 else (-saving.high, -saving.low)
    rows = decision.log.report
    said = [
        f"Your rule {verb} about {money(abs(decision.present.value))} a {period}{unit}.",
        f"{_acting(decision)} would {more.format(money(abs(saving.value)))} ({money(ends[0])} to {money(ends[1])}, "
        f"{decision.method}, at {decision.confidence:.0%}).",
    ]
    if saving.value < 0:
        said[1] += " That is a loss: keep your rule."
    if decision.n_changed == 0:
        said.append(_unchanged(decision))
    if least.value > 0:
        sure = f"; {money(least.low)} at the lower end of the same interval" if least.low < least.value else ""
        said.append(f"It is at least {money(least.value)} whatever the true costs {_scope(decision)}{sure}.")
    else:
        said.append(f"Whatever the true costs {_scope(decision)}: nothing is guaranteed over all of them.")
    said += [_acts_as_if(price) for price in decision.prices if price.range[0] < price.range[1]]
    said.append(_few(decision, period))
    said.append(f"{rows.n_used:,} of {rows.n_rows:,} rows were used, and all of them carried the answer.")
    if decision.n_without_prior:
        said.append(
            f"{decision.n_without_prior} pairs without a prior have the middle of its range, "
            f"{money(_middle(decision))}."
        )
    return said


def _acting(decision: Decision) -> str:
    return "Acting as below" if decision.n_changed else "Always doing what you mostly do"


def _unchanged(decision: Decision) -> str:
    """Say why nothing else is recommended than is done, and what would change that."""
    path, present = decision.path, decision.log.mdp.likely_actions(decision.log.policy)
    seen = decision.log.mdp.sum_by_state(decision.log.visits.astype(float)) > 0
    most = int((path.actions != present)[:, seen].sum(axis=1).max())
    if not most:
        return (
            f"Nothing else is recommended in any {decision.log.names.get('state', 'state')}: no other action with "
            f"{decision.least_rows} rows is better (--least-rows)."
        )
    states = "one state changes" if most == 1 else f"up to {most} states change"
    if path.parameter == "alpha":
        return (
            f"Nothing else is recommended, because your prior counts little against the log (α = {decision.alpha:g}). "
            f"With more weight, such as --alpha regret-budget:0.05, {states}: see the slider."
        )
    return (
        "Nothing else is recommended, because your ranges allow for much. With narrower ranges (--price) "
        f"{states}: see the slider."
    )


def _scope(decision: Decision) -> str:
    """Return which costs the guarantee is about, in money where the belief is a prior."""
    belief, mdp = decision.belief, decision.log.mdp
    if not isinstance(belief, NearPrior) or belief.scale is None:
        return decision.scope
    if not belief.alpha:
        return f"from {money(belief.scale.low)} to {money(belief.scale.high)}"
    here = mdp.occupancy_of(decision.log.policy) - mdp.occupancy_of(decision.policy)
    radius = belief.radius(belief.best(here)) / belief.scale.factor
    return f"within {money(radius)} of your prior (root of the sum of squares over all pairs)"


def _acts_as_if(price: PriceAnswer) -> str:
    low, high = price.range
    if price.at_end:
        end = low if price.at_end == "low" else high
        beyond = "or less" if price.at_end == "low" else "or more"
        return f"Your manager acts as if {price.name} cost {money(end)} {beyond}, the end of your range."
    if price.price.low <= low and price.price.high >= high:
        return f"The rows do not tell which {price.name} your manager has in mind."
    ends = money(price.price.low), money(price.price.high)
    between = f"about {ends[0]}" if ends[0] == ends[1] else " to ".join(ends)
    return f"Your manager acts as if {price.name} cost {between}."


def _few(decision: Decision, period: str) -> str:
    n_few, total = decision.n_few, len(decision.recommendations)
    unit = f"{period}s" if period != "step" else "rows"
    counted = COUNTS[n_few] if n_few < len(COUNTS) else str(n_few)
    verb = "rests" if n_few == 1 else "rest"
    return (
        f"{counted.capitalize()} of {total} recommendations {verb} on fewer than {decision.least_rows} {unit}"
        f"{'; there the present action is kept' if n_few else ''}."
    )


def _table(decision: Decision) -> list[str]:
    """Return the recommendations as lines: those where most time is spent, in order."""
    state, action = (decision.log.names.get(role, role) for role in ("state", "action"))
    header = [state, f"{action} now", "share", "rows", f"{action} instead", "rows", "agreement", ""]
    shown = sorted(decision.recommendations, key=lambda one: -one.time)[:SHOWN]
    lines = [header, *(_line(one) for one in decision.recommendations if one in shown)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    if len(shown) < len(decision.recommendations):
        text.append(f"… and {len(decision.recommendations) - len(shown)} more where less time is spent")
    return text


def _line(one: Recommendation) -> list[str]:
    action = str(one.action) if one.probability > 0.995 else f"{one.action} ({one.probability:.0%})"
    mark = f"few rows: {one.rows}" if one.few else ""
    cells = [one.state, one.present, f"{one.present_share:.0%}", one.present_rows, action, one.rows]
    return [*map(str, cells), f"{one.agreement:.0%}", mark]


def period_of(decision: Decision) -> str:
    """Return what a step is called, as the log's column of times tells: "week", or else "step"."""
    name = decision.log.names.get("time", "").lower()
    return next((period for period in PERIODS if period in name and period != "date"), "step")


def _unit(decision: Decision) -> str:
    episode = decision.log.names.get("episode")
    return f" per {episode}" if episode else ""


def _middle(decision: Decision) -> float:
    scale = decision.belief.scale
    return 0.0 if scale is None else (scale.low + scale.high) / 2


def money(amount: float) -> str:
    """Write an amount with three digits, and at most two of them behind the point."""
    return f"{amount:,.0f}" if abs(amount) >= 100 else f"{amount:.1f}" if abs(amount) >= 10 else f"{amount:.2f}"
