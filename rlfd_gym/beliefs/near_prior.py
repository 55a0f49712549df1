r"""`NearPrior`: the cost is in the box [-1, 1]ⁿ, and less plausible the farther from a prior ĉ.

**`norm="l2"`** is the paper's penalty Ω(c) = α‖c - ĉ‖². For d = μ_E - μ the best answer is, entry
by entry,

    c*ᵢ = clip(ĉᵢ - dᵢ/2α, -1, 1),  or -sign(dᵢ) for α = 0,

and the excess of another cost over it is the sum of the nonnegative terms

    (cᵢ - c*ᵢ) (α (cᵢ + c*ᵢ - 2ĉᵢ) + dᵢ).

**Its second moment.** Algorithm 1 estimates the gradient 2α(c - ĉ) + d by a eᵢ + w with
a = 2αn(cᵢ - ĉᵢ), i uniform, and w = e_{i_E} - e_{i_t} drawn independently of i. The paper's lemma
bounds E‖a eᵢ + w‖² with a term 64 α² n. It squares n · 2α(cᵢ - ĉᵢ) but keeps n only once, so it
does not hold. The following bound does (`bound="corrected"`). Let D = 1 + max|ĉ|, so that
|cᵢ - ĉᵢ| ≤ D on the box. Then

    E‖a eᵢ + w‖² = E a² + 2 E[a wᵢ] + E‖w‖²,
    E a²     = 4α²n² · mean (cᵢ - ĉᵢ)²  ≤ 4α²n²D²,
    2 E[a wᵢ] = 2 · (1/n) Σᵢ 2αn(cᵢ - ĉᵢ)(μ_E - μ)ᵢ ≤ 4αD ‖μ_E - μ‖₁ ≤ 8αD,      E‖w‖² ≤ 2.

The paper's lemma has 2 for max|c - ĉ|; `bound="paper"` replaces it by max(2, D).

**A prior outside the box** is a mistake in most cases: costs in money that were not converted. So it
is refused, up to rounding, with the way to convert it. It has a meaning all the same: the penalty is
the distance to ĉ, wherever ĉ is, and D above covers it. A study of wrong priors may want this, and
asks for it with `outside_box=True`.

**`norm="l1"`** has Ω(c) = α‖c - ĉ‖₁, or Σᵢ αᵢ|cᵢ - ĉᵢ| with αᵢ = α · weightsᵢ. It leaves the cost
exactly at the prior where there is no strong reason to move it. The best answer is the prior,
clipped to [-1, 1], where |dᵢ| ≤ αᵢ, and otherwise the end -sign(dᵢ) of the box. The slope of
αᵢ|x - ĉᵢ| + dᵢx is dᵢ - αᵢ left of ĉᵢ and dᵢ + αᵢ right of it. Integrating it from c*ᵢ to cᵢ gives
the excess

    Σᵢ (dᵢ + αᵢ) (max(cᵢ, ĉᵢ) - max(c*ᵢ, ĉᵢ)) + (dᵢ - αᵢ) (min(cᵢ, ĉᵢ) - min(c*ᵢ, ĉᵢ)),

which again has no negative term. The subgradient has α sign(cᵢ - ĉᵢ); at the kink this is 0, the
shortest subgradient there. Its estimator has a = αn sign(cᵢ - ĉᵢ), so

    E a² ≤ α²n²,      2 E[a wᵢ] ≤ 2α‖μ_E - μ‖₁ ≤ 4α,

and the sum is at most α²n² + 4α + 2. The paper has no lemma for this norm. What α means with it,
and how to choose it, is explained in `rlfd_gym.solvers.reweighted`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs.belief import BOUNDS, FEASIBILITY, Belief, checked_scale, in_box, in_learning_units
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.pairs import Pairs, dot

DEFAULT_ALPHA = 0.01
"""α where a prior is given without one, chosen by a study (docs/choosing_alpha.md). Only for "l2"."""
NORMS = ("l2", "l1")
L2, L1 = range(2)  # the numbers of the norms in the compiled kernels


@dataclass(frozen=True, eq=False, init=False)
class NearPrior(Belief):
    """The belief that the cost of every pair is in [-1, 1], and probably near a prior.

    Args:
        prior: ĉ, over pairs or as a table (n_states, n_actions), in [-1, 1].
        alpha: α ≥ 0, the weight of the prior.
        norm: "l2" for α‖c - ĉ‖², "l1" for α‖c - ĉ‖₁. The two need different α, see
            `rlfd_gym.solvers.reweighted`.
        weights: the weight of each pair's prior, as a multiple of `alpha`; only for "l1" and
            `solve_exact`.
        scale: if the prior is in money, the map to learning units.
        outside_box: whether the prior may be outside [-1, 1], for studies of wrong priors. The
            learned cost is in the box in any case.

    Example:
        >>> belief = NearPrior(prior=[0.5, -0.5], alpha=0.25)
        >>> belief.best(np.array([0.1, -1.0])).tolist()       # d = μ_E - μ; clipped to [-1, 1]
        [0.3, 1.0]
    """

    norm: str
    weights: FloatArray | None = field(repr=False)
    outside_box: bool = field(repr=False)

    def __init__(
        self,
        prior: ArrayLike,
        alpha: float,
        norm: str = "l2",
        weights: ArrayLike | None = None,
        *,
        scale: CostScale | None = None,
        outside_box: bool = False,
    ) -> None:
        """Check and copy the arguments."""
        _checks.one_of("norm", norm, NORMS)
        scale = checked_scale(scale)
        if weights is not None:
            if norm != "l1":
                raise ValueError(f'weights need norm="l1", got {norm!r}')
            weights = _checks.finite_array("weights", weights).copy()
            if weights.ndim == 1:  # a table may have anything at infeasible actions: `over` judges it
                _checks.nonnegative("weights", weights)
        guess = in_learning_units(_checks.finite_array("prior", prior).copy(), scale)
        if guess.ndim == 1 and not _checks.flag("outside_box", outside_box):
            check_prior(guess, scale)
        self._fill(
            prior=guess,
            alpha=_checks.number("alpha", alpha, 0.0),
            scale=scale,
            norm=norm,
            weights=weights,
            outside_box=_checks.flag("outside_box", outside_box),
        )

    @property
    def guess(self) -> FloatArray | None:
        """The prior, over pairs; `None` if it plays no part because α = 0."""
        return self.prior if self.alpha > 0 else None

    def with_alpha(self, alpha: float) -> NearPrior:
        """Return the same belief with another α."""
        return self._with(alpha=_checks.number("alpha", alpha, 0.0))

    @property
    def kind(self) -> int:
        """The number of the norm in the compiled kernels."""
        return NORMS.index(self.norm)

    @property
    def pair_alpha(self) -> FloatArray:
        """αᵢ, the weight of each pair's prior."""
        return self.alpha * (np.ones(self.prior.size) if self.weights is None else self.weights)

    def over(self, pairs: Pairs) -> NearPrior:
        """Return the belief over an environment's pairs, with its arrays checked."""
        _checks.instance("pairs", pairs, Pairs)
        weights = self.weights
        if weights is not None:
            weights = _checks.nonnegative("weights", pairs.pairs(weights, "weights"))
        prior = pairs.pairs(self.prior, "prior")
        if not self.outside_box:
            check_prior(prior, self.scale)
        return self._with(prior=prior, weights=weights)

    def cost(self, x: FloatArray) -> FloatArray:
        """Return the cost, which is x itself."""
        return x

    def vector(self, x: Any) -> FloatArray:
        """Return the cost as a finite vector over pairs, or raise an error."""
        return _checks.pair_vector("cost", x, self.prior.size)

    def check(self, x: FloatArray) -> FloatArray:
        """Return the cost with rounding removed, or raise an error if it is not in the box."""
        return in_box("cost", x)

    def nearest(self, x: FloatArray) -> FloatArray:
        """Return the cost clipped to the box."""
        return np.clip(x, -1.0, 1.0)

    def penalty(self, x: FloatArray) -> float:
        """Return α‖c - ĉ‖² or Σᵢ αᵢ|cᵢ - ĉᵢ|."""
        if self.norm == "l1":
            return dot(self.pair_alpha, np.abs(x - self.prior))
        return float(self.alpha * np.sum((x - self.prior) ** 2))

    def radius(self, x: FloatArray) -> float:
        """Return the distance of a cost to the prior, in the norm of the penalty."""
        if self.norm == "l2":
            return float(np.linalg.norm(x - self.prior))
        return float(np.sum(np.abs(x - self.prior) * (1.0 if self.weights is None else self.weights)))

    def scope(self, x: FloatArray) -> str:
        """Describe the ball of costs no farther from the prior than x."""
        if self.alpha == 0:
            return "in [-1, 1]"
        norm = {"l2": "ℓ2", "l1": "ℓ1"}[self.norm] if self.weights is None else "the weighted ℓ1"
        return f"in [-1, 1] within {self.radius(x):.3g} of the prior (in {norm} norm)"

    def best(self, d: FloatArray) -> FloatArray:
        """Return c*, the cost in the box that minimises Ω(c) + <d, c>.

        Among several minimisers it is the prior clipped to [-1, 1] with "l1", and 0 with "l2",
        where there are several only if α = 0.
        """
        if self.norm == "l1":
            return np.where(np.abs(d) <= self.pair_alpha, np.clip(self.prior, -1.0, 1.0), -np.sign(d))
        if self.alpha == 0:
            return -np.sign(d)
        return np.clip(self.prior - d / (2 * self.alpha), -1.0, 1.0)

    def excess(self, x: FloatArray, d: FloatArray) -> float:
        """Return how far Ω + <d, c> at x is above its minimum, as a sum of nonnegative terms."""
        best = self.best(d)
        if self.norm == "l1":
            alpha, prior = self.pair_alpha, self.prior
            above = (d + alpha) * (np.maximum(x, prior) - np.maximum(best, prior))
            return float(np.sum(above + (d - alpha) * (np.minimum(x, prior) - np.minimum(best, prior))))
        return float(np.sum((x - best) * (self.alpha * (x + best - 2 * self.prior) + d)))

    def gradient(self, x: FloatArray, d: FloatArray) -> FloatArray:
        """Return 2α(c - ĉ) + d, or with "l1" the subgradient whose first part is 0 where c = ĉ."""
        if self.norm == "l1":
            return self.pair_alpha * np.sign(x - self.prior) + d
        return 2 * self.alpha * (x - self.prior) + d

    def second_moment(self, bound: str) -> float:
        """Return a bound on E‖g‖² for the estimator of the gradient.

        With "paper", the lemma's constant 8 is not included.
        """
        _checks.one_of("bound", bound, BOUNDS)
        if self.weights is not None:
            raise ValueError("weights: Algorithm 1 and its theorem take none; use solve_exact")
        n, alpha = self.prior.size, self.alpha
        distance = 1.0 + float(np.abs(self.prior).max())
        if self.norm == "l1":
            if bound == "paper":
                raise ValueError('bound="paper" is a lemma on regulariser="l2"; for "l1" there is bound="corrected"')
            return (alpha * n) ** 2 + 4 * alpha + 2
        if bound == "paper":
            return 16 * alpha**2 * n * max(2.0, distance) ** 2
        return 4 * (alpha * n * distance) ** 2 + 8 * alpha * distance + 2

    def start(self, rng: np.random.Generator, uniform: bool) -> FloatArray:
        """Draw a cost uniformly from the box."""
        return rng.uniform(-1, 1, self.prior.size)


def check_prior(prior: FloatArray, scale: CostScale | None = None) -> FloatArray:
    """Return a prior in learning units; if it is not in [-1, 1], say how to convert it.

    >>> check_prior(np.array([-1.0, 0.5])).tolist()
    [-1.0, 0.5]
    """
    low, high = float(prior.min()), float(prior.max())
    if max(-low, high) <= 1 + FEASIBILITY:
        return prior
    meant = "one that is meant to be outside is the belief rlfd_gym.beliefs.NearPrior(prior, alpha, outside_box=True)"
    if scale is not None:
        least, most = (scale.from_box(end) for end in (low, high))
        raise ValueError(
            f"prior has costs from {least:g} to {most:g} in money, but its scale maps {scale.low:g} … {scale.high:g} "
            f"to [-1, 1]: take a scale that contains them; {meant}"
        )
    ends = (low, high) if high > low else (-abs(high), abs(high))
    # Rounded ends would leave the prior's own just outside the box.
    exact = (f"{end:g}" if float(f"{end:g}") == end else repr(end) for end in ends)
    convert = f"rlfd_gym.experts.CostScale({', '.join(exact)}).to_box(prior)"
    raise ValueError(
        f"prior has costs from {low:g} to {high:g}, expected costs in [-1, 1]. Costs in money are converted by "
        f"{convert}, with one scale for all costs that are compared; {meant}"
    )
