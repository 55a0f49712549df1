"""Results for people to look at: plots, pages of HTML, tables and CSV files.

`plots` draws figures, `html` writes pages, `tables` writes CSV files and computes intervals, and
`console` runs scripts whose printing does not fail. `check_folder` asks whether a folder can be
written to, before the work that it is for.
`rlfd_gym.report.log` writes the report on what was learned from a log, and
`rlfd_gym.report.guarantees` draws what is guaranteed over ranges of prices;
`rlfd_gym.report.uncertainty` draws how sure what was learned is.
"""

from __future__ import annotations

from rlfd_gym.report import plots
from rlfd_gym.report.console import run_script
from rlfd_gym.report.html import Cell, Report
from rlfd_gym.report.tables import check_folder, half_width, mean_and_margin, read_csv, write, write_csv

__all__ = [
    "Cell",
    "Report",
    "check_folder",
    "half_width",
    "mean_and_margin",
    "plots",
    "read_csv",
    "run_script",
    "write",
    "write_csv",
]
