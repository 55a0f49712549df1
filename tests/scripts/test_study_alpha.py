"""The study of rules for alpha: what it measures, and the page that it writes."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import study_alpha
from study_alpha import BEST, DEFAULT, FIXED, GROUPS, READINGS, Losses, Outcome, Problem

from rlfd_gym import TabularMDP, cost_of_env

RULES = [BEST, *(rule for rules in GROUPS.values() for rule in rules)]


def made_up(loss):
    """Return rows of every rule on two seeds of every combination, with losses by a function."""
    problems = [
        Problem("inventory", expert, prior, 10, seed)
        for expert in study_alpha.EXPERTS
        for prior in study_alpha.PRIORS
        for seed in range(2)
    ]
    return [
        Outcome(p, rule, reading, 0.1, loss(p, rule, reading))
        for p in problems
        for rule in RULES
        for reading in READINGS
    ]


@pytest.fixture(scope="module")
def outcomes():
    return study_alpha.study(Problem("FrozenLake", "optimal", "good", 10, 0), 6)


def test_every_rule_and_rival_is_measured_in_both_readings(outcomes):
    assert sorted((one.rule, one.reading) for one in outcomes) == sorted((r, x) for r in RULES for x in READINGS)


def test_no_alpha_beats_the_best_in_hindsight_and_nothing_the_optimum(outcomes):
    for reading in READINGS:
        losses = {one.rule: one.loss for one in outcomes if one.reading == reading}
        with_alpha = [one.rule for one in outcomes if not np.isnan(one.alpha)]
        assert losses[BEST] == min(losses[rule] for rule in losses if rule in with_alpha)
        assert min(losses.values()) > -1e-6


def test_a_fixed_alpha_is_what_it_says(outcomes):
    assert [one.alpha for one in outcomes if one.reading == "mode" and one.rule in FIXED] == list(study_alpha.ALPHAS)


def test_priors_are_as_wrong_as_their_names_say():
    env = study_alpha.ENVIRONMENTS["gridworld"]()
    mdp, truth = TabularMDP.from_env(env), cost_of_env(env)
    wrong_at = {kind: np.mean(study_alpha.prior_cost(mdp, truth, kind, 0) != truth) for kind in study_alpha.PRIORS}
    assert 0 < wrong_at["good"] <= 0.12 < wrong_at["half"] <= 0.55


def test_intervals_are_over_seeds_and_differences_are_within_problems():
    # Seed 0 loses 10%, seed 1 20%; the default always 5 points more.
    rows = made_up(lambda p, rule, reading: 0.1 * (1 + p.seed) + 0.05 * (rule == DEFAULT))
    losses = Losses.of(rows)
    mean, margin = losses.interval("evidence", "mode", prior="half")
    assert mean == pytest.approx(15)
    assert margin == pytest.approx(12.706 * 5, rel=1e-3)  # Student's t with one degree of freedom
    assert losses.interval("evidence", "mode", (DEFAULT, "mode")) == pytest.approx((-5, 0))


def test_the_page_and_the_rows_can_be_written_again(tmp_path, monkeypatch, capsys):
    rows = made_up(lambda p, rule, reading: 0.1 + 0.01 * p.seed)
    study_alpha.write_rows(tmp_path / "rows.csv", rows)
    assert study_alpha.read_rows(tmp_path / "rows.csv") == rows
    arguments = ["--rows", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["study_alpha.py", *arguments])
    study_alpha.main()
    page = (tmp_path / "out" / "choosing_alpha.md").read_text()
    assert page in capsys.readouterr().out
    assert "18 problems" in page
    assert page.count("| 10.5 ± 6.4 | 10.5 ± 6.4 |") == len(RULES)
    assert (tmp_path / "out" / "choosing_alpha.png").is_file()
