"""The tasks of the comparison: an MDP, its true cost, an imperfect expert, a prior, a basis. One entry in `TASKS` each.

A task is *made* for a seed, because its prior may be drawn at random; everything else about it is fixed. Demonstrations
are drawn from the expert's own policy, on the tables, up to a horizon T with γ^T < 1e-4, after which nothing counts.
Absorbing states are stayed in, so all trajectories of a task have the same length.

**Bases**, for methods that look for the cost in a hull {Cw, w in the simplex}. On the inventory C has the
environment's three features, each divided by its largest absolute value so that it lies in the unit box: the hull is
that of all nonnegative prices, up to scale. On the grids the columns are plus and minus the indicator of each cell,
K = 2S: the hull is that of all costs of cells with ℓ1-norm at most one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.made_up import Walk, demonstrate, noisy_expert
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.report.plots import Grid

NEGLIGIBLE = 1e-4  # γ^T at the end of a demonstration


@dataclass(frozen=True, eq=False)
class Setting:
    """A task made for one seed."""

    mdp: TabularMDP
    truth: FloatArray = field(repr=False)
    """The true cost over pairs, unknown to the methods."""
    expert: FloatArray = field(repr=False)
    """The expert's exact occupancy."""
    prior: FloatArray = field(repr=False)
    basis: FloatArray = field(repr=False)
    """C, (n_pairs, K), in the unit box."""
    grid: Grid | None = None
    """How to draw its states, if they lie on a grid."""


@dataclass(frozen=True)
class Task:
    """An entry of the registry."""

    name: str
    title: str
    make: Callable[[int], Setting] = field(repr=False)
    """From a seed to the task."""
    prior_varies: bool
    """Whether the seed matters: whether the prior is drawn."""
    expert_cost: str = ""
    """In words, the cost in the hull of the basis that the expert is optimal for, if it is for one worth naming."""


def demonstrations_of(setting: Setting, number: int, seed: np.random.SeedSequence) -> list[Walk]:
    """Trajectories of the expert. The first k of them do not depend on how many are asked for.

    >>> setting = TASKS["inventory"].make(0)
    >>> few, many = (demonstrations_of(setting, n, np.random.SeedSequence(1)) for n in (2, 5))
    >>> len(many), len(few[1].acts), bool((few[1].obs == many[1].obs).all())
    (5, 88, True)
    """
    mdp = setting.mdp
    horizon = int(np.ceil(np.log(NEGLIGIBLE) / np.log(mdp.discount)))
    return demonstrate(mdp, mdp.policy_of(setting.expert), number, horizon, seed)


def signed_cells(mdp: TabularMDP) -> FloatArray:
    """Plus and minus the indicator of each state, over pairs: (n_pairs, 2 n_states).

    >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], initial=None, discount=0.5)
    >>> signed_cells(mdp)[2].tolist()
    [0.0, 1.0, -0.0, -1.0]
    """
    indicators = np.eye(mdp.n_states)[mdp.pair_states]
    return np.hstack([indicators, -indicators])


def _inventory(seed: int) -> Setting:
    import gymnasium as gym

    from rlfd_gym.baselines import scale_basis
    from rlfd_gym.envs import InventoryEnv

    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    assert isinstance(env, InventoryEnv)
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    return Setting(env.mdp, env.cost, expert, env.cost_for(4, 2, 14), scale_basis(env.features))


def _windy(seed: int) -> Setting:
    import gymnasium as gym

    from rlfd_gym.envs import WindyGridworldEnv

    env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    assert isinstance(env, WindyGridworldEnv)
    expert = noisy_expert(env.mdp, env.cost, 0.3)
    return Setting(env.mdp, env.cost, expert, env.partial_prior(0.5, seed), signed_cells(env.mdp), Grid.of_env(env))


def _frozen_lake(seed: int) -> Setting:
    """The prior believes that the right bank is the goal, and knows half of the holes.

    The true cost is -1 on the goal at each step, not once on reaching it. The two order policies alike, one is γ/(1-γ)
    times the other; this one is a cost of cells, and reaches the end of the box.
    """
    import gymnasium as gym

    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    mdp, grid = TabularMDP.from_env(env, discount=0.95), Grid.of_env(env)
    assert grid is not None
    cells = grid.cells.ravel()
    truth = np.where(cells == -1, -1.0, 0.0)[mdp.pair_states]
    holes = np.flatnonzero(cells == 1)
    guess = np.where(np.arange(cells.size) % grid.cells.shape[1] == grid.cells.shape[1] - 1, -1.0, 0.0)
    guess[np.random.default_rng(seed).choice(holes, size=len(holes) // 2, replace=False)] = 1.0
    expert = noisy_expert(mdp, truth, 0.3)
    return Setting(mdp, truth, expert, guess[mdp.pair_states], signed_cells(mdp), grid)


TASKS = {
    task.name: task
    for task in (
        Task(
            "inventory",
            "Inventory: the expert believes prices (5, 8, 15), the prior (4, 2, 14)",
            _inventory,
            prior_varies=False,
            expert_cost="prices (5, 8, 15)",
        ),
        Task(
            "windy",
            "Windy gridworld 10 x 10: 30% random moves, the prior knows half of the obstacles and goals",
            _windy,
            prior_varies=True,
        ),
        Task(
            "lake",
            "FrozenLake 4 x 4: 30% random moves, the prior knows the goal's column and half of the holes",
            _frozen_lake,
            prior_varies=True,
        ),
    )
}
"""The tasks by name."""
