"""Arrays of other libraries, against those libraries' own answers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import make_mdp, seeds

from rlfd_gym import TabularMDP
from rlfd_gym.mdp import model_of_arrays, model_of_quantecon

P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.25, 0.75]]])  # P[s, a, s']
ASS = P.transpose(1, 0, 2)


def same(one, other):
    assert one.discount == other.discount
    for name in ("pair_states", "pair_actions", "initial"):
        assert (getattr(one, name) == getattr(other, name)).all()
    np.testing.assert_allclose(one.transitions.toarray(), other.transitions.toarray(), rtol=1e-15)


def drawn(seed, n_states=4, n_actions=3):
    """Transitions P[s, a, s'], and rewards of every shape."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.ones(n_states), (n_states, n_actions))
    return chances, [rng.normal(size=chances.shape[:axes]) for axes in (1, 2, 3)]


def expected_reward(chances, reward):
    n_states, n_actions, _ = chances.shape
    table = np.empty((n_states, n_actions))
    for s in range(n_states):
        for a in range(n_actions):
            table[s, a] = {
                1: lambda s=s, a=a: reward[s],
                2: lambda s=s, a=a: reward[s, a],
                3: lambda s=s, a=a: chances[s, a] @ reward[s, a],
            }[reward.ndim]()
    return table


def test_every_layout_gives_the_same_tables():
    expected = TabularMDP.from_dense(P, [1, 0], discount=0.9)
    kinds = (ASS, list(ASS), [sp.csr_array(p) for p in ASS], tuple(sp.csc_matrix(p) for p in ASS))
    for value in (*kinds, [sp.coo_matrix(ASS[0]), ASS[1]]):
        same(TabularMDP.from_dense(value, [1, 0], discount=0.9, layout="ass"), expected)


def test_feasible_is_over_states_and_actions_in_every_layout():
    feasible = np.array([[True, False], [True, True]])
    expected = TabularMDP.from_dense(P, discount=0.9, feasible=feasible)
    assert expected.pair_actions.tolist() == [0, 0, 1]
    for value in (ASS, [sp.csr_array(p) for p in ASS]):
        same(TabularMDP.from_dense(value, discount=0.9, feasible=feasible, layout="ass"), expected)


@given(seed=seeds)
def test_costs_are_minus_expected_rewards_in_every_shape_and_layout(seed):
    chances, rewards = drawn(seed)
    for reward in rewards:
        expected = -expected_reward(chances, reward)
        mdp, cost = model_of_arrays(chances, reward, discount=0.9)
        np.testing.assert_allclose(mdp.table(cost), expected, atol=1e-12)
        turned = reward.transpose(1, 0, 2) if reward.ndim == 3 else reward
        other, cost = model_of_arrays(chances.transpose(1, 0, 2), turned, discount=0.9, layout="ass")
        np.testing.assert_allclose(other.table(cost), expected, atol=1e-12)
    sparse = [[sp.csr_array(part) for part in array.transpose(1, 0, 2)] for array in (chances, rewards[2])]
    other, cost = model_of_arrays(*sparse, discount=0.9, layout="ass")
    np.testing.assert_allclose(other.table(cost), expected, atol=1e-12)
    same(other, mdp)


@pytest.mark.parametrize(
    ("values", "layout", "message"),
    [
        (np.full((2, 3, 3), 1 / 3), "sas", r"P has shape \(2, 3, 3\), expected \(n_states, n_actions, n_states\)"),
        (np.full((3, 2, 3), 1 / 3), "ass", r"P has shape \(3, 2, 3\), expected \(n_actions, n_states, n_states\)"),
        ([sp.eye_array(2), sp.eye_array(3)], "ass", r"P\[1\] has shape \(3, 3\), but P\[0\] has \(2, 2\)"),
        ([sp.csr_array(np.ones((2, 3)) / 3)], "ass", r"P\[0\] has shape \(2, 3\), expected \(n_states, n_states\)"),
        (P, "asa", "layout"),
    ],
)
def test_arrays_that_do_not_fit_their_layout_are_refused_by_name(values, layout, message):
    with pytest.raises(ValueError, match=message):
        TabularMDP.from_dense(values, discount=0.9, layout=layout)


def test_rewards_that_do_not_fit_are_refused_by_name():
    with pytest.raises(
        ValueError, match=r"R has shape \(3,\), expected \(2,\), \(2, 2\) or \(n_states, n_actions, n_s"
    ):
        model_of_arrays(P, np.zeros(3), discount=0.9)
    with pytest.raises(ValueError, match="R has 2 states and 3 actions, but P has 2 and 2"):
        model_of_arrays(P, np.zeros((2, 3, 2)), discount=0.9)
    with pytest.raises(ValueError, match="R must be finite"):
        model_of_arrays(P, np.array([0.0, np.nan]), discount=0.9)


@pytest.mark.filterwarnings("ignore:Comparing a sparse matrix")  # its own
def test_pymdptoolbox_and_the_tables_agree_on_the_optimum():
    toolbox = pytest.importorskip("mdptoolbox.mdp")
    example = pytest.importorskip("mdptoolbox.example")
    np.random.seed(0)  # noqa: NPY002  (its generator)
    for chances, rewards in (example.forest(), example.small(), example.rand(6, 3), example.rand(6, 3, is_sparse=True)):
        solver = toolbox.PolicyIteration(chances, rewards, 0.9)
        solver.run()
        mdp, cost = model_of_arrays(chances, rewards, discount=0.9, layout="ass")
        plan = mdp.optimal(cost)
        np.testing.assert_allclose(plan.value, -(1 - 0.9) * np.array(solver.V), atol=1e-8)


@pytest.mark.parametrize("form", ["product", "pairs", "pairs in disorder", "sparse"])
def test_quantecon_and_the_tables_agree_on_the_optimum(form):
    markov = pytest.importorskip("quantecon.markov")
    mdp = make_mdp(3, 5, 3, 0.8)
    rng = np.random.default_rng(1)
    reward = rng.normal(size=mdp.n_pairs)
    rows, states, actions = mdp.transitions.toarray(), mdp.pair_states, mdp.pair_actions
    if form == "product":
        table = mdp.table(reward, -np.inf)
        dense = np.full((*table.shape, mdp.n_states), 1 / mdp.n_states)
        dense[states, actions] = rows
        ddp = markov.DiscreteDP(table, dense, mdp.discount)
    else:
        order = rng.permutation(mdp.n_pairs) if form == "pairs in disorder" else np.arange(mdp.n_pairs)
        rows = sp.csr_matrix(rows) if form == "sparse" else rows
        ddp = markov.DiscreteDP(reward[order], rows[order], mdp.discount, states[order], actions[order])
    found, cost = model_of_quantecon(ddp, mdp.initial)
    same(found, mdp)
    np.testing.assert_allclose(cost, -reward)
    same(TabularMDP.from_quantecon(ddp, mdp.initial), mdp)
    values = ddp.solve(method="policy_iteration").v
    np.testing.assert_allclose(found.optimal(cost).value, -(1 - mdp.discount) * values, atol=1e-8)


def test_a_discrete_dp_without_discounting_is_refused_with_its_own_word():
    from types import SimpleNamespace

    ddp = SimpleNamespace(R=[[0.0, 1.0]], Q=[[[1.0], [1.0]]], beta=1.0, s_indices=None, a_indices=None)
    with pytest.raises(ValueError, match="ddp: discount"):
        model_of_quantecon(ddp)
    with pytest.raises(TypeError, match=r"ddp must be a quantecon\.markov\.DiscreteDP, got dict"):
        TabularMDP.from_quantecon({})
    ddp.beta = 0.9
    with pytest.raises(ValueError, match="initial has shape"):
        model_of_quantecon(ddp, [0.5, 0.5])
