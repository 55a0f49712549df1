"""The gridworlds of the experiments: the world, an expert from a stopped solver, and summaries.

The suboptimal expert is a proper occupancy measure. An interior-point solver for MDP-P
(min <μ, c>, Tγμ = ν₀, μ ≥ 0) is stopped after a few steps. Its point, made nonnegative and
normalised, need not satisfy Tγμ = ν₀. Therefore only the policy of this point is used: the expert
is the occupancy of that policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import piqp
import scipy.sparse as sp

from rlfd_gym import TabularMDP
from rlfd_gym.envs import WindyGridworldEnv
from rlfd_gym.report.plots import GOAL

STOPPED_AFTER = 3
WHITE = 0.1  # costs below this are drawn nearly white


@dataclass(frozen=True, eq=False)
class StoppedExpert:
    """An expert from a solver stopped early, and how suboptimal it is."""

    policy: np.ndarray
    occupancy: np.ndarray
    imbalance: float
    """‖Tγμ - ν₀‖₁ of the solver's point μ, nonnegative and normalised: 0 for an occupancy."""
    true_cost: float
    optimum: float
    uniform: float
    """The expected cost of moving at random."""

    @property
    def regret_share(self) -> float:
        """The expert's regret, as a share of the regret of random moves."""
        return (self.true_cost - self.optimum) / (self.uniform - self.optimum)


def world(size: int = 10, **options: Any) -> WindyGridworldEnv:
    """Return the paper's gridworld."""
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=size, width=size, **options).unwrapped
    assert isinstance(env, WindyGridworldEnv)
    return env


def stopped_expert(mdp: TabularMDP, cost: np.ndarray, steps: int = STOPPED_AFTER) -> StoppedExpert:
    """Return the expert from an interior-point solver that is stopped after some steps."""
    n = mdp.n_pairs
    solver = piqp.SparseSolver()
    solver.settings.max_iter = steps
    equal = sp.csc_matrix(mdp.flow_matrix())
    solver.setup(sp.csc_matrix((n, n)), np.array(cost), equal, np.array(mdp.initial), x_l=np.zeros(n), x_u=np.ones(n))
    solver.solve()
    point = np.maximum(solver.result.x, 0.0)
    point /= point.sum()
    policy = mdp.policy_of(point)
    return StoppedExpert(
        policy=policy,
        occupancy=mdp.occupancy_of(policy),
        imbalance=float(np.abs(mdp.flow(point) - mdp.initial).sum()),
        true_cost=mdp.expected_cost(policy, cost),
        optimum=mdp.optimal(cost).expected_cost,
        uniform=mdp.expected_cost(mdp.uniform_policy(), cost),
    )


def white_share(cost: np.ndarray) -> float:
    """Return the share of pairs whose cost is nearly zero."""
    return float((np.abs(cost) < WHITE).mean())


def per_pair_prior(env: WindyGridworldEnv, seed: int) -> np.ndarray:
    """Return the published code's prior.

    It is the truth on a random half of the (state, action) pairs of obstacles and goals.
    """
    known = np.random.default_rng(seed).random(env.mdp.n_pairs) < 0.5
    return np.where(known, env.cost, 0.0)


def pairs_of_other_walls(env: WindyGridworldEnv) -> int:
    """Count the pairs whose transitions differ between the published code's walls and the text's.

    In the text, an agent whose combined move would leave the grid stays in its cell. The published
    code clips row and column separately, except that an agent that moves up from the top row stays
    in its cell.
    """
    moves = np.array([(1, 0), (-1, 0), (0, -1), (0, 1)])
    row, column = np.divmod(np.arange(env.mdp.n_states)[:, None], env.width)
    free = env.cells.ravel()[:, None] != GOAL
    tables = []
    for published in (True, False):
        table = np.zeros((env.mdp.n_pairs, env.mdp.n_states))
        for drift, chance in ((0, 1 - env.wind), (-1, env.wind)):
            to_row, to_column = row + moves[:, 0], column + moves[:, 1] + drift
            inside = (to_row >= 0) & (to_row < env.height) & (to_column >= 0) & (to_column < env.width)
            clipped = np.clip(to_row, 0, env.height - 1) * env.width + np.clip(to_column, 0, env.width - 1)
            stay = row * env.width + column
            moved = inside | (published & (to_row < env.height))
            target = np.where(free & moved, clipped, stay).ravel()
            table[np.arange(env.mdp.n_pairs), target] += chance
        tables.append(table)
    if not np.allclose(tables[1], env.mdp.transitions.toarray()):
        raise AssertionError("the environment's own transitions are expected to leave the agent in its cell")
    return int((np.abs(tables[0] - tables[1]) > 1e-12).any(axis=1).sum())
