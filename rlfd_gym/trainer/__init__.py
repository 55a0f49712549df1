"""The trainer for imitation's pipelines: `RLfDTrainer`, its policy, its reward net and a logger."""

from __future__ import annotations

from rlfd_gym.trainer.logging import quiet_logger
from rlfd_gym.trainer.policy import TablePolicy
from rlfd_gym.trainer.reward import TableRewardNet
from rlfd_gym.trainer.trainer import RLfDTrainer

__all__ = ["RLfDTrainer", "TablePolicy", "TableRewardNet", "quiet_logger"]
