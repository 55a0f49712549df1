r"""Follow the central path: the interior point steps that the ℓ2 and the ℓ1 penalty have in common.

Both problems have the inequalities, each with a multiplier,

    q = c - Tγᵀv ≥ 0 [μ]     x ≥ its lower end     x ≤ its upper end     v - t ≥ -1 [ρ]     v - t ≤ 1 [ω],

where x is the cost itself (`rlfd_gym.solvers.interior_point`) or what is added to the prior and taken
from it (`rlfd_gym.solvers.sparse_point`). The last two say max v - min v ≤ 2, which is what the box
on u = v - t in RLfD_α amounts to, because Tγᵀ1 = 1. For the occupancy of a policy they are never
active; for an expert estimated from samples they can be. Newton's method on the perturbed optimality
conditions (Mehrotra's predictor and corrector) comes down to one system over the states,

    (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs,      r = ρ/(1 + v - t) + ω/(1 - v + t),

with a diagonal D that depends on the penalty. It is solved to a fraction of the complementarity that
is left, by `normal_equations`, because its condition grows with 1/(1-γ)² and with every step.

**Long steps.** A step is usually shortened by a handful of pairs, one in thousands, whose slack q or
occupancy would become negative. These are held up at a tenth of what they had (`HELD`), and the other
pairs move on. The residuals of the optimality conditions that this leaves are on the right-hand side
of the next step, as all others are. It saves a third of the steps. While the complementarity does not
fall, every pair may shorten a step. Where the whole correction shortens a step, only a part of it is
made (Colombo and Gondzio's weighted correctors). A step that is short nevertheless is replaced by one
that evens out the products of slacks and multipliers.

**Repaired points.** The occupancy is also offered with the flow of the expert restored, see
`rlfd_gym.solvers.matrix_free`, and the cost with its optimal value: a single pair that was held up, so
that q < 0, would spoil the upper bound of the value v. This saves the last and worst conditioned steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.occupancy import cost_of_value
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.solvers.incumbent import Incumbent, Promise, ends_of, floor_of, repaired

MAX_STEPS = 100  # usually half of them are not needed
PREDICTED, CORRECTED = 0.5, 0.2  # the accuracy of a predictor and a corrector, as shares of the complementarity
WORTH_REPAIRING = 5.0  # times the gap: with more complementarity left, the occupancy is not worth repairing yet
NEARLY = 2.0  # times the promised gap: while a larger one is to be expected, the points are repaired ...
RARELY = 0.1  # ... only when the complementarity has fallen to such a share of what it was at the last repair
PATIENCE, LESS = 4, 0.9  # steps in which the complementarity has to fall to such a share
FEW = (1e-4, 1e-3)  # the share of pairs that are held up and do not shorten a step, after a short step and a long one
HELD = 0.1  # the share of its slack or occupancy that a pair keeps at least
WEAKER, WORTH = (0.75, 0.5, 0.25), 1.1  # shares of a correction, and how much longer a step is that is worth one
FAR = 0.9  # a step longer than this needs no weaker correction
SHORT = 0.1  # a step shorter than this is replaced by one that centres
BOUNDARY = 0.99  # the share of the way to the boundary that a step may go
ROOM = (1e-3, 0.1)  # by how much a start is shrunk, at least and at most
MASS = 0.5  # that the occupancy has more at a start, at most
LEAST_WIDTH = 1e-6  # of the box on x: what is found is clipped when it is judged

Pairs = list[tuple[FloatArray, FloatArray]]
"""A slack and its multiplier, or the changes of both, for each inequality."""


class System(Protocol):
    """The linear system of a Newton step at a point.

    Attributes:
        pairs: the slack and the multiplier of each inequality.
        complementarity: the sum of their products.
        size: how many products there are.
        ridge: r.
    """

    pairs: Pairs
    complementarity: float
    size: int
    ridge: FloatArray

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[PathPoint, int]:
        """Return the step that adds its target to each slack times multiplier, to first order.

        The conjugate gradients start at `guess`. Also returns the number of products.
        """


@dataclass(frozen=True)
class PathPoint:
    """An interior point, or a step: x, v, t, q and the multipliers in the module's order."""

    boxed: FloatArray
    value: FloatArray
    centre: float
    slack: FloatArray
    multipliers: list[FloatArray]

    @property
    def pairs(self) -> Pairs:
        """For a step: the changes of the slack and of the multiplier of each inequality."""
        spread = self.value - self.centre
        return list(zip([self.slack, self.boxed, -self.boxed, spread, -spread], self.multipliers, strict=True))

    def longest(self, system: System, share: float) -> float:
        """Return the step length at which all but a share of the pairs stay inside, at most 1.

        It is `nan` if the step is not finite.
        """
        rates = []
        for k, (here, there) in enumerate(zip(system.pairs, self.pairs, strict=True)):
            for now, change in zip(here, there, strict=True):
                few = int(share * now.size) if k == 0 else 0
                rates.append(float(np.partition((-change / now).ravel(), -1 - few)[-1 - few]))
        return float(np.minimum(1.0, BOUNDARY / np.maximum(np.max(rates), 1e-12)))

    def towards(self, other: PathPoint, weight: float) -> PathPoint:
        """Return the point at a share of the way to another one."""

        def between(here: Any, there: Any) -> Any:
            return here + weight * (there - here)

        return PathPoint(
            between(self.boxed, other.boxed),
            between(self.value, other.value),
            between(self.centre, other.centre),
            between(self.slack, other.slack),
            [between(here, there) for here, there in zip(self.multipliers, other.multipliers, strict=True)],
        )

    def moved(self, step: PathPoint, length: float) -> PathPoint:
        """Return the point after a step of the given length, with what would leave held up inside."""
        mu = self.multipliers[0]
        return PathPoint(
            self.boxed + length * step.boxed,
            self.value + length * step.value,
            self.centre + length * step.centre,
            np.maximum(self.slack + length * step.slack, HELD * self.slack),
            [
                np.maximum(mu + length * step.multipliers[0], HELD * mu),
                *(m + length * dm for m, dm in zip(self.multipliers[1:], step.multipliers[1:], strict=True)),
            ],
        )


def _mixed(
    predicted: PathPoint, corrected: PathPoint, length: float, system: System, share: float
) -> tuple[PathPoint, float]:
    """Return the mixture of a predictor of the given length and its corrected step that goes furthest, and how far.

    A mixture is the step of a weaker correction, so it needs no system of its own. The share of the correction that is
    made is more than the predictor's length, and a smaller one has to be worth it.
    """
    best, longest = corrected, corrected.longest(system, share)
    for weight in WEAKER:
        if weight > length and longest < FAR:
            mixed = predicted.towards(corrected, weight)
            there = mixed.longest(system, share)
            if there > WORTH * longest:
                best, longest = mixed, there
    return best, longest


def complementarity(pairs: Pairs) -> float:
    """Return the sum of all slacks times their multipliers."""
    return sum(dot(slack.ravel(), multiplier.ravel()) for slack, multiplier in pairs)


def follow(best: Incumbent, promise: Promise, point: PathPoint, system_at: Callable[[PathPoint], System]) -> int:
    """Improve `best` by steps from a point until it keeps the promise or they stall.

    Returns the number of products with Tγ D Tγᵀ.
    """
    problem = best.problem
    mdp, floor = problem.mdp, floor_of(problem)
    products, lefts, repaired_at, share, length = 0, list[float](), np.inf, 1.0, 1.0
    for _ in range(MAX_STEPS):
        cost, value, mu = (
            np.maximum(cost_of_value(mdp, point.value), floor),
            point.value - point.centre,
            point.multipliers[0],
        )
        best.offer(cost, value, mu)
        if best.keeps(promise) or best.out_of_time():
            break
        system = system_at(point)
        left = system.complementarity
        if not (left > 0.0 and system.ridge.any()):
            break  # the numbers have become too small to divide by
        goal = promise(best.upper, best.lower)
        # What the gap will be after a repair: the share of the complementarity that it was at the last one.
        if left <= WORTH_REPAIRING * best.gap and left <= max(NEARLY * goal / share, RARELY * repaired_at):
            best.offer(cost, value, repaired(problem, mu, max(1e-3 * best.gap, 0.02 * goal, 1e-14)))
            if not best.keeps(promise):
                accuracy = max(1e-3 * best.gap, 0.1 * goal)
                aim = np.clip(cost, *ends_of(problem))
                value, _ = value_iteration(mdp, aim, accuracy, value, best.out_of_time)
                best.offer(np.maximum(cost_of_value(mdp, value), floor), value, mu)
            if best.keeps(promise):
                break
            repaired_at, share = left, best.gap / left
        # While holding pairs up leads nowhere, every pair may shorten the step.
        lefts.append(left)
        few = 0.0 if len(lefts) > PATIENCE and left > LESS * lefts[-1 - PATIENCE] else FEW[length >= 0.5]
        # The predictor aims at no complementarity at all.
        step, count = system.step([-s * m for s, m in system.pairs], np.zeros(mdp.n_states), PREDICTED * min(1.0, left))
        products += count
        length = step.longest(system, few)
        changed = [
            (s + length * ds, m + length * dm) for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)
        ]
        # The corrector centres by how far the predictor came, and allows for second-order terms.
        centring = left / system.size * (complementarity(changed) / left) ** 3
        targets = [centring - s * m - ds * dm for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)]
        corrected, count = system.step(targets, step.value, CORRECTED * min(1.0, left))
        products += count
        step, length = _mixed(step, corrected, length, system, few)
        if not length >= SHORT:
            # The products of slacks and multipliers differ too much to go on: even them out first.
            targets = [left / system.size - s * m for s, m in system.pairs]
            step, count = system.step(targets, np.zeros(mdp.n_states), CORRECTED * min(1.0, left))
            products += count
            length = step.longest(system, 0.0)
        if not length >= 1e-4:
            break  # rounding, or the inaccuracy of the products, has taken over; `nan` is no length, either
        point = point.moved(step, length)
    return products
