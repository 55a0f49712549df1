"""The small studies: their tables and pages are written, and their numbers are consistent."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib")

import oracle_study
import study_experts
import study_intervals

from rlfd_gym.report.tables import read_csv


def test_right_budgets_keep_what_they_promise_and_the_page_has_all_rows(tmp_path, capsys):
    study_experts.main(["--draws", "1", "--size", "5", "--out", str(tmp_path)])
    header, rows = read_csv(tmp_path / "several_experts.csv")
    columns = {name: np.array([float(row[k]) for row in rows]) for k, name in enumerate(header)}
    right = columns["factor"] >= 1
    assert (columns["distance"][right] <= columns["certain"][right] + 1e-6).all()
    certain = columns["certain"][columns["factor"] == 1]
    assert (np.diff(certain) <= 1e-9).all()  # no driver, one, two, three
    assert certain[-1] < 0.999
    page = (tmp_path / "several_experts.md").read_text()
    assert page in capsys.readouterr().out
    assert page.count("\n| ") == 1 + 10  # the head, the prior alone and nine
    assert (tmp_path / "several_experts.png").is_file()


def test_intervals_cover_as_often_as_they_say_where_numbers_are_normal_and_less_where_they_are_skewed():
    rng = np.random.default_rng(0)
    normal = study_intervals.covering(rng.normal(size=500), 1000, rng)
    skewed = study_intervals.covering((rng.random(500) < 0.05).astype(float), 1000, rng)
    assert all(abs(share - 0.95) < 0.03 for share in normal[:3])
    assert skewed[0] < 0.5 < skewed[2] < 0.95


def test_the_study_of_intervals_prints_a_row_for_each_level_where_something_is_random(capsys):
    study_intervals.main(["--tasks=lake", "--methods=cloning", "--seeds=3", "--samples=50", "--jobs=1"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" | ")[:4] for line in lines[2:]] == [
        ["| lake", "cloning", "1", "3"],
        ["| lake", "cloning", "10", "3"],
    ]


def test_the_study_of_draws_has_a_row_for_each_task_and_method_and_its_certificates_hold(tmp_path, capsys):
    oracle_study.main(["--calls", "20000", "--tasks", "inventory,lake", "--out", str(tmp_path)])
    header, rows = read_csv(tmp_path / "oracle.csv")
    assert {(row[0], row[2]) for row in rows} == {(t, m) for t in ("inventory", "lake") for m in ("model", "smd")}
    assert all(row[header.index("holds")] == "True" for row in rows)
    page = (tmp_path / "oracle.md").read_text()
    assert page in capsys.readouterr().out
    assert page.count("\n| ") == 1 + 4
    assert (tmp_path / "oracle.png").is_file()


def test_the_page_of_the_oracle_says_after_how_many_draws_the_model_is_ahead():
    def rounds(method, gaps):
        return [oracle_study.Outcome("lake", 64, method, 0, 10**k, 1.0, gap, 0.1, True, 1.0) for k, gap in gaps]

    rival = rounds("smd", [(3, 0.8), (4, 0.5), (5, 0.2)])
    assert "every round" in oracle_study.ahead(rounds("model", [(3, 0.7), (5, 0.1)]) + rounds("smd", [(3, 0.8)]))
    assert "more than 10,000 draws" in oracle_study.ahead(rounds("model", [(3, 0.7), (5, 0.1)]) + rival)
    assert "more than 1,000 draws" in oracle_study.ahead(rounds("model", [(4, 0.4), (5, 0.1)]) + rival)
