"""The tabular environments, made with `gym.make("rlfd_gym/...")`."""

from rlfd_gym.envs.inventory import InventoryEnv
from rlfd_gym.envs.layouts import ascii_layout, paper_layout, random_layout
from rlfd_gym.envs.tabular import TabularEnv
from rlfd_gym.envs.windy_gridworld import WindyGridworldEnv

__all__ = ["InventoryEnv", "TabularEnv", "WindyGridworldEnv", "ascii_layout", "paper_layout", "random_layout"]
