"""Soft values: against plain iteration, closed forms and finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import TabularMDP
from rlfd_gym.mdp import soft
from rlfd_gym.mdp.soft import curvature, dense_transitions, sensitivity, soft_optimal

betas = st.sampled_from([0.01, 1.0, 10.0, 1e3])


def iterated(mdp, cost, beta, sweeps=4000):
    """Normalised soft values by plain iteration: another way to the same fixed point."""
    v = np.zeros(mdp.n_states)
    for _ in range(sweeps):
        q = cost + mdp.discount * (mdp.transitions @ v)
        v = np.array([-np.logaddexp.reduce(-beta * q[mdp.pair_states == s]) / beta for s in range(mdp.n_states)])
    return (1 - mdp.discount) * v


@pytest.mark.parametrize("beta", [0.1, 1.0, 30.0])
def test_values_are_those_of_plain_iteration(beta):
    mdp = make_mdp(3, 5, 3, 0.8)
    cost = random_cost(mdp, 4)
    plan = soft_optimal(mdp, cost, beta)
    np.testing.assert_allclose(plan.value, iterated(mdp, cost, beta, 300), atol=1e-10)


def test_a_single_state_has_a_closed_form():
    mdp = TabularMDP([[1.0], [1.0]], [0, 0], [0, 1], initial=None, discount=0.5)
    plan = soft_optimal(mdp, [0.0, np.log(3.0)], 1.0)
    np.testing.assert_allclose(plan.policy, [0.75, 0.25], atol=1e-14)
    assert plan.expected_cost == pytest.approx(-np.log(4 / 3), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds, betas)
def test_the_error_is_proven_and_the_policy_is_the_soft_one(mdp, seed, beta):
    cost = random_cost(mdp, seed)
    plan = soft_optimal(mdp, cost, beta)
    assert plan.value_error <= 1e-10 * max(1.0, np.log(mdp.n_actions) / beta)
    v = plan.value / (1 - mdp.discount)
    q = cost + mdp.discount * (mdp.transitions @ v)
    tolerance = 10 * beta * plan.value_error / (1 - mdp.discount) + 1e-12
    np.testing.assert_allclose(plan.log_policy, -beta * (q - v[mdp.pair_states]), atol=tolerance)
    np.testing.assert_allclose(plan.policy, np.exp(plan.log_policy), atol=1e-12)
    np.testing.assert_allclose(mdp.sum_by_state(plan.policy), 1.0, atol=1e-12)
    np.testing.assert_allclose(plan.occupancy, mdp.occupancy_of(plan.policy), atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds, betas)
def test_likelihood_is_a_difference_of_costs_for_every_occupancy(mdp, seed, beta):
    cost, expert = random_cost(mdp, seed), mdp.occupancy_of(random_policy(mdp, seed))
    plan = soft_optimal(mdp, cost, beta)
    likelihood = -expert @ plan.log_policy
    assert likelihood == pytest.approx(beta * (expert @ cost - plan.expected_cost), rel=1e-8, abs=1e-8)
    # No agent is better explained by a soft policy than by its own: cross-entropy is at least entropy.
    policy = mdp.policy_of(expert)
    logs = np.log(policy, where=policy > 0, out=np.zeros_like(policy))
    assert likelihood >= -expert @ logs - 1e-8


@settings(max_examples=60, deadline=None)
@given(mdps(), seeds, betas)
def test_rationality_bounds_the_distance_from_the_optimum(mdp, seed, beta):
    cost = random_cost(mdp, seed)
    plan, best = soft_optimal(mdp, cost, beta), mdp.optimal(cost)
    most = np.diff(mdp.state_starts).max()
    slack = 1e-9
    assert best.expected_cost - np.log(most) / beta - slack <= plan.expected_cost <= best.expected_cost + slack


@pytest.mark.parametrize("beta", [0.5, 5.0])
def test_derivatives_are_those_of_finite_differences(beta):
    mdp, step = make_mdp(7, 4, 3, 0.85), 1e-5
    cost = random_cost(mdp, 8)
    plan = soft_optimal(mdp, cost, beta)
    basis = np.eye(mdp.n_pairs) * step
    near = [(soft_optimal(mdp, cost + e, beta), soft_optimal(mdp, cost - e, beta)) for e in basis]
    gradient = [(up.expected_cost - down.expected_cost) / (2 * step) for up, down in near]
    np.testing.assert_allclose(gradient, plan.occupancy, atol=1e-7)
    g = np.array([(down.log_policy - up.log_policy) / (2 * step * beta) for up, down in near]).T
    r = np.zeros((mdp.n_states, mdp.n_pairs))
    r[mdp.pair_states, np.arange(mdp.n_pairs)] = plan.policy
    np.testing.assert_allclose(np.eye(mdp.n_pairs) + sensitivity(plan) @ r, g, atol=1e-6)
    hessian = np.array([(down.occupancy - up.occupancy) / (2 * step) for up, down in near])
    np.testing.assert_allclose(beta * curvature(plan), hessian, atol=1e-7)
    np.testing.assert_allclose(curvature(plan), g.T @ (plan.occupancy[:, None] * g), atol=1e-6)


def test_shaping_changes_neither_the_policy_nor_its_derivative():
    mdp = make_mdp(11, 5, 3, 0.9)
    cost, shape = random_cost(mdp, 12), mdp.flow_transpose(np.random.default_rng(0).uniform(-1, 1, 5))
    plain, shaped = soft_optimal(mdp, cost, 3.0), soft_optimal(mdp, cost + shape, 3.0)
    np.testing.assert_allclose(plain.policy, shaped.policy, atol=1e-9)
    np.testing.assert_allclose(curvature(plain) @ shape, 0.0, atol=1e-9)


@pytest.mark.parametrize("limits", [(0, 2000), (0, 0)], ids=["sparse factors", "Krylov"])
def test_every_way_to_solve_gives_the_same(monkeypatch, limits):
    mdp = make_mdp(13, 12, 3, 0.95)
    cost = random_cost(mdp, 14)
    dense = soft_optimal(mdp, cost, 4.0)
    monkeypatch.setattr(soft, "DENSE_STATES", limits[0])
    monkeypatch.setattr(soft, "LU_STATES", limits[1])
    assert dense_transitions(mdp) is None
    other = soft_optimal(mdp, cost, 4.0)
    np.testing.assert_allclose(other.value, dense.value, atol=1e-10)
    np.testing.assert_allclose(other.occupancy, dense.occupancy, atol=1e-9)
    np.testing.assert_allclose(curvature(other), curvature(dense), atol=1e-9)


def test_an_agent_is_uniform_without_rationality_and_optimal_with_much_of_it():
    # Uniform, because all states have the same number of actions: otherwise more choice later is worth something.
    mdp = TabularMDP.from_dense(np.random.default_rng(0).dirichlet(np.ones(6), (6, 3)), discount=0.9)
    cost = random_cost(mdp, 18)
    np.testing.assert_allclose(soft_optimal(mdp, cost, 1e-9).policy, mdp.uniform_policy(), atol=1e-6)
    np.testing.assert_allclose(soft_optimal(mdp, cost, 1e7).policy, mdp.optimal(cost).policy, atol=1e-6)


def test_a_near_start_saves_steps_and_does_not_change_the_answer():
    mdp = make_mdp(19, 30, 4, 0.99)
    cost = random_cost(mdp, 20)
    cold = soft_optimal(mdp, cost, 20.0)
    warm = soft_optimal(mdp, cost, 20.0, start=cold.value)
    assert warm.n_iterations < cold.n_iterations
    np.testing.assert_allclose(warm.value, cold.value, atol=1e-10)


def test_a_warning_says_when_rounding_is_in_the_way():
    mdp = make_mdp(21, 5, 3, 1 - 1e-10)
    with pytest.warns(RuntimeWarning, match="only known to within"):
        soft_optimal(mdp, random_cost(mdp, 22), 1.0)


@pytest.mark.parametrize("beta", [0.0, -1.0, np.inf, np.nan])
def test_rationality_is_positive_and_finite(beta):
    mdp = make_mdp(1, 2, 2, 0.5)
    with pytest.raises(ValueError, match="rationality must be"):
        soft_optimal(mdp, np.zeros(mdp.n_pairs), beta)
