r"""SPIBB: follow the prior where the expert was seen often enough, and the expert elsewhere.

Safe policy improvement with baseline bootstrapping. The baseline is the expert's policy π_E, known
from counts N(s, a). A pair with N(s, a) < N∧ is *bootstrapped*: too little is known about it, and
it keeps the expert's probability. Among the other pairs of its state, the remaining probability

    m(s) = Σ π_E(a|s)  over the pairs (s, a) with N(s, a) ≥ N∧

goes to the one that is best for the prior ĉ, by policy iteration in the tables, which may have been
estimated from the same log (`rlfd_gym.read_log`). This is Π_b-SPIBB of the paper. N∧ = 0 is
planning with the prior alone, and N∧ above all counts is the expert, as far as it is known. It is
the natural rival where there is only a log: it asks how often something was tried, RLfD how far
the prior can be trusted.

**As an MDP.** The policies that keep the bootstrapped probabilities are those of another MDP in
which state s offers its pairs with N ≥ N∧, or a single action if there are none, and a pair has the
cost and the transitions

    b(s) + m(s) c(s, a),    b(s) = Σ π_E(a|s) c(s, a)  over the bootstrapped pairs of s,

likewise for P. Planning in it gives the best such policy, with proven bounds.

**Counts** are those of the demonstrations. For an occupancy they are `n_decisions` times μ_E; an
exact one, known without sampling, has infinitely many of them, and then all pairs that the expert
takes at all are free.

**States where the expert never was** have no probability to keep: the paper knows its baseline
everywhere, demonstrations do not. The prior alone decides there.

Laroche, Trichelair and Tachet des Combes, "Safe policy improvement with baseline bootstrapping",
ICML 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy, is_occupancy
from rlfd_gym.experts.demonstrations import demonstrated_pairs, estimate_occupancy, read_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def spibb(
    mdp: TabularMDP, expert: Any, prior: ArrayLike, *, min_count: float = 10, n_decisions: float | None = None
) -> Solution:
    """Plan with the prior, but keep the expert's probability of pairs that it was rarely seen in.

    Args:
        mdp: the environment's tables, known or estimated from a log.
        expert: demonstrations, or the expert's occupancy over pairs.
        prior: ĉ, a cost over pairs.
        min_count: N∧, how often a pair must have been seen to be free. The authors try 5 to 100 on
            a gridworld of 25 states.
        n_decisions: how many decisions an occupancy was estimated from; `None` if it is exact.
            Demonstrations are counted, and do not take it.

    Returns:
        A solution whose cost is the prior, with bounds of its expected cost among all policies
        that keep the bootstrapped probabilities. `stats` has these pairs in `"bootstrapped"`, and
        their share of the expert's decisions in `"bootstrapped_share"`.

    Example:
        >>> from rlfd_gym import demonstrate
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory()
        >>> mdp, prior = problem.mdp, problem.prior
        >>> walks = demonstrate(mdp, mdp.policy_of(problem.expert), 20, mdp.horizon(), seed=0)
        >>> costs = [mdp.expected_cost(spibb(mdp, walks, prior, min_count=n).policy, prior)
        ...          for n in (0, 10, 10**6)]
        >>> costs == sorted(costs)      # from the prior's plan to the expert
        True
    """
    mu_e, counts = _counted(mdp, expert, n_decisions)
    c = mdp.pairs(prior, "prior")
    least = _checks.number("min_count", min_count, 0.0)
    policy = mdp.policy_of(mu_e)
    seen = mdp.sum_by_state((counts > 0).astype(float)) > 0
    kept = (counts < least) & seen[mdp.pair_states]
    plan, choice = _best_free(mdp, c, policy, kept)
    chosen = np.where(kept, policy, 0.0)
    np.add.at(chosen, choice, (1 - mdp.sum_by_state(chosen))[mdp.pair_states[choice]])
    return Solution(
        policy=chosen,
        occupancy=mdp.occupancy_of(chosen),
        cost=c,
        value=plan.value,
        upper=mdp.expected_cost(chosen, c),
        lower=plan.expected_cost - plan.value_error,
        method="spibb",
        stats={"bootstrapped": kept, "bootstrapped_share": float(mu_e[kept].sum())},
    )


def _counted(mdp: TabularMDP, expert: Any, n_decisions: float | None) -> tuple[FloatArray, FloatArray]:
    """Return the expert's occupancy and how often each pair was seen."""
    if is_occupancy(expert) or not isinstance(mdp, TabularMDP):
        mu_e = expert_occupancy(mdp, expert)
        if n_decisions is None:
            return mu_e, np.where(mu_e > 0, np.inf, 0.0)
        return mu_e, mu_e * _checks.number("n_decisions", n_decisions, 0.0, np.inf, open_ends=True)
    read = read_demonstrations(expert)
    counts = np.bincount(demonstrated_pairs(read, mdp), minlength=mdp.n_pairs).astype(float)
    if n_decisions is not None:
        raise ValueError("n_decisions goes with an occupancy; these demonstrations are counted")
    return estimate_occupancy(read, mdp), counts


def _best_free(mdp: TabularMDP, cost: FloatArray, policy: FloatArray, kept: Any) -> tuple[Any, Any]:
    """Plan in the MDP of the module's docstring; return the plan and the free pair of each state.

    States without free pairs have none.
    """
    offered = ~kept
    none = mdp.sum_by_state(offered.astype(float)) == 0
    offered[mdp.state_starts[:-1][none]] = True  # a single action, whose own part is m(s) = 0
    pairs = np.flatnonzero(offered)
    states = mdp.pair_states[pairs]
    fixed = np.where(kept, policy, 0.0)
    rest = np.where(none, 0.0, 1 - mdp.sum_by_state(fixed))[states]
    mix = sp.csr_array((fixed, np.arange(mdp.n_pairs), mdp.state_starts), shape=(mdp.n_states, mdp.n_pairs))
    rows = (mix @ mdp.transitions)[states] + sp.diags_array(rest) @ mdp.transitions[pairs]
    other = TabularMDP(rows, states, mdp.pair_actions[pairs], mdp.initial, mdp.discount, mdp.n_actions)
    plan = other.optimal((mix @ cost)[states] + rest * cost[pairs])
    chosen = pairs[np.flatnonzero(plan.policy)]
    return plan, chosen[~none[mdp.pair_states[chosen]]]
