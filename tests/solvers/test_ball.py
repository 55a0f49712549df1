"""The multiplier of a ball: against tangents of its norm, planning, imitation and `NearPrior`."""

from __future__ import annotations

import numpy as np
import pytest
from reference import believed_optimum
from strategies import believed_problem, make_problem

from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.beliefs import Ball, NearPrior
from rlfd_gym.problem import examples
from rlfd_gym.solvers.incumbent import to_rounding


@pytest.mark.parametrize("block", range(5))
def test_the_bounds_enclose_the_optimum_of_a_dense_program(block):
    for seed in range(100 * block, 100 * block + 10):
        problem = believed_problem("ball", seed)
        solution = solve_exact(problem)
        assert solution.lower - 1e-8 <= believed_optimum(problem) <= solution.upper + 1e-8
        assert solution.duality_gap <= to_rounding(problem)(solution.upper, solution.lower)
        bounds = problem.bounds(solution.cost, solution.value, solution.occupancy)
        assert bounds == (solution.upper, solution.lower)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_the_ball_of_the_learned_cost_has_the_solution_of_near_prior(alpha):
    near = examples.inventory(alpha)
    near = near.with_belief(NearPrior(0.5 * near.prior, alpha))  # so that the box is slack
    learned = solve_exact(near)
    assert np.abs(learned.cost).max() < 1
    radius = float(np.linalg.norm(learned.cost - near.prior))
    solution = solve_exact(near.with_belief(Ball(near.prior, radius)))
    regret = learned.upper - near.penalty(learned.cost)
    assert solution.upper == pytest.approx(regret, abs=3e-6)
    assert solution.guarantee.improvement == pytest.approx(learned.guarantee.improvement, abs=3e-6)
    # α‖c - c°‖² is at most what the bounds leave open.
    assert alpha * np.sum((solution.cost - learned.cost) ** 2) < 1e-5


@pytest.mark.parametrize("seed", range(4))
def test_without_a_radius_it_is_planning_with_the_prior(seed):
    problem = make_problem(seed)
    solution = solve_exact(problem.with_belief(Ball(problem.prior, 0.0)))
    plan = problem.mdp.optimal(problem.prior)
    assert solution.upper == pytest.approx(problem.expert @ problem.prior - plan.expected_cost, abs=1e-12)
    np.testing.assert_array_equal(solution.cost, problem.prior)


@pytest.mark.parametrize("radius", [0.0, 1e-6])
@pytest.mark.parametrize("seed", [1, 5050, 5081])
def test_with_hardly_a_radius_a_sampled_expert_is_solved_too(seed, radius):
    problem = believed_problem("ball", seed)
    expert = np.random.default_rng(seed).dirichlet(np.full(problem.n_pairs, 0.3))
    assert problem.mdp.flow(expert).min() < -0.1
    problem = RLfDProblem(problem.mdp, expert, belief=Ball(problem.prior, radius))
    assert solve_exact(problem).upper == pytest.approx(believed_optimum(problem), abs=1e-6)


def test_a_radius_so_small_that_the_multiplier_hides_the_regret_is_solved_to_rounding():
    problem = make_problem(0, discount=0.9)
    solution = solve_exact(problem.with_belief(Ball(problem.prior, 1e-4)))
    assert solution.duality_gap < 1e-6
    assert solution.n_iterations < 10


def test_a_ball_with_a_cost_under_which_the_expert_is_optimal_has_value_zero():
    problem = make_problem(2)
    solution = solve_exact(problem.with_belief(Ball(problem.prior, float(np.linalg.norm(problem.prior)))))
    assert solution.upper == pytest.approx(0.0, abs=1e-6)  # the constant cost 0 is in the ball
    assert not solution.guarantee


def test_the_value_falls_as_the_radius_grows():
    problem = examples.inventory()
    values = [solve_exact(problem.with_belief(Ball(problem.prior, r))).upper for r in (0.0, 0.05, 0.1, 0.2, 0.4)]
    assert np.all(np.diff(values) < 1e-6)
    assert values[0] > values[-1] + 0.1
