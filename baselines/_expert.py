"""What every baseline learns from: the expert's occupancy, given or estimated."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
from rlfd_gym.mdp.occupancy import check_occupancy
from rlfd_gym.mdp.tables import TabularMDP


def expert_occupancy(mdp: TabularMDP, expert: Any) -> FloatArray:
    """Return μ_E over pairs.

    This is `expert` itself if it is a vector or a table of numbers; otherwise it is estimated from
    the demonstrations.

    >>> rows = [[1, 0], [0, 1], [0, 1]]
    >>> mdp = TabularMDP(rows, [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    >>> expert_occupancy(mdp, [0.5, 0.25, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    if is_occupancy(expert):
        return check_occupancy(mdp, expert, "expert")
    return occupancy_from_demonstrations(expert, mdp)


def is_occupancy(expert: Any) -> bool:
    """Return whether the expert is given as a vector or a table, not by demonstrations."""
    if isinstance(expert, np.ndarray):
        return expert.ndim in (1, 2) and expert.dtype.kind in "biuf"
    return isinstance(expert, (list, tuple)) and len(expert) > 0 and all(isinstance(x, Real) for x in expert)
