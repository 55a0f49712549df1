"""The tasks of the comparison, each of them one entry in `TASKS`.

A task is an MDP, its true cost, an imperfect expert, a prior, a basis and a belief. It is *made*
for a seed, because its prior may be drawn at random; everything else about it is fixed.
Demonstrations are drawn from the expert's own policy, on the tables, up to a horizon T with γ^T < 1e-4; later steps
do not matter. Trajectories stay in absorbing states, so all trajectories of a task have the same
length.

**Bases** are for methods that look for the cost in a hull {Cw, w in the simplex}. On the inventory
C has the environment's three features, each divided by its largest absolute value so that it lies
in the unit box: the hull is that of all nonnegative prices, up to scale. On the grids the columns
are plus and minus the indicator of each cell, K = 2S: the hull is that of all costs of cells with
ℓ1-norm at most one.

**Beliefs** say for which costs a method's policy has to be better than the expert to earn the
measure "guaranteed": ranges of a few prices, which contain the truth. On the inventory they are in
money. On the grids they say how bad an obstacle (a hole) may be and how good a goal.

**ICU-Sepsis** (Choudhary, Gupta & Thomas 2024; the package icu-sepsis) was made by nobody here: its
tables and its expert, the clinicians, are estimated from records of patients with sepsis. An
action that is too rare to be estimated acts like the mean of the others of its state, so such
actions are left out, and their share of the clinicians' policy is divided evenly among the others:
no policy is lost, and no expected cost changes. The prior is the severity score SOFA, over its
largest possible value 24, while a patient is treated, and 0 afterwards: it does not know that
survival is the aim. The truth is -1 in each step after survival, so that the expected cost is
minus γ times the expected discounted reward; without discount, the expected rewards of random
treatment, clinicians and optimum are 0.78, 0.78 and 0.88, as the package says. The basis is the
severity, death and minus survival; the belief states ranges of their prices.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._install import command
from rlfd_gym.beliefs import Belief, Prices, scale_basis
from rlfd_gym.experts.made_up import Walk, demonstrate, noisy_expert
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem import examples
from rlfd_gym.report.plots import Grid


@dataclass(frozen=True, eq=False)
class Instance:
    """A task made for one seed.

    Attributes:
        mdp: the tables.
        truth: the true cost over pairs, unknown to the methods.
        expert: the expert's exact occupancy.
        prior: the prior cost, over pairs.
        basis: C, of shape (n_pairs, K), in the unit box.
        grid: how to draw the states, if they lie on a grid.
        belief: what is believed about the cost, for guarantees; it does not depend on the seed.
            Without one nothing can be guaranteed.

    Example:
        >>> made = TASKS["inventory"].make(0)
        >>> made.mdp.n_pairs, made.prior.shape, made.belief.names
        (136, (136,), ('order', 'holding', 'sell'))
    """

    mdp: TabularMDP
    truth: FloatArray = field(repr=False)
    expert: FloatArray = field(repr=False)
    prior: FloatArray = field(repr=False)
    basis: FloatArray = field(repr=False)
    grid: Grid | None = None
    belief: Belief | None = field(default=None, repr=False)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The true expected costs of the expert and of the optimum, evaluated like the methods."""
        policies = self.mdp.policy_of(self.expert), self.mdp.optimal(self.truth).policy
        return self.mdp.expected_cost(policies[0], self.truth), self.mdp.expected_cost(policies[1], self.truth)


@dataclass(frozen=True)
class Task:
    """A task of the comparison, as an entry of `TASKS`.

    Attributes:
        name: the task's name on the command line and in the files.
        title: the heading of its table.
        make: a function from a seed to the instance.
        prior_varies: whether the prior is drawn, so that the seed matters.
        expert_cost: a description of the cost in the hull of the basis under which the expert is
            optimal, for the note below the table; empty if there is none.
        default: whether the task is included when no tasks are named.
        needs: the optional package that has the task's data, as it is imported; empty for none. The
            version of the package is stored with the results.

    Example:
        >>> TASKS["windy"].name, TASKS["windy"].prior_varies
        ('windy', True)
    """

    name: str
    title: str
    make: Callable[[int], Instance] = field(repr=False)
    prior_varies: bool
    expert_cost: str = ""
    default: bool = True
    needs: str = ""

    @property
    def installed(self) -> bool:
        """Whether the package that the task needs is there."""
        return not self.needs or find_spec(self.needs) is not None

    @property
    def chosen(self) -> bool:
        """Whether the task is included on this machine when no tasks are named."""
        return self.default and self.installed

    def require(self) -> None:
        """Raise an error that says what to install, if the package that the task needs is missing."""
        if not self.installed:
            package = self.needs.replace("_", "-")
            raise ImportError(f"the task {self.name} needs {package}: {command('tasks')}", name=self.needs)


def demonstrations_of(instance: Instance, number: int, seed: np.random.SeedSequence) -> list[Walk]:
    """Draw trajectories of the expert; the first k do not depend on how many are drawn.

    >>> instance = TASKS["inventory"].make(0)
    >>> few, many = (demonstrations_of(instance, n, np.random.SeedSequence(1)) for n in (2, 5))
    >>> len(many), len(few[1].acts), bool((few[1].obs == many[1].obs).all())
    (5, 88, True)
    """
    mdp = instance.mdp
    return demonstrate(mdp, mdp.policy_of(instance.expert), number, mdp.horizon(), seed)


def signed_cells(mdp: TabularMDP) -> FloatArray:
    """Return plus and minus the indicator of each state, over pairs: (n_pairs, 2 n_states).

    >>> rows = [[1, 0], [0, 1], [0, 1]]
    >>> mdp = TabularMDP(rows, [0, 0, 1], [0, 1, 0], initial=None, discount=0.5)
    >>> signed_cells(mdp)[2].tolist()
    [0.0, 1.0, -0.0, -1.0]
    """
    indicators = np.eye(mdp.n_states)[mdp.pair_states]
    return np.hstack([indicators, -indicators])


def _inventory(seed: int) -> Instance:
    env, problem = examples.inventory_env(), examples.inventory()
    belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    return Instance(problem.mdp, env.cost, problem.expert, problem.prior, scale_basis(env.features), belief=belief)


def _windy(seed: int) -> Instance:
    env, problem = examples.gridworld_env(), examples.gridworld(seed=seed)
    belief = env.price_ranges(obstacle=(0.2, 1), goal=(-1, -0.5), step=(0, 0.1))
    basis, grid = signed_cells(problem.mdp), Grid.of_env(env)
    return Instance(problem.mdp, env.cost, problem.expert, problem.prior, basis, grid, belief)


def _frozen_lake(seed: int) -> Instance:
    """Make FrozenLake, with a prior that takes the right bank for the goal.

    The prior also knows half of the holes. The true cost is -1 on the goal at each step, not once
    on reaching it. Both costs order policies in the same way, because one is γ/(1-γ) times the
    other; the one used here is a cost of cells, and reaches the end of the box.
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
    kinds = np.array([1, -1]) == cells[mdp.pair_states, None]
    belief = Prices.named(kinds.astype(np.float64), {"hole": (0, 0.5), "goal": (-1, -0.5)})
    return Instance(mdp, truth, expert, guess[mdp.pair_states], signed_cells(mdp), grid, belief)


def _sepsis(seed: int) -> Instance:
    return _read_sepsis()


@cache
def _read_sepsis() -> Instance:
    """Make ICU-Sepsis; see the module's docstring. Reading its tables takes a second."""
    with contextlib.redirect_stderr(io.StringIO()):  # the old gym, which the package imports, says that it is old
        from icu_sepsis import ICUSepsisEnv
    env = ICUSepsisEnv(inadmissible_action_strategy="raise_exception")
    mdp = TabularMDP.from_env(env, discount=0.99)
    death, survival = env.num_states - 3, env.num_states - 2  # the states before these are treated
    policy = np.array(env.expert_policy, dtype=np.float64)
    policy[death:] = 1.0 / env.num_actions
    left_out = np.where(mdp.feasible, 0.0, policy).sum(axis=1) / mdp.feasible.sum(axis=1)
    clinicians = mdp.pairs(policy + left_out[:, None], "expert_policy")
    severity = np.where(np.arange(env.num_states) < death, env.sofa_scores / 24.0, 0.0)[mdp.pair_states]
    ends = np.array([death, survival]) == mdp.pair_states[:, None]
    features = np.column_stack([severity, ends])
    belief = Prices.named(features, {"severity": (0, 0.5), "death": (0, 1), "survival": (-1, -0.5)})
    basis = scale_basis(features * [1.0, 1.0, -1.0])
    return Instance(mdp, 0.0 - ends[:, 1], mdp.occupancy_of(clinicians), severity, basis, belief=belief)


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
        Task(
            "icu-sepsis",
            "ICU-Sepsis, 716 states: the clinicians as estimated from records, the prior is the severity score",
            _sepsis,
            prior_varies=False,
            default=False,  # a cell takes up to a minute
            needs="icu_sepsis",
        ),
    )
}
"""The tasks by name."""
