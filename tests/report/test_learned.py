"""The picture of what was learned: every number where it belongs, grey where there is none."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.colors import to_rgba

import rlfd_gym
from rlfd_gym.problem import examples
from rlfd_gym.report import plots
from rlfd_gym.report.learned import INFEASIBLE, plot_learned


def pictures(figure):
    return [axis.images[0] for axis in figure.axes[:2]]


def test_tables_show_cost_and_policy_and_grey_where_an_action_is_infeasible():
    env = examples.inventory_env()
    policy = env.mdp.optimal(env.cost).policy
    figure = plot_learned(env.mdp, 0.25 * env.cost, policy, title="a title")
    cost, chance = pictures(figure)
    np.testing.assert_array_equal(cost.get_array().filled(np.nan), env.mdp.table(0.25 * env.cost))
    np.testing.assert_array_equal(chance.get_array().filled(np.nan), env.mdp.table(policy))
    assert (cost.get_clim(), chance.get_clim()) == ((-0.25, 0.25), (0.0, 1.0))  # as far as the largest cost
    for image in (cost, chance):
        assert image.cmap(np.ma.masked_all(1))[0].tolist() == list(to_rgba(INFEASIBLE))
    assert figure.axes[0].get_xlabel() == "action"
    assert figure.axes[0].get_ylabel() == "state"
    assert figure.get_suptitle() == "a title"
    assert [text.get_text() for text in figure.texts if "grey" in text.get_text()] == ["grey: infeasible"]


def test_many_states_lie_across_the_page_with_few_ticks():
    name = max(key for key in gym.registry if key.startswith("Taxi-v"))
    env = gym.make(name)
    mdp = rlfd_gym.TabularMDP.from_env(env)
    cost = rlfd_gym.cost_of_env(env)
    figure = plot_learned(mdp, cost, mdp.uniform_policy())
    image = pictures(figure)[0]
    np.testing.assert_array_equal(image.get_array(), mdp.table(cost).T)
    assert figure.axes[0].get_xlabel() == "state"
    assert figure.axes[0].get_yticks().tolist() == [0, 1, 2, 3, 4, 5]
    assert len(figure.axes[0].get_xticks()) < 20
    assert not [text for text in figure.texts if "grey" in text.get_text()]
    plots.png(figure, dpi=50)


def test_a_grid_is_drawn_as_a_grid():
    env = examples.gridworld_env(4)
    grid = plots.Grid.of_env(env)
    figure = plot_learned(env.mdp, env.cost, env.mdp.optimal(env.cost).policy, grid=grid)
    means = np.nanmean(env.mdp.table(env.cost), axis=1).reshape(4, 4)
    np.testing.assert_allclose(pictures(figure)[0].get_array(), means)
    assert figure.axes[1].collections  # arrows


def test_a_cost_of_zero_everywhere_has_a_scale_too():
    env = examples.gridworld_env(3)
    figure = plot_learned(env.mdp, np.zeros(env.mdp.n_pairs), env.mdp.uniform_policy())
    assert pictures(figure)[0].get_clim() == (-1.0, 1.0)


def test_what_does_not_fit_is_named():
    env = examples.gridworld_env(3)
    with pytest.raises(ValueError, match="cost has shape"):
        plot_learned(env.mdp, np.zeros(3), env.mdp.uniform_policy())
    with pytest.raises(TypeError, match="mdp must be a Pairs"):
        plot_learned(env, env.cost, env.mdp.uniform_policy())
