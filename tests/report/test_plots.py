"""Pictures: what is drawn is what was given, and files are whole."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from PIL import Image

import rlfd_gym
from rlfd_gym.report import plots


@pytest.fixture(scope="module")
def world():
    return gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=3).unwrapped


def test_the_cost_map_shows_each_cell_where_it_is(world):
    grid = plots.Grid.of_env(world)
    _, axes = plots.new_figure()
    cost = np.where(world.mdp.pair_actions == 2, np.linspace(-1, 1, world.mdp.n_pairs), 7.0)
    image = plots.draw_cost(axes[0, 0], grid, world.mdp, cost, action=2)
    assert image.origin == "lower"
    for row in range(4):
        for column in range(3):
            pair = world.mdp.pair_index([world.state_of(row, column)], [2])[0]
            assert image.get_array()[row, column] == cost[pair]


def test_arrows_point_where_the_action_moves(world):
    """On both grids: the arrow drawn for an action leads from a cell to the cell the model says, wind and ice aside."""
    lake = gym.make("FrozenLake-v1", is_slippery=False)
    for env, mdp in ((world, world.mdp), (lake, rlfd_gym.TabularMDP.from_env(lake, discount=0.9))):
        grid = plots.Grid.of_env(env)
        width = grid.cells.shape[1]
        down_the_page = 1 if grid.row_zero == "top" else -1
        moved = 0
        for pair in range(mdp.n_pairs):
            row, column = divmod(int(mdp.pair_states[pair]), width)
            likely = int(np.argmax(mdp.transitions[[pair]].toarray()))
            if likely != mdp.pair_states[pair]:
                right, up = grid.arrows[mdp.pair_actions[pair]]
                assert divmod(likely, width) == (row - down_the_page * up, column + right)
                moved += 1
        assert moved > 10


def test_the_lake_has_its_holes_and_its_goal():
    grid = plots.Grid.of_env(gym.make("FrozenLake-v1", map_name="4x4"))
    assert np.argwhere(grid.cells == plots.OBSTACLE).tolist() == [[1, 1], [1, 3], [2, 3], [3, 0]]
    assert np.argwhere(grid.cells == plots.GOAL).tolist() == [[3, 3]]


def test_other_environments_are_no_grids():
    assert plots.Grid.of_env(gym.make("rlfd_gym/Inventory-v0")) is None


def test_orders_are_the_most_likely_ones():
    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    _, axes = plots.new_figure()
    policies = {"optimum": env.mdp.optimal(env.cost).policy}
    plots.draw_orders(axes[0, 0], env.mdp, policies, state_label="stock", action_label="order")
    (line,) = axes[0, 0].get_lines()
    assert line.get_ydata().tolist() == list(range(15, -1, -1))
    assert line.get_color() == plots.COLOURS["optimum"]
    assert (axes[0, 0].get_xlabel(), axes[0, 0].get_ylabel()) == ("stock", "order")


def test_a_saved_figure_is_a_picture_and_nothing_else_is_left(tmp_path, world):
    figure, axes = plots.new_figure(1, 2)
    plots.draw_policy(axes[0, 0], plots.Grid.of_env(world), world.mdp, world.mdp.uniform_policy())
    axes[0, 1].plot([0, 1], [0, 1], label="line")
    plots.legend_below(figure)
    content = plots.save(figure, tmp_path / "new" / "figure.png")
    assert (tmp_path / "new" / "figure.png").read_bytes() == content
    with Image.open(tmp_path / "new" / "figure.png") as picture:
        assert picture.size == (750, 510)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["figure.png"]


def test_the_path_plot_shows_the_trade_off_the_choices_and_the_changes_of_the_policy(world):
    mdp = world.mdp
    problem = rlfd_gym.RLfDProblem(mdp, rlfd_gym.noisy_expert(mdp, world.cost, 0.3), -world.cost)
    path = rlfd_gym.alpha_path(problem, n_points=6)
    choice = rlfd_gym.select_alpha(path, "l-curve")
    trade, changes = plots.plot_path(path, [choice]).axes
    labels = [line.get_label() for line in trade.lines]
    assert [label.split()[0] for label in labels] == ["distance", "expert's", "departure", "α"]
    assert "l-curve" in labels[-1]
    regret = np.array([point.regret for point in path])
    np.testing.assert_allclose(trade.lines[1].get_ydata(), regret / regret.max())
    assert trade.lines[-1].get_xdata()[0] == choice.alpha
    # From the expert to a prior that is the opposite of the truth, nearly every state has to change its mind.
    bars = [bar.get_height() for bar in changes.patches]
    assert len(bars) == 5
    best = [mdp.max_by_state(p.policy) for p in (path[0], path[-1])]
    first, last = (p.policy == m[mdp.pair_states] for p, m in zip((path[0], path[-1]), best, strict=True))
    assert sum(bars) >= (mdp.sum_by_state((first & last).astype(float)) == 0).sum() > 0
