"""A log of many short episodes: 50 states, 8 actions, 819 episodes of 1 to 51 steps."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from rlfd_gym import TabularMDP, noisy_expert, read_log
from rlfd_gym.decision import decide

N_STATES, N_ACTIONS, N_EPISODES, LONGEST = 50, 8, 819, 51
NAMES = {"state": "s", "action": "a", "episode": "walk", "time": "t"}


@pytest.fixture(scope="module")
def world():
    """A random MDP with sparse transitions, a cost, and what an erring expert does."""
    rng = np.random.default_rng(808)
    table = np.zeros((N_STATES, N_ACTIONS, N_STATES))
    for s in range(N_STATES):
        for a in range(N_ACTIONS):
            following = rng.choice(N_STATES, 3, replace=False)
            table[s, a, following] = rng.dirichlet(np.ones(3))
    mdp = TabularMDP.from_dense(table, rng.dirichlet(np.ones(N_STATES)), discount=0.9)
    cost = rng.uniform(-1, 1, mdp.n_pairs)
    return mdp, cost, mdp.policy_of(noisy_expert(mdp, cost, 0.5))


@pytest.fixture(scope="module")
def rows(world):
    """The episodes as a table without next states: each has one more state than it has actions."""
    mdp, _, policy = world
    rng = np.random.default_rng(1)
    chances = mdp.table(policy).cumsum(axis=1)
    following = mdp.transitions.toarray().cumsum(axis=1)
    walks, times, states, actions, after = [], [], [], [], []
    for walk in range(N_EPISODES):
        state = int(rng.choice(N_STATES, p=mdp.initial))
        for t in range(int(rng.integers(1, LONGEST + 1))):
            action = min(int((rng.random() > chances[state]).sum()), N_ACTIONS - 1)
            then = min(int((rng.random() > following[state * N_ACTIONS + action]).sum()), N_STATES - 1)
            for column, value in zip(
                (walks, times, states, actions, after), (walk, t, state, action, then), strict=True
            ):
                column.append(value)
            state = then
    return {"walk": walks, "t": times, "s": states, "a": actions, "after": after}


def test_all_rows_carry_the_estimate_and_whole_episodes_are_resampled(world, rows):
    log = read_log(rows, discount=0.9, **NAMES, next_state="after")
    report = log.report
    assert (report.n_episodes, report.n_used, report.n_behind_gaps) == (N_EPISODES, len(rows["s"]), 0)
    assert report.n_carrying == report.n_used
    assert (report.ends, report.ends_rule) == ((), "continue")
    assert log.groups.shape[0] == N_EPISODES
    mdp, _, policy = world
    pairs = mdp.pair_index(*np.array(log.pair_labels()).T)
    often = log.visits > 200
    assert np.abs(log.policy - policy[pairs])[often].max() < 0.15
    assert np.abs(log.expert - mdp.occupancy_of(policy)[pairs]).sum() < 0.15


def test_without_next_states_only_the_last_row_of_each_episode_is_lost(rows):
    log = read_log({name: rows[name] for name in ("walk", "t", "s", "a")}, discount=0.9, **NAMES)
    assert (log.report.n_last, log.report.n_used) == (N_EPISODES, len(rows["s"]) - N_EPISODES)
    assert log.report.bad == ()


def test_the_expert_of_all_rows_is_nearer_to_the_truth_than_that_of_discounted_episodes(world, rows):
    mdp, _, policy = world
    true = mdp.occupancy_of(policy)
    errors = {}
    for expert in ("policy", "episodes"):
        with pytest.warns(UserWarning, match="end early") if expert == "episodes" else nullcontext():
            log = read_log(rows, discount=0.9, **NAMES, next_state="after", expert=expert)
        pairs = mdp.pair_index(*np.array(log.pair_labels()).T)
        errors[expert] = np.abs(log.expert - true[pairs]).sum()
    assert errors["policy"] < errors["episodes"]


def test_a_decision_from_short_episodes_saves_what_it_says(world, rows):
    mdp, cost, policy = world
    log = read_log(rows, discount=0.9, **NAMES, next_state="after")
    pairs = mdp.pair_index(*np.array(log.pair_labels()).T)
    decision = decide(log, dict(zip(log.pair_labels(), cost[pairs].tolist(), strict=True)), alpha=1.0, n_resamples=10)
    assert decision.method == "by resampling whole episodes (walk)"
    full = np.zeros(mdp.n_pairs)
    full[pairs] = decision.policy
    here = TabularMDP(mdp.transitions, mdp.pair_states, mdp.pair_actions, log.mdp.initial, 0.9)
    truth = here.expected_cost(policy, cost) - here.expected_cost(full, cost)
    assert 0 < decision.saving.value < decision.promised
    assert abs(decision.saving.value - truth) < abs(decision.promised - truth) + 0.05
    assert decision.saving.low - 0.1 < truth < decision.saving.high + 0.1
