"""One picture of what was learned: the cost of every pair, and the policy.

On a grid the cost is the mean over the actions of each cell, and the policy is arrows. Elsewhere both
are tables of states and actions, with the longer side across the page, and grey where an action is
infeasible. Costs are blue below 0 and red above it; the scale goes as far as the largest cost, so
that small costs are seen too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.report import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

POLICY_MAP = "Blues"
INFEASIBLE = "#BFBFBF"
FEW = 20  # so many states or actions are each named on an axis
TALL = 3  # tables with so many times more states than actions are drawn one above the other


def plot_learned(
    mdp: Pairs, cost: ArrayLike, policy: ArrayLike, *, grid: plots.Grid | None = None, title: str = ""
) -> Figure:
    """Draw a cost and a policy side by side, or one above the other, and return the figure.

    Args:
        mdp: the pairs, such as a `TabularMDP`.
        cost: over pairs or as a table.
        policy: over pairs or as a table.
        grid: how the states lie on the page, see `rlfd_gym.report.plots.Grid.of_env`.
        title: of the figure.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> env = examples.inventory_env()
        >>> figure = plot_learned(env.mdp, env.cost, env.mdp.optimal(env.cost).policy)
        >>> [axis.get_title() for axis in figure.axes[:2]]
        ['cost', 'probability of each action']
    """
    _checks.instance("mdp", mdp, Pairs, "such as a TabularMDP")
    values, chance = mdp.pairs(cost, "cost"), mdp.pairs(policy, "policy")
    limit = float(np.abs(values).max()) or 1.0
    if grid is not None:
        figure, axes = plots.new_figure(1, 2, (9.0, 4.2))
        left, right = axes[0]
        shown = plots.draw_cost(left, grid, mdp, values, limit=limit)
        plots.draw_policy(right, grid, mdp, chance)
        figure.colorbar(shown, ax=left)
        left.set_title("cost, the mean over a cell's actions")
        right.set_title("policy: an arrow's length is its probability")
    else:
        tall = mdp.n_states > TALL * mdp.n_actions
        figure, axes = plots.new_figure(*((2, 1, (9.0, 5.2)) if tall else (1, 2, (9.6, 4.2))))
        left, right = axes.ravel()
        maps = {"cmap": plots.COST_MAP, "vmin": -limit, "vmax": limit}, {"cmap": POLICY_MAP, "vmin": 0.0, "vmax": 1.0}
        for axis, pairs, colours in zip((left, right), (values, chance), maps, strict=True):
            figure.colorbar(_draw_table(axis, mdp.table(pairs), tall, colours), ax=axis)
        left.set_title("cost")
        right.set_title("probability of each action")
        if not mdp.feasible.all():
            figure.text(0.995, 0.005, "grey: infeasible", ha="right", va="bottom", fontsize=8, color="#606060")
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _draw_table(axis: Axes, table: FloatArray, across: bool, colours: dict[str, Any]) -> AxesImage:
    """Draw a table of states and actions; `across`, with the states from left to right."""
    import matplotlib

    colour_map = matplotlib.colormaps[colours["cmap"]].with_extremes(bad=INFEASIBLE)
    options: Any = colours | {"cmap": colour_map, "interpolation": "nearest"}
    shown = table.T if across else table
    image = axis.imshow(shown, aspect="auto", origin="lower", **options)
    x, y = ("state", "action") if across else ("action", "state")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(False)
    axis.locator_params(integer=True)
    for side, size in ((axis.yaxis, shown.shape[0]), (axis.xaxis, shown.shape[1])):
        if size <= FEW:
            side.set_ticks(np.arange(size))
    return image
