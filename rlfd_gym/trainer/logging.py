"""A logger for imitation's algorithms that says nothing."""

from __future__ import annotations

from imitation.util.logger import HierarchicalLogger
from stable_baselines3.common.logger import Logger


def quiet_logger(folder: str | None = None) -> HierarchicalLogger:
    """Return a logger that says nothing; some algorithms want it to have a folder nevertheless.

    Example:
        >>> quiet_logger().info("nobody reads this")
    """
    return HierarchicalLogger(Logger(folder=folder, output_formats=[]), format_strs=[])
