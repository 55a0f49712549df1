"""Several experts of declared skill: the program, its bounds, and what is promised if the budgets are right."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import RLfDProblem, TabularMDP, noisy_expert, project_prior, solve_exact, solve_experts
from rlfd_gym.problem import examples


def regret(mdp, occupancy, cost):
    return occupancy @ cost - mdp.optimal(cost).expected_cost


def some_experts(mdp, seed, number):
    return [mdp.occupancy_of(random_policy(mdp, seed + k)) for k in range(number)]


@given(mdps(max_discount=0.95), seeds, st.integers(1, 3))
def test_right_budgets_bring_the_cost_nearer_to_the_truth_by_what_it_moved(mdp, seed, number):
    truth, prior = random_cost(mdp, seed), random_cost(mdp, seed + 1)
    experts = [(mu, max(0.0, regret(mdp, mu, truth))) for mu in some_experts(mdp, seed + 2, number)]
    solution = solve_experts(mdp, experts, prior)
    moved, before, after = (
        np.sum((a - b) ** 2) for a, b in ((solution.cost, prior), (prior, truth), (solution.cost, truth))
    )
    assert after <= before - moved + 1e-5
    slowest = np.sqrt(2 * after)  # the promised regret of a policy that is optimal for the learned cost
    assert regret(mdp, mdp.optimal(solution.cost).occupancy, truth) <= slowest + 1e-7


@given(mdps(max_discount=0.95), seeds, st.lists(st.sampled_from([0.0, 1e-12, 1e-3, 0.05, 0.5]), min_size=1, max_size=3))
def test_every_budget_is_kept_and_the_bounds_are_tight(mdp, seed, budgets):
    experts = list(zip(some_experts(mdp, seed, len(budgets)), budgets, strict=True))
    prior = 1.5 * random_cost(mdp, seed + 9)
    solution = solve_experts(mdp, experts, prior)
    assert solution.duality_gap <= 1e-6 * max(1.0, solution.upper)
    assert np.abs(solution.cost).max() <= 1 + 1e-12
    assert (solution.cost - mdp.flow_transpose(solution.value)).min() >= -1e-9
    for (mu, budget), reported in zip(experts, solution.stats["regrets"], strict=True):
        assert regret(mdp, mu, solution.cost) <= budget + 1e-8
        assert reported == pytest.approx(regret(mdp, mu, solution.cost), abs=1e-8)
    # The apprentice is optimal for the learned cost.
    assert mdp.expected_cost(solution.policy, solution.cost) <= mdp.optimal(solution.cost).expected_cost + 2e-6


@pytest.mark.parametrize("seed", range(4))
def test_the_program_agrees_with_another_solver(seed):
    rng = np.random.default_rng(seed)
    dense = rng.dirichlet(np.ones(2), size=(2, 2))
    mdp = TabularMDP.from_dense(dense, [0.5, 0.5], discount=0.6)
    experts = list(zip(some_experts(mdp, seed, 2), (0.02, 0.1), strict=True))
    prior = rng.uniform(-1.2, 1.2, 4)
    solution = solve_experts(mdp, experts, prior)

    def slack(x):
        return x[:4] - mdp.flow_transpose(x[4:])

    found = minimize(
        lambda x: np.sum((x[:4] - prior) ** 2),
        np.zeros(6),
        jac=lambda x: np.concatenate([2 * (x[:4] - prior), np.zeros(2)]),
        bounds=[(-1, 1)] * 6,
        constraints=[
            {"type": "ineq", "fun": slack},
            {"type": "ineq", "fun": lambda x: np.array([budget - mu @ slack(x) for mu, budget in experts])},
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert solution.upper == pytest.approx(found.fun, abs=1e-6)
    np.testing.assert_allclose(solution.cost, found.x[:4], atol=1e-3)


@pytest.mark.filterwarnings("ignore:the projected cost tells")
@given(mdps(max_discount=0.95), seeds)
def test_one_expert_without_a_budget_is_irl_io(mdp, seed):
    (expert,), prior = some_experts(mdp, seed, 1), random_cost(mdp, seed + 1)
    ours, theirs = solve_experts(mdp, [(expert, 0.0)], prior), project_prior(mdp, expert, prior)
    assert ours.upper == pytest.approx(theirs.upper, abs=1e-6)
    np.testing.assert_allclose(ours.cost, theirs.cost, atol=2e-3)
    assert ours.stats["alpha"] == 0


def test_a_prior_that_fits_all_experts_stays_and_is_planned_with():
    problem = examples.inventory()
    mdp, prior = problem.mdp, problem.prior
    solution = solve_experts(mdp, [(problem.expert, 0.5), (mdp.occupancy_of(mdp.uniform_policy()), 0.5)], prior)
    np.testing.assert_allclose(solution.cost, prior, atol=1e-3)
    assert solution.stats["alpha"] == math.inf
    barely = solve_experts(mdp, [(noisy_expert(mdp, prior, 0.6), 0.2)], prior)  # the multipliers are rounding
    assert mdp.expected_cost(barely.policy, prior) == pytest.approx(mdp.optimal(prior).expected_cost, abs=1e-6)
    assert mdp.expected_cost(solution.policy, prior) == pytest.approx(mdp.optimal(prior).expected_cost, abs=1e-6)


def test_smaller_budgets_and_more_experts_move_the_cost_further():
    problem = examples.inventory()
    mdp = problem.mdp
    newcomer = noisy_expert(mdp, problem.prior, 0.5)

    def distance(*experts):
        return solve_experts(mdp, list(experts), problem.prior).upper

    alone = [distance((problem.expert, budget)) for budget in (0.3, 0.1, 0.03, 0.01, 0.0)]
    assert alone[0] < 1e-6
    assert all(a < b for a, b in itertools.pairwise(alone))
    both = [distance((problem.expert, 0.03), (newcomer, budget)) for budget in (1.0, 0.01)]
    assert both[0] == pytest.approx(alone[2], abs=1e-6)
    assert both[1] > alone[2] + 1e-3


def test_the_multipliers_say_which_problem_of_one_expert_has_the_same_solution():
    problem = examples.inventory()
    mdp = problem.mdp
    experts = [(problem.expert, 0.02), (mdp.occupancy_of(mdp.uniform_policy()), 0.2)]
    solution = solve_experts(mdp, experts, problem.prior)
    weights = np.array(solution.stats["multipliers"])
    assert (weights > 0.1).all()
    mixture = weights @ np.array([mu for mu, _ in experts]) / weights.sum()
    same = solve_exact(RLfDProblem(mdp, mixture, problem.prior, solution.stats["alpha"]))
    np.testing.assert_allclose(solution.cost, same.cost, atol=1e-4)
    np.testing.assert_allclose(solution.occupancy, same.occupancy, atol=1e-4)


@pytest.mark.parametrize(
    ("experts", "error", "message"),
    [
        ([], ValueError, "experts is empty"),
        ([1.0], TypeError, r"experts\[0\] must be a pair \(occupancy, budget\), got float"),
        ([(np.full(136, 1 / 136), -0.1)], ValueError, r"experts\[0\]\[1\], a budget, must be"),
        ([(np.full(135, 1 / 135), 0.1)], ValueError, r"experts\[0\]\[0\] has shape \(135,\)"),
    ],
)
def test_a_mistake_is_named(experts, error, message):
    problem = examples.inventory()
    with pytest.raises(error, match=message):
        solve_experts(problem.mdp, experts, problem.prior)


def test_a_budget_beyond_any_regret_says_as_much_as_no_expert():
    mdp = make_mdp(3, 5, 3, 0.8)
    prior = random_cost(mdp, 4)
    experts = [mdp.occupancy_of(random_policy(mdp, seed)) for seed in (5, 6)]
    alone = solve_experts(mdp, [(experts[0], 0.01)], prior)
    both = solve_experts(mdp, [(experts[0], 0.01), (experts[1], 1e18)], prior)
    assert both.duality_gap < 1e-5
    assert np.abs(both.cost - alone.cost).max() < 1e-4
