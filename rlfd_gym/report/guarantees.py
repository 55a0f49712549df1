"""Pictures of guarantees: how the width of the ranges matters, and where a policy is better.

**From planning to imitation.** Let w₀ be a guess of the prices and [low, high] the widest ranges
that are considered. The ranges of width t in [0, 1] are

    w₀ - t (w₀ - low)  ≤  w  ≤  w₀ + t (high - w₀).

At t = 0 the best policy is that of planning with the guess. As the ranges widen, less is
guaranteed; once they contain prices under which the expert is optimal, nothing is, and imitation
is the answer. The guarantee is about the truth from the width on at which the ranges cover it.

**Over two prices.** The improvement of one policy is linear in the prices,

    <d, offset + Cw>  =  <d, offset> + <Cᵀd, w>,        d = μ_E - μ,

so its least value over ranges is at a corner. A map over two of the prices shows how far that
corner is from the line on which the policy is only as good as the expert.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import Prices
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.occupancy import check_occupancy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.guarantee import Guarantee
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.report import plots
from rlfd_gym.solvers.exact import solve_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IMPROVEMENT_MAP = "RdBu"  # blue where the policy is better, red where it is worse
ROOM, WORSE = 0.25, 1.0  # how far a map reaches beyond the ranges, relative to their width; on the worst side
STEPS = 41


class Width(NamedTuple):
    """What is learned with ranges of one width.

    Attributes:
        width: t, from 0 (planning with the guess) to 1 (the widest ranges).
        guaranteed: the least improvement on the expert over the ranges; never negative.
        true: the improvement on the expert under the truth; `None` if it is not known.
        covered: whether the guarantee covers the truth; `None` if it is not known.
    """

    width: float
    guaranteed: float
    true: float | None
    covered: bool | None


def improvement_by_width(
    mdp: TabularMDP,
    expert: ArrayLike,
    widest: Prices,
    guess: ArrayLike | None = None,
    truth: ArrayLike | None = None,
    n_points: int = 21,
) -> list[Width]:
    """Solve the learning problem for ranges of growing width.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy.
        widest: the widest ranges.
        guess: the prices that the ranges shrink to, within `widest`; by default the middle.
        truth: the true cost over pairs, if it is known.
        n_points: the number of widths, evenly spaced from 0 to 1.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> env, expert = examples.inventory_env(), examples.inventory().expert
        >>> widest = env.price_ranges(order=(2, 6), holding=(0, 6), sell=(12, 16))
        >>> guess = (3.5, 1, 14.5)
        >>> points = improvement_by_width(env.mdp, expert, widest, guess, env.cost, n_points=3)
        >>> [(point.width, round(point.guaranteed, 3), round(point.true, 3)) for point in points]
        [(0.0, 0.343, 0.435), (0.5, 0.08, 0.299), (1.0, 0.0, 0.0)]
    """
    _checks.integer("n_points", n_points, 2)
    belief = _checks.instance("widest", widest, Prices).over(mdp)
    middle = 0.5 * (belief.low + belief.high)
    start = middle if guess is None else belief.check(_checks.finite_vector("guess", guess, middle.size, "price"))
    cost = None if truth is None else mdp.pairs(truth, "truth")
    if belief.alpha > 0:
        raise ValueError(f"widest has the penalty alpha = {belief.alpha:g}, expected ranges without one")
    points = []
    for width in np.linspace(0.0, 1.0, n_points):
        low, high = start - width * (start - belief.low), start + width * (belief.high - start)
        ranges = Prices(belief.features, low, high, belief.offset, names=belief.names)
        problem = RLfDProblem(mdp, expert, belief=ranges)
        solution = solve_exact(problem)
        promise = solution.guarantee
        assert promise is not None  # solve_exact always gives one
        guaranteed = promise.improvement if promise else 0.0
        true, covered = None, None
        if cost is not None:
            true = float(problem.expert @ cost) - mdp.expected_cost(solution.policy, cost)
            covered = promise.covers(cost)
        points.append(Width(float(width), guaranteed, true, covered))
    return points


def plot_widths(points: Sequence[Width], scale: CostScale | None = None) -> Figure:
    """Plot the guaranteed and the true improvement against the width of the ranges.

    Widths at which the guarantee covers the truth, up to shaping and scale, are shaded: where
    something is guaranteed there, the policy is better than the expert in truth.

    Args:
        points: the results of `improvement_by_width`.
        scale: the map from money to costs, to show improvements in money.

    Example:
        >>> points = [Width(0.0, 0.2, 0.4, False), Width(0.5, 0.1, 0.3, True), Width(1.0, 0.0, 0.0, True)]
        >>> plot_widths(points).axes[0].get_xlabel()
        'width of the ranges, as a share of the widest'
    """
    if len(points) < 2:
        raise ValueError(f"points has {len(points)} entries, expected at least 2: the planner's and the widest ranges'")
    figure, axes = plots.new_figure(size=(6.4, 3.8))
    axis = axes[0, 0]
    x = np.array([point.width for point in points])
    unit = 1.0 if scale is None else scale.factor
    least = np.array([point.guaranteed for point in points]) / unit
    axis.plot(x, least, color=plots.BLUE, marker="o", markersize=3.5, label="guaranteed over the ranges")
    axis.fill_between(x, 0.0, least, color=plots.BLUE, alpha=0.12, linewidth=0)
    known = [point.true for point in points if point.true is not None]
    if len(known) == len(points):
        axis.plot(x, np.array(known) / unit, color=plots.GREEN, marker="s", markersize=3.5, label="under the true cost")
        covered = np.array([bool(point.covered) for point in points])
        if covered.any():
            axis.axvspan(x[covered].min(), x[covered].max(), color=plots.ORANGE, alpha=0.1, linewidth=0,
                         label="the ranges cover the truth")  # fmt: skip
    axis.axhline(0.0, color=plots.COLOURS["expert"], linewidth=1, linestyle=":")
    top = axis.get_xaxis_transform()
    for place, name, side in ((x[0], "planning", "left"), (x[-1], "imitation" if least[-1] == 0 else "", "right")):
        axis.text(place, 1.02, name, transform=top, ha=side, va="bottom", fontsize=8, color=plots.GREY)
    axis.set_xlabel("width of the ranges, as a share of the widest")
    axis.set_ylabel("improvement on the expert" + _in_money(scale))
    axis.set_ylim(bottom=min(0.0, *(value / unit for value in known)) if known else 0.0)
    plots.legend_below(figure, columns=2)
    return figure


def plot_price_map(
    promise: Guarantee,
    expert: ArrayLike,
    prices: tuple[str, str] | None = None,
    marks: Mapping[str, Mapping[str, float]] | None = None,
) -> Figure:
    """Map the improvement of one policy on the expert over two prices, with the worst corner marked.

    The ranges are a rectangle. All other prices are at their worst. The legend has the improvement
    at each mark's own prices. It is in money if the ranges were stated in money.

    Args:
        promise: the guarantee of the policy, over a belief `Prices`.
        expert: the expert's occupancy.
        prices: the names of the two prices; by default the two whose ranges matter most.
        marks: points to mark besides the worst corner, each with all its prices by name.

    Example:
        >>> from rlfd_gym import RLfDProblem, solve_exact
        >>> from rlfd_gym.problem import examples
        >>> env, expert = examples.inventory_env(), examples.inventory().expert
        >>> belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
        >>> promise = solve_exact(RLfDProblem(env.mdp, expert, belief=belief)).guarantee
        >>> truth = {"truth": {"order": 3, "holding": 1, "sell": 15}}
        >>> plot_price_map(promise, expert, ("order", "holding"), truth).axes[0].get_xlabel()
        'order'
    """
    belief = _checks.instance("promise.belief", promise.belief, Prices)
    mu_e = check_occupancy(promise.mdp, expert, "expert")
    unit = 1.0 if belief.scale is None else belief.scale.factor
    d = (mu_e - promise.mdp.occupancy_of(promise.policy)) / unit
    height, slopes = float(d @ belief.offset), belief.features.T @ d
    if belief.low.size < 2:
        raise ValueError(f"promise.belief has only the price {belief.names[0]}, expected two or more for a map")
    if prices is None:
        order = np.argsort(-np.abs(slopes) * (belief.high - belief.low), kind="stable")[:2]
        prices = (belief.names[order[0]], belief.names[order[1]])
    shown = [belief.names.index(_checks.one_of("prices", name, belief.names)) for name in prices]
    if shown[0] == shown[1]:
        raise ValueError(f"prices must be two different ones, got {prices!r}")
    ends = [_with_room(belief.low[k], belief.high[k], slopes[k]) for k in shown]
    x, y = (np.linspace(*end, STEPS) for end in ends)
    w = np.array(promise.worst)
    others = height + slopes @ w - slopes[shown] @ w[shown]
    page = others + slopes[shown[0]] * x[None, :] + slopes[shown[1]] * y[:, None]

    figure, axes = plots.new_figure(size=(5.6, 4.6))
    axis = axes[0, 0]
    axis.grid(False)
    limit = float(np.abs(page).max()) or 1.0
    image = axis.imshow(page, cmap=IMPROVEMENT_MAP, vmin=-limit, vmax=limit, origin="lower", aspect="auto",
                        extent=(*ends[0], *ends[1]), interpolation="bilinear")  # fmt: skip
    figure.colorbar(image, ax=axis, label="improvement on the expert" + _in_money(belief.scale))
    if page.min() < 0 < page.max():
        line = axis.contour(x, y, page, levels=[0.0], colors=plots.BLACK, linewidths=1.2, linestyles="--")
        axis.clabel(line, fmt="as good as the expert", fontsize=7)
    (left, right), (low, high) = ((belief.low[k], belief.high[k]) for k in shown)
    axis.plot([left, right, right, left, left], [low, low, high, high, low], color=plots.BLACK, linewidth=1.4,
              label="ranges")  # fmt: skip
    points = {"worst corner": w} | {name: _point(belief, name, mark) for name, mark in (marks or {}).items()}
    colours = (plots.YELLOW, *plots.SEQUENCE[2:])
    for (name, point), marker, colour in zip(points.items(), "*oDs^v", colours, strict=False):
        axis.plot(
            *point[shown], marker=marker, markersize=13 if marker == "*" else 7, color=colour, linestyle="none",
            markeredgecolor=plots.BLACK, label=f"{name}: {height + slopes @ point:.3g}", clip_on=False,
        )  # fmt: skip
    axis.set_xlabel(prices[0])
    axis.set_ylabel(prices[1])
    fixed = [f"{name} = {w[k]:.4g}" for k, name in enumerate(belief.names) if k not in shown]
    axis.set_title(f"at the worst {', '.join(fixed)}" if fixed else "")
    plots.legend_below(figure, columns=3)
    return figure


def _with_room(low: float, high: float, slope: float) -> tuple[float, float]:
    """Return the ends of an axis around a range, which may be a single price.

    The side on which the improvement falls has more room. A range without a change of sign gets
    none beyond zero.
    """
    width = high - low if high > low else max(abs(low), 1.0)
    below, above = (WORSE, ROOM) if slope > 0 else (ROOM, WORSE)
    left, right = low - below * width, high + above * width
    return float(max(left, 0.0) if low >= 0 else left), float(min(right, 0.0) if high <= 0 else right)


def _point(belief: Prices, name: str, mark: Mapping[str, float]) -> FloatArray:
    """Return the prices of a mark as a vector."""
    if set(mark) != set(belief.names):
        raise ValueError(f"marks: {name!r} has prices {sorted(mark)}, expected {sorted(belief.names)}")
    return np.array([_checks.number(price, mark[price]) for price in belief.names])


def _in_money(scale: CostScale | None) -> str:
    return "" if scale is None else " (money)"
