r"""Improve a solution with the ℓ1 penalty by interior point steps that need only products with Tγ and Tγᵀ.

The cost is split into what is added to the prior and what is taken from it, c = ĉ + x⁺ - x⁻ (with ĉ
clipped to [-1, 1]), so that the penalty becomes linear. RLfD_α with α‖c - ĉ‖₁ then reads

    min over x, v, t   Σᵢ (αᵢ + μ_E,ᵢ) x⁺ᵢ + (αᵢ - μ_E,ᵢ) x⁻ᵢ - <Tγ μ_E, v>    subject to
        q = ĉ + x⁺ - x⁻ - Tγᵀv ≥ 0 [μ]    0 ≤ x⁺ ≤ 1 - ĉ    0 ≤ x⁻ ≤ 1 + ĉ    |v - t| ≤ 1 [ρ, ω].

The steps are those of `rlfd_gym.solvers.predictor_corrector`, with x⁺ and x⁻ in boxes. Only the diagonal
of their systems differs from that of the quadratic penalty,

    1/Dᵢ = qᵢ/μᵢ + 1/E⁺ᵢ + 1/E⁻ᵢ,

where E⁺ and E⁻ are the curvatures of the barriers of the boxes.

**The cost** for a value v is the best one, max(Tγᵀv, ĉ or -1), see `rlfd_gym.solvers.lp`. It equals
the prior in most pairs up to the accuracy of the solve only. At the end every cost within some
distance δ of the prior is set to it (`snap`), with the largest δ of a few that keeps the promise:
few changes are what the penalty is for, and the bounds are computed anew. Where α is above
`pinning_alpha`, the prior itself is the answer, and planning for it the proof.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of, occupancy_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, imitate
from rlfd_gym.solvers.normal_equations import NormalEquations
from rlfd_gym.solvers.predictor_corrector import LEAST_WIDTH, MASS, ROOM, PathPoint, complementarity, follow

PLANNED = 1e-5  # the accuracy of the plan for the prior, which is optimal where α is large
DISTANCES = 10.0 ** np.arange(-1, -10, -1)  # from the prior, within which costs are set to it


def improve(best: Incumbent, promise: Promise) -> int:
    """Improve `best`, whose problem has the ℓ1 penalty, until it keeps the promise or steps stall.

    Returns the number of products with Tγ D Tγᵀ.
    """
    problem = best.problem
    sparse = _Sparse(best)
    imitate(best)
    value, pairs = value_iteration(problem.mdp, sparse.prior, PLANNED)
    best.offer(sparse.prior, value, problem.expert)
    start, products = _start(best, sparse), 0
    best.offer(sparse.prior, value, _followed(problem, pairs))
    if not best.keeps(promise):
        products = follow(best, promise, start, lambda point: _System(sparse, point))
    if best.keeps(promise):
        snap(best, promise)
    return products


def _followed(problem: RLfDProblem, pairs: IntArray) -> FloatArray:
    """Return the occupancy with the flow of the expert of the policy that takes these pairs."""
    policy = np.zeros(problem.n_pairs)
    policy[pairs] = 1.0
    return occupancy_of(problem.mdp, policy, source=flow_of(problem.mdp, problem.expert), tolerance=PLANNED)


def snap(best: Incumbent, promise: Promise) -> None:
    """Set every cost near the prior to the prior, as far as the promise is kept nevertheless."""
    problem = best.problem
    prior = np.clip(problem.prior, -1.0, 1.0)
    off = np.abs(best.cost - prior)
    for distance in DISTANCES:
        cost = np.where(off <= distance, prior, best.cost)
        upper, lower = problem.bounds(cost, best.value, best.occupancy)
        if upper <= best.upper or upper - lower <= promise(upper, lower):
            best.cost, best.upper = cost, upper
            return


class _Sparse:
    """The parts of the problem that no step changes."""

    def __init__(self, best: Incumbent) -> None:
        problem = best.problem
        self.mdp, self.expert = problem.mdp, problem.expert
        self.equations = NormalEquations(best)
        alpha = _checks.instance("belief", problem.belief, NearPrior).pair_alpha
        self.prior = np.clip(problem.prior, -1.0, 1.0)
        self.widths = np.maximum(np.stack([1.0 - self.prior, 1.0 + self.prior]), LEAST_WIDTH)
        self.slopes = np.stack([alpha + self.expert, alpha - self.expert])  # of the objective in x⁺ and x⁻


class _System:
    """The linear system of a Newton step at a point."""

    def __init__(self, sparse: _Sparse, point: PathPoint) -> None:
        mdp = sparse.mdp
        self.mdp, self.equations = mdp, sparse.equations
        x, spread = point.boxed, point.value - point.centre
        slacks = [point.slack, x, sparse.widths - x, 1 + spread, 1 - spread]
        self.pairs = list(zip(slacks, point.multipliers, strict=True))
        mu, low, high, under, over = point.multipliers
        self.complementarity = complementarity(self.pairs)
        self.size = sum(s.size for s in slacks)
        # What is left of the stationarity conditions, in x, v and t, and of the definition of q.
        self.change_residual = low - high - sparse.slopes + np.stack([mu, -mu])
        self.value_residual = flow_of(mdp, sparse.expert - mu) + under - over
        self.centre_residual = float(over.sum() - under.sum())
        self.slack_residual = sparse.prior + x[0] - x[1] - cost_of_value(mdp, point.value) - point.slack
        self.bends = low / slacks[1] + high / slacks[2]
        self.weights = 1 / (point.slack / mu + (1 / self.bends).sum(axis=0))
        self.ridge = under / slacks[3] + over / slacks[4]
        total = float(self.ridge.sum())
        self.equations.at(self.weights, self.ridge, 1 / total if total > 0 else 0.0)

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[PathPoint, int]:
        """Return the step that adds its target to each slack times multiplier, to first order.

        The conjugate gradients start at `guess`. Also returns the number of products.
        """
        (_, mu), (s_low, low), (s_high, high), (s_under, under), (s_over, over) = self.pairs
        t_mu, t_low, t_high, t_under, t_over = targets
        # Eliminate the multipliers of the boxes: on x into E = `bends`, on v - t into r = `ridge`.
        free = (t_low / s_low - t_high / s_high + self.change_residual) / self.bends  # dx if dμ were 0
        pull = t_mu / mu - (free[0] - free[1]) - self.slack_residual
        push = t_under / s_under - t_over / s_over
        total, excess = float(self.ridge.sum()), float(push.sum()) - self.centre_residual
        rhs = self.value_residual - flow_of(self.mdp, self.weights * pull) + push - self.ridge * (excess / total)
        value = guess.copy()
        products = self.equations.solve(rhs, value, accuracy)
        # Back from dv to dt, dμ, dx and the other multipliers.
        centre = (dot(self.ridge, value) - excess) / total
        z = cost_of_value(self.mdp, value)
        d_mu = self.weights * (pull + z)
        changes = free + np.stack([d_mu, -d_mu]) / self.bends
        spread = value - centre
        multipliers = [
            d_mu,
            (t_low - low * changes) / s_low,
            (t_high + high * changes) / s_high,
            (t_under - under * spread) / s_under,
            (t_over + over * spread) / s_over,
        ]
        return PathPoint(
            changes, value, centre, changes[0] - changes[1] - z + self.slack_residual, multipliers
        ), products


def _start(best: Incumbent, sparse: _Sparse) -> PathPoint:
    """Return a point well inside, near the best one known.

    Its cost and value are shrunk towards the prior and 0, and its occupancy has mass everywhere.
    Lowering v by a constant raises q by the same constant, so all inequalities hold strictly.
    """
    mdp, n = sparse.mdp, sparse.mdp.n_pairs
    room = float(np.clip(best.gap, *ROOM))
    off = best.cost - sparse.prior
    changes = np.clip(np.stack([off, -off]), room * sparse.widths, (1 - room) * sparse.widths)
    value = (1 - room) * best.value
    slack = sparse.prior + changes[0] - changes[1] - cost_of_value(mdp, value)
    shift = room - min(0.0, float(slack.min()))
    slack += shift
    left = max(best.gap, dot(best.occupancy, slack))  # what `room` adds counts where the gap is small
    level = left / (5 * n + 2 * mdp.n_states)  # the complementarity of each inequality, if all had the same
    level = min(level, MASS / float(np.sum(1 / slack)))
    mu = np.maximum(best.occupancy, level / slack)
    excess = sparse.slopes - np.stack([mu, -mu])
    multipliers = [
        mu,
        level / changes + np.maximum(excess, 0.0),
        level / (sparse.widths - changes) + np.maximum(-excess, 0.0),
        level / (1 + value),
        level / (1 - value),
    ]
    return PathPoint(changes, value - shift, -shift, slack, multipliers)
