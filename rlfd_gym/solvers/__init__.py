"""Solvers: exact programs, the matrix-free method, and Algorithm 1 in `smd`."""

from __future__ import annotations

from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.experts import solve_experts
from rlfd_gym.solvers.projection import project_prior
from rlfd_gym.solvers.reweighted import pinning_alpha, share_at_prior, solve_reweighted
from rlfd_gym.solvers.smd import solve_smd

__all__ = [
    "pinning_alpha",
    "project_prior",
    "share_at_prior",
    "solve_exact",
    "solve_experts",
    "solve_reweighted",
    "solve_smd",
]
