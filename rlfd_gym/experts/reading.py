r"""Demonstrations of any kind as arrays.

Trajectories have times: step t of a trajectory. Transitions have them only if they are all there, in
their order. That is so if they say their next states and which of them are `dones`, and follow each
other: s_{i+1} = s'_i unless an episode is done at i. Then they are read as the trajectories that
they were, whose last one may be cut. Transitions in another order, or without `dones` and `next_obs`,
have no times, and `lengths` is `None`.

A loader that shuffles a data set, as imitation's do, is asked for the data set: if what the loader
gives is the data set in another order, but for less than a batch, the order is the data set's.

What does not say its length, such as a generator, may be endless: it is read up to
`MOST_TRANSITIONS`, and if there is more, a warning says so.

This module imports neither imitation nor torch: it recognises demonstrations by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.episodes import as_trajectory

MOST_TRANSITIONS = 1_000_000  # of what does not say its length
COLUMNS = ("obs", "acts", "next_obs", "dones")  # of transitions; the last two may be missing
KINDS = (
    "trajectories (with obs, acts and terminal), transitions (with obs and acts), batches (mappings with 'obs' and "
    "'acts'), or an occupancy array over pairs, states × actions or states"
)


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Demonstrations as arrays, one trajectory after the other.

    Attributes:
        states: the state of each transition.
        actions: the action of each transition.
        next_states: the next state of each transition; `None` if the demonstrations do not say.
        lengths: the number of steps of each trajectory; `None` for transitions without times.
        terminal: the flag of each trajectory that says whether it terminated.

    Example:
        >>> shown = Demonstrations(np.array([0, 1]), np.array([1, 0]), None, lengths=np.array([2]))
        >>> shown.weights(discount=0.5).tolist(), shown.ends.tolist()
        ([0.5, 0.25], [1])
    """

    states: IntArray = field(repr=False)
    actions: IntArray = field(repr=False)
    next_states: IntArray | None = field(repr=False)
    lengths: IntArray | None
    terminal: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool), repr=False)

    @property
    def ends(self) -> IntArray:
        """The index of each trajectory's last transition."""
        assert self.lengths is not None
        return np.cumsum(self.lengths) - 1

    def weights(self, discount: float) -> FloatArray:
        """Return (1-γ)γᵗ/K for each transition."""
        assert self.lengths is not None
        times = np.arange(len(self.states)) - np.repeat(np.cumsum(self.lengths) - self.lengths, self.lengths)
        return (1 - discount) * discount**times / len(self.lengths)

    def tails(self, discount: float) -> FloatArray:
        """Return γ^T/K for each trajectory: the mass after its end."""
        assert self.lengths is not None
        return discount**self.lengths / len(self.lengths)

    def only(self, trajectories: IntArray) -> Demonstrations:
        """Return some of the trajectories, given by their numbers."""
        assert self.lengths is not None
        assert self.next_states is not None
        first = self.ends - self.lengths + 1
        steps = np.concatenate([np.arange(first[k], first[k] + self.lengths[k]) for k in trajectories])
        return Demonstrations(
            self.states[steps],
            self.actions[steps],
            self.next_states[steps],
            self.lengths[trajectories],
            self.terminal[trajectories],
        )

    def without_times(self) -> Demonstrations:
        """Return what was done in which states, without when it was and what followed."""
        return Demonstrations(self.states, self.actions, None, None)

    def where(self, index: int) -> str:
        """Return the name of a transition in error messages."""
        if self.lengths is None:
            return f"transition {index}"
        number = int(np.searchsorted(self.ends, index))
        return f"trajectory {number}, step {index - int(self.ends[number]) + int(self.lengths[number]) - 1}"


def read_demonstrations(demonstrations: Any) -> Demonstrations:
    """Read demonstrations of any supported kind, in a single pass.

    Example:
        >>> from types import SimpleNamespace
        >>> flat = SimpleNamespace(obs=[0, 1, 0], acts=[1, 1, 0], next_obs=[1, 2, 0], dones=[False, True, False])
        >>> read_demonstrations(flat).lengths.tolist()
        [2, 1]
    """
    if _has(demonstrations, "obs", "acts") and not _has(demonstrations, "terminal"):
        return _transitions([demonstrations], single=True)
    if isinstance(demonstrations, (str, bytes, Mapping)) or not isinstance(demonstrations, Iterable):
        if _has(demonstrations, "terminal"):
            raise TypeError("demonstrations must be an iterable of trajectories, got a single one: put it in a list")
        raise TypeError(f"demonstrations must be {KINDS}; got {type(demonstrations).__name__}")
    if getattr(demonstrations, "ndim", 1) == 0:
        raise TypeError(f"demonstrations must be {KINDS}; got a single number")
    items = [as_trajectory(item) for item in _items(demonstrations)]
    if not items:
        raise ValueError("demonstrations is empty, expected at least one trajectory or transition")
    if all(_has(item, "obs", "acts", "terminal") for item in items):
        return _trajectories(items)
    return _in_order(_transitions(items, single=False), demonstrations, items[0])


def _items(demonstrations: Iterable[Any]) -> list[Any]:
    """Return the items of an iterable: as many as it says that it has, or up to a limit."""
    try:
        length = len(demonstrations)  # type: ignore[arg-type]
    except TypeError:  # as of a generator, or a loader of a stream
        length = None
    if length is not None:
        return list(islice(demonstrations, length))
    items: list[Any] = []
    count = 0
    for item in demonstrations:
        if count >= MOST_TRANSITIONS:
            warn(
                f"demonstrations were read up to {count} transitions, and the rest is left out: their iterable does "
                "not say its length, and may be endless; pass a list to have all of them read",
                UserWarning,
                stacklevel=4,
            )
            break
        items.append(item)
        count += _size(item)
    return items


def _size(item: Any) -> int:
    """Return the number of states of a batch or a trajectory, at least one."""
    try:
        return max(1, len(item["obs"] if isinstance(item, Mapping) else item.obs))
    except (AttributeError, KeyError, TypeError):  # what else it is, is found when it is read
        return 1


def _trajectories(items: list[Any]) -> Demonstrations:
    """Join trajectories."""
    states, actions, following = [], [], []
    for k, item in enumerate(items):
        s, a = _indices(f"trajectory {k}: obs", item.obs), _indices(f"trajectory {k}: acts", item.acts)
        if len(a) == 0 or len(s) != len(a) + 1:
            raise ValueError(
                f"demonstrations: trajectory {k} has {len(s)} observations and {len(a)} actions, expected at least one "
                "action and one observation more than actions"
            )
        states.append(s[:-1])
        actions.append(a)
        following.append(s[1:])
    return Demonstrations(
        np.concatenate(states),
        np.concatenate(actions),
        np.concatenate(following),
        np.array([len(a) for a in actions]),
        np.array([bool(item.terminal) for item in items]),
    )


def _transitions(items: list[Any], *, single: bool) -> Demonstrations:
    """Join transitions, or batches of them, and see whether they have times."""
    columns: dict[str, list[NDArray[Any]]] = {name: [] for name in COLUMNS}
    for k, item in enumerate(items):
        batch = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
        if single:
            batch = {name: getattr(item, name) for name in columns if hasattr(item, name)}
        if not {"obs", "acts"} <= set(batch) or _has(item, "terminal"):
            raise TypeError(f"demonstrations must be {KINDS}, of one kind; item {k} is a {type(item).__name__}")
        read = {
            name: (_flags if name == "dones" else _indices)(name if single else f"batch {k}: {name}", batch[name])
            for name in columns
            if batch.get(name) is not None
        }
        if len({len(column) for column in read.values()}) > 1:
            sizes = ", ".join(f"{len(column)} {name}" for name, column in read.items())
            raise ValueError(f"demonstrations: {'transitions' if single else f'batch {k}'} of unequal lengths: {sizes}")
        for name, column in read.items():
            columns[name].append(column)
    states, actions = np.concatenate(columns["obs"]), np.concatenate(columns["acts"])
    if len(states) == 0:
        raise ValueError("demonstrations is empty, expected at least one trajectory or transition")
    following, dones = (
        np.concatenate(columns[name]) if len(columns[name]) == len(items) else None for name in ("next_obs", "dones")
    )
    if following is None or dones is None or (~dones[:-1] & (states[1:] != following[:-1])).any():
        return Demonstrations(states, actions, following, None)
    ends = np.flatnonzero(np.append(dones[:-1], True))
    return Demonstrations(states, actions, following, np.diff(ends, prepend=-1), dones[ends])


def _in_order(read: Demonstrations, loader: Any, batch: Any) -> Demonstrations:
    """Return the transitions of a loader's data set in their order, if these are the same.

    `batch` is the first of the loader: one that drops its last batch leaves out less than that.
    """
    data = getattr(loader, "dataset", None)
    if data is None or not _has(data, *COLUMNS) or read.next_states is None:
        return read
    try:
        whole = _transitions([data], single=True)
    except (TypeError, ValueError):  # the loader makes states of something else
        return read
    n, missing = len(read.states), len(whole.states) - len(read.states)
    if not 0 <= missing < _size(batch):
        return read
    rows = np.concatenate(
        [np.stack([part.states, part.actions, part.next_states], axis=1) for part in (read, whole)]  # type: ignore[list-item]
    )
    _, kinds = np.unique(rows, axis=0, return_inverse=True)
    given, there = (np.bincount(part, minlength=kinds.max() + 1) for part in np.split(kinds.ravel(), [n]))
    return whole if (given <= there).all() else read


def _indices(name: str, values: Any) -> IntArray:
    """Return states or actions as an int vector.

    They must have the shape (T,) or (T, 1), and be integers or floats that are whole numbers.
    """
    array = _checks.as_array(f"demonstrations, {name},", values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    whole = array.dtype.kind == "f" and bool(((np.abs(array) < 2**53) & (array == np.round(array))).all())
    if array.ndim != 1 or not (whole or array.dtype.kind in "iu" or array.size == 0):
        raise TypeError(
            f"demonstrations, {name}, must be whole numbers of shape (T,) or (T, 1), the tabular states and actions; "
            f"got {array.dtype} of shape {array.shape}"
        )
    return array.astype(np.int64) if whole else _checks.integers(f"demonstrations, {name},", array)


def _flags(name: str, values: Any) -> NDArray[np.bool_]:
    """Return which transitions are the last of an episode: truth values, or zeros and ones."""
    array = _checks.as_array(f"demonstrations, {name},", values)
    flags = _indices(name, array.astype(np.int64) if array.dtype.kind == "b" else array)
    if not np.isin(flags, (0, 1)).all():
        raise ValueError(f"demonstrations, {name}, must be True or False for each transition, got {flags.max()}")
    return flags.astype(bool)


def _has(item: Any, *names: str) -> bool:
    return all(hasattr(item, name) for name in names)
