from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import TabularMDP


def two_states(**changes):
    arguments = {
        "transitions": [[1, 0], [0, 1], [0, 1]],
        "pair_states": [0, 0, 1],
        "pair_actions": [0, 1, 0],
        "initial": [1, 0],
        "discount": 0.5,
    }
    return TabularMDP(**(arguments | changes))


def test_an_mdp_counts_its_states_actions_and_pairs():
    mdp = two_states()
    assert (mdp.n_states, mdp.n_actions, mdp.n_pairs) == (2, 2, 3)
    assert mdp.state_starts.tolist() == [0, 2, 3]
    assert mdp.transitions.format == "csr"


def test_an_mdp_cannot_be_changed():
    mdp = two_states()
    with pytest.raises(FrozenInstanceError):
        mdp.discount = 0.9
    for array in (mdp.initial, mdp.pair_states, mdp.pair_actions, mdp.transitions.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_an_mdp_copies_what_it_is_given():
    p = np.array([[1.0, 0], [0, 1], [0, 1]])
    matrix = sp.csr_array(p)
    initial = np.array([1.0, 0.0])
    mdp = two_states(transitions=matrix, initial=initial)
    matrix.data[:] = 7
    initial[:] = 7
    np.testing.assert_array_equal(mdp.transitions.toarray(), p)
    np.testing.assert_array_equal(mdp.initial, [1, 0])


def test_a_pickled_mdp_is_equal_and_still_locked():
    mdp = two_states()
    copy = pickle.loads(pickle.dumps(mdp))
    np.testing.assert_array_equal(copy.transitions.toarray(), mdp.transitions.toarray())
    np.testing.assert_array_equal(copy.state_starts, mdp.state_starts)
    assert copy.discount == mdp.discount
    assert not copy.initial.flags.writeable


def test_the_initial_distribution_is_uniform_unless_given():
    assert two_states(initial=None).initial.tolist() == [0.5, 0.5]


def test_from_dense_leaves_out_infeasible_pairs():
    P = np.full((2, 2, 2), np.nan)
    P[0, 0], P[0, 1], P[1, 0] = [1, 0], [0, 1], [0, 1]
    mdp = TabularMDP.from_dense(P, initial=[1, 0], discount=0.5, feasible=[[True, True], [True, False]])
    reference = two_states()
    np.testing.assert_array_equal(mdp.transitions.toarray(), reference.transitions.toarray())
    np.testing.assert_array_equal(mdp.pair_actions, reference.pair_actions)


def test_duplicate_entries_of_a_sparse_row_add_up():
    rows = sp.coo_array(([0.5, 0.5, 1, 1], ([0, 0, 1, 2], [0, 0, 1, 1])), shape=(3, 2))
    np.testing.assert_array_equal(two_states(transitions=rows).transitions.toarray()[0], [1, 0])


@given(mdps(), seeds)
def test_flow_and_its_transpose_are_the_flow_matrix(mdp, seed):
    rng = np.random.default_rng(seed)
    mu, u = rng.random(mdp.n_pairs), rng.normal(size=mdp.n_states)
    matrix = mdp.flow_matrix()
    np.testing.assert_allclose(mdp.flow(mu), matrix @ mu, atol=1e-11)
    np.testing.assert_allclose(mdp.flow_transpose(u), matrix.T @ u, atol=1e-10)


@given(mdps())
def test_pair_index_finds_every_pair(mdp):
    np.testing.assert_array_equal(mdp.pair_index(mdp.pair_states, mdp.pair_actions), np.arange(mdp.n_pairs))


def test_pair_index_finds_pairs_where_actions_have_gaps():
    mdp = TabularMDP(np.ones((3, 1)), [0, 0, 0], [1, 4, 9], None, 0.5)
    assert mdp.pair_index([0, 0, 0], [9, 1, 4]).tolist() == [2, 0, 1]
    with pytest.raises(ValueError, match="action 3 is not feasible in state 0"):
        mdp.pair_index(0, 3)


@pytest.mark.parametrize(("state", "action"), [(1, 1), (2, 0), (-1, 0), (0, -1), (0, 2)])
def test_pair_index_refuses_what_is_not_there(state, action):
    with pytest.raises(ValueError, match=rf"action {action} is not feasible in state {state}"):
        two_states().pair_index([0, state], [0, action])


def test_pair_index_refuses_floats():
    with pytest.raises(TypeError, match="states must hold integers"):
        two_states().pair_index([0.5], [0])


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"transitions": [[1, 0.5], [0, 1], [0, 1]]}, ValueError, "transitions: the probabilities of row 0"),
        ({"transitions": [[2, -1], [0, 1], [0, 1]]}, ValueError, "transitions must not be negative"),
        ({"transitions": [[np.nan, 1], [0, 1], [0, 1]]}, ValueError, "transitions must be finite"),
        ({"transitions": "abc"}, TypeError, "transitions must be a"),
        ({"transitions": np.ones((3, 0))}, ValueError, "transitions has shape"),
        ({"pair_states": [0, 0]}, ValueError, r"pair_states has shape \(2,\), expected \(3,\)"),
        ({"pair_states": [0, 0, 0], "pair_actions": [0, 1, 2]}, ValueError, "state 1 has no feasible action"),
        ({"pair_states": [0, 1, 0]}, ValueError, "pair_states, pair_actions: pairs must be ordered"),
        ({"pair_actions": [1, 1, 0]}, ValueError, "pair_states, pair_actions: pairs must be ordered"),
        ({"pair_states": [0, 0, 2]}, ValueError, "pair_states must lie in 0..1"),
        ({"pair_states": [0.0, 0.0, 1.0]}, TypeError, "pair_states must hold integers"),
        ({"pair_actions": [-1, 1, 0]}, ValueError, "pair_actions must not be negative"),
        ({"n_actions": 1}, ValueError, "n_actions is 1"),
        ({"initial": [0.5, 0.4]}, ValueError, "initial must sum to 1"),
        ({"initial": [1.5, -0.5]}, ValueError, "initial must not be negative"),
        ({"initial": [1.0]}, ValueError, r"initial has shape \(1,\), expected \(2,\)"),
        ({"initial": [np.nan, 1]}, ValueError, "initial must be finite"),
        ({"discount": 1.0}, ValueError, "discount must be below 1, got 1, which needs a finite horizon"),
        ({"discount": 0.0}, ValueError, "discount"),
        ({"discount": -0.1}, ValueError, "discount"),
        ({"discount": np.nan}, ValueError, "discount"),
        ({"discount": "0.9"}, TypeError, "discount must be a number"),
    ],
)
def test_bad_tables_are_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        two_states(**changes)


@pytest.mark.parametrize(
    ("P", "feasible", "message"),
    [
        (np.ones((2, 2)), None, "P has shape"),
        (np.ones((2, 1, 3)), None, "P has shape"),
        (np.ones((1, 1, 1)), [[True, True]], "feasible must be a boolean array of shape"),
        (np.ones((1, 1, 1)), [[1]], "feasible must be a boolean array"),
        (np.ones((1, 1, 1)), [[False]], "feasible: state 0 has no feasible action"),
        (np.full((1, 1, 1), 0.9), None, "transitions: the probabilities of row 0 must sum to 1"),
    ],
)
def test_bad_dense_arrays_are_refused_by_name(P, feasible, message):
    with pytest.raises(ValueError, match=message):
        TabularMDP.from_dense(P, discount=0.9, feasible=feasible)


BAD_VECTORS = [
    ([1.0, 2.0], ValueError, r"has shape \(2,\), expected \(3,\): one entry per feasible state-action pair"),
    ([1.0, np.nan, 0.0], ValueError, "must be finite; entry 1 is nan"),
    ([1.0, np.inf, 0.0], ValueError, "must be finite; entry 1 is inf"),
    (["a", "b", "c"], TypeError, "must be an array of numbers"),
    (None, (TypeError, ValueError), ""),
]


@pytest.mark.parametrize(("vector", "error", "message"), BAD_VECTORS)
def test_bad_costs_are_refused_by_name(vector, error, message):
    mdp = two_states()
    with pytest.raises(error, match=f"cost {message}" if message else "cost"):
        mdp.optimal(vector)
    with pytest.raises(error, match=f"cost {message}" if message else "cost"):
        mdp.value_of(mdp.uniform_policy(), vector)


@pytest.mark.parametrize(("vector", "error", "message"), BAD_VECTORS)
def test_bad_policies_and_occupancies_are_refused_by_name(vector, error, message):
    mdp = two_states()
    with pytest.raises(error, match=f"policy {message}" if message else "policy"):
        mdp.occupancy_of(vector)
    with pytest.raises(error, match=f"occupancy {message}" if message else "occupancy"):
        mdp.policy_of(vector)


def test_policies_must_sum_to_one_in_each_state():
    mdp = two_states()
    with pytest.raises(
        ValueError, match=r"policy must sum to 1 over each state's pairs, but it sums to 0\.9 in state 0"
    ):
        mdp.occupancy_of([0.4, 0.5, 1.0])
    with pytest.raises(ValueError, match="policy must not be negative; entry 0"):
        mdp.occupancy_of([-0.5, 1.5, 1.0])
    with pytest.raises(ValueError, match="occupancy must not be negative"):
        mdp.policy_of([-0.5, 1.5, 1.0])


@given(mdps(), seeds)
def test_the_same_seed_gives_the_same_mdp(mdp, seed):
    # Guards the strategy itself: tests that compare two runs rely on it.
    first, second = make_mdp(seed, 4, 3, 0.9), make_mdp(seed, 4, 3, 0.9)
    np.testing.assert_array_equal(first.transitions.toarray(), second.transitions.toarray())
    np.testing.assert_array_equal(random_policy(mdp, seed), random_policy(mdp, seed))
    np.testing.assert_array_equal(random_cost(mdp, seed), random_cost(mdp, seed))


def crafted(data=(1.0, 1.0, 1.0), indices=(0, 1, 1), indptr=(0, 1, 2, 3), shape=(3, 2)):
    """A CSR matrix with these arrays, whether they make sense or not: SciPy checks none of them afterwards."""
    matrix = sp.csr_array((3, 2), dtype=float)
    matrix.data, matrix.indices, matrix.indptr = np.array(data), np.array(indices), np.array(indptr)
    matrix._shape = shape
    return matrix


BROKEN_ROWS = [
    ({"indices": (1, 2, 2)}, "transitions: row 1 leads to state 2, but its columns are 0..1"),
    ({"indices": (0, 1, 10**9)}, "transitions: row 2 leads to state 1000000000"),
    ({"indices": (0, -1, 1)}, "transitions: row 1 leads to state -1"),
    ({"indptr": (0, 1, 2, 7)}, "transitions.indptr must go from 0 to the 3 entries"),
    ({"indptr": (1, 1, 2, 3)}, "transitions.indptr must go from 0 to the 3 entries"),
    ({"indptr": (0, 3, 2, 3)}, "transitions.indptr must not decrease; row 1"),
    ({"indptr": (0, 1, 3)}, "transitions.indptr has shape"),
    ({"data": (1.0, 1.0)}, "data has shape"),
    ({"indices": (0.0, 1.0, 1.0)}, "transitions.indices must be a vector of integers"),
    ({"shape": (3, 1)}, "transitions: row 1 leads to state 1, but its columns are 0..0"),
]


@pytest.mark.parametrize(("parts", "message"), BROKEN_ROWS)
def test_a_sparse_matrix_whose_indices_are_wrong_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        two_states(transitions=crafted(**parts))


@pytest.mark.parametrize(("parts", "message"), BROKEN_ROWS)
def test_a_pickle_whose_indices_are_wrong_is_refused(parts, message):
    mdp = two_states()
    state = dict(vars(mdp)) | {"transitions": crafted(**parts)}
    with pytest.raises(ValueError, match=message):
        object.__new__(TabularMDP).__setstate__(state)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pair_states": np.array([0, 0, 0])}, "pairs must be ordered by state, then action"),
        ({"pair_states": np.array([0, 0])}, "expected one entry per pair"),
        ({"state_starts": np.array([0, 1, 3])}, "which does not fit the pairs"),
        ({"n_states": 3}, "pair_states: state 2 has no feasible action"),
        ({"transitions": crafted(data=(1.0, 0.5, 1.0))}, "row 1 must sum to 1"),
        ({"transitions": crafted(data=(1.0, np.nan, 1.0))}, "row 1 must sum to 1"),
    ],
)
def test_a_pickle_whose_tables_do_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        object.__new__(TabularMDP).__setstate__(dict(vars(two_states())) | changes)


@pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.bsr_array, sp.lil_array, sp.csr_matrix])
def test_every_sparse_format_gives_the_same_tables(make):
    matrix = make(np.array([[1.0, 0], [0, 1], [0, 1]]))
    np.testing.assert_array_equal(two_states(transitions=matrix).transitions.toarray(), matrix.toarray())


@pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.bsr_array])
def test_other_sparse_formats_with_wrong_indices_are_refused(make):
    matrix = make(np.array([[1.0, 0], [0, 1], [0, 1]]))
    if make is sp.coo_array:
        matrix.coords = (matrix.coords[0], matrix.coords[1] + 1)
    else:
        matrix.indices = matrix.indices + 1
    with pytest.raises(ValueError, match=r"transitions is a broken .* matrix"):
        two_states(transitions=matrix)


def test_rounding_below_zero_is_a_zero():
    for table in ([[1 + 1e-16, -1e-16], [0, 1], [0, 1]], sp.csr_array([[1.0, -1e-16], [0, 1], [0, 1]])):
        assert two_states(transitions=table).transitions.toarray().tolist() == [[1, 0], [0, 1], [0, 1]]
    assert two_states(initial=[1.0, -1e-16]).initial.tolist() == [1, 0]
    assert two_states().policy_of([1.0, -1e-16, 1.0]).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="transitions must not be negative, but it holds -1e-11"):
        two_states(transitions=[[1, -1e-11], [0, 1], [0, 1]])
