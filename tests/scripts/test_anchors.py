"""The benchmark against other solvers: what counts as certified, and what happens without their environment."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import anchors
from structures import learning_problem

from rlfd_gym import solve_exact


def test_without_the_environment_the_lines_are_left_out_with_a_word(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(anchors, "INTERPRETER", tmp_path / ".venv-anchors" / "bin" / "python")
    assert list(anchors.anchors()) == list(anchors.anchors_planning()) == []
    assert "anchors: left out, because there is no .venv-anchors; `make anchors` makes it" in capsys.readouterr().out


def test_a_point_is_certified_by_the_bounds_and_not_by_its_solvers_word():
    problem = learning_problem("garnet5", 200, 0.9, 0.01)
    exact = solve_exact(problem, "qp")
    answer = {"cost": exact.cost, "value": exact.value, "occupancy": problem.n_pairs * exact.occupancy}
    assert anchors._is_certified(problem, answer)
    assert not anchors._is_certified(problem, answer | {"cost": np.ones(problem.n_pairs)})
    assert not anchors._is_certified(problem, answer | {"occupancy": np.full(problem.n_pairs, np.nan)})


@pytest.mark.parametrize("kind", ["grid", "queues"])
def test_a_solver_in_another_process_gets_the_same_problem(kind, monkeypatch):
    pytest.importorskip("piqp")
    monkeypatch.setattr(anchors, "INTERPRETER", Path(sys.executable))
    seconds, verdict = anchors._certified_time(learning_problem(kind, 200, 0.9, 0.01), "piqp", 60.0)
    assert verdict == ""
    assert seconds > 0
