"""The prior projected on the costs that explain the expert."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import mdps, random_cost, random_policy, seeds

from rlfd_gym import noisy_expert, project_prior, solve_exact
from rlfd_gym.problem import examples
from rlfd_gym.solvers import projection_newton


def test_the_projection_is_the_limit_of_small_alphas_on_the_inventory():
    problem = examples.inventory(0.02)
    projection = project_prior(problem.mdp, problem.expert, problem.prior)
    solution = solve_exact(problem)
    np.testing.assert_allclose(projection.cost, solution.cost, atol=1e-3)
    assert solution.upper / problem.alpha == pytest.approx(projection.upper, abs=1e-4)
    assert problem.alpha * np.sum((projection.cost - problem.prior) ** 2) >= solution.lower - 1e-9
    # A larger alpha is another problem: there the penalty is not exact.
    assert solve_exact(examples.inventory(1.0)).upper < 0.9 * projection.upper


@pytest.mark.filterwarnings("ignore:the projected cost tells")
@given(mdps(max_discount=0.95), seeds, st.booleans())
def test_the_projection_always_exists_explains_the_expert_and_is_certified(mdp, seed, few_samples):
    expert, prior = mdp.occupancy_of(random_policy(mdp, seed)), 1.5 * random_cost(mdp, seed + 1)
    if few_samples:
        expert = np.random.default_rng(seed).multinomial(10, expert / expert.sum()) / 10
    solution = project_prior(mdp, expert, prior)
    assert solution.duality_gap <= 1e-6 * max(1.0, solution.upper)
    assert np.abs(solution.cost).max() <= 1
    assert np.abs(solution.value).max() <= 1
    slack = solution.cost - mdp.flow_transpose(solution.value)
    assert slack.min() >= -1e-9
    assert expert @ slack <= 1e-9
    assert solution.upper <= np.sum((prior - np.clip(prior.mean(), -1, 1)) ** 2) + 1e-6  # not worse than a constant
    if not few_samples:
        regret = (
            mdp.initial @ mdp.value_of(mdp.policy_of(expert), solution.cost) - mdp.optimal(solution.cost).expected_cost
        )
        assert regret <= 1e-8


def test_an_expert_who_is_optimal_for_the_prior_leaves_it_as_it_is(inventory):
    solution = project_prior(inventory.mdp, inventory.mdp.optimal(inventory.cost).occupancy, inventory.cost)
    np.testing.assert_allclose(solution.cost, inventory.cost, atol=1e-4)
    assert solution.stats["surviving_variation"] == pytest.approx(1.0, abs=1e-4)
    assert solution.stats["surviving_spread"] == pytest.approx(1.0, abs=1e-4)


def test_the_surviving_variation_obeys_pythagoras():
    problem = examples.inventory(0.0)
    prior = 0.3 * problem.prior  # far from the box
    solution = project_prior(problem.mdp, problem.expert, prior)
    share = solution.stats["surviving_variation"]
    assert 0.5 < share < 0.999
    assert share == pytest.approx(1 - solution.upper / np.sum((prior - prior.mean()) ** 2), abs=1e-5)
    bigger = project_prior(problem.mdp, problem.expert, 2 * prior + 0.1)
    assert bigger.stats["surviving_variation"] == pytest.approx(share, abs=1e-5)


def test_a_projection_that_tells_no_policies_apart_is_a_warning(gridworld):
    mdp = gridworld.mdp
    aimless = mdp.occupancy_of(mdp.uniform_policy())
    with pytest.warns(RuntimeWarning, match="tells almost no policies apart") as caught:
        solution = project_prior(mdp, aimless, gridworld.cost)
    assert caught[0].filename == __file__
    assert solution.stats["surviving_spread"] < 1e-6
    # It varies all the same: that is why variation alone does not say what was learned.
    assert solution.stats["surviving_variation"] > 0.1


def test_a_constant_prior_has_no_variation_to_lose(gridworld):
    with pytest.warns(RuntimeWarning, match="tells almost no policies apart"):
        solution = project_prior(gridworld.mdp, noisy_expert(gridworld.mdp, gridworld.cost, 0.3), np.full(400, 0.25))
    assert np.isnan(solution.stats["surviving_variation"])
    np.testing.assert_allclose(solution.cost, 0.25, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 200.0])
def test_the_projection_does_not_depend_on_the_scale_of_the_prior(factor):
    env = examples.gridworld_env(6)
    expert = env.mdp.optimal(env.cost).occupancy
    solution = project_prior(env.mdp, expert, factor * env.cost)  # the expert is optimal for it: no warning
    # The promised gap is 1e-6 in the squared distance, at the scale of the prior: 1e-3 in the cost.
    np.testing.assert_allclose(solution.cost, np.clip(factor * env.cost, -1, 1), atol=1e-3 * min(1.0, factor))
    assert solution.stats["surviving_variation"] == pytest.approx(1.0, abs=1e-4)
    assert solution.stats["surviving_spread"] == pytest.approx(1.0, abs=1e-4)


@given(mdps(max_states=4, max_actions=3, max_discount=0.9), seeds)
@settings(max_examples=20)
def test_the_projections_bounds_hold_the_value_of_another_solver(mdp, seed):
    from scipy.optimize import LinearConstraint

    expert = mdp.occupancy_of(random_policy(mdp, seed))
    prior = random_cost(mdp, seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a random expert may leave nothing of the prior
        solution = project_prior(mdp, expert, prior)
    n, taken = mdp.n_pairs, expert > 1e-12
    slack = np.hstack([np.eye(n), -mdp.flow_matrix().toarray().T])
    result = minimize(
        lambda x: np.sum((x[:n] - prior) ** 2),
        np.zeros(n + mdp.n_states),
        jac=lambda x: np.concatenate([2 * (x[:n] - prior), np.zeros(mdp.n_states)]),
        bounds=[(-1, 1)] * (n + mdp.n_states),
        constraints=[
            LinearConstraint(slack[rows], 0.0, high) for rows, high in ((taken, 0.0), (~taken, np.inf)) if rows.any()
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solution.lower - 1e-6 <= result.fun <= solution.upper + 1e-4
    assert solution.upper - solution.lower <= 1e-6 * max(1.0, solution.upper)
    assert solution.lower <= solution.upper
    rng = np.random.default_rng(seed)
    for size in (0.01, 0.1, 1.0):  # the bound holds for every such ν, not only for the solver's
        nu = size * np.where(taken, rng.normal(size=n), rng.random(n))
        assert projection_newton.projection_bound(mdp, prior, nu) <= solution.upper + 1e-9


def test_bad_arguments_of_project_prior_are_refused_by_name(inventory):
    problem = examples.inventory()
    with pytest.raises(ValueError, match=r"prior has shape \(3,\), expected \(136,\)"):
        project_prior(problem.mdp, problem.expert, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="expert must sum to 1"):
        project_prior(problem.mdp, 2 * problem.expert, problem.prior)
    with pytest.raises(TypeError, match="prior must be an array"):
        project_prior(problem.mdp, problem.expert, "cheap")
    with pytest.raises(TypeError, match="mdp must be a TabularMDP, got InventoryEnv"):
        project_prior(inventory, problem.expert, problem.prior)
