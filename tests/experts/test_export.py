"""Minari's and HuggingFace's data sets, in and out, with the real libraries."""

from __future__ import annotations

import sys

import gymnasium as gym
import numpy as np
import pytest

import rlfd_gym
from rlfd_gym import occupancy_from_demonstrations
from rlfd_gym.experts import read_demonstrations, to_minari
from rlfd_gym.experts.made_up import Walk

pytestmark = [
    pytest.mark.filterwarnings("ignore:demonstrations end early"),
    pytest.mark.filterwarnings("ignore::UserWarning:minari", "ignore::DeprecationWarning:minari"),
    pytest.mark.filterwarnings("ignore:`(author|author_email|code_permalink|algorithm_name|description|eval_env)"),
]


@pytest.fixture
def minari(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return pytest.importorskip("minari")


def walks_of(env, n=5, length=12):
    return rlfd_gym.demonstrate(env.mdp, env.mdp.optimal(env.cost).policy, n, length, seed=0)


@pytest.mark.parametrize("made", [True, False], ids=["by gym.make", "by its class"])
def test_demonstrations_come_back_from_minari_as_they_were(minari, inventory, made):
    env = inventory if made else type(inventory)()
    walks = walks_of(env)
    walks[1] = Walk(walks[1].obs[:5], walks[1].acts[:4], terminal=True)
    stored = to_minari(walks, env, "inventory/expert-v0", algorithm_name="optimal")
    loaded = minari.load_dataset("inventory/expert-v0")
    expected = occupancy_from_demonstrations(walks, env.mdp)
    for dataset in (stored, loaded, list(loaded)):
        read = read_demonstrations(dataset)
        assert read.lengths.tolist() == [12, 4, 12, 12, 12]
        assert read.terminal.tolist() == [False, True, False, False, False]
        assert (occupancy_from_demonstrations(dataset, env.mdp) == expected).all()
    episode = loaded[0]
    assert episode.truncations.tolist() == [False] * 11 + [True]
    pairs = env.mdp.pair_index(walks[0].obs[:-1], walks[0].acts)
    np.testing.assert_allclose(episode.rewards, -env.cost[pairs], rtol=1e-6)
    assert loaded.storage.metadata["algorithm_name"] == "optimal"
    if made:
        assert loaded.recover_environment().spec.id == "rlfd_gym/Inventory-v0"


def test_minaris_own_episodes_are_read(minari):
    mdp = rlfd_gym.TabularMDP.from_env(gym.make("FrozenLake-v1", is_slippery=False), discount=0.9)
    walk = Walk(np.array([0, 4, 8, 9, 10, 14, 15]), np.array([1, 1, 2, 2, 1, 2]), terminal=True)
    last = np.arange(6) == 5
    episode = minari.EpisodeData(0, walk.obs, walk.acts, last.astype(float), last, np.zeros(6, bool), {})
    read = read_demonstrations([episode])
    assert read.terminal.tolist() == [True]
    mine = occupancy_from_demonstrations([episode], mdp)
    assert (mine == occupancy_from_demonstrations([walk], mdp)).all()


def test_transitions_are_no_episodes(inventory):
    pytest.importorskip("minari")
    with pytest.raises(ValueError, match="demonstrations must be trajectories"):
        to_minari([{"obs": [0], "acts": [1]}], inventory, "inventory-v0")


def test_without_minari_the_error_says_what_to_install(monkeypatch, inventory):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(
        ImportError,
        match=r'to_minari needs minari: pip install "datasets>=2.8" "h5py>=3.8" "jsonpickle>=3.0" "minari>=',
    ):
        to_minari(walks_of(inventory), inventory, "inventory-v0")


def rows_of(walks):
    """imitation's layout."""
    return {
        "obs": [walk.obs.tolist() for walk in walks],
        "acts": [walk.acts.tolist() for walk in walks],
        "infos": [["{}"] * len(walk.acts) for walk in walks],
        "terminal": [walk.terminal for walk in walks],
    }


def test_a_plain_huggingface_data_set_of_trajectories_is_read(inventory):
    datasets = pytest.importorskip("datasets")
    walks = walks_of(inventory)
    dataset = datasets.Dataset.from_dict(rows_of(walks))
    expected = occupancy_from_demonstrations(walks, inventory.mdp)
    for kind in (dataset, dataset.with_format("numpy"), dataset.to_iterable_dataset()):
        assert (occupancy_from_demonstrations(kind, inventory.mdp) == expected).all()


@pytest.mark.needs_imitation
@pytest.mark.filterwarnings("ignore:keys will default:DeprecationWarning")
def test_imitations_own_data_sets_are_read(inventory):
    from imitation.data import huggingface_utils
    from imitation.data.types import Trajectory

    walks = [Trajectory(walk.obs, walk.acts, None, walk.terminal) for walk in walks_of(inventory)]
    dataset = huggingface_utils.trajectories_to_dataset(walks)
    expected = occupancy_from_demonstrations(walks, inventory.mdp)
    for kind in (dataset, huggingface_utils.TrajectoryDatasetSequence(dataset)):
        assert (occupancy_from_demonstrations(kind, inventory.mdp) == expected).all()


@pytest.mark.needs_imitation
def test_the_trainer_takes_data_sets(minari, inventory):
    import datasets

    from rlfd_gym.trainer import quiet_logger

    walks = walks_of(inventory)
    expected = occupancy_from_demonstrations(walks, inventory.mdp)
    for kind in (to_minari(walks, inventory, "inventory-v0"), datasets.Dataset.from_dict(rows_of(walks))):
        trainer = rlfd_gym.RLfDTrainer(kind, inventory, rng=0, custom_logger=quiet_logger())
        np.testing.assert_allclose(trainer.problem.expert, expected, rtol=1e-14)
