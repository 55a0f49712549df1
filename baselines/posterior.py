r"""What Bayesian IRL knows about the cost: bands for each pair, and samples.

The posterior density of a cost c in the box is proportional to exp(-βN f(c)), with f of
`rlfd_gym.solvers.soft_map`.

**Laplace's approximation** is the Gaussian around the most likely cost with the covariance

    (βN)⁻¹ (2αI + β Gᵀ diag(μ) G)⁻¹ = (I/σ² + Nβ² Gᵀ diag(μ) G)⁻¹:

what the prior leaves open, less what N decisions tell. It is never wider than the prior, and as
wide as the prior in the directions that decisions say nothing about, such as shaping. It ignores
the box, to which bands are only clipped, and where the most likely cost lies on the boundary it is
too wide on one side.

**Samples** are drawn by Hamiltonian Monte Carlo: a step follows the flow of the energy βN f from a
random momentum, mirrored where it meets a wall of the box, and is accepted or not so that the
density is exactly right. Momenta are scaled by the diagonal of the precision; the step size is set
while the first, discarded steps are made.

**Which policy?** The expected loss of a policy is linear in the cost, so the policy of least
expected loss plans with the posterior's mean. Laplace's approximation takes the most likely cost
for the mean, and this is what `bayesian_irl` plans with; the mean of samples is the better answer
where they can be afforded: `mdp.optimal(posterior.samples(1000).mean(axis=0))`.

Ramachandran and Amir, "Bayesian inverse reinforcement learning", IJCAI 2007. Neal, "MCMC using
Hamiltonian dynamics", 2011.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg as la
from scipy.stats import norm

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.soft import SoftPlan, soft_optimal
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.solvers.soft_evidence import check_size
from rlfd_gym.solvers.soft_map import MapPoint, SoftProblem, evaluate, gradient, hessian

SAMPLED_PAIRS = 200  # with more, a chain takes too long to be trusted
LEAPS = (3, 10)  # of a step, drawn anew each time, so that no period can resonate
ACCEPTANCE = 0.8  # what the step size aims at


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the cost, around its most likely one.

    Attributes:
        mdp: the tables.
        expert: μ_E, over pairs.
        prior: ĉ, over pairs.
        cost: the most likely cost, over pairs.
        rationality: β.
        alpha: α.
        n_decisions: N; `None` if it was not given, and then nothing is known of the spread.

    Example:
        >>> from rlfd_gym.baselines import bayesian_irl
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> learned = bayesian_irl(problem.mdp, problem.expert, problem.prior, n_decisions=100)
        >>> low, high = learned.state.bands(0.9)
        >>> bool((low <= high).all())
        True
    """

    mdp: TabularMDP = field(repr=False)
    expert: FloatArray = field(repr=False)
    prior: FloatArray = field(repr=False)
    cost: FloatArray = field(repr=False)
    rationality: float
    alpha: float
    n_decisions: float | None

    @property
    def soft_plan(self) -> SoftPlan:
        """What the expert is expected to do under the most likely cost."""
        return soft_optimal(self.mdp, self.cost, self.rationality)

    @cached_property
    def precision(self) -> FloatArray:
        """The inverse of Laplace's covariance, (n_pairs, n_pairs)."""
        check_size(self.mdp.n_pairs)
        problem = SoftProblem.of(self.mdp, self.expert, self.prior)
        return self._scale * hessian(problem, evaluate(problem, self.cost, self.rationality, self.alpha))

    @cached_property
    def covariance(self) -> FloatArray:
        """Laplace's covariance, (n_pairs, n_pairs)."""
        factors = la.cho_factor(self.precision, check_finite=False)
        return np.asarray(la.cho_solve(factors, np.eye(self.mdp.n_pairs), check_finite=False))

    @property
    def spread(self) -> FloatArray:
        """The standard deviation of each pair's cost, by Laplace's approximation."""
        return np.sqrt(np.diag(self.covariance))

    def bands(self, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Return the ends of intervals that hold each pair's cost with probability `level`."""
        share = _checks.number("level", level, 0.0, 1.0, open_ends=True)
        half = float(norm.ppf((1 + share) / 2)) * self.spread
        return np.clip(self.cost - half, -1.0, 1.0), np.clip(self.cost + half, -1.0, 1.0)

    def samples(self, n: int, seed: Any = 0, *, burn_in: int = 200) -> FloatArray:
        """Draw costs from the posterior, (n, n_pairs), one after the other in one chain.

        Args:
            n: how many; neighbours are dependent.
            seed: the seed of everything random.
            burn_in: the first steps, which are discarded and set the step size.
        """
        number = _checks.integer("n", n, 1, _checks.MOST_TIMES)
        rng, discarded = _checks.generator("seed", seed), _checks.integer("burn_in", burn_in, 1, _checks.MOST_TIMES)
        if self.mdp.n_pairs > SAMPLED_PAIRS:
            raise ValueError(
                f"mdp has {self.mdp.n_pairs} pairs, but samples are drawn for at most {SAMPLED_PAIRS}; see bands"
            )
        chain = _Chain(SoftProblem.of(self.mdp, self.expert, self.prior), self._scale, np.diag(self.precision))
        point = evaluate(chain.problem, self.cost, self.rationality, self.alpha)
        size, drawn = 0.5, np.empty((number, self.mdp.n_pairs))
        for k in range(-discarded, number):
            point, chance = chain.step(point, size, rng)
            if k < 0:
                size *= math.exp((chance - ACCEPTANCE) * (discarded + k + 1) ** -0.6)
            else:
                drawn[k] = point.cost
        return drawn

    @property
    def _scale(self) -> float:
        if self.n_decisions is None:
            raise ValueError("n_decisions was not given, without which nothing is known about the posterior's spread")
        return self.rationality * self.n_decisions


@dataclass(frozen=True, eq=False)
class _Chain:
    """Hamiltonian Monte Carlo for the density exp(-scale · f) in the box."""

    problem: SoftProblem
    scale: float
    mass: FloatArray

    def step(self, point: MapPoint, size: float, rng: np.random.Generator) -> tuple[MapPoint, float]:
        """Return the next point, which may be the same one, and the chance of a move."""
        momentum = rng.standard_normal(len(self.mass)) * np.sqrt(self.mass)
        energy = self.scale * point.upper + float(momentum**2 @ (1 / self.mass)) / 2
        now = point
        force = self.scale * gradient(self.problem, now)
        for _ in range(int(rng.integers(*LEAPS))):
            momentum = momentum - size / 2 * force
            cost, momentum = _mirrored(now.cost + size * momentum / self.mass, momentum)
            now = evaluate(self.problem, cost, now.plan.rationality, now.alpha, now.plan)
            force = self.scale * gradient(self.problem, now)
            momentum = momentum - size / 2 * force
        lost = self.scale * now.upper + float(momentum**2 @ (1 / self.mass)) / 2 - energy
        chance = math.exp(-max(lost, 0.0)) if math.isfinite(lost) else 0.0
        return (now if rng.random() < chance else point), chance


def _mirrored(cost: FloatArray, momentum: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Fold a cost into the box as if the walls were mirrors, and turn the momenta that were mirrored."""
    place = np.mod(cost + 1.0, 4.0)
    turned = place > 2.0
    return np.where(turned, 4.0 - place, place) - 1.0, np.where(turned, -momentum, momentum)
