"""The best certified bounds so far."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_solves, one_state
from hypothesis import given
from strategies import problems, random_point, seeds

from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.occupancy import flow_of
from rlfd_gym.problem import examples
from rlfd_gym.solvers.incumbent import Incumbent, polish, repaired, to_a_percent, to_rounding


@given(problems(), seeds)
def test_the_best_upper_and_the_best_lower_bound_are_kept_each_with_its_point(problem, seed):
    best = Incumbent(problem)
    offered = [random_point(problem, seed + k) for k in range(6)]
    gaps = [best.offer(*point) for point in offered]
    bounds = np.array([problem.bounds(*point) for point in offered])
    np.testing.assert_allclose(gaps, bounds[:, 0] - bounds[:, 1], atol=1e-12)
    assert best.upper == pytest.approx(bounds[:, 0].min(), abs=1e-12)
    assert best.lower == pytest.approx(bounds[:, 1].max(), abs=1e-12)
    together = problem.bounds(best.cost, best.value, best.occupancy)
    assert together == pytest.approx((best.upper, best.lower), abs=1e-9 * (1 + abs(best.upper)))


def test_a_worse_point_changes_nothing():
    best = Incumbent(one_state())
    best.offer(np.array([0.5, -0.5]), np.array([0.0]), np.array([0.0, 1.0]))
    upper, lower, cost = best.upper, best.lower, best.cost
    assert best.offer(np.array([1.0, 1.0]), np.array([1.0]), np.array([1.0, 0.0])) > 0
    assert (best.upper, best.lower) == (upper, lower)
    assert best.cost is cost


def test_points_are_brought_into_their_sets_and_large_values_are_shifted_first():
    best = Incumbent(examples.inventory(alpha=0.1))
    n, n_states = best.problem.n_pairs, best.problem.n_states
    value = np.full(n_states, 10.0)
    value[0] = 10.5
    best.offer(np.full(n, 3.0), value, np.full(n, -1.0))
    assert best.cost.tolist() == [1.0] * n
    assert (best.value[0], best.value[1]) == (0.25, -0.25)  # a constant shift changes neither bound
    np.testing.assert_array_equal(best.occupancy, best.problem.expert)  # nothing was left of the occupancy


def test_promises_are_kept_by_gaps_that_are_small_enough():
    best = Incumbent(one_state())
    percent, rounding = to_a_percent(best.problem), to_rounding(best.problem)
    best.upper, best.lower = 10.0, 10.0 - 5e-6
    assert best.keeps(rounding)  # 1e-6 of a value of 10
    best.lower = 9.99
    assert best.keeps(percent)
    assert not best.keeps(rounding)
    best.lower = 9.0
    assert not best.keeps(percent)


def test_a_prior_outside_the_box_makes_no_promise_easier():
    inside = one_state(alpha=1.0)
    outside = inside.with_belief(NearPrior(inside.prior + 3.0, 1.0, outside_box=True))
    constant = outside.penalty(np.clip(outside.prior, -1.0, 1.0))
    assert constant > 1.0
    assert to_a_percent(outside)(constant + 0.5, constant + 0.5) == pytest.approx(0.005)
    assert to_rounding(outside)(constant + 0.5, constant + 0.5) == pytest.approx(1e-6)


@pytest.mark.parametrize("promise", [to_a_percent, to_rounding])
def test_the_absolute_part_of_a_promise_is_small_for_the_range_of_the_value(promise):
    problem = examples.inventory(alpha=2e-5)
    constant = np.full(problem.n_pairs, problem.prior.mean())
    most = problem.penalty(constant)  # under a constant cost every expert is optimal
    assert 1e-4 < most < 1e-3
    assert promise(problem)(0.0, 0.0) <= 1e-4 * most * (1 + 1e-9)
    assert promise(problem.with_alpha(1.0))(0.0, 0.0) == 1e-6
    assert promise(problem.with_alpha(0.0))(0.0, 0.0) == 1e-6  # nothing can change: any gap is rounding


@given(problems(), seeds)
def test_a_repaired_occupancy_is_that_of_its_own_policy(problem, seed):
    mu = random_point(problem, seed)[2]
    exactly = RLfDProblem(problem.mdp, problem.mdp.occupancy_of(problem.mdp.policy_of(problem.expert)))
    again = repaired(exactly, mu, 1e-14)
    np.testing.assert_allclose(again, problem.mdp.occupancy_of(problem.mdp.policy_of(mu)), atol=1e-12)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
@given(problems(), seeds)
def test_a_repair_leaves_no_more_of_the_flow_missing_than_it_may(tolerance, problem, seed):
    mdp = problem.mdp
    expert = mdp.occupancy_of(mdp.policy_of(random_point(problem, seed)[2]))
    exactly = RLfDProblem(mdp, expert)
    nearly = expert * (1 + 1e-4 * np.random.default_rng(seed).normal(size=problem.n_pairs))
    huge = 1e60 * random_point(problem, seed + 1)[2]
    for mu in (random_point(problem, seed + 1)[2], huge, nearly, expert):
        again = repaired(exactly, mu, tolerance)
        assert again.min() >= 0
        assert np.abs(mdp.flow(expert) - flow_of(mdp, again)).sum() <= tolerance * (1 + 1e-6) + 1e-12


def test_polishing_turns_a_rough_point_into_certified_bounds():
    problem = examples.inventory(alpha=0.1)
    exact = solve_exact(problem)
    rough = Incumbent(problem)
    noise = 1e-3 * np.random.default_rng(0).normal(size=problem.n_pairs)
    rough.offer(exact.cost + noise, exact.value, exact.occupancy * (1 + noise))
    gap = rough.gap
    polish(rough)
    assert rough.gap < 0.1 * gap
    assert rough.lower - 1e-9 <= exact.upper
    assert exact.lower <= rough.upper + 1e-9
    assert_solves(problem, exact, 1e-6)
