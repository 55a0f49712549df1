"""Learning from an oracle alone, with a certificate that holds with a stated probability."""

from rlfd_gym.solvers.sampled.solve import solve_sampled

__all__ = ["solve_sampled"]
