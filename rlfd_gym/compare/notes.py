"""What the numbers of a table do not say by themselves: a few sentences under it, each of them computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rlfd_gym.compare.cells import Row
from rlfd_gym.compare.methods import METHODS
from rlfd_gym.compare.tables import label
from rlfd_gym.compare.tasks import TASKS

NOTHING = 1e-7  # a bound on β* that is zero, up to the linear program's accuracy
UNSOLVED = 0.05  # a duality gap above which an answer is far from that of the problem
LONGEST = 90


def notes_of(task: str, rows: Sequence[Row], seeds: int) -> list[str]:
    """The sentences of a task's table, for a comparison over so many seeds."""
    notes = []
    if any(METHODS[row.method].basis for row in rows):
        notes.append(_hull_note(task))
    if (noise := _noise_note(task)) is not None:
        notes.append(noise)
    gaps: dict[str, float] = {}
    for row in rows:
        if METHODS[row.method].stochastic and (row.duality_gap or 0.0) > UNSOLVED:
            gaps[label(row)] = max(gaps.get(label(row), 0.0), row.duality_gap or 0.0)
    if gaps:
        listed = ", ".join(f"{name} {gap:.1g}" for name, gap in gaps.items())
        notes.append(f"Not solved yet, whether that helps or harms, by the largest gap: {listed}; see --iterations.")
    few = {label(row): most for row in rows if (most := METHODS[row.method].most_seeds or seeds) < seeds}
    if few:
        notes.append("Slow, so for fewer seeds: " + ", ".join(f"{name} ({n})" for name, n in few.items()) + ".")
    warned = Counter((row.method, _short(row.note)) for row in rows if row.note)
    cells = Counter(row.method for row in rows)
    for (method, message), number in warned.items():
        notes.append(f"{METHODS[method].title}, {number} of {cells[method]} cells: {message}.")
    return notes


def _short(note: str) -> str:
    """A note's first words, without the numbers that make each of them different."""
    gave_up, _, rest = note.rpartition("gave up: ")
    return ("gave up: " if gave_up or note != rest else "") + rest.partition(":")[0][:LONGEST].rstrip(".")


def _hull_note(task: str) -> str:
    """By how much a method that knows only the hull of the basis can be sure to beat the expert: β* of LPAL."""
    from rlfd_gym.baselines import lpal

    setting = TASKS[task].make(0)
    solution = lpal(setting.mdp, expert=setting.expert, basis=setting.basis)
    if solution.lower < -NOTHING:
        return f"Whatever cost in the hull of the basis is true, {-solution.upper:.3f} can be gained over the expert."
    cost = TASKS[task].expert_cost
    return (
        f"The expert is optimal for a cost in the hull of the basis{cost and f', {cost}'} (LPAL's optimal value is 0): "
        "a method that plays safe over the hull can at best match the expert, only a prior lets it do better."
    )


def _noise_note(task: str) -> str | None:
    """Whether an imperfect expert's most frequent actions are optimal."""
    setting = TASKS[task].make(0)
    mdp, truth = setting.mdp, setting.truth
    policy = mdp.policy_of(setting.expert)
    largest = np.maximum.reduceat(policy, mdp.state_starts[:-1])[mdp.pair_states]
    modes = mdp.policy_of((policy >= largest - NOTHING).astype(float))
    optimum = mdp.optimal(truth).expected_cost
    if mdp.expected_cost(policy, truth) < optimum + NOTHING or mdp.expected_cost(modes, truth) > optimum + NOTHING:
        return None
    return (
        "The expert errs evenly, its most frequent actions are optimal: copying only these, as LP-IRL does, undoes it."
    )
