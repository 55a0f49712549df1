"""The matrix-free method for the ℓ1 penalty: against the linear program, on every kind of MDP."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given, settings
from reference import sparse_optimum
from strategies import sparse, sparse_problems
from structures import KINDS, learning_problem

from rlfd_gym import RLfDProblem, TabularMDP, pinning_alpha, share_at_prior, solve_exact
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.solvers import sparse_point
from rlfd_gym.solvers.incumbent import Incumbent, to_a_percent


def small(kind: str, mass: float, discount: float = 0.9, n_demonstrations: int | None = None) -> RLfDProblem:
    """A problem of a kind with some 200 pairs, where α is a multiple of the mean occupancy."""
    problem = learning_problem(kind, 200, discount, 0.01, n_demonstrations)
    return sparse(problem, mass / problem.n_pairs)


@pytest.mark.parametrize("n_demonstrations", [None, 20])
@pytest.mark.parametrize("mass", [0.01, 0.3, 3.0])
@pytest.mark.parametrize("kind", KINDS)
def test_it_keeps_its_promise_on_every_kind_of_mdp_around_the_value_of_the_program(kind, mass, n_demonstrations):
    problem = small(kind, mass, 0.9, n_demonstrations)
    solution, exact = solve_exact(problem, "matrix-free"), solve_exact(problem, "lp")
    assert solution.method == "exact: matrix-free"
    assert_solves(problem, solution, to_a_percent(problem)(solution.upper, solution.lower))
    assert solution.lower <= exact.upper + 1e-9
    assert solution.upper >= exact.lower - 1e-9


@given(sparse_problems())
@settings(max_examples=60, deadline=None)
def test_its_bounds_hold_the_value_of_a_textbook_program(problem):
    best = Incumbent(problem)
    sparse_point.improve(best, to_a_percent(problem))
    optimum = sparse_optimum(problem)
    assert best.lower - 1e-7 <= optimum <= best.upper + 1e-7
    assert best.keeps(to_a_percent(problem))


def test_it_keeps_its_promise_where_the_value_is_next_to_nothing():
    """Some changes cost nothing here and the value is 1.5e-6: the path has to be followed evenly."""
    rows = [[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.535, 0.465]]]
    mdp = TabularMDP.from_dense(rows, [0.116, 0.884], discount=0.25)
    expert = [0.234088, 0.0, 0.382956, 0.382956]
    prior, weights = [-0.2302, -0.4590, -0.4835, 0.3133], [0.0, 0.0, 0.0198, 0.00227]
    problem = RLfDProblem(mdp, expert, belief=NearPrior(prior, 1e-3, norm="l1", weights=weights))
    best = Incumbent(problem)
    sparse_point.improve(best, to_a_percent(problem))
    assert best.keeps(to_a_percent(problem))


def test_it_is_what_auto_takes_where_the_program_is_slow():
    problem = small("garnet20", 0.3)
    assert solve_exact(problem).method == "exact: lp"
    large = learning_problem("garnet20", 4_000, 0.9, 0.01)
    assert solve_exact(sparse(large, 0.3 / large.n_pairs)).method == "exact: matrix-free"


def test_costs_near_the_prior_are_set_to_it_and_the_bounds_still_hold():
    problem = small("grid", 1.0)
    solution = solve_exact(problem, "matrix-free")
    exact = solve_exact(problem, "lp")
    assert share_at_prior(problem, solution.cost) >= share_at_prior(problem, exact.cost) - 0.2
    assert share_at_prior(problem, solution.cost) > 0.3
    assert problem.bounds(solution.cost, solution.value, solution.occupancy)[0] == pytest.approx(solution.upper)


@pytest.mark.parametrize("kind", KINDS)
def test_an_alpha_above_the_pinning_one_gives_the_prior(kind):
    problem = small(kind, 1.0)
    for alpha in (1.1 * pinning_alpha(problem), 1e3, 1e8):
        pinned = solve_exact(problem.with_alpha(alpha), "matrix-free")
        np.testing.assert_array_equal(pinned.cost, problem.prior)
        assert pinned.duality_gap <= 0.01 * pinned.lower


@pytest.mark.parametrize("n_demonstrations", [None, 20])
def test_pinning_alpha_is_the_same_whether_planned_or_from_the_program(n_demonstrations):
    problem = small("garnet5", 1.0, 0.9, n_demonstrations)
    program = problem.with_belief(NearPrior(problem.prior, 1.0, "l1"))
    exact = np.abs(problem.expert - solve_exact(program, "lp").occupancy).max()
    assert pinning_alpha(problem) == pytest.approx(exact, rel=1e-6)


def test_without_time_it_returns_bounds_that_hold():
    problem = small("garnet20", 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        solution = solve_exact(problem, "matrix-free", time_limit=0.0)
    assert solution.lower <= solve_exact(problem, "lp").upper <= solution.upper + 1e-9
