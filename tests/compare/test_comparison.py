"""A comparison: that it can be interrupted, and that all ways to show it show one result."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from rich.console import Console
from small_comparison import SMALL, TINY, values

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import running
from rlfd_gym.mdp.reading import mode_of


def test_a_name_given_instead_of_a_list_is_not_taken_for_its_letters():
    with pytest.raises(TypeError, match=r"tasks must be a list, got a string; write \['inventory'\]"):
        compare.run(**TINY | {"tasks": "inventory"})


def test_the_rows_do_not_depend_on_the_number_of_jobs(written):
    assert values(compare.run(**SMALL, jobs=2)) == values(written[0])


def test_a_comparison_shows_itself_in_a_notebook(written):
    html = written[0]._repr_html_()
    assert "<b>" in html
    assert "RLfD exact α=0.1" in html
    assert "| RLfD exact α=0.1 |" in written[0].table("windy").markdown()


def test_a_solver_that_gives_up_is_noted_and_the_comparison_continues(tmp_path, monkeypatch, no_page):
    def solve(lesson):
        if lesson.mdp.n_states > 4 and isinstance(lesson.shown, np.ndarray):
            raise rlfd_gym.SolverError("it is too hard: 7")
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    compare.run(**TINY | {"methods": ["mine"]}, out=tmp_path)
    result = compare.run(out=tmp_path, resume=True)
    assert "my own, 1 of 3 cells: gave up: it is too hard." in str(result.table("inventory"))
    (failed,) = [row for row in result.rows if row.true_cost is None]
    assert (failed.method, failed.demonstrations) == ("mine", "exact")


def test_an_interrupted_comparison_keeps_its_cells_and_says_how_to_continue(tmp_path, monkeypatch, no_page):
    real, seen = running.run_cell, []

    def interrupted(*call):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(call[2])
        return real(*call)

    monkeypatch.setattr(running, "run_cell", interrupted)
    with pytest.raises(
        KeyboardInterrupt, match=re.escape(f"5 of 10 cells finished; continue with --resume {tmp_path}")
    ):
        compare.run(**TINY, out=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 5
    assert json.loads((tmp_path / "results.json").read_text())["finished"] is False
    monkeypatch.setattr(running, "run_cell", real)
    assert values(compare.run(out=tmp_path, resume=True)) == values(compare.run(**TINY))


def test_showing_a_comparison_solves_nothing(written, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was solved")

    for name in ("optimal", "expected_cost", "occupancy_of"):
        monkeypatch.setattr(rlfd_gym.TabularMDP, name, refuse)
    monkeypatch.setattr("rlfd_gym.baselines.lpal", refuse)
    for task in compare.TASKS.values():
        monkeypatch.setitem(compare.TASKS, task.name, compare.Task(task.name, "", refuse, prior_varies=False))
    result = compare.Comparison.load(written[1])
    console = Console(width=100, file=io.StringIO())
    console.print(result)
    for shown in (str(written[0]), str(result), result._repr_html_(), console.file.getvalue()):
        assert "LPAL's optimal value is 0" in unescape(shown).replace("\n", " ").replace("  ", " ")
    assert result.write(tmp_path).is_file()


def test_tables_are_printed_without_rich_and_without_a_registry(written):
    code = f"""if True:
        import sys
        sys.modules["rich"] = None
        from rlfd_gym import compare
        compare.METHODS.clear()
        compare.TASKS.clear()
        print(compare.Comparison.load({str(written[1])!r}))
    """
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == f"{written[0]}\n"


def test_every_cell_is_solved_once_and_measured_in_both_readings(written, monkeypatch):
    result, _ = written
    both = compare.Comparison(replace(result.design, readings=("occupancy", "mode")), result.cells, result.facts)
    assert len(both.rows) == 2 * len(result.cells)
    for row in result.cells:
        mdp = compare.TASKS[row.task].make(row.seed).mdp
        for kind, policy in row.policies.items():
            read = row.read_as(kind)
            truth = compare.TASKS[row.task].make(row.seed).truth
            assert read.true_cost == pytest.approx(mdp.expected_cost(policy, truth), abs=1e-12)
            assert read.policy is policy
        np.testing.assert_array_equal(row.policies["mode"], mode_of(mdp, row.policies["occupancy"]))
        assert row.readings["mode"]["duality_gap"] == row.readings["occupancy"]["duality_gap"]


def test_tables_say_which_rows_are_modes_and_the_files_have_both_readings(written, tmp_path):
    result, folder = written
    assert not any("as mode" in row[0].text for row in result.table("windy").rows)
    both = compare.Comparison(replace(result.design, readings=("own", "mode")), result.cells, result.facts)
    names = [row[0].text for row in both.table("windy").rows]
    assert len(names) == len(set(names))
    assert "cloning" in names
    assert "cloning as mode" in names
    for file in ("results.csv", "summary.csv"):
        with open(folder / file) as lines:
            rows = list(csv.DictReader(lines))
        assert {row["reading"] for row in rows} == {"occupancy", "mode"}
        assert {row["guaranteed"] for row in rows if row["reading"] == "mode"} - {""}


def test_a_method_has_the_reading_that_it_is_known_by():
    result = compare.run(tasks=["windy"], methods=["lp-irl", "cloning"], demonstrations=["exact"])
    readings = {row.method: row.reading for row in result.rows}
    assert (readings["lp-irl"], readings["cloning"]) == ("mode", "occupancy")
    modes = compare.run(tasks=["windy"], methods=["cloning"], demonstrations=["exact"], readings=["mode"])
    shares = {row.label: row.share_closed for row in modes.rows}
    assert shares["cloning as mode"] == pytest.approx(1, abs=1e-6)  # the expert errs at random
    assert shares["expert"] == 0  # a reference row is always there as it is known
