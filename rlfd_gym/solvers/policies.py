r"""Solve large problems by mixing policies: quick where the prior weighs much.

The dual of `rlfd_gym.solvers.matrix_free` minimises h(μ) over the occupancies with the flow of the
expert. If that flow has no negative entry, so that one can start from it, these are exactly the
mixtures of the occupancies of deterministic policies. Conditional gradients with full correction
(Frank and Wolfe's method) find the mixture, one policy at a time:

1. The best answer to the mixture μ is the cost c = h'(μ).
2. Planning for c gives its optimal value u and a policy. (c, u) is an upper bound, μ a lower one.
3. The occupancy of the policy joins the others, and the mixture of all of them that minimises h is
   the next one. This is a quadratic program in as many numbers as there are policies; where the
   cost meets its box, some Newton steps solve it.

The curvature of h is 1/(2α), so a single policy is as good as optimal where α is large, and
thousands are mixed where it is small: there the method soon gives up, because the gap falls too
slowly, and leaves its point to the other methods. No system with Tγ D Tγᵀ is solved, whose
condition is about 1/(1-γ)². Policies are evaluated instead, whose systems have the root of that.

Planning begins at the value for the cost before, see `rlfd_gym.mdp.iteration`.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.forward import value_iteration
from rlfd_gym.mdp.occupancy import cost_of_value, occupancy_of
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.solvers.incumbent import Incumbent, Promise, floor_of

# (k, n): give up if, as fast as the last k did, more than n policies are needed; after fewer of them, if many more are.
BRIEFLY, THOROUGHLY = (1, 1), (3, 8)
MAX_NUMBERS = 250_000_000  # of all occupancies that are kept: 2 GB
MAX_POLICIES = 100
CORRECTIONS = 5  # Newton steps for the best mixture
UNUSED = 1e-7  # the weight of a policy that is left out of the mixture
BLOCK = 100_000  # pairs whose products are summed at a time


def first_accuracy(problem: RLfDProblem) -> float:
    """Return how accurate the value of the prior has to be.

    It is 1/(2αn), at which a difference in cost moves μ by μ's own size.
    """
    return max(0.1 / max(2 * problem.alpha * problem.n_pairs, 10.0), 1e-6)


class Policies:
    """A mixture of policies that improves an incumbent, one policy at a time.

    Needs a belief with a curvature (α > 0) and an expert from whose flow one can start. `first` is
    the optimal value of the prior, once it is known.
    """

    def __init__(self, best: Incumbent) -> None:
        """Begin with the expert's occupancy, and with the prior as the cost to plan for."""
        self.best, self.mixture, self.cost = best, _Mixture(best.problem), np.clip(best.problem.prior, -1.0, 1.0)
        self.value = best.problem.mdp.min_by_state(self.cost)
        self.first: FloatArray | None = None
        self.start = best.problem.mdp.flow(best.problem.expert)
        best.offer(self.cost, np.zeros(best.problem.n_states), best.problem.expert)

    def improve(self, promise: Promise, patience: tuple[int, int]) -> int:
        """Add policies until the promise is kept or too many are needed; return their number.

        `patience` is `BRIEFLY` or `THOROUGHLY`.
        """
        best, (recent, hope), gaps = self.best, patience, [self.best.gap]
        most = min(MAX_POLICIES, MAX_NUMBERS // best.problem.n_pairs)
        if self.first is not None and not best.keeps(promise):
            self._mix(best.occupancy)  # another method may have found it
        while not best.keeps(promise) and not best.out_of_time() and len(self.mixture.occupancies) < most:
            goal = promise(best.upper, best.lower)
            k = min(recent, len(gaps) - 1)
            if k > 0 and gaps[-1] * (gaps[-1] / gaps[-1 - k]) ** (hope * recent / k**2) > goal:
                break
            later = max(0.03 * goal, 1e-3 * best.gap)
            self._add(promise, first_accuracy(best.problem) if self.first is None else later)
            gaps.append(best.gap)
        return len(gaps) - 1

    def _add(self, promise: Promise, tolerance: float) -> None:
        """Plan for the best answer to the mixture, to within `tolerance`, and add the policy."""
        best, problem = self.best, self.best.problem
        mdp = problem.mdp
        self.value, policy = value_iteration(mdp, self.cost, tolerance, self.value, best.out_of_time)
        self.first = self.value if self.first is None else self.first
        # The cost that was planned for, and the best one for its value.
        for cost in (self.cost, np.maximum(cost_of_value(mdp, self.value), floor_of(problem))):
            best.offer(cost, self.value, self.mixture.mean)
            if best.keeps(promise) or best.out_of_time():
                return
        taken = np.zeros(mdp.n_pairs)
        taken[policy] = 1.0
        accuracy = max(1e-2 * promise(best.upper, best.lower), 1e-12)
        self._mix(occupancy_of(mdp, taken, source=self.start, tolerance=accuracy))

    def _mix(self, occupancy: FloatArray) -> None:
        """Add an occupancy to the mixture, and judge the new one."""
        self.mixture.add(occupancy)
        self.cost = self.best.problem.best_cost(self.mixture.mean)
        self.best.offer(self.cost, self.value, self.mixture.mean)


class _Mixture:
    """Occupancies, and the mixture of them with the best lower bound."""

    def __init__(self, problem: RLfDProblem) -> None:
        """Begin with the expert alone."""
        self.problem = problem
        self.occupancies = [problem.expert]
        self.weights = np.ones(1)
        self.mean = problem.expert

    def add(self, occupancy: FloatArray) -> None:
        """Add an occupancy, find the best mixture, and leave out what it does not use."""
        from rlfd_gym.solvers import _newton  # compiled: loaded only for problems that need it

        problem, a = self.problem, 2 * self.problem.alpha
        expert, prior, one = problem.expert, problem.prior, np.ones(problem.n_pairs)
        self.occupancies.append(occupancy)
        self.weights = np.append(self.weights, 0.0)
        for _ in range(CORRECTIONS):
            slope, hessian = self._derivatives(prior + (self.mean - expert) / a)
            target = _best_weights(self.weights, slope, hessian / a)
            mean = np.asarray(sum(w * mu for w, mu in zip(target, self.occupancies, strict=True) if w > 0))
            share = _newton.blend(self.mean, mean, expert, prior, -one, one, a)
            self.weights = self.weights + share * (target - self.weights)
            self.mean = self.mean + share * (mean - self.mean)
            if share == 1.0 or share == 0.0:
                break
        used = self.weights > 0
        self.occupancies = [mu for mu, use in zip(self.occupancies, used, strict=True) if use]
        self.weights = self.weights[used]

    def _derivatives(self, cost: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of h in the weights, the second times 2α, at an unclipped cost."""
        n = len(self.occupancies)
        slope, hessian = np.zeros(n), np.zeros((n, n))
        for first in range(0, cost.size, BLOCK):
            part = slice(first, first + BLOCK)
            rows = np.array([mu[part] for mu in self.occupancies])
            slope += rows @ np.clip(cost[part], -1.0, 1.0)
            hessian += (rows * (np.abs(cost[part]) < 1.0)) @ rows.T
        return slope, hessian


def _best_weights(weights: FloatArray, slope: FloatArray, hessian: FloatArray) -> FloatArray:
    """Return the weights in the simplex that minimise a quadratic model around the given ones."""
    import piqp  # compiled: loaded only when asked for

    n = weights.size
    gradient = slope - hessian @ weights
    gradient = gradient - gradient.min()  # a constant changes nothing on the simplex
    size = max(float(np.abs(hessian).max()), float(gradient.max())) or 1.0
    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = 1e-10
    ridge = 1e-12 * np.eye(n)
    solver.setup(
        hessian / size + ridge, gradient / size, np.ones((1, n)), np.ones(1), None, None, None, np.zeros(n), np.ones(n)
    )
    solver.solve()  # its verdict is ignored: the bounds say what the result is worth
    found = np.where(solver.result.x > UNUSED, solver.result.x, 0.0)
    return found / found.sum() if np.isfinite(found).all() and found.any() else weights
