"""Steps by the gap: stages, repair, and when to stop."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from checks import assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import black_box, hull_of, make_problem, problems, random_point, small_shop

from rlfd_gym import RLfDProblem, solve_exact, solve_smd
from rlfd_gym.beliefs import Intervals, NearPrior
from rlfd_gym.problem import Point, examples
from rlfd_gym.solvers.smd import runs, stages


@pytest.fixture(scope="module")
def problem():
    return examples.gridworld(size=6, alpha=0.05)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Stages of 1000, 2000, 4000 … steps."""
    monkeypatch.setattr(stages, "FIRST", 1000)


@given(problems(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_a_repaired_point_is_feasible_and_never_worse_on_either_side(problem, seed):
    x, value, occupancy = random_point(problem, seed)
    point = Point(problem.belief.nearest(x), value, occupancy)
    upper, lower = problem.bounds(*point)
    best = stages.judged(problem, point, repair=True)
    assert best.upper <= upper
    assert best.lower >= lower
    assert problem.bounds(*best.point) == pytest.approx((best.upper, best.lower), abs=1e-9)
    assert best.lower <= solve_exact(problem).upper + 1e-7


@pytest.mark.parametrize("belief", ["l2", "l1", "intervals"])
def test_the_best_cost_for_a_value_is_found_entry_by_entry(belief):
    base = make_problem(0, alpha=0.05)
    beliefs = {
        "l2": base.belief,
        "l1": NearPrior(base.prior, 0.05, norm="l1"),
        "intervals": Intervals(base.prior - 0.3, base.prior + 0.2),
    }
    problem = RLfDProblem(base.mdp, base.expert, belief=beliefs[belief])
    value = np.random.default_rng(0).uniform(-0.3, 0.3, problem.n_states)
    found, floor = stages._best_cost(problem, value), problem.mdp.flow_transpose(value)
    low, high = (np.broadcast_to(end, problem.n_pairs) for end in problem.belief.ends())
    assert (floor > low).any()
    for i in range(problem.n_pairs):
        tried = np.linspace(min(max(low[i], floor[i]), high[i]), high[i], 1001)
        costs = [np.where(np.arange(problem.n_pairs) == i, x, found) for x in tried]
        values = [problem.belief.penalty(c) + problem.expert @ c for c in costs]
        assert tried[0] - 1e-12 <= found[i] <= high[i]
        assert problem.belief.penalty(found) + problem.expert @ found <= min(values) + 1e-12


def test_the_better_side_of_each_of_two_points_is_kept(problem):
    points = [Point(problem.belief.nearest(x), u, mu) for x, u, mu in (random_point(problem, s) for s in range(2))]
    one, other = (stages.judged(problem, point, repair=False) for point in points)
    best = one.or_better(other)
    assert (best.upper, best.lower) == (min(one.upper, other.upper), max(one.lower, other.lower))
    assert problem.bounds(*best.point) == pytest.approx((best.upper, best.lower), abs=1e-9)


def test_both_gaps_are_in_the_stats_and_the_repaired_one_is_smaller(problem):
    solution = solve_smd(problem, 20_000)
    assert solution.stats["gap"] == solution.duality_gap < solution.stats["raw_gap"]
    raw = solve_smd(problem, 20_000, step_size=1e-3, repair=False)
    assert raw.stats["gap"] == raw.stats["raw_gap"] == raw.duality_gap
    fixed = solve_smd(problem, 20_000, step_size=1e-3)
    assert fixed.stats["raw_gap"] == raw.duality_gap > fixed.duality_gap


def test_a_solve_stops_at_the_gap_that_was_asked_for(problem):
    solution = solve_smd(problem, gap=0.005)
    assert solution.duality_gap <= 0.005
    assert solution.finished
    default = solve_smd(problem)
    assert default.duality_gap <= 0.01
    assert default.n_iterations <= solution.n_iterations
    with pytest.warns(RuntimeWarning, match=r"the duality gap is .* after 2000 steps, above the 1e-06 that was asked"):
        solve_smd(problem, n_iterations=2000, gap=1e-6)
    assert solve_smd(problem, n_iterations=2000).n_iterations == 2000  # asked for no gap: no warning


def test_a_problem_without_tables_has_no_gap_to_ask_for():
    box, _ = black_box(small_shop())
    with pytest.raises(ValueError, match="gap needs tables"):
        solve_smd(box, gap=0.1)
    with pytest.raises(ValueError, match="repair needs tables"):
        solve_smd(box, repair=True)


@pytest.mark.parametrize("make", [lambda problem: problem, lambda problem: hull_of(problem, 3)], ids=["box", "hull"])
@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_continued_solve_equals_one_that_never_stopped_wherever_it_stopped(problem, n_runs, make):
    posed = make(problem)
    whole = solve_smd(posed, 9000, n_runs=n_runs, record_every=500, seed=6)
    for first in (600, 1000, 1700, 7000):
        part = solve_smd(posed, first, n_runs=n_runs, record_every=500, seed=6)
        part = pickle.loads(pickle.dumps(part))
        assert_same(solve_smd(posed, 9000 - first, n_runs=n_runs, record_every=500, initial=part), whole)
    seen = []
    looked_at = solve_smd(posed, 9000, n_runs=n_runs, seed=6, callback=seen.append, callback_every=1300)
    np.testing.assert_array_equal(looked_at.cost, whole.cost)
    assert [solution.n_iterations for solution in seen] == [1300, 2600, 3900, 5200, 6500, 7800, 9000]


def test_the_number_of_jobs_makes_no_difference_to_stages(problem, monkeypatch):
    monkeypatch.setattr(runs, "BATCH_STEPS", 1)  # a run to a batch
    arguments = {"n_iterations": 8000, "n_runs": 5, "record_every": 1000}
    assert_same(solve_smd(problem, **arguments), solve_smd(problem, **arguments, n_jobs=2))


def test_another_variant_is_not_continued(problem):
    part = solve_smd(problem, 100, variant="paper")
    with pytest.raises(ValueError, match="initial is of variant='paper'"):
        solve_smd(problem, 100, initial=part)


@pytest.mark.parametrize("alpha", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("regulariser", ["l2", "l1"])
def test_the_gap_is_a_fraction_of_the_papers_after_as_many_steps(alpha, regulariser):
    problem = make_problem(7, n_states=20, n_actions=4, discount=0.9, alpha=alpha, regulariser=regulariser)
    solution = solve_smd(problem, 100_000)
    assert solution.duality_gap <= solve_smd(problem, 100_000, variant="paper").duality_gap / 8
    assert solution.lower - 1e-9 <= solve_exact(problem).upper <= solution.upper + 1e-6
