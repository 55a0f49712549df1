"""`action_variation` against experts whose policy is known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from strategies import make_mdp, random_policy

from rlfd_gym import TabularMDP, demonstrate
from rlfd_gym.experts import action_variation
from rlfd_gym.mdp import Pairs


def walk(obs, acts):
    return SimpleNamespace(obs=np.array(obs), acts=np.array(acts), terminal=False)


@pytest.fixture
def loop():
    """One state to choose in, 0, from which both actions lead to 1 and back."""
    return TabularMDP([[0, 1], [0, 1], [1, 0]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)


def test_two_trajectories_that_differ_in_one_of_two_visits_by_hand(loop):
    # Trajectory 0 takes 0, 0 and trajectory 1 takes 0, 1 in state 0: of 2 × 2 pairs of visits, 2 differ.
    shown = [walk([0, 1, 0, 1], [0, 0, 0]), walk([0, 1, 0, 1], [0, 0, 1])]
    assert action_variation(shown, loop).estimate == pytest.approx(0.5)


def test_the_estimate_is_unbiased():
    mdp = make_mdp(11, n_states=3, n_actions=3, discount=0.8)
    policy = random_policy(mdp, 12)
    by_state = 1 - mdp.sum_by_state(policy**2)
    found, expected = [], []
    for seed in range(300):
        walks = demonstrate(mdp, policy, 12, 6, seed=seed)
        visits = np.bincount(np.concatenate([w.obs[:-1] for w in walks]), minlength=3)
        counts = [len({k for k, w in enumerate(walks) if s in w.obs[:-1]}) > 1 for s in range(3)]
        found.append(action_variation(walks, mdp, n_resamples=1).estimate)
        expected.append((visits * counts) @ by_state / (visits * counts).sum())
    error = np.array(found) - expected
    assert abs(error.mean()) < 3 * error.std() / np.sqrt(len(error))


@pytest.mark.slow
def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    mdp = make_mdp(13, n_states=4, n_actions=2, discount=0.8)
    policy = random_policy(mdp, 14)
    long = action_variation(demonstrate(mdp, policy, 20_000, 8, seed=1), mdp, n_resamples=1).estimate
    covered = [
        found.low <= long <= found.high
        for found in (action_variation(demonstrate(mdp, policy, 40, 8, seed=s), mdp) for s in range(300))
    ]
    assert 0.9 <= np.mean(covered) <= 0.99


def test_a_consistent_expert_hardly_varies_and_few_visits_do_not_prove_it(loop):
    same = walk([0, 1, 0, 1], [1, 0, 1])
    few, many = action_variation([same] * 3, loop), action_variation([same] * 200, loop)
    assert few.estimate == few.low == many.estimate == 0
    assert few.high > 0.3
    assert "may be" in str(few)
    assert many.high < 0.05
    assert "hardly varies" in str(many)
    assert "only a prior mends it" in str(many)


def test_a_random_expert_is_told_that_the_mode_mends_it(loop):
    shown = demonstrate(loop, loop.uniform_policy(), 100, 10, seed=0)
    found = action_variation(shown, loop)
    assert found.low < 0.5 < found.high
    assert "the mode mends" in str(found)


def test_nothing_is_said_if_no_state_is_visited_twice(loop):
    found = action_variation([walk([0, 1], [0]), walk([1, 0], [0])], loop)
    assert np.isnan(found.estimate)
    assert (found.low, found.high, found.shared, found.n_repeated) == (0, 1, 0, 0)
    assert "unknown" in str(found)


def test_actions_in_absorbing_states_are_no_choice():
    mdp = TabularMDP([[0, 1], [0, 1], [0, 1]], [0, 1, 1], [0, 0, 1], initial=[1, 0], discount=0.5)
    shown = [walk([0, 1, 1], [0, 0]), walk([0, 1, 1], [0, 1])]
    assert np.isnan(action_variation(shown, mdp).estimate)
    assert action_variation(shown, Pairs.of_mask(mdp.feasible)).estimate == 1  # without tables nobody knows


def test_one_trajectory_and_transitions_compare_their_own_visits(loop):
    one = action_variation([walk([0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 1])], loop)
    assert one.estimate == pytest.approx(2 / 3)
    transitions = SimpleNamespace(obs=[0, 0, 0], acts=[0, 0, 1])
    assert action_variation(transitions, loop).estimate == pytest.approx(2 / 3)


def test_the_seed_decides_and_an_occupancy_is_refused(loop):
    shown = demonstrate(loop, loop.uniform_policy(), 10, 10, seed=0)
    assert action_variation(shown, loop, seed=3) == action_variation(shown, loop, seed=3)
    with pytest.raises(TypeError, match="an occupancy does not show visits"):
        action_variation(np.array([0.5, 0.25, 0.25]), loop)
