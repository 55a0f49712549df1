"""A comparison: that it can be interrupted, and that all ways to show it show one result."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from html import unescape

import numpy as np
import pytest
from rich.console import Console
from small_comparison import SMALL, TINY, values

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import running


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
