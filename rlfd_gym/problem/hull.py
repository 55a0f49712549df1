r"""RLfD_α over the convex hull of a basis, as SMD-H in the paper: the cost is a mixture of given costs.

    min over w in a simplex, u ∈ [-1,1]^S   max over μ in the simplex
        L(Cw, u, μ) = α‖Cw - ĉ‖² + <μ_E - μ, Cw - Tγᵀu>

with a basis C of K columns in [-1,1]ⁿ. For α = 0 it is the problem of Kamoutsi et al. (2021) and the dual of LPAL
(Syed, Bowling and Schapire, 2008): the optimum is the margin by which an apprentice can beat the expert under every
cost of the hull at once.

**The duality gap** is that of `problem` in its second and third term. The first one, how far the cost is from the best
answer to μ, is f(w) - min f for f(w) = α‖Cw - ĉ‖² + <d, Cw> over the simplex: closed form for α = 0, where the best
answer is a single column, and otherwise a quadratic program in K variables, bounded with a certificate in `_simplex`.

**The estimator for w** is g = 2αn(Cᵢw - ĉᵢ) Cᵢ + C_e - C_j with i uniform, e ~ μ_E and j ~ μ (rows of C): that of the
paper for c, multiplied by Cᵀ. Adding a constant to all entries of g does not change the mirror step, so the dual norm
of the geometry is ‖g‖ = (max g - min g)/2. Let hᵢ be this norm of Cᵢ, and rᵢ = max_k |Cᵢₖ - ĉᵢ| ≥ |Cᵢw - ĉᵢ|. Then

    E‖g‖² ≤ v_w = (1/n) Σᵢ (2αn rᵢhᵢ + 2 max h)².

The estimators for u and μ are those of `problem`, with E‖g_u‖² ≤ v_u = 2((1+γ)/(1-γ))² from there, and for μ, each
of whose entries is drawn with probability 1/n and at most 2n/(1-γ), E gᵢ² ≤ v_μ = 4n/(1-γ)².

**A convergence theorem.** The expected gap is at most the sum of three expected regrets, each with its noise turned
into the regret of a second, imaginary sequence (as in the paper's proof). With the Bregman distance from the start at
most V, mirror descent by η has a regret of at most V/ηT + (η/2) E‖g‖² per step. So, after T steps,

    u:  V = 2S, twice, as the noise's second moment is at most v_u:                      4S/(η_u T) + η_u v_u
    w:  V = log K; the noise is at most 4v_w in this norm, its sequence steps by η/2:    3 log K/(η_w T) + (3/2) η_w v_w
    μ:  V = log n; in local norms with e^{-x} ≤ 1 - x + (2/3)x² on average of the
        two sequences, as |x| ≤ 1/2 for the one and ≤ 1 for the other:                   2 log n/(η_μ T) + (4/3) η_μ v_μ

Each is A/(ηT) + Bη, which is least, 2√(AB/T), for η = √(A/(BT)). Hence the expected gap is at most

    ε = (2/√T) (√(A_u B_u) + √(A_w B_w) + √(A_μ B_μ))           for T ≥ 6 n log n, which makes |x| ≤ 1/2 above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem


@dataclass(frozen=True, eq=False)
class HullProblem:
    """The problem of an `RLfDProblem` with the cost confined to the convex hull of a basis.

    Args:
        problem: the problem on the box.
        basis: C, (n_pairs, K), each column a cost in [-1, 1]; `basis.scale_basis` makes it so, which keeps the costs
            of the hull up to a positive factor each, but not their margins, nor their distance to a prior.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.beliefs.basis import scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> hull = HullProblem(rlfd_gym.RLfDProblem(env.mdp, expert), scale_basis(env.features))
        >>> uniform = np.full(env.mdp.n_pairs, 1 / env.mdp.n_pairs)
        >>> upper, lower = hull.bounds([0, 0, 1], np.zeros(env.mdp.n_states), uniform)
        >>> bool(lower < 0 < upper)
        True
    """

    problem: RLfDProblem
    basis: FloatArray = field(repr=False)
    mdp: TabularMDP = field(repr=False)
    expert: FloatArray = field(repr=False)
    prior: FloatArray = field(repr=False)
    alpha: float
    n_pairs: int
    n_states: int
    discount: float
    regulariser: ClassVar[str] = "l2"
    STEPS: ClassVar[tuple[str, ...]] = ("weights", "value", "occupancy")  # what has a step size of its own

    def __init__(self, problem: RLfDProblem, basis: ArrayLike) -> None:
        """Check and copy."""
        if not isinstance(problem, RLfDProblem):
            raise TypeError(f"problem must be an RLfDProblem, got {type(problem).__name__}")
        if problem.regulariser != "l2":
            raise ValueError(f'problem must have regulariser="l2" on a hull, got {problem.regulariser!r}')
        columns = np.clip(check_basis(basis, problem.n_pairs), -1.0, 1.0)  # outside by rounding at most
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "basis", np.ascontiguousarray(columns))
        for name in ("mdp", "expert", "prior", "alpha", "n_pairs", "n_states", "discount"):
            object.__setattr__(self, name, getattr(problem, name))
        _checks.lock(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickled arrays are writeable: lock them again."""
        self.__dict__.update(state)
        _checks.lock(self)

    def bounds(self, weights: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """(upper, lower): certified bounds on the optimum over the hull, from a feasible point."""
        upper, gap = self._upper_and_gap(weights, value, occupancy)
        return upper, upper - gap

    def duality_gap(self, weights: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> float:
        """How far the point may be from optimal: at most this much in the value of the problem."""
        return self._upper_and_gap(weights, value, occupancy)[1]

    def _upper_and_gap(self, weights: ArrayLike, value: ArrayLike, occupancy: ArrayLike) -> tuple[float, float]:
        """The upper bound, and the gap as the sum of its three terms."""
        from rlfd_gym.beliefs.simplex import excess_of  # compiled: loaded when needed

        w = _checks.distribution("weights", weights, self.basis.shape[1], "column of the basis")
        c, u, mu = self.problem._feasible_point(self.basis @ w, value, occupancy)
        linear = self.basis.T @ (self.expert - mu - 2 * self.alpha * self.prior)
        excess = excess_of(self.basis.T @ self.basis, linear, self.alpha, w)
        return self.problem._upper_and_sum(c, u, mu, excess)

    def second_moments(self) -> tuple[float, float, float]:
        """(v_w, v_u, v_μ), the bounds on the second moments of the three gradient estimators."""
        spread = np.ptp(self.basis, axis=1) / 2
        distance = np.abs(self.basis - self.prior[:, None]).max(axis=1)
        v_w = float(np.mean((2 * self.alpha * self.n_pairs * distance * spread + 2 * spread.max()) ** 2))
        v_u = 2 * ((1 + self.discount) / (1 - self.discount)) ** 2
        return v_w, v_u, 4 * self.n_pairs / (1 - self.discount) ** 2

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, float, float]:
        """(η_w, η_u, η_μ) of the convergence theorem for an expected gap of at most `epsilon`."""
        accuracy = _checks.number("epsilon", epsilon, 0.0, np.inf, open_ends=True)
        root = self._root(bound)  # √T ε
        w, u, mu = (math.sqrt(a / b) * accuracy / root if a * b > 0 else 0.0 for a, b in self._regrets())
        return w, u, mu

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """T of the convergence theorem: after as many steps of those sizes the expected gap is at most `epsilon`."""
        accuracy = _checks.number("epsilon", epsilon, 0.0, np.inf, open_ends=True)
        least = 6 * self.n_pairs * math.log(self.n_pairs)
        return max(1, math.ceil(least), math.ceil((self._root(bound) / accuracy) ** 2))

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """The ε that the theorem promises after `n_iterations` steps of its sizes, if these are at least 6 n log n."""
        return self._root(bound) / math.sqrt(_checks.integer("n_iterations", n_iterations, 1))

    def _regrets(self) -> list[tuple[float, float]]:
        """(A, B) for w, u and μ: an expected regret of at most A/(ηT) + Bη each."""
        v_w, v_u, v_mu = self.second_moments()
        size = self.basis.shape[1]
        return [(3 * math.log(size), 1.5 * v_w), (4 * self.n_states, v_u), (2 * math.log(self.n_pairs), 4 / 3 * v_mu)]

    def _root(self, bound: str) -> float:
        """√T ε, which does not depend on ε."""
        if bound != "corrected":
            raise ValueError(f"bound must be 'corrected' on a hull, for which the paper states none; got {bound!r}")
        return 2 * sum(math.sqrt(a * b) for a, b in self._regrets())
