"""What is believed about the cost."""

from __future__ import annotations

from rlfd_gym.beliefs.basis import check_basis, scale_basis

__all__ = ["check_basis", "scale_basis"]
