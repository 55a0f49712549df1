"""What Algorithm 1 keeps of a run: views of plain arrays, which a copy continues exactly."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from reference import advance, begin
from strategies import black_box, hull_of, hull_point, make_problem, small_shop

from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point
from rlfd_gym.solvers.smd import records

PROBLEMS = {"l2": make_problem(1), "l1": make_problem(1, regulariser="l1"), "hull": hull_of(make_problem(1))}
PROBLEMS["intervals"] = PROBLEMS["l2"].with_belief(Intervals(PROBLEMS["l2"].prior - 0.2, PROBLEMS["l2"].prior + 0.1))


def started(name: str):
    problem = PROBLEMS[name]
    return problem, *begin(problem, hull_point(problem) if name == "hull" else None)


def arrays_of(run: records.Run) -> list[np.ndarray]:
    ends = () if run.ends is None else (run.ends,)
    return [*run[:5], *(run.mixture or ()), *ends]


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_run_starts_at_its_point_with_empty_sums(name):
    problem, run, _, point = started(name)
    for mine, given in zip(records.iterate_of(run), point, strict=True):
        np.testing.assert_allclose(mine, given, atol=1e-15)
    assert run.steps == 0
    assert run.clock.tolist() == [0.0] * 4
    for name in ("x_sum", "mu_sum", "clock"):
        assert not run.pairs[name].any()
    np.testing.assert_array_equal(run.pairs["prior"], problem.prior)
    np.testing.assert_array_equal(run.pairs["state"], problem.mdp.pair_states)


@pytest.mark.parametrize("name", PROBLEMS)
def test_after_one_step_the_average_is_the_iterate(name):
    problem, run, tables, _ = started(name)
    advance(run, tables, records.constants_of(problem, (1e-2,) * len(problem.theorem.names)), 1)
    assert run.steps == 1
    for mean, last in zip(records.average_of(run), records.iterate_of(run), strict=True):
        np.testing.assert_allclose(mean, last, atol=1e-14)


@pytest.mark.parametrize("duplicate", [records.copy_of, lambda run: pickle.loads(pickle.dumps(run))])
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_copy_continues_exactly_and_leaves_the_original_alone(name, duplicate):
    problem, run, tables, _ = started(name)
    step = records.constants_of(problem, (1e-2,) * len(problem.theorem.names))
    advance(run, tables, step, 5000)
    kept = [array.copy() for array in arrays_of(run)]
    copy = duplicate(run)
    advance(copy, tables, step, 3000, seed=2)
    for array, before in zip(arrays_of(run), kept, strict=True):
        np.testing.assert_array_equal(array, before)
    advance(run, tables, step, 3000, seed=2)
    for one, other in zip(arrays_of(run), arrays_of(copy), strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_belongs_to_a_pair_is_one_cache_line():
    _, run, _, _ = started("l2")
    assert records.PAIR.itemsize == 64
    for array in (run.pair_buffer, run.state_buffer, run.tree):
        assert array.ctypes.data % 64 == 0
    run.pairs["x"][0] = 0.125
    assert run.pair_buffer.view(records.PAIR)["x"][0] == 0.125  # a view, not a copy
    run.weights[0] = 0.25
    assert run.tree[0, 0] == 0.25


def test_the_constants_of_a_step_are_those_of_the_estimators():
    problem = make_problem(1, discount=0.75, alpha=0.1)
    n = problem.n_pairs
    step = records.constants_of(problem, (0.01, 0.002))
    assert step[:2] == (0.75, records.L2)
    assert step.pull == pytest.approx(2 * 0.1 * n * 0.01)
    assert (step.eta, step.eta_value, step.eta_mu) == pytest.approx((0.01, 0.04, n * 0.002))
    sparse = records.constants_of(make_problem(1, alpha=0.1, regulariser="l1"), (0.01, 0.002))
    assert sparse.pull == pytest.approx(0.1 * n * 0.01)
    on_a_hull = records.constants_of(PROBLEMS["hull"], (0.01, 0.004, 0.002))
    assert (on_a_hull.eta, on_a_hull.eta_value) == pytest.approx((0.01, 0.004 / (1 - 0.7)))


def test_a_run_on_a_simulator_needs_no_alias_tables():
    box, model = black_box(small_shop())
    n = box.n_pairs
    point = Point(np.zeros(n), np.zeros(box.n_states), np.full(n, 1 / n))
    run, other = records.start(box, point), records.start(model, point)
    assert not run.pairs["row_length"].any()
    assert other.pairs["row_length"].all()
    np.testing.assert_array_equal(run.pairs["state"], other.pairs["state"])
