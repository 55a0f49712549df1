r"""Compare costs up to what no policy can tell: shaping and scale.

All occupancies with the same start ν₀ satisfy Tγ μ = ν₀, so the difference d of two of them lies
in the kernel of Tγ, and <d, c + Tγᵀu> = <d, c> for every u: *shaping* a cost by Tγᵀu changes no
difference between two policies. Multiplying the cost by k > 0 multiplies every difference by k. So
k c + Tγᵀu, for any k > 0 and u, is *equivalent* to c: it ranks all policies in the same way.

**The distance** of the cost c to a target ĉ, up to shaping and scale, is

    inf over k > 0, u  of  ‖k c - Tγᵀu - ĉ‖₂.

The minimum over u is a projection on the kernel of Tγ, Π c = c - Tγᵀu with Tγ Tγᵀu = Tγ c (it has
one solution: Tγᵀ has full column rank, because ‖Tγᵀu‖∞ ≥ ‖u‖∞). What is left is a line,

    inf over k > 0 of ‖k Πc - Πĉ‖,        k = <Πc, Πĉ> / ‖Πc‖²   if that is positive.

Otherwise the infimum is ‖Πĉ‖, which is approached as k → 0: the two costs disagree. Relative to
‖Πĉ‖ the distance is the sine of the angle between the two projections.

**The systems** in Tγ Tγᵀ are solved by an LU factorisation if there are few states, and otherwise
by conjugate gradients with a diagonal preconditioner, which needs products with Tγ and Tγᵀ only.
In the energy norm of these systems, which is the one that conjugate gradients minimise, the error
of u is that of Π c. The number of steps grows like the condition number of Tγ, at most like
1/(1-γ) up to a constant on a grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import LU_STATES

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

ROUNDING = 1e-10  # a projection below this share of the cost is zero
RESIDUAL = 1e-11  # of conjugate gradients, relative to the right-hand side
MOST_STEPS = 20_000


class Nearest(NamedTuple):
    """The cost nearest to a target among those equivalent to a given cost.

    Attributes:
        cost: k c - Tγᵀu, over pairs.
        scale: k; 0 if the distance is only approached as k → 0.
        distance: the distance of `cost` to the target.
    """

    cost: FloatArray
    scale: float
    distance: float


def without_shaping(mdp: TabularMDP, costs: FloatArray) -> FloatArray:
    """Return the projection of a cost, or of each column of a matrix, on the kernel of Tγ.

    It is the equivalent cost of least norm. A cost that tells no policies apart gives zeros.

    Example:
        >>> from rlfd_gym import TabularMDP
        >>> mdp = TabularMDP([[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0], [1, 0], discount=0.5)
        >>> shaping = mdp.flow_transpose(np.array([0.3, -0.2]))
        >>> bool(np.abs(without_shaping(mdp, shaping)).max() < 1e-15)
        True
    """
    columns = np.asarray(costs, dtype=np.float64).reshape(mdp.n_pairs, -1)
    flow = mdp.flow_matrix()
    transpose = sp.csr_array(flow.T)
    solve = _factorised if mdp.n_states <= LU_STATES else _conjugate_gradients
    left = columns - transpose @ solve(flow, transpose, flow @ columns)
    negligible = np.linalg.norm(left, axis=0) <= ROUNDING * np.linalg.norm(columns, axis=0)
    return np.where(negligible, 0.0, left).reshape(np.shape(costs))


def nearest_equivalent(mdp: TabularMDP, cost: FloatArray, target: FloatArray) -> Nearest:
    """Return the cost nearest to the target among k c - Tγᵀu, for k > 0 and any u.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> env = examples.inventory_env()
        >>> prior = env.cost_for(4, 2, 14)
        >>> float(np.linalg.norm(env.cost - prior).round(2))
        4.95
        >>> round(nearest_equivalent(env.mdp, env.cost, prior).distance, 3)
        0.298
    """
    own, wanted = without_shaping(mdp, np.column_stack([cost, target])).T
    scale = nearest_scale(own, wanted)
    return Nearest(scale * own + (target - wanted), scale, float(np.linalg.norm(scale * own - wanted)))


def nearest_scale(own: FloatArray, wanted: FloatArray) -> float:
    """Return the k ≥ 0 for which k times a cost comes nearest to another, both without shaping.

    >>> nearest_scale(np.array([1.0, 1.0]), np.array([2.0, 4.0]))
    3.0
    """
    size = float(own @ own)
    return max(float(own @ wanted) / size, 0.0) if size > 0 else 0.0


def _factorised(flow: sp.csr_array, transpose: sp.csr_array, rhs: FloatArray) -> FloatArray:
    """Solve Tγ Tγᵀu = b for each column b by LU, with one step of refinement."""
    system = sp.csc_array(flow @ transpose)
    factors = splu(system)
    u = factors.solve(rhs)
    return np.asarray(u + factors.solve(rhs - system @ u))


def _conjugate_gradients(flow: sp.csr_array, transpose: sp.csr_array, rhs: FloatArray) -> FloatArray:
    """Solve Tγ Tγᵀu = b for all columns b at once.

    Sums are not left to BLAS, whose threads would cost more than they save here.
    """
    diagonal = flow.power(2).sum(axis=1)[:, None]
    u, r = np.zeros_like(rhs), rhs.copy()
    z = r / diagonal
    p, product, goal = z.copy(), _dots(r, z), RESIDUAL**2 * _dots(rhs, rhs / diagonal)
    for _ in range(MOST_STEPS):
        if (product <= goal).all():
            return u
        q = flow @ (transpose @ p)
        step = _ratio(product, _dots(p, q))
        u += step * p
        r -= step * q
        z = r / diagonal
        before, product = product, _dots(r, z)
        p = z + _ratio(product, before) * p
    raise RuntimeError(f"conjugate gradients did not remove the shaping of a cost in {MOST_STEPS} steps")


def _dots(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the product of each column of x with that of y."""
    return np.asarray(np.einsum("ij,ij->j", x, y))


def _ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return x / y, and 0 for columns that are solved already."""
    return np.divide(x, y, out=np.zeros_like(x), where=y > 0)
