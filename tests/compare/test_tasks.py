"""The tasks: that they are well posed, and what their experts demonstrate."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import rlfd_gym
from rlfd_gym import TabularMDP, compare
from rlfd_gym.compare.tasks import demonstrations_of

TASKS = [
    pytest.param(
        name,
        marks=[pytest.mark.slow, pytest.mark.skipif(not task.installed, reason=f"{task.needs} is not installed")]
        if task.needs
        else (),
    )
    for name, task in compare.TASKS.items()
]


def test_demonstrations_come_from_the_experts_occupancy():
    task = compare.TASKS["windy"].make(0)
    shown = demonstrations_of(task, 4000, np.random.SeedSequence(0))
    estimate = rlfd_gym.occupancy_from_demonstrations(shown, task.mdp)
    # The expected ℓ1 error of 4000 independent draws from a distribution over pairs is at most √(400 / 4000) = 0.32.
    assert np.abs(estimate - task.expert).sum() < 0.15
    assert all(np.isin(task.mdp.pair_index(t.obs[:-1], t.acts), np.flatnonzero(task.expert)).all() for t in shown)


@pytest.mark.parametrize("name", TASKS)
def test_a_tasks_expert_is_imperfect_and_its_costs_are_in_the_box(name):
    task = compare.TASKS[name].make(1)
    mdp = task.mdp
    assert np.abs(mdp.flow(task.expert) - mdp.initial).max() < 1e-9
    assert np.abs(task.basis).max() <= 1
    assert np.abs(task.truth).max() <= 1
    assert task.expert @ task.truth > mdp.optimal(task.truth).expected_cost + 0.01


@pytest.mark.parametrize("name", TASKS)
def test_a_tasks_belief_holds_the_truth_possible_and_does_not_depend_on_the_seed(name):
    task, other = (compare.TASKS[name].make(seed) for seed in (0, 1))
    belief = task.belief
    prices = np.linalg.lstsq(belief.features, task.truth - belief.offset, rcond=None)[0]
    np.testing.assert_allclose(belief.cost(belief.check(prices)), task.truth, atol=1e-9)
    np.testing.assert_array_equal([belief.low, belief.high], [other.belief.low, other.belief.high])
    np.testing.assert_array_equal(belief.features, other.belief.features)


def test_the_lakes_cost_orders_policies_as_its_reward_does():
    import gymnasium as gym

    task = compare.TASKS["lake"].make(0)
    mdp = task.mdp
    reward_cost = rlfd_gym.cost_of_env(gym.make("FrozenLake-v1", map_name="4x4"))
    for policy in (mdp.uniform_policy(), mdp.policy_of(task.expert)):
        ours, theirs = mdp.expected_cost(policy, task.truth), mdp.expected_cost(policy, reward_cost)
        assert ours == pytest.approx(theirs * mdp.discount / (1 - mdp.discount))


def test_with_the_truth_as_prior_and_growing_alpha_the_apprentice_approaches_the_optimum():
    task = compare.TASKS["inventory"].make(0)
    mdp = task.mdp
    costs = [
        mdp.expected_cost(
            rlfd_gym.solve_exact(rlfd_gym.RLfDProblem(mdp, task.expert, task.truth, alpha)).policy, task.truth
        )
        for alpha in (0.1, 1.0, 10.0, 100.0)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(mdp.optimal(task.truth).expected_cost, abs=1e-4)


def test_a_task_whose_package_is_missing_is_left_out_and_says_what_to_install_when_named(monkeypatch):
    task = dataclasses.replace(compare.TASKS["icu-sepsis"], default=True, needs="no_such_package")
    monkeypatch.setitem(compare.TASKS, "icu-sepsis", task)
    assert compare.Design().tasks == ("inventory", "windy", "lake")
    with pytest.raises(ImportError, match='task icu-sepsis needs no-such-package: pip install "icu-sepsis>='):
        compare.run(tasks=["icu-sepsis"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the optimal value is only known to within")
def test_the_clinicians_random_treatment_and_the_optimum_are_as_good_as_the_package_says():
    if not compare.TASKS["icu-sepsis"].installed:
        pytest.skip("icu_sepsis is not installed")
    task = compare.TASKS["icu-sepsis"].make(0)
    # Nearly without discount; the package's lengths are means over its sample of episodes.
    mdp = TabularMDP(
        task.mdp.transitions,
        task.mdp.pair_states,
        task.mdp.pair_actions,
        task.mdp.initial,
        1 - 1e-6,
        task.mdp.n_actions,
    )
    treated = mdp.pair_states < mdp.n_states - 3
    policies = mdp.uniform_policy(), task.mdp.policy_of(task.expert), mdp.optimal(task.truth).policy
    survival = [-mdp.expected_cost(policy, task.truth) for policy in policies]
    length = [mdp.occupancy_of(policy)[treated].sum() / (1 - mdp.discount) for policy in policies]
    assert [round(share, 2) for share in survival] == [0.78, 0.78, 0.88]
    np.testing.assert_allclose(length, [9.45, 9.22, 10.99], atol=0.05)
    # In the task all three are discounted, and the optimum may be another policy.
    rounded = [round(-task.mdp.expected_cost(policy, task.truth), 3) for policy in policies[:2]]
    assert [*rounded, round(-task.ends[1], 3)] == [0.712, 0.715, 0.793]


@pytest.mark.slow
def test_leaving_rare_treatments_out_changes_no_expected_cost():
    icu_sepsis = pytest.importorskip("icu_sepsis")
    task, env = compare.TASKS["icu-sepsis"].make(0), icu_sepsis.ICUSepsisEnv()
    whole, reward = TabularMDP.from_env(env, discount=0.99), rlfd_gym.cost_of_env(env)
    assert (task.mdp.n_pairs, whole.n_pairs) == (2313, 716 * 25)
    policy = np.array(env.expert_policy)
    policy[-3:] = 1 / 25
    theirs = whole.expected_cost(policy, reward) / (1 - whole.discount)
    assert task.ends[0] == pytest.approx(0.99 * theirs, abs=1e-7)
    assert task.ends[1] == pytest.approx(0.99 * whole.optimal(reward).expected_cost / (1 - whole.discount), abs=1e-7)
