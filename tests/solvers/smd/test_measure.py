"""What is measured along the way, against the problem's own gap and against averages one step apart."""

from __future__ import annotations

import numpy as np
import pytest
from reference import begin
from strategies import hull_of, hull_point, make_problem

from rlfd_gym import solve_smd
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point, examples
from rlfd_gym.solvers.smd import kernels, measure, records

EVERY = 700


def measured(problem, point, etas, n_steps):
    """The rows that are recorded, and the averages one step before and at each of them."""
    step = records.constants_of(problem, etas)
    draws = np.random.default_rng(1).random((n_steps, records.DRAWS))
    samples, rows = np.empty((n_steps, records.DRAWS), np.int32), np.empty((10, measure.COLUMNS))
    run, tables, _ = begin(problem, point)
    looks = measure.measuring_of(problem, EVERY)
    assert measure.advance_and_measure(run, tables, step, draws, samples, None, looks, rows) == kernels.OK
    assert run.steps == n_steps
    again, _, _ = begin(problem, point)
    averages = []
    for row in range(n_steps // EVERY):
        first, last = EVERY * row, EVERY * (row + 1)
        kernels.advance(again, tables, step, draws[first : last - 1], samples, None)
        before = records.average_of(again)
        kernels.advance(again, tables, step, draws[last - 1 : last], samples, None)
        averages.append((before, records.average_of(again)))
    return rows[: len(averages)], averages


@pytest.mark.parametrize(("alpha", "regulariser"), [(0.0, "l2"), (0.1, "l2"), (0.0, "l1"), (0.03, "l1")])
def test_on_the_box_the_records_are_the_gap_and_the_change_of_the_averages(alpha, regulariser):
    problem = make_problem(9, 6, 3, alpha=alpha, regulariser=regulariser)
    rows, averages = measured(problem, None, (1e-2, 1e-2), 3000)
    assert len(rows) == 4
    for row, (before, after) in zip(rows, averages, strict=True):
        assert row[0] == pytest.approx(problem.duality_gap(*after), abs=1e-10)
        changes = [np.abs(new - old).sum() for new, old in zip(after, before, strict=True)]
        assert row[1:] == pytest.approx([*changes, 0.0], abs=1e-11)


def test_with_intervals_the_records_are_the_gap_and_the_change_of_the_averages():
    problem = make_problem(9, 6, 3)
    problem = problem.with_belief(Intervals(problem.prior - 0.2, problem.prior + 0.1))
    rows, averages = measured(problem, None, (1e-2, 1e-2), 3000)
    for row, (before, after) in zip(rows, averages, strict=True):
        assert row[0] == pytest.approx(problem.duality_gap(*after), abs=1e-10)
        changes = [np.abs(new - old).sum() for new, old in zip(after, before, strict=True)]
        assert row[1:] == pytest.approx([*changes, 0.0], abs=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_on_a_hull_the_records_are_the_gap_and_the_change_of_the_averages(alpha):
    hull = hull_of(make_problem(9, 6, 3, alpha=alpha), 4)
    rows, averages = measured(hull, hull_point(hull), (1e-2, 1e-2, 1e-2), 2100)
    assert len(rows) == 3
    for row, (before, after) in zip(rows, averages, strict=True):
        assert row[0] == pytest.approx(hull.duality_gap(*after), abs=1e-10)
        changes = Point(*(np.abs(new - old).sum() for new, old in zip(after, before, strict=True)))
        cost = np.abs(hull.belief.basis @ (after.x - before.x)).sum()
        assert row[1:] == pytest.approx([cost, changes.value, changes.occupancy, changes.x], abs=1e-11)


def test_a_history_on_the_box_has_no_change_of_a_mixture():
    solution = solve_smd(examples.inventory(alpha=0.1), n_iterations=100, record_every=50)
    assert (len(solution.history.change_cost), len(solution.history.change_mixture)) == (2, 0)
    assert solution.mixture is None
