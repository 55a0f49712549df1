from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def quiet():
    from rlfd_gym.trainer import quiet_logger

    return quiet_logger()


@pytest.fixture
def make(quiet):
    """A trainer by SMD that prints nothing."""
    from rlfd_gym import RLfDTrainer

    def build(*arguments, **settings):
        return RLfDTrainer(*arguments, **{"custom_logger": quiet, "solver": "smd"} | settings)

    return build


@pytest.fixture
def careful(inventory):
    """The occupancy of an expert that thinks that holding stock is expensive."""
    return inventory.mdp.optimal(inventory.cost_for(5, 8, 15)).occupancy


@pytest.fixture
def guess(inventory):
    return inventory.cost_for(4, 2, 14)
