"""Beliefs as a header of plain values and named arrays, for files, and back.

A belief is restored through its constructor, so whatever a file says is checked as if it were
typed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym.beliefs.ball import Ball
from rlfd_gym.beliefs.belief import Belief
from rlfd_gym.beliefs.hull import Hull
from rlfd_gym.beliefs.intervals import Intervals
from rlfd_gym.beliefs.near_prior import NearPrior
from rlfd_gym.beliefs.prices import Prices
from rlfd_gym.experts.scale import CostScale

ARGUMENTS: dict[type[Belief], tuple[str, ...]] = {
    NearPrior: ("prior", "alpha", "norm", "weights", "outside_box"),
    Intervals: ("low", "high"),
    Prices: ("features", "low", "high", "offset", "prior", "alpha", "names"),
    Ball: ("prior", "radius"),
    Hull: ("basis", "prior", "alpha"),
}
"""What the constructor of each belief takes, apart from the scale."""


def pack(belief: Belief) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return (header, arrays) of one of the library's own beliefs.

    >>> header, arrays = pack(Ball([0.5, -0.5], radius=0.25))
    >>> header, sorted(arrays)
    ({'kind': 'Ball', 'scale': None, 'radius': 0.25}, ['prior'])
    """
    if type(belief) not in ARGUMENTS:
        known = ", ".join(kind.__name__ for kind in ARGUMENTS)
        raise TypeError(f"a belief in a file must be one of {known}; got {type(belief).__name__}")
    scale = None if belief.scale is None else [belief.scale.low, belief.scale.high]
    values = {name: getattr(belief, name) for name in ARGUMENTS[type(belief)]}
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in values.items() if name not in arrays}
    return {"kind": type(belief).__name__, "scale": scale, **plain}, arrays


def unpack(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Belief:
    """Return the belief that `pack` took apart, in learning units, with its scale remembered.

    >>> unpack(*pack(Ball([0.5, -0.5], radius=0.25)))
    Ball(alpha=0.0, scale=None, radius=0.25)
    """
    plain = dict(header)
    kinds = {kind.__name__: kind for kind in ARGUMENTS}
    kind = kinds[_checks.one_of("belief", plain.pop("kind", None), kinds)]
    scale = plain.pop("scale", None)
    belief: Belief = kind(**plain, **arrays)
    return belief if scale is None else belief.stated_in(CostScale(*scale))
