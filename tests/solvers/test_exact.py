"""`solve_exact`: which method it takes, what it promises, and the paper's instances."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given
from strategies import (
    believed_problem,
    far,
    grid_problem,
    hull_of,
    make_mdp,
    problems,
    random_cost,
    random_point,
    random_policy,
    seeds,
    with_sampled_expert,
)

from rlfd_gym import (
    RLfDProblem,
    demonstrate,
    guarantee,
    noisy_expert,
    occupancy_from_demonstrations,
    solve_exact,
)
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import examples
from rlfd_gym.solvers import exact, matrix_free, predictor_corrector, qp
from rlfd_gym.solvers.incumbent import to_a_percent, to_rounding

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
    for part in (matrix_free, predictor_corrector):
        monkeypatch.setattr(part, "MAX_STEPS", 1)
    assert solve_exact(problem).method == "exact: matrix-free, then qp"
    monkeypatch.undo()
    monkeypatch.setattr(qp, "io_al", lambda p, **_: (p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    solution = solve_exact(problem)  # the program is solved by somebody useless
    assert_solves(problem, solution, 1e-6)


@pytest.mark.parametrize("method", ["qp", "matrix-free", "auto"])
def test_a_promise_that_is_not_kept_is_a_warning_with_the_gap(method, monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    monkeypatch.setattr(qp, "io_al", lambda p, **_: (0 * p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    for part in (matrix_free, predictor_corrector):
        monkeypatch.setattr(part, "MAX_STEPS", 1)
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
    with pytest.raises(
        ValueError, match="NearPrior with norm l1, method must be one of auto, lp, matrix-free; got 'qp'"
    ):
        solve_exact(problem, "qp")
    with pytest.raises(ValueError, match="norm l2, method must be one of auto, qp, matrix-free; got 'lp'"):
        solve_exact(RLfDProblem(problem.mdp, problem.expert), "lp")
    with pytest.raises(ValueError, match='bound="paper" is a lemma on regulariser="l2"'):
        problem.step_sizes(0.1, bound="paper")


@pytest.mark.parametrize(
    ("kind", "method"),
    [("intervals", "lp"), ("prices", "cutting planes"), ("hull", "cutting planes"), ("ball", "multiplier")],
)
def test_every_belief_has_its_method_its_bounds_and_its_guarantee(kind, method):
    problem = believed_problem(kind, 12)
    expert = problem.mdp.occupancy_of(random_policy(problem.mdp, 0))
    problem = RLfDProblem(problem.mdp, expert, belief=problem.belief)
    solution = solve_exact(problem)
    assert solution.method == f"exact: {method}"
    assert (solution.mixture is None) == (kind in ("intervals", "ball"))
    np.testing.assert_array_equal(solution.guarantee.policy, solution.policy)
    assert solution.guarantee.improvement == solution.lower
    assert str(solution).splitlines() == [repr(solution), str(solution.guarantee)]


def test_large_intervals_take_the_matrix_free_method(monkeypatch):
    monkeypatch.setattr(exact, "LP_PAIRS", 10)
    problem = examples.inventory()
    wide = problem.with_belief(Intervals(problem.prior - 0.05, problem.prior + 0.05))
    assert solve_exact(wide).method == "exact: matrix-free"


def test_a_belief_that_no_method_is_for_is_refused():
    class Mine(Intervals):
        """Intervals under another name."""

    problem = examples.inventory()
    with pytest.raises(TypeError, match="solve_exact has no method for the belief Mine; it has methods for NearPrior"):
        solve_exact(problem.with_belief(Mine(problem.prior, problem.prior)))


@given(problems(), seeds)
def test_without_alpha_the_penalties_give_the_same_bounds_and_the_same_solution(problem, seed):
    l1, l2 = (problem.with_belief(far(problem.prior, 0.0, name)) for name in ("l1", "l2"))
    point = random_point(problem, seed)
    assert l1.bounds(*point) == pytest.approx(l2.bounds(*point), abs=1e-12)
    one, other = solve_exact(l1), solve_exact(l2)
    for name in ("cost", "value", "occupancy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(("method", "regulariser"), [("qp", "l2"), ("auto", "l2"), ("matrix-free", "l2"), ("lp", "l1")])
def test_a_time_limit_returns_certified_bounds_and_says_that_it_is_not_finished(method, regulariser):
    grid = grid_problem(12, 0.01, discount=0.95)
    problem = RLfDProblem(grid.mdp, grid.expert, grid.prior, 0.01, regulariser)
    with pytest.warns(RuntimeWarning, match="not .* as promised because the time was over"):
        solution = solve_exact(problem, method, time_limit=0)
    assert not solution.finished
    assert (solution.upper, solution.lower) == problem.bounds(solution.cost, solution.value, solution.occupancy)
    optimum = solve_exact(problem)
    assert solution.lower <= optimum.upper
    assert optimum.lower <= solution.upper < np.inf


def test_a_time_limit_that_is_long_enough_changes_nothing():
    problem = grid_problem(6)
    one, other = solve_exact(problem), solve_exact(problem, time_limit=1000)
    assert one.finished
    assert other.finished
    np.testing.assert_array_equal(one.cost, other.cost)


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "1"])
def test_a_time_limit_must_be_a_number_of_seconds(wrong):
    with pytest.raises((TypeError, ValueError), match="time_limit must be"):
        solve_exact(grid_problem(4), time_limit=wrong)


@pytest.mark.parametrize(
    ("seed", "n_states", "n_actions", "discount", "alpha", "scale", "method", "regulariser"),
    [
        (99, 9, 3, 0.9999999965149042, 0.017828650720640982, 3.0, "matrix-free", "l2"),
        (180, 7, 3, 0.9999999892255661, 0.006312937565321102, 3.0, "auto", "l2"),
        (193, 10, 2, 0.9999999965160713, 0.010253027880105427, 1.0, "auto", "l2"),
        (491, 6, 4, 0.9999997748193591, 1.4567704710137705e-06, 3.0, "auto", "l2"),
        (2094, 6, 1, 0.9999999999979565, 404.4989933025112, 1.0, "auto", "l2"),
        (11, 9, 2, 0.9999999999920569, 162.3010212534676, 3.0, "auto", "l1"),
    ],
)
def test_a_discount_next_to_one_ends_with_bounds_and_a_warning(
    seed, n_states, n_actions, discount, alpha, scale, method, regulariser
):
    """Interior points became nan here, squares underflowed, or HiGHS failed."""
    mdp = make_mdp(seed, n_states, n_actions, discount)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        expert = mdp.occupancy_of(random_policy(mdp, seed + 1))
        belief = far(scale * random_cost(mdp, seed + 2), alpha, regulariser)
        problem = RLfDProblem(mdp, expert / expert.sum(), belief=belief)
        solution = solve_exact(problem, method)
    program_first = solution.method.startswith(("exact: qp", "exact: lp"))
    promise = (to_rounding if program_first else to_a_percent)(problem)
    kept = solution.duality_gap <= promise(solution.upper, solution.lower)
    assert kept != any("as promised" in str(warning.message) for warning in caught)
    assert np.isfinite([solution.upper, solution.lower]).all()
    assert all(np.isfinite(part).all() for part in (solution.cost, solution.value, solution.policy))


def test_the_warning_judges_the_bounds_that_are_returned(monkeypatch):
    """A first point with a large upper bound makes a lenient goal; the second is held to its own."""
    problem = grid_problem(6, 100.0)
    rough = solve_exact(problem, "matrix-free")
    monkeypatch.setattr(qp, "io_al", lambda p, **_: (-p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    monkeypatch.setattr(qp, "polish", lambda best: best.offer(rough.cost, rough.value, rough.occupancy))
    lenient = 1e-6 * problem.bounds(-problem.prior, rough.value, rough.occupancy)[0]
    with pytest.warns(RuntimeWarning, match="not 1e-06 as promised"):
        solution = solve_exact(problem, "qp")
    assert 1e-6 < solution.duality_gap < lenient


@pytest.mark.parametrize("method", ["qp", "matrix-free"])
def test_where_the_solution_has_no_mass_its_policy_plans_with_the_learned_cost(method):
    """One demonstration on the windy grid, whose prior is the truth: the apprentice is nearly optimal everywhere."""
    env = examples.gridworld_env()
    mdp = env.mdp
    policy = mdp.policy_of(noisy_expert(mdp, env.cost, 0.3))
    shown = demonstrate(mdp, policy, 1, mdp.horizon(), seed=1)
    expert = occupancy_from_demonstrations(shown, mdp, estimator="count")
    solution = solve_exact(RLfDProblem(mdp, expert, env.cost, 1.0), method)
    optimum = mdp.optimal(env.cost).expected_cost
    assert mdp.expected_cost(solution.policy, env.cost) < 0.9 * optimum < 0
    assert mdp.expected_cost(mdp.policy_of(solution.occupancy), env.cost) > 0.8 * optimum
    # The guarantee is that of the policy that is returned.
    promise = guarantee(mdp, solution.policy, expert, solution.guarantee.belief, cost=solution.cost)
    assert solution.guarantee.improvement == pytest.approx(promise.improvement, abs=1e-12)
    np.testing.assert_array_equal(solution.guarantee.policy, solution.policy)


@given(problems(), seeds)
def test_an_expert_that_is_everywhere_is_read_as_before(problem, seed):
    rng = np.random.default_rng(seed)
    everywhere = problem.mdp.occupancy_of(random_policy(problem.mdp, seed))
    everywhere = 0.5 * everywhere + 0.5 * rng.dirichlet(np.full(problem.n_pairs, 50.0))
    solution = solve_exact(RLfDProblem(problem.mdp, everywhere, np.clip(problem.prior, -1, 1), 0.0))
    heavy = problem.mdp.sum_by_state(solution.occupancy)[problem.mdp.pair_states] > 1e-5
    np.testing.assert_array_equal(solution.policy[heavy], problem.mdp.policy_of(solution.occupancy)[heavy])
