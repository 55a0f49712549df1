"""The inventory of the experiments: its model, the recovered prices, the order-up-to level.

The prices (c_o, c_h, c_s) behind a learned cost c are recovered as in the paper, by least squares
on the features (a, s+a, -E[min(s+a, D)]), after mapping c back to money.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rlfd_gym import TabularMDP
from rlfd_gym.envs import InventoryEnv

TRUTH, EXPERT, PRIOR = (3.0, 0.5, 15.0), (5.0, 8.0, 15.0), (4.0, 2.0, 14.0)
PRICES = ("c_o", "c_h", "c_s")
PRICE_NAMES = ("order cost", "holding cost", "selling price")


def paper_shop(**options: Any) -> InventoryEnv:
    """Return the published figures' inventory: 256 pairs, sales summed over demands up to M."""
    return _make("rlfd_gym/InventoryPaper-v0", **options)


def text_shop(**options: Any) -> InventoryEnv:
    """Return the inventory of the paper's text: 136 pairs, exact expected sales."""
    return _make("rlfd_gym/Inventory-v0", **options)


def _make(name: str, **options: Any) -> InventoryEnv:
    env = gym.make(name, **options).unwrapped
    assert isinstance(env, InventoryEnv)
    return env


def recovered(env: InventoryEnv, cost: np.ndarray) -> np.ndarray:
    """Return (c_o, c_h, c_s) of a cost over pairs, or of several costs (first axis)."""
    money = env.scale.from_box(np.atleast_2d(cost))
    prices = np.linalg.lstsq(env.features, money.T, rcond=None)[0].T
    return prices if np.ndim(cost) == 2 else prices[0]


def orders(mdp: TabularMDP, policy: np.ndarray) -> np.ndarray:
    """Return the most likely order in each state."""
    return mdp.likely_actions(policy)


def level(mdp: TabularMDP, policy: np.ndarray) -> int:
    """Return the level up to which a policy orders, or -1 if there is no single level."""
    order = orders(mdp, policy)
    levels = np.unique((np.arange(mdp.n_states) + order)[order > 0])
    return int(levels[0]) if len(levels) == 1 else -1
