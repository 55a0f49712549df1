"""The sentences under a table."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from small_comparison import TINY

from rlfd_gym import compare


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
    assert re.search(r"Not solved yet.*: RLfD SMD α=0.1 \d, RLfD SMD α=1 \d", text)
    assert "Not solved" not in " ".join(compare.run(**TINY).table("inventory").notes)


@pytest.mark.parametrize(("seeds", "expected"), [(2, []), (3, ["Slow, so for fewer seeds: my own (2)."])])
def test_a_note_names_the_methods_with_fewer_seeds_than_asked_for(seeds, expected, monkeypatch):
    slow = replace(compare.METHODS["smd-hull"], name="mine", title="my own", most_seeds=2)
    monkeypatch.setitem(compare.METHODS, "mine", slow)
    choice = {"methods": ["mine", "smd-hull-prior"], "demonstrations": ["exact"], "seeds": seeds}
    notes = compare.run(**TINY | choice | {"iterations": 10}).table("inventory").notes
    assert [note for note in notes if note.startswith("Slow")] == expected
