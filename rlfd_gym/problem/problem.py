r"""RLfD_α, the paper's regularised min-max problem, with a certificate for any candidate.

    min over c ∈ [-1,1]ⁿ, u ∈ [-1,1]^S   max over μ in the simplex
        L(c, u, μ) = α‖c - ĉ‖² + <μ_E - μ, c - Tγᵀu>

with n pairs, S states, the expert's occupancy μ_E, the prior ĉ and its weight α. It is the paper's
IO-AL_α without constraints: minimise α‖c - ĉ‖² + ρ_c(π_E) - ρ*_c over costs c, that is, the
distance to the prior plus the expert's regret. Other beliefs about the cost (`rlfd_gym.beliefs`)
have their own set of costs 𝒞 instead of the box, and their own penalty Ω(c) instead of α‖c - ĉ‖².
Where costs may leave [-1, 1], so may values: u is in [-M, M]^S, with M the largest cost in 𝒞.

**The duality gap has a closed form.** Let q = c - Tγᵀu (the slack), d = μ_E - μ, and c* the cost
that is the best answer to μ: the belief's inner minimum. Maximising over μ and minimising over
(c, u) give

    upper = Ω(c) + <μ_E, q> - minᵢ qᵢ            lower = Ω(c*) + <d, c*> - M‖Tγ d‖₁

and lower ≤ optimum ≤ upper for every feasible point. Their difference is computed as the sum of
three terms, none of them negative, so that a small gap is not lost in the rounding of two large
bounds:

    gap = Ω(c) + <d, c> - Ω(c*) - <d, c*>    the belief's excess: how far is c from the best
                                             answer to μ?
        + <μ, q - min q>                     complementary slackness: is μ optimal for c?
        + M‖Tγ d‖₁ - <u, Tγ d>               is μ an occupancy?

This follows from <μ_E, q> = <μ, q> + <d, c> - <u, Tγ d>. Algorithm 1 has a compiled version of
this sum in `rlfd_gym.solvers.smd.measure`, for its records. The convergence theorem of Algorithm 1
is in `rlfd_gym.problem.theorem`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief, Hull, NearPrior
from rlfd_gym.beliefs.belief import FEASIBILITY, in_box
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA, NORMS
from rlfd_gym.mdp.occupancy import check_occupancy, cost_of_value, flow_of
from rlfd_gym.mdp.pairs import dot
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.protocol import Point, Problem, checksums


@dataclass(frozen=True, eq=False, init=False)
class RLfDProblem(Problem):
    """The learning problem: an MDP, an expert, and what is believed about the cost.

    `prior` and `alpha` are short for `belief=NearPrior(prior, alpha)`.

    Args:
        mdp: the environment's tables.
        expert: μ_E, the expert's occupancy over pairs: exact, such as `mdp.occupancy_of(policy)`, or
            estimated by `occupancy_from_demonstrations`.
        prior: ĉ, the guess of the cost over pairs, in [-1, 1]; `rlfd_gym.experts.CostScale` converts
            money. `None` needs `alpha=0`.
        alpha: α ≥ 0. At 0 the expert is imitated and the prior ignored; the larger α is, the more
            the prior decides. By default 0.01 with a prior (`DEFAULT_ALPHA`) and 0 without.
        regulariser: "l2" for α‖c - ĉ‖², "l1" for α‖c - ĉ‖₁, which keeps most pairs exactly at the
            prior. The two need different α, see `rlfd_gym.solvers.reweighted`.
        belief: any belief of `rlfd_gym.beliefs`, instead of the three arguments before.

    Attributes:
        n_pairs: the number of pairs of `mdp`.
        n_states: the number of states of `mdp`.
        discount: γ of `mdp`.
        state_starts: the pairs of state s are state_starts[s] … state_starts[s+1]-1.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=0.1)
        >>> cost, value = np.clip(problem.prior, -1, 1), np.zeros(problem.n_states)
        >>> upper, lower = problem.bounds(cost, value, problem.expert)
        >>> gap = problem.duality_gap(cost, value, problem.expert)
        >>> abs(upper - lower - gap) < 1e-12 < gap
        True
    """

    mdp: TabularMDP
    expert: FloatArray = field(repr=False)
    belief: Belief
    n_pairs: int = field(repr=False)
    n_states: int = field(repr=False)
    discount: float = field(repr=False)
    state_starts: IntArray = field(repr=False)

    def __init__(
        self,
        mdp: TabularMDP,
        expert: ArrayLike,
        prior: ArrayLike | None = None,
        alpha: float | None = None,
        regulariser: str = "l2",
        *,
        belief: Belief | None = None,
    ) -> None:
        """Check and copy the arguments."""
        _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
        if isinstance(prior, Belief):
            raise TypeError(f"prior must be a cost over pairs, got {type(prior).__name__}: give a belief as belief=")
        mu = check_occupancy(mdp, expert, "expert").copy()
        _checks.one_of("regulariser", regulariser, NORMS)
        if belief is None:
            belief = near_prior(prior, alpha, regulariser, mdp.n_pairs)
        elif prior is not None or alpha is not None or regulariser != "l2":
            raise ValueError("belief and prior exclude each other: give the prior, its alpha and norm to the belief")
        else:
            _checks.instance("belief", belief, Belief, "see rlfd_gym.beliefs")  # type: ignore[type-abstract]
        sizes = {name: getattr(mdp, name) for name in ("n_pairs", "n_states", "discount", "state_starts")}
        self._fill(mdp=mdp, expert=mu, belief=belief.over(mdp), **sizes)

    def with_belief(self, belief: Belief) -> RLfDProblem:
        """Return the same problem, with the same expert to the bit, under another belief."""
        _checks.instance("belief", belief, Belief, "see rlfd_gym.beliefs")  # type: ignore[type-abstract]
        problem = object.__new__(RLfDProblem)
        problem._fill(**vars(self) | {"belief": belief.over(self.mdp)})
        return problem

    def with_alpha(self, alpha: float) -> RLfDProblem:
        """Return the same problem with another α."""
        return self.with_belief(self.belief.with_alpha(alpha))

    def penalty(self, x: ArrayLike) -> float:
        """Return the belief's penalty, such as α‖c - ĉ‖² or Σᵢ αᵢ|cᵢ - ĉᵢ|."""
        return self.belief.penalty(coordinates(self.mdp, self.belief, x))

    def lagrangian(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> float:
        """Return L(c, u, μ).

        Here and below, x is the cost c or, for a hull, the mixture w, or the prices.
        """
        x, u, mu = self._point(x, value, occupancy)
        c = self.belief.cost(x)
        return float(self.belief.penalty(x) + dot(self.expert - mu, c - self.mdp.flow_transpose(u)))

    def gradients(
        self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return (∇_x L, ∇_u L, -∇_μ L), each of which Algorithm 1 estimates and descends."""
        x, u, mu = self._point(x, value, occupancy)
        d = self.expert - mu
        return self.belief.gradient(x, d), -self.mdp.flow(d), self.belief.cost(x) - self.mdp.flow_transpose(u)

    def best_cost(self, occupancy: ArrayLike) -> FloatArray:
        """Return the best answer to an occupancy: the cost that minimises L for this μ."""
        d = self.expert - self.mdp.pairs(occupancy, "occupancy")
        return self.belief.cost(self.belief.best(d))

    def bounds(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """Return (upper, lower): certified bounds on the optimum, from a feasible point."""
        upper, gap = self._upper_and_gap(x, value, occupancy)
        return upper, upper - gap

    def duality_gap(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> float:
        """Return a bound on how far the point is from optimal, in the value of the problem."""
        return self._upper_and_gap(x, value, occupancy)[1]

    def _upper_and_gap(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """Return the upper bound, and the gap as the sum of its three terms."""
        x, u, mu = self._feasible_point(x, value, occupancy)
        c, d = self.belief.cost(x), self.expert - mu
        q, imbalance = c - cost_of_value(self.mdp, u), flow_of(self.mdp, d)
        upper = self.belief.penalty(x) + dot(self.expert, q) - q.min()
        unbalanced = self.belief.largest * np.abs(imbalance).sum()
        gap = self.belief.excess(x, d) + dot(mu, q - q.min()) + unbalanced - dot(u, imbalance)
        return float(upper), float(max(gap, 0.0))

    def _point(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> Point:
        """Return the point as vectors of the right lengths."""
        x = coordinates(self.mdp, self.belief, x)
        u = _checks.finite_vector("value", value, self.n_states, "state (mdp.n_states)")
        return Point(x, u, self.mdp.pairs(occupancy, "occupancy"))

    def _feasible_point(self, x: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> Point:
        """Return the point with rounding removed, or raise an error if it is not in its sets.

        The bounds only hold for points in these sets.
        """
        x, u, mu = self._point(x, value, occupancy)
        x, u = self.belief.check(x), in_box("value", u, self.belief.largest)
        if mu.min() < -FEASIBILITY or abs(mu.sum() - 1) > FEASIBILITY * max(1, self.n_pairs) ** 0.5:
            raise ValueError(
                f"occupancy must be a probability vector for bounds to hold; its least entry is {mu.min()} "
                f"and it sums to {mu.sum()}"
            )
        return Point(x, u, np.maximum(mu, 0.0))

    @property
    def pair_states(self) -> IntArray:
        """The state of each pair."""
        return self.mdp.pair_states

    @property
    def row_starts(self) -> IntArray:
        """Where the transitions of each pair begin in the tables."""
        return self.mdp.transitions.indptr

    @cached_property
    def world_sums(self) -> tuple[int, ...]:
        """The checksums of the tables and of the expert's occupancy."""
        mdp, p = self.mdp, self.mdp.transitions
        tables = (p.data, p.indices, p.indptr, mdp.pair_states, mdp.pair_actions, mdp.initial)
        return checksums(*tables, self.expert)


def coordinates(mdp: TabularMDP, belief: Belief, x: ArrayLike) -> FloatArray:
    """Return the belief's variable as a vector of the right length; a cost may be a table."""
    if getattr(x, "ndim", None) == 2 or (isinstance(x, (list, tuple)) and x and np.ndim(x[0]) == 1):
        x = mdp.pairs(x, "cost")
    return belief.vector(x)


def near_prior(prior: ArrayLike | None, alpha: float | None, norm: str, n_pairs: int) -> NearPrior:
    """Return the belief that `prior` and `alpha` are short for.

    Without a prior α must be 0, so that ĉ does not matter. With one, `None` means `DEFAULT_ALPHA`.
    """
    if alpha is None:
        if prior is not None and norm == "l1":
            raise ValueError('alpha has no default with regulariser="l1": see rlfd_gym.pinning_alpha for its range')
        alpha = 0.0 if prior is None else DEFAULT_ALPHA
    weight = _checks.number("alpha", alpha, 0.0)
    if prior is None and weight > 0:
        raise ValueError(f"prior is None, so alpha must be 0, got {alpha!r}")
    return NearPrior(np.zeros(n_pairs) if prior is None else prior, weight, norm)


def HullProblem(problem: RLfDProblem, basis: ArrayLike) -> RLfDProblem:
    """Return the problem with the cost restricted to the hull of a basis.

    Its belief is a `Hull` with the same prior and α.

    Example:
        >>> from rlfd_gym.beliefs import scale_basis
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=0)
        >>> hull = HullProblem(problem, scale_basis(examples.inventory_env().features))
        >>> uniform = np.full(problem.n_pairs, 1 / problem.n_pairs)
        >>> upper, lower = hull.bounds([0, 0, 1], np.zeros(problem.n_states), uniform)
        >>> bool(lower < 0 < upper)
        True
    """
    _checks.instance("problem", problem, RLfDProblem)
    if problem.regulariser != "l2":
        raise ValueError(f'problem must have regulariser="l2" on a hull, got {problem.regulariser!r}')
    return problem.with_belief(Hull(basis, problem.prior, problem.alpha))
