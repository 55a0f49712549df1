"""The documented calls of BC, GAIL, AIRL, MCEIRL and DAgger work with `RLfDTrainer` in the class's place."""

from __future__ import annotations

import inspect

import gymnasium as gym
import numpy as np
import pytest
from trainer_data import MARKS, rows_of

pytestmark = MARKS
STEPS = 12


@pytest.fixture(scope="module")
def scene():
    """A small gridworld, vectorised with a time limit, an expert, and its episodes."""
    from imitation.data import rollout
    from imitation.data.wrappers import RolloutInfoWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    from rlfd_gym.trainer import TablePolicy

    def make():
        grid = gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3).unwrapped
        return RolloutInfoWrapper(gym.wrappers.TimeLimit(grid, STEPS))

    class Scene:
        venv = DummyVecEnv([make] * 2)
        grid = venv.get_attr("unwrapped")[0]
        mdp = grid.mdp
        plan = mdp.optimal(grid.cost)
        expert = TablePolicy(venv.observation_space, venv.action_space, mdp.table(plan.policy, 0.0))

    until, rng = rollout.make_sample_until(min_episodes=6), np.random.default_rng(0)
    Scene.episodes = list(rollout.rollout(Scene.expert, Scene.venv, until, rng=rng))
    Scene.transitions = rollout.flatten_trajectories(Scene.episodes)
    return Scene


@pytest.fixture
def heard(tmp_path):
    """A logger that writes to files, and a function that returns its lines."""
    from imitation.util import logger

    log = logger.configure(tmp_path / "log", ["log", "csv"])
    yield log, lambda: (tmp_path / "log" / "log.txt").read_text(), lambda: rows_of(tmp_path / "log" / "progress.csv")
    log.close()


def bc(kind, scene, log, **more):
    trainer = kind(
        observation_space=scene.venv.observation_space,
        action_space=scene.venv.action_space,
        demonstrations=scene.transitions,
        rng=np.random.default_rng(0),
        custom_logger=log,
        **more,
    )
    trainer.train(n_epochs=1, progress_bar=False)
    return trainer


def bc_in_full(kind, scene, log, **more):
    from imitation.policies.base import FeedForward32Policy
    from torch.optim import SGD

    spaces = scene.venv.observation_space, scene.venv.action_space
    trainer = kind(
        observation_space=spaces[0],
        action_space=spaces[1],
        rng=np.random.default_rng(0),
        policy=FeedForward32Policy(*spaces, lambda _: 1e-3),
        demonstrations=scene.episodes,
        batch_size=8,
        minibatch_size=4,
        optimizer_cls=SGD,
        optimizer_kwargs={"lr": 1e-3},
        ent_weight=1e-3,
        l2_weight=0.0,
        device="cpu",
        custom_logger=log,
        **more,
    )
    trainer.train(
        n_batches=2,
        on_epoch_end=lambda: None,
        on_batch_end=lambda: None,
        log_interval=500,
        log_rollouts_venv=scene.venv,
        log_rollouts_n_episodes=1,
        progress_bar=False,
        reset_tensorboard=True,
    )
    return trainer


def adversarial(kind, scene, log, **more):
    from imitation.rewards.reward_nets import BasicShapedRewardNet
    from imitation.util.networks import RunningNorm
    from stable_baselines3 import PPO

    spaces = scene.venv.observation_space, scene.venv.action_space
    learner = PPO(env=scene.venv, policy="MlpPolicy", batch_size=16, n_steps=16, n_epochs=1, seed=42, device="cpu")
    trainer = kind(
        demonstrations=scene.episodes,
        demo_batch_size=32,
        gen_replay_buffer_capacity=32,
        n_disc_updates_per_round=1,
        venv=scene.venv,
        gen_algo=learner,
        reward_net=BasicShapedRewardNet(*spaces, normalize_input_layer=RunningNorm),
        custom_logger=log,
        **more,
    )
    trainer.train(64)
    return trainer


def adversarial_in_full(kind, scene, log, **more):
    from torch.optim import Adam

    seen = []
    trainer = adversarial(
        kind,
        scene,
        log,
        demo_minibatch_size=16,
        log_dir="output",
        disc_opt_cls=Adam,
        disc_opt_kwargs={"lr": 1e-3},
        gen_train_timesteps=32,
        init_tensorboard=False,
        init_tensorboard_graph=False,
        debug_use_ground_truth=False,
        allow_variable_horizon=False,
        **more,
    )
    trainer.train(total_timesteps=64, callback=seen.append)
    trainer.train(64, seen.append)
    assert len(seen) >= 2
    return trainer


def cliff():
    from seals.diagnostics.cliff_world import CliffWorldEnv

    return CliffWorldEnv(height=3, horizon=8, width=4, use_xy_obs=True)


def linear_net(env):
    from imitation.rewards.reward_nets import BasicRewardNet

    return BasicRewardNet(env.observation_space, env.action_space, hid_sizes=[], use_action=False, use_done=False)


def cliff_episodes(env):
    from imitation.algorithms.mce_irl import TabularPolicy, mce_partition_fh
    from imitation.data import rollout
    from seals.base_envs import ExposePOMDPStateWrapper
    from stable_baselines3.common.vec_env import DummyVecEnv

    rng = np.random.default_rng(0)
    expert = TabularPolicy(env.state_space, env.action_space, mce_partition_fh(env)[2], rng)
    venv = DummyVecEnv([lambda: ExposePOMDPStateWrapper(env)])
    return rollout.generate_trajectories(expert, venv, rollout.make_min_timesteps(40), rng)


def mce_irl(kind, scene, log, **more):
    env = cliff()
    trainer = kind(
        cliff_episodes(env), env, linear_net(env), log_interval=250, optimizer_kwargs={"lr": 0.01},
        rng=np.random.default_rng(0), linf_eps=1e-3, grad_l2_eps=1e-4, custom_logger=log, **more,
    )  # fmt: skip
    states = trainer.train(max_iter=5)
    assert states.shape == (env.state_dim,)
    return trainer


def mce_irl_by_position(kind, scene, log, **more):
    from torch.optim import Adam

    env = cliff()
    given = cliff_episodes(env), env, linear_net(env), np.random.default_rng(0), Adam, {"lr": 0.1}, 0.9, 1e-3, 1e-4, 10
    trainer = kind(*given, custom_logger=log, **more)
    assert trainer.train(5).shape == (env.state_dim,)
    return trainer


def mce_irl_of_states(kind, scene, log, **more):
    from imitation.algorithms.mce_irl import mce_occupancy_measures

    env = cliff()
    visits = mce_occupancy_measures(env, discount=0.9)[1]  # over states, cut at the horizon
    trainer = kind(visits, env, linear_net(env), np.random.default_rng(0), discount=0.9, custom_logger=log, **more)
    assert trainer.train(5).shape == (env.state_dim,)
    return trainer


def originals():
    from imitation.algorithms.adversarial.airl import AIRL
    from imitation.algorithms.adversarial.gail import GAIL
    from imitation.algorithms.bc import BC
    from imitation.algorithms.mce_irl import MCEIRL

    return {"BC": BC, "GAIL": GAIL, "AIRL": AIRL, "MCEIRL": MCEIRL}


CALLS = {
    "BC": (bc, "BC", {"n_epochs"}),
    "BC in full": (
        bc_in_full,
        "BC",
        {"policy", "minibatch_size", "optimizer_cls", "optimizer_kwargs", "ent_weight", "l2_weight", "device"}
        | {"n_batches", "reset_tensorboard"},
    ),
    "GAIL": (
        adversarial,
        "GAIL",
        {"demo_batch_size", "gen_replay_buffer_capacity", "n_disc_updates_per_round", "gen_algo"},
    ),
    "AIRL in full": (adversarial_in_full, "AIRL", {"log_dir", "disc_opt_cls", "gen_train_timesteps", "gen_algo"}),
    "MCEIRL": (mce_irl, "MCEIRL", {"log_interval", "optimizer_kwargs", "linf_eps", "grad_l2_eps"}),
    "MCEIRL of states": (mce_irl_of_states, "MCEIRL", set()),
    "MCEIRL by position": (mce_irl_by_position, "MCEIRL", {"optimizer_cls", "linf_eps", "log_interval"}),
}


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")  # in BC
@pytest.mark.parametrize("name", CALLS)
def test_a_documented_call_is_one_of_the_original(name, scene, heard):
    call, original, _ = CALLS[name]
    assert call(originals()[original], scene, heard[0]).policy is not None


@pytest.mark.parametrize("name", CALLS)
def test_a_documented_call_works_with_the_class_swapped(name, scene, heard):
    from rlfd_gym import RLfDTrainer

    call, original, unused = CALLS[name]
    log, text, rows = heard
    more = {"env": scene.grid} if original == "BC" else {}  # BC's spaces do not say where an action leads
    trainer = call(RLfDTrainer, scene, log, **more)
    assert trainer.duality_gap < 1e-6
    told = [line for line in text().splitlines() if "has no use for" in line]
    words = [word.split(" (")[0] for line in told for word in line.split("has no use for ")[1].split(", ")]
    assert unused <= set(words)
    assert len(words) == len(set(words))
    assert ("max_iter" in words) == (original != "BC")  # the exact solver stops by itself
    if name == "BC in full":
        assert any(row.get("rollout/return_mean") for row in rows())
        assert trainer.batch_size == 8


def test_every_word_of_imitations_signatures_is_taken_and_no_other_is_listed():
    from imitation.algorithms.adversarial.common import AdversarialTrainer

    from rlfd_gym import RLfDTrainer
    from rlfd_gym.trainer import foreign

    def words(function):
        return {
            name for name, item in inspect.signature(function).parameters.items() if item.kind is not item.VAR_KEYWORD
        } - {"self"}

    kinds = originals()
    for table, method in ((foreign.CONSTRUCTOR, "__init__"), (foreign.TRAIN, "train")):
        theirs = {name: words(getattr(kind, method)) for name, kind in kinds.items()}
        for name in ("GAIL", "AIRL"):
            theirs[name] |= words(getattr(AdversarialTrainer, method))
        own = words(getattr(RLfDTrainer, method))
        for name, taken in theirs.items():
            assert taken <= own | set(table), name
        for word, entry in table.items():
            assert all(word in theirs[name] for name in entry.of.split(", ")), word
            assert word not in own, word
    assert list(inspect.signature(kinds["MCEIRL"]).parameters)[4:10] == list(foreign.AFTER_RNG)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"alhpa": 0.1}, "unexpected argument 'alhpa'; did you mean 'alpha'"),
        ({"demo_batchsize": 3}, "did you mean 'demo_batch_size'"),
        ({"zzz": 3}, r"RLfDTrainer got an unexpected argument 'zzz'$"),
    ],
)
def test_an_unknown_word_is_an_error_that_names_the_nearest(make, inventory, careful, words, message):
    with pytest.raises(TypeError, match=message):
        make(careful, inventory, **words)


def test_an_unknown_word_of_train_is_an_error_too(make, inventory, careful):
    trainer = make(careful, inventory, solver="exact")
    with pytest.raises(TypeError, match=r"RLfDTrainer.train got an unexpected .*'n_epoch'; did you mean 'n_epochs'"):
        trainer.train(n_epoch=1)
    with pytest.raises(TypeError, match="max_iter and total_timesteps are the same"):
        trainer.train(10, total_timesteps=10)
    with pytest.raises(TypeError, match="on_epoch_end must be a function, got int"):
        trainer.train(on_epoch_end=1)


def test_what_is_given_twice_or_too_often_is_refused(make, inventory, careful):
    with pytest.raises(TypeError, match="got discount twice: by position and by name"):
        make(careful, inventory, None, 0, None, None, 0.9, discount=0.8)
    with pytest.raises(TypeError, match="at most 10 arguments by position, got 11"):
        make(careful, inventory, None, 0, *[None] * 7)
    assert make(careful, inventory, None, 0, None, None, 0.8).settings.discount == 0.8


def test_unused_words_are_logged_once_whenever_they_come(inventory, careful, heard):
    from rlfd_gym import RLfDTrainer

    log, text, _ = heard
    trainer = RLfDTrainer(careful, inventory, custom_logger=log, gen_algo=None, device="cpu")
    assert text().count("no use for gen_algo (what is learned is in trainer.policy), device") == 1
    for _ in range(3):
        trainer.train(n_epochs=1)
    assert text().count("no use for n_epochs") == 1
    assert text().count("no use for") == 2
    trainer.train(100, log_interval=10)
    trainer.train(total_timesteps=100, log_interval=10)
    assert 'no use for max_iter (of solver="smd"), log_interval (of solver="smd")' in text()
    assert text().count("no use for") == 4


def test_words_of_algorithm_1_are_logged_where_another_solver_has_no_use_for_them(inventory, careful, heard):
    from rlfd_gym import RLfDTrainer

    log, text, _ = heard
    words = {"step_size": 0.1, "epsilon": 0.1, "n_jobs": 2}
    trainer = RLfDTrainer(careful, inventory, custom_logger=log, **words)
    of = '(of solver="smd")'
    assert text().count(f"no use for step_size {of}, epsilon {of}, n_jobs {of}") == 1
    trainer.train(n_runs=3)
    assert text().count(f"no use for n_runs {of}") == 1
    RLfDTrainer(careful, inventory, custom_logger=log, solver="smd", n_runs=2, **words).train(10, n_runs=2)
    assert text().count("no use for") == 2


def test_algorithm_1_uses_what_says_how_long(inventory, careful, heard):
    from rlfd_gym import RLfDTrainer

    log, text, _ = heard
    trainer = RLfDTrainer(careful, inventory, custom_logger=log, solver="smd")
    trainer.train(total_timesteps=500, log_interval=250)
    trainer.train(500)
    assert trainer.solution.n_iterations == 1000
    assert "no use for" not in text()


def test_a_trainer_without_foreign_words_says_nothing_of_them(inventory, careful, heard):
    from rlfd_gym import RLfDTrainer

    log, text, _ = heard
    RLfDTrainer(careful, inventory, custom_logger=log).train()
    assert "no use for" not in text()
    assert "variable_horizon" not in text()


def test_the_spaces_must_be_the_environments(make, inventory, careful):
    from gymnasium.spaces import Box, Discrete

    trainer = make(careful, inventory, observation_space=Discrete(16), action_space=inventory.action_space)
    assert (trainer.observation_space, trainer.action_space) == (Discrete(16), Discrete(16))
    with pytest.raises(ValueError, match=r"observation_space is Discrete\(7\), but env has Discrete\(16\)"):
        make(careful, inventory, observation_space=Discrete(7))
    with pytest.raises(ValueError, match=r"action_space is Box.*, but env has Discrete\(16\)"):
        make(careful, inventory, action_space=Box(0, 1, (2,)))
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        make(careful, inventory, batch_size=0)


def test_spaces_alone_are_no_environment(make, scene):
    spaces = {"observation_space": scene.venv.observation_space, "action_space": scene.venv.action_space}
    with pytest.raises(TypeError, match="pass either env or venv; spaces alone, as for BC"):
        make(demonstrations=scene.transitions, rng=0, **spaces)


def test_bcs_callbacks_are_called_with_the_trainers_own(make, inventory, careful):
    trainer, seen = make(careful, inventory), []
    trainer.train(
        1000, log_interval=500, callback=seen.append,
        on_epoch_end=lambda: seen.append("epoch"), on_batch_end=lambda: seen.append("batch"),
    )  # fmt: skip
    assert seen == ["batch", "epoch", 500, "batch", "epoch", 1000]
    trainer.train(total_timesteps=1000, callback=lambda iteration: False, log_interval=200, on_batch_end=list)
    assert trainer.solution.n_iterations == 1200


def test_episodes_of_the_apprentice_are_logged_as_bc_does(scene, heard):
    from rlfd_gym import RLfDTrainer

    log, _, rows = heard
    trainer = RLfDTrainer(scene.transitions, scene.venv, custom_logger=log)
    trainer.train(log_rollouts_venv=scene.venv, log_rollouts_n_episodes=0)
    assert not any("rollout/return_mean" in row for row in rows())
    trainer.train(log_rollouts_venv=scene.venv)
    logged = [float(row["rollout/return_mean"]) for row in rows() if row.get("rollout/return_mean")]
    assert len(logged) == 1
    assert np.isfinite(logged).all()


def test_all_kinds_of_demonstrations_give_the_same_expert(make, scene):
    from imitation.algorithms.base import make_data_loader

    in_order = make_data_loader(scene.transitions, 5, {"shuffle": False, "drop_last": False})
    kinds = {
        "trajectories": scene.episodes,
        "a generator": (episode for episode in scene.episodes),
        "transitions": scene.transitions,
        "a loader in order": in_order,
        "batches": list(in_order),
        "a stream of batches": iter(in_order),
        "a loader that shuffles": make_data_loader(scene.transitions, 5),
    }
    for name, kind in kinds.items():
        trainer = make(kind, scene.venv)
        np.testing.assert_allclose(
            trainer.problem.expert, make(scene.episodes, scene.venv).problem.expert, err_msg=name
        )
        assert trainer._shown.lengths.tolist() == [STEPS] * len(scene.episodes)


def test_batches_in_another_order_are_refused_with_the_way_out(make, scene):
    order = np.random.default_rng(0).permutation(len(scene.transitions))
    columns = {name: getattr(scene.transitions, name)[order] for name in ("obs", "acts", "next_obs", "dones")}
    with pytest.raises(ValueError, match=r'not in their order, as from a loader that shuffles.*discounting="none"'):
        make([columns], scene.venv, estimator="count")
    for settings in ({}, {"discounting": "none"}, {"estimator": "count", "discounting": "none"}):
        expert = make([columns], scene.venv, **settings).problem.expert
        np.testing.assert_allclose(expert, make(scene.episodes, scene.venv, **settings).problem.expert)


def test_episodes_of_unequal_length_are_taken_like_bc_takes_them(make, scene):
    from imitation.data.types import Trajectory

    def cut(episode, n):
        return Trajectory(episode.obs[: n + 1], episode.acts[:n], None, False)

    uneven = [cut(episode, 4 + k) for k, episode in enumerate(scene.episodes)]
    trainer = make(uneven, scene.venv, solver="exact")
    assert trainer.train().sum() == pytest.approx(1)
    trainer.set_demonstrations(scene.episodes)
    with pytest.raises(ValueError, match="different length detected"):
        make(uneven, scene.venv, allow_variable_horizon=False)


@pytest.mark.filterwarnings("ignore:keys will default:DeprecationWarning")  # imitation saves with jsonpickle
@pytest.mark.filterwarnings("ignore:demonstrations. the policy that they show")  # in the first round it misses states
def test_dagger_trains_the_trainer_as_its_bc(scene, quiet, tmp_path):
    from imitation.algorithms.dagger import LinearBetaSchedule, SimpleDAggerTrainer
    from imitation.data import serialize

    from rlfd_gym import RLfDTrainer

    rng = np.random.default_rng(0)
    spaces = {"observation_space": scene.venv.observation_space, "action_space": scene.venv.action_space}
    trainer = RLfDTrainer(env=scene.venv, rng=rng, discounting="none", custom_logger=quiet, **spaces)
    dagger = SimpleDAggerTrainer(
        venv=scene.venv, scratch_dir=tmp_path, expert_policy=scene.expert, rng=rng, bc_trainer=trainer,
        beta_schedule=LinearBetaSchedule(2), custom_logger=quiet,
    )  # fmt: skip
    dagger.train(108, rollout_round_min_timesteps=36)
    assert dagger.round_num == 3
    rounds = [serialize.load(path)[0] for path in sorted(tmp_path.glob("demos/*/*.npz"))]
    counts = np.bincount(
        np.concatenate([scene.mdp.pair_index(walk.obs[:-1], walk.acts) for walk in rounds]), minlength=scene.mdp.n_pairs
    )
    np.testing.assert_allclose(trainer.problem.expert, scene.mdp.occupancy_of(scene.mdp.policy_of(counts)))
    assert trainer.logger is quiet
    assert trainer.duality_gap < 1e-6
    shown = counts @ (scene.mdp.pair_states[:, None] == np.arange(9)) > 0
    asked, told = (policy.predict(np.arange(9), deterministic=True)[0] for policy in (dagger.policy, scene.expert))
    assert (asked == told)[shown & (scene.mdp.sum_by_state(scene.plan.occupancy) > 1e-9)].all()
    assert all(path.exists() for path in dagger.save_trainer())
