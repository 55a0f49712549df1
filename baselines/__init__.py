"""Classic apprenticeship-learning methods, for comparison.

Each is a function of an MDP, an expert (an occupancy over pairs, or demonstrations) and, where the method needs one, a
basis of costs; each returns a `rlfd_gym.Solution`. Those that wrap `imitation` are imported on first use, so that the
others do not load torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rlfd_gym import require_imitation
from rlfd_gym.baselines.behavioural_cloning import behavioural_cloning
from rlfd_gym.baselines.lp_irl import lp_irl
from rlfd_gym.baselines.lpal import lpal
from rlfd_gym.baselines.max_margin import max_margin
from rlfd_gym.baselines.mwal import mwal
from rlfd_gym.baselines.projection import projection
from rlfd_gym.baselines.smd_hull import solve_smd_hull
from rlfd_gym.beliefs import scale_basis
from rlfd_gym.problem import HullProblem

if TYPE_CHECKING:
    from rlfd_gym.baselines.causal_entropy import mce_irl
    from rlfd_gym.baselines.networks import cloning_network, gail

__all__ = [
    "HullProblem",
    "behavioural_cloning",
    "cloning_network",
    "gail",
    "lp_irl",
    "lpal",
    "max_margin",
    "mce_irl",
    "mwal",
    "projection",
    "scale_basis",
    "solve_smd_hull",
]

_HOME = {"cloning_network": "networks", "gail": "networks", "mce_irl": "causal_entropy"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rlfd_gym.baselines' has no attribute {name!r}")
    require_imitation(f"rlfd_gym.baselines.{name}")
    return getattr(importlib.import_module(f"rlfd_gym.baselines.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
