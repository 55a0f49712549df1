"""The feasible pairs: tables and back, by state, the most likely actions; and a table wherever a vector is taken."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import make_mdp, mdps, random_basis, random_cost, random_policy, seeds

import rlfd_gym
from rlfd_gym import BlackBoxProblem, RLfDProblem, SampledExpert, TabularMDP
from rlfd_gym import baselines as classic
from rlfd_gym.beliefs import Hull, NearPrior
from rlfd_gym.mdp import Pairs
from rlfd_gym.problem import HullProblem


def three_pairs() -> Pairs:
    """State 0 offers the actions 0 and 1, state 1 only the action 1."""
    return Pairs.of_mask([[True, True], [False, True]])


@given(mdps(), seeds)
def test_a_vector_survives_the_way_to_a_table_and_back(mdp, seed):
    vector = random_cost(mdp, seed)
    table = mdp.table(vector)
    assert table.shape == (mdp.n_states, mdp.n_actions)
    np.testing.assert_array_equal(np.isnan(table), ~mdp.feasible)
    np.testing.assert_array_equal(mdp.pairs(table), vector)
    for pair, (state, action) in enumerate(zip(mdp.pair_states, mdp.pair_actions, strict=True)):
        assert table[state, action] == vector[pair]
    np.testing.assert_array_equal(mdp.table(table), table)  # a table of a table is itself


def test_a_table_is_filled_with_what_one_likes_and_read_whatever_it_has_at_infeasible_actions():
    pairs = three_pairs()
    assert pairs.table([5, 6, 7], fill=0.0).tolist() == [[5.0, 6.0], [0.0, 7.0]]
    assert pairs.pairs([[5, 6], [np.inf, 7]]).tolist() == [5.0, 6.0, 7.0]


@given(mdps())
def test_the_pairs_of_a_mask_are_those_of_the_mdp(mdp):
    pairs = Pairs.of_mask(mdp.feasible)
    for name in ("pair_states", "pair_actions", "state_starts", "n_states", "n_pairs"):
        np.testing.assert_array_equal(getattr(pairs, name), getattr(mdp, name))


@given(mdps(), seeds)
def test_sums_and_ends_by_state_are_those_of_a_loop(mdp, seed):
    vector = random_cost(mdp, seed)
    own = [vector[mdp.pair_states == state] for state in range(mdp.n_states)]
    np.testing.assert_allclose(mdp.sum_by_state(vector), [x.sum() for x in own], atol=1e-14)
    assert mdp.max_by_state(vector).tolist() == [x.max() for x in own]
    assert mdp.min_by_state(vector).tolist() == [x.min() for x in own]


@given(mdps(), seeds)
def test_the_likely_actions_are_those_of_a_loop_the_lowest_of_equals(mdp, seed):
    policy = random_policy(mdp, seed)
    if seed % 2:
        policy = np.round(policy, 1)  # ties
    expected = []
    for state in range(mdp.n_states):
        own = np.flatnonzero(mdp.pair_states == state)
        expected.append(mdp.pair_actions[own[np.argmax(policy[own])]])
    assert mdp.likely_actions(policy).tolist() == expected
    assert mdp.likely_actions(mdp.table(policy)).tolist() == expected


@given(mdps())
def test_the_uniform_policy_shares_each_state_equally(mdp):
    policy = mdp.uniform_policy()
    np.testing.assert_allclose(mdp.sum_by_state(policy), 1.0, atol=1e-12)
    np.testing.assert_array_equal(mdp.max_by_state(policy), mdp.min_by_state(policy))


@given(st.floats(0.01, 0.9999), st.floats(1e-12, 0.999))
def test_the_horizon_is_that_of_a_loop(discount, tail):
    horizon = TabularMDP([[1.0]], [0], [0], None, discount).horizon(tail)
    steps, left = 0, 1.0
    while left >= tail:
        left *= discount
        steps += 1
    near = abs(np.log(tail) / np.log(discount) - round(np.log(tail) / np.log(discount))) < 1e-9
    assert horizon == steps or (near and abs(horizon - steps) == 1)  # a tail that is a power up to rounding


def test_a_horizon_of_no_or_all_mass_is_refused():
    mdp = make_mdp(0, 2, 2, 0.9)
    for tail in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="tail must be a finite number in"):
            mdp.horizon(tail)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0, 2.0], ValueError, r"cost has shape \(2,\), expected \(3,\): one entry per feasible state-action pair"),
        (np.ones((3, 2)), ValueError, r"cost has shape \(3, 2\), .* or \(2, 2\): a table of states × actions"),
        ([[1.0, np.nan], [0.0, 0.0]], ValueError, "cost must be finite; entry 1 is nan"),
        (np.ones((2, 2, 2)), ValueError, r"cost has shape \(2, 2, 2\)"),
        (None, TypeError, "cost must be an array of numbers; got NoneType"),
        ("cheap", TypeError, "cost must be an array"),
        ([["a", "b"], ["c", "d"]], TypeError, "cost must be an array"),
    ],
)
def test_what_is_neither_vector_nor_table_is_refused_by_name(values, error, message):
    with pytest.raises(error, match=message):
        three_pairs().pairs(values, "cost")


@pytest.mark.parametrize("mask", [[[True], [False]], [True, True], [[1, 0]], np.ones((0, 2), dtype=bool)])
def test_masks_without_an_action_in_every_state_are_refused(mask):
    with pytest.raises(ValueError, match="feasible must be a boolean array over states and actions"):
        Pairs.of_mask(mask)


def test_pairs_are_locked_also_after_pickling():
    for pairs in (three_pairs(), pickle.loads(pickle.dumps(three_pairs()))):
        for name in ("pair_states", "pair_actions", "state_starts"):
            assert not getattr(pairs, name).flags.writeable


MDP = make_mdp(1, 5, 3, 0.9)
COST, POLICY, BASIS = random_cost(MDP, 2), random_policy(MDP, 3), random_basis(MDP.n_pairs, 2)
EXPERT, VALUE, MIXTURE = MDP.occupancy_of(random_policy(MDP, 4)), np.full(MDP.n_states, 0.1), [0.25, 0.75]
PROBLEM = RLfDProblem(MDP, EXPERT, COST, 0.1)
HULL = HullProblem(PROBLEM, BASIS)


def black_box(prior):
    expert = SampledExpert(MDP.pair_states, MDP.pair_actions, np.zeros(MDP.n_pairs, dtype=int))
    oracle = type("Home", (), {"sample_next": lambda self, states, actions, rng: 0 * states})()
    sizes = {"n_states": MDP.n_states, "n_actions": MDP.n_actions, "discount": 0.9, "feasible": MDP.feasible}
    return BlackBoxProblem(oracle, expert, prior=prior, alpha=0.1, **sizes).prior


TAKERS = {
    "mdp.optimal(cost)": (COST, lambda x: MDP.optimal(x).value),
    "mdp.value_of(policy)": (POLICY, lambda x: MDP.value_of(x, COST)),
    "mdp.value_of(cost)": (COST, lambda x: MDP.value_of(POLICY, x)),
    "mdp.expected_cost(policy)": (POLICY, lambda x: MDP.expected_cost(x, COST)),
    "mdp.expected_cost(cost)": (COST, lambda x: MDP.expected_cost(POLICY, x)),
    "mdp.occupancy_of": (POLICY, MDP.occupancy_of),
    "mdp.policy_of": (EXPERT, MDP.policy_of),
    "mdp.likely_actions": (POLICY, MDP.likely_actions),
    "mdp.table": (COST, MDP.table),
    "RLfDProblem(expert)": (EXPERT, lambda x: RLfDProblem(MDP, x).expert),
    "RLfDProblem(prior)": (COST, lambda x: RLfDProblem(MDP, EXPERT, x, 0.1).prior),
    "RLfDProblem(belief=NearPrior(prior))": (COST, lambda x: RLfDProblem(MDP, EXPERT, belief=NearPrior(x, 0.1)).prior),
    "RLfDProblem(belief=NearPrior(weights))": (
        np.abs(COST),
        lambda x: RLfDProblem(MDP, EXPERT, belief=NearPrior(COST, 0.1, "l1", x)).belief.weights,
    ),
    "RLfDProblem(belief=Hull(prior))": (COST, lambda x: RLfDProblem(MDP, EXPERT, belief=Hull(BASIS, x, 0.1)).prior),
    "problem.lagrangian(cost)": (COST, lambda x: PROBLEM.lagrangian(x, VALUE, EXPERT)),
    "problem.lagrangian(occupancy)": (EXPERT, lambda x: PROBLEM.lagrangian(COST, VALUE, x)),
    "problem.gradients(cost)": (COST, lambda x: PROBLEM.gradients(x, VALUE, EXPERT)[0]),
    "problem.bounds(cost)": (COST, lambda x: PROBLEM.bounds(x, VALUE, EXPERT)),
    "problem.bounds(occupancy)": (EXPERT, lambda x: PROBLEM.bounds(COST, VALUE, x)),
    "problem.duality_gap(cost)": (COST, lambda x: PROBLEM.duality_gap(x, VALUE, EXPERT)),
    "problem.duality_gap(occupancy)": (EXPERT, lambda x: PROBLEM.duality_gap(COST, VALUE, x)),
    "problem.penalty": (COST / 2, PROBLEM.penalty),
    "problem.best_cost": (MDP.occupancy_of(POLICY), PROBLEM.best_cost),
    "problem.bounds(occupancy) on a hull": (EXPERT, lambda x: HULL.bounds(MIXTURE, VALUE, x)),
    "BlackBoxProblem(prior)": (COST, black_box),
    "project_prior(expert)": (EXPERT, lambda x: rlfd_gym.project_prior(MDP, x, COST).cost),
    "project_prior(prior)": (COST, lambda x: rlfd_gym.project_prior(MDP, EXPERT, x).cost),
    "share_at_prior(cost)": (COST, lambda x: rlfd_gym.share_at_prior(PROBLEM, x)),
    "demonstrate(policy)": (POLICY, lambda x: rlfd_gym.demonstrate(MDP, x, 1, 20, seed=0)[0].obs),
    "noisy_expert(cost)": (COST, lambda x: rlfd_gym.noisy_expert(MDP, x, 0.3)),
    "lpal(expert)": (EXPERT, lambda x: classic.lpal(MDP, x, BASIS).policy),
    "mwal(expert)": (EXPERT, lambda x: classic.mwal(MDP, x, BASIS, n_iterations=50).policy),
    "projection(expert)": (EXPERT, lambda x: classic.projection(MDP, x, BASIS, n_iterations=50).policy),
    "max_margin(expert)": (EXPERT, lambda x: classic.max_margin(MDP, x, BASIS).policy),
    "lp_irl(expert)": (EXPERT, lambda x: classic.lp_irl(MDP, x).policy),
    "behavioural_cloning(expert)": (EXPERT, lambda x: classic.behavioural_cloning(MDP, x).policy),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", TAKERS)
def test_a_table_is_taken_wherever_a_vector_is(name):
    assert MDP.n_pairs < MDP.n_states * MDP.n_actions  # some actions are infeasible
    vector, take = TAKERS[name]
    np.testing.assert_array_equal(take(MDP.table(vector)), take(vector))
