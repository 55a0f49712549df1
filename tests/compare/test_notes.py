"""The sentences under a table."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from small_comparison import TINY

from rlfd_gym import compare
from rlfd_gym.compare import cells
from rlfd_gym.compare.facts import facts_of
from rlfd_gym.compare.notes import notes_of


def test_a_note_says_what_the_hull_allows_where_a_method_uses_the_basis(written):
    assert "prices (5, 8, 15) (LPAL's optimal value is 0)" in str(written[0].table("inventory")).replace("\n", " ")
    assert "LPAL" not in str(compare.run(**TINY).table("inventory"))


def test_a_note_says_over_which_costs_an_improvement_is_guaranteed(written):
    notes = written[0].table("inventory").notes
    assert "Guaranteed: for every cost with 2.5 ≤ order ≤ 5, 0.3 ≤ holding ≤ 3, 13 ≤ sell ≤ 16." in notes
    assert compare.Comparison.load(written[1]).table("inventory").notes == notes  # it is stored
    told = compare.run(**TINY | {"methods": ["rlfd-ranges"], "demonstrations": ["exact"]}).table("inventory").notes
    assert told[0].endswith("13 ≤ sell ≤ 16. Only RLfD price ranges is told so.")


def test_a_note_names_the_stochastic_methods_whose_gap_is_still_large(written):
    text = " ".join(written[0].table("inventory").notes)
    assert re.search(r"Not solved yet.*: RLfD SMD α=1 [\d.]+;", text)
    assert "Not solved" not in " ".join(compare.run(**TINY).table("inventory").notes)


@pytest.mark.parametrize(("seeds", "expected"), [(2, []), (3, ["Slow, so for fewer seeds: my own (2)."])])
def test_a_note_names_the_methods_with_fewer_seeds_than_asked_for(seeds, expected, monkeypatch):
    slow = dataclasses.replace(compare.METHODS["smd-hull"], name="mine", title="my own", most_seeds=2)
    monkeypatch.setitem(compare.METHODS, "mine", slow)
    choice = {"methods": ["mine", "smd-hull-prior"], "demonstrations": ["exact"], "seeds": seeds}
    notes = compare.run(**TINY | choice | {"iterations": 10}).table("inventory").notes
    assert [note for note in notes if note.startswith("Slow")] == expected


def test_a_note_names_the_methods_with_more_seeds_than_asked_for():
    choice = {"methods": ["cloning", "irl-io"], "demonstrations": [1], "seeds": 5}
    notes = compare.run(**TINY | choice).table("inventory").notes
    assert "Quick, so for 20 seeds instead of 5 where something is random: cloning." in notes


@pytest.mark.parametrize(
    ("task", "gain", "blind", "words"),
    [
        (
            "inventory",
            None,
            False,
            "The expert is optimal for a cost in the hull of the basis, prices (5, 8, 15) (LPAL's",
        ),
        ("lake", None, True, "contains a cost under which all policies are alike, so that any expert would be optimal"),
    ],
)
def test_a_note_does_not_praise_an_expert_who_is_optimal_for_a_cost_that_tells_nothing(task, gain, blind, words):
    facts = facts_of(compare.TASKS[task])
    assert (facts.hull_gain, facts.hull_is_blind) == (gain, blind)
    row = cells.run_cell(
        compare.TASKS[task], compare.METHODS["lpal"], cells.Cell(task, "lpal", None, "exact", 0), iterations=1, runs=1
    )
    assert any(words in note for note in notes_of(facts, [row], 1))


def test_a_hull_is_blind_if_it_contains_shaping_and_not_only_zero():
    instance = compare.TASKS["inventory"].make(0)
    mdp = instance.mdp
    shaping = 0.1 * mdp.flow_transpose(np.random.default_rng(0).uniform(-1, 1, mdp.n_states))
    task = dataclasses.replace(
        compare.TASKS["inventory"],
        make=lambda _: dataclasses.replace(instance, basis=np.column_stack([instance.basis, shaping])),
    )
    assert facts_of(task).hull_is_blind
