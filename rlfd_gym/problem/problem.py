r"""RLfD_α, the regularised min-max problem of the paper, and a certificate for any candidate answer.

    min over c ∈ [-1,1]ⁿ, u ∈ [-1,1]^S   max over μ in the simplex
        L(c, u, μ) = α‖c - ĉ‖² + <μ_E - μ, c - Tγᵀu>

with n pairs, S states, the expert's occupancy μ_E, the prior ĉ and its weight α. It is IO-AL_α of the paper without
constraints: α‖c - ĉ‖² + ρ_c(π_E) - ρ*_c over costs c, the distance to the prior plus the expert's regret.

**The duality gap is closed form.** Let q = c - Tγᵀu (the slack), d = μ_E - μ and c*(μ) the cost that answers μ best,
c*ᵢ = clip(ĉᵢ - dᵢ/2α, -1, 1), or -sign(dᵢ) for α = 0. Maximising over μ and minimising over (c, u) give

    upper = α‖c - ĉ‖² + <μ_E, q> - minᵢ qᵢ            lower = α‖c* - ĉ‖² + <d, c*> - ‖Tγ d‖₁

and lower ≤ optimum ≤ upper for every feasible point. Their difference is computed as the sum of three terms, none of
them negative, so that a small gap is not lost in the rounding of two large bounds:

    gap = Σᵢ (cᵢ - c*ᵢ) (α (cᵢ + c*ᵢ - 2ĉᵢ) + dᵢ)     how far the cost is from the best answer to μ
        + <μ, q - min q>                              complementary slackness: is μ optimal for c?
        + ‖Tγ d‖₁ - <u, Tγ d>                         is μ an occupancy?

(from <μ_E, q> = <μ, q> + <d, c> - <u, Tγ d>).

**The convergence theorem.** Algorithm 1 with η_cu = ε/(4 v_cu) and η_μ = ε/(4 v_μ) has an expected gap of at most ε
after T = max{16 (n+S) / (ε η_cu), 8 log n / (ε η_μ)} steps, where v_cu and v_μ bound the second moments of the gradient
estimators. The paper's lemma for v_μ = n (2 + 4(1+γ²)/(1-γ)²) holds. Its lemma for (c, u),

    v_cu = 64 α² n + 4(1+γ²)/(1-γ)² + 8,

does not: it squares n · 2α(cᵢ - ĉᵢ) but keeps n only once. Here is a bound that holds (`bound="corrected"`). The
estimator for c is a eᵢ + w with a = 2αn(cᵢ - ĉᵢ), i uniform, and w = e_{i_E} - e_{i_t} drawn independently of i. Let
D = 1 + max|ĉ|, so that |cᵢ - ĉᵢ| ≤ D on the box. Then

    E‖a eᵢ + w‖² = E a² + 2 E[a wᵢ] + E‖w‖²,
    E a²     = 4α²n² · mean (cᵢ - ĉᵢ)²  ≤ 4α²n²D²,
    2 E[a wᵢ] = 2 · (1/n) Σᵢ 2αn(cᵢ - ĉᵢ)(μ_E - μ)ᵢ ≤ 4αD ‖μ_E - μ‖₁ ≤ 8αD,      E‖w‖² ≤ 2.

The estimator for u is (x - y)/(1-γ) with x = e_s - γ e_s', y likewise. Its entries are at most 1+γ in absolute value
and their absolute values add up to at most 2(1+γ), so ‖x - y‖² ≤ 2(1+γ)². The two parts are orthogonal, hence

    v_cu = 4α²n²D² + 8αD + 2 + 2(1+γ)²/(1-γ)².

A prior outside the box is allowed; `bound="paper"` then replaces the 2 that it has for max|c - ĉ| by max(2, D).

**`regulariser="l1"`** has α‖c - ĉ‖₁, or Σᵢ αᵢ|cᵢ - ĉᵢ| with αᵢ = α · weightsᵢ, in the place of α‖c - ĉ‖², and leaves
the cost exactly at the prior where there is no strong reason to move it. The best answer stays at the prior, cut to the
box, while |dᵢ| ≤ αᵢ, and is the end -sign(dᵢ) of the box beyond. The slope of αᵢ|x - ĉᵢ| + dᵢx is dᵢ - αᵢ left of ĉᵢ
and dᵢ + αᵢ right of it. Integrated from c*ᵢ to cᵢ, the first term of the gap is

    Σᵢ (dᵢ + αᵢ) (max(cᵢ, ĉᵢ) - max(c*ᵢ, ĉᵢ)) + (dᵢ - αᵢ) (min(cᵢ, ĉᵢ) - min(c*ᵢ, ĉᵢ)),

again without a negative summand. The subgradient has α sign(cᵢ - ĉᵢ), which at the kink is 0, the shortest there is.
Its estimator has a = αn sign(cᵢ - ĉᵢ), so E a² ≤ α²n², 2 E[a wᵢ] ≤ 2α‖μ_E - μ‖₁ ≤ 4α, and

    v_cu = α²n² + 4α + 2 + 2(1+γ)²/(1-γ)².

The paper has no lemma for this one. The theorem's proof needs convexity and second moments only, so it carries over.
What α means here, and how to choose it, is in `rlfd_gym.solvers.reweighted`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.tables import TabularMDP

BOUNDS = ("corrected", "paper")
REGULARISERS = ("l2", "l1")
FEASIBILITY = 1e-9  # how far outside its set a point may be by rounding


class ConvergenceTheorem:
    """The convergence theorem of Algorithm 1, for any problem that has these sizes. See the module's docstring."""

    n_pairs: int
    n_states: int
    discount: float
    prior: FloatArray
    alpha: float
    regulariser: str = "l2"
    STEPS: ClassVar[tuple[str, ...]] = ("cost and value", "occupancy")  # what has a step size of its own

    def second_moments(self, bound: str = "corrected") -> tuple[float, float]:
        """(v_cu, v_μ), the bounds on the second moments of the two gradient estimators."""
        _checks.one_of("bound", bound, BOUNDS)
        n, gamma, alpha = self.n_pairs, self.discount, self.alpha
        distance = 1.0 + float(np.abs(self.prior).max())
        if self.regulariser == "l1":
            if bound == "paper":
                raise ValueError('bound="paper" is a lemma on regulariser="l2"; for "l1" there is bound="corrected"')
            v_cu = (alpha * n) ** 2 + 4 * alpha + 2 + 2 * ((1 + gamma) / (1 - gamma)) ** 2
        elif bound == "paper":
            v_cu = 16 * alpha**2 * n * max(2.0, distance) ** 2 + 4 * (1 + gamma**2) / (1 - gamma) ** 2 + 8
        else:
            v_cu = 4 * (alpha * n * distance) ** 2 + 8 * alpha * distance + 2 + 2 * ((1 + gamma) / (1 - gamma)) ** 2
        return v_cu, n * (2 + 4 * (1 + gamma**2) / (1 - gamma) ** 2)

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, float]:
        """(η_cu, η_μ) of the convergence theorem for an expected gap of at most `epsilon`."""
        accuracy = _checks.number("epsilon", epsilon, 0.0, np.inf, open_ends=True)
        v_cu, v_mu = self.second_moments(bound)
        return accuracy / (4 * v_cu), accuracy / (4 * v_mu)

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """T of the convergence theorem: after as many steps of those sizes the expected gap is at most `epsilon`."""
        accuracy = _checks.number("epsilon", epsilon, 0.0, np.inf, open_ends=True)
        return max(1, math.ceil(self._steps_times_accuracy_squared(bound) / accuracy**2))

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """The ε that the theorem promises after `n_iterations` steps of its sizes: `iterations`, inverted."""
        steps = _checks.integer("n_iterations", n_iterations, 1)
        return math.sqrt(self._steps_times_accuracy_squared(bound) / steps)

    def _steps_times_accuracy_squared(self, bound: str) -> float:
        """T ε², which does not depend on ε."""
        v_cu, v_mu = self.second_moments(bound)
        return max(64 * (self.n_pairs + self.n_states) * v_cu, 32 * math.log(self.n_pairs) * v_mu)


@dataclass(frozen=True, eq=False)
class RLfDProblem(ConvergenceTheorem):
    """The learning problem: an MDP, an expert, a prior cost and how much the prior weighs.

    Args:
        mdp: the environment's tables.
        expert: μ_E, the expert's occupancy over pairs: exact, or estimated from demonstrations.
        prior: ĉ, the guess of the cost over pairs; it may leave [-1, 1]. `None` needs `alpha=0`.
        alpha: α ≥ 0. At 0 the expert is imitated; the larger, the more the prior decides.
        regulariser: "l2" for α‖c - ĉ‖², "l1" for α‖c - ĉ‖₁, which keeps most pairs exactly at the prior. The two need
            different α, see `rlfd_gym.solvers.reweighted`.
        weights: with "l1" and `solve_exact`, how much the prior of each pair weighs, as a multiple of `alpha`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> problem = RLfDProblem(env.mdp, expert, prior=env.cost_for(4, 2, 14), alpha=0.1)
        >>> constant = np.zeros(env.mdp.n_states)
        >>> upper, lower = problem.bounds(np.clip(problem.prior, -1, 1), constant, expert)
        >>> gap = problem.duality_gap(np.clip(problem.prior, -1, 1), constant, expert)
        >>> abs(upper - lower - gap) < 1e-12 < gap
        True
    """

    mdp: TabularMDP
    expert: FloatArray = field(repr=False)
    prior: FloatArray = field(repr=False)
    alpha: float
    n_pairs: int
    n_states: int
    discount: float
    regulariser: str = "l2"
    weights: FloatArray | None = field(default=None, repr=False)

    def __init__(
        self,
        mdp: TabularMDP,
        expert: ArrayLike,
        prior: ArrayLike | None = None,
        alpha: float = 0.0,
        regulariser: str = "l2",
        weights: ArrayLike | None = None,
    ) -> None:
        """Check and copy."""
        if not isinstance(mdp, TabularMDP):
            raise TypeError(f"mdp must be a TabularMDP, got {type(mdp).__name__}; see TabularMDP.from_env")
        mu = _checks.distribution("expert", expert, mdp.n_pairs, "feasible state-action pair (mdp.n_pairs)").copy()
        guess, weight = _checks.prior_and_alpha(prior, alpha, mdp.n_pairs)
        _checks.one_of("regulariser", regulariser, REGULARISERS)
        if weights is not None:
            if regulariser != "l1":
                raise ValueError(f'weights need regulariser="l1", got {regulariser!r}')
            weights = _checks.nonnegative("weights", _checks.pair_vector("weights", weights, mdp.n_pairs)).copy()
        values = {"mdp": mdp, "expert": mu, "prior": guess, "alpha": weight}
        values |= {"regulariser": regulariser, "weights": weights}
        sizes = {"n_pairs": mdp.n_pairs, "n_states": mdp.n_states, "discount": mdp.discount}
        for name, value in (values | sizes).items():
            object.__setattr__(self, name, value)
        _checks.lock(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickled arrays are writeable: lock them again."""
        self.__dict__.update(state)
        _checks.lock(self)

    def with_alpha(self, alpha: float) -> RLfDProblem:
        """The same problem with another α."""
        return RLfDProblem(self.mdp, self.expert, self.prior, alpha, self.regulariser, self.weights)

    @property
    def pair_alpha(self) -> FloatArray:
        """αᵢ, how much the prior of each pair weighs."""
        return self.alpha * (np.ones(self.n_pairs) if self.weights is None else self.weights)

    def second_moments(self, bound: str = "corrected") -> tuple[float, float]:
        """(v_cu, v_μ), the bounds on the second moments of the two gradient estimators."""
        if self.weights is not None:
            raise ValueError("weights: Algorithm 1 and its theorem take none; use solve_exact")
        return super().second_moments(bound)

    def penalty(self, cost: FloatArray) -> float:
        """The distance to the prior in RLfD_α: α‖c - ĉ‖² or Σᵢ αᵢ|cᵢ - ĉᵢ|."""
        if self.regulariser == "l1":
            return float(self.pair_alpha @ np.abs(cost - self.prior))
        return float(self.alpha * np.sum((cost - self.prior) ** 2))

    def lagrangian(self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> float:
        """L(c, u, μ)."""
        c, u, mu = self._point(cost, value, occupancy)
        return float(self.penalty(c) + (self.expert - mu) @ (c - self.mdp.flow_transpose(u)))

    def gradients(
        self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(∇_c L, ∇_u L, -∇_μ L): the directions that Algorithm 1 estimates, each to be descended.

        With "l1" the first is a subgradient, the penalty's part of which is 0 where c = ĉ.
        """
        c, u, mu = self._point(cost, value, occupancy)
        d = self.expert - mu
        l1 = self.regulariser == "l1"
        pull = self.pair_alpha * np.sign(c - self.prior) if l1 else 2 * self.alpha * (c - self.prior)
        return pull + d, -self.mdp.flow(d), c - self.mdp.flow_transpose(u)

    def best_cost(self, occupancy: ArrayLike) -> FloatArray:
        """c*(μ), the cost in the box that minimises L for this μ.

        Where several do, it is the prior cut to the box with "l1", and 0 with "l2" (where it takes α = 0).
        """
        d = self.expert - np.asarray(occupancy, dtype=np.float64)
        if self.regulariser == "l1":
            return np.where(np.abs(d) <= self.pair_alpha, np.clip(self.prior, -1.0, 1.0), -np.sign(d))
        if self.alpha == 0:
            return -np.sign(d)
        return np.clip(self.prior - d / (2 * self.alpha), -1.0, 1.0)

    def bounds(self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """(upper, lower): certified bounds on the optimum of RLfD_α, from a feasible point."""
        upper, gap = self._upper_and_gap(cost, value, occupancy)
        return upper, upper - gap

    def duality_gap(self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> float:
        """How far the point may be from optimal: at most this much in the value of RLfD_α."""
        return self._upper_and_gap(cost, value, occupancy)[1]

    def _upper_and_gap(self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """The upper bound, and the gap as the sum of its three terms."""
        c, u, mu = self._feasible_point(cost, value, occupancy)
        return self._upper_and_sum(c, u, mu, self._excess(c, self.best_cost(mu), self.expert - mu))

    def _upper_and_sum(self, c: FloatArray, u: FloatArray, mu: FloatArray, excess: float) -> tuple[float, float]:
        """The upper bound, and the gap from its first term: how far the cost is from the best answer to μ."""
        q = c - self.mdp.flow_transpose(u)
        imbalance = self.mdp.flow(self.expert - mu)
        upper = self.penalty(c) + self.expert @ q - q.min()
        gap = excess + mu @ (q - q.min()) + np.abs(imbalance).sum() - u @ imbalance
        return float(upper), float(max(gap, 0.0))

    def _excess(self, c: FloatArray, best: FloatArray, d: FloatArray) -> float:
        """The first term of the gap: by how much L falls between c and the best answer, without a negative summand."""
        if self.regulariser == "l1":
            alpha, prior = self.pair_alpha, self.prior
            above = (d + alpha) * (np.maximum(c, prior) - np.maximum(best, prior))
            return float(np.sum(above + (d - alpha) * (np.minimum(c, prior) - np.minimum(best, prior))))
        return float(np.sum((c - best) * (self.alpha * (c + best - 2 * self.prior) + d)))

    def _point(
        self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        n, n_states = self.mdp.n_pairs, self.mdp.n_states
        return (
            _checks.pair_vector("cost", cost, n),
            _checks.finite_vector("value", value, n_states, "state (mdp.n_states)"),
            _checks.pair_vector("occupancy", occupancy, n),
        )

    def _feasible_point(
        self, cost: ArrayLike, value: ArrayLike, occupancy: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The point itself, if it is in the box and the simplex: for others the bounds would mean nothing."""
        c, u, mu = self._point(cost, value, occupancy)
        for name, vector in (("cost", c), ("value", u)):
            worst = int(np.argmax(np.abs(vector)))
            if abs(vector[worst]) > 1 + FEASIBILITY:
                raise ValueError(f"{name} must lie in [-1, 1] for bounds to hold; entry {worst} is {vector[worst]}")
        if mu.min() < -FEASIBILITY or abs(mu.sum() - 1) > FEASIBILITY * max(1, self.mdp.n_pairs) ** 0.5:
            raise ValueError(
                f"occupancy must be a probability vector for bounds to hold; its least entry is {mu.min()} "
                f"and it sums to {mu.sum()}"
            )
        return np.clip(c, -1, 1), np.clip(u, -1, 1), np.maximum(mu, 0.0)
