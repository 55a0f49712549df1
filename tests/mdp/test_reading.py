"""Readings of an occupancy: the mixture, the mode, and a plan where there is no mass."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import make_mdp, mdps, random_policy, seeds

from rlfd_gym import TabularMDP
from rlfd_gym.mdp.forward import optimal_actions
from rlfd_gym.mdp.reading import massless, mode_of, planned_policy


@given(mdps(), seeds)
def test_the_mode_takes_only_most_likely_actions_and_is_its_own_mode(mdp, seed):
    policy = random_policy(mdp, seed)
    mode = mode_of(mdp, policy)
    np.testing.assert_allclose(mdp.sum_by_state(mode), 1)
    assert (policy[mode > 0] >= mdp.max_by_state(policy)[mdp.pair_states[mode > 0]] - 1e-6).all()
    assert (mode[mdp.pair_index(np.arange(mdp.n_states), mdp.likely_actions(policy))] > 0).all()
    np.testing.assert_array_equal(mode_of(mdp, mode), mode)


def test_equally_likely_actions_share():
    mdp = make_mdp(0, n_states=3, n_actions=3, discount=0.5)
    np.testing.assert_array_equal(mode_of(mdp, mdp.uniform_policy()), mdp.uniform_policy())


@given(mdps(max_discount=0.95), seeds)
def test_all_optimal_actions_are_as_good_as_the_plan(mdp, seed):
    cost = np.random.default_rng(seed).uniform(-1, 1, mdp.n_pairs).round(1)
    shared, plan = optimal_actions(mdp, cost), mdp.optimal(cost)
    assert (shared[plan.policy > 0] > 0).all()
    np.testing.assert_allclose(mdp.value_of(shared, cost), plan.value, atol=1e-8)


def test_ties_are_shared_among_optimal_actions():
    mdp = make_mdp(1, n_states=4, n_actions=3, discount=0.5)
    np.testing.assert_array_equal(optimal_actions(mdp, np.ones(mdp.n_pairs)), mdp.uniform_policy())


@given(mdps(max_discount=0.95), seeds)
def test_where_there_is_mass_the_policy_is_the_mixture_and_elsewhere_it_is_planned(mdp, seed):
    rng = np.random.default_rng(seed)
    occupancy, cost = rng.dirichlet(np.ones(mdp.n_pairs)), rng.uniform(-1, 1, mdp.n_pairs)
    empty = (rng.random(mdp.n_states) < 0.5)[mdp.pair_states]
    occupancy[empty] = 0.0
    policy = planned_policy(mdp, occupancy, cost)
    np.testing.assert_array_equal(policy[~empty], mdp.policy_of(occupancy)[~empty])
    np.testing.assert_array_equal(policy[empty], optimal_actions(mdp, cost)[empty])


@given(mdps(max_discount=0.95), seeds)
def test_an_occupancy_that_is_optimal_for_the_cost_gives_a_policy_that_is_optimal_from_everywhere(mdp, seed):
    cost = np.random.default_rng(seed).uniform(-1, 1, mdp.n_pairs)
    plan = mdp.optimal(cost)
    policy = planned_policy(mdp, plan.occupancy, cost)
    np.testing.assert_allclose(mdp.value_of(policy, cost), plan.value, atol=1e-8)


def test_without_empty_states_nothing_is_planned(monkeypatch):
    mdp = make_mdp(2, n_states=4, n_actions=2, discount=0.5)
    monkeypatch.setattr("rlfd_gym.mdp.reading.optimal_actions", lambda *_: pytest.fail("planned for nothing"))
    planned_policy(mdp, np.full(mdp.n_pairs, 1 / mdp.n_pairs), np.zeros(mdp.n_pairs))


def test_the_lightest_states_together_hold_no_more_than_what_is_negligible():
    masses = np.array([0.4, 3e-9, 0.6, 1e-9, 0.0])
    assert massless(masses, 0.0).tolist() == [False, False, False, False, True]
    assert massless(masses, 3.9e-9).tolist() == [False, False, False, True, True]
    assert massless(masses, 4.1e-9).tolist() == [False, True, False, True, True]


def test_a_garbage_mass_below_what_is_negligible_does_not_count():
    mdp = TabularMDP([[0, 1], [1, 0], [0, 1], [1, 0]], [0, 0, 1, 1], [0, 1, 0, 1], initial=[1, 0], discount=0.5)
    occupancy, cost = np.array([0.0, 1.0, 2e-12, 1e-12]), np.array([0.0, 0.0, 1.0, 0.0])
    assert planned_policy(mdp, occupancy, cost)[2:].round(3).tolist() == [0.667, 0.333]
    assert planned_policy(mdp, occupancy, cost, 1e-11)[2:].tolist() == [0.0, 1.0]
