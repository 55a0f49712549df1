"""Classic apprenticeship-learning methods, for comparison.

Each is a function of an MDP, an expert (an occupancy over pairs, or demonstrations) and, where the method needs one, a
basis of costs; each returns a `rlfd_gym.Solution`. They are imported on first use, so that only the ones that wrap
`imitation` load torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from rlfd_gym import _require_imitation

# A module must not have the name of a function here: importing it would put it in the function's place.
_HOME = {
    "behavioural_cloning": "cloning",
    "check_basis": "basis",
    "cloning_network": "networks",
    "gail": "networks",
    "lp_irl": "ng_russell",
    "lpal": "hull_program",
    "max_margin": "margin",
    "mce_irl": "causal_entropy",
    "mwal": "multiplicative_weights",
    "projection": "feature_projection",
    "scale_basis": "basis",
}

NEEDS_IMITATION = {"causal_entropy", "imitation_border", "networks"}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rlfd_gym.baselines' has no attribute {name!r}")
    if _HOME[name] in NEEDS_IMITATION:
        _require_imitation(f"baselines.{name}")
    return getattr(importlib.import_module(f"rlfd_gym.baselines.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
