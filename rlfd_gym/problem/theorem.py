r"""The convergence theorems of Algorithm 1: its step sizes, iterations and promised accuracy.

**On the box** (the paper's theorem, `BoxTheorem`; variant="paper" of `solve_smd`). Algorithm 1 with
η_cu = ε/(4 v_cu) and η_μ = ε/(4 v_μ) has an expected gap of at most ε after

    T = max{16 (n+S) / (ε η_cu), 8 log n / (ε η_μ)}

steps, where v_cu and v_μ bound the second moments of the gradient estimators. The paper's lemma
for v_μ = n (2 + 4(1+γ²)/(1-γ)²) holds. Its lemma for (c, u),

    v_cu = 64 α² n + 4(1+γ²)/(1-γ)² + 8,

does not. The part for c is corrected in `rlfd_gym.beliefs.near_prior` (`bound="corrected"`). The
estimator for u is (x - y)/(1-γ) with x = e_s - γ e_s', and y likewise. The entries of x - y are at
most 1+γ in absolute value and their absolute values add up to at most 2(1+γ), so
‖x - y‖² ≤ 2(1+γ)². The two parts are orthogonal, hence

    v_cu = v_c + 2(1+γ)²/(1-γ)²,     v_c = 4α²n²D² + 8αD + 2 (ℓ2) or α²n² + 4α + 2 (ℓ1).

The theorem's proof only needs convexity and second moments, so it carries over to the ℓ1 penalty.

**On a hull** (`HullTheorem`). The estimators for u and μ are those of the box. For u,
E‖g_u‖² ≤ v_u = 2((1+γ)/(1-γ))². For μ, each entry is drawn with probability 1/n and is at most
2n/(1-γ), so E gᵢ² ≤ v_μ = 4n/(1-γ)². The second moment v_w is in `rlfd_gym.beliefs.hull`. The
expected gap is at most the sum of three expected regrets, each with its noise turned into the
regret of a second, imaginary sequence (as in the paper's proof). If the Bregman distance from the
start is at most V, mirror descent with step size η has a regret of at most V/ηT + (η/2) E‖g‖² per
step. So the three regrets after T steps are at most

    u:  4S/(η_u T) + η_u v_u                 V = 2S, twice: the noise's second moment is at most
                                             v_u
    w:  3 log K/(η_w T) + (3/2) η_w v_w      V = log K; the noise is at most 4v_w in this norm,
                                             and its sequence steps by η/2
    μ:  2 log n/(η_μ T) + (4/3) η_μ v_μ      V = log n; in local norms, on average of the two
                                             sequences e^{-x} ≤ 1 - x + (2/3)x², as |x| ≤ 1/2
                                             for the one and ≤ 1 for the other

Each has the form A/(ηT) + Bη, whose minimum is 2√(AB/T), at η = √(A/(BT)). Hence the expected gap
is at most

    ε = (2/√T) (√(A_u B_u) + √(A_w B_w) + √(A_μ B_μ))      for T ≥ 6 n log n,

which makes |x| ≤ 1/2 above.

**The proximal variant** (`ProximalTheorem`; variant="proximal" of `solve_smd`, for costs that are
their own coordinates). What the expert and the penalty contribute to L is known, so it need not be
sampled. With b = Tγ μ_E,

    L(c, u, μ) = h(c) - <b, u> - <μ, c - Tγᵀu>,        h(c) = Ω(c) + <μ_E, c>,

and only the last term is estimated. With z = 1/(1-γ), a step draws j ~ μ, s' ~ P(j), k ~ U(n) and
s'_k ~ P(k), and sets, all from the old iterate,

    c ← argmin over 𝒞 of  h(x) - xⱼ + ‖x - c‖²/2η_c
    u ← clip(u - η_u (z (e_{s(j)} - γ e_{s'}) - b))
    μ ← normalise(μ ∘ exp(-η_μ n (c_k - z (u_{s(k)} - γ u_{s'_k})) e_k)).

The answer is the average of the iterates that the T steps start from. Runs start at the cost that
Ω likes best (the prior, or the middle of an interval), at u = 0 and at μ = 1/n.

*The step for c is exact* entry by entry. With y = c + η_c eⱼ it is, for the two norms,

    ℓ2:  cᵢ ← clip(yᵢ - (κ/(1+κ)) (yᵢ - τᵢ)),   κ = 2α η_c,   τᵢ = ĉᵢ - μ_E,ᵢ/2α
    ℓ1:  cᵢ ← clip(ĉᵢ + soft(yᵢ - η_c μ_E,ᵢ - ĉᵢ, η_c αᵢ)),   soft(x, a) = sign(x) max(|x| - a, 0)

and without a penalty cᵢ ← clip(yᵢ - η_c μ_E,ᵢ).

*Its promise.* For a convex h, the proximal step with step size η and distance V = ‖x - c₀‖²/2 has

    Σ_t <g_t, c_t - x> + h(c_{t+1}) - h(x)  ≤  V/η + (η/2) Σ_t ‖g_t‖²      for every x ∈ 𝒞

(add the optimality condition of each step, <g_t + h'(c_{t+1}) + (c_{t+1} - c_t)/η, x - c_{t+1}> ≥ 0,
and <g_t, c_t - c_{t+1}> ≤ (η/2)‖g_t‖² + ‖c_{t+1} - c_t‖²/2η). Moving h from c_1 … c_T to the
averaged c_0 … c_{T-1} costs h(c_0) - h(c_T) ≤ <μ_E, c_0 - c_T> ≤ 2, because c_0 minimises Ω. The
rest of the proof is as on a hull: the bilinear terms cancel, and the noise is turned into the
regret of a second sequence. With D the largest distance from c_0 to an end of its interval,

    c:  nD²/(η_c T) + η_c v_c                V = nD²/2, twice;  g = -eⱼ,  so  v_c = 1
    u:  S/(η_u T) + η_u v_u                  V = S/2, twice: u starts in the middle of [-1, 1];
                                             v_u = 2((1+γ)/(1-γ))² as above, since b is the mean
                                             of what y is there, and ‖x - y‖² is convex in y
    μ:  2 log n/(η_μ T) + (4/3) η_μ v_μ      v_μ = 4n/(1-γ)², as on a hull

and the expected gap is at most ε = (2/√T) Σ √(AB) + 2/T for T ≥ 6 n log n. Neither α nor the
penalty occurs: the corrected v_cu above has 4α²n²D², and the paper's T has α²n³ from it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rlfd_gym import _checks
from rlfd_gym.beliefs import Belief, Hull
from rlfd_gym.beliefs.belief import BOUNDS

SMALLEST = 1e-30  # the ε below which no number of steps that fits into a machine would do


@dataclass(frozen=True, eq=False)
class Theorem(ABC):
    """A convergence theorem of Algorithm 1, for a problem of given size and belief.

    Attributes:
        n_pairs: n, the number of pairs.
        n_states: S, the number of states.
        discount: γ.
        belief: what is believed about the cost.
        names: the variables that have a step size of their own, in order.
    """

    n_pairs: int
    n_states: int
    discount: float
    belief: Belief
    names: ClassVar[tuple[str, ...]]

    @abstractmethod
    def second_moments(self, bound: str = "corrected") -> tuple[float, ...]:
        """Return the bounds on the estimators' second moments, in the order of `names`."""

    @abstractmethod
    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, ...]:
        """Return step sizes for an expected gap of at most `epsilon`, in the order of `names`."""

    @abstractmethod
    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return T, the number of steps after which the expected gap is at most `epsilon`."""

    @abstractmethod
    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε promised after `n_iterations` steps: the inverse of `iterations`."""


class BoxTheorem(Theorem):
    """The paper's theorem, for costs in a box.

    It has one step size for cost and value, and one for the occupancy.
    """

    names = ("cost and value", "occupancy")

    def second_moments(self, bound: str = "corrected") -> tuple[float, float]:
        """Return (v_cu, v_μ)."""
        _checks.one_of("bound", bound, BOUNDS)
        gamma, v_cost = self.discount, self.belief.second_moment(bound)
        if bound == "paper":
            v_cu = v_cost + 4 * (1 + gamma**2) / (1 - gamma) ** 2 + 8
        else:
            v_cu = v_cost + 2 * ((1 + gamma) / (1 - gamma)) ** 2
        return v_cu, self.n_pairs * (2 + 4 * (1 + gamma**2) / (1 - gamma) ** 2)

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, float]:
        """Return (η_cu, η_μ) for an expected gap of at most `epsilon`."""
        accuracy = _positive(epsilon)
        v_cu, v_mu = self.second_moments(bound)
        return accuracy / (4 * v_cu), accuracy / (4 * v_mu)

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return T, the number of steps after which the expected gap is at most `epsilon`."""
        return max(1, math.ceil(self._steps_times_accuracy_squared(bound) / _positive(epsilon) ** 2))

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε promised after `n_iterations` steps: the inverse of `iterations`."""
        steps = _checks.integer("n_iterations", n_iterations, 1)
        return math.sqrt(self._steps_times_accuracy_squared(bound) / steps)

    def _steps_times_accuracy_squared(self, bound: str) -> float:
        """Return T ε², which does not depend on ε."""
        v_cu, v_mu = self.second_moments(bound)
        return max(64 * (self.n_pairs + self.n_states) * v_cu, 32 * math.log(self.n_pairs) * v_mu)


class HullTheorem(Theorem):
    """The theorem for mixtures of a basis.

    It has one step size each for mixture, value and occupancy.
    """

    belief: Hull
    names = ("mixture", "value", "occupancy")

    def second_moments(self, bound: str = "corrected") -> tuple[float, float, float]:
        """Return (v_w, v_u, v_μ)."""
        _checks.one_of("bound", bound, BOUNDS)
        v_u = 2 * ((1 + self.discount) / (1 - self.discount)) ** 2
        return self.belief.second_moment(bound), v_u, 4 * self.n_pairs / (1 - self.discount) ** 2

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, float, float]:
        """Return (η_w, η_u, η_μ) for an expected gap of at most `epsilon`."""
        accuracy = _positive(epsilon)
        root = self._root(bound)  # √T ε
        w, u, mu = (math.sqrt(a / b) * accuracy / root if a * b > 0 else 0.0 for a, b in self._regrets(bound))
        return w, u, mu

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return T, the number of steps after which the expected gap is at most `epsilon`."""
        least = 6 * self.n_pairs * math.log(self.n_pairs)
        return max(1, math.ceil(least), math.ceil((self._root(bound) / _positive(epsilon)) ** 2))

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε promised after `n_iterations` steps, if there are at least 6 n log n."""
        return self._root(bound) / math.sqrt(_checks.integer("n_iterations", n_iterations, 1))

    def _regrets(self, bound: str) -> list[tuple[float, float]]:
        """Return (A, B) for w, u and μ; each expected regret is at most A/(ηT) + Bη."""
        v_w, v_u, v_mu = self.second_moments(bound)
        size = self.belief.basis.shape[1]
        return [(3 * math.log(size), 1.5 * v_w), (4 * self.n_states, v_u), (2 * math.log(self.n_pairs), 4 / 3 * v_mu)]

    def _root(self, bound: str) -> float:
        """Return √T ε, which does not depend on ε."""
        return 2 * sum(math.sqrt(a * b) for a, b in self._regrets(bound))


class ProximalTheorem(Theorem):
    """The theorem of the proximal variant, for beliefs whose coordinates are the cost itself.

    It has one step size each for cost, value and occupancy. There is one bound on the second
    moments, so `bound` makes no difference.
    """

    names = ("cost", "value", "occupancy")

    def second_moments(self, bound: str = "corrected") -> tuple[float, float, float]:
        """Return (v_c, v_u, v_μ)."""
        _checks.one_of("bound", bound, BOUNDS)
        v_u = 2 * ((1 + self.discount) / (1 - self.discount)) ** 2
        return 1.0, v_u, 4 * self.n_pairs / (1 - self.discount) ** 2

    def step_sizes(self, epsilon: float, bound: str = "corrected") -> tuple[float, float, float]:
        """Return (η_c, η_u, η_μ) for an expected gap of at most `epsilon`."""
        steps = self._steps(_positive(epsilon))
        c, u, mu = (math.sqrt(a / (b * steps)) for a, b in self._regrets(bound))
        return c, u, mu

    def iterations(self, epsilon: float, bound: str = "corrected") -> int:
        """Return T, the number of steps after which the expected gap is at most `epsilon`."""
        least = 6 * self.n_pairs * math.log(self.n_pairs)
        return max(1, math.ceil(least), math.ceil(self._steps(_positive(epsilon))))

    def accuracy(self, n_iterations: int, bound: str = "corrected") -> float:
        """Return the ε promised after `n_iterations` steps, if there are at least 6 n log n."""
        steps = _checks.integer("n_iterations", n_iterations, 1)
        return self._root() / math.sqrt(steps) + 2 / steps

    def _regrets(self, bound: str = "corrected") -> list[tuple[float, float]]:
        """Return (A, B) for c, u and μ; each expected regret is at most A/(ηT) + Bη."""
        v_c, v_u, v_mu = self.second_moments(bound)
        low, high = self.belief.ends()
        middle = np.clip(self.belief.prior, low, high)
        distance = float(np.maximum(high - middle, middle - low).max())
        return [
            (self.n_pairs * distance**2, v_c),
            (float(self.n_states), v_u),
            (2 * math.log(self.n_pairs), 4 / 3 * v_mu),
        ]

    def _root(self) -> float:
        """Return the factor of 1/√T in ε."""
        return 2 * sum(math.sqrt(a * b) for a, b in self._regrets())

    def _steps(self, epsilon: float) -> float:
        """Return the T that solves ε = root/√T + 2/T."""
        root = self._root()
        return ((root + math.sqrt(root**2 + 8 * epsilon)) / (2 * epsilon)) ** 2


def theorem_of(n_pairs: int, n_states: int, discount: float, belief: Belief, variant: str = "paper") -> Theorem:
    """Return the theorem that applies to a belief and a variant of Algorithm 1; a hull has one."""
    if isinstance(belief, Hull):
        return HullTheorem(n_pairs, n_states, discount, belief)
    kind = BoxTheorem if variant == "paper" else ProximalTheorem
    return kind(n_pairs, n_states, discount, belief)


def _positive(epsilon: float) -> float:
    return _checks.number("epsilon", epsilon, SMALLEST, np.inf, open_ends=True)
