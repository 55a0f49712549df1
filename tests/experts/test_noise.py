"""`occupancy_noise` against errors that are known because the expert is."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from rlfd_gym import TabularMDP, demonstrate, noisy_expert, occupancy_from_demonstrations, occupancy_noise
from rlfd_gym.problem import examples


@pytest.mark.parametrize(
    ("env", "n_trajectories", "how"),
    [
        (examples.gridworld_env(10), 3, "count"),
        (examples.gridworld_env(10), 12, "count"),
        (examples.inventory_env(), 6, "count"),
        (examples.gridworld_env(10), 12, "policy"),
    ],
)
def test_the_noise_is_the_true_error_also_where_most_states_are_unseen(env, n_trajectories, how):
    mdp, expert = env.mdp, noisy_expert(env.mdp, env.cost, 0.3)
    steps = mdp.horizon(0.005)
    samples = [demonstrate(mdp, mdp.policy_of(expert), n_trajectories, steps, seed=seed) for seed in range(12)]
    errors = [np.abs(occupancy_from_demonstrations(walks, mdp, estimator=how) - expert).sum() for walks in samples]
    guesses = [occupancy_noise(walks, mdp, estimator=how, n_bootstrap=10) for walks in samples[:5]]
    assert np.mean(guesses) == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=0.2)


def test_undiscounted_frequencies_have_a_missing_mass_too():
    """One step of four is in a pair that the other trajectory does not have; resampling adds 1/2."""
    mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    stays, moves = (SimpleNamespace(obs=[0, 0, end], acts=[0, end], terminal=False) for end in (0, 1))
    noise = occupancy_noise([stays, moves], mdp, discounting="none", estimator="count", n_bootstrap=2000)
    assert noise == pytest.approx(0.25 + 0.5, rel=0.05)
    assert occupancy_noise([stays, stays], mdp, discounting="none", n_bootstrap=5) == 0
