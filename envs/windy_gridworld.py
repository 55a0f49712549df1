"""The paper's windy gridworld.

Cell (row, column), with (0, 0) at the bottom left, is the state row · width + column. An action is
a move: up (+1, 0), down (-1, 0), left (0, -1) or right (0, +1). With probability `wind` a drift
(0, -1) is added to it. If the combined move would leave the grid, the agent stays where it is.
Goals are absorbing. The cost depends on the cell alone: 1 on obstacles, -1 on goals, 0 elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs.prices import Prices, Range
from rlfd_gym.envs.layouts import FREE, GOAL, OBSTACLE, Cells, ascii_layout, grid_size, paper_layout, random_layout
from rlfd_gym.envs.rendering import draw_grid
from rlfd_gym.envs.tabular import TabularEnv
from rlfd_gym.mdp.tables import TabularMDP

ACTIONS = ("up", "down", "left", "right")
MOVES = np.array([(1, 0), (-1, 0), (0, -1), (0, 1)])
DRIFT = np.array((0, -1))


class WindyGridworldEnv(TabularEnv):
    """Reach a goal, avoid the obstacles, mind the wind: the gridworld of Junca & Leiva.

    ## Description
    An agent moves on a grid of `height` x `width` cells. A wind blows to the left: with
    probability `wind` a move is shifted by one column. Obstacles can be walked on, at a price;
    goals are never left again.

    ## Action Space
    `Discrete(4)`: 0 up, 1 down, 2 left, 3 right. All four are feasible everywhere.

    ## Observation Space
    `Discrete(height * width)`: row * width + column, with rows counted from the bottom; see
    `cell_of` and `state_of`.

    ## Starting State
    Uniform over all cells, or `reset(options={"state": 7})`.

    ## Rewards
    Minus the cost of the cell that the agent moves from: -1 on an obstacle, +1 on a goal, 0
    elsewhere.

    ## Episode End
    Episodes never terminate, as goals are absorbing; `gym.make` truncates them after 30 steps
    (0.7^30 < 1e-4). With another discount, pass `max_episode_steps=env.unwrapped.horizon`.

    ## Information
    `action_mask` (int8, over actions), all ones.

    ## Arguments
    * `height=10`, `width=10`.
    * `obstacles`, `goals`: lists of cells. The default is the paper's layout, with obstacles on
      row height//2 and goals on the top row, in the first int(width/1.2) columns. `height=6` and
      `width=6` give the grid of the paper's duality-gap study.
    * `ascii_map`: the layout as text instead, where `.` is a free cell, `#` an obstacle and `G` a
      goal, and the first line is the top row.
    * `layout_seed`: the seed of a random layout instead, with 2.5% goals and 5% obstacles, as in
      the paper's appendix.
    * `wind=0.2`, `discount=0.7`.
    * `render_mode`: `"ansi"`, `"rgb_array"` or `"human"`.

    ## Version History
    * v0: the first version.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
        >>> round(env.mdp.optimal(env.cost).expected_cost, 4)
        -0.243
    """

    def __init__(
        self,
        height: int | None = None,
        width: int | None = None,
        obstacles: Sequence[tuple[int, int]] | None = None,
        goals: Sequence[tuple[int, int]] | None = None,
        wind: float = 0.2,
        discount: float = 0.7,
        *,
        ascii_map: str | None = None,
        layout_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Build the tables."""
        self.wind = _checks.number("wind", wind, 0.0, 1.0)
        self.height, self.width, obstacle_cells, goal_cells = _layout(
            height, width, obstacles, goals, ascii_map, layout_seed
        )
        self.cells = np.zeros((self.height, self.width), dtype=np.int8)
        for name, chosen, mark in (("obstacles", obstacle_cells, 1), ("goals", goal_cells, -1)):
            rows, columns = self._cell_arrays(name, chosen)
            if mark == -1 and (self.cells[rows, columns] == 1).any():
                clash = np.flatnonzero(self.cells[rows, columns] == 1)[0]
                raise ValueError(f"goals: cell {(int(rows[clash]), int(columns[clash]))} is an obstacle too")
            self.cells[rows, columns] = mark
        self.cells.flags.writeable = False

        n_states = self.height * self.width
        self._calm = self._arrivals(np.zeros_like(DRIFT))
        self._windy = self._arrivals(DRIFT)
        targets = np.stack([self._calm, self._windy], axis=1)
        chances = np.broadcast_to([1 - self.wind, self.wind], targets.shape)
        transitions = sp.csr_array(
            (chances.ravel(), targets.ravel(), np.arange(0, targets.size + 1, 2)),
            shape=(4 * n_states, n_states),
        )
        states = np.repeat(np.arange(n_states), 4)
        mdp = TabularMDP(transitions, states, np.tile(np.arange(4), n_states), None, discount, 4)
        super().__init__(mdp, self.cells.ravel().repeat(4).astype(np.float64), render_mode)

    @property
    def obstacles(self) -> Cells:
        """The obstacles' cells."""
        return [(int(row), int(column)) for row, column in np.argwhere(self.cells == 1)]

    @property
    def goals(self) -> Cells:
        """The goals' cells."""
        return [(int(row), int(column)) for row, column in np.argwhere(self.cells == -1)]

    def state_of(self, row: int, column: int) -> int:
        """Return the state of a cell."""
        cell = _checks.integer("row", row, 0), _checks.integer("column", column, 0)
        rows, columns = self._cell_arrays("row, column", [cell])
        return int(rows[0] * self.width + columns[0])

    def cell_of(self, state: int) -> tuple[int, int]:
        """Return the (row, column) of a state."""
        return divmod(_checks.integer("state", state, 0, self.height * self.width - 1), self.width)

    def partial_prior(self, share: float, seed: int) -> FloatArray:
        """Draw the paper's prior.

        It is the true cost on a random share of the obstacles and of the goals, and zero
        elsewhere.
        """
        _checks.number("share", share, 0.0, 1.0)
        rng = _checks.generator("seed", seed)
        known = np.zeros(self.mdp.n_states)
        for mark in (1, -1):
            states = np.flatnonzero(self.cells.ravel() == mark)
            known[rng.choice(states, size=round(share * len(states)), replace=False)] = mark
        return known[self.mdp.pair_states]

    def price_ranges(self, *, obstacle: Range, goal: Range, step: Range = 0.0) -> Prices:
        """State what is believed about the costs of obstacles, goals and free cells.

        Each is a range (low, high), or a number if it is known; the truth is 1, -1 and 0. See
        `rlfd_gym.beliefs.Prices`.

        >>> WindyGridworldEnv().price_ranges(obstacle=(0.2, 1), goal=-1).names
        ('obstacle', 'goal', 'step')
        """
        kinds = np.array([1, -1, 0]) == self.cells.ravel()[self.mdp.pair_states, None]
        return Prices.named(kinds.astype(np.float64), {"obstacle": obstacle, "goal": goal, "step": step})

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw next states; an unknown state or action raises a `ValueError`."""
        pairs = self.mdp.pair_index(states, actions)
        _checks.instance("rng", rng, np.random.Generator)
        blows = rng.random(size=pairs.shape) < self.wind
        return np.asarray(np.where(blows, self._windy[pairs], self._calm[pairs]), dtype=np.int64)

    def render_text(self) -> str:
        """Return the grid as text, with `A` for the agent."""
        marks = np.array([FREE, OBSTACLE, GOAL])[self.cells]  # -1 indexes the last mark, the goal
        marks[self.cell_of(self.state or 0)] = "A"
        text = "\n".join("".join(row) for row in marks[::-1])
        last = "" if self.last_action is None else f"({ACTIONS[self.last_action]})"
        return f"{last}\n{text}\n"

    def render_frame(self) -> NDArray[np.uint8]:
        """Draw the grid from above: obstacles vermilion, goals green, the agent a blue disc."""
        return draw_grid(self.cells, self.cell_of(self.state or 0))

    def _advance(self, state: int, action: int, pair: int) -> int:
        """Draw as `sample_next` does, for one pair."""
        blows = self.np_random.random() < self.wind
        return int(self._windy[pair] if blows else self._calm[pair])

    def _arrivals(self, drift: IntArray) -> NDArray[np.int32]:
        """Return where each pair leads under a given drift."""
        row, column = np.divmod(np.arange(self.height * self.width, dtype=np.int32)[:, None], self.width)
        to_row, to_column = row + MOVES[:, 0] + drift[0], column + MOVES[:, 1] + drift[1]
        inside = (to_row >= 0) & (to_row < self.height) & (to_column >= 0) & (to_column < self.width)
        moves = inside & (self.cells.ravel()[:, None] != -1)
        return np.where(moves, to_row * self.width + to_column, row * self.width + column).astype(np.int32).ravel()

    def _cell_arrays(self, name: str, cells: Sequence[tuple[int, int]]) -> tuple[IntArray, IntArray]:
        """Return the rows and columns of cells, or raise an error if one is not on the grid."""
        array = _checks.integers(name, sorted(cells) if isinstance(cells, (set, frozenset)) else cells)
        if array.size == 0:
            array = array.reshape(0, 2)
        if array.ndim != 2 or array.shape[1] != 2:
            raise ValueError(f"{name} must be a list of (row, column) cells, got an array of shape {array.shape}")
        bad = np.flatnonzero((array < 0).any(axis=1) | (array >= [self.height, self.width]).any(axis=1))
        if bad.size:
            row, column = array[bad[0]]
            raise ValueError(
                f"{name}: cell {(int(row), int(column))} is not on the {self.height} x {self.width} grid; "
                f"rows are 0..{self.height - 1} and columns 0..{self.width - 1}"
            )
        return array[:, 0], array[:, 1]


def _layout(
    height: int | None,
    width: int | None,
    obstacles: Sequence[tuple[int, int]] | None,
    goals: Sequence[tuple[int, int]] | None,
    ascii_map: str | None,
    layout_seed: int | None,
) -> tuple[int, int, Sequence[tuple[int, int]], Sequence[tuple[int, int]]]:
    """Return (height, width, obstacles, goals) of the one layout that the arguments describe."""
    by_cells = obstacles is not None or goals is not None
    if by_cells + (ascii_map is not None) + (layout_seed is not None) > 1:
        raise ValueError("obstacles/goals, ascii_map and layout_seed exclude each other; give one of them")
    if ascii_map is not None:
        rows, columns, obstacles, goals = ascii_layout(ascii_map)
        for name, given, found in (("height", height, rows), ("width", width, columns)):
            if given is not None and given != found:
                raise ValueError(f"{name} is {given}, but ascii_map has {found}; leave {name} out")
        return rows, columns, obstacles, goals
    rows, columns = grid_size(10 if height is None else height, 10 if width is None else width)
    if by_cells:
        return rows, columns, [] if obstacles is None else obstacles, [] if goals is None else goals
    if layout_seed is not None:
        return rows, columns, *random_layout(rows, columns, _checks.generator("layout_seed", layout_seed))
    return rows, columns, *paper_layout(rows, columns)
