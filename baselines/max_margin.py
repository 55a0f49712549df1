r"""MMP, maximum margin planning.

It learns a cost under which the expert beats every policy by that policy's loss, as nearly as
possible. With costs Cw, the occupancies F of policies and a loss over pairs that says how unlike
the expert a pair is, the program is

    min over w   λ/2 ‖w - ŵ‖² + <Cw, μ_E> - min over μ ∈ F of <Cw - loss, μ>.

All after the first term is a hinge: it is zero once the expert is cheaper than each μ by
<loss, μ>. The mean ŵ is zero in the paper.

**With a prior** ĉ, a cost over pairs, the cost is ĉ + Cw and w stays near zero. Without a basis,
where each pair has a cost of its own, this is ŵ = ĉ, and the program reads

    min over c   α ‖c - ĉ‖² + <c, μ_E> - min over μ ∈ F of <c - loss, μ>,      α = λ/2,

which is RLfD_α without its box, and with the loss in the inner minimum. This is the augmented
suboptimality loss of inverse optimisation with the prior as its regulariser. With no loss it is
RLfD_α itself (IO-AL_α of the paper), as long as the box is slack and μ_E is the occupancy of a
policy.

The paper descends along the subgradient λ(w - ŵ) + Cᵀ(μ_E - μ*), where μ* is optimal for
Cw - loss. In tables the program is a sparse quadratic one, which PIQP solves to its end:

    min over w, u   λ/2 ‖w - ŵ‖² + <Cw, μ_E> - <ν₀, u>      subject to   Cw - loss - Tγᵀu ≥ 0,

where the multiplier μ of the rows is the policy that tests the expert hardest.

**Bounds.** The objective above at w, by a forward solve, is an upper bound. Exchanging min and max
gives the lower bound, with d = μ_E - μ for any μ ∈ F,

    <Cŵ, d> - ‖Cᵀd‖²/(2λ) + <loss, μ>.

**The loss**, unless given, is Hamming-like: 1 - μ_E(s, a) / max_b μ_E(s, b) in states that the
expert visits, and 1 in the others. An action that is never taken has the loss 1, the most frequent
one has 0.

Ratliff, Bagnell and Zinkevich, "Maximum margin planning", ICML 2006. For inverse optimisation,
Zattoni Scroccaro, Atasoy and Mohajerin Esfahani, "Learning in inverse optimization: incenter cost,
augmented suboptimality loss, and algorithms", arXiv:2305.07730.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._programs import solve_qp
from rlfd_gym.baselines._expert import seen_expert
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def max_margin(
    mdp: TabularMDP,
    expert: Any,
    basis: ArrayLike | None = None,
    *,
    regularisation: float = 0.01,
    loss: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    prior: ArrayLike | None = None,
) -> Solution:
    """Learn a cost by maximum margin planning, and plan with it.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). `None` gives each pair a cost of its own.
        regularisation: λ > 0.
        loss: the loss over pairs; `None` for the Hamming-like one of the module's docstring,
            zeros for none.
        mean: ŵ, the weights to stay near, of length K (n_pairs without a basis); `None` means
            zero.
        prior: ĉ, a cost over pairs that the learned cost stays near: it is ĉ + Cw.

    Returns:
        A solution whose policy is optimal for the learned cost, without the loss. It has a
        `mixture` w only with a basis. `upper` and `lower` bound the objective, and
        `stats["adversary"]` is the multiplier μ, an occupancy.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import max_margin, scale_basis
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> plan = env.mdp.optimal(env.cost)
        >>> solution = max_margin(env.mdp, expert=plan.occupancy, basis=scale_basis(env.features))
        >>> bool(env.mdp.expected_cost(solution.policy, env.cost) < 0.99 * plan.expected_cost)
        True
    """
    mu_e, seen = seen_expert(mdp, expert, prior)
    n = mdp.n_pairs
    c = sp.eye_array(n, format="csr") if basis is None else sp.csr_array(check_basis(basis, n, box=False))
    size = c.shape[1]
    weight = _checks.number("regularisation", regularisation, 0.0, np.inf, open_ends=True)
    penalty = hamming_loss(mdp, mu_e, seen) if loss is None else mdp.pairs(loss, "loss")
    centre = np.zeros(size) if mean is None else _checks.finite_vector("mean", mean, size, "weight (column of basis)")
    guess = np.zeros(n) if prior is None else mdp.pairs(prior, "prior")

    # The program in v = w - ŵ, times n because the multipliers are of the order 1/n.
    offset = guess + c @ centre
    result = solve_qp(
        n * np.concatenate([np.full(size, weight), np.zeros(mdp.n_states)]),
        n * np.concatenate([c.T @ mu_e, -mdp.initial]),
        None,
        sp.hstack([c, -mdp.flow_matrix().T]),
        penalty - offset,
        None,
        np.full(size + mdp.n_states, np.inf),
    )
    weights = centre + result.x[:size]
    # The multiplier μ, the plan for the learned cost, and what the bounds need.
    adversary = mdp.occupancy_of(mdp.policy_of(np.maximum(result.z[:n], 0.0)))
    cost = guess + c @ weights
    plan = mdp.optimal(cost)
    hardest = mdp.optimal(cost - penalty)
    d = mu_e - adversary
    pull = c.T @ d
    return Solution(
        policy=plan.policy,
        occupancy=plan.occupancy,
        cost=cost,
        mixture=None if basis is None else weights,
        value=plan.value,
        upper=float(weight / 2 * np.sum((weights - centre) ** 2) + cost @ mu_e)
        - (hardest.expected_cost - hardest.value_error),
        lower=float(offset @ d - pull @ pull / (2 * weight) + penalty @ adversary),
        method="max-margin",
        n_iterations=result.n_iterations,
        stats={"adversary": adversary, "loss": penalty},
    )


def loss_of(mdp: TabularMDP, expert: Any) -> FloatArray:
    """Return the Hamming-like loss of an occupancy or of demonstrations, such as held-out ones.

    >>> mdp = TabularMDP([[1.0], [1.0]], [0, 0], [0, 1], initial=None, discount=0.5)
    >>> loss_of(mdp, np.array([0.8, 0.2])).tolist()
    [0.0, 0.75]
    """
    return hamming_loss(mdp, *seen_expert(mdp, expert))


def hamming_loss(mdp: TabularMDP, mu_e: FloatArray, seen: NDArray[np.bool_]) -> FloatArray:
    """Return 1 - μ_E(s, a) / max_b μ_E(s, b), and 1 in states where the expert was not `seen`."""
    top = mdp.max_by_state(mu_e)[mdp.pair_states]
    known = seen[mdp.pair_states] & (top > 0)
    return np.where(known, 1.0 - mu_e / np.where(known, top, 1.0), 1.0)
