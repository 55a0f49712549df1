r"""Project a prior on the costs that explain an expert by products with Tγ and Tγᵀ only.

IRL-IO_ĉ is the program

    min over c, u ∈ the boxes   ‖c - ĉ‖²    subject to   q = c - Tγᵀu = 0 on the pairs taken,  q ≥ 0 elsewhere.

**Augmented Lagrangian.** With multipliers ν of the rows and a weight σ, the cost can be eliminated
pair by pair. Let z = Tγᵀu and y = z + ν_k/σ, where ν_k are the multipliers so far. Then

    c = clip((2ĉ + σy)/(2 + σ), -1, 1),   ν = σ(y - c)

where the pair is taken or y > ĉ (clipped to the box), and c = ĉ (clipped), ν = 0 elsewhere. The box on
u has multipliers ω in the same way: ω = σ_u(y - clip(y, -1, 1)), y = u + ω_k/σ_u. What remains is
a convex, piecewise quadratic problem in u alone, with gradient Tγ ν + ω and generalised Hessian

    Tγ D Tγᵀ + diag r,      D = 2σ/(2 + σ), σ where the cost is at an end of the box, 0 where ν = 0.

It is minimised by damped Newton steps with a line search, whose systems
`rlfd_gym.solvers.normal_equations` solves. Once the gradient is small, ν becomes the next ν_k. As
the pairs' own curvature is in D, few such rounds are needed: one if the boxes are not active.

**Bounds.** A value u proves an upper bound: c = z on the pairs taken and max(ĉ, z) elsewhere
explains the expert, once u is shrunk so far that it and c are in the boxes. The multipliers ν prove a
lower bound (`projection_bound`). The best of each is kept, so that no step has to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent
from rlfd_gym.solvers.normal_equations import NormalEquations

WEIGHT, LARGEST = 1e2, 1e6  # σ at first and at most: how strongly the rows hold within a round
MAX_STEPS = 200  # usually ten to thirty
MAX_TRIALS = 40  # of a step length
FORCING = 0.1  # the accuracy of a system, as a share of the gradient, at most
SETTLED = 0.1  # a round ends when the gradient is this share of the goal


@dataclass
class Projection:
    """The best bounds so far, and the points that prove them."""

    mdp: TabularMDP
    prior: FloatArray
    taken: Any
    upper: float = np.inf
    lower: float = -np.inf
    cost: FloatArray = field(init=False)
    value: FloatArray = field(init=False)

    def offer(self, cost: FloatArray, value: FloatArray, nu: FloatArray) -> None:
        """Judge a cost with its value, and multipliers; keep what is better than before."""
        cost, value = explaining(self.mdp, cost, value, self.taken)
        upper = float(np.sum((cost - self.prior) ** 2))
        if upper < self.upper:
            self.cost, self.value, self.upper = cost, value, upper
        nu = np.where(self.taken, nu, np.maximum(nu, 0.0))
        self.lower = max(self.lower, projection_bound(self.mdp, self.prior, nu))


def project(best: Projection, goal: Callable[[float], float]) -> int:
    """Improve `best` until its gap is at most `goal(upper)` or no step helps.

    Returns the number of products with Tγ D Tγᵀ.
    """
    mdp, prior, taken = best.mdp, best.prior, best.taken
    uniform = np.full(mdp.n_pairs, 1 / mdp.n_pairs)  # its part in the problem is none
    equations = NormalEquations(Incumbent(RLfDProblem(mdp, uniform)))
    inside = np.clip(prior, -1.0, 1.0)
    sigma = WEIGHT
    stiff = sigma / (1 - mdp.discount) ** 2  # σ_u: a value moves costs by up to 2/(1-γ) times as much

    anchor, pull = np.zeros(mdp.n_pairs), np.zeros(mdp.n_states)

    def respond(z: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return ν, ω and their slopes in z and u."""
        y = z + anchor / sigma
        raw = (2 * prior + sigma * y) / (2 + sigma)
        c = np.clip(raw, -1.0, 1.0)
        active = taken | (y > inside)
        nu = np.where(active, sigma * (y - c), 0.0)
        slopes = np.where(active, np.where(c == raw, 2 * sigma / (2 + sigma), sigma), 0.0)
        w = u + pull / stiff
        over = w - np.clip(w, -1.0, 1.0)
        return nu, stiff * over, slopes, np.where(over != 0.0, stiff, 0.0)

    u = np.full(mdp.n_states, float(inside.mean()))
    z = cost_of_value(mdp, u)
    best.offer(inside, u, np.zeros(mdp.n_pairs))
    products, damping, before = 0, 1e-3, np.inf
    for _ in range(MAX_STEPS):
        nu, omega, slopes, ridge = respond(z, u)
        gradient = flow_of(mdp, nu) + omega
        size = float(np.abs(gradient).sum())
        best.offer(np.maximum(inside, z), u, nu)
        allowed = goal(best.upper)
        if best.upper - best.lower <= allowed:
            break
        if size <= SETTLED * allowed:
            # The next round begins at this one's multipliers, and with a larger σ if these no longer help.
            gap = best.upper - best.lower
            if gap > 0.5 * before:
                sigma, stiff = 10 * sigma, 10 * stiff
            if sigma > LARGEST:
                break
            before, anchor, pull = gap, nu, omega
            continue
        equations.at(slopes + damping, ridge, 0.0)
        step = np.zeros(mdp.n_states)
        products += equations.solve(-gradient, step, min(FORCING, max(size / mdp.n_pairs, 1e-3)) * size)
        z_step = cost_of_value(mdp, step)
        length = _length(z, z_step, u, step, respond)
        if length == 0.0:
            break  # rounding has taken over
        u, z = u + length * step, z + length * z_step
        damping = max(0.25 * damping, 1e-9) if length > 0.5 else min(4.0 * damping, 1.0)
    return products


def _length(
    z: FloatArray, z_step: FloatArray, u: FloatArray, step: FloatArray, respond: Callable[..., tuple[FloatArray, ...]]
) -> float:
    """Return a step length at which the directional derivative, which rises, is a tenth of the first."""
    low, high, length, first = 0.0, np.inf, 0.0, 0.0
    for trial in range(MAX_TRIALS):
        nu, omega, slopes, ridge = respond(z + length * z_step, u + length * step)
        slope = dot(nu, z_step) + dot(omega, step)
        bend = dot(slopes, z_step**2) + dot(ridge, step**2)
        if trial == 0:
            if not slope < 0.0:
                return 0.0
            first, length = slope, 1.0
            continue
        if abs(slope) <= 0.1 * abs(first):
            break
        low, high = (length, high) if slope < 0.0 else (low, length)
        new = length - slope / bend if bend > 0.0 else np.inf
        length = new if low < new < high else (0.5 * (low + high) if high < np.inf else 4.0 * length)
    return length


def projection_bound(mdp: TabularMDP, prior: FloatArray, nu: FloatArray) -> float:
    """Bound the squared distance from below, by any ν that is ≥ 0 where the expert has no mass."""
    answer = np.clip(prior + nu / 2, -1.0, 1.0)
    return float(np.sum((answer - prior) ** 2 - nu * answer) - np.abs(mdp.flow(nu)).sum())


def explaining(mdp: TabularMDP, cost: FloatArray, value: FloatArray, taken: Any) -> tuple[FloatArray, FloatArray]:
    """Make the constraints of IRL-IO_ĉ exact and return (c, u).

    The value is shrunk until it is in the boxes with its cost Tγᵀu. That is the cost of the pairs
    taken, and the least cost of the others.
    """
    z = mdp.flow_transpose(value)
    size = max(1.0, float(np.abs(value).max()), float(z.max()), float(-z[taken].min()))
    value, z = value / size, z / size
    return np.where(taken, z, np.clip(np.maximum(cost, z), -1.0, 1.0)), value
