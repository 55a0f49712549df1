"""imitation's algorithms on our tables: what goes in is the same problem, what comes out is a policy of it."""

from __future__ import annotations

import random
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import scipy.sparse as sp
from checks import assert_policy_and_occupancy, sampled
from scipy.special import logsumexp
from strategies import make_mdp, random_cost

import rlfd_gym
from rlfd_gym import compare

pytest.importorskip("imitation")
from rlfd_gym.baselines import behavioural_cloning, cloning_network, gail, mce_irl

pytestmark = pytest.mark.needs_imitation


def soft_optimal(mdp, cost):
    """The soft-optimal policy of a cost, γ up to 0.6, by value iteration: Q = c + γPV, V = -log Σ exp(-Q)."""
    value = np.zeros(mdp.n_states)
    for _ in range(80):
        q = cost + mdp.discount * (mdp.transitions @ value)
        value = np.array([-logsumexp(-part) for part in np.split(q, mdp.state_starts[1:-1])])
    return np.exp(value[mdp.pair_states] - q)


@pytest.mark.parametrize("seed", [0, 1])
def test_mce_irl_matches_the_features_of_an_expert_with_the_soft_optimal_policy_of_its_cost(seed):
    mdp = make_mdp(seed, 5, 3, 0.6)  # some actions are infeasible
    assert mdp.n_pairs < 15
    expert = mdp.occupancy_of(soft_optimal(mdp, 3 * random_cost(mdp, seed)))
    basis = np.random.default_rng(seed).uniform(-5, 5, (mdp.n_pairs, 3))
    solution = mce_irl(mdp, expert, basis, n_iterations=300)
    assert solution.stats["converged"]
    np.testing.assert_allclose(basis.T @ solution.occupancy, basis.T @ expert, atol=10 * 1e-3)
    np.testing.assert_allclose(solution.policy, soft_optimal(mdp, solution.cost), atol=1e-3)
    np.testing.assert_allclose(solution.cost, basis @ solution.mixture)
    assert assert_policy_and_occupancy(mdp, solution)


def test_mce_irl_recovers_the_policy_of_a_soft_expert_whose_cost_is_in_the_span():
    mdp = make_mdp(4, 5, 3, 0.6)
    basis = np.random.default_rng(4).uniform(-1, 1, (mdp.n_pairs, 2))
    policy = soft_optimal(mdp, basis @ [1.0, -2.0])
    solution = mce_irl(mdp, mdp.occupancy_of(policy), basis, n_iterations=300, learning_rate=0.3, tolerance=3e-4)
    np.testing.assert_allclose(solution.mixture, [1.0, -2.0], atol=0.1)
    np.testing.assert_allclose(solution.policy, policy, atol=0.02)


def test_mce_irl_without_a_basis_learns_a_state_cost_and_goes_where_the_expert_goes(gridworld):
    mdp = gridworld.mdp
    expert = rlfd_gym.noisy_expert(mdp, gridworld.cost, 0.3)
    solution = mce_irl(mdp, expert)
    assert solution.stats["converged"]
    np.testing.assert_allclose(mdp.sum_by_state(solution.occupancy), mdp.sum_by_state(expert), atol=1e-3)
    np.testing.assert_array_equal(solution.cost, solution.cost[mdp.state_starts[mdp.pair_states]])
    assert solution.mixture is None


def test_mce_irl_says_so_when_it_did_not_get_there(inventory):
    expert = inventory.mdp.optimal(inventory.cost).occupancy  # deterministic: matched at infinity only
    solution = mce_irl(inventory.mdp, expert, inventory.features, n_iterations=3)
    assert not solution.stats["converged"]
    assert solution.n_iterations == 3
    assert solution.stats["feature_mismatch"] > 1e-3


def test_mce_irl_refuses_tables_that_are_too_large_to_be_dense():
    n = 5000
    mdp = rlfd_gym.TabularMDP(sp.eye_array(n), np.arange(n), np.zeros(n, dtype=int), None, 0.5)
    with pytest.raises(ValueError, match="needs a dense table of"):
        mce_irl(mdp, np.full(n, 1 / n), np.linspace(-1, 1, n)[:, None])


def test_the_network_clones_what_the_table_clones():
    mdp = make_mdp(2, 4, 3, 0.8)
    expert = mdp.occupancy_of(mdp.uniform_policy())
    solution = cloning_network(mdp, expert, n_batches=200)
    np.testing.assert_allclose(solution.policy, behavioural_cloning(mdp, expert).policy, atol=0.1)
    assert assert_policy_and_occupancy(mdp, solution)


def test_a_seed_decides_everything_and_nothing_is_left_behind(capfd):
    mdp = make_mdp(2, 4, 3, 0.8)
    demonstrations = sampled(mdp, mdp.uniform_policy(), 3, 20, 0)
    before = random.getstate(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (cloning_network(mdp, demonstrations, n_batches=20, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.policy, again.policy)
    assert (first.policy != other.policy).any()
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert capfd.readouterr() == ("", "")


def test_mce_irl_learns_from_demonstrations_as_from_the_occupancy_estimated_from_them():
    mdp = make_mdp(5, 4, 3, 0.6)
    demonstrations = sampled(mdp, mdp.uniform_policy(), 20, 30, 0)
    expert = rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp)
    basis = np.random.default_rng(0).uniform(-1, 1, (mdp.n_pairs, 2))
    first, second = (mce_irl(mdp, source, basis, n_iterations=30) for source in (demonstrations, expert))
    np.testing.assert_allclose(first.policy, second.policy, atol=1e-9)


def test_torch_is_loaded_for_these_methods_only(tmp_path):
    code = """if True:
        import sys
        from rlfd_gym.baselines import behavioural_cloning, lp_irl, lpal, max_margin, mwal, projection
        print("torch" in sys.modules)
        sys.modules["imitation"] = None    # as if it were not installed
        try:
            from rlfd_gym.baselines import mce_irl
        except ImportError as error:
            print(error)
    """
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("False\nrlfd_gym.baselines.mce_irl needs imitation")


def test_gail_is_seeded_and_quiet_and_gives_a_policy(capfd):
    mdp = make_mdp(2, 4, 3, 0.6)
    expert = mdp.occupancy_of(mdp.uniform_policy())
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (gail(mdp, expert, n_timesteps=2048, n_samples=500, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.policy, again.policy)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert assert_policy_and_occupancy(mdp, first)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_gail_comes_near_the_expert_from_afar():
    env = gym.make("rlfd_gym/Inventory-v0", max_inventory=5, demand_mean=3.0, discount=0.7).unwrapped
    expert = env.mdp.optimal(env.cost).occupancy
    start = env.mdp.expected_cost(env.mdp.uniform_policy(), env.cost) - expert @ env.cost
    solution = gail(env.mdp, expert, n_timesteps=40_960)
    assert solution.occupancy @ env.cost - expert @ env.cost < start / 2


def test_the_comparison_runs_gail_however_few_its_iterations():
    task = compare.TASKS["inventory"].make(0)
    lesson = compare.Lesson(
        mdp=task.mdp, shown=task.expert, prior=task.prior, alpha=0.0, basis=task.basis, iterations=10, runs=1,
        seed=np.random.SeedSequence(0),
    )  # fmt: skip
    assert assert_policy_and_occupancy(task.mdp, compare.METHODS["gail"].solve(lesson))
