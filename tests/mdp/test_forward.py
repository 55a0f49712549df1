from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import TabularMDP
from rlfd_gym.mdp.forward import METHODS

ITERATIVE = ["policy-iteration", "value-iteration"]


@pytest.mark.parametrize("method", METHODS)
def test_staying_or_moving_is_chosen_as_worked_out_by_hand(method):
    # Stay in 0 at cost c, or pay 1 once to reach a state that earns 1 forever: worth (1-γ) 1 + γ (-1) = 0.
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    stay, move = mdp.optimal([-0.1, 1, -1], method=method), mdp.optimal([0.1, 1, -1], method=method)
    assert stay.policy.tolist() == [1, 0, 1]
    assert move.policy.tolist() == [0, 1, 1]
    assert stay.expected_cost == pytest.approx(-0.1, abs=1e-12)
    assert move.expected_cost == pytest.approx(0.0, abs=1e-12)
    assert move.occupancy.tolist() == pytest.approx([0, 0.5, 0.5])


@pytest.mark.parametrize("method", ITERATIVE)
@given(mdp=mdps(), seed=seeds)
def test_the_optimal_value_agrees_with_that_of_the_linear_program(method, mdp, seed):
    cost = random_cost(mdp, seed)
    plan, program = mdp.optimal(cost, method=method), mdp.optimal(cost, method="linear-program")
    assert plan.expected_cost == pytest.approx(program.expected_cost, abs=1e-8)


@pytest.mark.parametrize("method", ITERATIVE)
@given(mdp=mdps(), seed=seeds)
def test_the_optimal_policy_attains_its_value_and_no_policy_beats_it(method, mdp, seed):
    cost = random_cost(mdp, seed)
    plan = mdp.optimal(cost, method=method)
    assert plan.value_error <= 1e-9
    np.testing.assert_allclose(mdp.value_of(plan.policy, cost), plan.value, atol=2e-9)
    assert plan.occupancy @ cost == pytest.approx(plan.expected_cost, abs=2e-9)
    assert (mdp.value_of(random_policy(mdp, seed), cost) >= plan.value - 1e-9).all()


@given(mdp=mdps(), seed=seeds)
def test_both_iterations_return_the_same_policy_and_value(mdp, seed):
    # Few different costs, so that exact ties abound.
    cost = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], mdp.n_pairs)
    first, second = (mdp.optimal(cost, method=method) for method in ITERATIVE)
    np.testing.assert_array_equal(first.policy, second.policy)
    np.testing.assert_allclose(first.value, second.value, atol=2e-9)


@given(mdp=mdps(), seed=seeds)
def test_the_reported_error_bounds_the_true_one(mdp, seed):
    cost = random_cost(mdp, seed)
    exact = mdp.optimal(cost, method="policy-iteration")
    rough = mdp.optimal(cost, method="value-iteration")
    assert np.abs(exact.value - rough.value).max() <= exact.value_error + rough.value_error


@pytest.mark.parametrize("method", ITERATIVE)
def test_ties_go_to_the_lowest_action(method):
    mdp = TabularMDP(np.ones((3, 1)), [0, 0, 0], [0, 1, 2], None, 0.9)
    assert mdp.optimal([0.3, 0.3, 0.3], method=method).policy.tolist() == [1, 0, 0]
    assert mdp.optimal([0.4, 0.3, 0.3], method=method).policy.tolist() == [0, 1, 0]


@pytest.mark.parametrize("method", ITERATIVE)
@pytest.mark.parametrize("size", [1e-6, 150.0, 1e9])
def test_costs_of_any_size_are_solved_relative_to_it(method, size):
    mdp = make_mdp(3, 5, 3, 0.9)
    cost = random_cost(mdp, 4)
    unit, scaled = mdp.optimal(cost, method=method), mdp.optimal(size * cost, method=method)
    np.testing.assert_allclose(scaled.value, size * unit.value, atol=1e-9 * max(1.0, size))
    assert scaled.value_error <= 1e-9 * max(1.0, size)


@pytest.mark.parametrize("method", ITERATIVE)
def test_a_discount_close_to_one_is_solved(method):
    mdp = make_mdp(5, 6, 3, 0.9999)
    cost = random_cost(mdp, 6)
    plan = mdp.optimal(cost, method=method)
    assert plan.value_error <= 1e-9
    assert plan.expected_cost == pytest.approx(mdp.optimal(cost, method="linear-program").expected_cost, abs=1e-7)


def test_a_discount_beyond_double_precision_is_reported():
    mdp = TabularMDP(np.full((2, 2), 0.5), [0, 1], [0, 0], None, 1 - 1e-9)
    with pytest.warns(RuntimeWarning, match="so close to one"):
        assert mdp.optimal([0.1, 0.7]).value_error > 1e-9


def test_an_unknown_method_is_refused():
    mdp = TabularMDP([[1.0]], [0], [0], None, 0.9)
    with pytest.raises(ValueError, match=r"method must be one of auto, policy-iteration, .* got 'simplex'"):
        mdp.optimal([0.0], method="simplex")


def test_a_large_problem_takes_the_same_answer_by_both_ways():
    # Above the size where `auto` changes from policy iteration with factorisations to value iteration.
    rng = np.random.default_rng(0)
    n_states, n_actions = 3000, 3
    rows = np.zeros((n_states * n_actions, n_states))
    for _ in range(4):
        rows[np.arange(len(rows)), rng.integers(n_states, size=len(rows))] += 0.25
    mdp = TabularMDP(
        rows, np.repeat(np.arange(n_states), n_actions), np.tile(np.arange(n_actions), n_states), None, 0.95
    )
    cost = rng.uniform(-1, 1, mdp.n_pairs)
    plan = mdp.optimal(cost)
    np.testing.assert_allclose(mdp.value_of(plan.policy, cost), plan.value, atol=2e-9)
    np.testing.assert_array_equal(plan.policy, mdp.optimal(cost, method="policy-iteration").policy)


@pytest.mark.parametrize("method", METHODS)
def test_states_that_are_never_entered_are_solved_too(method):
    mdp = TabularMDP(np.eye(2)[[0, 0, 1, 1]], [0, 0, 1, 1], [0, 1, 0, 1], initial=[1, 0], discount=0.9)
    plan = mdp.optimal([0.0, 1.0, 0.0, 1.0], method=method)
    assert plan.policy.tolist() == [1, 0, 1, 0]
    assert plan.value.tolist() == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("gap", [1e-7, 1e-9, 1e-11])
def test_discounts_next_to_one_come_to_an_end(gap):
    mdp = make_mdp(8, 5, 3, 1 - gap)
    with pytest.warns(RuntimeWarning, match="so close to one"):
        plan = mdp.optimal(random_cost(mdp, 9), method="value-iteration")
    assert plan.value_error > 1e-9


def test_a_plan_cannot_be_changed():
    plan = make_mdp(8, 5, 3, 0.9).optimal(random_cost(make_mdp(8, 5, 3, 0.9), 9))
    with pytest.raises(ValueError, match="read-only"):
        plan.policy[0] = 7.0
