"""One cell: its file, and what becomes of a solve that fails."""

from __future__ import annotations

import numpy as np
import pytest
from small_comparison import TINY

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import cells


def test_cells_that_differ_only_in_alpha_have_different_files():
    alphas = (1.0, 0.1, 1e-9, 0.12345678, 0.12345679)
    names = [cells.Cell("inventory", "rlfd-exact", alpha, "exact", 0).file_name for alpha in alphas]
    assert len(set(names)) == len(names)
    assert names[0] == "inventory_rlfd-exact_alpha=1_exact_seed=0.npz"


def test_a_solve_that_was_interrupted_is_no_finished_cell(monkeypatch):
    cut = compare.Method(
        "cut",
        "cut",
        lambda lesson: rlfd_gym.Solution(
            policy=lesson.shown, occupancy=lesson.shown, cost=lesson.shown, finished=False
        ),
    )
    with pytest.raises(KeyboardInterrupt):
        cells.run_cell(compare.TASKS["inventory"], cut, cells.Cell("inventory", "cut", None, "exact", 0), 1, 1)


# A process is killed while it may still be starting; what loky's own thread makes of that says nothing about the rows.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_in_error_is_named_with_its_cell(jobs, monkeypatch):
    def solve(lesson):
        return rlfd_gym.Apprentice(policy=np.nan * lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    with pytest.raises(cells.CellError, match=r"method='mine'.*seed=\d\) failed: ValueError: policy must be finite"):
        compare.run(**TINY | {"methods": ["mine"]}, jobs=jobs)


def test_only_a_solver_that_gives_up_makes_a_cell_without_numbers():
    def attempt(error):
        def solve(lesson):
            raise error

        cell = cells.Cell("inventory", "mine", None, "exact", 0)
        return cells.run_cell(compare.TASKS["inventory"], compare.Method("mine", "my own", solve), cell, 1, 1)

    row = attempt(rlfd_gym.SolverError("HiGHS did not solve it"))
    assert (row.note, row.true_cost) == ("gave up: HiGHS did not solve it", None)
    with pytest.raises(cells.CellError, match="failed: RuntimeError: cannot cache function"):
        attempt(RuntimeError("cannot cache function"))


def test_a_stored_row_is_read_back_whole(written):
    result, out = written
    for row in result.rows[:8]:
        again = cells.Row.load(out / "cells" / row.cell.file_name)
        assert again.values() == row.values()
        assert (again.title, again.reference, again.uses_basis) == (row.title, row.reference, row.uses_basis)
        np.testing.assert_array_equal(again.policy, row.policy)
