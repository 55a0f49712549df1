r"""Environments without tables as simulators: `simulate`.

A simulator draws next states of given pairs: `sample_next(states, actions, rng)`. An environment
with discrete spaces becomes one in the first of three ways that it allows:

* **its own `sample_next`**, the fast way;
* **being put into a state**: by a method `set_state`, by an attribute `s` (as toy_text has it) or
  `state` that holds the number of the state, or by a function that the caller gives. Each draw is
  then one step of the environment from that state;
* **being stepped only.** Episodes are played, and each transition is handed out once
  (`rlfd_gym.mdp.stepping` says why that is as good as drawing). Pairs that the first `steps` did not
  meet are reported and infeasible, as in a log (`rlfd_gym.read_log`): nothing is known about them.

**Ends.** As in the tables of toy_text, a state in which an episode has terminated is never left.
Such states are found by trying every pair several times, and declared as `absorbing`. A truncated
episode says nothing. If an episode terminates later in a state that was not found, an error asks for
`terminal=`, because draws before and after would come from different environments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym.mdp import adapters
from rlfd_gym.mdp.simulator import Drawn, Placed, Simulator
from rlfd_gym.mdp.stepping import Stepped
from rlfd_gym.mdp.tables import TabularMDP

AGREEMENTS = 5  # resets after which an attribute counts as the number of the state


def simulate(
    env: Any,
    *,
    set_state: Callable[[Any, int], Any] | None = None,
    discount: float | None = None,
    terminal: ArrayLike | None = None,
    deterministic: bool = False,
    steps: int = 100_000,
    seed: int = 0,
) -> Simulator:
    """Make a simulator of an environment with discrete spaces, without reading its tables.

    Args:
        env: a Gymnasium environment with `Discrete` observations and actions, wrapped or not. It may
            have `feasible`, a boolean (n_states, n_actions), and `discount`. Or a `TabularMDP`, from
            whose rows is drawn, to see what draws alone would teach.
        set_state: a function of the unwrapped environment and a state that puts the one into the
            other, if the environment has neither `set_state` nor the attribute `s` or `state`.
        discount: γ; by default the environment's, or 0.99 if it has none.
        terminal: the states that end an episode; by default they are found by trying every pair.
        deterministic: whether every pair has one next state only. It is believed: certificates then
            need one draw of each pair.
        steps: for an environment that can only be stepped, how many steps to play at first.
        seed: the seed of these steps, and of the search for terminal states.

    Returns:
        A `Simulator`, to be given to `BlackBoxProblem` or `RLfDTrainer` instead of the environment.

    Example:
        >>> import gymnasium as gym
        >>> lake = simulate(gym.make("FrozenLake-v1", is_slippery=False))
        >>> lake
        Simulator(FrozenLakeEnv, by set_state, 16 states, 4 actions)
        >>> lake.sample_next([0, 0], [1, 2], np.random.default_rng(0)).tolist()      # down, right
        [4, 1]
    """
    if isinstance(env, type):
        raise TypeError(f"env must be an environment, got the class {env.__name__}; make one first")
    certain = _checks.flag("deterministic", deterministic)
    if isinstance(env, TabularMDP):
        if any(given is not None for given in (set_state, discount, terminal)):
            raise ValueError("set_state, discount, terminal are for environments; a TabularMDP says all of it itself")
        return Drawn(env, certain)
    base = adapters.unwrap(env)
    shape = _sizes_of(base)
    if discount is None:
        discount = getattr(base, "discount", adapters.DEFAULT_DISCOUNT)
    what = env, base, shape, _checks.discount_factor(discount), certain
    first = _checks.integer("steps", steps, 1, _checks.MOST_STEPS)
    start = _checks.integer("seed", seed, 0, 2**31 - 1)
    if set_state is not None and not callable(set_state):
        raise TypeError(f"set_state must be a function of the environment and a state, got {type(set_state).__name__}")
    ends = None
    if terminal is not None:
        ends = _checks.integers("terminal", terminal)
        if ends.ndim != 1 or (ends.size and (ends.min() < 0 or ends.max() >= shape[0])):
            raise ValueError(f"terminal must be a list of states in 0..{shape[0] - 1}, got {terminal!r}")
    if set_state is None and callable(getattr(base, "sample_next", None)):
        return Simulator(*what)
    if not callable(getattr(base, "step", None)) or not callable(getattr(base, "reset", None)):
        raise TypeError(f"env must have step and reset, or sample_next, got {type(base).__name__}")
    place = (lambda state: set_state(base, state)) if set_state is not None else _placing(base, start)
    if place is not None:
        return Placed(*what, place=place, terminal=ends, seed=start)
    return Stepped(*what, steps=first, terminal=ends, seed=start)


def can_be_placed(env: Any) -> bool:
    """Return whether an environment has discrete spaces and can be put into a state."""
    base = adapters.unwrap(env)
    try:
        _sizes_of(base)
    except TypeError:
        return False
    return all(callable(getattr(base, name, None)) for name in ("step", "reset")) and _placing(base, 0) is not None


def _placing(base: Any, seed: int) -> Callable[[int], Any] | None:
    """Return how to put an environment into a state, if it shows a way."""
    if callable(getattr(base, "set_state", None)):
        return lambda state: base.set_state(state)
    for name in ("s", "state"):
        if all(_is_state(base, name, seed + k) for k in range(AGREEMENTS)):
            return lambda state, name=name: setattr(base, name, state)  # type: ignore[misc]
    return None


def _is_state(base: Any, name: str, seed: int) -> bool:
    """Return whether, after a reset, an attribute holds the observation."""
    observation, _ = base.reset(seed=seed)
    found = getattr(base, name, None)
    whole = isinstance(found, (int, np.integer)) and not isinstance(found, (bool, np.bool_))
    return whole and np.ndim(observation) == 0 and int(found) == int(observation)  # type: ignore[arg-type]


def _sizes_of(base: Any) -> tuple[int, int]:
    """Return the sizes of the spaces, which must be discrete."""
    sizes = []
    for name in ("observation_space", "action_space"):
        space: Any = getattr(base, name, None)
        if not hasattr(space, "n") or getattr(space, "start", 0) != 0 or np.ndim(space.n):
            raise TypeError(f"env: {name} must be Discrete(n), starting at 0, for learning from draws; got {space}")
        sizes.append(int(space.n))
    return sizes[0], sizes[1]
