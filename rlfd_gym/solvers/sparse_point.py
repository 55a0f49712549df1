r"""Improve a solution with the ℓ1 penalty by interior point steps that need only products with Tγ and Tγᵀ.

The cost is split into what is added to the prior and what is taken from it, c = ĉ + x⁺ - x⁻ (with ĉ
clipped to [-1, 1]), so that the penalty becomes linear. RLfD_α with α‖c - ĉ‖₁ then reads

    min over x, v, t   Σᵢ (αᵢ + μ_E,ᵢ) x⁺ᵢ + (αᵢ - μ_E,ᵢ) x⁻ᵢ - <Tγ μ_E, v>    subject to
        q = ĉ + x⁺ - x⁻ - Tγᵀv ≥ 0 [μ]    0 ≤ x⁺ ≤ 1 - ĉ    0 ≤ x⁻ ≤ 1 + ĉ    |v - t| ≤ 1 [ρ, ω].

The last box is explained in `rlfd_gym.solvers.interior_point`, and so is Newton's method on the
perturbed optimality conditions, with long steps and repaired points. It comes down to the same
system over the states,

    (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs,      1/Dᵢ = qᵢ/μᵢ + 1/E⁺ᵢ + 1/E⁻ᵢ,

where E⁺ and E⁻ are the curvatures of the barriers of the boxes on x⁺ and x⁻. Only the diagonal D
differs from that of the quadratic penalty, so the systems are solved by the same means
(`rlfd_gym.solvers.normal_equations`).

**The cost** for a value v is the best one, max(Tγᵀv, ĉ or -1), see `rlfd_gym.solvers.lp`. It equals
the prior in most pairs up to the accuracy of the solve only. At the end every cost within some
distance δ of the prior is set to it (`snap`), with the largest δ of a few that keeps the promise:
few changes are what the penalty is for, and the bounds are computed anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of
from rlfd_gym.solvers.incumbent import Incumbent, Promise, imitate, repaired
from rlfd_gym.solvers.normal_equations import NormalEquations

MAX_STEPS = 100  # usually half of them are not needed
LEAST_WIDTH = 1e-6  # of the boxes on x⁺ and x⁻: what is found is clipped when it is judged
PREDICTED, CORRECTED = 0.5, 0.2  # the accuracy of a predictor and a corrector, as shares of the complementarity
WORTH_REPAIRING = 3.0  # times the gap: with more complementarity left, the occupancy is not worth repairing yet
ROOM = (1e-3, 0.1)  # by how much the start is shrunk, at least and at most
MASS = 0.5  # that the occupancy has more at the start, at most
PATIENCE = 4  # steps in which the complementarity has to halve
FEW = 1e-3  # the share of the pairs that may not shorten a step: they are held up instead
HELD = 0.1  # the share of its slack or multiplier that a pair keeps at least
BOUNDARY = 0.99  # the share of the way to the boundary that a step may go
DISTANCES = 10.0 ** np.arange(-1, -10, -1)  # from the prior, within which costs are set to it


def improve(best: Incumbent, promise: Promise) -> int:
    """Improve `best`, whose problem has the ℓ1 penalty, until it keeps the promise or steps stall.

    Returns the number of products with Tγ D Tγᵀ.
    """
    problem = best.problem
    sparse = _Sparse(best)
    imitate(best)
    value = value_iteration(problem.mdp, sparse.prior, 1e-3)
    best.offer(sparse.prior, value, problem.expert)
    products = 0
    if not best.keeps(promise):
        products = _improve(best, promise, sparse)
    if best.keeps(promise):
        snap(best, promise)
    return products


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
        self.problem, self.mdp, self.expert = problem, problem.mdp, problem.expert
        self.equations = NormalEquations(best)
        alpha = _checks.instance("belief", problem.belief, NearPrior).pair_alpha
        self.prior = np.clip(problem.prior, -1.0, 1.0)
        self.floor = np.where(self.expert <= alpha, self.prior, -1.0)
        self.widths = np.maximum(np.stack([1.0 - self.prior, 1.0 + self.prior]), LEAST_WIDTH)
        self.slopes = np.stack([alpha + self.expert, alpha - self.expert])  # of the objective in x⁺ and x⁻


def _improve(best: Incumbent, promise: Promise, sparse: _Sparse) -> int:
    """Make interior point steps from the best point known."""
    problem, mdp = sparse.problem, sparse.mdp
    point = _start(best, sparse)
    products, lefts = 0, list[float]()
    for _ in range(MAX_STEPS):
        cost, value, mu = (
            np.maximum(cost_of_value(mdp, point.value), sparse.floor),
            point.value - point.centre,
            point.multipliers[0],
        )
        best.offer(cost, value, mu)
        if best.keeps(promise) or best.out_of_time():
            break
        system = _System(sparse, point)
        left = system.complementarity
        if not (left > 0.0 and system.ridge.any()):
            break  # the numbers have become too small to divide by
        if left <= WORTH_REPAIRING * best.gap:
            best.offer(cost, value, repaired(problem, mu, max(1e-3 * best.gap, 1e-14)))
            if best.keeps(promise):
                break
        # While holding pairs up leads nowhere, every pair may shorten the step.
        lefts.append(left)
        few = 0.0 if len(lefts) > PATIENCE and left > 0.5 * lefts[-1 - PATIENCE] else FEW
        # The predictor aims at no complementarity at all, the corrector at what that step suggests.
        step, count = system.step([-s * m for s, m in system.pairs], np.zeros(mdp.n_states), PREDICTED * min(1.0, left))
        products += count
        length = step.longest(system, few)
        reached = sum(
            float(np.sum((s + length * ds) * (m + length * dm)))
            for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)
        )
        centring = left / system.size * (reached / left) ** 3
        targets = [centring - s * m - ds * dm for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)]
        step, count = system.step(targets, step.value, CORRECTED * min(1.0, left))
        products += count
        length = step.longest(system, few)
        if not length >= 1e-4:
            break  # rounding, or the inaccuracy of the products, has taken over; `nan` is no length, either
        point = point.moved(step, length)
    return products


@dataclass(frozen=True)
class _Point:
    """An interior point, or a step: x⁺ and x⁻ as rows, v, t, q and the multipliers.

    The multipliers are those of q ≥ 0, x ≥ 0, x ≤ width, v - t ≥ -1 and v - t ≤ 1.
    """

    changes: FloatArray
    value: FloatArray
    centre: float
    slack: FloatArray
    multipliers: list[FloatArray]

    @property
    def pairs(self) -> list[tuple[FloatArray, FloatArray]]:
        """For a step: (change of the slack, change of the multiplier) of each inequality."""
        spread = self.value - self.centre
        return list(zip([self.slack, self.changes, -self.changes, spread, -spread], self.multipliers, strict=True))

    def longest(self, system: _System, share: float) -> float:
        """Return the step length at which all but a share of the pairs stay inside, at most 1.

        It is `nan` if the step is not finite.
        """
        rates = []
        for k, (here, there) in enumerate(zip(system.pairs, self.pairs, strict=True)):
            for now, change in zip(here, there, strict=True):
                few = int(share * now.size) if k == 0 else 0
                rates.append(float(np.partition((-change / now).ravel(), -1 - few)[-1 - few]))
        return float(np.minimum(1.0, BOUNDARY / np.maximum(np.max(rates), 1e-12)))

    def moved(self, step: _Point, length: float) -> _Point:
        """Return the point after a step of the given length, with what would leave held up inside."""
        mu = self.multipliers[0]
        return _Point(
            self.changes + length * step.changes,
            self.value + length * step.value,
            self.centre + length * step.centre,
            np.maximum(self.slack + length * step.slack, HELD * self.slack),
            [
                np.maximum(mu + length * step.multipliers[0], HELD * mu),
                *(m + length * dm for m, dm in zip(self.multipliers[1:], step.multipliers[1:], strict=True)),
            ],
        )


class _System:
    """The linear system of a Newton step at a point."""

    def __init__(self, sparse: _Sparse, point: _Point) -> None:
        mdp = sparse.mdp
        self.mdp, self.equations = mdp, sparse.equations
        x, spread = point.changes, point.value - point.centre
        slacks = [point.slack, x, sparse.widths - x, 1 + spread, 1 - spread]
        self.pairs = list(zip(slacks, point.multipliers, strict=True))
        mu, low, high, under, over = point.multipliers
        self.complementarity = float(sum(np.sum(s * m) for s, m in self.pairs))
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

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[_Point, int]:
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
        centre = (float(self.ridge @ value) - excess) / total
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
        return _Point(changes, value, centre, changes[0] - changes[1] - z + self.slack_residual, multipliers), products


def _start(best: Incumbent, sparse: _Sparse) -> _Point:
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
    level = best.gap / (5 * n + 2 * mdp.n_states)  # the complementarity of each inequality, if all had the same
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
    return _Point(changes, value - shift, -shift, slack, multipliers)
