from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from checks import newest
from gymnasium.spaces import Box, Discrete

pytestmark = [
    pytest.mark.needs_imitation,
    pytest.mark.filterwarnings("ignore:tried to wrap", "ignore:trying to unwrap"),  # imitation, about discrete states
]

TABLE = np.array([[0.1, -1.0], [0.5, 0.25], [-0.7, 1 / 3]])
ALL = np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)
TRANSITIONS = (*ALL, ALL[0], np.full(6, 1 / 6))


@pytest.fixture
def net():
    from rlfd_gym.trainer.reward import TableRewardNet

    return TableRewardNet(Discrete(3), Discrete(2), TABLE)


@pytest.fixture
def one_thread():
    """So small a net is slower with more, where others compute too."""
    import torch as th

    before = th.get_num_threads()
    th.set_num_threads(1)
    yield
    th.set_num_threads(before)


def predict(net, states, actions):
    return net.predict_processed(states, actions, states, np.zeros(len(states), dtype=bool))


def test_the_table_is_read_exactly(net):
    assert (predict(net, *ALL) == TABLE.ravel()).all()
    assert net.dtype.is_floating_point
    assert str(net.device) == "cpu"


def test_a_state_dict_makes_it_again(net):
    from rlfd_gym.trainer.reward import TableRewardNet

    again = TableRewardNet(Discrete(3), Discrete(2))
    assert (predict(again, *ALL) == 0).all()
    again.load_state_dict(net.state_dict())
    assert (predict(again, *ALL) == TABLE.ravel()).all()


def test_imitations_wrappers_go_around_it(net):
    from imitation.rewards.reward_nets import NormalizedRewardNet
    from imitation.util.networks import RunningNorm

    wrapped = NormalizedRewardNet(net, RunningNorm)
    assert wrapped.predict(*ALL, ALL[0], np.zeros(6, dtype=bool)).tolist() == TABLE.ravel().tolist()


def test_imitation_finds_it_by_name(tmp_path):
    from imitation.rewards.serialize import load_reward
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer.reward import TableRewardNet

    venv = DummyVecEnv([lambda: gym.make("FrozenLake-v1")])
    table = np.random.default_rng(0).uniform(-1, 1, (16, 4))
    TableRewardNet(venv.observation_space, venv.action_space, table).save(tmp_path / "reward.pt")
    reward = load_reward("rlfd", str(tmp_path / "reward.pt"), venv)
    states, actions = np.array([3, 5]), np.array([0, 2])
    assert (reward(states, actions, states, np.zeros(2, dtype=bool)) == table[states, actions]).all()
    other = DummyVecEnv([lambda: gym.make(newest("CliffWalking"))])
    with pytest.raises(ValueError, match="is for the spaces"):
        load_reward("rlfd", str(tmp_path / "reward.pt"), other)
    (tmp_path / "reward.pt").write_bytes(b"junk")
    with pytest.raises(ValueError, match=r"damaged or no rlfd_gym\.TableRewardNet file"):
        load_reward("rlfd", str(tmp_path / "reward.pt"), venv)


def test_an_agent_is_paid_by_the_table(net):
    from imitation.rewards.reward_wrapper import RewardVecEnvWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer.reward import TableRewardNet

    venv = DummyVecEnv([lambda: gym.make("FrozenLake-v1", is_slippery=False)] * 2)
    table = np.arange(64.0).reshape(16, 4)
    paid = RewardVecEnvWrapper(venv, TableRewardNet(Discrete(16), Discrete(4), table).predict_processed)
    before = paid.reset()
    actions = np.array([1, 2])
    assert paid.step(actions)[1].tolist() == table[before, actions].tolist()


@pytest.mark.parametrize("shape", [(6,), (6, 1)])
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_states_and_actions_may_be_columns_as_in_a_replay_buffer(net, shape, dtype):
    states, actions = (x.reshape(shape).astype(dtype) for x in ALL)
    assert net.predict(states, actions, states, np.zeros((6, 1), dtype=np.float32)).tolist() == TABLE.ravel().tolist()


def test_rows_that_are_one_hot_go_through_the_net(net):
    import torch as th

    states, actions = (th.as_tensor(np.eye(n)[x]) for n, x in zip((3, 2), ALL, strict=True))
    assert net(states, actions).tolist() == TABLE.ravel().tolist()
    with pytest.raises(ValueError, match=r"one-hot rows, \(n, 3\) and \(n, 2\).*got the shapes \(6, 2\) and \(6, 3\)"):
        net(actions, states)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": np.zeros((6, 2), dtype=int)}, r"state must be whole numbers .* got int64 of shape \(6, 2\)"),
        ({"action": np.zeros((6, 1, 1))}, r"action must be whole numbers .* got float64 of shape \(6, 1, 1\)"),
        ({"state": np.array(1)}, r"state must be whole numbers of shape \(n,\) or \(n, 1\), got int64 of shape \(\)"),
        ({"action": np.array(["0"] * 6)}, "action must be whole numbers"),
        ({"state": np.full(6, 3)}, "state must hold whole numbers from 0 to 2, but it holds 3"),
        ({"next_state": np.full((6, 1), -1)}, "next_state must hold whole numbers from 0 to 2, but it holds -1"),
        ({"action": np.full(6, 0.5)}, "action must hold whole numbers from 0 to 1, but it holds 0.5"),
        ({"action": np.full(6, np.nan)}, "action must hold whole numbers from 0 to 1, but it holds nan"),
        ({"action": np.zeros(5, dtype=int)}, r"equally many, got the shapes \(6,\), \(5,\), \(6,\)"),
    ],
)
def test_what_is_no_batch_of_states_and_actions_is_refused_by_its_shape(net, changes, message):
    batch = {"state": ALL[0], "action": ALL[1], "next_state": ALL[0], "done": np.zeros(6, dtype=bool)} | changes
    with pytest.raises(ValueError, match=message):
        net.predict(**batch)


def test_an_agent_with_a_replay_buffer_learns_from_the_table(one_thread):
    from imitation.policies.replay_buffer_wrapper import ReplayBufferRewardWrapper
    from stable_baselines3 import DQN
    from stable_baselines3.common.buffers import ReplayBuffer

    from rlfd_gym.trainer.reward import TableRewardNet

    env = gym.make("FrozenLake-v1", is_slippery=False)
    table = np.zeros((16, 4))
    table[:, 2] = 1.0  # going right is paid, which the environment does not do
    paid = TableRewardNet(env.observation_space, env.action_space, table)
    agent = DQN(
        "MlpPolicy", env, learning_starts=50, train_freq=1, gamma=0.0, learning_rate=1e-2, seed=0, device="cpu",
        replay_buffer_class=ReplayBufferRewardWrapper,
        replay_buffer_kwargs={"replay_buffer_class": ReplayBuffer, "reward_fn": paid.predict_processed},
        exploration_initial_eps=1.0, exploration_final_eps=1.0, policy_kwargs={"net_arch": [16]},
    )  # fmt: skip
    agent.learn(350)
    sample = agent.replay_buffer.sample(64)
    assert sample.observations.shape == (64, 1)
    assert (sample.rewards == (sample.actions == 2)).all()
    visited = np.unique(sample.observations.numpy())
    assert agent.predict(visited, deterministic=True)[0].tolist() == [2] * len(visited)


def test_infeasible_actions_earn_what_the_environment_does_instead(inventory):
    from rlfd_gym.trainer.reward import reward_table

    cost = np.full((16, 16), np.nan)
    cost[inventory.mdp.pair_states, inventory.mdp.pair_actions] = inventory.cost
    table = reward_table(cost, inventory)
    assert table[3, 15] == -cost[3, 12]  # 12 units are free
    assert table[15, 7] == -cost[15, 0]
    assert reward_table(cost, object())[3, 15] == -np.nanmax(cost)
    full = np.array([[1.0, 0.0]])
    assert reward_table(full, inventory).tolist() == [[-1.0, 0.0]]


def test_another_net_is_fitted_as_well_as_it_can_be():
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer.reward import fit_reward_net

    rng = np.random.default_rng(0)
    full = BasicRewardNet(Discrete(3), Discrete(2), hid_sizes=(32,))
    error = fit_reward_net(full, TABLE, TRANSITIONS, rng)
    assert error < 0.01
    np.testing.assert_allclose(predict(full, *ALL), TABLE.ravel(), atol=0.03)

    blind = BasicRewardNet(Discrete(3), Discrete(2), use_action=False, hid_sizes=())
    error = fit_reward_net(blind, TABLE, TRANSITIONS, rng)
    best = np.sqrt(((TABLE - TABLE.mean(axis=1, keepdims=True)) ** 2).mean())  # the mean over actions is all it can say
    assert error == pytest.approx(best, abs=0.01)
    np.testing.assert_allclose(predict(blind, *ALL), np.repeat(TABLE.mean(axis=1), 2), atol=0.05)


def test_a_fit_uses_one_thread_and_gives_the_others_back(monkeypatch):
    import torch as th
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer import reward

    seen = []

    class Net(BasicRewardNet):
        def forward(self, *inputs):
            seen.append(th.get_num_threads())
            if len(seen) > 3:
                raise KeyboardInterrupt
            return super().forward(*inputs)

    before = th.get_num_threads()
    th.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            reward.fit_reward_net(Net(Discrete(3), Discrete(2)), TABLE, TRANSITIONS, np.random.default_rng(0))
        assert set(seen) == {1}
        assert th.get_num_threads() == 2
    finally:
        th.set_num_threads(before)


def test_every_member_of_an_ensemble_is_fitted():
    from imitation.rewards.reward_nets import AddSTDRewardWrapper, BasicRewardNet, RewardEnsemble

    from rlfd_gym.trainer.reward import fit_reward_net

    members = [BasicRewardNet(Discrete(3), Discrete(2), hid_sizes=(32,)) for _ in range(2)]
    cautious = AddSTDRewardWrapper(RewardEnsemble(Discrete(3), Discrete(2), members), default_alpha=-1.0)
    assert fit_reward_net(cautious, TABLE, TRANSITIONS, np.random.default_rng(0)) < 0.01
    for net in (*members, cautious.base):
        np.testing.assert_allclose(predict(net, *ALL), TABLE.ravel(), atol=0.03)


def test_a_net_over_vectors_sees_what_the_environment_shows():
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer.reward import fit_reward_net

    vectors = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=np.float32)
    net = BasicRewardNet(Box(0, 1, (2,)), Discrete(2), hid_sizes=(32,))
    assert fit_reward_net(net, TABLE, TRANSITIONS, np.random.default_rng(0), vectors) < 0.02
    with pytest.raises(ValueError, match="but the environment's states are discrete"):
        fit_reward_net(net, TABLE, TRANSITIONS, np.random.default_rng(0))


def test_many_transitions_are_fitted_in_batches(monkeypatch):
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer import reward as rewards

    monkeypatch.setattr(rewards, "FIT_BATCH", 4)
    net = BasicRewardNet(Discrete(3), Discrete(2), hid_sizes=(32,))
    error = rewards.fit_reward_net(net, TABLE, TRANSITIONS, np.random.default_rng(0))
    by_hand = np.sqrt(np.mean((predict(net, *ALL) - TABLE.ravel()) ** 2))
    assert error == pytest.approx(by_hand, rel=1e-3)
    assert error < 0.1


def test_a_table_is_fitted_exactly_and_a_net_without_parameters_not_at_all(net):
    from imitation.testing.reward_nets import MockRewardNet

    from rlfd_gym.trainer.reward import fit_reward_net

    assert fit_reward_net(net, TABLE + 1, TRANSITIONS, np.random.default_rng(0)) == 0
    assert (predict(net, *ALL) == (TABLE + 1).ravel()).all()
    with pytest.raises(ValueError, match="without trainable parameters"):
        fit_reward_net(MockRewardNet(Discrete(3), Discrete(2)), TABLE, TRANSITIONS, np.random.default_rng(0))


def test_bad_tables_are_refused(net):
    with pytest.raises(ValueError, match=r"has shape \(2, 3\), expected \(3, 2\)"):
        net.set_table(TABLE.T)
    with pytest.raises(ValueError, match="table must be finite"):
        net.set_table(np.full((3, 2), np.nan))
