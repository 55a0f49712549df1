"""Experts: demonstrations, logs and made-up experts, and the occupancy of each."""

from __future__ import annotations

from rlfd_gym.experts.demonstrations import Demonstrations, occupancy_from_demonstrations, read_demonstrations
from rlfd_gym.experts.export import to_minari
from rlfd_gym.experts.made_up import Walk, demonstrate, noisy_expert
from rlfd_gym.experts.noise import occupancy_noise
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.experts.states import occupancy_from_states
from rlfd_gym.experts.variation import ActionVariation, action_variation

__all__ = [
    "ActionVariation",
    "CostScale",
    "Demonstrations",
    "SampledExpert",
    "Walk",
    "action_variation",
    "demonstrate",
    "noisy_expert",
    "occupancy_from_demonstrations",
    "occupancy_from_states",
    "occupancy_noise",
    "read_demonstrations",
    "to_minari",
]
