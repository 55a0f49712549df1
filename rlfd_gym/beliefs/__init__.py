"""What is believed about the cost: one module a belief, and the bases that hulls are made of.

`belief` says what every belief has to answer; the next belief is one more module, and one more
line here.
"""

from __future__ import annotations

from rlfd_gym.beliefs.basis import check_basis, scale_basis
from rlfd_gym.beliefs.belief import Belief
from rlfd_gym.beliefs.hull import Hull
from rlfd_gym.beliefs.near_prior import NearPrior

__all__ = ["Belief", "Hull", "NearPrior", "check_basis", "scale_basis"]
