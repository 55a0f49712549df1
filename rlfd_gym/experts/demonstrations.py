r"""Estimates of the expert's occupancy from demonstrations.

K trajectories s₀ a₀ s₁ a₁ … s_T count equally, and each step has the weight of its time:

    μ̂(s, a) = 1/K Σ_k [(1-γ) Σ_{t<T_k} γᵗ 1{s_t = s, a_t = a} + γ^{T_k} μ_tail(s, a; s_{T_k})].

The second term is the mass γ^T of what follows the end, which a trajectory does not show. The
model continues it: μ_tail(·; s) is the occupancy from start s of the policy π̂ estimated from all
demonstrations, where π̂(a|s) is how often a was taken in s, or uniform over A(s) if s was never
left. This one rule covers two cases:

* A trajectory that *terminated* ends in an absorbing state. The model stays there with all of γ^T.
* A trajectory that was *truncated* continues as the demonstrator would have continued from there.
  If the demonstrator has a fixed policy, μ̂ tends to the true occupancy as K grows, provided that
  the trajectories are long enough to leave every state that it visits. In states beyond their
  horizon π̂ is uniform, however large K is. What remains is the error of π̂, times γ^T; if this mass
  is more than 1%, a warning says how large it is, and how much of it lies in such states.

The model decides which case applies, not `trajectory.terminal`: imitation's rollouts set that flag
at the end of every episode, even if a time limit ended it, and seals' tabular environments call
their horizon a termination.

This module imports neither imitation nor torch: it recognises demonstrations by their attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.episodes import as_trajectory
from rlfd_gym.mdp.occupancy import policy_chain, policy_of, solve_discounted
from rlfd_gym.mdp.tables import TabularMDP

DISCOUNTINGS = ("trajectory", "none")
EXTRAPOLATED = "is extrapolated with the policy read off the demonstrations"
SMALL_TAIL = 0.01  # warn if a larger share of the mass is extrapolated
KINDS = (
    "trajectories (with obs, acts and terminal), transitions (with obs and acts), batches (mappings with 'obs' and "
    "'acts'), or an occupancy array over pairs or states × actions"
)


def occupancy_from_demonstrations(
    demonstrations: Any, mdp: TabularMDP, *, discounting: str = "trajectory"
) -> FloatArray:
    """Estimate the expert's occupancy over pairs from demonstrations.

    The estimate is μ̂ of the module's docstring.

    Args:
        demonstrations: an iterable of imitation's trajectories (a list, a generator, a lazily
            loaded dataset, also a plain one of HuggingFace's) or of Minari's episodes; imitation's
            `Transitions` or `TransitionsMinimal`, or an iterable of batches with "obs" and "acts",
            which need `discounting="none"`; or an occupancy, as an array over pairs or a table over
            states × actions.
        mdp: the environment's tables.
        discounting: "trajectory" weighs step t by (1-γ)γᵗ. "none" counts every transition once.
            This gives the undiscounted frequencies, which are all that transitions without times
            allow. They equal the discounted occupancy only if the transitions were drawn from it.

    Example:
        >>> from types import SimpleNamespace
        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> stays_once_then_moves = SimpleNamespace(obs=[0, 0, 1], acts=[0, 1], terminal=True)
        >>> occupancy_from_demonstrations([stays_once_then_moves], mdp).tolist()
        [0.5, 0.25, 0.25]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    if isinstance(demonstrations, np.ndarray):
        _check_discounting(discounting)
        return _given_occupancy(demonstrations, mdp)
    return estimate_occupancy(read_demonstrations(demonstrations), mdp, discounting=discounting)


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Demonstrations as arrays, one trajectory after the other.

    Attributes:
        states: the state of each transition.
        actions: the action of each transition.
        next_states: the next state of each transition; `None` if the demonstrations do not say.
        lengths: the number of steps of each trajectory; `None` for transitions without times.
        terminal: the flag of each trajectory that says whether it terminated.
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

    def where(self, index: int) -> str:
        """Return the name of a transition in error messages."""
        if self.lengths is None:
            return f"transition {index}"
        number = int(np.searchsorted(self.ends, index))
        return f"trajectory {number}, step {index - int(self.ends[number]) + int(self.lengths[number]) - 1}"


def read_demonstrations(demonstrations: Any) -> Demonstrations:
    """Read demonstrations of any supported kind, in a single pass."""
    if _has(demonstrations, "obs", "acts") and not _has(demonstrations, "terminal"):
        return _transitions([demonstrations], single=True)
    if isinstance(demonstrations, (str, bytes, Mapping)) or not isinstance(demonstrations, Iterable):
        if _has(demonstrations, "terminal"):
            raise TypeError("demonstrations must be an iterable of trajectories, got a single one: put it in a list")
        raise TypeError(f"demonstrations must be {KINDS}; got {type(demonstrations).__name__}")
    if getattr(demonstrations, "ndim", 1) == 0:
        raise TypeError(f"demonstrations must be {KINDS}; got a single number")
    items = [as_trajectory(item) for item in demonstrations]
    if not items:
        raise ValueError("demonstrations is empty, expected at least one trajectory or transition")
    if all(_has(item, "obs", "acts", "terminal") for item in items):
        return _trajectories(items)
    return _transitions(items, single=False)


def estimate_occupancy(
    read: Demonstrations, mdp: TabularMDP, *, discounting: str = "trajectory", policy: FloatArray | None = None
) -> FloatArray:
    """Return μ̂ of the module's docstring, for demonstrations that were read already.

    `policy` replaces π̂ if more is known about the demonstrator than these demonstrations show.
    """
    timed = check_timed(read, discounting)
    pairs = demonstrated_pairs(read, mdp)
    counts = np.bincount(pairs, minlength=mdp.n_pairs).astype(np.float64)
    if not timed:
        return counts / counts.sum()
    assert read.next_states is not None
    seen = np.bincount(pairs, weights=read.weights(mdp.discount), minlength=mdp.n_pairs)
    last, mass = read.next_states[read.ends], read.tails(mdp.discount)
    absorbing = absorbing_states(mdp)
    unknown = ~absorbing & (np.add.reduceat(counts, mdp.state_starts[:-1]) == 0) & (policy is None)
    policy = policy_of(mdp, counts) if policy is None else policy
    start = (1 - mdp.discount) * np.bincount(last, weights=mass, minlength=mdp.n_states)
    tail = solve_discounted(
        policy_chain(mdp, policy).T.tocsr(), np.asarray(start, dtype=np.float64), mdp.discount, norm=1
    )
    guessed = float(np.maximum(tail, 0.0)[unknown].sum())
    where = f", {guessed:.1%} in states that none of them leaves, by all actions alike" if guessed >= 0.0005 else ""
    warn_about_tails(float(mass[~absorbing[last]].sum()), EXTRAPOLATED + where)
    occupancy = seen + np.maximum(tail, 0.0)[mdp.pair_states] * policy
    return np.asarray(occupancy / occupancy.sum())


def demonstrated_pairs(read: Demonstrations, mdp: TabularMDP) -> IntArray:
    """Return the pair of each transition.

    An error names the first transition that the MDP does not have.
    """
    check_known(read, mdp.feasible)
    return mdp.pair_index(read.states, read.actions)


def absorbing_states(mdp: TabularMDP) -> NDArray[np.bool_]:
    """Return which states no action leaves."""
    p = mdp.transitions
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(p.indptr))
    leaving = np.bincount(rows[p.indices != mdp.pair_states[rows]], minlength=mdp.n_pairs)
    return np.asarray(np.add.reduceat(leaving, mdp.state_starts[:-1]) == 0)


def _given_occupancy(values: ArrayLike, mdp: TabularMDP) -> FloatArray:
    """Check an occupancy that was passed instead of demonstrations."""
    array = _checks.numbers("demonstrations", values)
    if array.ndim == 2:
        shape = (mdp.n_states, mdp.n_actions)
        if array.shape != shape:
            raise ValueError(f"demonstrations, an occupancy table, has shape {array.shape}, expected {shape}")
        outside = array.copy()
        outside[mdp.pair_states, mdp.pair_actions] = 0.0
        if outside.any():
            state, action = np.argwhere(outside)[0]
            raise ValueError(
                f"demonstrations: the occupancy table has {outside[state, action]} at state {state}, action {action}, "
                "which is not feasible"
            )
        array = array[mdp.pair_states, mdp.pair_actions]
    return _checks.distribution("demonstrations", array, mdp.n_pairs, "feasible state-action pair (mdp.n_pairs)")


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
    """Join transitions, or batches of them."""
    columns: dict[str, list[IntArray]] = {"obs": [], "acts": [], "next_obs": []}
    for k, item in enumerate(items):
        batch = item if isinstance(item, Mapping) else getattr(item, "__dict__", {})
        if single:
            batch = {name: getattr(item, name) for name in columns if hasattr(item, name)}
        if not {"obs", "acts"} <= set(batch) or _has(item, "terminal"):
            raise TypeError(f"demonstrations must be {KINDS}, of one kind; item {k} is a {type(item).__name__}")
        read = {
            name: _indices(name if single else f"batch {k}: {name}", batch[name])
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
    complete = len(columns["next_obs"]) == len(items)
    return Demonstrations(states, actions, np.concatenate(columns["next_obs"]) if complete else None, None)


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


def check_known(read: Demonstrations, feasible: NDArray[np.bool_]) -> None:
    """Check that the environment has every state, action and next state."""
    n_states, n_actions = feasible.shape
    arrived = read.states if read.next_states is None else read.next_states
    strange = (read.states < 0) | (read.states >= n_states)
    unknown = (read.actions < 0) | (read.actions >= n_actions)
    lost = (arrived < 0) | (arrived >= n_states)
    known = ~(strange | unknown)
    bad = ~known | lost
    bad[known] |= ~feasible[read.states[known], read.actions[known]]
    if not bad.any():
        return
    i = int(np.flatnonzero(bad)[0])
    if strange[i]:
        what = f"state {read.states[i]}, but the environment has states 0..{n_states - 1}"
    elif unknown[i]:
        what = f"action {read.actions[i]}, but the environment has actions 0..{n_actions - 1}"
    elif not feasible[read.states[i], read.actions[i]]:
        what = f"action {read.actions[i]}, which is not feasible in state {read.states[i]}"
    else:
        what = f"next state {arrived[i]}, but the environment has states 0..{n_states - 1}"
    raise ValueError(f"demonstrations: {read.where(i)} has {what}")


def _check_discounting(discounting: str) -> None:
    _checks.one_of("discounting", discounting, DISCOUNTINGS)


def check_timed(read: Demonstrations, discounting: str) -> bool:
    """Return whether to discount, or raise an error if the demonstrations have no times."""
    _check_discounting(discounting)
    if discounting == "trajectory" and read.lengths is None:
        raise ValueError(
            "demonstrations are transitions without times, from which no discounted occupancy can be computed; pass "
            'trajectories, or discounting="none" to use the undiscounted frequencies'
        )
    return discounting == "trajectory"


def warn_about_tails(mass: float, what: str = EXTRAPOLATED) -> None:
    """Warn if much mass lies after the trajectories' ends; `what` says how it is treated."""
    if mass > SMALL_TAIL:
        warn(
            f"demonstrations end early: {mass:.1%} of the discounted mass lies after their ends and {what}",
            UserWarning,
            stacklevel=4,
        )


def _has(item: Any, *names: str) -> bool:
    return all(hasattr(item, name) for name in names)
