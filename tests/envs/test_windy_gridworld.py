from __future__ import annotations

import resource
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from rlfd_gym.envs import WindyGridworldEnv, ascii_layout, paper_layout, random_layout
from rlfd_gym.envs.windy_gridworld import ACTIONS


def make(**kwargs):
    return gym.make("rlfd_gym/WindyGridworld-v0", **kwargs).unwrapped


def row_of(env, cell, action):
    """{cell: probability} of one pair."""
    pair = env.mdp.pair_index(env.state_of(*cell), ACTIONS.index(action))
    row = env.mdp.transitions[[int(pair)]].toarray()[0]
    return {env.cell_of(s): pytest.approx(row[s]) for s in np.flatnonzero(row)}


def test_the_papers_grid_has_its_known_optimum(gridworld):
    assert gridworld.mdp.optimal(gridworld.cost).expected_cost == pytest.approx(-0.2430, abs=5e-5)


def test_the_papers_layout(gridworld):
    assert gridworld.obstacles == [(5, column) for column in range(8)]
    assert gridworld.goals == [(9, column) for column in range(8)]
    assert make(height=6, width=6).obstacles == [(3, column) for column in range(5)]


@pytest.mark.parametrize(
    ("cell", "action", "expected"),
    [
        ((2, 4), "up", {(3, 4): 0.8, (3, 3): 0.2}),
        ((2, 4), "down", {(1, 4): 0.8, (1, 3): 0.2}),
        ((2, 4), "left", {(2, 3): 0.8, (2, 2): 0.2}),
        ((2, 4), "right", {(2, 5): 0.8, (2, 4): 0.2}),
        # A combined move that leaves the grid leaves the agent where it is.
        ((2, 0), "up", {(3, 0): 0.8, (2, 0): 0.2}),
        ((2, 0), "left", {(2, 0): 1.0}),
        ((2, 1), "left", {(2, 0): 0.8, (2, 1): 0.2}),
        ((2, 9), "right", {(2, 9): 1.0}),  # with wind, right and the drift cancel
        ((0, 0), "down", {(0, 0): 1.0}),
        ((0, 5), "down", {(0, 5): 1.0}),
        ((9, 9), "up", {(9, 9): 1.0}),
        ((9, 3), "down", {(9, 3): 1.0}),  # a goal
    ],
)
def test_moves_by_hand(gridworld, cell, action, expected):
    assert row_of(gridworld, cell, action) == expected


def test_costs_depend_on_the_cell_alone(gridworld):
    table = gridworld.cost.reshape(10, 10, 4)
    assert (table[5, :8] == 1).all()
    assert (table[9, :8] == -1).all()
    assert np.count_nonzero(table) == 64


def test_without_wind_moves_are_certain():
    env = make(wind=0.0)
    assert env.mdp.transitions.nnz == env.mdp.n_pairs


def test_full_wind_always_drifts():
    assert row_of(make(wind=1.0), (2, 4), "up") == {(3, 3): 1.0}


def test_a_layout_may_come_as_text():
    env = make(ascii_map="G.\n#.\n..")
    assert (env.height, env.width, env.obstacles, env.goals) == (3, 2, [(1, 0)], [(2, 0)])


def test_text_drawn_and_read_again_is_the_same_layout():
    env = make(layout_seed=3, render_mode="ansi")
    env.reset(options={"state": env.state_of(*env.obstacles[0])})
    text = env.render().strip().replace("A", "#")
    assert ascii_layout(text) == (10, 10, env.obstacles, env.goals)


def test_random_layouts_depend_on_the_seed_alone_and_do_not_overlap():
    first, again, other = make(layout_seed=1), make(layout_seed=1), make(layout_seed=2)
    assert first.obstacles == again.obstacles
    assert first.obstacles != other.obstacles
    assert (len(first.obstacles), len(first.goals)) == (5, 2)
    assert not set(first.obstacles) & set(first.goals)
    obstacles, goals = random_layout(40, 50, 0)
    assert (len(obstacles), len(goals)) == (100, 50)


def test_cells_may_be_given(gridworld):
    obstacles, goals = paper_layout(10, 10)
    env = make(obstacles=obstacles, goals=goals)
    np.testing.assert_array_equal(env.mdp.transitions.toarray(), gridworld.mdp.transitions.toarray())
    assert make(obstacles=[], goals=[(0, 0)]).cost.min() == -1
    assert make(goals=[(0, 0)]).obstacles == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"height": 0}, ValueError, "height must be at least 1"),
        ({"width": 2.0}, TypeError, "width must be an integer"),
        ({"height": 2}, ValueError, "the paper's layout needs at least 3 rows and 2 columns"),
        ({"wind": 1.2}, ValueError, "wind must be a finite number in"),
        ({"obstacles": [(10, 0)]}, ValueError, r"obstacles: cell \(10, 0\) is not on the 10 x 10 grid"),
        ({"goals": [(0, -1)]}, ValueError, r"goals: cell \(0, -1\) is not on the 10 x 10 grid"),
        ({"goals": [(0, 1)], "obstacles": [(0, 1)]}, ValueError, r"goals: cell \(0, 1\) is an obstacle too"),
        ({"obstacles": [3, 4]}, ValueError, "obstacles must be a list of"),
        ({"obstacles": [(0.5, 1.0)]}, TypeError, "obstacles must hold integers"),
        ({"ascii_map": "G.\n."}, ValueError, "ascii_map must have lines of one length"),
        ({"ascii_map": "Gx"}, ValueError, "ascii_map may hold . # G only"),
        ({"ascii_map": "G.", "height": 3}, ValueError, "height is 3, but ascii_map has 1"),
        ({"ascii_map": "G.", "goals": []}, ValueError, "exclude each other"),
        ({"layout_seed": 1, "obstacles": []}, ValueError, "exclude each other"),
        ({"discount": 1.5}, ValueError, "discount"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        WindyGridworldEnv(**arguments)


@pytest.mark.parametrize(("states", "actions"), [([0, 100], [0, 0]), ([0], [4]), ([-1], [0])])
def test_the_oracle_refuses_pairs_that_are_not_there(gridworld, states, actions):
    with pytest.raises(ValueError, match="is not feasible in state"):
        gridworld.sample_next(states, actions, np.random.default_rng(0))


@pytest.mark.slow
def test_a_million_cells_fit_into_four_gibibytes():
    code = """if True:
        import gymnasium as gym, rlfd_gym
        mdp = gym.make("rlfd_gym/WindyGridworld-v0", height=1000, width=1000).unwrapped.mdp
        assert mdp.n_pairs == 4_000_000, mdp.n_pairs
    """
    limit = 4 * 2**30

    def set_limit():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    subprocess.run([sys.executable, "-c", code], check=True, preexec_fn=set_limit)


def test_cells_may_be_arrays_and_sets():
    assert make(goals=np.array([(1, 2)])).goals == [(1, 2)]
    assert make(obstacles=np.empty((0, 2), dtype=int), goals={(1, 2), (0, 0)}).goals == [(0, 0), (1, 2)]


def test_a_partial_prior_is_the_truth_on_a_share_of_obstacles_and_goals(gridworld):
    prior = gridworld.partial_prior(0.5, seed=3)
    assert (prior == gridworld.cost)[prior != 0].all()
    assert (np.count_nonzero(prior == 1), np.count_nonzero(prior == -1)) == (16, 16)
    np.testing.assert_array_equal(gridworld.partial_prior(1.0, seed=0), gridworld.cost)
    assert not gridworld.partial_prior(0.0, seed=0).any()
    with pytest.raises(ValueError, match="share must be a finite number in"):
        gridworld.partial_prior(1.5, seed=0)
