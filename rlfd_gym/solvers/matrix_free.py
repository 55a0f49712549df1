r"""Solve large problems by two matrix-free methods, which need only products with Tγ and Tγᵀ.

**The dual.** Write a = 2α. Eliminating the cost from the Lagrangian of IO-AL_α leaves a problem in
the occupancy alone,

    min over μ ≥ 0   h(μ)   subject to   Tγ μ = Tγ μ_E,
    hᵢ'(μ) = clip(ĉᵢ + (μᵢ - μ_E,ᵢ)/a, -1, 1).

The objective h is a quadratic around the expert that turns linear where the cost meets its box.
The multiplier of the flow constraint is the value u, and the cost is read off as c = h'(μ).

**1. Proximal Newton** (`newton`) is quick where the prior's own policy is nearly right. A proximal
point step from μ_k with step τ minimises h(μ) - <u, Tγ μ> + ‖μ - μ_k‖²/2τ. With z = Tγᵀu it
separates, and its solution max(m, 0) has three pieces:

    m = (aτ(z - ĉ) + τ μ_E + a μ_k) / (a + τ)   where then |z - (m - μ_k)/τ| ≤ 1,  slope aτ/(a+τ)
    m = μ_k + τ(z - 1)                          where the cost is at its upper bound,     slope τ
    m = μ_k + τ(z + 1)                          where the cost is at its lower bound,     slope τ.

What remains is a concave, piecewise quadratic problem in u with gradient Tγ(μ_E - μ(u)) and
generalised Hessian -Tγ D Tγᵀ (D: the slopes, 0 where μ = 0). Each step solves
(Tγ D Tγᵀ + damping) du = gradient by conjugate gradients and then searches along du. Because z is
linear in the step, a trial costs one pass over the pairs. A first-order method would have to guess
D as a single number, the ratio of its two step sizes. Here nothing is left to guess: the damping
falls after a full step and rises after a short one, a state without active pairs borrows its most
nearly active one, and τ grows tenfold when it is no longer the flow residual that keeps the gap
open. The method gives up when `PATIENCE` steps have not halved the gap.

**2. Interior point** (`interior_point`) is for the other problems. IO-AL_α has these inequalities,
each with a multiplier,

    c - Tγᵀv ≥ 0 [μ]     1 + c ≥ 0     1 - c ≥ 0     1 + (v - t) ≥ 0 [ρ]     1 - (v - t) ≥ 0 [ω].

The last two say max v - min v ≤ 2, which is what the box on u = v - t in RLfD_α amounts to,
because Tγᵀ1 = 1. For the occupancy of a policy they are never active; for an expert estimated from
samples they can be. Newton's method on the perturbed optimality conditions (Mehrotra's predictor
and corrector) comes down to one system over the states,

    (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs,
    1/Dᵢ = qᵢ/μᵢ + 1/Eᵢ,     E = a + the curvature of the box on c,
    r = ρ/(1 + v - t) + ω/(1 - v + t).

It is again solved by conjugate gradients, to a tenth of the complementarity that is left. The
number of Newton steps hardly depends on the problem; the number of products grows with 1/(1-γ), so
discounts of 0.99 and more take long.

**Repaired points.** The bounds of `RLfDProblem.bounds` hold for every point in the boxes and the
simplex, so neither method has to be trusted: whatever they propose is brought there and judged.
The best cost-value pair and the best occupancy are kept separately (`Incumbent`), because `upper`
depends only on the former and `lower` only on the latter. Two repairs make the bounds tight early.
The cost max(Tγᵀu, ĉ - μ_E/a), clipped to [-1, 1], is the best one for u. And an occupancy is
replaced by that of its own policy, for which ‖Tγ(μ_E - μ)‖₁ vanishes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.tables import cost_of_value, flow_of
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, repaired

PATIENCE = 8  # proximal Newton steps in which the gap has to halve
MAX_STEPS = 100  # of either method; usually neither needs half of them
MAX_PRODUCTS = 3_000  # conjugate gradient iterations in one Newton step
PORTION = 20_000_000  # entries of the tables that are passed between two looks at the clock
BOUNDARY = 0.99  # the share of the way to the boundary that an interior point step may go


def improve(best: Incumbent, promise: Promise) -> int:
    """Improve `best` by both parts of the method until it keeps the promise.

    Returns the number of products with Tγ D Tγᵀ.
    """
    products = newton(best, promise)
    if not best.keeps(promise):
        products += interior_point(best, promise)
    return products


def newton(best: Incumbent, promise: Promise) -> int:
    """Improve `best` by proximal Newton steps until it keeps the promise or they stall.

    Returns the number of products with Tγ D Tγᵀ.
    """
    from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

    problem = best.problem
    mdp, expert, prior, a = problem.mdp, problem.expert, problem.prior, 2 * problem.alpha
    matrix = (mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr, mdp.state_starts, mdp.discount)
    n = mdp.n_pairs
    floor = prior - expert / a  # the best cost where q ≥ 0 does not bind
    box_prior = np.clip(prior, -1.0, 1.0)
    target = flow_of(mdp, expert)
    raw, mu, slopes, anchor = np.empty(n), np.empty(n), np.empty(n), expert
    tau = max(10 * a, float(np.sqrt(np.mean(expert**2))))
    damping, products, steps_at_tau = 1e-3, 0, 0

    # The value is needed to the accuracy 1/(n a), at which a difference in cost moves μ by μ's own
    # size.
    u = value_iteration(mdp, box_prior, float(np.clip(0.1 / (n * a), 1e-6, 1e-2)))
    z = cost_of_value(mdp, u)

    def respond() -> tuple[FloatArray, float]:
        """Let μ answer z; return the gradient Tγ(μ_E - μ) and its ℓ1-norm, the flow residual."""
        _newton.prox(z, anchor, expert, prior, a, tau, raw, mu, slopes)
        gradient = target - flow_of(mdp, mu)
        return gradient, float(np.abs(gradient).sum())

    def offer_repaired(cost: FloatArray, tolerance: float) -> None:
        """Offer μ repaired, blended with the best occupancy so far."""
        other = repaired(problem, mu, max(tolerance, 1e-12))
        share = _newton.blend(best.occupancy, other, expert, prior, a)
        best.offer(cost, u, best.occupancy + share * (other - best.occupancy))

    # For a large α the prior is nearly optimal, and so is a mixture of the expert with the policy
    # that the prior asks for.
    best.offer(box_prior, u, expert)
    gradient, residual = respond()
    offer_repaired(box_prior, 1e-3 * best.gap)

    gaps = [best.gap]
    while not best.keeps(promise) and len(gaps) <= MAX_STEPS and not best.out_of_time():
        if len(gaps) > PATIENCE and best.gap > 0.5 * gaps[-1 - PATIENCE]:
            break
        # (Tγ D Tγᵀ + damping) du = gradient, to an accuracy that follows the residual.
        steps_at_tau += 1
        _newton.wake_idle_states(mdp.state_starts, raw, slopes, a * tau / (a + tau))
        ridge = damping * _newton.normal_diagonal(*matrix, slopes)
        step, forcing = np.zeros(mdp.n_states), min(0.3, max(residual, 1e-3))
        products += _conjugate_gradients(best, slopes, ridge, 0.0, gradient, step, forcing * residual)
        # The line search, and the damping by its length.
        z_step = cost_of_value(mdp, step)
        length = _newton.line_search(z, z_step, float(target @ step), anchor, expert, prior, a, tau)
        u = u + length * step
        z += length * z_step
        if length > 0.5:
            damping = max(0.25 * damping, 1e-10)
        elif length < 0.1:
            damping = min(8.0 * damping, 1.0)
        gradient, residual = respond()

        # The best cost for u, with μ as it is and with μ repaired.
        cost = np.clip(np.maximum(z, floor), -1.0, 1.0)
        own_gap = best.offer(cost, u, mu)
        if residual < 1.0:
            offer_repaired(cost, max(1e-3 * min(residual, best.gap), 1e-2 * promise(best.upper, best.lower)))
        gaps.append(best.gap)
        # The next proximal point μ_k, and a larger τ, once the flow no longer keeps the gap open.
        elsewhere = max(own_gap - 2 * residual, 0.0)  # what the flow does not explain
        if residual <= max(0.1 * elsewhere, 1e-2 * promise(best.upper, best.lower)) or steps_at_tau >= 40:
            anchor, tau, steps_at_tau = mu.copy(), 10 * tau, 0
            gradient, residual = respond()
    return products


def interior_point(best: Incumbent, promise: Promise) -> int:
    """Improve `best` by interior point steps until it keeps the promise or they stall.

    Returns the number of products with Tγ D Tγᵀ.
    """
    problem = best.problem
    mdp, a = problem.mdp, 2 * problem.alpha
    floor = problem.prior - problem.expert / a
    point = _start(problem, best)
    products = 0
    for _ in range(MAX_STEPS):
        best.offer(np.maximum(cost_of_value(mdp, point.value), floor), point.value - point.centre, point.multipliers[0])
        if best.keeps(promise) or best.out_of_time():
            break
        system = _System(best, point)
        left = system.complementarity
        if not (left > 0.0 and system.ridge.any()):
            break  # the numbers have become too small to divide by
        accuracy = 0.1 * min(1.0, left)
        # The predictor aims at no complementarity at all.
        step, count = system.step([-s * m for s, m in system.pairs], np.zeros(mdp.n_states), accuracy)
        products += count
        length = step.longest(system)
        reached = sum(
            (s + length * ds) @ (m + length * dm) for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)
        )
        # The corrector centres by how far the predictor came, and allows for second-order terms.
        centring = left / system.size * (reached / left) ** 3
        targets = [centring - s * m - ds * dm for (s, m), (ds, dm) in zip(system.pairs, step.pairs, strict=True)]
        step, count = system.step(targets, step.value, accuracy)
        products += count
        length = step.longest(system)
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

    def longest(self, system: _System) -> float:
        """Return the largest step length that stays inside, at most 1; `nan` if the step is not finite."""
        rates = [
            float(np.max(-change / now))
            for here, there in zip(system.pairs, self.pairs, strict=True)
            for now, change in zip(here, there, strict=True)
        ]
        return float(np.minimum(1.0, BOUNDARY / np.maximum(np.max(rates), 1e-12)))

    def moved(self, step: _Point, length: float) -> _Point:
        """Return the point after a step of the given length."""
        return _Point(
            self.cost + length * step.cost,
            self.value + length * step.value,
            self.centre + length * step.centre,
            self.slack + length * step.slack,
            [m + length * dm for m, dm in zip(self.multipliers, step.multipliers, strict=True)],
        )


class _System:
    """The linear system of a Newton step at a point."""

    def __init__(self, best: Incumbent, point: _Point) -> None:
        problem = best.problem
        mdp, a = problem.mdp, 2 * problem.alpha
        spread = point.value - point.centre
        self.best, self.mdp = best, mdp
        slacks = [point.slack, 1 + point.cost, 1 - point.cost, 1 + spread, 1 - spread]
        self.pairs = list(zip(slacks, point.multipliers, strict=True))
        mu, low, high, under, over = point.multipliers
        self.complementarity = float(sum(s @ m for s, m in self.pairs))
        self.size = sum(s.size for s in slacks)
        # What is left of the three stationarity conditions, in c, v and t.
        self.cost_residual = low - high - a * (point.cost - problem.prior) - problem.expert + mu
        self.value_residual = flow_of(mdp, problem.expert - mu) + under - over
        self.centre_residual = float(over.sum() - under.sum())
        self.bend = a + low / slacks[1] + high / slacks[2]
        self.weights = 1 / (point.slack / mu + 1 / self.bend)
        self.ridge = under / slacks[3] + over / slacks[4]

    def step(self, targets: list[FloatArray], guess: FloatArray, accuracy: float) -> tuple[_Point, int]:
        """Return the step that adds its target to each slack times multiplier, to first order.

        The conjugate gradients start at `guess`. Also returns the number of products.
        """
        mdp = self.mdp
        # Eliminate the multipliers of the boxes: on c into E = `bend`, on v - t into r = `ridge`.
        (_, mu), (s_low, low), (s_high, high), (s_under, under), (s_over, over) = self.pairs
        t_mu, t_low, t_high, t_under, t_over = targets
        box = t_low / s_low - t_high / s_high + self.cost_residual
        pull = t_mu / mu - box / self.bend
        push = t_under / s_under - t_over / s_over
        # (Tγ D Tγᵀ + diag r - r rᵀ/Σr) dv = rhs, with t eliminated too.
        total, excess = float(self.ridge.sum()), float(push.sum()) - self.centre_residual
        rhs = self.value_residual - flow_of(mdp, self.weights * pull) + push - self.ridge * (excess / total)
        value = guess.copy()
        products = _conjugate_gradients(self.best, self.weights, self.ridge, 1 / total, rhs, value, accuracy)
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
        return _Point(cost, value, centre, cost - z, multipliers), products


def _conjugate_gradients(
    best: Incumbent,
    weights: FloatArray,
    ridge: FloatArray,
    share: float,
    rhs: FloatArray,
    x: FloatArray,
    goal: float,
) -> int:
    """Solve (T D Tᵀ + diag r - share r rᵀ) x = rhs in place; see `_newton.conjugate_gradients`.

    The products are made in portions of a fraction of a second, so that Ctrl-C and the deadline
    are seen in between. Returns their number.
    """
    from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

    mdp, p = best.problem.mdp, best.problem.mdp.transitions
    matrix = (p.data, p.indices, p.indptr, mdp.state_starts, mdp.discount, weights, ridge, share)
    run = _newton.begin(*matrix, rhs, x)
    portion, products = 1 + PORTION // (p.nnz + mdp.n_pairs), 0
    while products < MAX_PRODUCTS and not best.out_of_time():
        limit = min(portion, MAX_PRODUCTS - products)
        made = _newton.advance(*matrix, x, goal, limit, *run)
        products += made
        if made < limit:
            break
    return products


def _start(problem: RLfDProblem, best: Incumbent) -> _Point:
    """Return a point well inside, near the best one known.

    Its cost and value are shrunk, and its occupancy has mass everywhere. Shrinking keeps q ≥ 0,
    and lowering v by a constant raises q by the same constant, so all inequalities hold strictly.
    """
    mdp, n = problem.mdp, problem.mdp.n_pairs
    room = float(np.clip(best.gap, 1e-3, 0.1))
    cost, value = (1 - room) * best.cost, (1 - room) * best.value
    slack = cost - cost_of_value(mdp, value)
    shift = room - min(0.0, float(slack.min()))
    slack += shift
    level = best.gap / (3 * n + 2 * mdp.n_states)  # the complementarity of each inequality, if all had the same
    mu = np.maximum(best.occupancy, level / slack)
    excess = 2 * problem.alpha * (cost - problem.prior) + problem.expert - mu
    multipliers = [
        mu,
        level / (1 + cost) + np.maximum(excess, 0.0),
        level / (1 - cost) + np.maximum(-excess, 0.0),
        level / (1 + value),
        level / (1 - value),
    ]
    return _Point(cost, value - shift, -shift, slack, multipliers)
