"""The study of guarantees: its draws, its table, and where it writes them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import study_guarantees as study

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guarantees.md"


@pytest.mark.parametrize("case", study.CASES)
def test_draws_do_not_depend_on_how_they_are_divided(case):
    both, second = study.study(case, 10, [0, 1]), study.study(case, 10, [1])
    assert both[2:] == second
    assert both[0] != both[2]
    assert all(one.said <= one.truth for one in both if one.bound == "safe")


@pytest.mark.parametrize("case", study.CASES)
def test_with_the_exact_expert_something_can_be_promised_in_every_case(case):
    made = study.CASES[case]()
    solution = study.solve_exact(study.RLfDProblem(made.mdp, made.expert, belief=made.belief))
    assert solution.guarantee.improvement > 0


def test_statements_come_back_from_their_file():
    one = study.Statement("inventory, `Prices`", 10, 3, "safe", -0.1, 1 / 3)
    assert study.statement({name: str(value) for name, value in asdict(one).items()}) == one


def test_the_summary_counts_what_holds_and_what_promises():
    said = [study.Statement("", 10, k, "safe", value, 0.01) for k, value in enumerate([0.004, 0.02, -0.03, 0.01])]
    holds, margin, promises = study.summary(said)
    assert holds.startswith("75.0% (")
    assert margin == "9.0"  # thousandths: 10 in truth, and 1 is said on average
    assert promises == "75%"


def test_the_page_takes_a_table_between_its_marks_and_keeps_the_rest():
    page = PAGE.read_text()
    once = study.filled(page, "| a table |")
    assert study.filled(once, "| a table |") == once
    assert once.split(study.BEGIN)[0] == page.split(study.BEGIN)[0]
    assert once.split(study.END)[1] == page.split(study.END)[1]


def test_the_page_has_a_row_for_every_case_of_the_study():
    table = PAGE.read_text().split(study.BEGIN)[1].split(study.END)[0]
    for case in study.CASES:
        for number in study.TRAJECTORIES:
            assert f"| {case} | {number} |" in table
