from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from checks import newest

import rlfd_gym
from rlfd_gym import TabularMDP, cost_of_env
from rlfd_gym.mdp.adapters import model_of_env

TOY_TEXT = [
    ("FrozenLake", {}),
    ("FrozenLake", {"is_slippery": False}),
    ("FrozenLake", {"map_name": "8x8"}),
    ("CliffWalking", {}),
    ("Taxi", {}),
]


class TableEnv(gym.Env):
    """A tabular environment of somebody else's, with a `P` and nothing more."""

    def __init__(self, P, **attributes):
        self.P = P
        self.observation_space = gym.spaces.Discrete(len(P))
        self.action_space = gym.spaces.Discrete(2)
        self.__dict__.update(attributes)


@pytest.mark.parametrize(("name", "kwargs"), TOY_TEXT)
def test_toy_text_tables_agree_with_the_environments_own(name, kwargs):
    env = gym.make(newest(name), **kwargs).unwrapped
    mdp, cost = TabularMDP.from_env(env), cost_of_env(env)
    assert (mdp.n_states, mdp.n_actions) == (env.observation_space.n, env.action_space.n)
    np.testing.assert_allclose(mdp.initial, env.initial_state_distrib, rtol=1e-14)
    terminal = {s for rows in env.P.values() for row in rows.values() for p, s, _, done in row if done and p > 0}
    assert terminal
    for pair, (state, action) in enumerate(zip(mdp.pair_states, mdp.pair_actions, strict=True)):
        row, expected_reward = np.zeros(mdp.n_states), 0.0
        if state in terminal:
            row[state] = 1.0
        else:
            for p, s_next, reward, _ in env.P[state][action]:
                row[s_next] += p
                expected_reward += p * reward
        np.testing.assert_allclose(mdp.transitions[[pair]].toarray()[0], row, atol=1e-15)
        assert cost[pair] == pytest.approx(-expected_reward, abs=1e-15)


def test_toy_text_values_agree_with_played_episodes():
    # The optimal policy played in FrozenLake itself, terminations and all, against the exact expected cost.
    env = gym.make("FrozenLake-v1", max_episode_steps=2000)
    mdp, cost = model_of_env(env, discount=0.9)
    plan = mdp.optimal(cost)
    actions = mdp.pair_actions[plan.policy > 0]
    returns = []
    for episode in range(400):
        state, _ = env.reset(seed=episode)
        total, weight, over = 0.0, 1 - mdp.discount, False
        while not over:
            state, reward, terminated, truncated, _ = env.step(int(actions[state]))
            total, weight, over = total - weight * reward, weight * mdp.discount, terminated or truncated
        returns.append(total)
    standard_error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    assert abs(np.mean(returns) - plan.expected_cost) < 4 * standard_error


def test_the_optimum_of_cliff_walking_is_the_known_path_of_13_steps():
    env = gym.make(newest("CliffWalking"))
    mdp = TabularMDP.from_env(env, discount=0.9)
    plan = mdp.optimal(cost_of_env(env))
    assert plan.expected_cost == pytest.approx((1 - 0.9) * sum(0.9**t for t in range(13)), abs=1e-9)


def test_our_environments_give_their_own_tables(inventory):
    mdp = TabularMDP.from_env(inventory)
    assert mdp is inventory.mdp
    np.testing.assert_array_equal(cost_of_env(inventory), inventory.cost)


def test_discount_and_initial_can_be_replaced(inventory):
    start = np.eye(16)[3]
    mdp = TabularMDP.from_env(inventory, discount=0.5, initial=start)
    assert mdp.discount == 0.5
    np.testing.assert_array_equal(mdp.initial, start)
    lake = TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=0.5, initial=start)
    assert lake.discount == 0.5
    np.testing.assert_array_equal(lake.initial, start)


def test_environments_without_a_discount_get_the_documented_one():
    assert TabularMDP.from_env(gym.make("FrozenLake-v1")).discount == 0.99


@pytest.mark.parametrize("name", ["rlfd_gym/Inventory-v0", "FrozenLake-v1"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_wrapped_and_gymnasium_vectorised_environments_are_read(name, asynchronous):
    expected = TabularMDP.from_env(gym.make(name))
    wrapped = gym.wrappers.RecordEpisodeStatistics(gym.make(name))
    make = [lambda: gym.make(name)] * 2
    venv = gym.vector.AsyncVectorEnv(make) if asynchronous else gym.vector.SyncVectorEnv(make)
    for env in (wrapped, venv):
        mdp = TabularMDP.from_env(env)
        np.testing.assert_array_equal(mdp.transitions.toarray(), expected.transitions.toarray())
        np.testing.assert_array_equal(cost_of_env(env), cost_of_env(gym.make(name)))
    venv.close()


class Renamed(gym.ActionWrapper):
    """Give every action the number of the next one, or none of them another."""

    def __init__(self, env, by=1):
        super().__init__(env)
        self.by = by

    def action(self, action):
        return (action + self.by) % self.action_space.n


class Permuted(gym.ObservationWrapper):
    def observation(self, observation):
        return self.observation_space.n - 1 - observation


class Slipping(gym.ActionWrapper):
    """One action in four is another one, and the wrapper counts what it was asked."""

    asked = 0

    def action(self, action):
        self.asked += 1
        return action if self.np_random.random() < 0.75 else (action + 1) % self.action_space.n


class OneHot(gym.ObservationWrapper):
    """Observations that no one takes for states."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gym.spaces.Box(0, 1, (env.observation_space.n,))

    def observation(self, observation):
        return np.eye(self.observation_space.shape[0])[observation]


class InEpisode(gym.ActionWrapper):
    def action(self, action):
        return (action + self.unwrapped.lastaction) % 4  # `None` before the first step


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        (Renamed, "the wrapper Renamed makes action 1 of 0, but the tables are those of the environment inside"),
        (Permuted, "the wrapper Permuted makes observation 15 of 0"),
        (Slipping, "the wrapper Slipping makes action . of ."),
    ],
)
@pytest.mark.parametrize("around", ["alone", "inside another", "vectorised"])
def test_a_wrapper_that_gives_actions_or_states_other_numbers_is_refused(wrapper, message, around):
    env = gym.make("FrozenLake-v1")
    env.reset(seed=0)
    inner = env = wrapper(env)
    if around == "inside another":
        env = gym.wrappers.TimeLimit(inner, 7)
    if around == "vectorised":
        env = gym.vector.SyncVectorEnv([lambda: inner])
    with pytest.raises(ValueError, match=message):
        TabularMDP.from_env(env)
    assert "asked" not in vars(inner)


@pytest.mark.parametrize("wrapper", [lambda env: Renamed(env, by=0), OneHot, InEpisode])
def test_a_wrapper_that_changes_no_number_or_cannot_be_asked_is_looked_through(wrapper):
    plain = gym.make("FrozenLake-v1")
    np.testing.assert_array_equal(
        TabularMDP.from_env(wrapper(plain)).transitions.toarray(), TabularMDP.from_env(plain).transitions.toarray()
    )


def test_a_fickle_passenger_is_refused_because_p_does_not_list_what_it_does():
    env = gym.make(newest("Taxi")).unwrapped
    TabularMDP.from_env(env)
    env.fickle_passenger = True  # as Gymnasium 1.x sets it for gym.make("Taxi-v3", fickle_passenger=True)
    with pytest.raises(ValueError, match="fickle_passenger=True changes destinations in a way that its P does not"):
        TabularMDP.from_env(env)


@pytest.mark.needs_imitation
@pytest.mark.parametrize("name", ["rlfd_gym/Inventory-v0", "FrozenLake-v1"])
def test_stable_baselines_vectorised_environments_are_read(name):
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    expected = TabularMDP.from_env(gym.make(name))
    make = [lambda: gym.make(name)] * 2
    for venv in (DummyVecEnv(make), VecMonitor(DummyVecEnv(make))):
        mdp = TabularMDP.from_env(venv)
        np.testing.assert_array_equal(mdp.transitions.toarray(), expected.transitions.toarray())


@pytest.mark.slow  # a fresh interpreter that loads torch, twice
@pytest.mark.needs_imitation
def test_stable_baselines_environments_in_other_processes_are_read():
    from stable_baselines3.common.vec_env import SubprocVecEnv

    venv = SubprocVecEnv([lambda: gym.make("FrozenLake-v1")] * 2)
    mdp = TabularMDP.from_env(venv)
    venv.close()
    expected = TabularMDP.from_env(gym.make("FrozenLake-v1"))
    np.testing.assert_array_equal(mdp.transitions.toarray(), expected.transitions.toarray())


@pytest.mark.needs_imitation
def test_seals_models_are_read():
    env = gym.make("seals:seals/CliffWorld7x4-v0").unwrapped
    mdp, cost = model_of_env(env)
    np.testing.assert_allclose(mdp.transitions.toarray(), env.transition_matrix.reshape(mdp.n_pairs, -1))
    np.testing.assert_array_equal(mdp.initial, env.initial_state_dist)
    np.testing.assert_array_equal(cost, -np.repeat(env.reward_matrix, mdp.n_actions))


@pytest.mark.needs_imitation
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_seals_rewards_of_each_dimension_are_read(dimensions):
    from seals.base_envs import TabularModelMDP

    rng = np.random.default_rng(0)
    P = rng.dirichlet(np.ones(3), size=(3, 2))
    reward = rng.normal(size=P.shape[:dimensions])
    env = TabularModelMDP(transition_matrix=P, reward_matrix=reward, horizon=5)
    expected = {
        1: lambda s, a: reward[s],
        2: lambda s, a: reward[s, a],
        3: lambda s, a: P[s, a] @ reward[s, a],
    }[dimensions]
    np.testing.assert_allclose(cost_of_env(env), [-expected(s, a) for s in range(3) for a in range(2)])


def test_missing_actions_are_infeasible():
    P = {0: {1: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 2.0, False)], 1: [(1.0, 1, 0.0, False)]}}
    mdp, cost = model_of_env(TableEnv(P, initial_state_distrib=[1.0, 0.0]))
    assert mdp.pair_actions.tolist() == [1, 0, 1]
    assert cost.tolist() == [0.0, -2.0, 0.0]


def test_without_an_initial_distribution_non_terminal_states_share_it_and_a_warning_says_so():
    P = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 2, 1.0, True)]}, 2: {0: [(1.0, 0, 9.0, False)]}}
    with pytest.warns(UserWarning, match="TableEnv has no `initial_state_distrib`"):
        mdp, cost = model_of_env(TableEnv(P))
    assert mdp.initial.tolist() == [0.5, 0.5, 0.0]
    assert cost.tolist() == [0.0, -1.0, 0.0]  # the terminal state's own row is never played


def test_a_state_entered_with_and_without_termination_is_refused():
    P = {0: {0: [(0.5, 1, 0.0, True), (0.5, 1, 0.0, False)]}, 1: {0: [(1.0, 0, 0.0, False)]}}
    with pytest.raises(ValueError, match="env: P enters state 1 both with and without `terminated`"):
        model_of_env(TableEnv(P, initial_state_distrib=[1.0, 0.0]))


@pytest.mark.parametrize(
    ("P", "message"),
    [
        ({0: {0: []}}, r"P\[0\]\[0\] is empty"),
        ({0: {0: [(1.0, 5, 0.0, False)]}}, "P leads to state 5"),
        ({0: {0: [(0.5, 0, 0.0, False)]}}, "probabilities of row 0 must sum to 1"),
    ],
)
def test_broken_tables_are_refused(P, message):
    with pytest.raises(ValueError, match=message):
        model_of_env(TableEnv(P, initial_state_distrib=[1.0]))


@pytest.mark.parametrize("env", [gym.make("CartPole-v1"), object(), None, "FrozenLake-v1"])
def test_anything_else_is_a_type_error_that_says_what_is_supported(env):
    for read in (TabularMDP.from_env, rlfd_gym.cost_of_env):
        with pytest.raises(TypeError, match=r"env must be tabular, got .*; supported are rlfd_gym environments"):
            read(env)


@pytest.mark.needs_imitation
def test_seals_models_in_single_precision_are_read():
    env = gym.make("seals:seals/Random-v0")
    mdp = TabularMDP.from_env(env)
    np.testing.assert_allclose(mdp.transitions.sum(axis=1), 1.0, atol=1e-12)


def test_a_class_is_not_an_environment():
    from rlfd_gym.envs import InventoryEnv

    with pytest.raises(TypeError, match="got the class InventoryEnv; make one first"):
        TabularMDP.from_env(InventoryEnv)


class TinyWard:
    """Two states of treatment, then death, survival and the state after both, laid out as in ICU-Sepsis."""

    sofa_scores = np.array([4.0, 9.0, 0.0, 0.0, 0.0])

    def __init__(self, rule):
        self._inadmissible_action_strategy = rule
        tx = np.zeros((5, 2, 5))
        tx[0, 0], tx[0, 1] = [0, 0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5, 0]  # the second is not admissible
        tx[1, 0], tx[1, 1] = [0.5, 0, 0.5, 0, 0], [0, 0, 0.25, 0.75, 0]
        tx[2:, :, 4] = 1.0
        r = np.zeros((5, 2, 5))
        r[:, :, 3] = 1.0
        admissible = [[0], [0, 1], [0, 1], [0, 1], [0, 1]]
        self.dynamics = {"tx_mat": tx, "r_mat": r, "d_0": np.array([1.0, 0, 0, 0, 0]), "admissible_actions": admissible}


@pytest.mark.parametrize(
    ("rule", "n_pairs", "cost"), [("mean", 10, -0.5), ("terminate", 10, 0.0), ("raise_exception", 9, None)]
)
def test_the_tables_of_icu_sepsis_treat_rare_actions_as_the_environment_does(rule, n_pairs, cost):
    env = TinyWard(rule)
    mdp, costs = rlfd_gym.TabularMDP.from_env(env, discount=0.5), rlfd_gym.cost_of_env(env)
    assert mdp.n_pairs == n_pairs
    assert costs[mdp.pair_index(0, 0)] == -0.5
    assert costs[mdp.pair_index(1, 1)] == -0.75
    assert not costs[mdp.pair_states >= 2].any()
    np.testing.assert_array_equal(mdp.transitions.toarray()[mdp.pair_states == 3], [[0, 0, 0, 1, 0]] * 2)  # it stays
    if cost is not None:
        assert costs[mdp.pair_index(0, 1)] == cost
        assert mdp.transitions.toarray()[mdp.pair_index(0, 1), 2] == (rule == "terminate")
