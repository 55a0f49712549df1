"""Simulators: what draws next states of given pairs; `rlfd_gym.mdp.simulating` says how they are made."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import IntArray
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.mdp.tables import TabularMDP

SWEEPS = 3  # over all pairs without finding another terminal state, before the search for them ends
MOST_SWEEPS = 30


class Simulator:
    """Draws next states from an environment; `simulate` makes one.

    Attributes:
        env: the environment.
        kind: how it draws: "sample_next", "set_state", "step" or "tables".
        n_states, n_actions: the sizes of the environment's spaces, also as the spaces themselves
            (`observation_space`, `action_space`).
        feasible: which actions each state offers, (n_states, n_actions).
        discount: γ.
        absorbing: which states are known to be never left.
        deterministic: whether every pair is known to have one next state only.
        steps: how many steps of the environment were made.
        unvisited: the pairs (state, action) that no episode met, one row each; only for "step".

    Example:
        >>> import gymnasium as gym
        >>> from rlfd_gym import simulate
        >>> simulator = simulate(gym.make("rlfd_gym:rlfd_gym/Inventory-v0"))
        >>> simulator.kind, simulator.n_states, int(simulator.feasible.sum())
        ('sample_next', 16, 136)
    """

    kind = "sample_next"

    def __init__(self, env: Any, base: Any, shape: tuple[int, int], discount: float, deterministic: bool) -> None:
        """Read what the environment says of itself."""
        self.env, self._base = env, base
        self.n_states, self.n_actions = shape
        self.observation_space, self.action_space = base.observation_space, base.action_space
        self.feasible = _mask_of(base, shape)
        self.discount, self.deterministic, self.steps = discount, deterministic, 0
        self.absorbing = np.zeros(shape[0], dtype=bool)
        declared = getattr(base, "absorbing", None)
        if isinstance(declared, np.ndarray) and declared.dtype == np.bool_ and declared.shape == (shape[0],):
            self.absorbing = declared.copy()
        self.unvisited: IntArray = np.zeros((0, 2), dtype=np.int64)
        if callable(cut := getattr(base, "cut_action", None)):
            self.cut_action = cut

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw one next state for each (state, action), two arrays of one shape."""
        _checks.instance("rng", rng, np.random.Generator)
        s, a = np.broadcast_arrays(_checks.integers("states", states), _checks.integers("actions", actions))
        known = (s >= 0) & (s < self.n_states) & (a >= 0) & (a < self.n_actions)
        if not known.all() or not self.feasible[s, a].all():
            raise ValueError(
                f"states, actions: every pair must be feasible, in 0..{self.n_states - 1} and "
                f"0..{self.n_actions - 1}; see Simulator.feasible"
            )
        following = np.array(s)
        moving = ~self.absorbing[s]
        following[moving] = self._draw(s[moving], a[moving], rng)
        return following

    def _draw(self, states: IntArray, actions: IntArray, rng: np.random.Generator) -> Any:
        self.steps += len(states)
        return self._base.sample_next(states, actions, rng)

    def _number(self, observation: Any) -> int:
        """Return an observation as the number of a state."""
        if np.ndim(observation) or not isinstance(observation, (int, np.integer, np.ndarray)):
            raise TypeError(f"env: step and reset must return states 0..{self.n_states - 1}, got {observation!r}")
        state = int(observation)
        if not 0 <= state < self.n_states:
            raise ValueError(f"env: step and reset must return states 0..{self.n_states - 1}, got {state}")
        return state

    def _check_end(self, state: int) -> None:
        """Refuse an end in a state that was not known to end episodes."""
        if not self.absorbing[state]:
            ends = [*np.flatnonzero(self.absorbing).tolist(), state]
            raise RuntimeError(
                f"env: an episode terminated in state {state}, which no step had shown before; make the simulator "
                f"anew with all such states, terminal={ends} or more"
            )

    def __repr__(self) -> str:
        """Return one line with the environment and how it draws."""
        lacking = f", {len(self.unvisited)} unvisited pairs" if len(self.unvisited) else ""
        name = type(self._base).__name__
        return f"Simulator({name}, by {self.kind}, {self.n_states} states, {self.n_actions} actions{lacking})"


class Drawn(Simulator):
    """Draws from the rows of tables."""

    kind = "tables"

    def __init__(self, mdp: TabularMDP, deterministic: bool) -> None:
        """Add up the rows."""
        spaces = SimpleNamespace(observation_space=None, action_space=None, feasible=mdp.feasible)
        super().__init__(mdp, spaces, (mdp.n_states, mdp.n_actions), mdp.discount, deterministic)
        self._base = mdp
        self._cumulative = np.cumsum(mdp.transitions.data)

    def _draw(self, states: IntArray, actions: IntArray, rng: np.random.Generator) -> IntArray:
        mdp, self.steps = self._base, self.steps + len(states)
        pairs, rows = mdp.pair_index(states, actions), mdp.transitions
        first, last = rows.indptr[pairs], rows.indptr[pairs + 1] - 1
        before = np.where(first > 0, self._cumulative[first - 1], 0.0)
        level = before + (self._cumulative[last] - before) * rng.random(len(pairs))
        return rows.indices[np.clip(np.searchsorted(self._cumulative, level, side="right"), first, last)]


class Placed(Simulator):
    """Puts the environment into each state and makes a step."""

    kind = "set_state"

    def __init__(self, *what: Any, place: Callable[[int], Any], terminal: IntArray | None, seed: int) -> None:
        """Look for terminal states, unless they are given."""
        super().__init__(*what)
        self._place = place
        if terminal is not None:
            self.absorbing[terminal] = True
            return
        rng, pairs = np.random.default_rng(seed), np.argwhere(self.feasible).tolist()
        quiet = 0
        for _ in range(MOST_SWEEPS):
            self._base.reset(seed=int(rng.integers(2**31)))
            outcomes = [self._step(*pair) for pair in pairs if not self.absorbing[pair[0]]]
            ends = {state for state, terminated in outcomes if terminated and not self.absorbing[state]}
            self.absorbing[list(ends)] = True
            quiet = 0 if ends else quiet + 1
            if quiet == SWEEPS:
                break

    def _draw(self, states: IntArray, actions: IntArray, rng: np.random.Generator) -> IntArray:
        self._base.reset(seed=int(rng.integers(2**31)))
        following = np.empty(len(states), dtype=np.int64)
        for k, pair in enumerate(zip(states.tolist(), actions.tolist(), strict=True)):
            following[k], terminated = self._step(*pair)
            if terminated:
                self._check_end(int(following[k]))
        return following

    def _step(self, state: int, action: int) -> tuple[int, bool]:
        """Make one step from a state and return where it leads and whether it terminates."""
        self._place(state)
        observation, _, terminated, _, _ = self._base.step(action)
        self.steps += 1
        return self._number(observation), bool(terminated)


def _mask_of(base: Any, shape: tuple[int, int]) -> NDArray[np.bool_]:
    """Return which actions are feasible, as the environment says; by default all."""
    own = getattr(base, "mdp", None)
    known = own.feasible if isinstance(own, Pairs) else np.ones(shape, dtype=bool)
    feasible = np.asarray(getattr(base, "feasible", known))
    if feasible.shape != shape or feasible.dtype != np.bool_ or not feasible.any(axis=1).all():
        raise ValueError(f"env: feasible must be a boolean array of shape {shape}, an action in every state")
    return feasible.copy()
