"""How much the prior weighs: exact solutions along α, and rules that choose one."""

from __future__ import annotations

from rlfd_gym.alpha.path import AlphaPath, PathPoint, alpha_path
from rlfd_gym.alpha.rules import AlphaChoice, parse_rule, select_alpha
from rlfd_gym.experts.noise import occupancy_noise

__all__ = ["AlphaChoice", "AlphaPath", "PathPoint", "alpha_path", "occupancy_noise", "parse_rule", "select_alpha"]
