r"""Improve a solution by interior point steps that need only products with Tγ and Tγᵀ.

With a = 2α, IO-AL_α has these inequalities, each with a multiplier,

    c - Tγᵀv ≥ 0 [μ]     1 + c ≥ 0     1 - c ≥ 0     1 + (v - t) ≥ 0 [ρ]     1 - (v - t) ≥ 0 [ω].

The last two say max v - min v ≤ 2, which is what the box on u = v - t in RLfD_α amounts to,
because Tγᵀ1 = 1. For the occupancy of a policy they are never active; for an expert estimated from
samples they can be. Newton's method on the perturbed optimality conditions (Mehrotra's predictor
and corrector) comes down to one system over the states,

    (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs,
    1/Dᵢ = qᵢ/μᵢ + 1/Eᵢ,     E = a + the curvature of the box on c,
    r = ρ/(1 + v - t) + ω/(1 - v + t).

It is solved to a fraction of the complementarity that is left, by `normal_equations`, because its
condition grows with 1/(1-γ)² and with every step.

**Long steps.** A step is usually shortened by a handful of pairs, one in thousands, whose slack
q = c - Tγᵀv or occupancy would become negative. These are held up at a tenth of what they had
(`HELD`), and the other pairs move on. The residuals of the optimality conditions that this leaves
are on the right-hand side of the next step, as all others are. It saves a third of the steps. While
the complementarity does not fall, every pair may shorten a step.

**Repaired points.** The occupancy is also offered with the flow of the expert restored, see
`rlfd_gym.solvers.matrix_free`, which saves the last and worst conditioned steps.

With `Intervals`, a = 0 and the ends of c are lowᵢ and highᵢ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, repaired
from rlfd_gym.solvers.normal_equations import NormalEquations

MAX_STEPS = 100  # usually half of them are not needed
LEAST_WIDTH = 1e-6  # of an interval, for the interior point method: what it finds is clipped when it is judged
PREDICTED, CORRECTED = 0.5, 0.2  # the accuracy of a predictor and a corrector, as shares of the complementarity
WORTH_REPAIRING = 3.0  # times the gap: with more complementarity left, the occupancy is not worth repairing yet
NEAR = (5.0, 500.0, np.inf)  # the room at the start, in units of 1/(αn); more if steps get stuck
MASS = 0.5  # that the occupancy has more at the start, at most
PATIENCE = 4  # steps in which the complementarity has to halve
FEW = 1e-3  # the share of the pairs that may not shorten a step: their slack or occupancy is held up instead
HELD = 0.1  # the share of its slack or occupancy that a pair keeps at least
BOUNDARY = 0.99  # the share of the way to the boundary that an interior point step may go


def interior_point(best: Incumbent, promise: Promise, equations: NormalEquations | None = None) -> int:
    """Improve `best` by interior point steps until it keeps the promise or they stall.

    `equations` are those that another method has solved before. Returns the number of products
    with Tγ D Tγᵀ.
    """
    equations = equations or NormalEquations(best)
    products = 0
    for near in NEAR:
        products += _improve(best, promise, equations, near)
        if best.keeps(promise) or best.out_of_time() or best.problem.alpha == 0:
            break
    return products


def _improve(best: Incumbent, promise: Promise, equations: NormalEquations, near: float) -> int:
    """Do what `interior_point` does, from one start."""
    problem = best.problem
    mdp, floor = problem.mdp, floor_of(problem)
    point = _start(problem, best, near)
    products, lefts = 0, list[float]()
    for _ in range(MAX_STEPS):
        cost, value, mu = (
            np.maximum(cost_of_value(mdp, point.value), floor),
            point.value - point.centre,
            point.multipliers[0],
        )
        best.offer(cost, value, mu)
        if best.keeps(promise) or best.out_of_time():
            break
        system = _System(problem, point, equations)
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
        # The predictor aims at no complementarity at all.
        step, count = system.step([-s * m for s, m in system.pairs], np.zeros(mdp.n_states), PREDICTED * min(1.0, left))
        products += count
        length = step.longest(system, few)
        reached = sum(
            (s + length * ds) @ (m + length * dm) for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)
        )
        # The corrector centres by how far the predictor came, and allows for second-order terms.
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
    """An interior point, or a step: c, v, t, q and the five multipliers.

    The multipliers are in the order of the inequalities in the module's docstring.
    """

    cost: FloatArray
    value: FloatArray
    centre: float
    slack: FloatArray
    multipliers: list[FloatArray]

    @property
    def pairs(self) -> list[tuple[FloatArray, FloatArray]]:
        """For a step: (change of the slack, change of the multiplier) of each inequality."""
        spread = self.value - self.centre
        slacks = [self.slack, self.cost, -self.cost, spread, -spread]
        return list(zip(slacks, self.multipliers, strict=True))

    def longest(self, system: _System, share: float) -> float:
        """Return the step length at which all but a share of the pairs stay inside, at most 1.

        It is `nan` if the step is not finite.
        """
        rates = []
        for k, (here, there) in enumerate(zip(system.pairs, self.pairs, strict=True)):
            for now, change in zip(here, there, strict=True):
                few = int(share * now.size) if k == 0 else 0
                rates.append(float(np.partition(-change / now, -1 - few)[-1 - few]))
        return float(np.minimum(1.0, BOUNDARY / np.maximum(np.max(rates), 1e-12)))

    def moved(self, step: _Point, length: float) -> _Point:
        """Return the point after a step of the given length, with what would leave held up inside."""
        mu = self.multipliers[0]
        return _Point(
            self.cost + length * step.cost,
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

    def __init__(self, problem: RLfDProblem, point: _Point, equations: NormalEquations) -> None:
        mdp, a = problem.mdp, 2 * problem.alpha
        spread = point.value - point.centre
        self.mdp, self.equations = mdp, equations
        low_end, high_end = _widened(problem)
        slacks = [point.slack, point.cost - low_end, high_end - point.cost, 1 + spread, 1 - spread]
        self.pairs = list(zip(slacks, point.multipliers, strict=True))
        mu, low, high, under, over = point.multipliers
        self.complementarity = float(sum(s @ m for s, m in self.pairs))
        self.size = sum(s.size for s in slacks)
        # What is left of the three stationarity conditions, in c, v and t.
        self.cost_residual = low - high - a * (point.cost - problem.prior) - problem.expert + mu
        self.value_residual = flow_of(mdp, problem.expert - mu) + under - over
        self.centre_residual = float(over.sum() - under.sum())
        # What is left of the definition of the slack, where it was held up.
        self.slack_residual = point.cost - cost_of_value(mdp, point.value) - point.slack
        self.bend = a + low / slacks[1] + high / slacks[2]
        self.weights = 1 / (point.slack / mu + 1 / self.bend)
        self.ridge = under / slacks[3] + over / slacks[4]
        total = float(self.ridge.sum())
        equations.at(self.weights, self.ridge, 1 / total if total > 0 else 0.0)

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[_Point, int]:
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
        centre = (float(self.ridge @ value) - excess) / total
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
        return _Point(cost, value, centre, cost - z + self.slack_residual, multipliers), products


def ends_of(problem: RLfDProblem) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and the largest possible cost of each pair."""
    low, high = (np.broadcast_to(end, problem.n_pairs) for end in problem.belief.ends())
    return low, high


def _widened(problem: RLfDProblem) -> tuple[FloatArray, FloatArray]:
    """Return the ends, pushed apart where they are so close that nothing lies well inside."""
    low, high = ends_of(problem)
    push = np.maximum(LEAST_WIDTH - (high - low), 0.0) / 2
    return low - push, high + push


def floor_of(problem: RLfDProblem) -> FloatArray:
    """Return the best cost where q ≥ 0 does not bind."""
    if problem.alpha == 0:
        return ends_of(problem)[0]
    return problem.prior - problem.expert / (2 * problem.alpha)


def _start(problem: RLfDProblem, best: Incumbent, near: float) -> _Point:
    """Return a point well inside, near the best one known.

    Its cost and value are shrunk, and its occupancy has mass everywhere. Shrinking keeps q ≥ 0,
    and lowering v by a constant raises q by the same constant, so all inequalities hold strictly.
    """
    mdp, n = problem.mdp, problem.mdp.n_pairs
    low, high = _widened(problem)
    # Costs that differ by 1/(αn) move μ by its own size: far more room would lead far from the central path.
    room = float(np.clip(best.gap, 1e-3, 0.1))
    if problem.alpha > 0:
        room = min(room, near / (problem.alpha * n))
    middle = 0.5 * (low + high)
    cost, value = middle + (1 - room) * (best.cost - middle), (1 - room) * best.value
    slack = cost - cost_of_value(mdp, value)
    shift = room - min(0.0, float(slack.min()))
    slack += shift
    level = best.gap / (3 * n + 2 * mdp.n_states)  # the complementarity of each inequality, if all had the same
    level = min(level, MASS / float(np.sum(1 / slack)))
    mu = np.maximum(best.occupancy, level / slack)
    excess = 2 * problem.alpha * (cost - problem.prior) + problem.expert - mu
    multipliers = [
        mu,
        level / (cost - low) + np.maximum(excess, 0.0),
        level / (high - cost) + np.maximum(-excess, 0.0),
        level / (1 + value),
        level / (1 - value),
    ]
    return _Point(cost, value - shift, -shift, slack, multipliers)
