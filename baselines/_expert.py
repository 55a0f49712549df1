"""What every baseline learns from: the expert's occupancy, given or estimated."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.demonstrations import demonstrated_pairs, estimate_occupancy, read_demonstrations
from rlfd_gym.mdp.occupancy import check_occupancy
from rlfd_gym.mdp.tables import TabularMDP


def expert_occupancy(mdp: TabularMDP, expert: Any, prior: ArrayLike | None = None) -> FloatArray:
    """Return μ_E over pairs.

    This is `expert` itself if it is a vector or a table of numbers; otherwise it is estimated from
    the demonstrations, as the occupancy of the expert's estimated policy (see
    `rlfd_gym.experts.demonstrations`). In states that no demonstration leaves, the expert is taken
    to be optimal for the prior by methods that know one, as RLfD is, and to act uniformly by the
    others.

    >>> rows = [[1, 0], [0, 1], [0, 1]]
    >>> mdp = TabularMDP(rows, [0, 0, 1], [0, 1, 0], initial=[1, 0], discount=0.5)
    >>> expert_occupancy(mdp, [0.5, 0.25, 0.25]).tolist()
    [0.5, 0.25, 0.25]
    """
    return seen_expert(mdp, expert, prior)[0]


def seen_expert(mdp: TabularMDP, expert: Any, prior: ArrayLike | None = None) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return μ_E over pairs, and in which states the expert was seen to act.

    These are the states with mass, or those that a demonstration leaves: the estimate has mass in
    others too.
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    if is_occupancy(expert) or isinstance(expert, np.ndarray):
        occupancy = check_occupancy(mdp, expert, "expert")
        return occupancy, mdp.sum_by_state(occupancy) > 0
    read = read_demonstrations(expert)
    seen = np.zeros(mdp.n_states, dtype=bool)
    seen[mdp.pair_states[demonstrated_pairs(read, mdp)]] = True
    return estimate_occupancy(read, mdp, prior=prior), seen


def is_occupancy(expert: Any) -> bool:
    """Return whether the expert is given as a vector or a table, not by demonstrations."""
    if isinstance(expert, np.ndarray):
        return expert.ndim in (1, 2) and expert.dtype.kind in "biuf"
    return isinstance(expert, (list, tuple)) and len(expert) > 0 and all(isinstance(x, Real) for x in expert)
