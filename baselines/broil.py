r"""BROIL: Bayesian robust optimisation for imitation learning, one linear program.

Costs c₁ … c_N with probabilities p stand for what is believed, such as samples of a posterior. The
loss of an apprentice with occupancy μ under cᵢ is what it costs more than the expert,
<μ - μ_E, cᵢ>. BROIL trades the mean off against the conditional value at risk of this loss, its
mean over the worst share 1-δ of the costs: with the occupancies of policies F

    min over μ ∈ F   λ <μ, Σ pᵢcᵢ> + (1-λ) CVaR_δ[<μ - μ_E, cᵢ>],

and by the formula of Rockafellar and Uryasev for the second term this is the program

    min over μ ∈ F, t, z ≥ 0   λ <μ, Σ pᵢcᵢ> + (1-λ)(t + pᵀz/(1-δ))   with   zᵢ ≥ <μ - μ_E, cᵢ> - t.

λ = 1 plans with the mean. λ = 0 and 1-δ below the least pᵢ minimises the largest loss, which is
LPAL with the samples as its basis. The paper writes it for returns and calls this form, in which
losses are relative to the expert, *baseline regret*.

**The learned cost.** The multipliers q of the rows are the worst distribution over the samples
among those with qᵢ ≤ pᵢ/(1-δ), and the apprentice is optimal for λ Σ pᵢcᵢ + (1-λ) Σ qᵢcᵢ.

**Bounds.** `upper` is the objective at the policy's true occupancy. For every such q

    min over μ ∈ F of <μ, λ Σ pᵢcᵢ + (1-λ) Σ qᵢcᵢ> - (1-λ) <μ_E, Σ qᵢcᵢ>

is a lower bound, by a forward solve.

**Where the samples come from.** `costs=` takes samples of any posterior. Without them, samples are
drawn from a Gaussian around the prior with standard deviation `prior_spread`, independent for each
pair, and clipped to the box. These do not depend on the demonstrations, so all that BROIL then
knows about the expert is that the apprentice should not be worse.

Brown, Niekum and Petrik, "Bayesian robust optimization for imitation learning", NeurIPS 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import solve_lp
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def broil(
    mdp: TabularMDP,
    expert: Any,
    prior: ArrayLike | None = None,
    *,
    costs: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    trade_off: float = 0.5,
    tail: float = 0.95,
    prior_spread: float = 0.5,
    n_samples: int = 100,
    seed: Any = 0,
) -> Solution:
    """Trade the expected cost off against its risk, by HiGHS.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        prior: ĉ, a cost over pairs, around which costs are drawn and clipped to [-1, 1].
        costs: the samples, one row each, over pairs; instead of `prior`.
        weights: p, the probabilities of the samples; `None` if they are equally likely.
        trade_off: λ, from 0 (the risk alone) to 1 (the mean alone).
        tail: δ in [0, 1): the risk is the mean loss of the worst share 1-δ.
        prior_spread: the standard deviation of the samples around the prior.
        n_samples: how many of them are drawn.
        seed: the seed of the drawing.

    Returns:
        A solution with bounds of the objective. `stats` has the `"expected"` cost under the mean,
        the `"risk"`, and in `"worst"` the distribution q over the samples.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> mdp, expert, prior = problem.mdp, problem.expert, problem.prior
        >>> frontier = [broil(mdp, expert, prior, trade_off=x).stats for x in (0.0, 0.5, 1.0)]
        >>> [point["expected"] for point in frontier] == sorted(
        ...     (point["expected"] for point in frontier), reverse=True)
        True
    """
    mu_e = expert_occupancy(mdp, expert, prior)
    share = _checks.number("trade_off", trade_off, 0.0, 1.0)
    level = _checks.number("tail", tail, 0.0, 1.0)
    if level == 1.0:
        raise ValueError("tail must be less than 1; above 1 minus the least weight, the risk is the largest loss")
    if (costs is None) == (prior is None):
        raise ValueError("prior, costs: give one of them, a cost to draw around or samples")
    if costs is None:
        assert prior is not None
        samples = _drawn(mdp.pairs(prior, "prior"), prior_spread, n_samples, seed)
    else:
        samples = _given(mdp, costs)
    p = _probabilities(weights, len(samples))
    # A cap above one never binds: below the least weight, the tail is a single sample.
    caps = np.minimum(p / (1 - level), 2.0)
    mean = p @ samples
    policy, worst, steps = _solve(mdp, mu_e, samples, mean, caps, share)
    occupancy = mdp.occupancy_of(policy)
    expected, risk = float(occupancy @ mean), tail_mean(samples @ (occupancy - mu_e), caps)
    against = worst @ samples
    cost = share * mean + (1 - share) * against
    plan = mdp.optimal(cost)
    return Solution(
        policy=policy,
        occupancy=occupancy,
        cost=cost,
        value=plan.value,
        upper=share * expected + (1 - share) * risk,
        lower=plan.expected_cost - plan.value_error - (1 - share) * float(mu_e @ against),
        method="broil",
        n_iterations=steps,
        stats={"expected": expected, "risk": risk, "worst": worst},
    )


def tail_mean(losses: FloatArray, caps: FloatArray) -> float:
    """Return CVaR: the largest <q, losses> over the distributions q with q ≤ caps.

    >>> tail_mean(np.array([1.0, 3.0, 2.0]), np.full(3, 0.5))
    2.5
    """
    order = np.argsort(-losses)
    taken = np.diff(np.minimum(np.cumsum(caps[order]), 1.0), prepend=0.0)
    return float(taken @ losses[order])


def _drawn(prior: FloatArray, prior_spread: float, n_samples: int, seed: Any) -> FloatArray:
    spread = _checks.number("prior_spread", prior_spread, 0.0)
    number = _checks.integer("n_samples", n_samples, 1, _checks.MOST_TIMES)
    noise = _checks.generator("seed", seed).normal(size=(number, len(prior)))
    return np.clip(prior + spread * noise, -1.0, 1.0)


def _given(mdp: TabularMDP, costs: ArrayLike) -> FloatArray:
    samples = _checks.numbers("costs", costs)
    if samples.ndim != 2 or samples.shape[1] != mdp.n_pairs or not len(samples):
        raise ValueError(f"costs has shape {samples.shape}, expected (n_samples, {mdp.n_pairs}): a row per sample")
    return _checks.finite("costs", samples, 1e15)  # HiGHS takes no larger entries


def _probabilities(weights: ArrayLike | None, number: int) -> FloatArray:
    if weights is None:
        return np.full(number, 1.0 / number)
    return _checks.distribution("weights", weights, number, "sample (row of costs)")


def _solve(
    mdp: TabularMDP, mu_e: FloatArray, samples: FloatArray, mean: FloatArray, caps: FloatArray, share: float
) -> tuple[FloatArray, FloatArray, int]:
    """Solve the linear program; return the policy, the worst distribution q, and the steps."""
    number, n = samples.shape
    if share == 1.0:  # the risk has no weight: any q will do
        return mdp.optimal(mean).policy, caps / caps.sum(), 0
    # The variables are μ, t and z, and the multipliers of the samples' rows are (1-λ) q.
    result = solve_lp(
        np.concatenate([share * mean, [1 - share], (1 - share) * caps]),
        A_ub=sp.hstack([sp.csr_array(samples), -np.ones((number, 1)), -sp.eye_array(number)]),
        b_ub=samples @ mu_e,
        A_eq=sp.hstack([mdp.flow_matrix(), sp.csr_array((mdp.n_states, 1 + number))]),
        b_eq=mdp.initial,
        bounds=[(0, None)] * n + [(None, None)] + [(0, None)] * number,
        method="highs-ipm",  # half the time of the simplex method; it ends in a vertex all the same
    )
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of BROIL: {result.message}")
    worst = _capped(-result.ineqlin.marginals / (1 - share), caps)
    return mdp.policy_of(np.maximum(result.x[:n], 0.0)), worst, int(result.nit)


def _capped(weights: FloatArray, caps: FloatArray) -> FloatArray:
    """Return the multipliers as a distribution below the caps, which rounding may have violated."""
    q = np.clip(weights, 0.0, caps)
    missing, room = 1 - q.sum(), caps - q
    if missing <= 0:
        return np.asarray(q / q.sum())
    return np.asarray(q + room * min(1.0, missing / max(room.sum(), np.finfo(float).tiny)))
