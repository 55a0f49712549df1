"""Finite MDPs: their tables, what a policy does in them, and their optimal policies.

This package imports neither Gymnasium nor torch nor imitation.
"""

from __future__ import annotations

from rlfd_gym.mdp.adapters import cost_of_env, model_of_env
from rlfd_gym.mdp.arrays import model_of_arrays, model_of_quantecon
from rlfd_gym.mdp.forward import Plan
from rlfd_gym.mdp.over_time import OverTime, TimedWalk, over_time
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.mdp.soft import SoftPlan, soft_optimal
from rlfd_gym.mdp.tables import TabularMDP

__all__ = [
    "OverTime",
    "Pairs",
    "Plan",
    "SoftPlan",
    "TabularMDP",
    "TimedWalk",
    "cost_of_env",
    "model_of_arrays",
    "model_of_env",
    "model_of_quantecon",
    "over_time",
    "soft_optimal",
]
