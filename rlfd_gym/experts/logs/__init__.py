"""Estimates of a model and an expert from logged rows: `read_log` and `read_costs`."""

from __future__ import annotations

from rlfd_gym.experts.logs.estimate import EXPERTS, UNVISITED, Log, read_costs, read_log
from rlfd_gym.experts.logs.report import LogReport

__all__ = ["EXPERTS", "UNVISITED", "Log", "LogReport", "read_costs", "read_log"]
