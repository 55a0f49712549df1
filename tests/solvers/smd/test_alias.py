"""Alias tables."""

from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym.solvers.smd import alias


@pytest.mark.parametrize("length", [1, 2, 3, 16, 300])
def test_alias_tables_hold_the_probabilities(length):
    p = np.random.default_rng(length).dirichlet(np.full(length, 0.2))
    slots = alias.distribution_table(p)
    held = np.zeros(length)
    np.add.at(held, slots["keep"], slots["threshold"] / len(slots))
    np.add.at(held, slots["alias"], (1 - slots["threshold"]) / len(slots))
    np.testing.assert_allclose(held, p, atol=1e-15)
