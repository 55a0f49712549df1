"""Pictures of guarantees: the numbers they draw, and what they mark."""

from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym import RLfDProblem, guarantee, solve_exact
from rlfd_gym.beliefs import Ball, Prices
from rlfd_gym.problem import examples
from rlfd_gym.report.guarantees import improvement_by_width, plot_price_map, plot_widths

GUESS = (3.5, 1.0, 14.5)
TRUTH = {"order": 3.0, "holding": 0.5, "sell": 15.0}


@pytest.fixture(scope="module")
def world():
    """The inventory's environment, its expert, and ranges of its prices."""
    env = examples.inventory_env()
    return env, examples.inventory().expert, env.price_ranges(order=(2, 6), holding=(0, 6), sell=(12, 16))


@pytest.fixture(scope="module")
def points(world):
    env, expert, widest = world
    return improvement_by_width(env.mdp, expert, widest, GUESS, env.cost, n_points=6)


@pytest.fixture(scope="module")
def promise(world):
    env, expert, _ = world
    belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    return guarantee(env.mdp, solve_exact(RLfDProblem(env.mdp, expert, belief=belief)).policy, expert, belief)


def test_ranges_without_width_are_planning_and_wide_ones_imitation(world, points):
    env, expert, _ = world
    plan = env.mdp.optimal(env.cost_for(*GUESS))
    assert points[0].guaranteed == pytest.approx(expert @ env.cost_for(*GUESS) - plan.expected_cost, abs=1e-6)
    assert points[0].true == pytest.approx(expert @ env.cost - env.mdp.expected_cost(plan.policy, env.cost), abs=1e-6)
    assert (points[-1].width, points[-1].guaranteed) == (1.0, 0.0)
    assert points[-1].true == pytest.approx(0, abs=1e-6)


def test_less_is_guaranteed_for_wider_ranges(points):
    least = [point.guaranteed for point in points]
    assert least == sorted(least, reverse=True)
    assert min(least) == 0
    assert [point.covered for point in points] == sorted(point.covered for point in points)


def test_where_the_truth_is_covered_and_something_is_guaranteed_it_improves(points):
    sure = [point for point in points if point.covered and point.guaranteed]
    assert sure
    assert all(point.true > 0 for point in sure)


def test_the_widths_are_drawn_as_they_are(points):
    axis = plot_widths(points).axes[0]
    lines = {line.get_label(): line for line in axis.get_lines()}
    for name, field in (("guaranteed over the ranges", "guaranteed"), ("under the true cost", "true")):
        np.testing.assert_array_equal(lines[name].get_xdata(), [point.width for point in points])
        np.testing.assert_array_equal(lines[name].get_ydata(), [getattr(point, field) for point in points])
    assert [text.get_text() for text in axis.texts] == ["planning", "imitation"]
    assert "the ranges cover the truth" in axis.get_legend_handles_labels()[1]


def test_in_money_the_widths_are_divided_by_the_scale(world, points):
    axis = plot_widths(points, world[0].scale).axes[0]
    assert axis.get_ylabel() == "improvement on the expert (money)"
    assert axis.get_lines()[0].get_ydata()[0] == pytest.approx(points[0].guaranteed / world[0].scale.factor)


def test_without_a_truth_there_is_only_the_guarantee(world):
    env, expert, widest = world
    points = improvement_by_width(env.mdp, expert, widest, n_points=2)
    assert [(point.true, point.covered) for point in points] == [(None, None)] * 2
    assert plot_widths(points).axes[0].get_legend_handles_labels()[1] == ["guaranteed over the ranges"]


def test_the_map_shows_the_improvement_at_each_place(world, promise):
    env, expert, _ = world
    axis = plot_price_map(promise, expert, ("order", "sell"), {"truth": TRUTH}).axes[0]
    (image,) = axis.images
    left, right, low, high = image.get_extent()
    page = np.asarray(image.get_array())
    better = (expert - env.mdp.occupancy_of(promise.policy)) / env.scale.factor
    for column, order in ((0, left), (-1, right)):
        for row, sell in ((0, low), (-1, high)):
            assert page[row, column] == pytest.approx(better @ env.cost_for(order, 3.0, sell), abs=1e-9)
    assert (axis.get_xlabel(), axis.get_ylabel(), axis.get_title()) == ("order", "sell", "at the worst holding = 3")
    clim = image.get_clim()
    assert clim[0] == -clim[1]  # white is as good as the expert


def test_the_map_marks_the_ranges_the_worst_corner_and_the_truth(world, promise):
    axis = plot_price_map(promise, world[1], ("order", "holding"), {"truth": TRUTH}).axes[0]
    lines = {line.get_label(): line for line in axis.get_lines()}
    assert set(lines) == {"ranges", f"worst corner: {promise.money:.3g}", "truth: 25.2"}
    assert set(lines["ranges"].get_xdata()) == {2.5, 5.0}
    assert set(lines["ranges"].get_ydata()) == {0.3, 3.0}
    corner = lines[f"worst corner: {promise.money:.3g}"]
    assert (*corner.get_xdata(), *corner.get_ydata()) == (5.0, 3.0)
    # The line on which the policy is as good as the expert is in the picture.
    assert axis.images[0].get_array().min() < 0


def test_the_map_takes_the_prices_that_matter_most(world, promise):
    env, expert, _ = world
    better = expert - env.mdp.occupancy_of(promise.policy)
    swing = np.abs(promise.belief.features.T @ better) * (promise.belief.high - promise.belief.low)
    axis = plot_price_map(promise, expert).axes[0]
    names = np.array(promise.belief.names)[np.argsort(-swing)]
    assert [axis.get_xlabel(), axis.get_ylabel()] == names[:2].tolist()


def test_wrong_arguments_are_named(world, points, promise):
    env, expert, widest = world
    with pytest.raises(ValueError, match="points has 1 entries, expected at least 2"):
        plot_widths(points[:1])
    with pytest.raises(ValueError, match="prices must be one of order, holding, sell; got 'buy'"):
        plot_price_map(promise, expert, ("order", "buy"))
    with pytest.raises(ValueError, match="prices must be two different ones"):
        plot_price_map(promise, expert, ("order", "order"))
    with pytest.raises(ValueError, match=r"marks: 'truth' has prices \['order'\], expected"):
        plot_price_map(promise, expert, marks={"truth": {"order": 3}})
    ball = guarantee(env.mdp, promise.policy, expert, Ball(env.cost, 0.1))
    with pytest.raises(TypeError, match=r"promise\.belief must be a Prices"):
        plot_price_map(ball, expert)
    with pytest.raises(ValueError, match="prices must lie in their ranges"):
        improvement_by_width(env.mdp, expert, widest, (9, 1, 14))
    penalised = Prices(env.features, [1, 1, 1], [2, 2, 2], prior=[1, 1, 1], alpha=0.1, scale=env.scale)
    with pytest.raises(ValueError, match=r"widest has the penalty alpha = 0\.1, expected ranges without one"):
        improvement_by_width(env.mdp, expert, penalised)
