r"""The convergence theorems of Algorithm 1: its step sizes, iterations and promised accuracy.

**On the box** (the paper's theorem, `BoxTheorem`). Algorithm 1 with η_cu = ε/(4 v_cu) and
η_μ = ε/(4 v_μ) has an expected gap of at most ε after

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


def theorem_of(n_pairs: int, n_states: int, discount: float, belief: Belief) -> Theorem:
    """Return the theorem that applies to a belief."""
    kind = HullTheorem if isinstance(belief, Hull) else BoxTheorem
    return kind(n_pairs, n_states, discount, belief)


def _positive(epsilon: float) -> float:
    return _checks.number("epsilon", epsilon, SMALLEST, np.inf, open_ends=True)
