"""Notes: sentences, from stored facts, on what the numbers of a table do not say themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rlfd_gym.compare.cells import Row
from rlfd_gym.compare.facts import Facts
from rlfd_gym.compare.measures import UNSOLVED

LONGEST = 90


def notes_of(facts: Facts, rows: Sequence[Row], seeds: int) -> list[str]:
    """Return the notes of a task's table, for a comparison over the given number of seeds."""
    notes = []
    if facts.belief:
        told = ", ".join(dict.fromkeys(row.title for row in rows if row.uses_belief))
        notes.append(f"Guaranteed: for every cost {facts.belief}." + (f" Only {told} is told so." if told else ""))
    if any(row.uses_basis for row in rows):
        notes.append(_hull_note(facts))
    if facts.errs_evenly:
        notes.append(
            "The expert errs evenly, its most frequent actions are optimal: copying only these, as the majority action "
            "and LP-IRL do, undoes it wherever enough was shown."
        )
    gaps: dict[str, float] = {}
    for row in rows:
        if row.stochastic and (row.duality_gap or 0.0) > UNSOLVED:
            gaps[row.label] = max(gaps.get(row.label, 0.0), row.duality_gap)
    if gaps:
        listed = ", ".join(f"{name} {gap:.1g}" for name, gap in gaps.items())
        notes.append(f"Not solved yet, whether that helps or harms, by the largest gap: {listed}; see --iterations.")
    few = {row.label: most for row in rows if (most := row.most_seeds or seeds) < seeds}
    if few:
        notes.append("Slow, so for fewer seeds: " + ", ".join(f"{name} ({n})" for name, n in few.items()) + ".")
    many: dict[str, int] = {}
    for row in rows:
        many[row.label] = max(many.get(row.label, 0), row.seed + 1)
    most = max(many.values(), default=0)
    if most > seeds:
        listed = ", ".join(name for name, number in many.items() if number == most)
        notes.append(f"Quick, so for {most} seeds instead of {seeds} where something is random: {listed}.")
    titles = {row.method: row.title for row in rows}
    warned = Counter((row.method, _short(row.note)) for row in rows if row.note)
    cells = Counter(row.method for row in rows)
    for (method, message), number in warned.items():
        notes.append(f"{titles[method]}, {number} of {cells[method]} cells: {message}.")
    return notes


def _short(note: str) -> str:
    """Return a note's first words, without the numbers in which similar notes differ."""
    gave_up, _, rest = note.rpartition("gave up: ")
    return ("gave up: " if gave_up or note != rest else "") + rest.partition(":")[0][:LONGEST].rstrip(".")


def _hull_note(facts: Facts) -> str:
    if facts.hull_gain is not None:
        return f"Whatever cost in the hull of the basis is true, {facts.hull_gain:.3f} can be gained over the expert."
    safe = (
        "a method that plays safe over the hull can at best match the expert, only a prior or ranges let it do better."
    )
    if facts.hull_is_blind:
        return (
            "The hull of the basis contains a cost under which all policies are alike, so that any expert would be "
            f"optimal for a cost in it (LPAL's optimal value is 0): {safe}"
        )
    cost = facts.expert_cost and f", {facts.expert_cost}"
    return f"The expert is optimal for a cost in the hull of the basis{cost} (LPAL's optimal value is 0): {safe}"
