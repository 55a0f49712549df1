"""Oracles over known tables, for tests that compare what was learned from draws with the truth."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from rlfd_gym import BlackBoxProblem, RLfDProblem, SampledExpert, TabularMDP
from rlfd_gym.problem.solution import Solution


class TableOracle:
    """Draws next states from an MDP's rows, and counts how many."""

    def __init__(self, mdp: TabularMDP, **declared) -> None:
        self.mdp, self.calls, self.asked = mdp, 0, 0
        self.cumulative = np.cumsum(mdp.transitions.toarray(), axis=1)
        vars(self).update(declared)

    def sample_next(self, states, actions, rng):
        rows = self.cumulative[self.mdp.pair_index(states, actions)]
        self.calls, self.asked = self.calls + rows.shape[0], max(self.asked, rows.shape[0])
        return np.minimum((rows < rng.random((*rows.shape[:-1], 1))).sum(axis=-1), self.mdp.n_states - 1)


def exact_expert(mdp: TabularMDP, occupancy) -> SampledExpert:
    """The expert as transitions: one for each pair and next state, with their probability as its weight."""
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(mdp.transitions.indptr))
    weights = occupancy[rows] * mdp.transitions.data
    keep = weights > 0
    following = mdp.transitions.indices[keep].astype(np.int64)
    return SampledExpert(mdp.pair_states[rows][keep], mdp.pair_actions[rows][keep], following, weights[keep])


def box_of(problem: RLfDProblem, **declared) -> BlackBoxProblem:
    """The same problem, known by its oracle alone; its expert must be an occupancy."""
    mdp = problem.mdp
    known = {"prior": problem.prior, "alpha": problem.alpha, "regulariser": problem.regulariser}
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "discount": mdp.discount, "feasible": mdp.feasible}
    return BlackBoxProblem(TableOracle(mdp, **declared), exact_expert(mdp, problem.expert), **sizes, **known)


def true_bounds(problem: RLfDProblem, solution: Solution) -> tuple[float, float]:
    """F(c) and g(μ_E - μ_π) by the true tables, from planning and evaluating alone."""
    mdp, belief = problem.mdp, problem.belief
    upper = belief.penalty(solution.cost) + problem.expert @ solution.cost - mdp.optimal(solution.cost).expected_cost
    d = problem.expert - mdp.occupancy_of(solution.policy)
    worst = belief.best(d)
    return float(upper), float(belief.penalty(worst) + d @ worst)


class SteppedLake(gym.Env):
    """FrozenLake without its tables, which can only be stepped."""

    def __init__(self, **settings) -> None:
        self.lake = gym.make("FrozenLake-v1", **settings)
        self.observation_space, self.action_space = self.lake.observation_space, self.lake.action_space

    def reset(self, seed=None, options=None):
        return self.lake.reset(seed=seed)

    def step(self, action):
        return self.lake.step(action)


class PlacedLake(SteppedLake):
    """FrozenLake without its tables, which can be put into a state."""

    @property
    def state(self) -> int:
        return self.lake.unwrapped.s

    @state.setter
    def state(self, state: int) -> None:
        self.lake.unwrapped.s = state
