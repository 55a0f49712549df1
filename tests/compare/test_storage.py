"""A comparison in a folder: resumed, added to, and read by a process that knows nothing of it."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from small_comparison import TINY, values

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import comparison, running


def test_resuming_keeps_the_finished_cells_and_adds_what_is_asked_for(tmp_path, monkeypatch, no_page):
    done = []
    real = running.run_cell
    monkeypatch.setattr(running, "run_cell", lambda *call: done.append(call[2]) or real(*call))
    first = compare.run(**TINY, out=tmp_path)
    total = len(done)
    assert total == len(first.rows)
    again = compare.run(out=tmp_path, resume=True)
    assert len(done) == total
    assert values(again) == values(first)
    more = compare.run(methods=["lp-irl"], demonstrations=[3], out=tmp_path, resume=True)
    assert {(cell.method, cell.demonstrations) for cell in done[total:]} >= {("lp-irl", 2), ("cloning", 3)}
    assert more.design.demonstrations == (2, 3, "exact")
    assert not {cell for cell in done[total:]} & set(done[:total])


def test_resuming_with_other_solver_settings_is_refused(tmp_path, no_page):
    compare.run(**TINY, out=tmp_path)
    with pytest.raises(ValueError, match="iterations is 7, but the stored cells were made with 2000"):
        compare.run(iterations=7, out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds a comparison already"):
        compare.run(**TINY, out=tmp_path)
    with pytest.raises(ValueError, match="there is no comparison in"):
        compare.run(out=tmp_path / "elsewhere", resume=True)


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"design": {"nonsense": 1}}', '{"design": 1}'])
def test_resuming_what_is_no_comparison_is_refused_by_name(content, tmp_path):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ValueError, match=r"resume: .*results.json is not that of a comparison"):
        compare.run(out=tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"out: .*results.json is a file, expected a folder"):
        compare.run(**TINY, out=tmp_path / "results.json")


def test_a_stored_comparison_is_read_back_with_its_rows_in_order(written):
    result, out = written
    again = compare.Comparison.load(out)
    assert again.design == result.design
    assert values(again) == values(result)
    assert str(again) == str(result)


def test_resuming_keeps_what_was_found_out_about_the_tasks(tmp_path, monkeypatch, no_page):
    first = compare.run(**TINY, out=tmp_path)
    asked, real = [], comparison.facts_of
    monkeypatch.setattr(comparison, "facts_of", lambda task: asked.append(task.name) or real(task))
    again = compare.run(tasks=["lake"], out=tmp_path, resume=True)
    assert asked == ["lake"]
    assert again.facts["inventory"].values() == first.facts["inventory"].values()
    about = json.loads((tmp_path / "results.json").read_text())["tasks"]
    assert about["inventory"].pop("headline").startswith("From the expert's exact occupancy, ")
    assert about["inventory"] == first.facts["inventory"].values()
    assert about["lake"]["errs_evenly"] is True


def test_resuming_needs_a_folder():
    with pytest.raises(ValueError, match="resume: out is None, expected the folder to continue in"):
        compare.run(**TINY, resume=True)


def test_a_process_that_never_registered_a_method_and_a_task_shows_them(tmp_path, monkeypatch):
    def solve(lesson):
        return rlfd_gym.Solution(
            policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy, cost=lesson.prior, upper=1.0, lower=0.0
        )

    mine = compare.Method("mine", "my own", solve, uses_basis=True, stochastic=True, most_seeds=1)
    task = compare.Task("shop", "My shop", compare.TASKS["inventory"].make, prior_varies=False, expert_cost="mine")
    monkeypatch.setitem(compare.METHODS, "mine", mine)
    monkeypatch.setitem(compare.TASKS, "shop", task)
    here = compare.run(tasks=["shop"], methods=["mine"], demonstrations=[2, "exact"], seeds=2, out=tmp_path)
    code = f"""if True:
        from rlfd_gym import compare
        result = compare.Comparison.load({str(tmp_path)!r})
        print(result)
        result.write({str(tmp_path / "again")!r})
    """
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == f"{here}\n"
    for part in ("My shop", "my own", "Slow, so for fewer seeds: my own (1).", "hull of the basis, mine"):
        assert part in shown.stdout
    for picture in tmp_path.glob("*.png"):
        assert picture.read_bytes() == (tmp_path / "again" / picture.name).read_bytes()


def test_the_facts_about_a_task_are_read_back_with_its_map(written):
    result, out = written
    stored = compare.Comparison.load(out).facts
    for name, facts in result.facts.items():
        assert stored[name].values() == facts.values()
        np.testing.assert_array_equal(stored[name].pairs.pair_states, facts.pairs.pair_states)
        np.testing.assert_array_equal(stored[name].pairs.pair_actions, facts.pairs.pair_actions)
    grid, again = result.facts["windy"].grid, stored["windy"].grid
    np.testing.assert_array_equal(again.cells, grid.cells)
    assert (again.arrows, again.action_names, again.row_zero) == (grid.arrows, grid.action_names, grid.row_zero)
    assert stored["inventory"].grid is None


def test_a_second_process_is_refused_and_a_dead_one_leaves_no_lock(tmp_path, no_page):
    code = f"""if True:
        import os, pathlib
        from rlfd_gym.compare import storage
        with storage.reserved(pathlib.Path({str(tmp_path)!r}), resume=False):
            print(os.getpid(), flush=True)
            input()
    """
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    number = other.stdout.readline().strip()
    with pytest.raises(compare.InUseError, match=f"is in use by process {number} on .*; wait until it ends, or choose"):
        compare.run(**TINY, out=tmp_path)
    other.kill()
    other.communicate()
    assert len(compare.run(**TINY, out=tmp_path).rows) == 10


def test_finished_is_written_after_everything_else(tmp_path, monkeypatch):
    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("rlfd_gym.compare.page.write_page", full)
    with pytest.raises(OSError, match="no space left"):
        compare.run(**TINY, out=tmp_path)
    assert json.loads((tmp_path / "results.json").read_text())["finished"] is False
