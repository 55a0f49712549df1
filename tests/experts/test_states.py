"""An occupancy over states becomes one over pairs: the nearest that a policy has, evenly divided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import make_mdp, mdps, random_policy

from rlfd_gym import RLfDProblem, TabularMDP, solve_exact
from rlfd_gym.experts import occupancy_from_states


@settings(max_examples=40, deadline=None)
@given(mdp=mdps(), seed=st.integers(0, 1000), total=st.floats(0.1, 100.0))
def test_the_states_of_a_policy_are_found_again(mdp, seed, total):
    states = mdp.sum_by_state(mdp.occupancy_of(random_policy(mdp, seed)))
    occupancy = occupancy_from_states(total * states, mdp)
    np.testing.assert_allclose(mdp.sum_by_state(occupancy), states, atol=1e-4)
    np.testing.assert_allclose(mdp.flow(occupancy), mdp.initial, atol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_a_cost_of_states_alone_has_the_same_problem_as_the_expert_itself(seed):
    mdp = make_mdp(seed, n_states=6, n_actions=3, discount=0.8)
    expert = mdp.occupancy_of(random_policy(mdp, seed))
    inferred = occupancy_from_states(mdp.sum_by_state(expert), mdp)
    cost = np.random.default_rng(seed).uniform(-1, 1, mdp.n_states)[mdp.pair_states]
    assert inferred @ cost == pytest.approx(expert @ cost, abs=1e-4)
    by_both = [solve_exact(RLfDProblem(mdp, mu, prior=cost, alpha=1e4)).cost for mu in (expert, inferred)]
    np.testing.assert_allclose(*by_both, atol=1e-3)


def test_actions_that_lead_to_the_same_place_are_divided_evenly():
    # From state 0 two actions stay and one leaves for good; the expert left at once with probability 1/2.
    rows = [[1, 0], [1, 0], [0, 1], [0, 1]]
    mdp = TabularMDP(rows, [0, 0, 0, 1], [0, 1, 2, 0], initial=[1, 0], discount=0.5)
    expert = mdp.occupancy_of([0.5, 0.0, 0.5, 1.0])
    np.testing.assert_allclose(expert, [1 / 3, 0, 1 / 3, 1 / 3])
    np.testing.assert_allclose(
        occupancy_from_states(mdp.sum_by_state(expert), mdp), [1 / 6, 1 / 6, 1 / 3, 1 / 3], atol=1e-5
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_no_policy_has_gives_the_nearest_one_and_a_warning(seed):
    mdp = make_mdp(seed, n_states=5, n_actions=3, discount=0.9)
    wanted = np.random.default_rng(seed).dirichlet(np.full(5, 0.3))
    with pytest.warns(UserWarning, match=r"visits: no policy has this occupancy .* differs in [0-9.]+% .* by 0.9"):
        occupancy = occupancy_from_states(wanted, mdp, name="visits")
    np.testing.assert_allclose(mdp.flow(occupancy), mdp.initial, atol=1e-8)
    # It minimises the squared distance: no occupancy improves it along a straight line, by a linear program.
    gradient = 2 * (mdp.sum_by_state(occupancy) - wanted)[mdp.pair_states]
    best = linprog(gradient, A_eq=mdp.flow_matrix(), b_eq=mdp.initial)
    assert gradient @ occupancy <= best.fun + 1e-5


@pytest.mark.parametrize("states", [[1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [np.nan, 1.0, 1.0]])
def test_times_that_are_none_are_refused(states):
    with pytest.raises(ValueError, match="visits"):
        occupancy_from_states(states, make_mdp(0, 3, 2, 0.9), name="visits")


def test_a_wrong_number_of_states_is_refused():
    with pytest.raises(ValueError, match=r"states has shape \(2,\), expected \(3,\)"):
        occupancy_from_states([0.5, 0.5], make_mdp(0, 3, 2, 0.9))
