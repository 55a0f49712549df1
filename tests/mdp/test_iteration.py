"""Value iteration on large tables: every way through it has to arrive at the same values, proven to 1e-9."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import mdps, random_cost, seeds
from structures import KINDS, world

from rlfd_gym import TabularMDP, _rows
from rlfd_gym.mdp import iteration, occupancy
from rlfd_gym.mdp.forward import value_iteration


def by_plain_value_iteration(mdp, cost):
    """V* within 1e-12 of it, by nothing but the Bellman operator."""
    value = np.zeros(mdp.n_states)
    for _ in range(int(np.log(1e-12) / np.log(mdp.discount)) + 1):
        q = (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ value)
        value = np.minimum.reduceat(q, mdp.state_starts[:-1])
    return value


def shuffled(mdp, cost, seed):
    """The same MDP with its states in a random order."""
    order = np.random.default_rng(seed).permutation(mdp.n_states)
    place = np.argsort(order)
    pairs = np.concatenate([np.arange(mdp.state_starts[s], mdp.state_starts[s + 1]) for s in order])
    states = place[mdp.pair_states[pairs]]
    tables = sp.csr_array(mdp.transitions[pairs].toarray()[:, order])
    return TabularMDP(tables, states, mdp.pair_actions[pairs], mdp.initial[order], mdp.discount), cost[pairs], order


def cycle(n, discount, n_actions=1):
    """A cycle through all states in a random order; further actions stay where they are."""
    order = np.random.default_rng(0).permutation(n)
    following = np.empty(n, dtype=int)
    following[order] = np.roll(order, -1)
    to = np.stack([following] + [np.arange(n)] * (n_actions - 1), axis=1).ravel()
    rows = sp.csr_array((np.ones(to.size), to, np.arange(to.size + 1)), shape=(to.size, n))
    return TabularMDP(rows, np.repeat(np.arange(n), n_actions), np.tile(np.arange(n_actions), n), None, discount)


def check(mdp, cost, exact, size=1.0):
    plan = mdp.optimal(cost, method="value-iteration")
    assert plan.value_error <= 1e-9 * size
    assert np.abs(plan.value - exact).max() <= plan.value_error + 1e-12 * size
    assert np.abs(mdp.value_of(plan.policy, cost) - exact).max() <= 2e-9 * size
    return plan


@pytest.mark.parametrize("discount", [0.7, 0.99])
@pytest.mark.parametrize("kind", KINDS)
def test_every_structure_is_solved_in_any_order_of_its_states(kind, discount):
    mdp, cost, _ = world(kind, 1_000, discount)
    exact = by_plain_value_iteration(mdp, cost)
    plan = check(mdp, cost, exact)
    assert plan.expected_cost == pytest.approx(mdp.optimal(cost, method="policy-iteration").expected_cost, abs=2e-9)
    other, other_cost, order = shuffled(mdp, cost, 1)
    check(other, other_cost, exact[order])


@pytest.mark.parametrize("long", [0.0, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_sweeps_alone_and_solves_alone_arrive_at_the_same_plan(kind, long, monkeypatch):
    mdp, cost, _ = world(kind, 800, 0.97)
    monkeypatch.setattr(iteration, "LONG", long)
    for name in ("DENSE_STATES", "LU_STATES"):
        monkeypatch.setattr(occupancy, name, 0)
    plan = check(mdp, cost, by_plain_value_iteration(mdp, cost))
    np.testing.assert_array_equal(plan.policy, mdp.optimal(cost, method="policy-iteration").policy)


@given(mdp=mdps(), seed=seeds)
def test_solves_agree_with_policy_iteration_on_any_tables(mdp, seed):
    cost = np.random.default_rng(seed).choice([-1.0, 0.0, 1.0], mdp.n_pairs)  # with many ties
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iteration, "LONG", 0.0)
        plan = mdp.optimal(cost, method="value-iteration")
    exact = mdp.optimal(cost, method="policy-iteration")
    np.testing.assert_array_equal(plan.policy, exact.policy)
    assert np.abs(plan.value - exact.value).max() <= plan.value_error + exact.value_error <= 2e-9


@pytest.mark.parametrize("discount", [0.9, 0.9999])
def test_shuffled_cycles_and_absorbing_states_are_solved(discount):
    mdp = cycle(3_000, discount, n_actions=2)
    cost = np.random.default_rng(1).uniform(-1, 1, mdp.n_pairs)
    plan = mdp.optimal(cost)
    assert plan.value_error <= 1e-9
    q = (1 - discount) * cost + discount * (mdp.transitions @ plan.value)
    best = np.minimum.reduceat(q, mdp.state_starts[:-1])
    assert np.abs(best - plan.value).max() / (1 - discount) <= 2e-9
    # Staying for ever at the best place is worth its cost.
    assert plan.value.min() == pytest.approx(min(cost[1::2].min(), cost[0::2].mean()), abs=2e-9)


def test_solves_that_do_not_help_leave_the_work_to_sweeps(monkeypatch):
    mdp, cost, _ = world("queues", 800, 0.9)
    useless = lambda matrix, discount: iter([(lambda rhs, rtol: np.full_like(rhs, np.nan), 0.1)])  # noqa: E731
    monkeypatch.setattr(iteration, "LONG", 0.0)
    monkeypatch.setattr(iteration, "STUCK", 0)
    monkeypatch.setattr(iteration, "solvers", useless)
    check(mdp, cost, by_plain_value_iteration(mdp, cost))


@pytest.mark.parametrize("kind", ["garnet5", "queues"])
def test_the_answer_does_not_depend_on_the_number_of_threads(kind, monkeypatch):
    mdp, cost, _ = world(kind, 4_000, 0.95)
    monkeypatch.setattr(_rows, "LEAST_SHARED", 0)
    answers = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        plan = mdp.optimal(cost, method="value-iteration")
        answers.append((plan.value.tobytes(), plan.policy.tobytes(), plan.value_error))
    assert answers[0] == answers[1] == answers[2]


@given(mdp=mdps(), seed=seeds)
def test_a_rough_value_and_its_policy_are_as_good_as_asked_from_any_start(mdp, seed):
    cost, anywhere = random_cost(mdp, seed), np.random.default_rng(seed).uniform(-1, 1, mdp.n_states)
    plan = mdp.optimal(cost, method="policy-iteration")
    for tolerance, start in ((1e-2, None), (1e-6, None), (1e-6, plan.value), (1e-6, anywhere)):
        value, pairs = value_iteration(mdp, cost, tolerance, start)
        assert np.abs(value - plan.value).max() <= 1.01 * tolerance
        taken = np.zeros(mdp.n_pairs)
        taken[pairs] = 1.0
        np.testing.assert_array_equal(mdp.pair_states[pairs], np.arange(mdp.n_states))
        assert mdp.occupancy_of(taken) @ cost <= plan.expected_cost + 2.1 * tolerance


def test_value_iteration_ends_when_it_is_stopped_and_keeps_its_start():
    mdp, cost, _ = world("chain", 100, 0.999)
    start, asked = np.zeros(mdp.n_states), []
    rough, _ = value_iteration(mdp, cost, 1e-9, start, lambda: bool(asked.append(0)) or len(asked) == 2)
    assert len(asked) == 2
    assert not start.any()
    assert np.abs(rough - mdp.optimal(cost).value).max() > 1e-9


def test_large_costs_are_solved_relative_to_their_size():
    mdp, cost, _ = world("chain", 1_000, 0.95)
    check(mdp, 1e6 * cost, 1e6 * by_plain_value_iteration(mdp, cost), size=1e6)


def test_pairs_that_are_nearly_tied_do_not_keep_the_iteration_from_its_end(monkeypatch):
    """The first action is worse by less than a tie, or by hardly more: such a policy is chosen only at the end."""
    chain, cost, _ = world("grid", 1_000, 0.7)
    best = chain.optimal(cost).policy > 0
    rows, rng = chain.transitions[best], np.random.default_rng(0)
    n, tie = chain.n_states, 1e-10  # in the cost, of which 1 - γ counts in a step
    mdp = TabularMDP(rows[np.repeat(np.arange(n), 2)], np.repeat(np.arange(n), 2), np.tile([0, 1], n), None, 0.7)
    own = cost[best]
    worse = np.where(rng.random(n) < 0.5, 0.9, 1.0 + 1e-6) * tie
    rounds, real = [], iteration._Tables.bellman
    monkeypatch.setattr(iteration._Tables, "bellman", lambda self, at: rounds.append(1) or real(self, at))
    plan = mdp.optimal(np.stack([own + worse, own], axis=1).ravel(), method="value-iteration")
    assert plan.value_error <= 1e-9
    assert len(rounds) < 100
    assert 0 < plan.policy[::2].sum() < n  # some first actions count as tied, others do not
