"""Apprenticeship learning from imperfect experts with prior beliefs, for Gymnasium and imitation.

Importing this package registers its environments with Gymnasium and loads nothing heavy: the public names
below are imported on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from rlfd_gym.registration import register_envs

if TYPE_CHECKING:
    from rlfd_gym.adapters import cost_of_env
    from rlfd_gym.demonstrations import occupancy_from_demonstrations
    from rlfd_gym.exact import project_prior, solve_exact
    from rlfd_gym.experts import demonstrate, noisy_expert
    from rlfd_gym.forward import Plan
    from rlfd_gym.logs import Log, read_log
    from rlfd_gym.mdp import TabularMDP
    from rlfd_gym.oracles import BlackBoxProblem, SampledExpert
    from rlfd_gym.problem import RLfDProblem
    from rlfd_gym.selection import alpha_path, occupancy_noise, select_alpha
    from rlfd_gym.smd import solve_smd
    from rlfd_gym.solution import History, Solution
    from rlfd_gym.sparse import pinning_alpha, share_at_prior, solve_reweighted
    from rlfd_gym.trainer import RLfDTrainer

__version__ = "0.1.0"

__all__ = [
    "BlackBoxProblem",
    "History",
    "Log",
    "Plan",
    "RLfDProblem",
    "RLfDTrainer",
    "SampledExpert",
    "Solution",
    "TabularMDP",
    "alpha_path",
    "cost_of_env",
    "demonstrate",
    "noisy_expert",
    "occupancy_from_demonstrations",
    "occupancy_noise",
    "pinning_alpha",
    "project_prior",
    "read_log",
    "register_envs",
    "select_alpha",
    "share_at_prior",
    "solve_exact",
    "solve_reweighted",
    "solve_smd",
]

_HOME = {
    "BlackBoxProblem": "oracles",
    "History": "solution",
    "Log": "logs",
    "Plan": "forward",
    "RLfDProblem": "problem",
    "RLfDTrainer": "trainer",
    "SampledExpert": "oracles",
    "Solution": "solution",
    "TabularMDP": "mdp",
    "alpha_path": "selection",
    "cost_of_env": "adapters",
    "demonstrate": "experts",
    "noisy_expert": "experts",
    "occupancy_from_demonstrations": "demonstrations",
    "occupancy_noise": "selection",
    "pinning_alpha": "sparse",
    "project_prior": "exact",
    "read_log": "logs",
    "select_alpha": "selection",
    "share_at_prior": "sparse",
    "solve_exact": "exact",
    "solve_reweighted": "sparse",
    "solve_smd": "smd",
}
_NEEDS_IMITATION = {"RLfDTrainer"}
_ROOMS = ("baselines", "compare", "envs", "plots")

register_envs()


def __getattr__(name: str) -> Any:
    if name in _NEEDS_IMITATION:
        _require_imitation(name)
    if name in _ROOMS:
        return importlib.import_module(f"rlfd_gym.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'rlfd_gym' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"rlfd_gym.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_ROOMS})


def _require_imitation(name: str) -> None:
    """Say what to install, if the extra is missing."""
    try:
        found = importlib.util.find_spec("imitation") is not None
    except ValueError:  # a None in sys.modules: somebody has blocked the import
        found = False
    if not found:
        raise ImportError(
            f'rlfd_gym.{name} needs imitation and stable-baselines3: pip install "rlfd-gym[imitation]"',
            name="imitation",
        )
