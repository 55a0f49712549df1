"""`solve_exact`: which method it takes, what it promises, and the paper's instances."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given
from strategies import grid_problem, hull_of, make_mdp, problems, random_cost, random_point, seeds, with_sampled_expert

from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.problem import examples
from rlfd_gym.solvers import exact, matrix_free, qp

ALPHAS = (0.0, 1e-3, 0.1, 10.0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_default_closes_the_gap_on_the_papers_environments(alpha):
    for problem in (examples.inventory(alpha), grid_problem(alpha=alpha)):
        solution = solve_exact(problem)
        assert_solves(problem, solution, 1e-6)
        assert solution.method == "exact: qp"


@pytest.mark.parametrize("name", ["rlfd_gym/Inventory-v0", "rlfd_gym/InventoryPaper-v0"])
def test_the_papers_single_instance_recovers_parameters_close_to_the_prior(name):
    env = gym.make(name).unwrapped
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    solution = solve_exact(RLfDProblem(env.mdp, expert, env.cost_for(4, 2, 14), alpha=0.1))
    recovered = np.linalg.lstsq(env.features, env.scale.from_box(solution.cost), rcond=None)[0]
    np.testing.assert_allclose(recovered, [4, 2, 14], atol=0.3)
    # Better than the expert for the true cost, but far from optimal.
    best = env.mdp.optimal(env.cost).expected_cost
    loss, expert_loss = env.cost @ solution.occupancy - best, env.cost @ expert - best
    assert 0.1 * expert_loss < loss < expert_loss


def test_at_alpha_zero_the_linear_program_finds_the_expert_too():
    problem = examples.inventory(0.0)
    solution = solve_exact(problem)
    assert solution.method == "exact: qp"
    assert_solves(problem, solution, 1e-6)
    np.testing.assert_allclose(solution.occupancy, problem.expert, atol=1e-12)
    assert np.ptp(solution.cost) > 0.1  # not the constant of the closed form
    # Every action that the expert does not take is told apart from the one that is.
    slack = solution.cost - problem.mdp.flow_transpose(solution.value)
    assert slack[problem.expert == 0].min() > 1e-3 > np.abs(slack[problem.expert > 0]).max()


def test_at_alpha_zero_a_problem_that_is_not_quick_takes_the_closed_form(monkeypatch):
    monkeypatch.setattr(exact, "QP_PAIRS", 10)
    solution = solve_exact(examples.inventory(0.0))
    assert solution.method == "exact: closed form"
    assert solution.duality_gap < 1e-12


def test_a_large_alpha_gives_the_priors_optimal_policy():
    problem = examples.inventory(1e4)
    plan = problem.mdp.optimal(np.clip(problem.prior, -1, 1))
    solution = solve_exact(problem)
    np.testing.assert_allclose(solution.cost, problem.prior, atol=1e-3)
    np.testing.assert_allclose(solution.occupancy, plan.occupancy, atol=1e-3)
    assert np.abs(problem.expert - plan.occupancy).sum() > 0.1  # which is not what the expert does


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("n_samples", [10, 500])
def test_an_expert_estimated_from_samples_is_solved_by_both_methods(alpha, n_samples):
    problem = with_sampled_expert(grid_problem(8, alpha, discount=0.9), n_samples, seed=3)
    assert np.abs(problem.mdp.flow(problem.expert) - problem.mdp.initial).sum() > 0.1
    exactly = solve_exact(problem, "qp")
    assert_solves(problem, exactly, 1e-6 * max(1.0, exactly.upper))
    rough = solve_exact(problem, "matrix-free")
    assert_solves(problem, rough, max(1e-6, 0.01 * rough.lower) * (1 + 1e-6))
    assert exactly.lower - 1e-9 <= rough.upper <= exactly.upper * 1.011 + 1e-6


def test_a_sampled_expert_and_a_large_alpha_are_solved():
    mdp = make_mdp(186700092, 12, 4, 0.9)
    expert = np.zeros(mdp.n_pairs)
    expert[[20, 34]] = 1 / 3, 2 / 3
    problem = RLfDProblem(mdp, expert, random_cost(mdp, 186700093), 1e4)
    for method in ("auto", "matrix-free"):
        solution = solve_exact(problem, method)
        assert solution.duality_gap <= max(1e-6, 0.01 * solution.upper)


def test_auto_takes_the_method_that_the_structure_asks_for(monkeypatch):
    problem = grid_problem(12, 0.1)
    assert solve_exact(problem).method == "exact: qp"
    monkeypatch.setattr(exact, "QUICK_WORK", 1.0)
    assert solve_exact(problem).method == "exact: matrix-free"
    monkeypatch.undo()
    monkeypatch.setattr(exact, "QP_PAIRS", 100)
    assert solve_exact(problem).method == "exact: matrix-free"


def test_auto_continues_with_the_other_method_where_the_first_stalls(monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    monkeypatch.setattr(exact, "QUICK_WORK", 1.0)
    monkeypatch.setattr(matrix_free, "PATIENCE", 1)  # hardly any patience: the quick part gives up
    monkeypatch.setattr(matrix_free, "MAX_STEPS", 1)
    assert solve_exact(problem).method == "exact: qp"
    monkeypatch.undo()
    monkeypatch.setattr(qp, "io_al", lambda p, spread: (p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    solution = solve_exact(problem)  # the program is solved by somebody useless
    assert_solves(problem, solution, 1e-6)


@pytest.mark.parametrize("method", ["qp", "matrix-free", "auto"])
def test_a_promise_that_is_not_kept_is_a_warning_with_the_gap(method, monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    monkeypatch.setattr(qp, "io_al", lambda p, spread: (0 * p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    monkeypatch.setattr(matrix_free, "MAX_STEPS", 1)
    with pytest.warns(RuntimeWarning, match="duality gap is .* as promised") as caught:
        solution = solve_exact(problem, method)
    assert f"{solution.duality_gap:.2g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert solution.lower < solution.upper


def test_an_unknown_method_and_something_that_is_no_problem_are_refused():
    problem = examples.inventory(0.1)
    with pytest.raises(ValueError, match="method must be one of auto, qp, matrix-free; got 'simplex'"):
        solve_exact(problem, "simplex")
    with pytest.raises(TypeError, match="problem must be an RLfDProblem, got TabularMDP"):
        solve_exact(problem.mdp)
    with pytest.raises(ValueError, match="for the belief Hull, method must be one of auto, cutting-planes, qp"):
        solve_exact(hull_of(problem), "lp")


def test_methods_and_bounds_of_the_other_penalty_are_refused():
    problem = examples.gridworld(alpha=0.001, regulariser="l1")
    for method in ("qp", "matrix-free"):
        with pytest.raises(ValueError, match=f"NearPrior with norm l1, method must be one of auto, lp; got '{method}'"):
            solve_exact(problem, method)
    with pytest.raises(
        ValueError, match="NearPrior with norm l2, method must be one of auto, qp, matrix-free; got 'lp'"
    ):
        solve_exact(RLfDProblem(problem.mdp, problem.expert), "lp")
    with pytest.raises(ValueError, match='bound="paper" is a lemma on regulariser="l2"'):
        problem.step_sizes(0.1, bound="paper")


@given(problems(), seeds)
def test_without_alpha_the_penalties_give_the_same_bounds_and_the_same_solution(problem, seed):
    l1, l2 = (RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.0, name) for name in ("l1", "l2"))
    point = random_point(problem, seed)
    assert l1.bounds(*point) == pytest.approx(l2.bounds(*point), abs=1e-12)
    one, other = solve_exact(l1), solve_exact(l2)
    for name in ("cost", "value", "occupancy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
