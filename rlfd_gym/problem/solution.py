"""What a solver or a baseline returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray


def _empty() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class History:
    """How a solve went, at the recorded iterations; means over the runs where there are several."""

    iteration: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    duality_gap: FloatArray = field(default_factory=_empty)
    """The gap of each run's average so far, averaged over runs: what the convergence theorem bounds."""
    duality_gap_std: FloatArray = field(default_factory=_empty)
    """Its standard deviation over runs."""
    change_cost: FloatArray = field(default_factory=_empty)
    """ℓ1 distance between the average after this iteration and the one before, as in the paper's figures."""
    change_value: FloatArray = field(default_factory=_empty)
    change_occupancy: FloatArray = field(default_factory=_empty)
    change_weights: FloatArray = field(default_factory=_empty)
    """Empty for methods without weights."""

    def __len__(self) -> int:
        """How many iterations were recorded."""
        return len(self.iteration)


@dataclass(frozen=True, eq=False)
class Solution:
    """A learned cost and policy, with a certificate where the method has one.

    `upper` and `lower` bound the optimum of the problem that was solved, and `duality_gap` is their difference; they
    are `nan` where the method has no such bounds. `cost` and `value` are `None` for methods that learn a policy only.
    """

    policy: FloatArray = field(repr=False)
    """Over pairs: conditional probabilities."""
    occupancy: FloatArray = field(repr=False)
    """μ over pairs, in the simplex. The occupancy of `policy` only up to the accuracy of the solve."""
    cost: FloatArray | None = field(default=None, repr=False)
    weights: FloatArray | None = field(default=None, repr=False)
    """w, for methods that learn a cost Cw from a basis C; `None` for the others."""
    value: FloatArray | None = field(default=None, repr=False)
    upper: float = float("nan")
    lower: float = float("nan")
    method: str = ""
    n_iterations: int = 0
    finished: bool = True
    """False after an interrupt: the answer is what there was by then."""
    history: History = field(default_factory=History, repr=False)
    details: dict[str, Any] = field(default_factory=dict, repr=False)
    """What only this method has to say, by name."""

    @property
    def duality_gap(self) -> float:
        """upper - lower: how far from optimal the answer is at most."""
        return self.upper - self.lower
