"""The headline of a task's table: what it shows, in words, from the means over seeds.

It says which row closes the most of the way from the expert to the optimum, with the most and with
the least that was shown; the best row that knows neither prior nor belief; what planning with the
prior alone gives; and which row has the largest guarantee. Rows that have not solved their own
problem, by their gap, do not compete. It takes whatever rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rlfd_gym.compare.cells import EXACT, level_key
from rlfd_gym.compare.measures import MEASURES, UNSOLVED
from rlfd_gym.compare.tables import Summary

CLOSED, GUARANTEED = MEASURES["share_closed"], MEASURES["guaranteed"]
PRIOR = "prior"  # the reference method that plans with the prior alone


def headline_of(summaries: Sequence[Summary]) -> str:
    """Return the headline of a task; empty if no method has a share to speak of.

    >>> from rlfd_gym import compare
    >>> chosen = {"tasks": ["inventory"], "methods": ["rlfd-exact", "cloning"], "alphas": [1.0]}
    >>> result = compare.run(**chosen, demonstrations=["exact"])
    >>> for sentence in headline_of(result.summaries("inventory")).split(". "):
    ...     print(sentence)
    From the expert's exact occupancy, RLfD exact α=1 closes 59% of the way to the optimum
    Without prior or belief the most is 0%, by cloning; planning with the prior alone closes more than any, 91%
    RLfD exact α=1 is guaranteed to be better than the expert, by 0.041 at least for every cost of the belief.
    """
    rows = [s for s in summaries if not s.reference and _share(s) is not None and not _unsolved(s)]
    if not rows:
        return ""
    levels = sorted({s.demonstrations for s in rows}, key=level_key)
    last = [s for s in rows if s.demonstrations == levels[-1]]
    sentences = [f"{_source(levels[-1])}, {_winners(last)} of the way to the optimum"]
    if len(levels) > 1:
        first = [s for s in rows if s.demonstrations == levels[0]]
        same = _winners(first) == _winners(last)
        sentences[0] += f"; {_source(levels[0]).lower()} {'as much' if same else _winners(first)}"
    alone = _plain([s for s in last if not (s.uses_prior or s.uses_belief)], last)
    planned = next((s for s in summaries if s.reference and s.method == PRIOR and _share(s) is not None), None)
    if planned is not None:
        ahead = _winners([planned, *last]) == _winners([planned])
        alone.append(f"planning with the prior alone closes {'more than any, ' if ahead else ''}{_percent(planned)}")
    if alone:
        text = "; ".join(alone)
        sentences.append(text[0].upper() + text[1:])
    return ". ".join([*sentences, *_promise(last)]) + "."


def _share(summary: Summary) -> float | None:
    share = summary.measures.get(CLOSED.name)
    return None if share is None or math.isnan(share) else share


def _percent(summary: Summary) -> str:
    return CLOSED.format(_share(summary) or 0.0)


def _unsolved(summary: Summary) -> bool:
    gap = summary.measures.get("duality_gap")
    return gap is not None and gap > UNSOLVED


def _worse(summary: Summary) -> bool:
    """Return whether a share is negative, to the digits shown."""
    return _percent(summary).startswith("-")


def _source(level: int | str) -> str:
    if level == EXACT:
        return "From the expert's exact occupancy"
    return f"From {level} demonstration" + ("" if level == 1 else "s")


def _best(rows: Sequence[Summary]) -> list[Summary]:
    """Return the rows whose share, to the digits shown, is the largest; the best of them first."""
    ordered = sorted(rows, key=lambda s: -(_share(s) or 0.0))
    return [s for s in ordered if _percent(s) == _percent(ordered[0])]


def _names(rows: Sequence[Summary]) -> str:
    first, *others = (s.label for s in rows)
    if len(others) < 2:
        return " and ".join([first, *others])
    return f"{first} and {len(others)} others"


def _winners(rows: Sequence[Summary]) -> str:
    best = _best(rows)
    closing = f"{_names(best)} {'close' if len(best) > 1 else 'closes'} {_percent(best[0])}"
    return f"none is as good as the expert: {closing}" if _worse(best[0]) else closing


def _plain(rows: Sequence[Summary], all_rows: Sequence[Summary]) -> list[str]:
    """Say what is possible without prior and belief, if others have more."""
    if not rows or len(rows) == len(all_rows):
        return []
    best = _best(rows)
    most = f"the most is {_percent(best[0])}, by {_names(best)}"
    return ["without prior or belief " + (f"none is as good as the expert: {most}" if _worse(best[0]) else most)]


def _promise(rows: Sequence[Summary]) -> list[str]:
    """Say which row has the largest guarantee, if the task states a belief."""
    found = [(number, s) for s in rows if (number := s.measures.get(GUARANTEED.name)) is not None]
    if not found:
        return []
    largest = GUARANTEED.format(max(number for number, _ in found))
    if largest == GUARANTEED.format(0.0):
        return ["None is guaranteed to be better than the expert for every cost of the belief"]
    best = [s for number, s in found if GUARANTEED.format(number) == largest]
    best.sort(key=lambda s: not s.uses_belief)  # who is told the belief is named first
    verb = "are" if len(best) > 1 else "is"
    promise = f"by {largest} at least for every cost of the belief"
    return [f"{_names(best)} {verb} guaranteed to be better than the expert, {promise}"]
