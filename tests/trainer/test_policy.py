from __future__ import annotations

import copy
import io
import pickle

import gymnasium as gym
import numpy as np
import pytest
from checks import newest
from gymnasium.spaces import Box, Discrete

pytestmark = pytest.mark.needs_imitation

TABLE = np.array([[0.25, 0.75, 0.0], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])


@pytest.fixture
def policy():
    from rlfd_gym.trainer.policy import TablePolicy

    return TablePolicy(Discrete(3), Discrete(3), TABLE, seed=3)


def test_one_observation_gives_one_action_and_a_batch_gives_a_batch(policy):
    for single in (2, np.int64(2), np.array(2)):
        action, state = policy.predict(single)
        assert action.shape == ()
        assert action == 2
        assert state is None
    actions, _ = policy.predict(np.array([2, 2, 2]))
    assert actions.tolist() == [2, 2, 2]
    assert actions.dtype.kind == "i"


def test_the_likeliest_action_is_taken_and_the_lowest_on_a_tie(policy):
    assert policy.predict(np.arange(3), deterministic=True)[0].tolist() == [1, 0, 2]


def test_actions_are_drawn_with_their_probabilities_and_never_where_these_are_zero(policy):
    states = np.repeat(np.arange(3), 20_000)
    actions, _ = policy.predict(states)
    counts = np.zeros((3, 3))
    np.add.at(counts, (states, actions), 1)
    assert (counts[TABLE == 0] == 0).all()
    np.testing.assert_allclose(counts / 20_000, TABLE, atol=0.015)  # four standard deviations


def test_rounding_does_not_lead_to_an_infeasible_action():
    from rlfd_gym.trainer.policy import TablePolicy

    class Highest(np.random.Generator):
        def random(self, size=None):
            return np.full(size, 1.0)  # beyond what a generator may give

    policy = TablePolicy(Discrete(1), Discrete(4), [[0.1, 0.2, 0.7, 0.0]], seed=Highest(np.random.PCG64()))
    assert policy.predict(np.zeros(5, dtype=int))[0].tolist() == [2] * 5


def test_the_same_seed_gives_the_same_actions(policy):
    states = np.zeros(100, dtype=int)
    first = policy.predict(states)[0]
    second = policy.predict(states)[0]
    assert (first != second).any()
    policy.seed(3)
    assert (policy.predict(states)[0] == first).all()


def test_without_a_table_every_action_is_alike():
    from rlfd_gym.trainer.policy import TablePolicy

    np.testing.assert_allclose(TablePolicy(Discrete(2), Discrete(4)).probabilities.numpy(), 0.25)


@pytest.mark.parametrize("kind", ["path", "string", "buffer-free copy", "pickle"])
def test_a_policy_survives_being_saved(policy, tmp_path, kind):
    from rlfd_gym.trainer.policy import TablePolicy

    if kind == "pickle":
        again = pickle.loads(pickle.dumps(policy))
    elif kind == "buffer-free copy":
        again = copy.deepcopy(policy)
    else:
        path = tmp_path / "policy.pt"
        policy.save(path if kind == "path" else str(path))
        again = TablePolicy.load(path if kind == "path" else str(path), device="cpu", seed=3)
        assert [p.name for p in tmp_path.iterdir()] == ["policy.pt"]
    assert (again.probabilities == policy.probabilities).all()
    assert (again.observation_space, again.action_space) == (Discrete(3), Discrete(3))
    states = np.zeros(50, dtype=int)
    assert (again.predict(states)[0] == policy.predict(states)[0]).all()


def test_a_state_dict_and_the_constructor_parameters_make_it_again(policy):
    from rlfd_gym.trainer.policy import TablePolicy

    again = TablePolicy(Discrete(3), Discrete(3))
    again.load_state_dict(policy.state_dict())
    assert (again.probabilities == policy.probabilities).all()
    built = TablePolicy(**policy._get_constructor_parameters())
    assert (built.probabilities == policy.probabilities).all()


def test_nothing_in_a_file_is_executed(tmp_path):
    import torch as th

    from rlfd_gym.trainer.policy import TablePolicy

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "exploded"), "w"))

    path = tmp_path / "policy.pt"
    th.save({"format": "rlfd_gym.TablePolicy", "version": 1, "probabilities": Bomb()}, path)
    with pytest.raises(ValueError, match=r"damaged or no rlfd_gym\.TablePolicy file"):
        TablePolicy.load(path)
    assert not (tmp_path / "exploded").exists()


def test_damaged_foreign_and_newer_files_are_told_apart(policy, tmp_path):
    import torch as th

    from rlfd_gym.trainer.policy import TablePolicy

    path = tmp_path / "policy.pt"
    policy.save(path)
    whole = path.read_bytes()
    for content in (whole[:100], whole[: len(whole) // 2], b"", b"not a policy"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged or no"):
            TablePolicy.load(path)

    def written(**content):
        buffer = io.BytesIO()
        th.save(content, buffer)
        path.write_bytes(buffer.getvalue())
        return path

    with pytest.raises(ValueError, match=r"is no rlfd_gym.TablePolicy file"):
        TablePolicy.load(written(state_dict={}))
    with pytest.raises(ValueError, match="has version 2; this rlfd_gym reads version 1"):
        TablePolicy.load(written(format="rlfd_gym.TablePolicy", version=2, probabilities=th.ones(1, 1)))
    with pytest.raises(ValueError, match="has no table 'probabilities'"):
        TablePolicy.load(written(format="rlfd_gym.TablePolicy", version=1))
    with pytest.raises(FileNotFoundError):
        TablePolicy.load(tmp_path / "missing.pt")


def test_imitation_finds_it_by_name(tmp_path):
    from imitation.policies.serialize import load_policy, policy_registry
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer import tensors as _tensors
    from rlfd_gym.trainer.policy import TablePolicy

    venv = DummyVecEnv([lambda: gym.make("FrozenLake-v1")])
    policy = TablePolicy(venv.observation_space, venv.action_space, np.tile([0.0, 1.0, 0.0, 0.0], (16, 1)))
    policy.save(tmp_path / "policy.pt")
    loaded = load_policy("rlfd", venv, path=tmp_path / "policy.pt")
    assert loaded.predict(venv.reset())[0].tolist() == [1]
    _tensors.register(policy_registry, "rlfd", "elsewhere:loader")  # a second time changes nothing
    assert load_policy("rlfd", venv, path=tmp_path / "policy.pt").predict(3)[0] == 1
    other = DummyVecEnv([lambda: gym.make(newest("CliffWalking"))])
    with pytest.raises(ValueError, match=r"is for the spaces Discrete\(16\), Discrete\(4\); the environment has"):
        load_policy("rlfd", other, path=tmp_path / "policy.pt")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.ones((2, 3)) / 3, r"has shape \(2, 3\), expected \(3, 3\)"),
        (np.ones((3, 3)), "must sum to 1 in each state, but they sum to 3.0 in 0"),
        (np.array([[2.0, -1.0, 0.0]] * 3), "not negative"),
        (np.full((3, 3), np.nan), "finite"),
    ],
)
def test_bad_tables_are_refused(policy, table, message):
    with pytest.raises(ValueError, match=message):
        policy.set_probabilities(table)


def test_other_spaces_and_observations_are_refused(policy):
    from rlfd_gym.trainer.policy import TablePolicy

    with pytest.raises(TypeError, match="observation_space must be Discrete"):
        TablePolicy(Box(0, 1, (2,)), Discrete(3))
    with pytest.raises(TypeError, match="action_space must be Discrete"):
        TablePolicy(Discrete(3), Discrete(3, start=1))
    for observation in (3, -1, np.array([0, 5])):
        with pytest.raises(ValueError, match=r"is no state; states are 0\.\.2"):
            policy.predict(observation)


def test_a_table_that_is_larger_than_its_file_is_refused(policy, tmp_path):
    import torch as th

    from rlfd_gym.trainer.policy import FORMAT, TablePolicy

    path = tmp_path / "policy"
    wide = th.full((1, 1), 1e-9, dtype=th.float64).expand(2, 10**9)
    th.save({"format": FORMAT, "version": 1, "probabilities": wide}, path)
    with pytest.raises(ValueError, match="policy is damaged: its table 'probabilities' is not stored as it is"):
        TablePolicy.load(path)


def test_a_compressed_or_contradictory_archive_is_refused(policy, tmp_path):
    import zipfile

    from rlfd_gym.trainer.policy import TablePolicy

    path, other = tmp_path / "policy", tmp_path / "other"
    policy.save(path)
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    with pytest.raises(ValueError, match=r"damaged or no .* it is compressed, which tables are not"):
        TablePolicy.load(other)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 20 : entry + 24] = (2**32 - 2).to_bytes(4, "little")
    other.write_bytes(data)
    with pytest.raises(ValueError, match=r"damaged or no .* its directory contradicts itself"):
        TablePolicy.load(other)


def test_a_table_that_is_no_policy_is_refused_by_its_file(policy, tmp_path):
    import torch as th

    from rlfd_gym.trainer.policy import FORMAT, TablePolicy

    table = th.full((2, 2), 0.7, dtype=th.float64)
    th.save({"format": FORMAT, "version": 1, "probabilities": table}, tmp_path / "policy")
    with pytest.raises(ValueError, match="/policy: probabilities must sum to 1"):
        TablePolicy.load(tmp_path / "policy")
