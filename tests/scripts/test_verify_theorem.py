"""The script that tests the theorem: stopped, it continues with what is missing."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("matplotlib")

import verify_theorem


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The script's options for seconds of work, and the settings that it solves."""
    solved, real = [], verify_theorem.measured
    monkeypatch.setattr(verify_theorem, "FIXED_ITERATIONS", 2000)
    monkeypatch.setattr(
        verify_theorem, "measured", lambda problem, asked, jobs: solved.append(asked) or real(problem, asked, jobs)
    )
    options = ["--epsilon", "1", "--runs", "1", "--jobs", "1", "--most", "2000", "--out", str(tmp_path)]
    return options, solved


def test_resuming_solves_only_what_is_missing_and_writes_the_same(small, tmp_path, capsys):
    options, solved = small
    verify_theorem.main(options)
    table, number = (tmp_path / "theorem.csv").read_bytes(), len(solved)
    assert number == len(list((tmp_path / "points").iterdir())) >= 3
    (tmp_path / "points" / "0.1_fixed.json").unlink()
    verify_theorem.main([*options, "--resume"])
    assert [(asked["alpha"], asked["steps"]) for asked in solved[number:]] == [(0.1, "fixed")]
    assert (tmp_path / "theorem.csv").read_bytes() == table


def test_the_page_has_a_row_for_each_kind_of_steps():
    outcomes = [
        verify_theorem.Outcome(0.1, steps, 1000, 2, 0.05, 0.01, 0.1, [1000], [0.05]) for steps in verify_theorem.COLOURS
    ]
    page = verify_theorem.page(outcomes, 0.1)
    assert page.count("| 0.1 | ") == len(outcomes) == len(verify_theorem.STEPS)
    assert "keeps its promise" in page
    assert "at most 50%" in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0.5}, "epsilon 0.5, here 1.0. Delete it, or run without --resume"),
        ({"versions": {"numpy": "1.0"}}, "numpy 1.0, here"),
        ({"more": 1}, "is damaged"),
    ],
)
def test_a_setting_that_was_made_otherwise_is_refused(change, message, small, tmp_path):
    options, _ = small
    verify_theorem.main(options)
    path = tmp_path / "points" / "0_fixed.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(SystemExit, match=message):
        verify_theorem.main([*options, "--resume"])
