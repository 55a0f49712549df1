"""What holds of every environment: Gymnasium's and SB3's own checkers, determinism, the oracle, the tables."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numpy as np
import pytest

from rlfd_gym.envs import TabularEnv

IDS = ["rlfd_gym/Inventory-v0", "rlfd_gym/InventoryPaper-v0", "rlfd_gym/WindyGridworld-v0"]
every_env = pytest.mark.parametrize("env_id", IDS)


@every_env
@pytest.mark.filterwarnings("ignore:.*not within the suggested.*", "ignore:pkg_resources:UserWarning")
def test_gymnasiums_checker_passes(env_id):
    from gymnasium.utils.env_checker import check_env

    check_env(gym.make(env_id).unwrapped)


@every_env
@pytest.mark.needs_imitation
def test_stable_baselines_checker_passes(env_id):
    from stable_baselines3.common.env_checker import check_env

    check_env(gym.make(env_id))


@every_env
def test_episodes_have_a_constant_horizon_that_leaves_nothing_to_come(env_id):
    env = gym.make(env_id)
    lengths = set()
    for seed in range(3):
        env.reset(seed=seed)
        env.action_space.seed(seed)
        for step in range(1, 1000):
            _, _, terminated, truncated, _ = env.step(env.action_space.sample())
            assert terminated is False
            if truncated:
                lengths.add(step)
                break
    assert lengths == {env.spec.max_episode_steps}
    assert env.unwrapped.discount**env.spec.max_episode_steps < 1e-4


@every_env
def test_the_horizon_is_the_shortest_that_leaves_nothing_to_come(env_id):
    for discount in (0.5, 0.7, 0.9, 0.99):
        env = gym.make(env_id, discount=discount).unwrapped
        assert discount**env.horizon < 1e-4 <= discount ** (env.horizon - 1)


@every_env
def test_the_same_seed_gives_the_same_episode_and_another_does_not(env_id):
    def play(seed):
        env = gym.make(env_id)
        env.action_space.seed(0)
        states = [env.reset(seed=seed)[0]]
        states += [env.step(env.action_space.sample())[0] for _ in range(25)]
        return states

    assert play(1) == play(1)
    assert play(1) != play(2)


@every_env
def test_every_step_draws_from_the_environments_own_generator(env_id):
    # From one state with one action, different generators must lead to different next states.
    env = gym.make(env_id).unwrapped
    arrivals = set()
    for seed in range(60):
        env.reset(seed=seed, options={"state": 8})
        arrivals.add(env.step(0)[0])
    assert len(arrivals) > 1


@every_env
def test_rewards_are_minus_the_cost_of_the_pair(env_id):
    env = gym.make(env_id).unwrapped
    state, info = env.reset(seed=5)
    for _ in range(100):
        action = int(env.np_random.choice(np.flatnonzero(info["action_mask"])))
        after, reward, _, _, info = env.step(action)
        assert reward == -env.cost[env.mdp.pair_index(state, action)]
        state = after


@every_env
def test_masks_are_the_feasible_actions(env_id):
    env = gym.make(env_id).unwrapped
    for state in range(env.mdp.n_states):
        _, info = env.reset(options={"state": state})
        assert info["action_mask"].dtype == np.int8
        assert (
            np.flatnonzero(info["action_mask"]).tolist() == env.mdp.pair_actions[env.mdp.pair_states == state].tolist()
        )


@every_env
def test_the_oracle_draws_from_the_transition_matrix(env_id):
    env = gym.make(env_id).unwrapped
    mdp, n_draws = env.mdp, 4000
    pairs = np.repeat(np.arange(mdp.n_pairs), n_draws)
    drawn = env.sample_next(mdp.pair_states[pairs], mdp.pair_actions[pairs], np.random.default_rng(0))
    counts = np.zeros((mdp.n_pairs, mdp.n_states))
    np.add.at(counts, (pairs, drawn), 1)
    P = mdp.transitions.toarray()
    assert (counts[P == 0] == 0).all()
    # Hoeffding: each frequency is this close with probability 1 - 1e-6 over all entries together.
    tolerance = np.sqrt(np.log(2 * P.size / 1e-6) / (2 * n_draws))
    assert np.abs(counts / n_draws - P).max() < tolerance
    chi2 = ((counts - n_draws * P) ** 2 / np.where(P > 0, n_draws * P, 1))[n_draws * P >= 5].sum()
    degrees = np.count_nonzero(n_draws * P >= 5) - np.count_nonzero((n_draws * P >= 5).any(axis=1))
    assert abs(chi2 - degrees) < 6 * np.sqrt(2 * degrees)


@every_env
def test_steps_and_oracle_have_the_same_law(env_id):
    env = gym.make(env_id).unwrapped
    n = 3000
    for state, action in ((3, 0), (0, 3)):
        stepped = []
        env.reset(seed=1)
        for _ in range(n):
            env.state = state
            stepped.append(env.step(action)[0])
        row = env.mdp.transitions[[int(env.mdp.pair_index(state, action))]].toarray()[0]
        frequency = np.bincount(stepped, minlength=env.mdp.n_states) / n
        assert np.abs(frequency - row).max() < np.sqrt(np.log(2 * row.size / 1e-6) / (2 * n))


@every_env
def test_the_oracle_takes_scalars_and_arrays(env_id):
    env = gym.make(env_id).unwrapped
    rng = np.random.default_rng(0)
    assert env.sample_next(3, 0, rng).shape == ()
    assert env.sample_next([3, 4], [0, 1], rng).shape == (2,)
    assert env.sample_next(np.full((2, 3), 3), 0, rng).shape == (2, 3)


@every_env
@pytest.mark.parametrize("kind", ["uniform", "optimal"])
def test_a_simulated_average_agrees_with_the_exact_expected_cost(env_id, kind):
    env = gym.make(env_id, max_episode_steps=200)
    tables = env.unwrapped
    mdp = tables.mdp
    policy = mdp.uniform_policy() if kind == "uniform" else mdp.optimal(tables.cost).policy
    n_episodes, horizon = 300, tables.horizon
    cumulated = np.cumsum(mdp.table(policy, 0.0), axis=1)
    draws = np.random.default_rng(0).random((n_episodes, horizon))
    totals = np.zeros(n_episodes)
    for episode in range(n_episodes):
        state, _ = env.reset(seed=episode)
        for t in range(horizon):
            action = int(np.searchsorted(cumulated[state], draws[episode, t], side="right"))
            state, reward, *_ = env.step(action)
            totals[episode] -= (1 - mdp.discount) * mdp.discount**t * reward
    standard_error = totals.std(ddof=1) / np.sqrt(n_episodes)
    # Four standard errors, plus what the episodes leave out (costs up to max|c|, weight γ^T < 1e-4).
    tolerance = 4 * standard_error + 1e-4 * np.abs(tables.cost).max()
    assert abs(totals.mean() - mdp.expected_cost(policy, tables.cost)) < tolerance


@every_env
def test_reset_can_choose_the_state(env_id):
    env = gym.make(env_id)
    assert env.reset(options={"state": 5})[0] == 5
    with pytest.raises(ValueError, match=r'options\["state"\] must lie in 0\.\.'):
        env.reset(options={"state": 10_000})
    with pytest.raises(TypeError, match=r'options\["state"\] must be an integer'):
        env.reset(options={"state": 1.5})


@every_env
def test_resets_follow_the_initial_distribution(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=0)
    counts = np.bincount([env.reset()[0] for _ in range(4000)], minlength=env.mdp.n_states)
    tolerance = np.sqrt(np.log(2 * env.mdp.n_states / 1e-6) / (2 * 4000))
    assert np.abs(counts / 4000 - env.mdp.initial).max() < tolerance


@every_env
def test_actions_that_do_not_exist_are_refused(env_id):
    env = gym.make(env_id).unwrapped
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must lie in 0\.\."):
        env.step(99)
    with pytest.raises(ValueError, match=r"action must lie in 0\.\."):
        env.step(-1)


@every_env
def test_pictures_have_one_size_and_change_with_the_state(env_id):
    env = gym.make(env_id, render_mode="rgb_array")
    env.reset(seed=0, options={"state": 3})
    first = env.render()
    env.reset(options={"state": 9})
    second = env.render()
    assert first.dtype == np.uint8
    assert first.shape == second.shape
    assert first.shape[2] == 3
    assert (first != second).any()


@every_env
def test_the_window_opens_and_closes(env_id, monkeypatch):
    pytest.importorskip("pygame")
    monkeypatch.setitem(TabularEnv.metadata, "render_fps", 1000)
    env = gym.make(env_id, render_mode="human")
    env.reset(seed=0)
    env.step(0)
    env.close()
    env.close()


def test_without_pygame_the_window_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pygame", None)
    env = gym.make("rlfd_gym/Inventory-v0", render_mode="human")
    with pytest.raises(gym.error.DependencyNotInstalled, match='pip install "pygame>='):
        env.reset(seed=0)


@every_env
def test_environments_can_be_pickled(env_id):
    env = gym.make(env_id).unwrapped
    copy = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(copy.cost, env.cost)
    assert copy.reset(seed=3)[0] == env.reset(seed=3)[0]


@every_env
@pytest.mark.slow
@pytest.mark.needs_imitation
def test_ppo_can_be_trained(env_id):
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy

    env = gym.make(env_id)
    model = PPO("MlpPolicy", env, seed=0, n_steps=256, device="cpu")
    model.learn(6000)
    mean, _ = evaluate_policy(model, env, n_eval_episodes=20, warn=False)
    assert np.isfinite(mean)


@every_env
def test_actions_that_are_no_integers_are_refused(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=0)
    for action in (1.7, "1", None):
        with pytest.raises(TypeError, match="action must"):
            env.step(action)


@every_env
def test_a_refused_reset_leaves_the_state_alone(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(options={"state": 5})
    with pytest.raises(ValueError, match="options"):
        env.reset(options={"state": 99_999})
    assert env.state == 5


@every_env
def test_the_true_cost_is_locked_also_in_a_copy(env_id):
    env = gym.make(env_id).unwrapped
    for own in (env, pickle.loads(pickle.dumps(env))):
        with pytest.raises(ValueError, match="read-only"):
            own.cost[0] = 0.0


@every_env
def test_masks_need_a_state(env_id):
    with pytest.raises(gym.error.ResetNeeded):
        gym.make(env_id).unwrapped.action_masks()
