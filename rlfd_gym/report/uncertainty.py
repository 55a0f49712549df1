"""A picture of how sure what was learned is: bands of the costs, and shares of the chosen actions.

On the left the learned cost of each pair, sorted, or the learned prices, with their intervals over
resamples of the trajectories. On the right, for each state and action, in how many resamples the
action is the chosen one; a cross marks the action that was learned from all trajectories.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlfd_gym import _checks
from rlfd_gym.beliefs import Prices
from rlfd_gym.report import plots
from rlfd_gym.solvers.uncertainty import Uncertainty

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHARE_MAP = "Blues"
MOST_STATES = 60  # that are drawn: those that the policy visits most


def plot_uncertainty(found: Uncertainty) -> Figure:
    """Draw the intervals of the learned cost or prices, and how often each action is chosen.

    Of many states, those that the policy visits most are drawn.
    """
    _checks.instance("found", found, Uncertainty, "see rlfd_gym.uncertainty")
    figure, axes = plots.new_figure(1, 2, size=(10.0, 4.2))
    (_draw_costs if found.mixture_low is None else _draw_prices)(axes[0, 0], found)
    _draw_chosen(axes[0, 1], found)
    return figure


def _draw_costs(axis: Axes, found: Uncertainty) -> None:
    order = np.argsort(found.solution.cost, kind="stable")
    x = np.arange(len(order), dtype=np.float64)
    plots.draw_band(
        axis, x, found.solution.cost[order], found.cost_low[order], found.cost_high[order], color=plots.BLUE
    )
    axis.set_xlabel("pairs, by their learned cost")
    axis.set_ylabel(f"learned cost, {found.confidence:.0%} of resamples")


def _draw_prices(axis: Axes, found: Uncertainty) -> None:
    estimate, low, high = found.solution.mixture, found.mixture_low, found.mixture_high
    assert estimate is not None
    assert low is not None
    assert high is not None
    belief = None if found.solution.guarantee is None else found.solution.guarantee.belief
    names = belief.names if isinstance(belief, Prices) else tuple(map(str, range(len(estimate))))
    y = np.arange(len(estimate))
    axis.hlines(y, low, high, color=plots.BLUE, linewidth=5, alpha=0.4)
    axis.plot(estimate, y, "o", color=plots.BLUE)
    if isinstance(belief, Prices):
        axis.hlines(y - 0.2, belief.low, belief.high, color=plots.GREY, linewidth=1.5, label="held possible")
        axis.legend(frameon=False, fontsize=8)
    axis.set_yticks(y, list(names))
    axis.set_ylim(len(estimate) - 0.5, -0.6)
    axis.set_xlabel(f"learned price, {found.confidence:.0%} of resamples")


def _draw_chosen(axis: Axes, found: Uncertainty) -> None:
    mdp = found.mdp
    visits = mdp.sum_by_state(mdp.occupancy_of(found.solution.policy))
    states = np.sort(np.argsort(-visits, kind="stable")[:MOST_STATES])
    image = axis.imshow(
        mdp.table(found.chosen)[states].T, cmap=SHARE_MAP, vmin=0, vmax=1, aspect="auto", origin="lower"
    )
    learned = mdp.table(found.solution.read(mdp, "mode"), 0.0)[states]
    column, action = np.nonzero(learned > 0)
    axis.plot(column, action, "x", color=plots.VERMILION, markersize=4)
    axis.grid(False)
    axis.set_xlabel("state" if len(states) == mdp.n_states else f"state, the {len(states)} visited most")
    ticks = np.unique(np.linspace(0, len(states) - 1, min(len(states), 9)).round().astype(int))
    axis.set_xticks(ticks, [str(state) for state in states[ticks]])
    axis.set_ylabel("action")
    axis.figure.colorbar(image, ax=axis, label="share of resamples that choose it")
