"""The tasks: that they are well posed, and what their experts demonstrate."""

from __future__ import annotations

import numpy as np
import pytest

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare.tasks import demonstrations_of


def test_demonstrations_come_from_the_experts_occupancy():
    task = compare.TASKS["windy"].make(0)
    shown = demonstrations_of(task, 4000, np.random.SeedSequence(0))
    estimate = rlfd_gym.occupancy_from_demonstrations(shown, task.mdp)
    # The expected ℓ1 error of 4000 independent draws from a distribution over pairs is at most √(400 / 4000) = 0.32.
    assert np.abs(estimate - task.expert).sum() < 0.15
    assert all(np.isin(task.mdp.pair_index(t.obs[:-1], t.acts), np.flatnonzero(task.expert)).all() for t in shown)


@pytest.mark.parametrize("name", compare.TASKS)
def test_a_tasks_expert_is_imperfect_and_its_costs_are_in_the_box(name):
    task = compare.TASKS[name].make(1)
    mdp = task.mdp
    assert np.abs(mdp.flow(task.expert) - mdp.initial).max() < 1e-9
    assert np.abs(task.basis).max() <= 1
    assert np.abs(task.truth).max() <= 1
    assert task.expert @ task.truth > mdp.optimal(task.truth).expected_cost + 0.01


@pytest.mark.parametrize("name", compare.TASKS)
def test_a_tasks_belief_holds_the_truth_possible_and_does_not_depend_on_the_seed(name):
    task, other = (compare.TASKS[name].make(seed) for seed in (0, 1))
    belief = task.belief
    prices = np.linalg.lstsq(belief.features, task.truth - belief.offset, rcond=None)[0]
    np.testing.assert_allclose(belief.cost(belief.check(prices)), task.truth, atol=1e-9)
    np.testing.assert_array_equal([belief.low, belief.high], [other.belief.low, other.belief.high])
    np.testing.assert_array_equal(belief.features, other.belief.features)


def test_the_lakes_cost_orders_policies_as_its_reward_does():
    import gymnasium as gym

    task = compare.TASKS["lake"].make(0)
    mdp = task.mdp
    reward_cost = rlfd_gym.cost_of_env(gym.make("FrozenLake-v1", map_name="4x4"))
    for policy in (mdp.uniform_policy(), mdp.policy_of(task.expert)):
        ours, theirs = mdp.expected_cost(policy, task.truth), mdp.expected_cost(policy, reward_cost)
        assert ours == pytest.approx(theirs * mdp.discount / (1 - mdp.discount))


def test_with_the_truth_as_prior_and_growing_alpha_the_apprentice_approaches_the_optimum():
    task = compare.TASKS["inventory"].make(0)
    mdp = task.mdp
    costs = [
        mdp.expected_cost(
            rlfd_gym.solve_exact(rlfd_gym.RLfDProblem(mdp, task.expert, task.truth, alpha)).policy, task.truth
        )
        for alpha in (0.1, 1.0, 10.0, 100.0)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(mdp.optimal(task.truth).expected_cost, abs=1e-4)
