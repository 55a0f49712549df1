r"""Is a cost covered by a guarantee, up to shaping and scale?

A guarantee of a policy holds for the costs that are held possible and no less plausible than its
worst case: the convex set 𝒟 = {c ∈ 𝒞 : Ω(c) ≤ Ω(worst)}. Let μ be the policy's occupancy and μ_E
the expert's, with the same start. If k c + Tγᵀu ∈ 𝒟 for some k > 0 and u, then (see
`rlfd_gym.mdp.shaping`)

    <μ_E - μ, c>  =  <μ_E - μ, k c + Tγᵀu> / k  ≥  improvement / k.

So if something is guaranteed, the policy is better than the expert under c too, although k is not
known to somebody who does not know c. Such a cost c is *covered*.

Let p = Πc be the cost without shaping. Each belief asks a small convex program in k ≥ 0 and u, or
in k and its own K numbers x:

* `Intervals`: the largest k with low ≤ k p + Tγᵀu ≤ high, a linear program. Two closed forms come
  first. The equivalent cost nearest to the middle m of the intervals may lie in them. Or its
  difference r from m may separate c from them: r is in the kernel of Tγ and <r, p> ≤ 0, so c is
  not covered if <r, c'> is positive for all c' in the intervals.
* `Ball`: the distance of c to the prior up to shaping and scale, in closed form.
* `NearPrior`: the same distance, but of costs in the box [-1, 1], in the norm of the penalty: in
  closed form where the box is slack, else a quadratic program, or with "l1" a linear one. Without a
  penalty (α = 0) every cost is covered: the box contains a small multiple of each.
* `Prices`, `Hull`: the largest k with k p = Π C(x) for an allowed x, a linear program in K + 1
  numbers after a QR factorisation of the projected columns. With a penalty, also the least penalty
  of such an x.

**The least penalty** over k ≥ 0 may be attained at k = 0, which does not count. If it is below the
level Ω(worst), and some k > 0 is allowed at all, points with k > 0 are on the way there, by
convexity, so the cost is covered. If it is at the level, k > 0 must hold where it is attained.

**Tolerances.** Equalities and levels hold up to `TOLERANCE` times the belief's largest cost, and k
is positive if k max|p| is at least `POSITIVE` times that cost.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import Ball, Belief, Hull, Intervals, NearPrior, Prices
from rlfd_gym.beliefs.program import Program
from rlfd_gym.mdp.shaping import nearest_equivalent, without_shaping
from rlfd_gym.mdp.tables import TabularMDP

TOLERANCE = 1e-7
POSITIVE = 1e-5
ACCURACY = 1e-10  # of PIQP
HEAVY = 1e6
SCALES, FREE = (0.0, 1e6), (None, None)  # no k is larger, unless p = 0
HIGHS = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def covers(mdp: TabularMDP, belief: Belief, worst: FloatArray, cost: FloatArray) -> bool:
    """Return whether k c + Tγᵀu is possible and no less plausible than the worst case.

    Args:
        mdp: the environment's tables.
        belief: what is believed about the cost.
        worst: the worst case of the guarantee, in the belief's coordinates.
        cost: c, over pairs.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> env = examples.inventory_env()
        >>> belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
        >>> worst = np.array([5.0, 3.0, 13.0])
        >>> [covers(env.mdp, belief, worst, env.cost_for(*prices)) for prices in ((6, 2, 28), (5, 8, 15))]
        [True, False]
    """
    own = without_shaping(mdp, cost)
    size = float(np.abs(own).max())
    return _covers(belief, mdp, worst, own * ((belief.largest or 1.0) / size) if size > 0 else own)


@singledispatch
def _covers(belief: Belief, mdp: TabularMDP, worst: FloatArray, cost: FloatArray) -> bool:
    """Answer for one kind of belief.

    The cost is without shaping, and its largest entry is that of the belief, or it is zero.
    """
    known = ", ".join(kind.__name__ for kind in _covers.registry if kind not in (object, Belief))
    raise TypeError(f"covers has no program for the belief {type(belief).__name__}; it has programs for {known}")


@_covers.register
def _(belief: Intervals, mdp: TabularMDP, worst: FloatArray, cost: FloatArray) -> bool:
    middle, half = 0.5 * (belief.low + belief.high), 0.5 * (belief.high - belief.low) + TOLERANCE * belief.largest
    near = nearest_equivalent(mdp, cost, middle)
    apart = middle - near.cost
    if near.scale > POSITIVE and (np.abs(apart) <= half).all():
        return True
    if apart @ middle > np.abs(apart) @ half:
        return False
    bounds = [*zip(middle - half, middle + half, strict=True), SCALES, *[FREE] * mdp.n_states]
    return _largest_scale(mdp.n_pairs, bounds, equal=_equivalents(mdp, cost)) > POSITIVE


@_covers.register
def _(belief: Ball, mdp: TabularMDP, worst: FloatArray, cost: FloatArray) -> bool:
    _, scale, distance = nearest_equivalent(mdp, cost, belief.prior)
    return _reaches(distance, belief.radius, scale if cost.any() else 1.0, belief.largest)


@_covers.register
def _(belief: NearPrior, mdp: TabularMDP, worst: FloatArray, cost: FloatArray) -> bool:
    if belief.alpha == 0:
        return True
    near = _nearest_absolute if belief.norm == "l1" else _nearest_squared
    point, scale = near(belief, mdp, cost)
    return _reaches(belief.radius(point), belief.radius(worst), scale if cost.any() else 1.0, belief.largest)


@_covers.register(Prices)
@_covers.register(Hull)
def _(belief: Prices | Hull, mdp: TabularMDP, worst: FloatArray, cost: FloatArray) -> bool:
    # The rows k p = Π C(x) in y and k, with x = low + (high - low) y, and those of the simplex.
    p, size = belief.program(), belief.largest or 1.0
    width, number = p.high - p.low, p.low.size
    columns = without_shaping(mdp, np.column_stack([p.matrix * width, p.shift + p.matrix @ p.low]))
    reduced = np.linalg.qr(np.column_stack([columns[:, :-1], -cost, columns[:, -1]]) / size, mode="r")
    simplex = np.column_stack([p.equal * width, np.zeros(len(p.equal)), p.equal @ p.low - p.total])
    rows, known = np.split(np.vstack([reduced, simplex]), [number + 1], axis=1)
    low, high = -known[:, 0] - TOLERANCE, -known[:, 0] + TOLERANCE
    bounds = [*[(0.0, 1.0)] * number, SCALES]
    most = _largest_scale(number, bounds, below=(np.vstack([rows, -rows]), np.concatenate([high, -low])))
    if most <= POSITIVE or belief.alpha == 0:
        return most > POSITIVE
    z = _least_penalty(p, width, rows, -known[:, 0])
    least, level = (np.sqrt(belief.penalty(x) / belief.alpha) for x in (p.low + width * z[:number], worst))
    return _reaches(least, level, z[number] if cost.any() else 1.0, max(level, float(np.abs(belief.prior).max())))


def _reaches(least: float, level: float, scale: float, unit: float) -> bool:
    """Return whether the level is reached with k > 0, given the least distance and its k."""
    slack = TOLERANCE * unit
    return least < level - slack or (least <= level + slack and scale > POSITIVE)


def _equivalents(mdp: TabularMDP, cost: FloatArray) -> sp.csr_array:
    """Return the rows of c - k p - Tγᵀu = 0 over (c, k, u)."""
    column = sp.csr_array(-cost[:, None])
    return sp.csr_array(sp.hstack([sp.eye_array(mdp.n_pairs), column, -mdp.flow_matrix().T]))


def _nearest_squared(belief: NearPrior, mdp: TabularMDP, cost: FloatArray) -> tuple[FloatArray, float]:
    """Return the equivalent cost in the box that is nearest to the prior in ℓ2-norm, and its k."""
    near = nearest_equivalent(mdp, cost, belief.prior)
    if np.abs(near.cost).max() <= 1.0 + TOLERANCE:
        return near.cost, near.scale
    n, others = mdp.n_pairs, mdp.n_states + 1
    hessian = np.concatenate([np.ones(n), np.zeros(others)])
    upper = np.concatenate([np.ones(n), np.full(others, np.inf)])
    lower = -upper
    lower[n] = 0.0
    x = _least_squares(hessian, np.append(-belief.prior, np.zeros(others)), _equivalents(mdp, cost), lower, upper)
    return x[:n], float(x[n])


def _nearest_absolute(belief: NearPrior, mdp: TabularMDP, cost: FloatArray) -> tuple[FloatArray, float]:
    """Return the same for the norm "l1", with the belief's weights."""
    n = mdp.n_pairs
    equal = _equivalents(mdp, cost)
    # c = ĉ + a - b with a, b ≥ 0; the box is on c.
    apart = sp.hstack([sp.eye_array(n), sp.csr_array((n, mdp.n_states + 1)), -sp.eye_array(n), sp.eye_array(n)])
    rows = sp.vstack([sp.hstack([equal, sp.csr_array((n, 2 * n))]), apart])
    weights = belief.pair_alpha / belief.alpha
    bounds = [*[(-1.0, 1.0)] * n, SCALES, *[FREE] * mdp.n_states, *[(0.0, None)] * (2 * n)]
    objective = np.concatenate([np.zeros(n + 1 + mdp.n_states), weights, weights])
    result = _linear_program(objective, bounds, equal=(rows, np.concatenate([np.zeros(n), belief.prior])))
    return result.x[:n], float(result.x[n])


def _largest_scale(index: int, bounds: Any, *, below: Any = None, equal: Any = None) -> float:
    """Return the largest k, which is the variable with this index; 0 if there is none."""
    objective = np.zeros(len(bounds))
    objective[index] = -1.0
    rows = None if equal is None else (equal, np.zeros(equal.shape[0]))
    result = _linear_program(objective, bounds, below=below, equal=rows)
    return 0.0 if result is None else float(-result.fun)


def _linear_program(objective: FloatArray, bounds: Any, *, below: Any = None, equal: Any = None) -> Any:
    """Solve a linear program by HiGHS; return `None` if nothing is feasible."""
    from scipy.optimize import linprog  # slow to load

    rows = {"A_ub": below[0], "b_ub": below[1]} if below else {}
    rows |= {"A_eq": equal[0], "b_eq": equal[1]} if equal else {}
    for method in ("highs-ipm", "highs-ds"):  # the second is slower, and fails less often
        result = linprog(objective, bounds=bounds, method=method, options=HIGHS, **rows)
        if result.status in (0, 2):
            break
    if result.status not in (0, 2):
        raise RuntimeError(f"HiGHS did not solve the linear program of the coverage: {result.message}")
    return result if result.status == 0 else None


def _least_penalty(p: Program, width: FloatArray, rows: FloatArray, known: FloatArray) -> FloatArray:
    """Return (y, k) of least penalty subject to rows (y, k) = known, 0 ≤ y ≤ 1 and k ≥ 0.

    It is a bounded least-squares problem in which the rows have a large weight. An active set
    method solves it: where the rows leave a single point, on the bounds, there is no interior.
    """
    from scipy.optimize import lsq_linear  # slow to load

    # The penalty is ½‖root y - target‖² up to a constant.
    values, vectors = np.linalg.eigh(p.hessian * np.outer(width, width))
    used = values > 1e-14 * max(values.max(), 1e-300)
    root = np.sqrt(values[used])[:, None] * vectors[:, used].T
    target = -(vectors[:, used].T @ ((p.linear + p.hessian @ p.low) * width)) / np.sqrt(values[used])
    unit = float(np.abs(root).max(initial=0.0)) or 1.0
    matrix = np.vstack([HEAVY * rows, np.column_stack([root / unit, np.zeros(len(root))])])
    upper = np.append(np.ones(width.size), np.inf)
    result = lsq_linear(matrix, np.append(HEAVY * known, target / unit), (np.zeros(upper.size), upper), "bvls")
    if result.status <= 0:
        raise RuntimeError(f"the least penalty of an equivalent cost was not found: {result.message}")
    return np.asarray(result.x)


def _least_squares(hessian: FloatArray, gradient: FloatArray, equal: Any, lower: FloatArray, upper: FloatArray) -> Any:
    """Minimise ½ x'Hx + g'x with a diagonal H, subject to equal x = 0 and lower ≤ x ≤ upper, by PIQP."""
    import piqp  # compiled: loaded only when asked for

    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = ACCURACY
    solver.setup(
        sp.csc_matrix(sp.diags_array(hessian)), gradient, sp.csc_matrix(equal), np.zeros(equal.shape[0]),
        None, None, None, lower, upper,
    )  # fmt: skip
    status = solver.solve()
    if status != piqp.PIQP_SOLVED:
        raise RuntimeError(f"PIQP did not find the nearest equivalent cost in the box: {status}")
    return solver.result.x
