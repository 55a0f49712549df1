r"""Solve large problems by three matrix-free methods, which need only products with Tγ and Tγᵀ.

**The dual.** Write a = 2α. Eliminating the cost from the Lagrangian of IO-AL_α leaves a problem in
the occupancy alone,

    min over μ ≥ 0   h(μ)   subject to   Tγ μ = Tγ μ_E,
    hᵢ'(μ) = clip(ĉᵢ + (μᵢ - μ_E,ᵢ)/a, -1, 1).

The objective h is a quadratic around the expert that turns linear where the cost meets its box.
The multiplier of the flow constraint is the value u, and the cost is read off as c = h'(μ).

`Intervals` have a = 0, and the ends lowᵢ and highᵢ instead of -1 and 1: hᵢ' jumps from the one to
the other at μ_E,ᵢ. The last two methods work for it as they are.

**1. Mixtures of policies** (`rlfd_gym.solvers.policies`) are quick where α is large, for experts
whose flow is a start. One or two are tried at first where α or γ is large, and more of them after the
second method; none where αn is small.

**2. Proximal Newton** (`newton`) is quick where the prior's own policy is nearly right. A proximal
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

**3. Interior point** (`rlfd_gym.solvers.interior_point`) is for the other problems. It solves the
same kind of linear systems, and hardly depends on how far the prior's policy is from the answer.

**Repaired points.** The bounds of `RLfDProblem.bounds` hold for every point in the boxes and the
simplex, so no method has to be trusted: whatever they propose is brought there and judged.
The best cost-value pair and the best occupancy are kept separately (`Incumbent`), because `upper`
depends only on the former and `lower` only on the latter. Two repairs make the bounds tight early.
The cost max(Tγᵀu, ĉ - μ_E/a), clipped to [-1, 1], is the best one for u. And an occupancy is
replaced by that of its own policy, for which ‖Tγ(μ_E - μ)‖₁ vanishes.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.occupancy import cost_of_value, flow_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.solvers.incumbent import Incumbent, Promise, ends_of, floor_of, repaired
from rlfd_gym.solvers.interior_point import interior_point
from rlfd_gym.solvers.normal_equations import NormalEquations
from rlfd_gym.solvers.policies import BRIEFLY, THOROUGHLY, Policies, first_accuracy
from rlfd_gym.solvers.prices import has_start

LARGE_ALPHA, LARGE_DISCOUNT = 0.05, 0.99  # from which on policies are tried before Newton steps: measured at 10⁶ pairs
MIXED = 300.0  # αn from which on policies are mixed: below it a good mixture has too many; measured at 10⁵ pairs
PATIENCE = 5  # proximal Newton steps in which the gap has to halve
MAX_STEPS = 100  # usually half of them are not needed


def improve(best: Incumbent, promise: Promise) -> int:
    """Improve `best` by all parts of the method until it keeps the promise.

    Returns the number of products with Tγ D Tγᵀ and of policies.
    """
    problem, equations, count = best.problem, NormalEquations(best), 0
    is_mixed = problem.alpha * problem.n_pairs >= MIXED and has_start(problem)
    policies = Policies(best) if is_mixed else None
    if policies is not None and (problem.alpha >= LARGE_ALPHA or problem.discount >= LARGE_DISCOUNT):
        count += policies.improve(promise, BRIEFLY)
    if not (best.keeps(promise) or best.out_of_time()):
        count += newton(best, promise, equations, None if policies is None else policies.first)
    if policies is not None:
        count += policies.improve(promise, THOROUGHLY)
    if not (best.keeps(promise) or best.out_of_time()):
        count += interior_point(best, promise, equations)
    return count


def newton(
    best: Incumbent, promise: Promise, equations: NormalEquations | None = None, start: FloatArray | None = None
) -> int:
    """Improve `best` by proximal Newton steps until it keeps the promise or they stall.

    They start at the value `start`, or at the optimal value of the prior. Returns the number of
    products with Tγ D Tγᵀ.
    """
    from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

    problem, equations = best.problem, equations or NormalEquations(best)
    mdp, expert, prior, a = problem.mdp, problem.expert, problem.prior, 2 * problem.alpha
    low, high = ends_of(problem)
    matrix = (mdp.transitions.data, mdp.transitions.indices, mdp.transitions.indptr, mdp.state_starts, mdp.discount)
    n = mdp.n_pairs
    floor = floor_of(problem)
    inner_prior = np.clip(prior, low, high)
    target = flow_of(mdp, expert)
    raw, mu, slopes, anchor = np.empty(n), np.empty(n), np.empty(n), expert
    tau = max(10 * a, float(np.sqrt(np.mean(expert**2))))
    damping, products, steps_at_tau = 1e-3, 0, 0

    if start is None:
        start, _ = value_iteration(mdp, inner_prior, first_accuracy(problem))
    u = start
    z = cost_of_value(mdp, u)

    def respond() -> tuple[FloatArray, float]:
        """Let μ answer z; return the gradient Tγ(μ_E - μ) and its ℓ1-norm, the flow residual."""
        _newton.prox(z, anchor, expert, prior, low, high, a, tau, raw, mu, slopes)
        gradient = target - flow_of(mdp, mu)
        return gradient, float(np.abs(gradient).sum())

    def offer_repaired(cost: FloatArray, tolerance: float) -> None:
        """Offer μ repaired, blended with the best occupancy so far."""
        other = repaired(problem, mu, max(tolerance, 1e-12))
        share = _newton.blend(best.occupancy, other, expert, prior, low, high, a)
        best.offer(cost, u, best.occupancy + share * (other - best.occupancy))

    # For a large α the prior is nearly optimal, and so is a mixture of the expert with the policy
    # that the prior asks for.
    best.offer(inner_prior, u, expert)
    gradient, residual = respond()
    offer_repaired(inner_prior, 1e-3 * best.gap)

    gaps = [best.gap]
    while not best.keeps(promise) and len(gaps) <= MAX_STEPS and not best.out_of_time():
        if len(gaps) > PATIENCE and best.gap > 0.5 * gaps[-1 - PATIENCE]:
            break
        # (Tγ D Tγᵀ + damping) du = gradient, to an accuracy that follows the residual.
        steps_at_tau += 1
        _newton.wake_idle_states(mdp.state_starts, raw, slopes, a * tau / (a + tau) if a > 0 else tau)
        ridge = damping * _newton.normal_diagonal(*matrix, slopes)
        step, forcing = np.zeros(mdp.n_states), min(0.3, max(residual, 1e-3))
        equations.at(slopes, ridge, 0.0)
        products += equations.solve(gradient, step, forcing * residual)
        # The line search, and the damping by its length.
        z_step = cost_of_value(mdp, step)
        length = _newton.line_search(z, z_step, dot(target, step), anchor, expert, prior, low, high, a, tau)
        u = u + length * step
        z += length * z_step
        if length > 0.5:
            damping = max(0.25 * damping, 1e-10)
        elif length < 0.1:
            damping = min(8.0 * damping, 1.0)
        gradient, residual = respond()

        # The best cost for u, with μ as it is and with μ repaired.
        cost = np.clip(np.maximum(z, floor), low, high)
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
