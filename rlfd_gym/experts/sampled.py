"""An expert known only by transitions.

Pairs with the states that followed, for learning without a model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations, check_known, check_timed, warn_about_tails


@dataclass(frozen=True, eq=False)
class SampledExpert:
    """Transitions that an expert was seen to make, each with the weight (1-γ)γᵗ that its time
    gives it.

    Args:
        states: s of each transition.
        actions: a of each transition.
        next_states: the s' that followed.
        weights: how often to draw each; any positive scale. `None` means equally often.
    """

    states: IntArray
    actions: IntArray
    next_states: IntArray
    weights: FloatArray

    def __init__(
        self, states: ArrayLike, actions: ArrayLike, next_states: ArrayLike, weights: ArrayLike | None = None
    ) -> None:
        """Check and copy."""
        columns = {
            name: _checks.integers(name, values).copy()
            for name, values in (("states", states), ("actions", actions), ("next_states", next_states))
        }
        length = columns["states"].size
        for name, column in columns.items():
            if column.shape != (length,) or length == 0:
                raise ValueError(f"{name} has shape {column.shape}, expected ({length},), at least one transition")
        chances = (
            np.ones(length) if weights is None else _checks.finite_vector("weights", weights, length, "transition")
        )
        if _checks.nonnegative("weights", chances).sum() <= 0:
            raise ValueError("weights must not all be zero")
        for name, value in (columns | {"weights": chances / chances.sum()}).items():
            object.__setattr__(self, name, value)
        _checks.lock(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickled arrays are writeable: lock them again."""
        self.__dict__.update(state)
        _checks.lock(self)


def sampled_expert(
    read: Demonstrations,
    discount: float,
    *,
    feasible: NDArray[np.bool_],
    absorbing: NDArray[np.bool_] | None = None,
    discounting: str = "trajectory",
) -> SampledExpert:
    """The transitions of demonstrations with their weights.

    The expert of a problem without tables.

    Without a model nobody knows what a truncated trajectory would have done next, so its tail is
    dropped and the rest renormalised: a bias of at most γ^T in ℓ1-norm, twice, about which a
    warning is given. A trajectory that ends in one of the `absorbing` states stays there, its mass
    γ^T spread evenly over the actions that `feasible` gives the state.

    Args:
        read: the demonstrations; they must tell the next states.
        discount: γ.
        feasible: (n_states, n_actions), which actions each state offers.
        absorbing: which states are never left. `None` believes the trajectories' own `terminal`,
            which imitation's rollouts set at time limits too.
        discounting: as for `occupancy_from_demonstrations`.
    """
    timed = check_timed(read, discounting)
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
