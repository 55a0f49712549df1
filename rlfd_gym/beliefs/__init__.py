"""Beliefs about the cost, one module for each, and the bases that hulls are made of.

`belief` defines the interface of all beliefs. A new belief needs one more module, and one more
line here.
"""

from __future__ import annotations

from rlfd_gym.beliefs.ball import Ball
from rlfd_gym.beliefs.basis import check_basis, scale_basis
from rlfd_gym.beliefs.belief import Belief
from rlfd_gym.beliefs.hull import Hull
from rlfd_gym.beliefs.intervals import Intervals
from rlfd_gym.beliefs.near_prior import NearPrior
from rlfd_gym.beliefs.prices import Prices

__all__ = ["Ball", "Belief", "Hull", "Intervals", "NearPrior", "Prices", "check_basis", "scale_basis"]
