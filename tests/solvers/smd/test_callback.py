"""`solve_smd(callback=)`: how often it is called, what it is told, and how it stops the solve."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_same
from strategies import hull_of, make_problem

from rlfd_gym import solve_smd
from rlfd_gym.problem import examples
from rlfd_gym.solvers.smd import runs


@pytest.fixture(scope="module")
def problem():
    return examples.gridworld(size=6, noise=0, alpha=0.1, known=1)


@pytest.mark.parametrize(
    ("n_iterations", "every", "expected"),
    [
        (3000, 1000, [1000, 2000, 3000]),
        (2500, 1000, [1000, 2000, 2500]),
        (500, 1000, [500]),
        (2000, None, [2000]),
    ],
)
def test_the_callback_is_called_every_so_many_steps_and_at_the_end(problem, n_iterations, every, expected):
    seen = []
    solution = solve_smd(problem, n_iterations, callback=seen.append, callback_every=every)
    assert [part.n_iterations for part in seen] == expected
    assert seen[-1] is solution


@pytest.mark.parametrize("n_runs", [1, 3])
@pytest.mark.parametrize("hull", [False, True])
def test_a_solve_in_parts_gives_the_numbers_of_one_that_was_not_looked_at(problem, n_runs, hull):
    task = hull_of(problem) if hull else problem
    arguments = {"n_iterations": 4000, "step_size": 1e-2, "n_runs": n_runs, "record_every": 300, "seed": 4}
    whole = solve_smd(task, **arguments)
    seen = []
    parts = solve_smd(task, **arguments, callback=seen.append, callback_every=700)
    assert len(seen) == 6
    assert_same(parts, whole)
    for name in ("x", "value", "occupancy"):
        np.testing.assert_array_equal(getattr(parts.state.last, name), getattr(whole.state.last, name))


def test_what_the_callback_sees_is_the_solution_of_a_shorter_solve(problem):
    seen = []
    solve_smd(problem, 3000, step_size=1e-2, record_every=500, callback=seen.append, callback_every=1000)
    for part in seen:
        assert_same(part, solve_smd(problem, part.n_iterations, step_size=1e-2, record_every=500))


def test_the_theorems_steps_are_those_of_the_whole_solve(problem):
    seen = []
    whole = solve_smd(problem, 4000)
    assert_same(solve_smd(problem, 4000, callback=seen.append, callback_every=1000), whole)
    assert {part.stats["step_sizes"] for part in seen} == {whole.stats["step_sizes"]}


def test_a_callback_that_returns_false_stops_the_solve_which_can_be_continued(problem):
    arguments = {"step_size": 1e-2, "n_runs": 2}
    stopped = solve_smd(problem, 5000, **arguments, callback=lambda part: part.n_iterations < 2000, callback_every=1000)
    assert stopped.n_iterations == 2000
    assert_same(stopped, solve_smd(problem, 2000, **arguments))
    assert_same(solve_smd(problem, 3000, **arguments, initial=stopped), solve_smd(problem, 5000, **arguments))


@pytest.mark.parametrize("answer", [None, 0, True, "stop"])
def test_only_false_itself_stops_the_solve(problem, answer):
    solution = solve_smd(problem, 300, step_size=1e-2, callback=lambda part: answer, callback_every=100)
    assert solution.n_iterations == 300


def test_a_continued_solve_counts_its_callbacks_from_where_it_continues(problem):
    begun = solve_smd(problem, 700, step_size=1e-2)
    seen = []
    solve_smd(problem, 1000, initial=begun, callback=seen.append, callback_every=500)
    assert [part.n_iterations for part in seen] == [1200, 1700]


def test_runs_too_large_to_be_kept_are_looked_at_once_at_the_end(problem, monkeypatch):
    monkeypatch.setattr(runs, "RESUME_BYTES", 1000)
    seen = []
    solve_smd(problem, 1000, step_size=1e-2, callback=seen.append, callback_every=100)
    assert [part.n_iterations for part in seen] == [1000]


def test_a_callback_every_no_step_is_refused():
    with pytest.raises(ValueError, match="callback_every must be at least 1"):
        solve_smd(make_problem(0), 100, callback=print, callback_every=0)


def test_the_progress_bar_counts_the_steps_of_all_parts(problem, capsys):
    solve_smd(problem, 5000, n_runs=2, callback=lambda part: None, callback_every=1500, progress_bar=True)
    assert "10.0k/10.0k" in capsys.readouterr().err
