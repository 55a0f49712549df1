"""What a trainer needs to know of its environment, with or without tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.mdp import adapters
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import RLfDProblem

STAY_DRAWS = 32  # draws per action after which a state that was never left counts as absorbing


@dataclass(frozen=True, eq=False)
class World:
    """An unwrapped environment, its tables if it has them, and its feasible pairs."""

    base: Any
    mdp: TabularMDP | None
    discount: float
    feasible: NDArray[np.bool_] = field(repr=False)
    pair_states: IntArray = field(repr=False)
    pair_actions: IntArray = field(repr=False)

    @classmethod
    def of(cls, env: Any, discount: float | None) -> World:
        """Read an environment: its tables, or what there is of a simulator."""
        base = adapters.unwrap(env)
        try:
            mdp, _ = adapters.model_of_env(env, discount=discount)
        except TypeError:
            if not callable(getattr(base, "sample_next", None)):
                raise
            return cls._without_tables(base, discount)
        feasible = np.zeros((mdp.n_states, mdp.n_actions), dtype=bool)
        feasible[mdp.pair_states, mdp.pair_actions] = True
        return cls(base, mdp, mdp.discount, feasible, mdp.pair_states, mdp.pair_actions)

    @classmethod
    def _without_tables(cls, base: Any, discount: float | None) -> World:
        shape = []
        for name in ("observation_space", "action_space"):
            space: Any = getattr(base, name, None)
            if not hasattr(space, "n") or getattr(space, "start", 0) != 0:
                raise TypeError(f"env: {name} must be Discrete(n), starting at 0, for learning from draws; got {space}")
            shape.append(int(space.n))
        feasible = np.asarray(getattr(base, "feasible", np.ones(shape, dtype=bool)))
        if feasible.shape != tuple(shape) or feasible.dtype != np.bool_ or not feasible.any(axis=1).all():
            raise ValueError(f"env: feasible must be a boolean array of shape {tuple(shape)}, an action in every state")
        if discount is None:
            discount = getattr(base, "discount", adapters.DEFAULT_DISCOUNT)
        return cls(base, None, _checks.discount_factor(discount), feasible, *np.nonzero(feasible))

    @property
    def n_states(self) -> int:
        """How many states there are."""
        return self.feasible.shape[0]

    @property
    def n_actions(self) -> int:
        """How many actions there are."""
        return self.feasible.shape[1]

    @property
    def observations(self) -> FloatArray | None:
        """What is seen of each state, where that is a vector (seals)."""
        return getattr(self.base, "observation_matrix", None)

    def check_spaces(self, name: str, observation_space: Any, action_space: Any) -> None:
        """A net over these spaces must have room for every state, or see what is seen of it, and for every action."""
        vectors = not hasattr(observation_space, "n") and self.observations is not None
        seen = vectors or getattr(observation_space, "n", 0) >= self.n_states
        if not seen or getattr(action_space, "n", 0) < self.n_actions:
            raise ValueError(
                f"{name} is for {observation_space} and {action_space}, but env has {self.n_states} states and "
                f"{self.n_actions} actions"
            )

    def uniform_policy(self) -> FloatArray:
        """Every feasible action alike, over pairs."""
        return np.asarray(1.0 / self.feasible.sum(axis=1)[self.pair_states])

    def table(self, pairs: FloatArray, fill: float) -> FloatArray:
        """A pair vector as a (n_states, n_actions) table."""
        table = np.full(self.feasible.shape, fill)
        table[self.pair_states, self.pair_actions] = pairs
        return table

    def pairs_of(self, name: str, values: Any) -> FloatArray:
        """A vector over pairs from one, from a table over states and actions, or from a function of both."""
        if callable(values):
            pairs = zip(self.pair_states.tolist(), self.pair_actions.tolist(), strict=True)
            values = [values(state, action) for state, action in pairs]
        elif np.ndim(values) == 2:
            table = _checks.as_array(name, values, np.float64)
            if table.shape != self.feasible.shape:
                raise ValueError(
                    f"{name} has shape {table.shape}, expected {self.feasible.shape} (states × actions) or "
                    f"({len(self.pair_states)},) (feasible pairs)"
                )
            values = table[self.pair_states, self.pair_actions]
        return _checks.pair_vector(name, values, len(self.pair_states)).copy()

    def problem(
        self, expert: FloatArray | SampledExpert, prior: ArrayLike | None, alpha: float, regulariser: str
    ) -> RLfDProblem | BlackBoxProblem:
        """RLfD_α in this environment."""
        if isinstance(expert, SampledExpert):
            return BlackBoxProblem(
                self.base,
                expert,
                n_states=self.n_states,
                n_actions=self.n_actions,
                discount=self.discount,
                prior=prior,
                alpha=alpha,
                feasible=self.feasible,
                regulariser=regulariser,
            )
        assert self.mdp is not None
        return RLfDProblem(self.mdp, expert, prior, alpha, regulariser)

    def state_occupancy(self, policy: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Where a policy goes; without tables, where the learned occupancy says it does."""
        pairs = occupancy if self.mdp is None else self.mdp.occupancy_of(policy)
        return np.asarray(np.bincount(self.pair_states, weights=pairs, minlength=self.n_states), dtype=np.float64)

    def transitions(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """All transitions that are possible, each pair weighing the same; without tables, one that stays for each."""
        n = len(self.pair_states)
        if self.mdp is None:
            return self.pair_states, self.pair_actions, self.pair_states, np.full(n, 1.0 / n)
        p = self.mdp.transitions
        rows = np.repeat(np.arange(n), np.diff(p.indptr))
        weights = p.data / p.data.sum()
        return self.pair_states[rows], self.pair_actions[rows], p.indices.astype(np.int64), weights

    def as_executed(self, read: Demonstrations) -> Demonstrations:
        """Infeasible actions replaced by what the environment did instead, where it says what that is.

        An agent that knows no masks asks for anything, and rollouts record what it asked for.
        """
        cut = getattr(self.base, "cut_action", None)
        if not callable(cut):
            return read
        inside = (read.states >= 0) & (read.states < self.n_states)
        inside &= (read.actions >= 0) & (read.actions < self.n_actions)
        known = np.flatnonzero(inside)
        actions = read.actions.copy()
        for i in known[~self.feasible[read.states[known], actions[known]]]:
            actions[i] = cut(int(read.states[i]), int(actions[i]))
        return replace(read, actions=actions)

    def seems_absorbing(self, read: Demonstrations) -> NDArray[np.bool_]:
        """Which of the states that trajectories terminated in the simulator does not leave, whatever is tried."""
        absorbing = np.zeros(self.n_states, dtype=bool)
        if read.lengths is None or read.next_states is None:
            return absorbing
        rng = np.random.default_rng(0)
        last = read.next_states[read.ends[read.terminal]]
        for state in np.unique(last[(last >= 0) & (last < self.n_states)]):
            actions = np.repeat(np.flatnonzero(self.feasible[state]), STAY_DRAWS)
            drawn = self.base.sample_next(np.full(len(actions), state), actions, rng)
            absorbing[state] = bool((np.asarray(drawn) == state).all())
        return absorbing
