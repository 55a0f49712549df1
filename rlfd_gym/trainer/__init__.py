"""The trainer for imitation's pipelines: `RLfDTrainer`, its policy and its reward net."""

from __future__ import annotations

from rlfd_gym.trainer.policy import TablePolicy
from rlfd_gym.trainer.reward import TableRewardNet
from rlfd_gym.trainer.trainer import RLfDTrainer

__all__ = ["RLfDTrainer", "TablePolicy", "TableRewardNet"]
