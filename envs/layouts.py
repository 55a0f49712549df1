"""Layouts of obstacles and goals in a gridworld: the paper's, an ASCII map, or random cells.

A cell is (row, column), with (0, 0) at the bottom left. Each function returns the two lists that
`rlfd_gym/WindyGridworld-v0` takes as `obstacles` and `goals`.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym import _checks

Cells = list[tuple[int, int]]

FREE, OBSTACLE, GOAL = ".", "#", "G"


def paper_layout(height: int, width: int) -> tuple[Cells, Cells]:
    """Return the paper's layout.

    Obstacles are on row H//2 and goals on the top row, in the first int(W/1.2) columns.

    >>> obstacles, goals = paper_layout(10, 10)
    >>> obstacles[0], obstacles[-1], goals[-1]
    ((5, 0), (5, 7), (9, 7))
    """
    rows, width = grid_size(height, width)
    columns = range(int(width / 1.2))
    if rows < 3 or width < 2:
        raise ValueError(
            f"height, width: the paper's layout needs at least 3 rows and 2 columns, got {height} x {width}; "
            "give obstacles and goals"
        )
    return [(height // 2, c) for c in columns], [(height - 1, c) for c in columns]


def grid_size(height: int, width: int) -> tuple[int, int]:
    """Return the size of a grid, which has as many cells as a table may have states."""
    rows = _checks.integer("height", height, 1, _checks.MOST_STATES)
    return rows, _checks.integer("width", width, 1, _checks.MOST_STATES // rows)


def random_layout(
    height: int, width: int, seed: int | np.random.Generator, *, goal_share: float = 0.025, obstacle_share: float = 0.05
) -> tuple[Cells, Cells]:
    """Draw distinct cells uniformly.

    By default 5% are obstacles and 2.5% goals, as in the paper's appendix; there is at least one
    of each.

    >>> obstacles, goals = random_layout(10, 10, seed=1)
    >>> len(obstacles), len(goals)
    (5, 2)
    """
    height, width = grid_size(height, width)
    n_cells = height * width
    rng = _checks.generator("seed", seed)
    n_obstacles = max(1, round(_checks.number("obstacle_share", obstacle_share, 0.0, 1.0) * n_cells))
    n_goals = max(1, round(_checks.number("goal_share", goal_share, 0.0, 1.0) * n_cells))
    if n_obstacles + n_goals > n_cells:
        raise ValueError(
            f"goal_share, obstacle_share: {n_goals} goals and {n_obstacles} obstacles do not fit into "
            f"{height} x {width} cells"
        )
    drawn = rng.choice(n_cells, size=n_obstacles + n_goals, replace=False)
    cells = sorted(divmod(int(cell), width) for cell in drawn[:n_obstacles])
    return cells, sorted(divmod(int(cell), width) for cell in drawn[n_obstacles:])


def ascii_layout(ascii_map: str) -> tuple[int, int, Cells, Cells]:
    """Return (height, width, obstacles, goals) of a map.

    In it `.` is a free cell, `#` an obstacle and `G` a goal. The first line is the top row.

    >>> ascii_layout('''
    ...     G..
    ...     .#.
    ... ''')
    (2, 3, [(0, 1)], [(1, 0)])
    """
    if not isinstance(ascii_map, str):
        raise TypeError(f"ascii_map must be a string, got {type(ascii_map).__name__}")
    lines = [line.strip() for line in ascii_map.strip().splitlines()]
    if not lines or len({len(line) for line in lines}) != 1:
        raise ValueError(f"ascii_map must have lines of one length, got lengths {[len(line) for line in lines]}")
    unknown = set("".join(lines)) - {FREE, OBSTACLE, GOAL}
    if unknown:
        raise ValueError(f"ascii_map may hold {FREE} {OBSTACLE} {GOAL} only, got {sorted(unknown)}")
    table = np.array([list(line) for line in reversed(lines)])
    obstacles, goals = (
        [(int(row), int(column)) for row, column in np.argwhere(table == mark)] for mark in (OBSTACLE, GOAL)
    )
    return *table.shape, obstacles, goals
