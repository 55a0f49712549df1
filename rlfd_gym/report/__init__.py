"""Results for people to look at: plots, pages of HTML, tables and CSV files.

`plots` draws figures, `html` writes pages, `tables` writes CSV files and computes intervals, and
`console` runs scripts whose printing does not fail.
`rlfd_gym.report.log` writes the report on what was learned from a log.
"""

from __future__ import annotations

from rlfd_gym.report import plots
from rlfd_gym.report.console import run_script
from rlfd_gym.report.html import Cell, Report
from rlfd_gym.report.tables import half_width, mean_and_margin, write, write_csv

__all__ = ["Cell", "Report", "half_width", "mean_and_margin", "plots", "run_script", "write", "write_csv"]
