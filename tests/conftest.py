from __future__ import annotations

import os

# One thread for BLAS and torch, set before either is loaded: on matrices as small as these a second
# thread only waits, and two test processes with two threads each hinder one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")

import gymnasium as gym
import pytest
from hypothesis import settings

import rlfd_gym  # noqa: F401  (registers the environments)

settings.register_profile("default", deadline=None, max_examples=60)
settings.load_profile("default")


@pytest.fixture
def inventory():
    return gym.make("rlfd_gym/Inventory-v0").unwrapped


@pytest.fixture
def gridworld():
    return gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
