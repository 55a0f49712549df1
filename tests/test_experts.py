from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from strategies import mdps, random_cost, seeds

from rlfd_gym import noisy_expert


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
