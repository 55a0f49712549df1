r"""Sparse priors: costs that differ from the prior in few pairs.

**What α means with `regulariser="l1"`.** The dual of RLfD_α with α‖c - ĉ‖₁ is a problem over
occupancies alone. For a prior in the box it reads

    min over occupancies μ   <μ, ĉ> + Σᵢ (1 - ĉᵢ) (μᵢ - μ_E,i - α)₊ + (1 + ĉᵢ) (μ_E,i - μᵢ - α)₊

(with Tγ μ = Tγ μ_E, the flow of the expert). The apprentice does what the prior asks for. This is
free while its occupancy of each pair is within α of the expert's; beyond, it pays the largest
price that a cost in the box allows. So α is a mass: the occupancy per pair by which the expert is
not to be taken at its word. It is to be compared with the occupancies, which are of the order 1/n,
not with costs, and the α of "l2" (whose unit is mass per cost) does not carry over. The learned
cost stays at the prior, exactly, in pairs where the apprentice ends up strictly within the
tolerance.

**A sensible range.** Let μ* be optimal for the prior. Above α = max|μ_E - μ*| (`pinning_alpha`),
(ĉ, μ*) satisfies all optimality conditions and the learned cost is the prior: nothing is learned.
If the expert is estimated from demonstrations, an α below the standard error of μ_E,i, about
sqrt(μ_E,i / N) for N independent draws, learns noise. The range to look at lies in between, from a
thousandth of `pinning_alpha` up to half of it. Sparsity need not grow with α. For small α the cost
has to explain every move of the expert. A cost that tells hardly anything apart does this, too,
and if the prior is mostly constant, such a cost equals it in most pairs.

**Reweighted ℓ1** (Candès, Wakin and Boyd, 2008) is a practical substitute for the ℓ0 norm, the
number of pairs that differ. Each round solves the linear program with

    αᵢ = α / (|cᵢ - ĉᵢ| + δ),      c from the round before (αᵢ = α in the first).

So pairs that have changed become cheaper to change, and untouched ones become 1/δ times as
expensive as in the first round. Because the logarithm lies below its tangents, no round raises

    α Σᵢ log(|cᵢ - ĉᵢ| + δ) + the expert's regret under c.

This objective is not convex: the rounds end at a point that they no longer leave, not at a proven
optimum.

Where `solve_exact` takes its matrix-free method, on large problems, a round is solved to 1% rather
than to rounding. Then this holds up to what that leaves open, and the rounds usually end at
`n_rounds`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.mdp.occupancy import occupancy_of
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.lp import AT_PRIOR

SMALLEST_DELTA = 1e-12  # its inverse is the largest weight that a round may have


def solve_reweighted(problem: RLfDProblem, n_rounds: int = 6, delta: float = 0.1) -> Solution:
    """Find a cost that differs from the prior in few pairs, by reweighted ℓ1.

    Args:
        problem: a problem with `regulariser="l1"`, alpha > 0 and no weights of its own. The
            module's docstring says what its alpha means.
        n_rounds: the largest number of linear programs to solve; the first is
            `solve_exact(problem)`. The rounds end when the cost no longer changes.
        delta: δ, the size of a change that counts as a change. Small values freeze what the first
            round has found.

    Returns:
        The solution of the last linear program. **`upper`, `lower` and the gap are those of that
        program**, the problem with the weights in `stats["weights"]`: they prove that the round
        was solved, and say nothing about ℓ0 or about the logarithms above. For each round, `stats`
        also has `"objective"`, the sum of logarithms plus regret, and `"at_prior"`, the share of
        pairs exactly at the prior.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, 0.3)
        >>> prior = np.where(env.cost > 0, 0.0, env.cost)  # knows no obstacles
        >>> problem = rlfd_gym.RLfDProblem(env.mdp, expert, prior, alpha=0.005, regulariser="l1")
        >>> solution = solve_reweighted(problem)
        >>> first, *_, last = solution.stats["at_prior"]
        >>> first < last == share_at_prior(problem, solution.cost), solution.duality_gap < 1e-9
        (True, True)
    """
    belief = _checks.instance("problem", problem, RLfDProblem).belief
    if not isinstance(belief, NearPrior) or belief.norm != "l1" or belief.weights is not None or belief.alpha == 0:
        raise ValueError(
            f'problem must have regulariser="l1", alpha > 0 and no weights, which are chosen here; it has '
            f"regulariser={problem.regulariser!r}, alpha={problem.alpha:g}"
            f"{'' if getattr(belief, 'weights', None) is None else ' and weights'}"
        )
    rounds = _checks.integer("n_rounds", n_rounds, 1, _checks.MOST_TIMES)
    size = _checks.number("delta", delta, SMALLEST_DELTA, np.inf)
    weights: FloatArray | None
    next_weights: FloatArray | None = None
    cost = np.full(problem.n_pairs, np.inf)
    objective, at_prior = [], []
    for _ in range(rounds):
        weights = next_weights
        weighted = problem.with_belief(replace(belief, weights=weights))
        solution = solve_exact(weighted)
        before, cost = cost, solution.cost
        moved = np.abs(cost - problem.prior)
        regret = solution.upper - weighted.penalty(cost)
        objective.append(float(problem.alpha * np.sum(np.log(moved + size)) + regret))
        at_prior.append(share_at_prior(problem, cost))
        if np.abs(cost - before).max() <= AT_PRIOR:
            break
        next_weights = 1.0 / (moved + size)  # αᵢ = α / (|cᵢ - ĉᵢ| + δ)
    return replace(
        solution,
        method="reweighted-l1",
        stats={"weights": weights, "objective": objective, "at_prior": at_prior},
    )


def share_at_prior(problem: RLfDProblem, cost: ArrayLike) -> float:
    """Return the share of pairs whose cost is exactly the prior, clipped to [-1, 1].

    Costs within 1e-9 of it count as equal: ten times the tolerance of HiGHS.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=0.1)
        >>> share_at_prior(problem, problem.prior)
        1.0
    """
    c = _checks.instance("problem", problem, RLfDProblem).mdp.pairs(cost, "cost")
    return float(np.mean(np.abs(c - np.clip(problem.prior, -1.0, 1.0)) <= AT_PRIOR))


def pinning_alpha(problem: RLfDProblem) -> float:
    """Return an α above which `regulariser="l1"` gives the prior itself: max|μ_E - μ*|.

    Here μ* is optimal for the prior. If several occupancies are, as where actions make no
    difference, a smaller α may do. For an expert estimated from samples, μ* is optimal among the
    occupancies with the expert's flow Tγ μ_E. If that has negative entries, μ* is found by the
    linear program at α = 1, which no |μ_E,i - μᵢ| exceeds.

    >>> import gymnasium as gym, rlfd_gym
    >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, 0.3)
    >>> alpha = 1.01 * pinning_alpha(rlfd_gym.RLfDProblem(env.mdp, expert, env.cost))
    >>> problem = rlfd_gym.RLfDProblem(env.mdp, expert, env.cost, alpha, regulariser="l1")
    >>> bool((solve_exact(problem).cost == env.cost).all())
    True
    """
    mdp = _checks.instance("problem", problem, RLfDProblem).mdp
    flow = mdp.flow(problem.expert)
    if flow.min() >= 0.0:
        plan = mdp.optimal(np.clip(problem.prior, -1.0, 1.0))
        return float(np.abs(problem.expert - occupancy_of(mdp, plan.policy, source=flow)).max())
    pinned = problem.with_belief(NearPrior(problem.prior, 1.0, "l1", outside_box=True))
    return float(np.abs(problem.expert - solve_exact(pinned, "lp").occupancy).max())
