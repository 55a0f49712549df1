from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import mdps, random_cost, seeds

from rlfd_gym import demonstrate, noisy_expert, occupancy_from_demonstrations


@given(mdps(), seeds)
def test_a_noisy_expert_is_a_true_occupancy_between_optimal_and_random(mdp, seed):
    cost = random_cost(mdp, seed)
    optimal, noisy, random = (noisy_expert(mdp, cost, noise) for noise in (0.0, 0.4, 1.0))
    np.testing.assert_allclose(mdp.flow(noisy), mdp.initial, atol=1e-11)
    assert optimal @ cost == pytest.approx(mdp.optimal(cost).expected_cost, abs=1e-9)
    assert optimal @ cost <= noisy @ cost + 1e-9
    np.testing.assert_allclose(random, mdp.occupancy_of(mdp.uniform_policy()), atol=1e-12)


def test_noise_is_a_probability():
    from strategies import make_mdp

    mdp = make_mdp(0, 2, 2, 0.5)
    with pytest.raises(ValueError, match="noise must be a finite number in"):
        noisy_expert(mdp, np.zeros(mdp.n_pairs), 1.5)


def test_trajectories_follow_the_policy_and_the_transitions():
    from strategies import make_mdp, random_policy

    mdp = make_mdp(7, 5, 3, 0.6)
    policy = random_policy(mdp, 8)
    walks = demonstrate(mdp, policy, 4000, 25, seed=0)
    assert len(walks) == 4000
    occupancy = occupancy_from_demonstrations(walks, mdp)
    np.testing.assert_allclose(occupancy, mdp.occupancy_of(policy), atol=0.01)
    for walk in walks[:200]:
        pairs = mdp.pair_index(walk.obs[:-1], walk.acts)
        assert (policy[pairs] > 0).all()
        assert (mdp.transitions.toarray()[pairs, walk.obs[1:]] > 0).all()
    same, other = demonstrate(mdp, policy, 4000, 25, seed=0), demonstrate(mdp, policy, 4000, 25, seed=1)
    assert all((a.obs == b.obs).all() and (a.acts == b.acts).all() for a, b in zip(walks, same, strict=True))
    assert any((a.obs != b.obs).any() for a, b in zip(walks, other, strict=True))
