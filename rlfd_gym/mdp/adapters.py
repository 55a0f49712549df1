"""From an environment to its tables: rlfd_gym's own, toy_text, seals' tabular models, ICU-Sepsis.

Each reader turns an unwrapped environment into (mdp, cost), with cost = minus the expected reward
of each pair. Environments are recognised by their attributes, so that no package is imported which
the user has not already loaded:

* rlfd_gym environments have `mdp` and `cost`;
* toy_text environments have `P[s][a] = [(probability, next state, reward, terminated), ...]`. A
  state entered with `terminated` becomes absorbing at zero cost, whatever `P` lists for it
  (CliffWalking and Taxi list moves out of their terminal states that no episode can make);
* seals models have `transition_matrix[s, a, s']`, `reward_matrix` over s, (s, a) or (s, a, s'),
  and `initial_state_dist`;
* ICU-Sepsis (package icu-sepsis) has `dynamics` with `tx_mat[s, a, s']`, `r_mat[s, a, s']`, `d_0` and
  `admissible_actions`. What its `inadmissible_action_strategy` says of the other actions holds here
  too: "mean" keeps them, "terminate" makes them lead to death, "raise_exception" leaves them out.
  Death and survival are absorbing at zero cost.

Wrappers are removed, not interpreted: a wrapper that changes rewards does not change the tables.
Gymnasium's action and observation wrappers that give another number to an action or a state are
refused, because demonstrations and policies would be read in numbers that are not theirs. Of a
vectorised environment (Gymnasium's or Stable-Baselines3's) the first copy is read.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.tables import TabularMDP

DEFAULT_DISCOUNT = 0.99
TIMES_ASKED = 8  # each number: a wrapper that changes one in four at random passes once in 70 times at most

SUPPORTED = (
    "rlfd_gym environments, Gymnasium toy_text environments with a transition table `P` "
    "(FrozenLake, CliffWalking, Taxi), seals tabular models, ICU-Sepsis, and wrapped or vectorised versions of these"
)


class NotTabularError(TypeError):
    """The error for an environment without tables that the library can read."""


def cost_of_env(env: Any) -> FloatArray:
    """Return the true cost of a tabular environment: minus the expected reward of each pair.

    >>> import gymnasium as gym, rlfd_gym
    >>> cost = rlfd_gym.cost_of_env(gym.make("FrozenLake-v1", is_slippery=False))
    >>> cost.shape, float(cost.min())       # one pair steps onto the goal, for a reward of 1
    ((64,), -1.0)
    """
    return model_of_env(env)[1]


def model_of_env(
    env: Any, *, discount: float | None = None, initial: ArrayLike | None = None
) -> tuple[TabularMDP, FloatArray]:
    """Return the MDP of an environment and its true cost; see `TabularMDP.from_env`.

    Example:
        >>> import gymnasium as gym
        >>> mdp, cost = model_of_env(gym.make("FrozenLake-v1"), discount=0.95)
        >>> mdp.n_pairs, float(cost.min()) < 0.0
        (64, True)
    """
    if isinstance(env, type):
        raise TypeError(f"env must be an environment, got the class {env.__name__}; make one first")
    base = unwrap(env)
    _refuse_other_numbers(env, base)
    if _has(base, "mdp", "cost"):
        return _own_model(base, discount, initial)
    if discount is None:
        discount = getattr(base, "discount", DEFAULT_DISCOUNT)
    if _has(base, "P"):
        return _toy_text_model(base, discount, initial)
    if _has(base, "transition_matrix", "reward_matrix", "initial_state_dist"):
        return _seals_model(base, discount, initial)
    if _has(base, "dynamics", "sofa_scores"):
        return _sepsis_model(base, discount, initial)
    raise NotTabularError(f"env must be tabular, got {type(base).__name__}; supported are {SUPPORTED}")


def unwrap(env: Any) -> Any:
    """Return the innermost environment, of the first copy if the environment is vectorised."""
    base = getattr(env, "unwrapped", env)
    if _has(base, "get_attr", "num_envs"):  # a VectorEnv or a Stable-Baselines3 VecEnv
        copies = base.get_attr("unwrapped")
        return copies[0]
    return base


def _refuse_other_numbers(env: Any, base: Any) -> None:
    """Refuse wrappers through which an action or a state has another number than in the tables."""
    outer = getattr(env, "unwrapped", env)
    wrapper = outer.envs[0] if _has(outer, "get_attr", "num_envs", "envs") else env
    while wrapper is not base and hasattr(wrapper, "env"):
        for kind, translate in (("ActionWrapper", "action"), ("ObservationWrapper", "observation")):
            if any(cls.__name__ == kind and cls.__module__.startswith("gymnasium.") for cls in type(wrapper).__mro__):
                moved = _renumbered(wrapper, translate)
                if moved is not None:
                    raise ValueError(
                        f"env: the wrapper {type(wrapper).__name__} makes {translate} {moved[1]} of {moved[0]}, but "
                        "the tables are those of the environment inside: pass env.unwrapped, with demonstrations in "
                        "its own numbers, or the tables of the wrapped environment"
                    )
        wrapper = wrapper.env


def _renumbered(wrapper: Any, translate: str) -> tuple[int, Any] | None:
    """Return a number that a wrapper changes, and into what; `None` if it changes none.

    Only wrappers from discrete numbers to discrete numbers are asked. A copy of the wrapper is
    asked several times, since it may change by being asked, or answer at random.
    """
    spaces: list[Any] = [getattr(layer, f"{translate}_space", None) for layer in (wrapper, wrapper.env)]
    if not all(_has(space, "n", "start") for space in spaces):
        return None
    known, asked = spaces[translate == "observation"], copy.copy(wrapper)
    for number in TIMES_ASKED * [int(known.start) + k for k in range(int(known.n))]:
        try:
            answer = getattr(asked, translate)(number)
        except Exception:  # it answers in an episode only; what was recorded there is checked when it is learned from
            return None
        if not np.array_equal(answer, number):
            return number, answer
    return None


def _own_model(base: Any, discount: float | None, initial: ArrayLike | None) -> tuple[TabularMDP, FloatArray]:
    """Return the environment's own tables, with the given discount and initial distribution."""
    mdp = _checks.instance("env: its mdp", base.mdp, TabularMDP)
    cost = mdp.pairs(base.cost, "env: its cost").copy()
    if discount is not None or initial is not None:
        mdp = type(mdp)(
            mdp.transitions,
            mdp.pair_states,
            mdp.pair_actions,
            mdp.initial if initial is None else initial,
            mdp.discount if discount is None else discount,
            mdp.n_actions,
        )
    return mdp, cost


def _toy_text_model(base: Any, discount: float, initial: ArrayLike | None) -> tuple[TabularMDP, FloatArray]:
    """Read `P`, entry by entry, because it is a dict of dicts of lists."""
    if getattr(base, "fickle_passenger", False):
        raise ValueError(
            f"env: {type(base).__name__} with fickle_passenger=True changes destinations in a way that its P does not "
            "list: make it with fickle_passenger=False, or estimate tables with TabularMDP.from_transitions"
        )
    table = _rows(base.P)
    if not table:
        raise ValueError("env: P is empty, expected P[state][action] = [(probability, next state, reward, done), ...]")
    pair, p, s_next, reward, done = _outcomes(table)
    states, actions = (np.array(column) for column in list(zip(*table, strict=True))[:2])
    n_states = int(states.max()) + 1
    if s_next.min() < 0 or s_next.max() >= n_states:
        raise ValueError(f"env: P leads to state {s_next.max()}, but it has rows for states 0..{n_states - 1} only")

    terminal = np.zeros(n_states, dtype=bool)
    terminal[s_next[done & (p > 0)]] = True
    # Entries that leave a terminal state are replaced by staying there at no cost.
    leaves = terminal[states[pair]]
    stays = np.flatnonzero(terminal[states])
    rows = np.concatenate([pair[~leaves], stays])
    columns = np.concatenate([s_next[~leaves], states[stays]])
    weights = np.concatenate([p[~leaves], np.ones(stays.size)])
    transitions = sp.coo_array((weights, (rows, columns)), shape=(len(table), n_states))
    cost = -np.bincount(pair[~leaves], weights=(p * reward)[~leaves], minlength=len(table))

    if initial is None:
        initial = getattr(base, "initial_state_distrib", None)
    if initial is None:
        warn(
            f"{type(base).__name__} has no `initial_state_distrib`: taking the uniform distribution over its "
            "non-terminal states; pass initial= to choose another",
            UserWarning,
            stacklevel=4,
        )
        initial = ~terminal / max(1, np.count_nonzero(~terminal))
        if terminal.all():
            raise ValueError("env: every state of P is terminal; pass initial= to start in one anyway")
    with _of_env():
        mdp = TabularMDP(transitions, states, actions, initial, discount)
    # Moves from states that no episode enters may be ignored: Taxi lists such moves into its
    # terminal states.
    mixed = ~done & (p > 0) & terminal[s_next] & (_reachable(mdp) & ~terminal)[states[pair]]
    if mixed.any():
        raise ValueError(
            f"env: P enters state {s_next[mixed][0]} both with and without `terminated`; "
            "give the terminated transitions an absorbing state of their own"
        )
    return mdp, np.asarray(cost + 0.0, dtype=np.float64)  # no -0.0


def _reachable(mdp: TabularMDP) -> NDArray[np.bool_]:
    """Return which states some policy enters."""
    reached = mdp.initial > 0
    while True:
        further = reached | (mdp.transitions.T @ reached[mdp.pair_states].astype(float) > 0)
        if (further == reached).all():
            return reached
        reached = further


def _rows(P: Any) -> list[tuple[int, int, Any]]:
    """Return (state, action, outcomes) for each pair of a toy_text table, in order."""
    rows = []
    for state, actions in _numbered("P", P):
        for action, outcomes in _numbered(f"P[{state}]", actions):
            if not isinstance(outcomes, Sequence):
                raise TypeError(f"env: P[{state}][{action}] must be a list of outcomes, got {type(outcomes).__name__}")
            if len(outcomes) == 0:
                raise ValueError(f"env: P[{state}][{action}] is empty; leave an infeasible action out instead")
            rows.append((state, action, outcomes))
    return rows


def _outcomes(table: list[tuple[int, int, Any]]) -> tuple[NDArray[Any], ...]:
    """Return the outcomes of all pairs as columns: pair, probability, next state, reward, end."""
    outcomes = [(pair, outcome) for pair, (_, _, found) in enumerate(table) for outcome in found]
    for pair, outcome in outcomes:
        if not isinstance(outcome, (tuple, list)) or len(outcome) != 4:
            state, action, _ = table[pair]
            raise ValueError(
                f"env: P[{state}][{action}] holds {outcome!r}, expected (probability, next state, reward, done)"
            )
    p, s_next, reward, done = zip(*(found for _, found in outcomes), strict=True)
    n = len(outcomes)
    return (
        np.array([pair for pair, _ in outcomes]),
        _checks.finite_vector("env: the probabilities of P", p, n, "outcome"),
        _integer_vector("env: the next states of P", s_next, n),
        _checks.finite_vector("env: the rewards of P", reward, n, "outcome"),
        np.array([bool(flag) if np.ndim(flag) == 0 else _checks.flag("env: an end of P", flag) for flag in done]),
    )


def _integer_vector(name: str, values: Any, length: int) -> NDArray[np.int64]:
    array = _checks.integers(name, values)
    if array.shape != (length,):
        raise ValueError(f"{name} have shape {array.shape}, expected ({length},)")
    return array


@contextmanager
def _of_env() -> Iterator[None]:
    """Say of an error in the tables that they are the environment's."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"env: {error}") from None


def _numbered(name: str, table: Any) -> list[tuple[int, Any]]:
    """Return the entries of a dict or a list by their numbers, in order."""
    if not isinstance(table, (Mapping, Sequence)) or isinstance(table, (str, bytes)):
        raise TypeError(f"env: {name} must be a dict or a list, got {type(table).__name__}")
    items = table if isinstance(table, Mapping) else dict(enumerate(table))
    return sorted((_checks.integer(f"env: a key of {name}", key, 0), value) for key, value in items.items())


def _seals_model(base: Any, discount: float, initial: ArrayLike | None) -> tuple[TabularMDP, FloatArray]:
    """Read the dense matrices; the horizon is ignored, as our MDPs never end."""
    dense = _checks.numbers("env: transition_matrix", base.transition_matrix)
    reward = _checks.numbers("env: reward_matrix", base.reward_matrix)
    if dense.ndim != 3 or 0 in dense.shape:
        raise ValueError(f"env: transition_matrix has shape {dense.shape}, expected (n_states, n_actions, n_states)")
    n_states, n_actions, _ = dense.shape
    _checks.finite("env: reward_matrix", reward)
    if not 1 <= reward.ndim <= 3 or reward.shape != dense.shape[: reward.ndim]:
        raise ValueError(f"env: reward_matrix has shape {reward.shape}, which does not fit {dense.shape} transitions")
    if reward.ndim == 3:
        expected = np.einsum("sap,sap->sa", dense, reward)
    else:
        expected = np.broadcast_to(reward.reshape(n_states, -1), (n_states, n_actions))
    start = base.initial_state_dist if initial is None else initial
    with _of_env():
        return TabularMDP.from_dense(dense, start, discount=discount), -expected.reshape(-1)


def _sepsis_model(base: Any, discount: float, initial: ArrayLike | None) -> tuple[TabularMDP, FloatArray]:
    """Read the tables of ICU-Sepsis, whose last three states are death, survival and one after both."""
    tables, rule = base.dynamics, getattr(base, "_inadmissible_action_strategy", "mean")
    dense = _checks.numbers("env: tx_mat", tables["tx_mat"]).copy()
    n_states, n_actions, _ = dense.shape
    treated = n_states - 3
    for state in range(treated, n_states):
        dense[state] = np.eye(n_states)[state]
    admissible = np.zeros((n_states, n_actions), dtype=bool)
    for state, actions in enumerate(tables["admissible_actions"]):
        admissible[state, actions] = True
    if rule == "terminate":
        dense[~admissible] = np.eye(n_states)[treated]
    feasible = admissible if rule == "raise_exception" else np.ones_like(admissible)
    reward = np.einsum("sap,sap->sa", dense, _checks.numbers("env: r_mat", tables["r_mat"]))
    reward[treated:] = 0.0
    start = tables["d_0"] if initial is None else initial
    with _of_env():
        mdp = TabularMDP.from_dense(dense, start, discount=discount, feasible=feasible)
    return mdp, mdp.pairs(0.0 - reward, "env: r_mat").copy()


def _has(obj: Any, *names: str) -> bool:
    return all(hasattr(obj, name) for name in names)
