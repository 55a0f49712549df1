"""Cutting planes and the one program, for prices and hulls: against dense programs, planning, LPAL and each other."""

from __future__ import annotations

import numpy as np
import pytest
from reference import believed_optimum
from strategies import believed_problem, make_mdp, make_problem, random_basis, random_cost, random_policy

from rlfd_gym import RLfDProblem, noisy_expert, solve_exact
from rlfd_gym.baselines import lpal
from rlfd_gym.beliefs import Hull, Prices
from rlfd_gym.problem import examples
from rlfd_gym.solvers import exact, prices
from rlfd_gym.solvers.incumbent import to_rounding


def assert_encloses(problem: RLfDProblem, method: str, optimum: float) -> None:
    """The bounds hold, are those of the problem itself, and are as close as promised."""
    solution = solve_exact(problem, method)  # a promise that is not kept is a warning, and so an error
    rounding = 1e-8 * max(1.0, problem.belief.largest)
    assert solution.lower - rounding <= optimum <= solution.upper + rounding
    assert solution.duality_gap <= to_rounding(problem)(solution.upper, solution.lower)
    assert problem.bounds(solution.mixture, solution.value, solution.occupancy) == (solution.upper, solution.lower)


@pytest.mark.parametrize("kind", ["prices", "hull"])
@pytest.mark.parametrize("block", range(5))
def test_the_bounds_enclose_the_optimum_of_a_dense_linear_program(kind, block):
    for seed in range(100 * block, 100 * block + 10):
        problem = believed_problem(kind, seed)
        optimum = believed_optimum(problem)
        for method in ("auto", "qp", *["cutting-planes"] * prices.has_start(problem)):
            assert_encloses(problem, method, optimum)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_with_a_penalty_they_enclose_the_optimum_of_a_dense_quadratic_program(alpha):
    for seed in range(10):
        problem = make_problem(seed)
        rng = np.random.default_rng(seed)
        expert = problem.expert if seed % 2 else rng.dirichlet(np.full(problem.n_pairs, 0.3))
        columns, low = random_basis(problem.n_pairs, 4, seed), rng.uniform(-1, 0.5, 4)
        guess = rng.uniform(-2, 2, 4)
        beliefs = Prices(columns, low, low + 0.5, prior=guess, alpha=alpha), Hull(columns, problem.prior, alpha)
        for belief in beliefs:
            believed = RLfDProblem(problem.mdp, expert, belief=belief)
            for method in ("auto", "qp"):
                assert_encloses(believed, method, believed_optimum(believed))


@pytest.mark.parametrize("seed", range(5))
def test_lpal_and_the_hull_have_the_same_margin(seed):
    mdp = make_mdp(seed, 6, 3, 0.9)
    expert, basis = mdp.occupancy_of(random_policy(mdp, seed)), random_basis(mdp.n_pairs, 4, seed)
    solution, theirs = solve_exact(RLfDProblem(mdp, expert, belief=Hull(basis))), lpal(mdp, expert, basis)
    assert (solution.upper, solution.lower) == pytest.approx((-theirs.lower, -theirs.upper), abs=2e-6)


@pytest.mark.parametrize("seed", range(5))
def test_with_equal_ends_it_is_planning(seed):
    mdp = make_mdp(seed, 6, 3, 0.9)
    expert, basis = mdp.occupancy_of(random_policy(mdp, seed)), random_basis(mdp.n_pairs, 3, seed)
    weights = np.array([0.5, -0.3, 0.2])
    solution = solve_exact(RLfDProblem(mdp, expert, belief=Prices(basis, weights, weights)))
    plan = mdp.optimal(basis @ weights)
    assert solution.upper == pytest.approx(expert @ basis @ weights - plan.expected_cost, abs=1e-12)
    np.testing.assert_allclose(solution.occupancy, plan.occupancy, atol=1e-12)
    np.testing.assert_array_equal(solution.mixture, weights)


def test_if_the_ranges_contain_prices_for_which_the_expert_is_optimal_it_is_imitated():
    env = examples.inventory_env()
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    solution = solve_exact(RLfDProblem(env.mdp, expert, belief=env.price_ranges(order=(2, 6), holding=8, sell=15)))
    assert solution.upper == pytest.approx(0.0, abs=1e-6)
    assert not solution.guarantee
    assert "the expert is optimal" in str(solution.guarantee)


@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_a_penalty_on_prices_leads_from_the_worst_case_to_the_prior(alpha):
    env = examples.inventory_env()
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    ranges = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    penalised = Prices(env.features, ranges.low, ranges.high, prior=[4, 2, 14], alpha=alpha, scale=env.scale)
    solution = solve_exact(RLfDProblem(env.mdp, expert, belief=penalised))
    worst = solve_exact(RLfDProblem(env.mdp, expert, belief=ranges))
    assert solution.guarantee.improvement >= worst.lower - 1e-9  # fewer costs are covered
    assert np.abs(solution.mixture - [4, 2, 14]).max() == pytest.approx(1.0 if alpha < 1e-3 else 0.0, abs=0.2)


def test_the_next_prices_are_the_minimiser_once_it_stays():
    env = examples.gridworld_env(30)
    belief = env.price_ranges(obstacle=(0.2, 1), goal=(-1, -0.3), step=(0, 0.1))
    solution = solve_exact(RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), belief=belief))
    assert solution.n_iterations <= 4  # half-way steps alone need ten
    np.testing.assert_allclose(solution.mixture, [0.2, -0.3, 0.0], atol=1e-9)


def test_where_there_is_no_start_and_no_room_for_the_program_the_bounds_hold_with_a_warning(monkeypatch):
    mdp = make_mdp(3, 6, 3, 0.9)
    expert = np.random.default_rng(3).dirichlet(np.full(mdp.n_pairs, 0.3))
    problem = RLfDProblem(mdp, expert, belief=Prices(random_basis(mdp.n_pairs, 3), [0.2] * 3, [0.5] * 3))
    assert not prices.has_start(problem)
    monkeypatch.setattr(exact, "QP_PAIRS", 1)
    with pytest.warns(RuntimeWarning, match=r"cutting planes: the duality gap is .* as promised"):
        solution = solve_exact(problem)
    assert solution.lower <= believed_optimum(problem) <= solution.upper


@pytest.mark.slow
def test_a_million_pairs_and_three_prices_are_certified_to_a_percent():
    env = examples.gridworld_env(500)
    belief = env.price_ranges(obstacle=(0.2, 1), goal=(-1, -0.3), step=(0, 0.1))
    solution = solve_exact(RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), belief=belief))
    assert env.mdp.n_pairs == 1_000_000
    assert 0 <= solution.duality_gap <= 0.01 * solution.lower
    assert solution.n_iterations <= 10


def test_a_random_cost_in_the_hull_keeps_the_margin():
    mdp = make_mdp(4, 6, 3, 0.9)
    expert, basis = mdp.occupancy_of(random_policy(mdp, 4)), random_basis(mdp.n_pairs, 4, 4)
    basis[:, 0] = random_cost(mdp, 1)
    solution = solve_exact(RLfDProblem(mdp, expert, belief=Hull(basis)))
    mixtures = np.random.default_rng(0).dirichlet(np.ones(4), size=200)
    assert (mixtures @ basis.T @ (expert - solution.occupancy)).min() >= solution.lower - 1e-9
