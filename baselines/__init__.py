"""Classic apprenticeship-learning methods, for comparison.

Each is a function of an MDP, an expert (an occupancy over pairs, or demonstrations) and, where the
method needs one, a basis of costs or a prior; each returns a `rlfd_gym.Solution`, or a `rlfd_gym.Apprentice`
where it learns no cost. Those that wrap `imitation` are imported on first use, so that the others
do not load torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import lazy_loader

from rlfd_gym import require_imitation
from rlfd_gym.baselines.bayesian_irl import bayesian_irl
from rlfd_gym.baselines.behavioural_cloning import behavioural_cloning
from rlfd_gym.baselines.broil import broil
from rlfd_gym.baselines.drex import drex
from rlfd_gym.baselines.lp_irl import lp_irl
from rlfd_gym.baselines.lpal import lpal
from rlfd_gym.baselines.majority import majority
from rlfd_gym.baselines.max_margin import max_margin
from rlfd_gym.baselines.mce_irl import mce_irl
from rlfd_gym.baselines.mixture import mixture
from rlfd_gym.baselines.mwal import mwal
from rlfd_gym.baselines.posterior import Posterior
from rlfd_gym.baselines.projection import projection
from rlfd_gym.baselines.smd_hull import solve_smd_hull
from rlfd_gym.baselines.spibb import spibb
from rlfd_gym.beliefs import scale_basis
from rlfd_gym.problem import HullProblem

if TYPE_CHECKING:
    from rlfd_gym.baselines.cloning_network import cloning_network
    from rlfd_gym.baselines.gail import gail

__all__ = [
    "HullProblem",
    "Posterior",
    "bayesian_irl",
    "behavioural_cloning",
    "broil",
    "cloning_network",
    "drex",
    "gail",
    "lp_irl",
    "lpal",
    "majority",
    "max_margin",
    "mce_irl",
    "mixture",
    "mwal",
    "projection",
    "scale_basis",
    "solve_smd_hull",
    "spibb",
]

NEED_IMITATION = ("cloning_network", "gail")  # each in a module of its own name
_lazily, *_ = lazy_loader.attach(__name__, submod_attrs={name: [name] for name in NEED_IMITATION})


def __getattr__(name: str) -> Any:
    if name not in NEED_IMITATION:
        raise AttributeError(f"module 'rlfd_gym.baselines' has no attribute {name!r}")
    require_imitation(f"rlfd_gym.baselines.{name}")
    return _lazily(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *NEED_IMITATION})
