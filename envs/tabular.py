"""What the tabular environments share: a Gymnasium interface to a `TabularMDP` and a cost.

Episodes never terminate. Goals are absorbing instead, and `gym.make` truncates episodes at a fixed
`max_episode_steps`, as the `imitation` library needs it. The reward is minus the cost of the pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.envs.rendering import Window
from rlfd_gym.mdp.tables import TabularMDP


class TabularEnv(gym.Env[Any, Any], ABC):
    """The base class of environments with known tables and a transition oracle.

    A subclass calls `super().__init__` with its tables and implements `sample_next`, `render_text`
    and `render_frame`. If its actions depend on the state, it also overrides `cut_action`.

    Attributes:
        mdp: the tables.
        cost: the true cost, over pairs; `reward = -cost`.
        state: the current state; `None` before the first `reset`.

    Example:
        >>> import rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> isinstance(env, TabularEnv), env.mdp.n_pairs == len(env.cost)
        (True, True)
    """

    metadata = {"render_modes": ["ansi", "rgb_array", "human"], "render_fps": 4}

    mdp: TabularMDP
    cost: FloatArray
    state: int | None

    def __init__(self, mdp: TabularMDP, cost: FloatArray, render_mode: str | None) -> None:
        """Set the tables and spaces."""
        modes = self.metadata["render_modes"]
        if render_mode is not None:
            _checks.one_of("render_mode", render_mode, modes)
        self.mdp = mdp
        self.cost = cost
        self._lock()
        self.render_mode = render_mode
        self.observation_space = gym.spaces.Discrete(mdp.n_states)
        self.action_space = gym.spaces.Discrete(mdp.n_actions)
        self.state = None
        self.last_action: int | None = None
        self._initial_cdf = np.cumsum(mdp.initial)
        self._window: Window | None = None

    @abstractmethod
    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw s' ~ P(·|s, a) for each entry: the transition oracle.

        An infeasible action raises a `ValueError`.
        """

    @abstractmethod
    def render_text(self) -> str:
        """Return the current state as text, for a terminal."""

    @abstractmethod
    def render_frame(self) -> NDArray[np.uint8]:
        """Draw the current state as an RGB image."""

    @property
    def discount(self) -> float:
        """The discount γ of the MDP."""
        return self.mdp.discount

    @property
    def horizon(self) -> int:
        """The smallest T with γ^T < 1e-4.

        After T steps less than 1e-4 of the discounted future is left.
        """
        return self.mdp.horizon()

    def cut_action(self, state: int, action: int) -> int:
        """Return the feasible action that `step` takes if `action` is requested."""
        return action

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are feasible now, in the form of sb3-contrib's MaskablePPO."""
        return self._info()["action_mask"].astype(bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start again, from `options["state"]` or a state drawn from `mdp.initial`."""
        wanted = None if options is None else _checks.instance("options", options, dict).get("state")
        super().reset(seed=seed)
        if wanted is None:
            draw = np.searchsorted(self._initial_cdf, self.np_random.random() * self._initial_cdf[-1], side="right")
            self.state = int(draw)
        else:
            state = _checks.integer('options["state"]', wanted, 0)
            if state >= self.mdp.n_states:
                raise ValueError(f'options["state"] must lie in 0..{self.mdp.n_states - 1}, got {state}')
            self.state = state
        self.last_action = None
        if self.render_mode == "human":
            self.render()
        return self.state, self._info()

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Make one transition; `cut_action` replaces an infeasible action."""
        if self.state is None:
            raise gym.error.ResetNeeded("call reset() before step()")
        given = _checks.integers("action", action)
        if given.size != 1:
            raise ValueError(f"action must be one action, got an array of shape {given.shape}")
        number = int(given.item())
        if not 0 <= number < self.mdp.n_actions:
            raise ValueError(f"action must lie in 0..{self.mdp.n_actions - 1}, got {action!r}")
        taken = self.cut_action(self.state, number)
        pair = self._pair(self.state, taken)
        reward = 0.0 - float(self.cost[pair])
        self.state = self._advance(self.state, taken, pair)
        self.last_action = taken
        if self.render_mode == "human":
            self.render()
        return self.state, reward, False, False, self._info()

    def render(self) -> Any:
        """Render as text, as an RGB array or in a window, depending on `render_mode`."""
        if self.render_mode is None:
            gym.logger.warn('render() does nothing without a render mode: gym.make(..., render_mode="rgb_array")')
            return None
        if self.state is None:
            raise gym.error.ResetNeeded("call reset() before render()")
        if self.render_mode == "ansi":
            return self.render_text()
        frame = self.render_frame()
        if self.render_mode == "rgb_array":
            return frame
        if self._window is None:
            self._window = Window(type(self).__name__, self.metadata["render_fps"])
        self._window.show(frame)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _pair(self, state: int, action: int) -> int:
        """Return the pair of a feasible action, as `mdp.pair_index` does, for a single step."""
        first, end = self.mdp.state_starts[state : state + 2]
        return int(first) + int(np.searchsorted(self.mdp.pair_actions[first:end], action))

    def _advance(self, state: int, action: int, pair: int) -> int:
        """Draw the next state with the environment's own generator."""
        return int(self.sample_next(state, action, self.np_random))

    def _lock(self) -> None:
        """Make the tables read-only."""
        self.cost.flags.writeable = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state and lock the arrays again: unpickling makes them writeable."""
        self.__dict__.update(state)
        self._lock()

    def _info(self) -> dict[str, Any]:
        """Return the `info` dictionary with the mask of feasible actions, as in Taxi."""
        if self.state is None:
            raise gym.error.ResetNeeded("call reset() first")
        mask = np.zeros(self.mdp.n_actions, dtype=np.int8)
        first, end = self.mdp.state_starts[self.state : self.state + 2]
        mask[self.mdp.pair_actions[first:end]] = 1
        return {"action_mask": mask}
