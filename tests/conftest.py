from __future__ import annotations

import os

import gymnasium as gym
import pytest
from hypothesis import settings

import rlfd_gym  # noqa: F401  (registers the environments)

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
settings.register_profile("default", deadline=None, max_examples=60)
settings.load_profile("default")


@pytest.fixture
def inventory():
    return gym.make("rlfd_gym/Inventory-v0").unwrapped


@pytest.fixture
def gridworld():
    return gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
