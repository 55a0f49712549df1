"""RLfDTrainer: imitation's contract for algorithms, then what is our own."""

from __future__ import annotations

import csv
import json
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rlfd_gym import TabularMDP, cost_of_env
from rlfd_gym.mdp.adapters import unwrap

pytestmark = [
    pytest.mark.needs_imitation,
    pytest.mark.filterwarnings("ignore:tried to wrap", "ignore:trying to unwrap"),  # imitation, about discrete states
    pytest.mark.filterwarnings("ignore:demonstrations end early"),
]
QUICK = 20_000


@pytest.fixture(scope="module")
def quiet():
    from imitation.util.logger import HierarchicalLogger
    from stable_baselines3.common.logger import Logger

    return HierarchicalLogger(Logger(folder=None, output_formats=[]))


@pytest.fixture
def make(quiet):
    """A trainer by SMD that prints nothing."""
    from rlfd_gym import RLfDTrainer

    def build(*arguments, **settings):
        return RLfDTrainer(*arguments, **{"custom_logger": quiet, "solver": "smd"} | settings)

    return build


@pytest.fixture
def careful(inventory):
    """The occupancy of an expert who thinks that holding stock is dear."""
    return inventory.mdp.optimal(inventory.cost_for(5, 8, 15)).occupancy


@pytest.fixture
def guess(inventory):
    return inventory.cost_for(4, 2, 14)


def table_of(mdp, policy):
    table = np.zeros((mdp.n_states, mdp.n_actions))
    table[mdp.pair_states, mdp.pair_actions] = policy
    return table


def rollouts(env, policy, episodes, seed=0):
    """imitation's own rollouts of a tabular policy."""
    from imitation.data import rollout
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer.policy import TablePolicy

    mdp = TabularMDP.from_env(env)
    table = TablePolicy(Discrete(mdp.n_states), Discrete(mdp.n_actions), table_of(mdp, policy), seed)
    venv = DummyVecEnv([lambda: RolloutInfoWrapper(env)])
    venv.seed(seed)
    return rollout.rollout(table, venv, rollout.make_sample_until(min_episodes=episodes), rng=np.random.default_rng(0))


def trajectory(obs, acts, terminal=True):
    from imitation.data.types import Trajectory

    return Trajectory(obs=np.array(obs), acts=np.array(acts), infos=None, terminal=terminal)


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file))


# imitation's contract


def test_it_is_an_algorithm_of_imitations(make, inventory, careful):
    from imitation.algorithms.base import DemonstrationAlgorithm
    from stable_baselines3.common.policies import BasePolicy

    trainer = make(careful, inventory)
    assert isinstance(trainer, DemonstrationAlgorithm)
    assert isinstance(trainer.policy, BasePolicy)


def test_trajectories_of_different_lengths_are_refused(make, inventory):
    short, long = trajectory([0, 1], [0]), trajectory([0, 1, 2], [0, 0])
    with pytest.raises(ValueError, match=r"different length detected: \{1, 2\}"):
        make([short, long], inventory)
    trainer = make([short], inventory)
    with pytest.raises(ValueError, match="different length"):
        trainer.set_demonstrations([long])
    make([short, long], inventory, allow_variable_horizon=True)


def test_the_horizon_of_refused_demonstrations_is_forgotten(make, inventory):
    trainer = make(None, inventory)
    with pytest.raises(ValueError, match="next state 99"):
        trainer.set_demonstrations([trajectory([0, 1, 99], [0, 0])])
    trainer.set_demonstrations([trajectory([0, 1], [0])])


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


# calls


def test_mceirls_positional_call_and_gails_venv(make, inventory, careful):
    from imitation.rewards.reward_nets import BasicRewardNet
    from stable_baselines3.common.vec_env import DummyVecEnv

    net = BasicRewardNet(inventory.observation_space, inventory.action_space)
    trainer = make(careful, inventory, net, np.random.default_rng(0))
    assert trainer.reward_net is net
    venv = DummyVecEnv([lambda: gym.make("rlfd_gym/Inventory-v0")] * 2)
    by_venv = make(demonstrations=careful, venv=venv, rng=np.random.default_rng(0))
    assert (by_venv.train(QUICK) == make(careful, venv, None, np.random.default_rng(0)).train(QUICK)).all()


ENVIRONMENTS = {
    "ours": lambda: gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4),
    "FrozenLake": lambda: gym.make("FrozenLake-v1"),
    "CliffWalking": lambda: gym.make("CliffWalking-v0"),
    "Taxi": lambda: gym.make("Taxi-v3"),
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


def test_a_prior_may_be_a_vector_a_table_or_a_function(make, inventory, careful, guess):
    table = np.full((16, 16), np.nan)
    table[inventory.mdp.pair_states, inventory.mdp.pair_actions] = guess
    forms = (guess, table, lambda state, action: table[state, action])
    costs = [make(careful, inventory, prior=prior).train(5000) for prior in forms]
    assert (costs[0] == costs[1]).all()
    assert (costs[0] == costs[2]).all()


def test_alpha_is_a_tenth_with_a_prior_and_zero_without(make, inventory, careful, guess):
    assert make(careful, inventory).alpha == 0
    assert make(careful, inventory, prior=guess).alpha == 0.1
    assert make(careful, inventory, prior=guess, alpha=2).alpha == 2


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"alpha": 0.1}, ValueError, "prior is None, so alpha must be 0"),
        ({"alpha": -1.0, "prior": np.zeros(136)}, ValueError, "alpha must be"),
        ({"prior": np.zeros(256)}, ValueError, r"prior has shape \(256,\), expected \(136,\)"),
        ({"prior": np.zeros((15, 16))}, ValueError, r"prior has shape \(15, 16\), expected \(136,\).* or \(16, 16\)"),
        ({"prior": lambda s, a: float("nan")}, ValueError, "prior must be finite"),
        ({"prior": "low"}, TypeError, "prior must be an array"),
        ({"solver": "magic"}, ValueError, "solver must be one of exact, smd; got 'magic'"),
        ({"policy_kind": "best"}, ValueError, "policy_kind must be one of"),
        ({"discounting": "some"}, ValueError, "discounting must be one of"),
        ({"discount": 1.0}, ValueError, "discount must be"),
        ({"n_runs": 0}, ValueError, "n_runs must be at least 1"),
        ({"reward_net": "net"}, TypeError, "reward_net must be an imitation RewardNet"),
        ({"venv": 1}, TypeError, "pass either env or venv"),
    ],
)
def test_bad_settings_are_refused(make, inventory, careful, settings, error, message):
    with pytest.raises(error, match=message):
        make(careful, inventory, **settings)


def test_an_environment_is_needed_and_must_be_tabular(make, careful):
    with pytest.raises(TypeError, match="pass either env or venv"):
        make(careful)
    with pytest.raises(TypeError, match="env must be tabular, got CartPoleEnv"):
        make(None, gym.make("CartPole-v1"))


def test_an_order_that_was_cut_counts_as_what_it_was_cut_to(make, inventory):
    # Agents that know no masks ask for anything, and rollouts record what they asked for.
    asked, made = (make([trajectory([11, 3, 15], [order, 2])], inventory) for order in (15, 4))
    assert (asked.problem.expert == made.problem.expert).all()
    with pytest.raises(ValueError, match="trajectory 0, step 0 has action 16"):
        make([trajectory([11, 3], [16])], inventory)


def test_transitions_without_times_need_to_be_asked_for(make, inventory):
    from imitation.data import rollout

    transitions = rollout.flatten_trajectories([trajectory([0, 1, 2], [3, 4])])
    with pytest.raises(ValueError, match="transitions without times"):
        make(transitions, inventory)
    trainer = make(transitions, inventory, discounting="none")
    assert trainer.train(1000).sum() == pytest.approx(1)


# training


def test_training_in_parts_is_training_at_once(make, inventory, careful, guess):
    settings = {"prior": guess, "step_size": 1e-3, "n_runs": 2}
    whole, parts, logged = (make(careful, inventory, **settings) for _ in range(3))
    expected = whole.train(QUICK, log_interval=0)
    parts.train(QUICK // 4)
    np.testing.assert_allclose(parts.train(QUICK - QUICK // 4), expected, atol=1e-11)
    np.testing.assert_allclose(logged.train(QUICK, log_interval=777), expected, atol=1e-11)
    assert parts.solution.n_iterations == QUICK


def test_the_steps_of_a_call_are_the_theorems_for_all_of_it(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess)
    trainer.train(QUICK)
    problem = trainer.problem
    eta, _ = problem.step_sizes(problem.accuracy(QUICK))
    assert trainer.solution.stats["step_sizes"][0] == pytest.approx(eta)
    wanted = make(careful, inventory, prior=guess, epsilon=60.0)
    wanted.train()
    assert wanted.solution.n_iterations == problem.iterations(60.0)


def test_the_same_seed_gives_the_same_result_and_another_does_not(make, inventory, careful):
    one, same, other = (make(careful, inventory, rng=rng) for rng in (np.random.default_rng(5), 5, 6))
    assert (one.train(QUICK) == same.train(QUICK)).all()
    assert (one.policy.predict(np.arange(16))[0] == same.policy.predict(np.arange(16))[0]).all()
    assert (other.train(QUICK) != same.train(QUICK)).any()


def test_drawing_actions_does_not_disturb_training(make, inventory, careful):
    one, other = make(careful, inventory), make(careful, inventory)
    other.policy.predict(np.arange(16))
    assert (one.train(QUICK) == other.train(QUICK)).all()


def test_more_training_certifies_a_smaller_gap(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess)
    trainer.train(QUICK)
    rough = trainer.duality_gap
    trainer.train(1_000_000)
    solution = trainer.solution
    assert trainer.duality_gap < rough / 2
    assert trainer.duality_gap == trainer.problem.duality_gap(solution.cost, solution.value, solution.occupancy)
    assert trainer.solution.n_iterations == 1_000_000 + QUICK


def test_the_state_occupancy_is_that_of_the_policy(make, inventory, careful):
    mdp = inventory.mdp
    for kind in ("occupancy", "greedy"):
        trainer = make(careful, inventory, policy_kind=kind)
        states = trainer.train(QUICK)
        policy = trainer.policy.probabilities.numpy()[mdp.pair_states, mdp.pair_actions]
        np.testing.assert_allclose(states, mdp.sum_by_state(mdp.occupancy_of(policy)), atol=1e-12)


def test_the_greedy_policy_is_optimal_for_the_learned_cost(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=guess, policy_kind="greedy")
    trainer.train(QUICK)
    best = inventory.mdp.optimal(trainer.solution.cost).policy
    np.testing.assert_array_equal(trainer.policy.probabilities.numpy(), table_of(inventory.mdp, best))


def test_runs_too_large_to_keep_are_done_in_one_part(make, inventory, careful, monkeypatch):
    from rlfd_gym.solvers.smd import runs as smd

    kept = make(careful, inventory)
    kept.train(QUICK, log_interval=0)
    monkeypatch.setattr(smd, "RESUME_BYTES", 0)
    trainer, seen = make(careful, inventory), []
    trainer.train(QUICK, callback=seen.append)
    assert seen == [QUICK]
    np.testing.assert_array_equal(trainer.solution.cost, kept.solution.cost)
    with pytest.raises(RuntimeError, match="training cannot go on: 1 runs of this size are too large to be kept"):
        trainer.train(QUICK)


def test_runs_are_averaged_and_stay_as_many(make, inventory, careful):
    trainer = make(careful, inventory)
    trainer.train(2000, n_runs=3)
    assert trainer.solution.stats["n_runs"] == 3
    trainer.train(2000)
    assert trainer.solution.stats["n_runs"] == 3
    with pytest.raises(ValueError, match="n_runs is 2, but training goes on with the 3 runs"):
        trainer.train(2000, n_runs=2)


def test_a_callback_sees_the_progress_and_can_stop_it(make, inventory, careful):
    trainer = make(careful, inventory)
    seen = []
    trainer.train(1000, callback=seen.append, log_interval=300)
    assert seen == [300, 600, 900, 1000]
    gaps = []

    def stop(iteration):
        gaps.append(trainer.duality_gap)
        return len(gaps) < 2

    trainer.train(1000, callback=stop, log_interval=100)
    assert trainer.solution.n_iterations == 1200
    assert len(gaps) == 2


def test_a_progress_bar_shows_on_request(make, inventory, careful, capfd):
    make(careful, inventory).train(2000, progress_bar=True)
    assert "SMD-RLfD" in capfd.readouterr().err
    make(careful, inventory).train(2000)
    assert "SMD-RLfD" not in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [{"max_iter": 0}, {"max_iter": 2.5}, {"log_interval": -1}, {"n_runs": 0}])
def test_bad_training_arguments_are_refused(make, inventory, careful, arguments):
    with pytest.raises((ValueError, TypeError), match=next(iter(arguments))):
        make(careful, inventory).train(**{"max_iter": 1000} | arguments)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_progress_is_logged_to_csv_tensorboard_and_stdout(inventory, careful, guess, tmp_path, capsys):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    log = logger.configure(tmp_path, ["stdout", "csv", "tensorboard"])
    trainer = RLfDTrainer(careful, inventory, prior=guess, solver="smd", custom_logger=log)
    trainer.train(4000, log_interval=1000)
    log.close()
    rows = rows_of(tmp_path / "progress.csv")
    assert [int(row["rlfd/iteration"]) for row in rows] == [1000, 2000, 3000, 4000]
    last = {name: float(value) for name, value in rows[-1].items() if value}
    assert last["rlfd/duality_gap"] == pytest.approx(trainer.duality_gap, rel=1e-6)
    assert last["rlfd/upper_bound"] - last["rlfd/lower_bound"] == pytest.approx(trainer.duality_gap, rel=1e-6)
    cost = trainer.solution.cost
    assert last["rlfd/expert_cost"] == pytest.approx(careful @ cost, rel=1e-6)
    assert last["rlfd/apprentice_cost"] == pytest.approx(inventory.mdp.expected_cost(trainer.solution.policy, cost))
    assert last["rlfd/prior_distance"] == pytest.approx(np.linalg.norm(cost - guess), rel=1e-6)
    assert last["rlfd/theorem_bound"] == pytest.approx(trainer.problem.accuracy(4000), rel=1e-6)
    assert {"rlfd/change_cost", "rlfd/change_value", "rlfd/change_occupancy"} <= set(last)
    assert list(tmp_path.glob("events.out.tfevents*"))
    assert "duality_gap" in capsys.readouterr().out
    assert trainer.solution.history.iteration.tolist() == [1000, 2000, 3000, 4000]


def test_nothing_is_learned_before_training(make, inventory, careful):
    trainer = make(careful, inventory)
    for name in ("solution", "duality_gap", "cost_table"):
        with pytest.raises(RuntimeError, match="call train"):
            getattr(trainer, name)


# the policy and the reward


def test_the_policy_is_uniform_over_feasible_actions_before_training(make, inventory, careful):
    trainer = make(careful, inventory)
    np.testing.assert_array_equal(
        trainer.policy.probabilities.numpy(), table_of(inventory.mdp, inventory.mdp.uniform_policy())
    )


def test_the_policy_never_orders_what_does_not_fit(make, inventory, careful):
    trainer = make(careful, inventory)
    held = trainer.policy
    states = np.repeat(np.arange(16), 500)
    for _ in range(2):
        assert (states + trainer.policy.predict(states)[0] <= 15).all()
        trainer.train(2000)
    assert trainer.policy is held


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


def test_the_cost_table_has_nan_where_nothing_is_feasible(make, inventory, careful):
    trainer = make(careful, inventory)
    trainer.train(2000)
    table, mdp = trainer.cost_table, inventory.mdp
    assert np.isnan(table).sum() == 256 - 136
    assert (table[mdp.pair_states, mdp.pair_actions] == trainer.solution.cost).all()


def test_the_reward_net_is_minus_the_cost(make, inventory, careful):
    trainer = make(careful, inventory)
    held = trainer.reward_net
    trainer.train(2000)
    assert trainer.reward_net is trainer.reward_train is trainer.reward_test is held
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = held.predict_processed(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    assert (rewards == -trainer.solution.cost).all()


@pytest.mark.parametrize("spaces", [(5, 16), (16, 5), (None, 16)])
def test_an_own_reward_net_for_other_spaces_is_refused_before_training(make, inventory, careful, spaces):
    from imitation.rewards.reward_nets import BasicRewardNet

    states, actions = (gym.spaces.Box(-1, 1, (3,)) if n is None else Discrete(n) for n in spaces)
    with pytest.raises(ValueError, match=r"reward_net is for .* but env has 16 states and 16 actions"):
        make(careful, inventory, BasicRewardNet(states, actions))


def test_an_own_reward_net_is_fitted_in_place_and_the_error_logged(inventory, careful, tmp_path, monkeypatch):
    from imitation.rewards.reward_nets import BasicRewardNet
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    monkeypatch.setattr("rlfd_gym.trainer.reward.FIT_STEPS", 300)  # rough, but quick
    log = logger.configure(tmp_path, ["csv"])
    net = BasicRewardNet(inventory.observation_space, inventory.action_space, hid_sizes=(64,))
    trainer = RLfDTrainer(careful, inventory, net, solver="smd", custom_logger=log)
    trainer.train(QUICK, log_interval=0)
    log.close()
    assert trainer.reward_net is net
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = net.predict(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    error = np.sqrt(np.mean((rewards + trainer.solution.cost) ** 2))
    logged = [
        float(row["rlfd/reward_fit_error"])
        for row in rows_of(tmp_path / "progress.csv")
        if row["rlfd/reward_fit_error"]
    ]
    assert logged == [pytest.approx(error, rel=1e-3)]
    assert error < 0.2 < trainer.solution.cost.std()


# files


@pytest.fixture
def saved(make, inventory, careful, guess, tmp_path):
    trainer = make(careful, inventory, prior=guess, n_runs=2, policy_kind="greedy", rng=3)
    trainer.train(QUICK)
    trainer.save(tmp_path / "trainer.npz")
    return trainer, tmp_path / "trainer.npz"


def test_a_saved_trainer_is_the_same_and_goes_on(saved, inventory, quiet):
    from rlfd_gym import RLfDTrainer

    trainer, path = saved
    again = RLfDTrainer.load(path, inventory, custom_logger=quiet)
    assert [item.name for item in path.parent.iterdir()] == ["trainer.npz"]
    for name in ("cost", "value", "occupancy", "policy"):
        assert (getattr(again.solution, name) == getattr(trainer.solution, name)).all()
    assert again.duality_gap == trainer.duality_gap
    assert (again.policy.probabilities == trainer.policy.probabilities).all()
    assert (again.reward_net.table == trainer.reward_net.table).all()
    assert (again.alpha, again.policy_kind, again.n_runs) == (0.1, "greedy", 2)
    assert again.solution.history.iteration.tolist() == trainer.solution.history.iteration.tolist()
    np.testing.assert_allclose(again.train(QUICK), trainer.train(QUICK), atol=1e-11)


def test_an_untrained_trainer_is_saved_too(make, inventory, careful, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    trainer = make(careful, inventory, step_size=(1e-3, 1e-4), rng=9)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    np.testing.assert_allclose(again.train(2000), trainer.train(2000), atol=1e-12)
    empty = make(None, inventory)
    empty.save(tmp_path / "trainer.npz")
    with pytest.raises(RuntimeError, match="no demonstrations yet"):
        RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet).train(2000)


@pytest.mark.parametrize(
    "settings",
    [{"n_jobs": np.int64(1)}, {"step_size": (np.float32(1e-3), 1e-4)}, {"epsilon": np.float32(5)}],
    ids=lambda settings: next(iter(settings)),
)
def test_numpys_numbers_are_saved_as_numbers(make, inventory, careful, tmp_path, quiet, settings):
    from rlfd_gym import RLfDTrainer

    make(careful, inventory, **settings).save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    for name, value in settings.items():
        assert getattr(again, name) == value


@pytest.mark.parametrize("kind", ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"])
def test_any_generator_of_the_policy_is_saved(make, inventory, careful, tmp_path, quiet, kind):
    from rlfd_gym import RLfDTrainer

    trainer, states = make(careful, inventory), np.zeros(100, dtype=int)
    trainer.policy.seed(np.random.Generator(getattr(np.random, kind)(1)))
    trainer.policy.predict(states)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    assert (again.policy.predict(states)[0] == trainer.policy.predict(states)[0]).all()


def test_an_own_reward_net_is_fitted_when_loading(saved, inventory, quiet, monkeypatch):
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym import RLfDTrainer

    monkeypatch.setattr("rlfd_gym.trainer.reward.FIT_STEPS", 300)  # rough, but quick
    net = BasicRewardNet(inventory.observation_space, inventory.action_space, hid_sizes=(64,))
    trainer = RLfDTrainer.load(saved[1], inventory, net, custom_logger=quiet)
    mdp = inventory.mdp
    done = np.zeros(mdp.n_pairs, dtype=bool)
    rewards = net.predict(mdp.pair_states, mdp.pair_actions, mdp.pair_states, done)
    assert (rewards + trainer.solution.cost).std() < 0.2 < trainer.solution.cost.std()


def test_damaged_files_are_refused(saved, inventory):
    from rlfd_gym import RLfDTrainer

    path = saved[1]
    whole = path.read_bytes()
    for content in (b"", b"junk", whole[:50], whole[: len(whole) // 2], whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"damaged or no rlfd_gym\.RLfDTrainer file"):
            RLfDTrainer.load(path, inventory)
    with pytest.raises(FileNotFoundError):
        RLfDTrainer.load(path.parent / "missing.npz", inventory)


def test_foreign_newer_and_incomplete_files_are_refused(saved, inventory):
    from rlfd_gym import RLfDTrainer

    path = saved[1]

    def written(**header):
        np.savez(path, header=np.array(json.dumps(header)))
        return path

    np.savez(path, weights=np.zeros(3))
    with pytest.raises(ValueError, match="damaged or no"):
        RLfDTrainer.load(path, inventory)
    with pytest.raises(ValueError, match=r"is a 'other' file, expected 'rlfd_gym\.RLfDTrainer'"):
        RLfDTrainer.load(written(format="other", version=1), inventory)
    with pytest.raises(ValueError, match="has version 99, this rlfd_gym reads up to 2"):
        RLfDTrainer.load(written(format="rlfd_gym.RLfDTrainer", version=99), inventory)
    with pytest.raises(ValueError, match=r"cannot be loaded \(KeyError: 'settings'\)"):
        RLfDTrainer.load(written(format="rlfd_gym.RLfDTrainer", version=1), inventory)


def test_a_file_for_another_environment_is_refused(saved, gridworld):
    from rlfd_gym import RLfDTrainer

    with pytest.raises(ValueError, match="was saved for another environment"):
        RLfDTrainer.load(saved[1], gridworld)


@pytest.mark.parametrize("solver", ["exact", "smd"])
def test_a_file_for_the_same_pairs_with_other_transitions_is_refused(make, inventory, careful, tmp_path, quiet, solver):
    from rlfd_gym import RLfDTrainer

    trainer = make(careful, inventory, solver=solver)
    trainer.train(QUICK)
    trainer.save(tmp_path / "trainer.npz")
    RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    less_demand = gym.make("rlfd_gym/Inventory-v0", demand_mean=5.0)
    with pytest.raises(ValueError, match="was saved for another environment, whose transitions"):
        RLfDTrainer.load(tmp_path / "trainer.npz", less_demand, custom_logger=quiet)


def test_no_code_in_a_file_is_executed(saved, inventory, tmp_path):
    from rlfd_gym import RLfDTrainer

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    np.savez(saved[1], header=np.array([Bomb()], dtype=object))
    (tmp_path / "exploded").unlink(missing_ok=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        RLfDTrainer.load(saved[1], inventory)
    assert not (tmp_path / "exploded").exists()


def test_a_failed_write_leaves_the_old_file(saved, monkeypatch):
    trainer, path = saved
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", lambda file, **arrays: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        trainer.save(path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["trainer.npz"]


# without tables


class Simulator(gym.Env):
    """A gridworld that draws next states and tells nothing else."""

    def __init__(self, **settings):
        self._world = gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3, **settings).unwrapped
        self.observation_space, self.action_space = self._world.observation_space, self._world.action_space
        self.discount = 0.7

    def sample_next(self, states, actions, rng):
        return self._world.sample_next(states, actions, rng)


def walks(world, policy, n=200):
    return rollouts(gym.wrappers.TimeLimit(world, 15), policy, n)


def test_learning_from_draws_alone(make):
    env = Simulator()
    world = env._world
    plan = world.mdp.optimal(world.cost)
    trainer = make(walks(world, plan.policy), env, prior=world.cost, alpha=0.05, rng=1)
    states = trainer.train(15_000, log_interval=0)
    assert states.sum() == pytest.approx(1)
    assert np.isnan(trainer.duality_gap)
    learned = trainer.policy.probabilities.numpy()[world.mdp.pair_states, world.mdp.pair_actions]
    uniform = world.mdp.expected_cost(world.mdp.uniform_policy(), world.cost)
    gained = uniform - world.mdp.expected_cost(learned, world.cost)
    assert gained > 0.25 * (uniform - plan.expected_cost)
    same = make(walks(world, plan.policy), env, prior=world.cost, alpha=0.05, rng=1)
    assert (same.train(15_000, log_interval=0) == states).all()


def test_without_tables_some_things_cannot_be_had(make):
    env = Simulator()
    for settings in ({"solver": "exact"}, {"policy_kind": "greedy"}):
        with pytest.raises(ValueError, match="need transition tables"):
            make(None, env, **settings)
    with pytest.raises(ValueError, match="an occupancy has no next states"):
        make(np.full(36, 1 / 36), env)
    assert make(None, env, solver=None).solver == "smd"
    env.observation_space = gym.spaces.Box(0, 1, (2,))
    with pytest.raises(TypeError, match="observation_space must be Discrete"):
        make(None, env)


def test_without_tables_the_simulator_is_asked_where_it_stays(make):
    from rlfd_gym.experts.demonstrations import absorbing_states, read_demonstrations

    env = Simulator(goals=[(0, 0)], obstacles=[])
    goal = int(np.flatnonzero(absorbing_states(env._world.mdp))[0])
    # imitation flags both as terminal; only the goal is never left.
    read = read_demonstrations([trajectory([4, goal], [3]), trajectory([7, 8], [1])])
    assert np.flatnonzero(make(None, env)._model.seems_absorbing(read)).tolist() == [goal]


def test_a_saved_simulator_trainer_goes_on(make, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer

    env = Simulator()
    trainer = make(walks(env._world, env._world.mdp.uniform_policy(), 5), env)
    trainer.train(500)
    trainer.save(tmp_path / "trainer.npz")
    again = RLfDTrainer.load(tmp_path / "trainer.npz", env, custom_logger=quiet)
    np.testing.assert_allclose(again.train(500), trainer.train(500), atol=1e-12)


# consistency


def test_with_tables_the_exact_solver_is_the_default(make, inventory, careful, guess):
    trainer = make(careful, inventory, solver=None, prior=guess)
    assert trainer.solver == "exact"
    seen = []
    states = trainer.train(callback=seen.append)
    assert trainer.duality_gap < 1e-6
    assert len(seen) == 1
    np.testing.assert_allclose(trainer.train(), states, atol=1e-12)


def test_smd_and_the_exact_solver_agree(make, inventory, careful, guess):
    exact, smd = (make(careful, inventory, prior=guess, solver=solver) for solver in ("exact", "smd"))
    exact.train()
    smd.train(5_000_000)
    assert smd.solution.lower <= exact.solution.upper + 1e-9
    assert exact.solution.lower <= smd.solution.upper + 1e-9
    assert np.abs(exact.solution.cost - smd.solution.cost).max() < 0.25


def test_a_large_gap_is_announced(inventory, careful, capsys, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDTrainer

    log = logger.configure(tmp_path, ["stdout"])
    RLfDTrainer(careful, inventory, solver="smd", custom_logger=log).train(1000)
    assert "the duality gap is still" in capsys.readouterr().out


def test_without_a_prior_the_learned_cost_still_tells_costs_apart(make, inventory):
    # At α = 0 a constant cost explains every expert; it would be no reward to train on.
    optimal = inventory.mdp.optimal(inventory.cost)
    trainer = make(optimal.occupancy, inventory, solver="exact", policy_kind="greedy")
    trainer.train()
    assert np.nanstd(trainer.cost_table) > 0.1
    learned = trainer.policy.probabilities.numpy()[inventory.mdp.pair_states, inventory.mdp.pair_actions]
    assert inventory.mdp.expected_cost(learned, inventory.cost) == pytest.approx(optimal.expected_cost, abs=1e-6)


def test_the_exact_expert_is_reproduced_where_he_is_identified(make, inventory, careful):
    trainer = make(careful, inventory, solver="exact")
    trainer.train()
    visited = inventory.mdp.sum_by_state(careful) > 1e-6
    expert = table_of(inventory.mdp, inventory.mdp.policy_of(careful))
    np.testing.assert_allclose(trainer.policy.probabilities.numpy()[visited], expert[visited], atol=1e-6)
    assert trainer.duality_gap < 1e-6


def test_a_heavy_prior_decides_alone(make, inventory, careful, guess):
    trainer = make(careful, inventory, prior=np.clip(guess, -1, 1), alpha=1e4, solver="exact")
    states = trainer.train()
    best = inventory.mdp.optimal(np.clip(guess, -1, 1))
    np.testing.assert_allclose(states, inventory.mdp.sum_by_state(best.occupancy), atol=1e-3)
    greedy = make(careful, inventory, prior=np.clip(guess, -1, 1), alpha=1e4, solver="exact", policy_kind="greedy")
    greedy.train()
    np.testing.assert_array_equal(greedy.policy.probabilities.numpy(), table_of(inventory.mdp, best.policy))


def test_many_demonstrations_lead_to_the_demonstrators_policy(make, gridworld):
    mdp = gridworld.mdp
    plan = mdp.optimal(gridworld.cost)
    noisy = 0.8 * plan.policy + 0.2 * mdp.uniform_policy()
    trainer = make(walks(gridworld, noisy, 300), gridworld)
    trainer.train(3_000_000)
    learned = trainer.policy.probabilities.numpy()[mdp.pair_states, mdp.pair_actions]
    reached = mdp.expected_cost(learned, gridworld.cost)
    assert reached == pytest.approx(mdp.expected_cost(noisy, gridworld.cost), abs=0.03)
    assert unwrap(trainer.env) is gridworld


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


# alpha by a rule


def test_a_rule_chooses_alpha_and_the_trainer_says_why(inventory, careful, guess, tmp_path):
    from imitation.util import logger

    from rlfd_gym import RLfDProblem, RLfDTrainer, alpha_path, select_alpha

    log = logger.configure(tmp_path, ["csv", "log"])
    trainer = RLfDTrainer(careful, inventory, prior=guess, alpha="regret-budget:0.05", custom_logger=log)
    assert np.isnan(trainer.alpha)
    with pytest.raises(RuntimeError, match=r"no alpha has been chosen: call train\(\) first"):
        trainer.alpha_choice  # noqa: B018
    trainer.train()
    expected = select_alpha(alpha_path(RLfDProblem(inventory.mdp, careful, guess)), "regret-budget:0.05")
    assert trainer.alpha == trainer.alpha_choice.alpha == expected.alpha
    assert trainer.alpha_choice.reason == expected.reason
    np.testing.assert_allclose(trainer.solution.cost, expected.solution.cost, atol=1e-9)
    log.close()
    assert expected.reason in (tmp_path / "log.txt").read_text()
    assert float(rows_of(tmp_path / "progress.csv")[-1]["rlfd/alpha"]) == pytest.approx(expected.alpha)


def test_the_discrepancy_rule_measures_the_noise_of_the_trainers_trajectories(make, inventory, guess):
    from rlfd_gym import RLfDProblem, alpha_path, demonstrate, occupancy_from_demonstrations, occupancy_noise

    mdp = inventory.mdp
    policy = mdp.optimal(inventory.cost_for(5, 8, 15)).policy
    few, many = (demonstrate(mdp, policy, number, 66, seed=0) for number in (3, 60))
    trainer = make(few, inventory, prior=guess, alpha="discrepancy", solver="exact")
    trainer.train()
    first = trainer.alpha
    expert = occupancy_from_demonstrations(few, mdp)
    (point,) = alpha_path(RLfDProblem(mdp, expert, guess), [first])
    assert point.departure == pytest.approx(occupancy_noise(few, mdp), rel=0.1)  # another seed of the bootstrap
    trainer.set_demonstrations(many)
    assert np.isnan(trainer.alpha)
    trainer.train()
    assert trainer.alpha < first  # better data: the prior weighs less


def test_a_chosen_alpha_is_saved_and_a_choice_yet_to_be_made_too(make, inventory, guess, tmp_path, quiet):
    from rlfd_gym import RLfDTrainer, demonstrate

    walks = demonstrate(inventory.mdp, inventory.mdp.uniform_policy(), 5, 66, seed=0)
    trainer = make(walks, inventory, prior=guess, alpha="discrepancy", solver="exact")
    trainer.save(tmp_path / "before.npz")
    trainer.train()
    trainer.save(tmp_path / "after.npz")
    before, after = (
        RLfDTrainer.load(tmp_path / f"{name}.npz", inventory, custom_logger=quiet) for name in ("before", "after")
    )
    assert (after.alpha, after.alpha_rule) == (trainer.alpha, "discrepancy")
    assert after.alpha_choice.reason == trainer.alpha_choice.reason
    np.testing.assert_array_equal(after.cost_table, trainer.cost_table)
    before.train()
    assert before.alpha == trainer.alpha
    np.testing.assert_allclose(before.cost_table, trainer.cost_table, atol=1e-9)


def test_rules_that_cannot_be_followed_are_refused(make, inventory, careful, guess):
    from rlfd_gym import demonstrate

    for settings, message in (
        ({"alpha": "regret-budgt", "prior": guess}, "did you mean 'regret-budget'"),
        ({"alpha": "l-curve"}, "prior is None, so alpha must be 0, got 'l-curve'"),
        ({"alpha": "l-curve", "prior": guess, "solver": "smd"}, 'solver="exact" with tables.*got .smd'),
        ({"alpha": "l-curve", "prior": guess, "regulariser": "l1"}, 'regulariser="l2"; got .exact. and .l1'),
    ):
        with pytest.raises(ValueError, match=message):
            make(careful, inventory, **{"solver": "exact"} | settings)
    with pytest.raises(ValueError, match="needs trajectories, to see how much they vary"):
        make(careful, inventory, prior=guess, alpha="discrepancy", solver="exact").train()
    make(careful, inventory, prior=guess, alpha="discrepancy:0.1", solver="exact").train()
    one = demonstrate(inventory.mdp, inventory.mdp.uniform_policy(), 1, 66, seed=0)
    with pytest.raises(ValueError, match="at least two trajectories"):
        make(one, inventory, prior=guess, alpha="discrepancy", solver="exact")
    with pytest.raises(RuntimeError, match="alpha was given as a number"):
        make(careful, inventory, prior=guess, solver="exact").alpha_choice  # noqa: B018


@pytest.mark.parametrize("solver", ["exact", "smd"])
def test_the_regulariser_reaches_the_problem_and_is_saved(make, inventory, careful, guess, tmp_path, quiet, solver):
    from rlfd_gym import RLfDProblem, RLfDTrainer, solve_exact

    trainer = make(careful, inventory, prior=guess, alpha=0.01, regulariser="l1", solver=solver)
    trainer.train(QUICK)
    problem = RLfDProblem(inventory.mdp, careful, guess, 0.01, "l1")
    if solver == "exact":
        np.testing.assert_array_equal(trainer.solution.cost, solve_exact(problem).cost)
    point = (getattr(trainer.solution, name) for name in ("cost", "value", "occupancy"))
    assert trainer.duality_gap == pytest.approx(problem.duality_gap(*point), abs=1e-12)
    trainer.save(tmp_path / "trainer.npz")
    loaded = RLfDTrainer.load(tmp_path / "trainer.npz", inventory, custom_logger=quiet)
    assert loaded.regulariser == "l1"
    if solver == "smd":
        for one in (trainer, loaded):
            one.train(QUICK)
    np.testing.assert_array_equal(loaded.solution.cost, trainer.solution.cost)


def test_l1_has_no_default_alpha(make, inventory, careful, guess):
    with pytest.raises(ValueError, match='alpha has no default with regulariser="l1"'):
        make(careful, inventory, prior=guess, regulariser="l1")
    with pytest.raises(ValueError, match="regulariser must be one of l2, l1; got 'lasso'"):
        make(careful, inventory, prior=guess, regulariser="lasso")
