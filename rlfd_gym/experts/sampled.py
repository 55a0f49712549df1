"""An expert known only by its transitions, for learning without a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations, check_known, check_timed, warn_about_tails


@dataclass(frozen=True, eq=False)
class SampledExpert(_checks.Locked):
    """An expert's observed transitions, each with its weight, such as (1-γ)γᵗ for time t.

    Args:
        states: s of each transition.
        actions: a of each transition.
        next_states: the s' that followed.
        weights: how often to draw each transition, on any positive scale. `None` means equally
            often. The attribute `weights` sums to one.

    Example:
        >>> SampledExpert([0, 1], [0, 0], [1, 1], weights=[3, 1]).weights.tolist()
        [0.75, 0.25]
    """

    states: IntArray
    actions: IntArray
    next_states: IntArray
    weights: FloatArray

    def __init__(
        self, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Check and copy the arguments."""
        columns = {
            name: _checks.integers(name, values).copy()
            for name, values in (("states", states), ("actions", actions), ("next_states", next_states))
        }
        length = columns["states"].size
        for name, column in columns.items():
            if column.shape != (length,) or length == 0:
                raise ValueError(f"{name} has shape {column.shape}, expected ({length},), at least one transition")
            if column.min() < 0:
                raise ValueError(f"{name} must not be negative; entry {column.argmin()} is {column.min()}")
        chances = np.ones(length)
        if weights is not None:
            given = _checks.finite_vector("weights", weights, length, "transition", largest=np.inf)
            chances = _checks.nonnegative("weights", given)
            if chances.max() > _checks.LARGEST:
                chances = chances / chances.max()  # the sum could overflow
        if chances.sum() <= 0:
            raise ValueError("weights must not all be zero")
        self._fill(**columns, weights=chances / chances.sum())


def sampled_expert(
    read: Demonstrations,
    discount: float,
    *,
    feasible: NDArray[np.bool_],
    absorbing: NDArray[np.bool_] | None = None,
    discounting: str = "trajectory",
) -> SampledExpert:
    """Return the transitions of demonstrations, weighted by their times.

    They are the expert of a problem without tables. Without a model it is unknown how a truncated
    trajectory would have continued, so its tail is dropped and the rest renormalised. This changes
    the occupancy by at most 2γ^T in ℓ1-norm; a warning says by how much. A trajectory that ends in
    one of the `absorbing` states stays there, and its mass γ^T is spread evenly over the actions
    that `feasible` gives the state.

    Args:
        read: the demonstrations, which must include the next states.
        discount: γ.
        feasible: which actions each state offers, (n_states, n_actions).
        absorbing: which states are never left. `None` trusts the trajectories' own `terminal`,
            which imitation's rollouts also set at time limits.
        discounting: as for `occupancy_from_demonstrations`.
    """
    timed = check_timed(read, discounting, tables=False)
    if read.next_states is None:
        raise ValueError("demonstrations must tell the next states (next_obs) for learning without tables")
    check_known(read, feasible)
    if not timed:
        return SampledExpert(read.states, read.actions, read.next_states)
    last, mass = read.next_states[read.ends], read.tails(discount)
    stays = read.terminal if absorbing is None else np.asarray(absorbing)[last]
    warn_about_tails(float(mass[~stays].sum()), "is dropped, the rest renormalised")
    choices = feasible[last[stays]]
    which, actions = np.nonzero(choices)
    states = last[stays][which]
    return SampledExpert(
        np.concatenate([read.states, states]),
        np.concatenate([read.actions, actions]),
        np.concatenate([read.next_states, states]),
        np.concatenate([read.weights(discount), (mass[stays] / choices.sum(axis=1))[which]]),
    )
