from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import strategies
from hypothesis import given, settings
from hypothesis import strategies as st

import rlfd_gym
from rlfd_gym import TabularMDP, demonstrate, occupancy_from_demonstrations
from rlfd_gym.experts import possible
from rlfd_gym.experts.made_up import Walk

CAUSES = "another variant .Taxi with fickle_passenger.*wrapper that changes actions.*Pass the environment"


def chain(length=6):
    """A walk along 0, 1, …, whose last state is absorbing; action 1 stays."""
    P = np.zeros((length, 2, length))
    for s in range(length):
        P[s, 0, min(s + 1, length - 1)] = P[s, 1, s] = 1
    return TabularMDP.from_dense(P, np.eye(length)[0], discount=0.5)


def once(obs, acts=None, terminal=True):
    return Walk(np.array(obs), np.zeros(len(obs) - 1, dtype=int) if acts is None else np.array(acts), None, terminal)


@given(strategies.mdps(), st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_exactly_the_transitions_with_probability_zero_are_impossible(mdp, seed):
    rng = np.random.default_rng(seed)
    pairs, following = rng.integers(mdp.n_pairs, size=200), rng.integers(mdp.n_states, size=200)
    found = possible.impossible(mdp, mdp.pair_states[pairs], mdp.pair_actions[pairs], following)
    assert found.tolist() == (mdp.transitions.toarray()[pairs, following] == 0).tolist()


@given(strategies.mdps(), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_what_the_tables_draw_is_possible(mdp, seed):
    read = rlfd_gym.experts.read_demonstrations(demonstrate(mdp, mdp.uniform_policy(), 3, 30, seed=seed))
    assert not possible.impossible(mdp, read.states, read.actions, read.next_states).any()


def test_next_states_beyond_the_tables_are_impossible_and_those_of_another_shape_refused():
    states = np.zeros(2, dtype=int)
    assert possible.impossible(chain(), states, states, np.array([-1, 6])).all()
    with pytest.raises(ValueError, match=r"next_states has shape \(3,\), expected \(2,\)"):
        possible.impossible(chain(), states, states, np.zeros(3, dtype=int))


def test_a_trace_gives_one_warning_with_the_number_and_an_example():
    walks = [once([0, 1, 2, 3, 4, 5, *[5] * 20])] * 3 + [once([0, 1, 2, 3, 5, 5, *[5] * 20])]
    with pytest.warns(UserWarning, match="1 of 100 transitions have probability 0") as caught:
        occupancy_from_demonstrations(walks, chain())
    assert len(caught) == 1
    assert str(caught[0].message).endswith("such as trajectory 3, step 3: state 3, action 0 → state 5")
    assert caught[0].filename == __file__


@pytest.mark.parametrize(("wrong", "refused"), [(5, False), (6, True)])
def test_more_than_one_in_twenty_is_refused_with_examples_and_causes(wrong, refused):
    states = np.zeros(100, dtype=int)
    following = np.ones(100, dtype=int)
    following[-wrong:] = 4
    shown = SimpleNamespace(obs=states, acts=states, next_obs=following)
    if not refused:
        with pytest.warns(UserWarning, match="5 of 100 transitions"):
            occupancy_from_demonstrations(shown, chain())
        return
    with pytest.raises(ValueError, match="6 of 100 transitions have probability 0") as error:
        occupancy_from_demonstrations(shown, chain())
    assert error.match(r"\(transition 94: state 0, action 0 → state 4; transition 95: [^;]*; transition 96: [^;]*\)")
    assert error.match(CAUSES)


def test_what_followed_is_not_asked_of_an_expert_that_only_named_actions():
    states, following = np.zeros(10, dtype=int), np.full(10, 4)
    shown = SimpleNamespace(obs=states, acts=states, next_obs=following)
    assert occupancy_from_demonstrations(shown, chain(), discounting="none").sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="10 of 10 transitions have probability 0"):
        occupancy_from_demonstrations(shown, chain(), discounting="none", estimator="count")


def test_what_followed_is_not_asked_where_demonstrations_do_not_say_it():
    shown = SimpleNamespace(obs=np.array([0, 1, 0]), acts=np.zeros(3, dtype=int))
    assert occupancy_from_demonstrations(shown, chain(), discounting="none").sum() == 1


def test_unknown_states_are_named_before_anything_is_called_impossible():
    with pytest.raises(ValueError, match="trajectory 0, step 0 has next state 9"):
        occupancy_from_demonstrations([once([0, 9, 0])], chain())


@pytest.mark.parametrize("terminal", [True, False])
def test_the_end_of_a_trajectory_is_no_transition(terminal):
    # Three episodes that end in the absorbing state; the fourth stays there, as padding does.
    walks = [once([0, 1, 2, 3, 4, 5], terminal=terminal)] * 3 + [once([0, 1, 2, 3, 4, 5, 5, 5], terminal=terminal)]
    occupancy_from_demonstrations(walks, chain())


@pytest.mark.parametrize("name", ["FrozenLake-v1", "CliffWalking", "Taxi"])
def test_real_episodes_are_possible_up_to_their_terminal_states(name):
    name = next(i for i in sorted(gym.registry, reverse=True) if i.startswith(name) and "Slippery" not in i)
    env = gym.make(name)
    mdp = TabularMDP.from_env(env)
    policy = mdp.table(mdp.optimal(rlfd_gym.cost_of_env(env)).policy, 0.0)
    rng, walks = np.random.default_rng(0), []
    for seed in range(20):
        state, _ = env.reset(seed=seed)
        obs, acts, over = [state], [], False
        while not over:
            acts.append(int(rng.choice(mdp.n_actions, p=policy[obs[-1]])))
            state, _, terminated, truncated, _ = env.step(acts[-1])
            obs.append(int(state))
            over = terminated or truncated
        walks.append(once(obs, acts, terminated))
    with rlfd_gym.collected_warnings() as messages:
        occupancy_from_demonstrations(walks, mdp)
    assert not [message for message in messages if "probability 0" in message]
    permutation = rng.permutation(mdp.n_states)
    permuted = [once(permutation[walk.obs], walk.acts, walk.terminal) for walk in walks]
    with rlfd_gym.collected_warnings(), pytest.raises(ValueError, match="transitions have probability 0"):
        occupancy_from_demonstrations(permuted, mdp)


def test_a_guarantee_from_impossible_demonstrations_is_refused():
    mdp = chain()
    walks, wrong = [once([0, 1, 2, 3, 4, 5])] * 4, [once([0, 3, 1, 5, 2, 4])] * 4
    belief = rlfd_gym.beliefs.Intervals(np.full(mdp.n_pairs, -1.0), np.full(mdp.n_pairs, 1.0))
    rlfd_gym.guarantee(mdp, mdp.uniform_policy(), expert=walks, belief=belief, confidence=0.9)
    with pytest.raises(ValueError, match="20 of 20 transitions have probability 0"):
        rlfd_gym.guarantee(mdp, mdp.uniform_policy(), expert=wrong, belief=belief, confidence=0.9)


@pytest.mark.needs_imitation
def test_a_trainer_refuses_permuted_observations_and_keeps_what_it_had(quiet_trainer):
    trainer, permuted = quiet_trainer
    expert = trainer.problem.expert.copy()
    with pytest.raises(ValueError, match="transitions have probability 0"):
        trainer.set_demonstrations(permuted)
    assert (trainer.problem.expert == expert).all()


@pytest.fixture
def quiet_trainer():
    from rlfd_gym import RLfDTrainer
    from rlfd_gym.trainer import quiet_logger

    env = gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4).unwrapped
    walks = demonstrate(env.mdp, env.mdp.optimal(env.cost).policy, 20, 40, seed=0)
    permutation = np.random.default_rng(0).permutation(env.mdp.n_states)
    permuted = [once(permutation[walk.obs], walk.acts, walk.terminal) for walk in walks]
    return RLfDTrainer(walks, env, custom_logger=quiet_logger()), permuted
