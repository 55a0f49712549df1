r"""Improve a solution by interior point steps that need only products with Tγ and Tγᵀ.

The steps are those of `rlfd_gym.solvers.predictor_corrector`, with the cost c itself in a box. With
a = 2α, the diagonal of their systems is

    1/Dᵢ = qᵢ/μᵢ + 1/Eᵢ,     E = a + the curvature of the box on c.

With `Intervals`, a = 0 and the ends of c are lowᵢ and highᵢ.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, ends_of
from rlfd_gym.solvers.normal_equations import NormalEquations
from rlfd_gym.solvers.predictor_corrector import LEAST_WIDTH, MASS, ROOM, PathPoint, complementarity, follow

NEAR = (np.inf, 500.0, 5.0)  # the room at a start, in units of 1/(αn), at most: less if steps get stuck


def interior_point(best: Incumbent, promise: Promise, equations: NormalEquations | None = None) -> int:
    """Improve `best` by interior point steps until it keeps the promise or they stall.

    `equations` are those that another method has solved before. Returns the number of products
    with Tγ D Tγᵀ.
    """
    equations = equations or NormalEquations(best)
    products = 0
    for near in NEAR:
        products += follow(best, promise, _start(best, near), lambda point: _System(best.problem, point, equations))
        if best.keeps(promise) or best.out_of_time() or best.problem.alpha == 0:
            break
    return products


class _System:
    """The linear system of a Newton step at a point."""

    def __init__(self, problem: RLfDProblem, point: PathPoint, equations: NormalEquations) -> None:
        mdp, a = problem.mdp, 2 * problem.alpha
        spread = point.value - point.centre
        self.mdp, self.equations = mdp, equations
        low_end, high_end = _widened(problem)
        slacks = [point.slack, point.boxed - low_end, high_end - point.boxed, 1 + spread, 1 - spread]
        self.pairs = list(zip(slacks, point.multipliers, strict=True))
        mu, low, high, under, over = point.multipliers
        self.complementarity = complementarity(self.pairs)
        self.size = sum(s.size for s in slacks)
        # What is left of the three stationarity conditions, in c, v and t.
        self.cost_residual = low - high - a * (point.boxed - problem.prior) - problem.expert + mu
        self.value_residual = flow_of(mdp, problem.expert - mu) + under - over
        self.centre_residual = float(over.sum() - under.sum())
        # What is left of the definition of the slack, where it was held up.
        self.slack_residual = point.boxed - cost_of_value(mdp, point.value) - point.slack
        self.bend = a + low / slacks[1] + high / slacks[2]
        self.weights = 1 / (point.slack / mu + 1 / self.bend)
        self.ridge = under / slacks[3] + over / slacks[4]
        total = float(self.ridge.sum())
        equations.at(self.weights, self.ridge, 1 / total if total > 0 else 0.0)

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[PathPoint, int]:
        """Return the step that adds its target to each slack times multiplier, to first order.

        The conjugate gradients start at `guess`. Also returns the number of products.
        """
        mdp = self.mdp
        # Eliminate the multipliers of the boxes: on c into E = `bend`, on v - t into r = `ridge`.
        (_, mu), (s_low, low), (s_high, high), (s_under, under), (s_over, over) = self.pairs
        t_mu, t_low, t_high, t_under, t_over = targets
        box = t_low / s_low - t_high / s_high + self.cost_residual
        pull = t_mu / mu - box / self.bend - self.slack_residual
        push = t_under / s_under - t_over / s_over
        # (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs, with t eliminated too.
        total, excess = float(self.ridge.sum()), float(push.sum()) - self.centre_residual
        rhs = self.value_residual - flow_of(mdp, self.weights * pull) + push - self.ridge * (excess / total)
        value = guess.copy()
        products = self.equations.solve(rhs, value, accuracy)
        # Back from dv to dt, dμ, dc and the other multipliers.
        centre = (dot(self.ridge, value) - excess) / total
        z = cost_of_value(mdp, value)
        d_mu = self.weights * (pull + z)
        cost = (d_mu + box) / self.bend
        spread = value - centre
        multipliers = [
            d_mu,
            (t_low - low * cost) / s_low,
            (t_high + high * cost) / s_high,
            (t_under - under * spread) / s_under,
            (t_over + over * spread) / s_over,
        ]
        return PathPoint(cost, value, centre, cost - z + self.slack_residual, multipliers), products


def _widened(problem: RLfDProblem) -> tuple[FloatArray, FloatArray]:
    """Return the ends, pushed apart where they are so close that nothing lies well inside."""
    low, high = ends_of(problem)
    push = np.maximum(LEAST_WIDTH - (high - low), 0.0) / 2
    return low - push, high + push


def _start(best: Incumbent, near: float) -> PathPoint:
    """Return a point near the best one known that is well centred, though it breaks the equations.

    The optimality conditions that the best cost, value and occupancy leave open, and what is added
    to slacks and occupancy here, are residuals, which every step makes smaller. Products of slacks
    and multipliers that differ by orders of magnitude would shorten step after step instead, so
    none is much below their mean: a pair whose own is gets more slack and more occupancy alike.
    """
    problem = best.problem
    mdp, n = problem.mdp, problem.n_pairs
    low, high = _widened(problem)
    room = float(np.clip(best.gap, *ROOM))
    if problem.alpha > 0:
        room = min(room, near / (problem.alpha * n))
    margin = 0.5 * room * (high - low)
    cost, value = np.clip(best.cost, low + margin, high - margin), (1 - room) * best.value
    slack = np.maximum(cost - cost_of_value(mdp, value), 0.0) + room
    mu = best.occupancy + min(best.gap, MASS) / n
    level = dot(mu, slack) / n
    raised = np.sqrt(np.maximum(level / (mu * slack), 1.0))
    multipliers = [
        mu * raised,
        level / (cost - low),
        level / (high - cost),
        level / (1 + value),
        level / (1 - value),
    ]
    return PathPoint(cost, value, 0.0, slack * raised, multipliers)
