"""Classic apprenticeship-learning methods, for comparison."""

from rlfd_gym.baselines.smd_hull import solve_smd_hull
from rlfd_gym.hull import HullProblem, scale_basis

__all__ = ["HullProblem", "scale_basis", "solve_smd_hull"]
