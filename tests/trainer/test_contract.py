"""RLfDTrainer keeps imitation's contract for algorithms, and works in its pipelines."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numpy as np
import pytest
from checks import newest
from trainer_data import MARKS, QUICK, trajectory

from rlfd_gym import TabularMDP, cost_of_env

pytestmark = MARKS


def test_the_trainer_is_one_of_imitations_algorithms(make, inventory, careful):
    from imitation.algorithms.base import DemonstrationAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    trainer = make(careful, inventory)
    assert isinstance(trainer, DemonstrationAlgorithm)
    assert isinstance(trainer.policy, BasePolicy)


def test_the_trainer_takes_mceirls_positional_arguments_and_gails_venv(make, inventory, careful):
    from imitation.rewards.reward_nets import BasicRewardNet
    from stable_baselines3.common.vec_env import DummyVecEnv

    net = BasicRewardNet(inventory.observation_space, inventory.action_space)
    trainer = make(careful, inventory, net, np.random.default_rng(0))
    assert trainer.reward_net is net
    venv = DummyVecEnv([lambda: gym.make("rlfd_gym/Inventory-v0")] * 2)
    by_venv = make(demonstrations=careful, venv=venv, rng=np.random.default_rng(0))
    assert (by_venv.train(QUICK) == make(careful, venv, None, np.random.default_rng(0)).train(QUICK)).all()


def test_trajectories_of_different_lengths_are_refused_on_request(make, inventory):
    short, long = trajectory([0, 1], [1]), trajectory([0, 1, 2], [1, 1])
    with pytest.raises(ValueError, match=r"different length detected: \{1, 2\}"):
        make([short, long], inventory, allow_variable_horizon=False)
    trainer = make([short], inventory, allow_variable_horizon=False)
    with pytest.raises(ValueError, match="different length"):
        trainer.set_demonstrations([long])
    for settings in ({}, {"allow_variable_horizon": True}):
        make([short], inventory, **settings).set_demonstrations([short, long])


def test_the_horizon_of_refused_demonstrations_is_forgotten(make, inventory):
    trainer = make(None, inventory, allow_variable_horizon=False)
    with pytest.raises(ValueError, match="next state 99"):
        trainer.set_demonstrations([trajectory([0, 1, 99], [0, 0])])
    trainer.set_demonstrations([trajectory([0, 1], [1])])


def test_the_logger_can_be_given_and_replaced(inventory, careful, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    first, second = (logger.configure(tmp_path / name, ["csv"]) for name in ("first", "second"))
    trainer = RLfDTrainer(careful, inventory, solver="smd", custom_logger=first)
    assert trainer.logger is first
    trainer.logger = second
    assert trainer.logger is second
    trainer.train(1000)
    for log in (first, second):
        log.close()
    assert (tmp_path / "second" / "progress.csv").stat().st_size > 0
    assert (tmp_path / "first" / "progress.csv").stat().st_size == 0


def test_demonstrations_may_come_later_and_change(make, inventory, careful):
    trainer = make(None, inventory)
    with pytest.raises(RuntimeError, match="no demonstrations yet"):
        trainer.train(1000)
    trainer.set_demonstrations(careful)
    at_once = make(careful, inventory)
    assert (trainer.train(QUICK) == at_once.train(QUICK)).all()
    learned = trainer.policy.probabilities.clone()
    trainer.set_demonstrations(inventory.mdp.occupancy_of(inventory.mdp.uniform_policy()))
    assert (trainer.policy.probabilities == learned).all()
    with pytest.raises(RuntimeError, match="call train"):
        trainer.solution  # noqa: B018
    trainer.train(QUICK)
    assert trainer.solution.n_iterations == QUICK


def test_pickling_keeps_everything_but_the_logger(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess)
    trainer.train(QUICK)
    again = pickle.loads(pickle.dumps(trainer))
    assert again.logger is not trainer.logger
    again.logger.close()
    again.logger = trainer.logger
    assert (again.cost_table == trainer.cost_table)[~np.isnan(trainer.cost_table)].all()
    assert (again.policy.predict(np.arange(16))[0] == trainer.policy.predict(np.arange(16))[0]).all()
    np.testing.assert_allclose(again.train(QUICK), trainer.train(QUICK), atol=1e-12)


ENVIRONMENTS = {
    "ours": lambda: gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4),
    "FrozenLake": lambda: gym.make("FrozenLake-v1"),
    "CliffWalking": lambda: gym.make(newest("CliffWalking")),
    "Taxi": lambda: gym.make(newest("Taxi")),
    "seals": lambda: gym.make("seals:seals/CliffWorld7x4-v0"),
}


@pytest.mark.filterwarnings("ignore:CliffWalkingEnv has no", "ignore:.*is not within the observation space")
@pytest.mark.parametrize("vectorised", [False, True])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_tabular_environments_are_read_whatever_is_around_them(make, name, vectorised):
    from imitation.data.wrappers import BufferingWrapper, RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = ENVIRONMENTS[name]()
    mdp, cost = TabularMDP.from_env(env), cost_of_env(env)
    plan = mdp.optimal(cost)
    around = BufferingWrapper(DummyVecEnv([lambda: RolloutInfoWrapper(env)])) if vectorised else env
    trainer = make(plan.occupancy, around)
    occupancy = trainer.train(2000, log_interval=0)
    assert occupancy.shape == (mdp.n_states,)
    assert occupancy.sum() == pytest.approx(1)
    assert trainer.cost_table.shape == (mdp.n_states, mdp.n_actions)
    assert trainer.solution.duality_gap > 0


def test_the_policy_runs_in_imitation_and_stable_baselines(make, inventory, careful):
    from imitation.data import rollout
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import DummyVecEnv

    trainer = make(careful, inventory)
    trainer.train(2_000_000)
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(gym.wrappers.TimeLimit(inventory, 100))])
    mean, _ = evaluate_policy(trainer.policy, venv, n_eval_episodes=5, warn=False)
    demonstrations = rollout.rollout(
        trainer.policy, venv, rollout.make_sample_until(min_episodes=5), rng=np.random.default_rng(0)
    )
    assert rollout.rollout_stats(demonstrations)["return_mean"] == pytest.approx(mean, abs=8)
    assert all(len(t) == 100 for t in demonstrations)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["PPO", "DQN"])
def test_agents_of_stable_baselines_learn_on_the_learned_reward(make, inventory, careful, guess, algorithm):
    import stable_baselines3
    import torch as th
    from imitation.rewards.reward_wrapper import RewardVecEnvWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    trainer = make(careful, inventory, solver="exact", prior=guess)
    trainer.train()
    venv = DummyVecEnv([lambda: gym.make("rlfd_gym/Inventory-v0")])
    paid = RewardVecEnvWrapper(venv, trainer.reward_net.predict_processed)
    settings = {
        "PPO": {"n_steps": 256},
        "DQN": {"learning_starts": 200, "exploration_fraction": 0.5, "learning_rate": 1e-3},
    }
    agent = getattr(stable_baselines3, algorithm)("MlpPolicy", paid, gamma=0.9, seed=0, **settings[algorithm])
    threads = th.get_num_threads()
    th.set_num_threads(1)  # on tiny networks more of them only get in each other's way
    agent.learn(8000)
    th.set_num_threads(threads)
    asked = agent.predict(np.arange(16), deterministic=True)[0]
    mdp = inventory.mdp
    policy = np.zeros(mdp.n_pairs)
    policy[mdp.pair_index(np.arange(16), [inventory.cut_action(s, int(a)) for s, a in enumerate(asked)])] = 1.0
    cost = trainer.solution.cost
    random, best = mdp.expected_cost(mdp.uniform_policy(), cost), mdp.optimal(cost).expected_cost
    assert mdp.expected_cost(policy, cost) < best + 0.5 * (random - best)
