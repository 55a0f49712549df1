"""MCE-IRL: soft-optimal policies by another way, features that match, and honest words where they cannot."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from checks import assert_policy_and_occupancy, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

import rlfd_gym
from rlfd_gym.baselines import mce_irl

few = settings(max_examples=15)


def soft_optimal(mdp, cost):
    """The soft-optimal policy of a cost, γ up to 0.6, by value iteration: Q = c + γPV, V = -log Σ exp(-Q)."""
    value = np.zeros(mdp.n_states)
    for _ in range(80):
        q = cost + mdp.discount * (mdp.transitions @ value)
        value = np.array([-logsumexp(-part) for part in np.split(q, mdp.state_starts[1:-1])])
    return np.exp(value[mdp.pair_states] - q)


def random_basis(mdp, seed, size):
    return np.random.default_rng(seed).uniform(-5, 5, (mdp.n_pairs, size))


@few
@given(mdps(max_states=5, max_actions=3, max_discount=0.6), seeds, st.integers(1, 4))
def test_the_features_of_a_soft_expert_are_matched_by_the_soft_optimal_policy_of_the_cost(mdp, seed, size):
    expert = mdp.occupancy_of(soft_optimal(mdp, 3 * random_cost(mdp, seed)))
    basis = random_basis(mdp, seed, size)
    solution = mce_irl(mdp, expert, basis)
    # The regularisation τ = 1e-8 leaves τ times the weight of each feature, scaled to [0, 1].
    off = np.abs(basis.T @ (solution.occupancy - expert))
    assert (off <= 1e-6 + 1.01e-8 * np.abs(solution.mixture) * np.ptp(basis, axis=0) ** 2).all()
    np.testing.assert_allclose(solution.policy, soft_optimal(mdp, solution.cost), atol=1e-9)
    np.testing.assert_allclose(solution.cost, basis @ solution.mixture)
    assert 0 <= solution.duality_gap <= 1e-6
    assert assert_policy_and_occupancy(mdp, solution)


@few
@given(mdps(max_states=4, max_actions=3, max_discount=0.95), seeds)
def test_no_policy_with_the_experts_features_has_more_entropy(mdp, seed):
    # All that the maximum says: moves that keep the features lose entropy, where H(μ) = -<μ, log π_μ>.
    expert = mdp.occupancy_of(mdp.policy_of(np.random.default_rng(seed).dirichlet(np.ones(mdp.n_pairs))))
    basis = random_basis(mdp, seed, 2)
    occupancy = mce_irl(mdp, expert, basis).occupancy
    constraints = np.vstack([mdp.flow_matrix().toarray(), basis.T])
    *_, rows = np.linalg.svd(constraints)
    free = rows[np.linalg.matrix_rank(constraints) :]

    def entropy(mu):
        return -float(mu @ np.log(mu / mdp.sum_by_state(mu)[mdp.pair_states]))

    inside = occupancy > 1e-6
    if inside.all():
        for way in free:
            step = 0.3 * occupancy.min() / max(np.abs(way).max(), 1e-12) * way
            assert entropy(occupancy + step) <= entropy(occupancy) + 1e-9
            assert entropy(occupancy - step) <= entropy(occupancy) + 1e-9


def test_the_policy_of_a_soft_expert_whose_cost_is_in_the_span_is_recovered():
    mdp = make_mdp(4, 5, 3, 0.6)  # some actions are infeasible
    assert mdp.n_pairs < 15
    basis = np.random.default_rng(4).uniform(-1, 1, (mdp.n_pairs, 2))
    policy = soft_optimal(mdp, basis @ [1.0, -2.0])
    solution = mce_irl(mdp, mdp.occupancy_of(policy), basis)
    np.testing.assert_allclose(solution.mixture, [1.0, -2.0], atol=1e-4)
    np.testing.assert_allclose(solution.policy, policy, atol=1e-5)


def test_with_a_feature_for_each_pair_the_expert_is_recovered():
    mdp = make_mdp(1, 5, 3, 0.9)
    policy = mdp.policy_of(np.random.default_rng(0).dirichlet(np.ones(mdp.n_pairs)))
    solution = mce_irl(mdp, mdp.occupancy_of(policy), np.eye(mdp.n_pairs))
    visited = mdp.sum_by_state(solution.occupancy)[mdp.pair_states] > 1e-3
    np.testing.assert_allclose(solution.policy[visited], policy[visited], atol=1e-4)


def test_without_a_basis_it_learns_a_state_cost_and_goes_where_the_expert_goes(gridworld):
    mdp = gridworld.mdp
    expert = rlfd_gym.noisy_expert(mdp, gridworld.cost, 0.3)
    solution = mce_irl(mdp, expert)
    assert solution.stats["converged"]
    assert solution.n_iterations < 50
    np.testing.assert_allclose(mdp.sum_by_state(solution.occupancy), mdp.sum_by_state(expert), atol=1e-6)
    np.testing.assert_array_equal(solution.cost, solution.cost[mdp.state_starts[mdp.pair_states]])
    assert solution.mixture is None


def test_a_deterministic_expert_is_matched_up_to_the_tolerance_by_large_weights(inventory):
    expert = inventory.mdp.optimal(inventory.cost).occupancy
    solution = mce_irl(inventory.mdp, expert, inventory.features)
    assert solution.stats["feature_mismatch"] < 1e-4
    reach = np.abs(solution.mixture * np.ptp(inventory.features, axis=0)).max()
    assert solution.stats["feature_mismatch"] == pytest.approx(1e-8 * reach, rel=1e-2)  # τ|w|


def test_features_that_are_missed_are_said_to_be(inventory):
    expert = inventory.mdp.optimal(inventory.cost).occupancy
    with pytest.warns(RuntimeWarning, match="MCE-IRL misses a feature of the expert: by .* of its range"):
        solution = mce_irl(inventory.mdp, expert, inventory.features, n_iterations=1)
    assert not solution.stats["converged"]
    assert solution.n_iterations == 1
    assert solution.stats["feature_mismatch"] > 1e-3
    with pytest.warns(RuntimeWarning, match="MCE-IRL misses"):
        assert not mce_irl(inventory.mdp, expert, inventory.features, regularisation=1e-2).stats["converged"]


@few
@given(mdps(max_states=5, max_actions=3, max_discount=0.99), seeds)
def test_experts_at_the_edge_of_what_can_be_matched_are_certified_too(mdp, seed):
    # Often deterministic in some states, so that some weights would have to be infinite.
    expert = mdp.occupancy_of(random_policy(mdp, seed))
    with rlfd_gym.collected_warnings():
        solution = mce_irl(mdp, expert, np.eye(mdp.n_pairs))
    assert solution.duality_gap <= 1e-6
    assert solution.stats["feature_mismatch"] < 1e-4


def test_demonstrations_are_matched_although_their_estimate_is_no_occupancy():
    mdp = make_mdp(5, 4, 3, 0.6)
    demonstrations = sampled(mdp, mdp.uniform_policy(), 3, 30, 0)
    estimate = rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp, estimator="count")
    assert np.abs(mdp.flow(estimate) - mdp.initial).max() > 0.01
    shown = rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp)
    for source, policy in ((demonstrations, shown), (estimate, estimate)):
        solution = mce_irl(mdp, source)
        assert solution.stats["converged"]
        target = mdp.occupancy_of(mdp.policy_of(policy))
        np.testing.assert_allclose(mdp.sum_by_state(solution.occupancy), mdp.sum_by_state(target), atol=1e-5)


def test_large_problems_go_without_second_derivatives(monkeypatch):
    mdp = make_mdp(2, 6, 3, 0.8)
    expert = mdp.occupancy_of(mdp.policy_of(np.random.default_rng(0).dirichlet(np.ones(mdp.n_pairs))))
    newton = mce_irl(mdp, expert)
    monkeypatch.setattr(importlib.import_module("rlfd_gym.baselines.mce_irl"), "NEWTON_ENTRIES", 0)
    other = mce_irl(mdp, expert, n_iterations=1000)
    assert other.stats["converged"]
    np.testing.assert_allclose(other.policy, newton.policy, atol=1e-3)


def test_constant_features_say_nothing():
    mdp = make_mdp(2, 4, 3, 0.8)
    solution = mce_irl(mdp, mdp.occupancy_of(mdp.uniform_policy()), np.ones((mdp.n_pairs, 1)))
    assert solution.mixture.tolist() == [0.0]


@pytest.mark.needs_imitation
def test_it_agrees_with_the_finite_horizon_of_imitation_where_that_is_long():
    pytest.importorskip("imitation")
    from imitation.algorithms.mce_irl import mce_partition_fh
    from seals.base_envs import TabularModelPOMDP

    # The library does not discount values: with probability 1-γ its model goes to an end, where nothing costs anything.
    rng, gamma = np.random.default_rng(8), 0.5
    P, initial, state_cost = rng.dirichlet(np.ones(4), (4, 3)), rng.dirichlet(np.ones(4)), rng.uniform(-1, 1, 4)
    mdp = rlfd_gym.TabularMDP.from_dense(P, initial, discount=gamma)
    table = np.zeros((5, 3, 5))
    table[:4, :, :4], table[:4, :, 4], table[4, :, 4] = gamma * P, 1 - gamma, 1.0
    rewards = np.append(-state_cost, np.log(1 / 3))  # the end has no entropy either: three actions earn log 3
    model = TabularModelPOMDP(
        transition_matrix=table, observation_matrix=np.eye(5), reward_matrix=rewards, horizon=50,
        initial_state_dist=np.append(initial, 0.0),
    )  # fmt: skip
    *_, policy = mce_partition_fh(model, reward=rewards, discount=1.0)
    theirs = mdp.policy_of(policy[0, :4])
    np.testing.assert_allclose(soft_optimal(mdp, state_cost[mdp.pair_states]), theirs, atol=1e-9)
    np.testing.assert_allclose(mce_irl(mdp, mdp.occupancy_of(theirs)).policy, theirs, atol=1e-5)
