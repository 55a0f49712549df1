"""The linear program of the ℓ1 penalty and of intervals: against textbook programs and the meaning of α."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given
from reference import believed_optimum, sparse_optimum
from strategies import believed_problem, make_problem, problems, sparse, sparse_problems

from rlfd_gym import RLfDProblem, pinning_alpha, share_at_prior, solve_exact
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import examples


@pytest.fixture(scope="module")
def grid():
    """The paper's gridworld, a noisy expert, a prior with half of the obstacles and goals; α as a share of pinning."""
    problem = examples.gridworld(regulariser="l1")
    return lambda share: problem.with_alpha(share * pinning_alpha(problem))


@given(sparse_problems())
def test_the_linear_program_closes_the_gap_and_has_the_value_of_a_textbook_program(problem):
    solution = solve_exact(problem, "lp")
    assert_solves(problem, solution, 1e-9)
    assert solution.upper == pytest.approx(sparse_optimum(problem), abs=1e-7)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha", [1e-10, 1e-8])
def test_the_linear_program_solves_an_alpha_near_its_tolerance_too(seed, alpha):
    problem = make_problem(seed)
    flat = RLfDProblem(problem.mdp, problem.expert, np.zeros(problem.n_pairs), alpha, "l1")
    solution = solve_exact(flat)
    assert solution.duality_gap < 1e-6
    assert solution.upper == pytest.approx(sparse_optimum(flat), abs=1e-6)


@given(problems())
def test_a_large_alpha_of_the_l1_penalty_returns_exactly_the_prior(problem):
    pinned = sparse(problem, 1.01 * pinning_alpha(problem) + 1e-6)
    solution = solve_exact(pinned)
    np.testing.assert_array_equal(solution.cost, np.clip(problem.prior, -1, 1))
    assert share_at_prior(pinned, solution.cost) == 1.0


def test_the_apprentice_stays_within_alpha_of_the_expert_or_pays_the_full_price(grid):
    problem = grid(0.1)
    solution = solve_exact(problem)
    apart = problem.expert - solution.occupancy
    within = np.abs(apart) < problem.alpha - 1e-12
    np.testing.assert_array_equal(solution.cost[within], problem.prior[within])
    beyond = np.abs(apart) > problem.alpha + 1e-9
    np.testing.assert_allclose(solution.cost[beyond], -np.sign(apart[beyond]), atol=1e-12)
    assert within.any()
    excess = np.maximum(np.abs(apart) - problem.alpha, 0)
    dual = problem.prior @ solution.occupancy + np.sum((1 + problem.prior * np.sign(apart)) * excess)
    assert solution.upper == pytest.approx(problem.prior @ problem.expert - dual, abs=1e-9)


def test_l1_leaves_most_pairs_at_the_prior_and_l2_hardly_any(grid):
    problem = grid(0.1)
    quadratic = RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.01)
    assert share_at_prior(problem, solve_exact(problem).cost) > 0.9
    assert share_at_prior(problem, solve_exact(quadratic).cost) < 0.01


@pytest.mark.parametrize("block", range(5))
def test_with_intervals_it_closes_the_gap_around_the_optimum_of_a_dense_program(block):
    for seed in range(100 * block, 100 * block + 10):
        problem = believed_problem("intervals", seed)
        solution = solve_exact(problem, "lp")
        assert_solves(problem, solution, 1e-8)
        assert solution.upper == pytest.approx(believed_optimum(problem), abs=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_intervals_without_width_are_planning_and_the_whole_box_is_imitation(seed):
    problem = make_problem(seed)
    planned = solve_exact(problem.with_belief(Intervals(problem.prior, problem.prior)))
    plan = problem.mdp.optimal(problem.prior)
    assert planned.upper == pytest.approx(problem.expert @ problem.prior - plan.expected_cost, abs=1e-8)
    np.testing.assert_array_equal(planned.cost, problem.prior)
    ones = np.ones(problem.n_pairs)
    imitated = solve_exact(problem.with_belief(Intervals(-ones, ones)))
    assert imitated.upper == pytest.approx(0.0, abs=1e-8)
    np.testing.assert_allclose(imitated.occupancy, problem.expert, atol=1e-8)
    assert not imitated.guarantee
