"""From other libraries' arrays to tables and costs: dense layouts, pymdptoolbox, QuantEcon.

Libraries order the axes of P(s' | s, a) in two ways, named here by their letters:

* "sas" is `P[s, a, s']`: this library, seals, QuantEcon's product form;
* "ass" is `P[a, s, s']`: pymdptoolbox, as one array or as a list of one (sparse) matrix per action.

Rewards are over states, over (s, a) in either layout, or over transitions in the layout of P. The
cost of a pair is minus its expected reward, r(s), r(s, a) or Σ_s' P(s' | s, a) r(s, a, s').

QuantEcon's `DiscreteDP` has either the product form or one row per feasible pair; in both, a reward
of minus infinity says that a pair is not feasible. Objects are recognised by their attributes: this
module imports neither of the libraries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.pairs import require_pairs
from rlfd_gym.mdp.tables import TabularMDP, check_csr

LAYOUTS = ("sas", "ass")
SHAPES = {"sas": "(n_states, n_actions, n_states)", "ass": "(n_actions, n_states, n_states)"}
DISCRETE_DP = ("R", "Q", "beta", "s_indices", "a_indices")


def model_of_arrays(
    P: Any,
    R: Any,
    *,
    discount: float,
    initial: ArrayLike | None = None,
    feasible: ArrayLike | None = None,
    layout: str = "sas",
) -> tuple[TabularMDP, FloatArray]:
    """Return the MDP of an array of transitions, and the cost of an array of rewards.

    Args:
        P: the transitions; see `TabularMDP.from_dense`.
        R: the rewards, of shape (n_states,), (n_states, n_actions) or that of P.
        discount: γ.
        initial: ν₀, over states. `None` means uniform.
        feasible: which actions exist, over (s, a). `None` means all.
        layout: "sas" for `P[s, a, s']`, "ass" for pymdptoolbox's `P[a, s, s']`.

    Example:
        >>> P = [[[0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.5, 0.5]]]     # two actions, two states
        >>> R = [[[0.0, 4.0], [0.0, 1.0]], [[1.0, 0.0], [2.0, 0.0]]]
        >>> mdp, cost = model_of_arrays(P, R, discount=0.9, layout="ass")
        >>> mdp.table(cost).tolist()
        [[-2.0, -1.0], [-1.0, -1.0]]
    """
    mdp = mdp_of_dense(P, initial, discount, feasible, layout)
    shape = (mdp.n_states, mdp.n_actions)
    if _per_action(R, layout):
        rows, *sizes = _rows("R", R, layout)
    else:
        reward = _checks.numbers("R", R)
        if reward.shape in (shape[:1], shape):
            table = np.broadcast_to(reward.reshape(shape[0], -1), shape)
            return mdp, _cost(table[mdp.pair_states, mdp.pair_actions])
        if reward.ndim != 3:
            raise ValueError(f"R has shape {reward.shape}, expected {shape[:1]}, {shape} or {SHAPES[layout]} as P has")
        rows, *sizes = _rows("R", reward, layout)
    if tuple(sizes) != shape:
        raise ValueError(f"R has {sizes[0]} states and {sizes[1]} actions, but P has {shape[0]} and {shape[1]}")
    own = rows[mdp.pair_states * mdp.n_actions + mdp.pair_actions]
    _checks.finite("R", own.data if sp.issparse(own) else own)
    return mdp, _cost(np.asarray(mdp.transitions.multiply(own).sum(axis=1)).ravel())


def model_of_quantecon(ddp: Any, initial: ArrayLike | None = None) -> tuple[TabularMDP, FloatArray]:
    """Return the MDP of QuantEcon's `DiscreteDP`, with its `beta`, and the cost of its rewards.

    `initial` is ν₀, over states, which a `DiscreteDP` does not have; `None` means uniform. Pairs
    whose reward is minus infinity are not feasible.

    >>> from types import SimpleNamespace
    >>> R, Q = [[5, 10], [-1, -np.inf]], [[(0.5, 0.5), (0, 1)], [(0, 1), (0.5, 0.5)]]
    >>> ddp = SimpleNamespace(R=R, Q=Q, beta=0.95, s_indices=None, a_indices=None)   # a DiscreteDP
    >>> mdp, cost = model_of_quantecon(ddp)
    >>> mdp.optimal(cost).policy.tolist()       # of the pairs (0, 0), (0, 1) and (1, 0)
    [1.0, 0.0, 1.0]
    """
    if isinstance(ddp, type) or not all(hasattr(ddp, name) for name in DISCRETE_DP):
        raise TypeError(f"ddp must be a quantecon.markov.DiscreteDP, got {type(ddp).__name__}")
    reward = _checks.numbers("ddp: its R", ddp.R)
    kept = reward != -np.inf
    _checks.finite("ddp: its R", reward[kept])
    cost = _cost(reward[kept])
    try:
        if ddp.s_indices is None:
            return mdp_of_dense(ddp.Q, initial, ddp.beta, kept, "sas"), cost
        states = _checks.integers("s_indices", ddp.s_indices)
        actions = _checks.integers("a_indices", ddp.a_indices)
        return TabularMDP(ddp.Q[np.flatnonzero(kept)], states[kept], actions[kept], initial, ddp.beta), cost
    except (TypeError, ValueError, IndexError) as error:
        if str(error).startswith("initial"):
            raise
        raise ValueError(f"ddp: {error}") from None


def mdp_of_dense(
    P: Any, initial: ArrayLike | None, discount: float, feasible: ArrayLike | None, layout: str
) -> TabularMDP:
    """Return the MDP of an array of transitions; see `TabularMDP.from_dense`."""
    rows, n_states, n_actions = _rows("P", P, _checks.one_of("layout", layout, LAYOUTS))
    if feasible is None:
        mask = np.ones((n_states, n_actions), dtype=bool)
    else:
        mask = _checks.as_array("feasible", feasible)
        if mask.shape != (n_states, n_actions) or mask.dtype != np.bool_:
            raise ValueError(
                f"feasible must be a boolean array of shape {(n_states, n_actions)}, "
                f"got {mask.dtype} of shape {mask.shape}"
            )
    states, actions = np.nonzero(mask)
    require_pairs(states, n_states, "feasible")
    return TabularMDP(rows[states * n_actions + actions], states, actions, initial, discount, n_actions)


def _rows(name: str, values: Any, layout: str) -> tuple[Any, int, int]:
    """Return one row over next states for each (s, a), by s, then a; and how many of both there are."""
    if _per_action(values, layout):
        parts: list[Any] = []
        for action, matrix in enumerate(values):
            part: Any = matrix if sp.issparse(matrix) else _checks.numbers(f"{name}[{action}]", matrix)
            if len(part.shape) != 2 or part.shape[0] != part.shape[1] or 0 in part.shape:
                raise ValueError(f"{name}[{action}] has shape {part.shape}, expected (n_states, n_states)")
            if sp.issparse(part) and part.format == "csr":
                check_csr(f"{name}[{action}]", part)
            if parts and part.shape != parts[0].shape:
                raise ValueError(f"{name}[{action}] has shape {part.shape}, but {name}[0] has {parts[0].shape}")
            parts.append(sp.csr_array(part))
        n_actions, n_states = len(parts), parts[0].shape[0]
        order: NDArray[np.int64] = np.arange(n_actions * n_states).reshape(n_actions, n_states).T.ravel()
        return sp.vstack(parts, format="csr")[order], n_states, n_actions
    dense = _checks.numbers(name, values)
    n_states = dense.shape[-1] if dense.ndim == 3 else 0
    if dense.ndim != 3 or 0 in dense.shape or dense.shape[layout.index("s")] != n_states:
        raise ValueError(f"{name} has shape {dense.shape}, expected {SHAPES[layout]}")
    ordered = dense if layout == "sas" else dense.transpose(1, 0, 2)
    return ordered.reshape(-1, n_states), n_states, ordered.shape[1]


def _per_action(values: Any, layout: str) -> bool:
    """Return whether these are sparse matrices, one per action."""
    return layout == "ass" and isinstance(values, (list, tuple)) and any(sp.issparse(matrix) for matrix in values)


def _cost(reward: FloatArray) -> FloatArray:
    return _checks.finite("R", np.asarray(0.0 - reward, dtype=np.float64))  # no -0.0
