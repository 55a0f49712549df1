"""Classic apprenticeship-learning methods, for comparison."""

from rlfd_gym.baselines.smd_hull import solve_smd_hull
from rlfd_gym.basis import scale_basis
from rlfd_gym.hull import HullProblem

__all__ = ["HullProblem", "scale_basis", "solve_smd_hull"]
