"""Logs small enough to be counted by hand, and how tests write and read them."""

from __future__ import annotations

import pytest

HEADER = "day,shop,stock,order,next_stock\n"
NAMES = {"state": "stock", "action": "order", "next_state": "next_stock"}
EPISODES = {"episode": "shop", "time": "day"}

# In state 0, action 0 led to 0, 0 and 1, and action 1 to 2; in state 1, action 0 led to 0. State 2 was never left.
TINY = ([0, 0, 0, 0, 1], [0, 0, 0, 1, 0], [0, 0, 1, 2, 0])

early_ends = pytest.mark.filterwarnings("ignore:demonstrations end early")
bad_rows = pytest.mark.filterwarnings("ignore:.*logged rows are bad")


def written(folder, body, header=HEADER, name="log.csv"):
    """Write a CSV file and return its path."""
    path = folder / name
    path.write_text(header + body)
    return path


def told(log):
    """The bad rows by reason: how many, and the first of them."""
    return {kind.reason: (kind.count, kind.first) for kind in log.report.bad}
