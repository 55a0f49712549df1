r"""`Hull`: the cost is a mixture of given costs, as in SMD-H of the paper.

With a basis C of K columns in [-1, 1]ⁿ, the possible costs are Cw with w in a simplex, and their
penalty is Ω(c) = α‖c - ĉ‖². For α = 0 the learning problem is that of Kamoutsi et al. (2021) and
the dual of LPAL (Syed, Bowling and Schapire, 2008): its optimum is the margin by which an
apprentice can beat the expert under every cost of the hull at once.

**The inner minimum** is that of f(w) = α‖Cw - ĉ‖² + <d, Cw> over the simplex. For α = 0 it has a
closed form: the best answer is a single column. Otherwise it is a quadratic program in K
variables, bounded with a certificate in `rlfd_gym.beliefs.simplex`.

**The estimator for w** is g = 2αn(Cᵢw - ĉᵢ) Cᵢ + C_e - C_j with i uniform, e ~ μ_E and j ~ μ, and
Cᵢ the row of C for the pair i. It is the paper's estimator for c, multiplied by Cᵀ. Adding a
constant to all entries of g does not change the mirror step, so the dual norm of the geometry is
‖g‖ = (max g - min g)/2. Let hᵢ be this norm of Cᵢ, and rᵢ = max_k |Cᵢₖ - ĉᵢ| ≥ |Cᵢw - ĉᵢ|. Then

    E‖g‖² ≤ v_w = (1/n) Σᵢ (2αn rᵢhᵢ + 2 max h)².
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.beliefs.belief import FEW, Belief
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.beliefs.program import Program
from rlfd_gym.mdp.pairs import Pairs


@dataclass(frozen=True, eq=False, init=False)
class Hull(Belief):
    """The belief that the cost is a mixture of the columns of a basis.

    Args:
        basis: C, (n_pairs, K), each column a cost in [-1, 1]. `scale_basis` scales any basis to
            [-1, 1]; this keeps the costs of the hull up to a positive factor each, but neither
            their margins nor their distances to a prior.
        prior: ĉ, over pairs or as a table; by default 0.
        alpha: α ≥ 0, the weight of the prior; by default 0.01 with a prior and 0 without.

    Example:
        >>> hull = Hull([[1.0, 0.0], [0.0, -1.0]])
        >>> hull.best(np.array([0.5, 0.2])).tolist()       # the column with the least <d, c>
        [0.0, 1.0]
    """

    basis: FloatArray = field(repr=False)

    def __init__(self, basis: ArrayLike, prior: ArrayLike | None = None, alpha: float | None = None) -> None:
        """Check and copy the arguments."""
        columns = check_basis(basis)
        if alpha is None:
            alpha = 0.0 if prior is None else DEFAULT_ALPHA
        weight = _checks.number("alpha", alpha, 0.0)
        if prior is None and weight > 0:
            raise ValueError(f"prior is None, so alpha must be 0, got {alpha!r}")
        guess = np.zeros(len(columns)) if prior is None else _checks.finite_array("prior", prior).copy()
        inside = np.ascontiguousarray(np.clip(columns, -1.0, 1.0))  # removes rounding
        self._fill(basis=inside, prior=guess, alpha=weight)

    @property
    def guess(self) -> FloatArray | None:
        """The prior, over pairs; `None` if it plays no part because α = 0."""
        return self.prior if self.alpha > 0 else None

    def with_alpha(self, alpha: float) -> Hull:
        """Return the same belief with another α."""
        return Hull(self.basis, self.prior, alpha)

    def ends(self) -> tuple[FloatArray, FloatArray]:
        """Return the smallest and the largest entry of each row of the basis."""
        return self.basis.min(axis=1), self.basis.max(axis=1)

    @property
    def largest(self) -> float:
        """1: values are kept in [-1, 1], as in the paper's SMD-H."""
        return 1.0

    def vertices(self) -> FloatArray | None:
        """Return the mixtures that are single columns."""
        size = self.basis.shape[1]
        return np.eye(size) if self.alpha == 0 and size <= FEW else None

    def over(self, pairs: Pairs) -> Hull:
        """Return the belief over an environment's pairs, with its arrays checked."""
        _checks.instance("pairs", pairs, Pairs)
        return Hull(check_basis(self.basis, pairs.n_pairs), pairs.pairs(self.prior, "prior"), self.alpha)

    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost Cw."""
        return self.basis @ x

    def vector(self, x: Any) -> FloatArray:
        """Return the mixture as a finite vector, or raise an error."""
        return _checks.finite_vector("mixture", x, self.basis.shape[1], "column of the basis")

    def check(self, x: FloatArray) -> FloatArray:
        """Return the mixture, exactly normalised, or raise an error if it is not one."""
        return _checks.distribution("mixture", x, self.basis.shape[1], "column of the basis")

    def penalty(self, x: FloatArray) -> float:
        """Return α‖Cw - ĉ‖²."""
        return float(self.alpha * np.sum((self.basis @ x - self.prior) ** 2))

    def scope(self, x: FloatArray) -> str:
        """Describe the mixtures of the basis that are no farther from the prior than x."""
        everything = f"that is a mixture of the {self.basis.shape[1]} costs of the basis"
        if self.alpha == 0:
            return everything
        return f"{everything}, within {np.linalg.norm(self.cost(x) - self.prior):.3g} of the prior"

    def program(self) -> Program:
        """Return the part of the small program in w that does not depend on the expert."""
        hessian = 2 * self.alpha * (self.basis.T @ self.basis)
        linear = -2 * self.alpha * (self.basis.T @ self.prior)
        ones = np.ones(self.basis.shape[1])
        return Program(self.basis, np.zeros(len(self.basis)), hessian, linear, 0 * ones, ones, ones[None, :], ones[:1])

    def best(self, d: FloatArray) -> FloatArray:
        """Return the mixture that minimises α‖Cw - ĉ‖² + <d, Cw>."""
        from rlfd_gym.beliefs.simplex import best_mixture  # compiled: loaded when needed

        return np.asarray(best_mixture(*self._quadratic(d)))

    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far Ω + <d, c> at x is above its minimum, as a sum of nonnegative terms."""
        from rlfd_gym.beliefs.simplex import excess_of  # compiled: loaded when needed

        return float(excess_of(*self._quadratic(d), x))

    def gradient(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """Return Cᵀ(2α(Cw - ĉ) + d)."""
        return self.basis.T @ (2 * self.alpha * (self.basis @ x - self.prior) + d)

    def second_moment(self, bound: str) -> float:
        """Return v_w; the paper states no lemma for a hull."""
        if bound != "corrected":
            raise ValueError(f"bound must be 'corrected' on a hull, for which the paper states none; got {bound!r}")
        spread = np.ptp(self.basis, axis=1) / 2
        distance = np.abs(self.basis - self.prior[:, None]).max(axis=1)
        return float(np.mean((2 * self.alpha * len(self.basis) * distance * spread + 2 * spread.max()) ** 2))

    def start(self, rng: np.random.Generator, uniform: bool) -> FloatArray:
        """Draw a mixture uniformly from the simplex, or return its middle."""
        return in_simplex(rng, self.basis.shape[1], uniform)

    def _quadratic(self, d: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Return (G, h, α) of f(w) = α wᵀGw + <h, w>, which is the objective up to a constant."""
        return self.basis.T @ self.basis, self.basis.T @ (d - 2 * self.alpha * self.prior), self.alpha


def in_simplex(rng: np.random.Generator, size: int, uniform: bool) -> FloatArray:
    """Draw a point uniformly from the simplex.

    With `uniform`, return its middle instead, after the same draws.
    """
    weights = rng.exponential(size=size)
    return np.full(size, 1.0 / size) if uniform else weights / weights.sum()
