"""What every baseline learns from: the expert's occupancy, given as such or estimated from demonstrations."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
from rlfd_gym.mdp.tables import TabularMDP


def expert_occupancy(mdp: TabularMDP, expert: Any) -> FloatArray:
    """μ_E over pairs: `expert` itself where it is a vector of numbers, else what its demonstrations show.

    >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    >>> expert_occupancy(mdp, [0.5, 0.25, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    """
    if not isinstance(mdp, TabularMDP):
        raise TypeError(f"mdp must be a TabularMDP, got {type(mdp).__name__}; see TabularMDP.from_env")
    if is_occupancy(expert):
        return _checks.distribution("expert", expert, mdp.n_pairs, "feasible state-action pair (mdp.n_pairs)")
    return occupancy_from_demonstrations(expert, mdp)


def is_occupancy(expert: Any) -> bool:
    """Whether the expert is given as a vector of numbers, rather than by demonstrations."""
    if isinstance(expert, np.ndarray):
        return expert.ndim == 1 and expert.dtype.kind in "biuf"
    return isinstance(expert, (list, tuple)) and len(expert) > 0 and all(isinstance(x, Real) for x in expert)
