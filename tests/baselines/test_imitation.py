"""imitation's algorithms on our tables: what goes in is the same problem, what comes out is a policy of it."""

from __future__ import annotations

import random
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from checks import assert_policy_and_occupancy, sampled
from strategies import make_mdp

from rlfd_gym import compare

pytest.importorskip("imitation")
from rlfd_gym.baselines import behavioural_cloning, cloning_network, gail

pytestmark = pytest.mark.needs_imitation


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


def test_torch_is_loaded_for_these_methods_only(tmp_path):
    code = """if True:
        import sys
        from rlfd_gym.baselines import behavioural_cloning, lp_irl, lpal, max_margin, mce_irl, mwal, projection
        print("torch" in sys.modules)
        sys.modules["imitation"] = None    # as if it were not installed
        try:
            from rlfd_gym.baselines import gail
        except ImportError as error:
            print(error)
    """
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("False\nrlfd_gym.baselines.gail needs imitation")


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
