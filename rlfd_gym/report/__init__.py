"""Results for people to look at: plots, pages of HTML, tables and CSV files.

`plots` draws figures, `html` writes pages, and `tables` writes CSV files and computes intervals.
`rlfd_gym.report.log` writes the report on what was learned from a log, and
`rlfd_gym.report.guarantees` draws what is guaranteed over ranges of prices.
"""

from __future__ import annotations

from rlfd_gym.report import plots
from rlfd_gym.report.html import Cell, Report
from rlfd_gym.report.tables import half_width, mean_and_margin, write, write_csv

__all__ = ["Cell", "Report", "half_width", "mean_and_margin", "plots", "write", "write_csv"]
