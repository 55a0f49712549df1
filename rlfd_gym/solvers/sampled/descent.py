r"""Algorithm 1 on draws, with everything that is known taken out of its estimators.

Of the gradients of L(c, u, μ) = Ω(c) + <μ_E - μ, c> - <u, ν₀ - Tγμ>,

    ∇_c = ∇Ω(c) + μ_E - μ,     ∇_u = Tγμ - ν₀,     -∇_μ = c - Tγᵀu,

only Pᵀμ and Pu have to be estimated. One next state s'_i of each pair, drawn afresh in every step,
gives both without bias, Σ μ_i e_{s'_i} and u(s'_i), with much less variance than pairs drawn at
random: sampling is stratified, and the draws serve all runs, which differ in their step sizes only.
The steps are those of Algorithm 1 with step sizes of their own for c, u and μ: a proximal step for
c, with the penalty taken exactly,

    c ← clip((c + 2αη ĉ - η(μ_E - μ))/(1 + 2αη))   (ℓ2),   a soft threshold around ĉ   (ℓ1),

a projected step for u and a multiplicative one for μ, for which a constant added to the gradient
changes nothing. Runs are averaged over the last call of `learn`. They are judged by the gap of the
repaired average under the tables of all draws so far: the policy of μ, with the best of c, the
best answer to its occupancy and the best cost for the value V*_c (see
`rlfd_gym.solvers.smd.stages`). Those steps are kept that give the smaller gaps: each call halves
the number of runs, and shortens the steps for its larger number.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import shares
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.solvers.sampled.certificate import Candidate
from rlfd_gym.solvers.sampled.draws import Oracle, counted, tables_of

SIZES_U = (0.1, 1.0, 10.0, 100.0)  # of steps for c and u, and of steps for μ, relative to their natural scale
SIZES_MU = (1.0, 10.0, 100.0, 1000.0)
SHRINK = math.sqrt(3.0)  # a call of `learn` makes three times the steps of that before
KEPT = 1_000_000  # draws that are counted at a time


class Descent:
    """Runs of Algorithm 1 side by side, to be continued by `learn`.

    Args:
        problem: the problem.
        oracle: where next states come from.
    """

    def __init__(self, problem: BlackBoxProblem, oracle: Oracle) -> None:
        """Start all runs at the prior, a value of zero and the uniform occupancy."""
        self.problem, self.oracle = problem, oracle
        sizes = np.array([(a, b) for a in SIZES_U for b in SIZES_MU])
        n, runs = problem.n_pairs, len(sizes)
        self.cost = np.tile(np.clip(problem.prior, -1.0, 1.0), (runs, 1))
        self.value = np.zeros((runs, problem.n_states))
        self.logits = np.zeros((runs, n))
        gamma = problem.discount
        self.eta_u = sizes[:, :1] * (1 - gamma)
        self.eta_mu = sizes[:, 1:] * (1 - gamma) * math.log(n + 1)

    def learn(self, counts: sp.csr_array, budget: int) -> tuple[FloatArray, FloatArray, sp.csr_array]:
        """Make steps with half of the budget; return a cost, a policy, and the counts of all draws."""
        problem = self.problem
        steps = max(1, budget // (2 * problem.n_pairs))
        sums, counts = self._steps(steps, counts)
        tables = tables_of(problem, counts, self.oracle.absorbing)
        judged = [
            self._repaired(tables, counts, *point) for point in zip(*(each / steps for each in sums), strict=True)
        ]
        order = np.argsort([gap for gap, _, _ in judged], kind="stable")
        _, cost, policy = judged[order[0]]
        kept = np.sort(order[: max(1, (len(order) + 1) // 2)])
        for name in ("cost", "value", "logits", "eta_u", "eta_mu"):
            setattr(self, name, getattr(self, name)[kept])
        self.eta_u, self.eta_mu = self.eta_u / SHRINK, self.eta_mu / SHRINK
        return cost, policy, counts

    def _steps(self, steps: int, counts: sp.csr_array) -> tuple[tuple[FloatArray, FloatArray], sp.csr_array]:
        """Make steps; return the sums of costs and occupancies, and the counts of all draws."""
        problem, gamma = self.problem, self.problem.discount
        pair_states, starts, n = problem.pair_states, problem.state_starts[:-1], problem.n_pairs
        expert, initial, every = problem.expert_occupancy, problem.initial, np.arange(n)
        sums = np.zeros_like(self.cost), np.zeros_like(self.cost)
        at_once = max(1, min(steps, self.oracle.batch // n, KEPT // n))
        runs = np.arange(len(self.cost))[:, None] * problem.n_states
        for done in range(0, steps, at_once):
            size = min(at_once, steps - done)
            drawn = self.oracle.next_states(np.tile(every, size)).reshape(size, n)
            counts = counts + counted(np.tile(every, size), drawn.ravel(), counts.shape)
            for following in drawn:
                mu = np.exp(self.logits - self.logits.max(axis=1, keepdims=True))
                mu /= mu.sum(axis=1, keepdims=True)
                moved = np.bincount((runs + following).ravel(), weights=mu.ravel(), minlength=self.value.size)
                flow = (np.add.reduceat(mu, starts, axis=1) - gamma * moved.reshape(self.value.shape)) / (1 - gamma)
                slack = self.cost - (self.value[:, pair_states] - gamma * self.value[:, following]) / (1 - gamma)
                self.cost = self._proximal(self.cost - self.eta_u * (expert - mu))
                self.value = np.clip(self.value - self.eta_u * (flow - initial), -1.0, 1.0)
                self.logits = self.logits - self.eta_mu * slack
                self.logits -= self.logits.max(axis=1, keepdims=True)
                sums[0][...] += self.cost
                sums[1][...] += mu
        return sums, sp.csr_array(counts)

    def _proximal(self, moved: FloatArray) -> FloatArray:
        """Return the proximal step of the penalty, in the box."""
        belief = self.problem.belief
        if belief.norm == "l2":
            weight = 2 * belief.alpha * self.eta_u
            return np.clip((moved + weight * belief.prior) / (1 + weight), -1.0, 1.0)
        away, limit = moved - belief.prior, self.eta_u * belief.pair_alpha
        return np.clip(belief.prior + np.sign(away) * np.maximum(np.abs(away) - limit, 0.0), -1.0, 1.0)

    def _repaired(
        self, tables: TabularMDP, counts: sp.csr_array, cost: FloatArray, occupancy: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the gap of an average under the tables, and the better cost and the policy of it."""
        problem = self.problem
        policy, numbers = shares(occupancy, problem.state_starts), counts.sum(axis=1)

        def judged(cost: FloatArray) -> Candidate:
            return Candidate(problem, tables, numbers, self.oracle.known, cost, policy)

        first = judged(cost)
        floor = tables.flow_transpose(first.plan.value)
        least = problem.belief.best(problem.expert_occupancy)
        candidates = [first, judged(first.best_cost), judged(np.clip(np.maximum(least, floor), -1.0, 1.0))]
        gaps = [upper - lower for upper, lower in (candidate.believed() for candidate in candidates)]
        best = int(np.argmin(gaps))
        return gaps[best], candidates[best].cost, policy
