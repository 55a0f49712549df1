r"""Bayesian IRL: the most likely cost of an expert that is more or less rational, given a prior.

The expert is taken for an agent that prefers action a in state s with probability
π(a|s) ∝ exp(-β Q(s, a)), where Q = c + γPV and V = -β⁻¹ log Σ_a exp(-βQ). With a Gaussian prior of
mean ĉ and spread σ for each pair's cost, the most likely cost after N decisions minimises

    α ‖c - ĉ‖² + <μ_E, c> - ρ^β_c     over the box [-1, 1]ⁿ,        α = 1/(2σ²βN),

where ρ^β_c = (1-γ)<ν₀, V>. This is the only classic method with a prior. The solver, the dual
problem that bounds the optimum and the likelihood of an estimated expert are in
`rlfd_gym.solvers.soft_map`.

* β → ∞ is RLfD_α, as |ρ^β_c - ρ*_c| ≤ log A/β. So RLfD_α is Bayesian IRL for experts that never
  err, and Bayesian IRL is RLfD_α with a bonus for entropy.
* α → 0 matches the expert, as MCE-IRL does: the soft policy has the occupancy μ_E.
* σ → 0 returns the prior.

**N.** A step at time t counts γᵗ, as in the occupancy, so K trajectories are N = K/(1-γ) decisions.
In states that no demonstration leaves, the expert is taken to be optimal for the prior, as by RLfD
and every other method here that knows one. These decisions were not seen but are counted: with few
demonstrations the evidence and the bands are surer than the data.

**β and σ** are those of the largest evidence (`rlfd_gym.solvers.soft_evidence`) if they are not
given. The evidence sees an expert that errs at random, and a prior that does not fit. No rule that
has only the data can see that a consistent expert is consistently wrong: its demonstrations look
like those of a good expert under another cost.

**The policy** plans with the most likely cost, as the policy of least expected loss plans with the
posterior's mean (`rlfd_gym.baselines.posterior`). The soft policy, which predicts the expert with
its errors, is `solution.state.soft_plan.policy`.

Ramachandran and Amir, "Bayesian inverse reinforcement learning", IJCAI 2007. Choi and Kim, "MAP
inference for Bayesian inverse reinforcement learning", NIPS 2011.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy, is_occupancy
from rlfd_gym.baselines.posterior import Posterior
from rlfd_gym.experts.demonstrations import estimate_occupancy, read_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.soft_evidence import alpha_of, fit_evidence
from rlfd_gym.solvers.soft_map import SoftProblem, soft_map


def bayesian_irl(
    mdp: TabularMDP,
    expert: Any,
    prior: ArrayLike,
    *,
    rationality: float | None = None,
    alpha: float | None = None,
    prior_spread: float | None = None,
    n_decisions: float | None = None,
) -> Solution:
    """Return the most likely cost of a soft expert under a Gaussian prior, and plan with it.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        prior: ĉ, over pairs, the mean of the prior.
        rationality: β, for costs in [-1, 1]. `None` chooses it by the evidence.
        alpha: the weight of the prior, instead of `prior_spread`; needs `rationality`.
        prior_spread: σ, how far the cost of a pair may be from the prior. `None` chooses it by
            the evidence, unless `alpha` is given.
        n_decisions: how many decisions the expert's occupancy stands for, N. For demonstrations it
            is the number of trajectories divided by 1-γ unless given; an occupancy does not say, nor
            do transitions without times.

    Returns:
        A solution whose `cost` is the most likely one and whose policy is optimal for it. `upper`
        and `lower` bound the least value of the problem; they meet, up to the accuracy, for
        demonstrations and for the occupancy of a policy, but not for one that was counted in
        samples, where the problem need not be convex. `stats` has β, σ, α, N, whether the problem
        is convex, and the log evidence if that was maximised. `state` is the `Posterior`, with bands
        for each pair.

    Example:
        An expert that errs in every third decision; the prior knows half of the states.

        >>> import numpy as np, rlfd_gym
        >>> from rlfd_gym.baselines import bayesian_irl
        >>> from rlfd_gym.problem import examples
        >>> env = examples.gridworld_env(5)
        >>> known = env.mdp.pair_states % 2 == 0
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=1 / 3)
        >>> prior = np.where(known, env.cost, 0.0)
        >>> solution = bayesian_irl(env.mdp, expert=expert, prior=prior, n_decisions=1000)
        >>> solution.duality_gap < 1e-8
        True
        >>> costs = [policy @ env.cost for policy in (expert, solution.occupancy)]
        >>> bool(costs[1] < costs[0])
        True
    """
    mu_e, decisions = _expert_and_decisions(mdp, expert, prior, n_decisions)
    c_hat = mdp.pairs(prior, "prior")
    beta = None if rationality is None else _positive("rationality", rationality)
    sigma = None if prior_spread is None else _positive("prior_spread", prior_spread)
    problem = SoftProblem.of(mdp, mu_e, c_hat)
    stats: dict[str, Any] = {}
    if alpha is not None:
        if sigma is not None or beta is None:
            raise ValueError(
                "alpha is 1/(2σ²βN): it needs rationality and takes the place of prior_spread; got "
                f"alpha={alpha!r}, rationality={rationality!r}, prior_spread={prior_spread!r}"
            )
        weight = _positive("alpha", alpha)
    else:
        if decisions is None:
            raise ValueError(
                "n_decisions is None, but an occupancy does not say how many decisions it was seen in, nor do "
                "transitions without times; pass their number, or trajectories, or alpha and rationality"
            )
        if beta is None or sigma is None:
            found = fit_evidence(problem, decisions, beta, sigma)
            beta, sigma = found.rationality, found.prior_spread
            stats["log_evidence"] = found.log_evidence
        weight = alpha_of(beta, sigma, decisions)
    fit = soft_map(problem, beta, weight)
    plan = mdp.optimal(fit.cost)
    if decisions is not None:
        sigma = math.sqrt(1 / (2 * weight * beta * decisions)) if sigma is None else sigma
        stats |= {"prior_spread": sigma, "n_decisions": decisions}
    return Solution(
        policy=plan.policy,
        occupancy=plan.occupancy,
        cost=fit.cost,
        value=plan.value,
        upper=fit.upper,
        lower=fit.lower,
        method="bayesian-irl",
        n_iterations=fit.n_iterations,
        stats={"rationality": beta, "alpha": weight, **stats, "convex": problem.convex},
        state=Posterior(mdp, mu_e, c_hat, fit.cost, beta, weight, decisions),
    )


def _expert_and_decisions(
    mdp: TabularMDP, expert: Any, prior: ArrayLike, n_decisions: float | None
) -> tuple[FloatArray, float | None]:
    """Return μ_E and N, from the demonstrations where they say it."""
    given = None if n_decisions is None else _positive("n_decisions", n_decisions)
    if is_occupancy(expert) or isinstance(expert, np.ndarray):
        return expert_occupancy(mdp, expert), given
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    read = read_demonstrations(expert)
    occupancy = estimate_occupancy(read, mdp, prior=prior)
    if given is not None or read.lengths is None:
        return occupancy, given
    return occupancy, len(read.lengths) / (1 - mdp.discount)


def _positive(name: str, value: float) -> float:
    return _checks.number(name, value, 1e-12, 1e12)
