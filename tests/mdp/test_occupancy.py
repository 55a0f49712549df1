from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import mdps, random_cost, random_policy, seeds
from structures import KINDS, world

import rlfd_gym.mdp.occupancy
from rlfd_gym import TabularMDP


def by_power_series(mdp, policy, n_steps=4000):
    """(1-γ) Σ γᵗ P(s_t, a_t), summed term by term with dense matrices."""
    P = mdp.transitions.toarray()
    state, total = mdp.initial, np.zeros(mdp.n_pairs)
    for t in range(n_steps):
        pairs = state[mdp.pair_states] * policy
        total += (1 - mdp.discount) * mdp.discount**t * pairs
        state = pairs @ P
    return total


def test_occupancy_and_value_of_a_chain_are_as_worked_out_by_hand():
    # From state 0 move to the absorbing state 1: half the discounted mass is spent in the first step.
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    np.testing.assert_allclose(mdp.occupancy_of([0, 1, 1]), [0, 0.5, 0.5], atol=1e-15)
    np.testing.assert_allclose(mdp.value_of([0, 1, 1], [9, 1, -1]), [0, -1], atol=1e-15)
    np.testing.assert_allclose(mdp.occupancy_of([0.5, 0.5, 1]), [1 / 3, 1 / 3, 1 / 3], atol=1e-15)


@given(mdps(), seeds)
def test_an_occupancy_conserves_flow_and_sums_to_one(mdp, seed):
    mu = mdp.occupancy_of(random_policy(mdp, seed))
    np.testing.assert_allclose(mdp.flow(mu), mdp.initial, atol=1e-11)
    assert mu.sum() == pytest.approx(1.0, abs=1e-12)
    assert mu.min() >= 0


@pytest.mark.parametrize("seed", range(5))
def test_next_to_a_discount_of_one_an_occupancy_is_the_stationary_one_and_sums_to_one(seed):
    rng = np.random.default_rng(seed)
    chain = rng.dirichlet(np.full(10, 0.1), size=10)
    mdp = TabularMDP(chain, np.arange(10), np.zeros(10, dtype=int), None, 1 - 2e-12)
    mu = mdp.occupancy_of(mdp.uniform_policy())
    assert mu.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(mu, np.linalg.matrix_power(chain, 10**6)[0], atol=1e-9)


def test_a_residual_of_rounding_is_not_swept_for_ever(monkeypatch):
    discount, slow = 1 - 2.973304935594001e-10, []
    chain = np.array(
        [
            [6.7720820227235596e-22, 9.9999999975263087e-01, 2.4736912518363852e-10, 0.0],
            [5.1400411514849161e-42, 2.2427026172361372e-20, 1.0, 0.0],
            [6.7374158057696099e-18, 9.9999999999953593e-01, 4.6407322429331543e-13, 0.0],
            [5.5888854124068852e-34, 2.1830873895011485e-16, 2.0412722484262678e-45, 9.9999999999999978e-01],
        ]
    )
    rhs = np.array([-2.9640696132856427e-10, -6.7107972465774631e-11, 2.9733049355940011e-10, -2.9733049355940011e-10])
    sweep = rlfd_gym.mdp.occupancy._sweep

    def few(*arguments):
        slow.append(arguments)
        assert len(slow) < 10
        return sweep(*arguments)

    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_sweep", few)
    x = rlfd_gym.mdp.occupancy.solve_discounted(sp.csr_array(chain), rhs, discount, norm=np.inf)
    np.testing.assert_allclose(x, rhs + discount * chain @ x, rtol=0, atol=4e-16)


@given(mdps(max_discount=0.97), seeds)
def test_an_occupancy_is_the_discounted_sum_of_visits(mdp, seed):
    policy = random_policy(mdp, seed)
    np.testing.assert_allclose(mdp.occupancy_of(policy), by_power_series(mdp, policy), atol=1e-12)


@given(mdps(), seeds)
def test_policy_of_inverts_occupancy_of(mdp, seed):
    mu = mdp.occupancy_of(random_policy(mdp, seed))
    policy = mdp.policy_of(mu)
    np.testing.assert_allclose(mdp.sum_by_state(policy), 1.0, atol=1e-12)
    np.testing.assert_allclose(mdp.occupancy_of(policy), mu, atol=1e-12)


@given(mdps(), seeds)
def test_a_policy_survives_the_way_to_occupancy_and_back_where_it_goes(mdp, seed):
    policy = random_policy(mdp, seed)
    mu = mdp.occupancy_of(policy)
    visited = (mdp.sum_by_state(mu) > 1e-6)[mdp.pair_states]
    np.testing.assert_allclose(mdp.policy_of(mu)[visited], policy[visited], atol=1e-8)


def test_states_without_mass_get_the_uniform_policy():
    mdp = TabularMDP(np.eye(2)[[0, 0, 1, 1]], [0, 0, 1, 1], [0, 1, 0, 1], initial=None, discount=0.5)
    assert mdp.policy_of([0.25, 0.75, 0, 0]).tolist() == [0.25, 0.75, 0.5, 0.5]
    assert mdp.policy_of(np.zeros(4)).tolist() == [0.5] * 4


@given(mdps(), seeds)
def test_expected_cost_is_the_inner_product_of_occupancy_and_cost(mdp, seed):
    policy, cost = random_policy(mdp, seed), random_cost(mdp, seed + 1)
    expected = mdp.expected_cost(policy, cost)
    assert expected == pytest.approx(mdp.occupancy_of(policy) @ cost, abs=1e-12)
    assert expected == pytest.approx(mdp.initial @ mdp.value_of(policy, cost), abs=1e-12)


@given(mdps(), seeds)
def test_a_value_satisfies_the_bellman_equation_of_its_policy(mdp, seed):
    policy, cost = random_policy(mdp, seed), random_cost(mdp, seed + 1)
    value = mdp.value_of(policy, cost)
    q = (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ value)
    np.testing.assert_allclose(mdp.sum_by_state(policy * q), value, atol=1e-13)
    assert np.abs(value).max() <= np.abs(cost).max() + 1e-12


@given(mdps(), seeds)
def test_the_krylov_solver_agrees_with_the_factorisation(mdp, seed):
    policy, cost = random_policy(mdp, seed), random_cost(mdp, seed + 1)
    mu, value = mdp.occupancy_of(policy), mdp.value_of(policy, cost)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("DENSE_STATES", 0), ("LU_STATES", 0), ("NARROW", -1)):
            patch.setattr(rlfd_gym.mdp.occupancy, name, limit)
        np.testing.assert_allclose(mdp.occupancy_of(policy), mu, atol=2e-12)
        np.testing.assert_allclose(mdp.value_of(policy, cost), value, atol=2e-12)


@given(mdps(), seeds)
def test_factorisations_within_a_band_agree_with_others(mdp, seed):
    policy, cost = random_policy(mdp, seed), random_cost(mdp, seed + 1)
    mu, value = mdp.occupancy_of(policy), mdp.value_of(policy, cost)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("DENSE_STATES", 0), ("LU_STATES", 0), ("NARROW", 10)):
            patch.setattr(rlfd_gym.mdp.occupancy, name, limit)
        patch.setattr(rlfd_gym.mdp.occupancy, "_krylov", None)
        np.testing.assert_allclose(mdp.occupancy_of(policy), mu, atol=2e-12)
        np.testing.assert_allclose(mdp.value_of(policy, cost), value, atol=2e-12)


@given(mdps(), seeds)
def test_a_useless_solver_leaves_the_work_to_the_fixed_point_iteration(mdp, seed):
    policy, cost = random_policy(mdp, seed), random_cost(mdp, seed + 1)
    mu, value = mdp.occupancy_of(policy), mdp.value_of(policy, cost)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("DENSE_STATES", 0), ("LU_STATES", 0), ("NARROW", -1), ("BANDED_WORK", -1)):
            patch.setattr(rlfd_gym.mdp.occupancy, name, limit)
        patch.setattr(rlfd_gym.mdp.occupancy, "_krylov", lambda matrix, discount, rhs, rtol: rhs * np.nan)
        np.testing.assert_allclose(mdp.occupancy_of(policy), mu, atol=2e-12)
        np.testing.assert_allclose(mdp.value_of(policy, cost), value, atol=2e-12)


def test_a_zero_cost_is_worth_nothing():
    mdp = TabularMDP([[1.0]], [0], [0], None, 0.9)
    assert mdp.value_of([1.0], [0.0]).tolist() == [0.0]


def shuffled_cycle(n, chances, discount):
    """A cycle through the states in a random order, on which one move leads 1, 2, ... states ahead."""
    order = np.random.default_rng(0).permutation(n)
    rows = np.repeat(order, len(chances))
    to = np.stack([np.roll(order, -1 - k) for k in range(len(chances))], axis=1).ravel()
    matrix = sp.csr_array((np.tile(chances, n), (rows, to)), shape=(n, n))
    return TabularMDP(matrix, np.arange(n), np.zeros(n, dtype=int), None, discount)


def never(*arguments):
    raise AssertionError("sweeps would take long")


@pytest.mark.parametrize("discount", [0.99, 0.9999])
@pytest.mark.parametrize("chances", [[1.0], [0.9, 0.1], [0.0, 0.9, 0.1]])
def test_long_cycles_are_factorised(monkeypatch, chances, discount):
    # A permutation of 5000 states defeats Krylov methods, and sweeps would take 1/(1-γ) steps.
    n, rng = 5000, np.random.default_rng(1)
    mdp, cost = shuffled_cycle(n, chances, discount), rng.uniform(-1, 1, n)
    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_sweep", never)
    value = mdp.value_of(np.ones(n), cost)
    residual = (1 - discount) * cost + discount * (mdp.transitions @ value) - value
    assert np.abs(residual).max() <= 1e-12 * (1 - discount)
    np.testing.assert_allclose(mdp.flow(mdp.occupancy_of(np.ones(n))), mdp.initial, atol=1e-12)


def test_paths_into_cycles_are_factorised(monkeypatch):
    n, rng = 5000, np.random.default_rng(2)
    matrix = sp.csr_array((np.ones(n), rng.integers(n, size=n), np.arange(n + 1)), shape=(n, n))
    mdp, cost = TabularMDP(matrix, np.arange(n), np.zeros(n, dtype=int), None, 0.9999), rng.uniform(-1, 1, n)
    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_sweep", never)
    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_krylov", never)
    value = mdp.value_of(np.ones(n), cost)
    np.testing.assert_allclose(value, 1e-4 * cost + 0.9999 * (matrix @ value), atol=1e-15)


def test_cycles_that_cannot_be_factorised_are_swept(monkeypatch):
    for name, limit in (("NARROW", -1), ("BANDED_WORK", -1)):
        monkeypatch.setattr(rlfd_gym.mdp.occupancy, name, limit)
    mdp = shuffled_cycle(2500, [0.9, 0.1], 0.9)
    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_krylov", lambda matrix, discount, rhs, rtol: rhs * np.nan)
    cost = np.random.default_rng(3).uniform(-1, 1, 2500)
    value = mdp.value_of(np.ones(2500), cost)
    np.testing.assert_allclose(value, 0.1 * cost + 0.9 * (mdp.transitions @ value), atol=1e-13)


def test_probabilities_in_single_precision_are_normalised():
    thirds = np.array([1 / 3, 2 / 3], dtype=np.float32)
    mdp = TabularMDP(np.stack([thirds, thirds, thirds]), [0, 0, 1], [0, 1, 0], thirds, 0.9999)
    assert mdp.transitions.sum(axis=1).tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-15)
    assert mdp.occupancy_of(np.array([1 / 3, 2 / 3, 1], dtype=np.float32)).sum() == pytest.approx(1.0, abs=1e-12)
    assert mdp.optimal([1.0, 1.0, 1.0]).value.tolist() == pytest.approx([1.0, 1.0], abs=1e-12)


def test_huge_weights_give_a_policy():
    mdp = TabularMDP(np.ones((2, 1)), [0, 0], [0, 1], None, 0.5)
    assert mdp.policy_of([1e308, 1e308]).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("kind", KINDS)
def test_what_rounding_leaves_after_a_factorisation_is_not_swept(kind, monkeypatch):
    mdp, cost, _ = world(kind, 1_000, 0.9999)
    exact = mdp.optimal(cost)
    monkeypatch.setattr(rlfd_gym.mdp.occupancy, "_sweep", None)
    again = mdp.optimal(cost)
    assert again.value_error <= 1e-9
    np.testing.assert_allclose(again.value, exact.value, atol=2e-9)
    assert mdp.occupancy_of(again.policy) @ cost == pytest.approx(again.expected_cost, abs=1e-9)
