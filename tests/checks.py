"""What several tests share: small cases, dense versions, and what every answer must satisfy."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest

from rlfd_gym import RLfDProblem, TabularMDP


def one_state(**changes):
    """One state, two actions: pairs 0 and 1, everything checkable by hand."""
    mdp = TabularMDP(np.ones((2, 1)), [0, 0], [0, 1], None, 0.5)
    arguments = {"mdp": mdp, "expert": [1.0, 0.0], "prior": [0.5, -0.5], "alpha": 1.0}
    return RLfDProblem(**(arguments | changes))


def dense_flow(mdp):
    """Tγ from its definition."""
    b = (mdp.pair_states[None, :] == np.arange(mdp.n_states)[:, None]).astype(float)
    return (b - mdp.discount * mdp.transitions.toarray().T) / (1 - mdp.discount)


def assert_solves(problem, solution, gap):
    """Feasible, and certified by the problem itself rather than by the solver's word."""
    assert np.abs(solution.cost).max() <= 1
    assert np.abs(solution.value).max() <= 1
    assert solution.occupancy.min() >= 0
    assert solution.occupancy.sum() == pytest.approx(1.0, abs=1e-9)
    bounds = problem.bounds(solution.cost, solution.value, solution.occupancy)
    assert (solution.upper, solution.lower) == pytest.approx(bounds, abs=1e-12)
    assert solution.duality_gap <= gap


def sampled(mdp, policy, n_trajectories, n_steps, seed):
    """Demonstrations of a policy, as imitation would hand them over."""
    rng = np.random.default_rng(seed)
    trajectories = []
    for _ in range(n_trajectories):
        obs, acts = [int(rng.choice(mdp.n_states, p=mdp.initial))], []
        for _ in range(n_steps):
            pairs = np.arange(mdp.state_starts[obs[-1]], mdp.state_starts[obs[-1] + 1])
            pair = rng.choice(pairs, p=policy[pairs])
            acts.append(int(mdp.pair_actions[pair]))
            obs.append(int(rng.choice(mdp.n_states, p=mdp.transitions[[pair]].toarray()[0])))
        trajectories.append(SimpleNamespace(obs=np.array(obs), acts=np.array(acts), terminal=False))
    return trajectories


def assert_policy_and_occupancy(mdp, solution):
    np.testing.assert_allclose(mdp.sum_by_state(solution.policy), 1.0, atol=1e-9)
    np.testing.assert_allclose(mdp.occupancy_of(solution.policy), solution.occupancy, atol=1e-9)
    return True


def assert_same(one, other):
    """Two solutions are equal to the bit, with their records."""
    for name in ("cost", "value", "occupancy", "policy", "mixture"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.duality_gap, other.duality_gap)
    for name in vars(one.history):
        np.testing.assert_array_equal(getattr(one.history, name), getattr(other.history, name))


class Interrupter:
    """A progress bar at which somebody presses Ctrl-C after that many steps, and at every look from then on."""

    def __init__(self, after):
        self.left = after

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def update(self, steps):
        self.left -= steps
        if self.left < 0:
            raise KeyboardInterrupt


def newest(name: str) -> str:
    """The highest registered version of a toy_text environment: Gymnasium 1.x has retired some."""
    versions = [key for key in gym.registry if key.rsplit("-v", 1)[0] == name]
    return max(versions, key=lambda key: int(key.rsplit("-v", 1)[1]))
