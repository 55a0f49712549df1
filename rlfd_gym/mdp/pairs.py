"""The feasible state-action pairs: their order, and conversions between vectors and tables.

States are 0..n_states-1, and state s offers the actions A(s). A *pair* is a feasible (s, a). Pairs
are ordered by state, then action; an infeasible action has no pair. Costs, occupancies and
policies are vectors over pairs. The same numbers as a *table* have the shape
(n_states, n_actions), with NaN where an action is infeasible. Wherever the library takes a vector
over pairs, it takes a table, too: `pairs` turns either into a vector. `dot` is the inner product of
two vectors, over pairs or over states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray

PAIRS = ("pair_states", "pair_actions")


def dot(x: FloatArray, y: FloatArray) -> float:
    """Return <x, y> without BLAS.

    What BLAS returns depends on how many threads it has, and these keep a processor busy after each call.
    """
    return float(np.einsum("i,i->", x, y))


@dataclass(frozen=True, eq=False)
class Pairs(_checks.Locked):
    """The feasible pairs of an environment.

    Attributes:
        pair_states: the state of each pair, ascending.
        pair_actions: the action of each pair, ascending within a state.
        n_states: the number of states.
        n_actions: the size of the action space.
        state_starts: the pairs of state s are state_starts[s] … state_starts[s+1]-1.

    Example:
        There are two states; state 0 offers the actions 0 and 1, state 1 only the action 1.

        >>> pairs = Pairs.of_mask([[True, True], [False, True]])
        >>> pairs.n_pairs, pairs.pair_states.tolist(), pairs.pair_actions.tolist()
        (3, [0, 0, 1], [0, 1, 1])
        >>> pairs.table([5, 6, 7]).tolist()
        [[5.0, 6.0], [nan, 7.0]]
        >>> pairs.pairs([[5, 6], [0, 7]]).tolist()
        [5.0, 6.0, 7.0]
    """

    pair_states: IntArray = field(repr=False)
    pair_actions: IntArray = field(repr=False)
    n_states: int
    n_actions: int
    state_starts: IntArray = field(repr=False)

    @classmethod
    def of_mask(cls, feasible: ArrayLike) -> Pairs:
        """Number the pairs of a boolean table (n_states, n_actions).

        Every state must have a feasible action.
        """
        mask = _checks.as_array("feasible", feasible)
        if mask.ndim != 2 or mask.dtype != np.bool_ or not mask.size or not mask.any(axis=1).all():
            raise ValueError(
                "feasible must be a boolean array over states and actions with an action in every state, got "
                f"{mask.dtype} of shape {mask.shape}"
            )
        states, actions = np.nonzero(mask)
        starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
        return cls(states, actions, mask.shape[0], mask.shape[1], starts)

    def __post_init__(self) -> None:
        """Check the numbering of the pairs, and lock its arrays."""
        sizes: dict[str, Any] = {
            name: _checks.integer(name, getattr(self, name), 1, _checks.MOST_STATES)
            for name in ("n_states", "n_actions")
        }
        arrays: dict[str, Any] = {name: _checks.integers(name, getattr(self, name)) for name in PAIRS}
        starts = numbered_pairs(*arrays.values(), *sizes.values())
        if not np.array_equal(_checks.integers("state_starts", self.state_starts), starts):
            raise ValueError("state_starts must say where each state's pairs begin in pair_states, and where they end")
        self._fill(**arrays, **sizes, state_starts=starts)

    @property
    def n_pairs(self) -> int:
        """The number of feasible state-action pairs."""
        return int(self.pair_states.shape[0])

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which actions each state offers, (n_states, n_actions)."""
        mask = np.zeros((self.n_states, self.n_actions), dtype=bool)
        mask[self.pair_states, self.pair_actions] = True
        return mask

    def table(self, pairs: ArrayLike, fill: float = np.nan) -> FloatArray:
        """Return a vector over pairs as a table, with `fill` where an action is infeasible."""
        if np.ndim(fill):
            raise TypeError(f"fill must be a number, got {type(fill).__name__}")
        table = np.full((self.n_states, self.n_actions), float(_checks.numbers("fill", fill)))
        table[self.pair_states, self.pair_actions] = self.pairs(pairs, "pairs")
        return table

    def pairs(self, values: ArrayLike, name: str = "values", *, largest: float = _checks.LARGEST) -> FloatArray:
        """Return a finite vector over pairs, given such a vector or a table (n_states, n_actions).

        A table's entries at infeasible actions are ignored. `name` is what an error calls the
        argument, and no entry may be beyond `largest`.
        """
        array = _checks.numbers(name, values)
        if array.ndim == 2:
            if array.shape != (self.n_states, self.n_actions):
                raise ValueError(
                    f"{name} has shape {array.shape}, expected ({self.n_pairs},): one entry per feasible state-action "
                    f"pair (mdp.n_pairs); or ({self.n_states}, {self.n_actions}): a table of states × actions"
                )
            array = array[self.pair_states, self.pair_actions]
        return _checks.pair_vector(name, array, self.n_pairs, largest)

    def pair_index(self, states: ArrayLike, actions: ArrayLike) -> IntArray:
        """Return the pair of each (state, action), given as two arrays of one shape.

        An infeasible action raises a `ValueError`.

        >>> pairs = Pairs.of_mask([[True, True], [True, False]])
        >>> pairs.pair_index([0, 1], [1, 0]).tolist()
        [1, 2]
        """
        s, a = _checks.integers("states", states), _checks.integers("actions", actions)
        try:
            s, a = np.broadcast_arrays(s, a)
        except ValueError:
            raise ValueError(f"states and actions have shapes {s.shape} and {a.shape}, expected one shape") from None
        known = (s >= 0) & (s < self.n_states) & (a >= 0) & (a < self.n_actions)
        first, last = (
            self.state_starts[np.where(known, s, 0)],
            self.state_starts[np.where(known, s, 0) + 1] - 1,
        )
        # This first guess is right wherever A(s) = {0, 1, ..., k}.
        index = np.minimum(first + np.where(known, a, 0), last)

        # If the guess fails anywhere, search all pairs by (state, action).
        if (self.pair_actions[index] != a).any():
            keys = self.pair_states * self.n_actions + self.pair_actions
            index = np.minimum(np.searchsorted(keys, s * self.n_actions + a), last)

        bad = np.argwhere(~known | (self.pair_actions[index] != a))
        if len(bad):
            where = tuple(bad[0])
            raise ValueError(
                f"states, actions: action {a[where]} is not feasible in state {s[where]} "
                f"(entry {where[0] if where else 0}; {len(bad)} such entries; the MDP has {self.n_states} states "
                f"and {self.n_actions} actions)"
            )
        return np.asarray(index)

    def sum_by_state(self, pairs: ArrayLike) -> FloatArray:
        """Return B x, the sum of a pair vector over each state's pairs."""
        return np.add.reduceat(self.pairs(pairs, "pairs"), self.state_starts[:-1])

    def max_by_state(self, pairs: ArrayLike) -> FloatArray:
        """Return the largest entry of a pair vector among each state's pairs."""
        return np.maximum.reduceat(self.pairs(pairs, "pairs"), self.state_starts[:-1])

    def min_by_state(self, pairs: ArrayLike) -> FloatArray:
        """Return the least entry of a pair vector among each state's pairs."""
        return np.minimum.reduceat(self.pairs(pairs, "pairs"), self.state_starts[:-1])

    def likely_actions(self, policy: ArrayLike) -> IntArray:
        """Return the most likely action of each state under a policy or an occupancy.

        The lowest of equally likely actions is returned.

        >>> pairs = Pairs.of_mask([[True, True], [True, True]])
        >>> pairs.likely_actions([0.2, 0.8, 0.5, 0.5]).tolist()
        [1, 0]
        """
        pi = self.pairs(policy, "policy")
        largest = np.flatnonzero(pi >= self.max_by_state(pi)[self.pair_states])
        return self.pair_actions[largest[np.searchsorted(largest, self.state_starts[:-1])]]

    def uniform_policy(self) -> FloatArray:
        """Return the policy that takes every feasible action with the same probability."""
        return 1.0 / np.diff(self.state_starts)[self.pair_states]


def numbered_pairs(pair_states: IntArray, pair_actions: IntArray, n_states: int, n_actions: int) -> IntArray:
    """Return where each state's pairs begin, after checking the pairs and their order."""
    states, actions = pair_states, pair_actions
    if states.ndim != 1 or states.shape != actions.shape or not states.size:
        raise ValueError(
            f"pair_states, pair_actions have shapes {states.shape} and {actions.shape}, expected one entry per pair"
        )
    for name, array, size in (("pair_states", states, n_states), ("pair_actions", actions, n_actions)):
        if array.min() < 0:
            raise ValueError(f"{name} must not be negative, got {array.min()}")
        if array.max() >= size:
            raise ValueError(f"{name} must lie in 0..{size - 1}, got {array.min()}..{array.max()}")
    same_state = np.diff(states) == 0
    if (np.diff(states) < 0).any() or (np.diff(actions)[same_state] <= 0).any():
        raise ValueError("pair_states, pair_actions: pairs must be ordered by state, then action, none twice")
    require_pairs(states, n_states, "pair_states")
    return np.searchsorted(states, np.arange(n_states + 1))


def require_pairs(states: IntArray, n_states: int, name: str) -> None:
    """Check that every state has a feasible action."""
    counts = np.bincount(states, minlength=n_states)
    if (counts == 0).any():
        empty = np.flatnonzero(counts == 0)
        raise ValueError(
            f"{name}: state {empty[0]} has no feasible action ({empty.size} such states); every state needs one"
        )
