"""Estimates of a model and an expert from logged rows: `read_log` and `read_costs`."""

from __future__ import annotations

from rlfd_gym.experts.logs.estimate import ENDS, EXPERTS, UNVISITED
from rlfd_gym.experts.logs.features import log_features
from rlfd_gym.experts.logs.log import Log, Logged
from rlfd_gym.experts.logs.reading import read_costs, read_log
from rlfd_gym.experts.logs.report import LogReport
from rlfd_gym.experts.logs.values import Dialect

__all__ = [
    "ENDS",
    "EXPERTS",
    "UNVISITED",
    "Dialect",
    "Log",
    "LogReport",
    "Logged",
    "log_features",
    "read_costs",
    "read_log",
]
