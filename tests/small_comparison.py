"""A small comparison that several tests look at."""

from __future__ import annotations

SMALL = {
    "tasks": ["inventory", "windy"],
    "methods": ["rlfd-exact", "rlfd-smd", "lpal", "cloning"],
    "seeds": 2,
    "demonstrations": [2, "exact"],
    "alphas": [0.1, 1.0],
    "iterations": 2000,
    "runs": 1,
}
TINY = SMALL | {"tasks": ["inventory"], "methods": ["rlfd-exact", "cloning"], "alphas": [1.0]}


def values(result):
    """All that must not depend on how the cells were run."""
    return [{name: value for name, value in row.values().items() if name != "seconds"} for row in result.rows]
