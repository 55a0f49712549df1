"""SMD-RLfD, Algorithm 1 of the paper: `solve_smd`."""

from __future__ import annotations

from rlfd_gym.solvers.smd.checkpoints import Checkpoint, SmdState
from rlfd_gym.solvers.smd.runs import keeps_runs
from rlfd_gym.solvers.smd.solve import Seed, solve_smd

__all__ = ["Checkpoint", "Seed", "SmdState", "keeps_runs", "solve_smd"]
