from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rlfd_gym
from rlfd_gym import RLfDProblem, TabularMDP, demonstrate, occupancy_from_demonstrations, solve_exact
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp import over_time

horizons = st.integers(1, 12)
discounts = st.sampled_from([1.0, 0.999, 0.9, 0.3])
few = settings(max_examples=40, deadline=None)


def backward_induction(mdp, costs, discount):
    """J_t(s), plainly: one step after the other."""
    value = np.zeros(mdp.n_states)
    rows = []
    for cost in costs[::-1]:
        ahead = cost + discount * (mdp.transitions @ value)
        value = np.array([ahead[mdp.pair_states == s].min() for s in range(mdp.n_states)])
        rows.append(value)
    return np.array(rows[::-1])


def forward_steps(mdp, policies):
    """The distribution over pairs at each time, plainly."""
    states, rows = mdp.initial, []
    for policy in policies:
        rows.append(states[mdp.pair_states] * policy)
        states = mdp.transitions.T @ rows[-1]
    return np.array(rows)


def average(occupancies, costs, discount):
    weights = discount ** np.arange(len(costs))
    return float((weights @ (occupancies * costs).sum(axis=1)) / weights.sum())


@given(strategies.mdps(), horizons, discounts, strategies.seeds)
@few
def test_optimal_values_are_those_of_backward_induction(mdp, horizon, discount, seed):
    costs = np.random.default_rng(seed).uniform(-1, 1, (horizon, mdp.n_pairs))
    over = over_time(mdp, horizon, discount)
    plan = over.mdp.optimal(over.weighted(costs))
    expected = backward_induction(mdp, costs, discount)
    np.testing.assert_allclose(over.value(plan.value), expected, atol=1e-7)
    steps = discount ** np.arange(horizon)
    assert over.average(plan.expected_cost) == pytest.approx(mdp.initial @ expected[0] / steps.sum(), abs=1e-7)


@given(strategies.mdps(), horizons, discounts, strategies.seeds)
@few
def test_occupancies_and_expected_costs_are_those_of_plain_steps(mdp, horizon, discount, seed):
    over = over_time(mdp, horizon, discount)
    policy = strategies.random_policy(over.mdp, seed)
    costs = np.random.default_rng(seed).uniform(-1, 1, (horizon, mdp.n_pairs))
    steps = forward_steps(mdp, over.policy(policy))
    occupancy = over.mdp.occupancy_of(policy)
    np.testing.assert_allclose(over.occupancy(occupancy), steps, atol=1e-10)
    np.testing.assert_allclose(over.occupancy(occupancy).sum(axis=1), 1.0, atol=1e-10)
    weighted = over.weighted(costs)
    assert np.abs(weighted).max() <= 1
    assert over.average(float(occupancy @ weighted)) == pytest.approx(average(steps, costs, discount), abs=1e-9)
    np.testing.assert_allclose(over.cost(weighted), costs, atol=1e-12)


@given(strategies.mdps(), horizons, discounts)
@few
def test_weights_are_between_one_over_e_and_one_and_half_of_the_mass_is_before_the_end(mdp, horizon, discount):
    over = over_time(mdp, horizon, discount)
    assert np.exp(-1) < over.weights.min() <= over.weights.max() == 1
    assert over.mdp.occupancy_of(over.mdp.uniform_policy())[-1] <= 0.5 + 1e-12
    if discount <= horizon / (horizon + 1):
        assert over.mdp.discount == discount
        assert (over.weights == 1).all()


def test_a_long_undiscounted_horizon_keeps_its_accuracy():
    mdp = strategies.make_mdp(0, 4, 3, 0.9)
    over = over_time(mdp, 400)
    cost = strategies.random_cost(mdp, 1)
    policy = strategies.random_policy(mdp, 2)
    steps = forward_steps(mdp, [policy] * 400)
    found = over.average(over.mdp.expected_cost(over.repeated(policy), over.weighted(cost)))
    assert found == pytest.approx(average(steps, np.tile(cost, (400, 1)), 1.0), abs=1e-9)


def test_a_time_dependent_expert_is_learned_from_over_an_undiscounted_horizon():
    # Moving costs 1 once and then earns 1 a step: the expert moves while it pays, and the prior knows the cost.
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    over = over_time(mdp, 5)
    truth = over.weighted([0.0, 1.0, -1.0])
    late = np.tile([1.0, 0.0, 1.0], (5, 1))
    late[1] = [0.0, 1.0, 1.0]  # it moves at time 1 only
    expert = over.mdp.occupancy_of(np.append(late.ravel(), 1.0))
    solution = solve_exact(RLfDProblem(over.mdp, expert, belief=NearPrior(truth, 10.0)))
    assert over.policy(solution.policy)[0].tolist() == pytest.approx([0, 1, 1], abs=1e-6)
    learned = over.average(over.mdp.expected_cost(solution.policy, truth))
    assert learned == pytest.approx((1 - 4) / 5, abs=1e-6)
    assert over.average(float(expert @ truth)) == pytest.approx((0 + 1 - 3) / 5, abs=1e-12)


def test_features_are_weighted_column_by_column():
    mdp = strategies.make_mdp(0, 4, 3, 0.9)
    over, features = over_time(mdp, 7), np.random.default_rng(0).uniform(-1, 1, (mdp.n_pairs, 3))
    together = over.weighted(features)
    assert together.shape == (over.mdp.n_pairs, 3)
    for k in range(3):
        np.testing.assert_array_equal(together[:, k], over.weighted(features[:, k]))


def test_trajectories_over_time_give_the_experts_occupancy():
    mdp = strategies.make_mdp(3, 4, 3, 0.9)
    policy = strategies.random_policy(mdp, 0)
    over = over_time(mdp, 6)
    walks = over.trajectories(demonstrate(mdp, policy, 4000, 6, seed=0))
    assert all(walk.obs[-1] == over.mdp.n_states - 1 for walk in walks)  # all of them come to the end
    estimate = occupancy_from_demonstrations(walks, over.mdp, estimator="count")
    exact = over.mdp.occupancy_of(over.repeated(policy))
    assert np.abs(estimate - exact).sum() < 0.05
    shown = np.zeros((6, mdp.n_pairs))
    for walk in walks:
        shown[np.arange(6), mdp.pair_index(walk.obs[:-1] % mdp.n_states, walk.acts)] += 1 / len(walks)
    np.testing.assert_allclose(over.occupancy(estimate), shown, atol=1e-12)


def test_short_trajectories_stop_before_the_end_and_long_ones_are_refused():
    over = over_time(strategies.make_mdp(0, 3, 2, 0.9), 4)
    assert over.states([2, 0, 1]).tolist() == [2, 3, 7]
    with pytest.raises(ValueError, match=r"observations has shape \(6,\), expected between 2 and 5 states"):
        over.states([0, 1, 2, 0, 1, 2])
    with pytest.raises(ValueError, match=r"observations must be in 0\.\.2"):
        over.states([0, 3])


def test_costs_of_another_shape_are_refused():
    over = over_time(strategies.make_mdp(0, 3, 2, 0.9), 4)
    n = over.base.n_pairs
    with pytest.raises(ValueError, match=rf"cost has shape \(3, {n}\), expected \({n},\), \({n}, K\) or \(4, {n}\)"):
        over.weighted(np.zeros((3, n)))


def test_no_discount_needs_a_horizon_and_the_error_says_how():
    mdp = strategies.make_mdp(0, 3, 2, 0.9)
    with pytest.raises(ValueError, match=r"discount must be below 1, got 1, .*over_time\(mdp, horizon\)"):
        TabularMDP(mdp.transitions, mdp.pair_states, mdp.pair_actions, None, 1.0)
    with pytest.raises(ValueError, match="discount must be positive, got 0"):
        over_time(mdp, 3, 0.0)


@pytest.mark.needs_imitation
def test_a_trainer_without_a_discount_names_the_way():
    env = rlfd_gym.envs.WindyGridworldEnv(3, 3)
    with pytest.raises(ValueError, match=r"discount must be below 1, got 1, .*over_time\(mdp, horizon\)"):
        rlfd_gym.RLfDTrainer(None, env, discount=1.0)
