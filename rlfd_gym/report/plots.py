"""Pictures of costs, policies and comparisons, in one style and with the same colours everywhere.

Every figure is created by `new_figure`, drawn on by the functions below, and turned into bytes
(`png`) or a file (`save`). Matplotlib's object interface is used throughout, so nothing here opens
a window, keeps a figure alive or changes a user's settings. The colours are those of Okabe and
Ito, which colour-blind people can tell apart. Maps of costs use a diverging scale from -1 (blue)
over 0 (white) to 1 (red).
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._files import write
from rlfd_gym._install import command
from rlfd_gym.mdp.pairs import Pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from rlfd_gym.alpha import AlphaChoice, AlphaPath

BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F",
)  # fmt: skip
COLOURS = {
    "optimum": GREEN,
    "truth": GREEN,
    "expert": BLACK,
    "prior": ORANGE,
    "apprentice": BLUE,
    "exact": BLUE,
    "theorem's steps": PURPLE,
    "paper's setting": VERMILION,
    "hull": SKY,
    "random": GREY,
}
"""The colour of each thing that figures show, by its name."""
SEQUENCE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
"""The colours of series that have no name above, in this order."""
COST_MAP = "RdBu_r"

FREE, OBSTACLE, GOAL = 0, 1, -1
"""What a cell of a `Grid` holds, with the same numbers as in the gridworld's own `cells`."""

STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.dpi": 100,
}


@dataclass(frozen=True, eq=False)
class Grid:
    """How the states of a gridworld lie on the page: state = row · width + column.

    Attributes:
        cells: (height, width): `FREE`, `OBSTACLE` or `GOAL`.
        arrows: for each action, where it points on the page: (right, up).
        action_names: the name of each action.
        row_zero: the side of the page on which row 0 is: "bottom" or "top".
    """

    cells: NDArray[np.int8]
    arrows: tuple[tuple[int, int], ...]
    action_names: tuple[str, ...]
    row_zero: str

    @property
    def origin(self) -> Literal["lower", "upper"]:
        """The side on which Matplotlib has to draw row 0."""
        return "lower" if self.row_zero == "bottom" else "upper"

    @classmethod
    def of_env(cls, env: Any) -> Grid | None:
        """Return the grid of a windy gridworld or of Gymnasium's FrozenLake.

        Other environments give `None`.
        """
        world = getattr(env, "unwrapped", env)
        if hasattr(world, "cells") and hasattr(world, "obstacles"):
            return cls(world.cells, ((0, 1), (0, -1), (-1, 0), (1, 0)), ("up", "down", "left", "right"), "bottom")
        if hasattr(world, "desc") and set(world.desc.astype("U1").ravel()) <= set("SFHG"):
            return _frozen_lake(world.desc)
        return None


def _frozen_lake(desc: NDArray[Any]) -> Grid:
    letters = desc.astype("U1")
    cells = np.where(letters == "H", OBSTACLE, np.where(letters == "G", GOAL, FREE)).astype(np.int8)
    return Grid(cells, ((-1, 0), (0, -1), (1, 0), (0, 1)), ("left", "down", "right", "up"), "top")


def new_figure(rows: int = 1, columns: int = 1, size: tuple[float, float] = (5.0, 3.4), **options: Any) -> Any:
    """Return a figure in the project's style and its axes, an array of shape (rows, columns).

    >>> figure, axes = new_figure(1, 2)
    >>> axes.shape
    (1, 2)
    """
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def png(figure: Figure, dpi: int = 150) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    image = io.BytesIO()
    with _style():
        figure.savefig(image, dpi=dpi, format="png")
    return image.getvalue()


def save(figure: Figure, path: str | os.PathLike[str], dpi: int = 150) -> bytes:
    """Write the figure as a PNG, completely or not at all, and return its bytes.

    Missing folders are created.
    """
    _checks.path("path", path)
    content = png(figure, dpi)
    write(path, content)
    return content


def legend_below(figure: Figure, columns: int = 4) -> None:
    """Put one legend below all panels, with each name once."""
    named: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            named.setdefault(name, handle)
    figure.legend(
        handles=list(named.values()), labels=list(named), loc="outside lower center", ncols=columns, frameon=False
    )


def draw_band(axis: Axes, x: FloatArray, mean: FloatArray, low: FloatArray, high: FloatArray, **options: Any) -> None:
    """Draw a line, and its interval as a band of the same colour."""
    (line,) = axis.plot(x, mean, **options)
    axis.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)


def draw_world(axis: Axes, grid: Grid) -> None:
    """Draw obstacles in vermilion and goals in green, as in the environment's own pictures."""
    from matplotlib.colors import to_rgb

    page = np.ones((*grid.cells.shape, 3))
    page[grid.cells == OBSTACLE] = to_rgb(VERMILION)
    page[grid.cells == GOAL] = to_rgb(GREEN)
    axis.imshow(page, origin=grid.origin)
    _lines(axis, grid)


def draw_cost(
    axis: Axes, grid: Grid, mdp: Pairs, cost: FloatArray, action: int | None = None, limit: float = 1.0
) -> AxesImage:
    """Draw the cost of an action in each cell, or the mean over the cell's actions.

    Return the image, for a colour bar.
    """
    _fits(grid, mdp)
    values, limit = mdp.pairs(cost, "cost"), _checks.number("limit", limit, 0.0, open_ends=True)
    chosen = np.ones(mdp.n_pairs, dtype=bool)
    if action is not None:
        chosen = mdp.pair_actions == _checks.integer("action", action, 0, mdp.n_actions - 1)
    number = np.bincount(mdp.pair_states[chosen], minlength=mdp.n_states)
    total = np.bincount(mdp.pair_states[chosen], weights=values[chosen], minlength=mdp.n_states)
    with np.errstate(invalid="ignore"):
        page = (total / number).reshape(grid.cells.shape)
    image = axis.imshow(page, cmap=COST_MAP, vmin=-limit, vmax=limit, origin=grid.origin)
    _lines(axis, grid)
    return image


def draw_policy(axis: Axes, grid: Grid, mdp: Pairs, policy: FloatArray) -> None:
    """Draw an arrow for each action, with a length proportional to its probability.

    The arrow of the most likely action is dark and never short. Goals have no arrows.
    """
    _fits(grid, mdp)
    chance = mdp.pairs(policy, "policy")
    draw_world(axis, grid)
    row, column = np.divmod(np.asarray(mdp.pair_states), grid.cells.shape[1])
    best = chance >= mdp.max_by_state(chance)[mdp.pair_states] - 1e-9
    arrows = np.asarray(grid.arrows, dtype=np.float64)[mdp.pair_actions]
    up = 1.0 if grid.row_zero == "bottom" else -1.0
    shown = (grid.cells.ravel()[mdp.pair_states] != GOAL) & (chance > 0.02)
    for dark in (False, True):
        some = shown & (best == dark)
        length = 0.46 * np.maximum(chance[some], 0.6 if dark else 0.0)
        axis.quiver(
            column[some], row[some], arrows[some, 0] * length, up * arrows[some, 1] * length,
            angles="xy", units="xy", scale_units="xy", scale=1.0, color=BLACK if dark else "#9A9A9A",
            width=0.05, headwidth=4.5, headlength=4, headaxislength=3.6, minlength=0.1, minshaft=1.5,
        )  # fmt: skip


def draw_orders(
    axis: Axes,
    mdp: Pairs,
    policies: Mapping[str, FloatArray],
    colours: Mapping[str, str] | None = None,
    *,
    state_label: str = "state",
    action_label: str = "action",
) -> None:
    """Draw each policy's most likely action in each state, where states and actions are amounts.

    Where a policy mixes actions, a band shows the middle 80% of them.
    """
    _checks.instance("mdp", mdp, Pairs)
    states = np.arange(mdp.n_states)
    markers = "osD^vPX*"
    for k, (name, given) in enumerate(policies.items()):
        policy = mdp.pairs(given, "policy")
        colour = (colours or COLOURS).get(name, SEQUENCE[k % len(SEQUENCE)])
        low, high = np.zeros(mdp.n_states), np.zeros(mdp.n_states)
        for s in states:
            own = slice(mdp.state_starts[s], mdp.state_starts[s + 1])
            actions, chance = mdp.pair_actions[own], policy[own]
            tenth, ninth = np.searchsorted(np.cumsum(chance), (0.1, 0.9)).clip(max=len(actions) - 1)
            low[s], high[s] = actions[tenth], actions[ninth]
        axis.plot(
            states, mdp.likely_actions(policy), color=colour, marker=markers[k % len(markers)], markersize=4,
            linewidth=0.9, label=name, alpha=0.9, zorder=3 + k,
        )  # fmt: skip
        axis.fill_between(states, low, high, color=colour, alpha=0.12, linewidth=0)
    axis.locator_params(integer=True)
    axis.set_xlabel(state_label)
    axis.set_ylabel(action_label)


def plot_path(path: AlphaPath, choices: Sequence[AlphaChoice] = ()) -> Figure:
    """Plot the trade-off along α, and where the policy changes.

    The upper panel shows distance, regret and departure, each as a share of its maximum over the
    path. The lower panel counts, for each step of the path, the states in which another action
    becomes the most likely one, among the states that the apprentice visits before and after the
    step. The `choices` of `select_alpha` are marked with the names of their rules.

    >>> import rlfd_gym
    >>> from rlfd_gym.problem import examples
    >>> path = rlfd_gym.alpha_path(examples.inventory(), n_points=5)
    >>> plot_path(path, [rlfd_gym.select_alpha(path, "l-curve")]).axes[0].get_xscale()
    'log'
    """
    from rlfd_gym.alpha import AlphaPath  # here, because it loads the solvers

    _checks.instance("path", path, AlphaPath, "see alpha_path")
    figure, axes = new_figure(2, 1, (6.4, 5.2), sharex=True, height_ratios=(3, 1))
    trade, changes = axes[:, 0]
    alphas = np.array([point.alpha for point in path])
    for name, label, colour in (
        ("distance", "distance of the cost from the prior", COLOURS["prior"]),
        ("regret", "expert's regret under the learned cost", COLOURS["expert"]),
        ("departure", "departure of the apprentice from the expert", COLOURS["apprentice"]),
    ):
        values = np.array([getattr(point, name) for point in path])
        most = float(values.max())
        trade.plot(alphas, values / most if most > 0 else values, color=colour, label=f"{label} (most: {most:.2g})")
    for choice, style in zip(choices, ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1))), strict=False):
        trade.axvline(choice.alpha, color=GREY, linestyle=style, label=f"α = {choice.alpha:.2g} by {choice.rule}")
    trade.set_xscale("log")
    trade.set_ylabel("share of the most")
    counts = [_changes(path.problem.mdp, a.solution.occupancy, b.solution.occupancy) for a, b in pairwise(path)]
    changes.bar(alphas[:-1], counts, width=np.diff(alphas), align="edge", color=COLOURS["apprentice"])
    changes.yaxis.get_major_locator().set_params(integer=True)
    changes.set_ylabel("states that\nchange action")
    changes.set_xlabel("α, the weight of the prior")
    legend_below(figure, columns=1)
    return figure


def _fits(grid: Grid, mdp: Pairs) -> None:
    """Check that each state of the MDP has a cell."""
    cells = _checks.instance("grid", grid, Grid).cells
    if _checks.instance("mdp", mdp, Pairs).n_states != cells.size:
        raise ValueError(f"grid has {cells.size} cells, but mdp has {mdp.n_states} states")


def _changes(mdp: Pairs, before: FloatArray, after: FloatArray) -> int:
    """Count the states in which another action became the most likely one.

    Only states that both occupancies visit are counted.
    """
    share = np.minimum(mdp.sum_by_state(before), mdp.sum_by_state(after))
    first, then = (np.asarray(x) >= mdp.max_by_state(x)[mdp.pair_states] * (1 - 1e-3) for x in (before, after))
    kept = mdp.sum_by_state((first & then).astype(np.float64)) > 0
    return int(np.sum(~kept & (share > 1e-6)))


def _lines(axis: Axes, grid: Grid) -> None:
    """Draw thin lines between the cells, without ticks."""
    height, width = grid.cells.shape
    axis.grid(False)
    axis.set_xticks(np.arange(width + 1) - 0.5, minor=True)
    axis.set_yticks(np.arange(height + 1) - 0.5, minor=True)
    axis.grid(True, which="minor", color="#D0D0D0", linewidth=0.5)
    axis.tick_params(which="both", length=0, labelleft=False, labelbottom=False)
    for side in axis.spines.values():
        side.set_visible(False)


def _style() -> Any:
    """Return a context in which Matplotlib has the project's style."""
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise ImportError(f"plots need matplotlib: {command('report')}", name="matplotlib") from error
    return rc_context(STYLE)
