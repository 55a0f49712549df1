"""Simulators of environments: their own draws, being put into states, and being stepped only."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from oracles import PlacedLake, SteppedLake

from rlfd_gym import TabularMDP, simulate
from rlfd_gym.mdp import stepping
from rlfd_gym.problem import examples


def drawn(simulator, times, seed=0):
    """How often each feasible pair led to each state, over all of the draws."""
    states, actions = (np.repeat(column, times) for column in np.nonzero(simulator.feasible))
    following = simulator.sample_next(states, actions, np.random.default_rng(seed))
    counts = np.zeros((*simulator.feasible.shape, simulator.n_states))
    np.add.at(counts, (states, actions, following), 1 / times)
    return counts


@pytest.mark.parametrize("name", ["Taxi", "FrozenLake-v1", "CliffWalking"])
def test_toy_text_environments_are_simulated_without_reading_their_tables(name):
    newest = max(known for known in gym.registry if known.startswith(name) and "Slippery" not in known)
    env = gym.make(newest)
    tables = TabularMDP.from_env(env, discount=0.9)
    simulator = simulate(env, discount=0.9)
    assert simulator.kind == "set_state"
    reachable = tables.occupancy_of(tables.uniform_policy()) > 0
    states, actions = tables.pair_states[reachable], tables.pair_actions[reachable]
    following = simulator.sample_next(states, actions, np.random.default_rng(0))
    assert (tables.transitions.toarray()[np.flatnonzero(reachable), following] > 0).all()
    stays = np.add.reduceat(
        tables.transitions.toarray()[np.arange(tables.n_pairs), tables.pair_states], tables.state_starts[:-1]
    )
    absorbing = stays == np.diff(tables.state_starts)
    seen = np.unique(states)
    np.testing.assert_array_equal(simulator.absorbing[seen], absorbing[seen])


def test_steps_from_a_state_have_the_probabilities_of_the_tables():
    tables = TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=0.9).transitions.toarray()
    counts = drawn(simulate(PlacedLake()), 400).reshape(64, 16)
    assert np.abs(counts - tables).max() < 5 * np.sqrt(0.25 / 400)


def test_the_same_generator_draws_the_same():
    for env in (PlacedLake(), gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3)):
        first, second = (drawn(simulate(env), 5, seed=3) for _ in range(2))
        np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(*(drawn(simulate(SteppedLake(), steps=500, seed=1), 5) for _ in range(2)))


def test_an_environment_that_can_only_be_stepped_has_the_same_probabilities():
    tables = TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=0.9)
    simulator = simulate(SteppedLake(), steps=3000)
    assert simulator.kind == "step"
    assert len(simulator.unvisited) == 0
    assert np.flatnonzero(simulator.absorbing).tolist() == [5, 7, 11, 12, 15]
    counts = drawn(simulator, 200).reshape(64, 16)
    assert np.abs(counts - tables.transitions.toarray()).max() < 5 * np.sqrt(0.25 / 200)


def test_what_the_first_steps_have_shown_is_not_handed_out():
    simulator = simulate(SteppedLake(), steps=1000)
    before = simulator.steps
    drawn(simulator, 1)
    assert simulator.steps > before == 1000


def test_pairs_that_no_episode_met_are_reported_and_infeasible():
    simulator = simulate(SteppedLake(is_slippery=False), steps=3)
    assert simulator.feasible.sum() + len(simulator.unvisited) >= 64
    assert f"{len(simulator.unvisited)} unvisited pairs" in repr(simulator)
    state, action = simulator.unvisited[0]
    if simulator.feasible[state, action]:  # the first action of a state that was never left, which stays
        assert simulator.sample_next([state], [action], np.random.default_rng(0)).tolist() == [state]
    else:
        with pytest.raises(ValueError, match="every pair must be feasible"):
            simulator.sample_next([state], [action], np.random.default_rng(0))


def test_a_pair_that_cannot_be_met_again_is_named(monkeypatch):
    class Once(SteppedLake):
        """A lake whose first episode goes down, and in all later ones nothing moves."""

        episodes = 0

        def reset(self, seed=None, options=None):
            self.episodes += 1
            self.at, self.moves = 0, 0
            return 0, {}

        def step(self, action):
            self.moves += 1
            self.at = 4 if self.episodes <= 4 else 0
            return self.at, 0.0, False, self.moves == 5, {}

    monkeypatch.setattr(stepping, "MOST_WALKS", 2)
    simulator = simulate(Once(), set_state=None, steps=20)
    action = int(np.flatnonzero(simulator.feasible[4])[0])
    with pytest.raises(RuntimeError, match="did not lead to state 4"):
        simulator.sample_next([4], [action], np.random.default_rng(0))


def test_an_end_that_no_try_has_shown_is_an_error_that_says_what_to_do():
    simulator = simulate(PlacedLake(), terminal=[5, 7, 11, 12])
    with pytest.raises(RuntimeError, match=r"terminated in state 15.*terminal=\[5, 7, 11, 12, 15\]"):
        simulator.sample_next(np.full(50, 14), np.full(50, 2), np.random.default_rng(0))


def test_tables_and_own_draws_are_simulators_too():
    shop = examples.inventory_env(max_inventory=3, demand_mean=2.0)
    for simulator, kind in ((simulate(shop.mdp), "tables"), (simulate(shop), "sample_next")):
        assert simulator.kind == kind
        counts = drawn(simulator, 2000)[shop.mdp.pair_states, shop.mdp.pair_actions]
        assert np.abs(counts - shop.mdp.transitions.toarray()).max() < 5 * np.sqrt(0.25 / 2000)


def test_a_function_may_put_the_environment_into_a_state():
    def place(env, state):
        env.lake.unwrapped.s = state

    simulator = simulate(SteppedLake(is_slippery=False), set_state=place)
    assert (simulator.kind, simulator.sample_next(0, 1, np.random.default_rng(0)).item()) == ("set_state", 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"env": gym.make("CartPole-v1")}, TypeError, "observation_space must be Discrete"),
        ({"env": SteppedLake}, TypeError, "env must be an environment, got the class SteppedLake"),
        ({"set_state": 3}, TypeError, "set_state must be a function"),
        ({"terminal": [99]}, ValueError, r"terminal must be a list of states in 0\.\.15"),
        ({"steps": 0}, ValueError, "steps must be at least 1"),
        ({"discount": 1.0}, ValueError, "discount"),
        ({"deterministic": 1}, TypeError, "deterministic must be True or False"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        simulate(**{"env": SteppedLake()} | arguments)
