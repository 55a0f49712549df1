"""The paper's instances."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from rlfd_gym import noisy_expert
from rlfd_gym.problem import examples


def test_the_inventory_has_the_papers_expert_and_prior():
    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    problem = examples.inventory(alpha=0.1)
    np.testing.assert_array_equal(problem.mdp.transitions.toarray(), env.mdp.transitions.toarray())
    np.testing.assert_allclose(problem.expert, env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy, atol=1e-15)
    np.testing.assert_array_equal(problem.prior, env.cost_for(4, 2, 14))
    assert (problem.alpha, problem.regulariser) == (0.1, "l2")


def test_the_gridworld_has_a_noisy_expert_and_a_prior_that_knows_a_share():
    env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    problem = examples.gridworld(alpha=0.2, regulariser="l1", known=0.25, seed=3)
    np.testing.assert_allclose(problem.expert, noisy_expert(env.mdp, env.cost, 0.3), atol=1e-15)
    np.testing.assert_array_equal(problem.prior, env.partial_prior(0.25, seed=3))
    assert (problem.alpha, problem.regulariser) == (0.2, "l1")


def test_who_knows_everything_has_the_true_cost_as_prior():
    env = examples.gridworld_env(6)
    problem = examples.gridworld(size=6, noise=0, known=1)
    np.testing.assert_array_equal(problem.prior, env.cost)
    np.testing.assert_allclose(problem.expert, env.mdp.optimal(env.cost).occupancy, atol=1e-15)


def test_options_are_those_of_the_environments():
    assert examples.inventory(max_inventory=4).n_states == 5
    assert examples.gridworld(size=4, discount=0.5).discount == 0.5
    with pytest.raises(TypeError):
        examples.inventory(wind=1)
