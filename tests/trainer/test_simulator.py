"""Learning without tables, from what a simulator draws."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from oracles import PlacedLake, SteppedLake
from trainer_data import MARKS, Simulator, trajectory, walks

import rlfd_gym
from rlfd_gym import TabularMDP, noisy_expert

pytestmark = MARKS


def test_a_trainer_learns_from_the_draws_of_a_simulator_alone(make):
    env = Simulator()
    grid = env.grid
    plan = grid.mdp.optimal(grid.cost)
    trainer = make(walks(grid, plan.policy), env, prior=grid.cost, alpha=0.05, rng=1)
    states = trainer.train(15_000, log_interval=0)
    assert states.sum() == pytest.approx(1)
    assert np.isnan(trainer.duality_gap)
    learned = grid.mdp.pairs(trainer.policy.probabilities.numpy())
    uniform = grid.mdp.expected_cost(grid.mdp.uniform_policy(), grid.cost)
    gained = uniform - grid.mdp.expected_cost(learned, grid.cost)
    assert gained > 0.25 * (uniform - plan.expected_cost)
    same = make(walks(grid, plan.policy), env, prior=grid.cost, alpha=0.05, rng=1)
    assert (same.train(15_000, log_interval=0) == states).all()


def test_without_tables_what_needs_them_is_refused(make):
    env = Simulator()
    for settings in ({"solver": "exact"}, {"policy_kind": "greedy"}):
        with pytest.raises(ValueError, match="need transition tables"):
            make(None, env, **settings)
    with pytest.raises(ValueError, match="an occupancy has no next states"):
        make(np.full(36, 1 / 36), env)
    with pytest.raises(ValueError, match='estimator="policy" needs transition tables'):
        make(None, env, estimator="policy")
    trainer = make(None, env, solver=None)
    assert (trainer.solver, trainer.estimator) == ("sampled", "count")
    assert make(None, env, solver=None, n_runs=3).solver == "smd"
    with pytest.raises(ValueError, match=r"shuffle=False, or discounting=") as error:  # not what cannot be done here
        trainer.set_demonstrations(SimpleNamespace(obs=[0, 3], acts=[0, 0], next_obs=[1, 4], dones=[False, False]))
    assert "policy" not in str(error.value)
    env.observation_space = gym.spaces.Box(0, 1, (2,))
    with pytest.raises(TypeError, match="observation_space must be Discrete"):
        make(None, env)


def test_the_default_without_tables_is_certified_and_better_than_algorithm_1_with_as_many_draws(make, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    env = Simulator()
    grid = env.grid
    shown = walks(grid, grid.mdp.policy_of(noisy_expert(grid.mdp, grid.cost, 0.3)), 50)
    trainer = make(shown, env, prior=grid.cost, alpha=1.0, solver=None, rng=1)
    trainer.train(30_000)
    assert trainer.solution.method == "sampled: model"
    assert 0 < trainer.duality_gap < 0.5
    assert trainer.solution.stats["calls"] <= 30_000
    other = make(shown, env, prior=grid.cost, alpha=1.0, rng=1)
    other.train(15_000, log_interval=0)  # two draws in a step
    costs = [
        grid.mdp.expected_cost(grid.mdp.pairs(t.policy.probabilities.numpy()), grid.cost) for t in (trainer, other)
    ]
    assert costs[0] < costs[1]
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", env, custom_logger=quiet)
    assert np.isnan(again.duality_gap)
    np.testing.assert_array_equal(again.policy.probabilities, trainer.policy.probabilities)
    with pytest.raises(ValueError, match=r"pass rlfd_gym\.simulate"):
        make(None, grid, solver="sampled")


def test_an_environment_that_can_be_put_into_a_state_needs_nothing_else(make):
    tables = TabularMDP.from_env(gym.make("FrozenLake-v1", is_slippery=False), discount=0.9)
    expert = tables.optimal(np.where(tables.pair_states == 15, -1.0, 0.0)).policy
    shown = rlfd_gym.demonstrate(tables, expert, 3, 100, seed=0)
    trainer = make(shown, PlacedLake(is_slippery=False), discount=0.9, solver=None)
    trainer.train(20_000)
    learned = tables.pairs(trainer.policy.probabilities.numpy())
    shown_pairs = (tables.occupancy_of(expert) > 0) & ~np.isin(tables.pair_states, [5, 7, 11, 12, 15])
    np.testing.assert_allclose(learned[shown_pairs], 1.0, atol=1e-3)
    assert trainer.problem.oracle.kind == "set_state"
    with pytest.raises(TypeError, match="env must be tabular"):  # one that can only be stepped is asked for by name
        make(None, SteppedLake())


def test_without_tables_absorbing_states_are_found_by_drawing():
    from rlfd_gym.experts.demonstrations import absorbing_states, read_demonstrations
    from rlfd_gym.trainer.env_model import EnvModel

    env = Simulator(goals=[(0, 0)], obstacles=[])
    goal = int(np.flatnonzero(absorbing_states(env.grid.mdp))[0])
    # imitation flags both as terminal; only the goal is never left.
    read = read_demonstrations([trajectory([4, goal], [3]), trajectory([7, 8], [1])])
    assert np.flatnonzero(EnvModel.of(env, None).seems_absorbing(read)).tolist() == [goal]


def test_a_trainer_saved_with_a_simulator_continues(make, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    env = Simulator()
    trainer = make(walks(env.grid, env.grid.mdp.uniform_policy(), 5), env)
    trainer.train(500)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", env, custom_logger=quiet)
    np.testing.assert_allclose(again.train(500), trainer.train(500), atol=1e-12)


def test_an_environment_whose_tables_cannot_be_read_is_not_taken_for_a_simulator(make):
    env = Simulator()
    env.P = {0: {0: [(1.0, None, 0.0, False)]}}  # as in toy_text, but with a next state that is none
    with pytest.raises(TypeError, match="next states of P must hold integers"):
        make(None, env)
