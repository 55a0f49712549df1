r"""An expert of whom only the states are known: the occupancy over states that MCEIRL takes.

Let d(s) be the share of discounted time that the expert spends in state s. It does not say what was
done there, but the tables do in part: the expert's occupancy μ satisfies Tγμ = ν₀ and
Σ_a μ(s,a) = d(s). Among the occupancies that are nearest to d, the one returned divides the states'
mass among actions as evenly as the tables allow,

    min over μ ≥ 0 with Tγμ = ν₀   Σ_s (Σ_a μ(s,a) - d(s))² + ε Σ μ(s,a)²,    ε = `EVEN`.

If the cost depends on the state alone, nothing is lost: all these occupancies cost the same, so
that every problem with such costs, and its certificate, is that of the expert. About costs that
differ between actions of a state, d says only what follows from where the expert went.

Where no policy has the occupancy d, because it is undiscounted or of a finite horizon, or belongs to
another environment, the nearest one is taken, with a warning that says how far it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._programs import solve_qp
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.occupancy import occupancy_of, policy_of
from rlfd_gym.mdp.tables import TabularMDP

EVEN = 1e-6  # ε: weighs even actions far below the distance to d
SMALL_DISTANCE = 0.01  # warn above


def occupancy_from_states(states: ArrayLike, mdp: TabularMDP, *, name: str = "states") -> FloatArray:
    """Return an occupancy over pairs whose share of each state is the one given, or is near it.

    Args:
        states: the time spent in each state, discounted like the tables. Its sum may be any
            positive number, such as MCEIRL's 1/(1-γ).
        mdp: the environment's tables.
        name: what errors call `states`.

    Example:
        Of two states, the first can be kept or left. Half of the time was spent in it:

        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> occupancy_from_states([1, 1], mdp).round(3).tolist()
        [0.0, 0.5, 0.5]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    wanted = _checks.nonnegative(name, _checks.finite_vector(name, states, mdp.n_states, "state (mdp.n_states)"))
    if not wanted.any():
        raise ValueError(f"{name} is zero everywhere, expected the time spent in each state")
    wanted = wanted / wanted.sum()
    occupancy = occupancy_of(mdp, policy_of(mdp, _nearest(mdp, wanted)))
    distance = 0.5 * float(np.abs(mdp.sum_by_state(occupancy) - wanted).sum())
    if distance > SMALL_DISTANCE:
        warn(
            f"{name}: no policy has this occupancy over states in the environment's tables; the nearest differs in "
            f"{distance:.1%} of the time. Is it discounted by {mdp.discount:g}, and not cut at a horizon?",
            UserWarning,
            stacklevel=2,
        )
    return occupancy


def is_over_states(occupancy: NDArray[Any], mdp: TabularMDP) -> bool:
    """Return whether an array is over states; with one action per state, it is over pairs as well."""
    return occupancy.shape == (mdp.n_states,) != (mdp.n_pairs,)


def _nearest(mdp: TabularMDP, wanted: FloatArray) -> FloatArray:
    """Solve the program of the module's docstring, for variables (nμ, nr, 1) with r = Σ_a μ - d."""
    n, n_states = mdp.n_pairs, mdp.n_states
    sums = sp.csr_array((np.ones(n), np.arange(n), mdp.state_starts), shape=(n_states, n))
    start, target = sp.csr_array(-n * mdp.initial[:, None]), sp.csr_array(-n * wanted[:, None])
    equal = sp.block_array([[mdp.flow_matrix(), None, start], [sums, -sp.eye_array(n_states), target]])
    hessian = np.concatenate([np.full(n, 2 * EVEN), np.full(n_states, 2.0), [0.0]])
    lower = np.append(np.zeros(n), 1.0)  # nμ ≥ 0, and the last variable is 1
    rows = sp.block_array([[sp.eye_array(n), sp.csr_array((n, n_states)), None], [None, None, sp.eye_array(1)]])
    box = np.concatenate([np.full(n + n_states, np.inf), [1.0]])
    result = solve_qp(hessian, np.zeros(hessian.size), equal, rows, lower, None, box)
    return np.maximum(result.x[:n], 0.0)
