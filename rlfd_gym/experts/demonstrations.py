r"""Estimates of the expert's occupancy from demonstrations.

**estimator="policy"**, the default, is the occupancy from ν₀ of the estimated policy π̂: π̂(a|s) is
how often a was taken in s. In states that no demonstration leaves, π̂ is optimal for the prior
where there is one, so that what was not seen is no reason to depart from it, and uniform otherwise.
It uses all steps alike, needs no times, and its error is about half of that of the count
(docs/estimators.md). It takes the demonstrator to have one policy for all times.

**estimator="count"** takes nothing for granted, and is an average over independent trajectories,
which statements with a probability need (`rlfd_gym.problem.confidence`). Its start is the sample's,
not ν₀. K trajectories s₀ a₀ s₁ a₁ … s_T count equally, and each step has the weight of its time:

    μ̂(s, a) = 1/K Σ_k [(1-γ) Σ_{t<T_k} γᵗ 1{s_t = s, a_t = a} + γ^{T_k} μ_tail(s, a; s_{T_k})].

The second term is the mass γ^T of what follows the end, which a trajectory does not show. The
model continues it: μ_tail(·; s) is the occupancy from start s of π̂, uniform in states that were
never left. This one rule covers two cases:

* A trajectory that *terminated* ends in an absorbing state. The model stays there with all of γ^T.
* A trajectory that was *truncated* continues as the demonstrator would have continued from there.
  If the demonstrator has a fixed policy, μ̂ tends to the true occupancy as K grows, provided that
  the trajectories are long enough to leave every state that it visits. In states beyond their
  horizon π̂ is uniform, however large K is. What remains is the error of π̂, times γ^T; if this mass
  is more than 1%, a warning says how large it is, and how much of it lies in such states.

The model decides which case applies, not `trajectory.terminal`: imitation's rollouts set that flag
at the end of every episode, even if a time limit ended it, and seals' tabular environments call
their horizon a termination.

`rlfd_gym.experts.reading` says what demonstrations may be, and which transitions have times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.possible import check_possible
from rlfd_gym.experts.reading import Demonstrations as Demonstrations  # found here as well
from rlfd_gym.experts.reading import read_demonstrations as read_demonstrations
from rlfd_gym.experts.states import is_over_states, occupancy_from_states
from rlfd_gym.mdp.occupancy import occupancy_of, occupancy_of_table, policy_chain, policy_of, solve_discounted
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.mdp.tables import TabularMDP

DISCOUNTINGS = ("trajectory", "none")
ESTIMATORS = ("policy", "count")
EXTRAPOLATED = "is extrapolated with the policy read off the demonstrations"
SMALL_TAIL = 0.01  # warn if a larger share of the mass is extrapolated


def occupancy_from_demonstrations(
    demonstrations: Any,
    mdp: TabularMDP,
    *,
    discounting: str = "trajectory",
    estimator: str = "policy",
    prior: ArrayLike | None = None,
) -> FloatArray:
    """Estimate the expert's occupancy over pairs from demonstrations.

    Transitions that the tables call impossible give a warning, or an error if they are many
    (`rlfd_gym.experts.possible`).

    Args:
        demonstrations: an iterable of imitation's trajectories (a list, a generator, a lazily
            loaded dataset, also a plain one of HuggingFace's) or of Minari's episodes; imitation's
            `Transitions` or `TransitionsMinimal`, or an iterable of batches with "obs" and "acts",
            such as a data loader, see `rlfd_gym.experts.reading`; or an occupancy, as an array over
            pairs, a table over states × actions, or, as for MCEIRL, an array over states, see
            `rlfd_gym.experts.states`.
        mdp: the environment's tables.
        discounting: of the count. "trajectory" weighs step t by (1-γ)γᵗ; transitions have times only
            in their order, with "next_obs" and "dones". "none" counts every transition once. This
            gives the undiscounted frequencies, which equal the discounted occupancy only if the
            transitions were drawn from it. With "policy", "none" leaves out what followed, so that it
            is not compared with the tables either.
        estimator: "policy" or "count", see the module's docstring. "policy" needs no times, and is
            the one for actions that an expert gave for states of somebody else's choice, as in
            DAgger.
        prior: of "policy", the cost for which the expert is taken to be optimal in states that no
            demonstration leaves. By default it is taken to act uniformly there.

    Example:
        >>> from types import SimpleNamespace
        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> stays_once_then_moves = SimpleNamespace(obs=[0, 0, 1], acts=[0, 1], terminal=True)
        >>> occupancy_from_demonstrations([stays_once_then_moves], mdp, estimator="count").tolist()
        [0.5, 0.25, 0.25]
        >>> occupancy_from_demonstrations([stays_once_then_moves], mdp).round(3).tolist()
        [0.333, 0.333, 0.333]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    how: dict[str, Any] = {"discounting": discounting, "estimator": estimator, "prior": prior}
    _check_how(**how)
    if isinstance(demonstrations, np.ndarray):
        if is_over_states(demonstrations, mdp):
            return occupancy_from_states(demonstrations, mdp, name="demonstrations")
        return occupancy_of_table(mdp, demonstrations, "demonstrations")
    read = read_demonstrations(demonstrations)
    if estimator == "policy" and discounting == "none":
        read = read.without_times()
    occupancy = estimate_occupancy(read, mdp, **how)
    check_possible(read, mdp)
    return occupancy


def estimate_occupancy(
    read: Demonstrations,
    mdp: TabularMDP,
    *,
    discounting: str = "trajectory",
    estimator: str = "policy",
    prior: ArrayLike | None = None,
    policy: FloatArray | None = None,
) -> FloatArray:
    """Return μ̂ of the module's docstring, for demonstrations that were read already.

    `policy` replaces π̂ if more is known about the demonstrator than these demonstrations show.
    """
    _check_how(discounting, estimator, prior)
    timed = estimator == "count" and check_timed(read, discounting)
    guess = None if prior is None else mdp.pairs(prior, "prior")
    pairs = demonstrated_pairs(read, mdp)
    counts = np.bincount(pairs, minlength=mdp.n_pairs).astype(np.float64)
    if estimator == "policy":
        known = policy_of(mdp, counts) if guess is None else planned_policy(mdp, counts, guess)
        return occupancy_of(mdp, known if policy is None else policy)
    if not timed:
        return counts / counts.sum()
    assert read.next_states is not None
    seen = np.bincount(pairs, weights=read.weights(mdp.discount), minlength=mdp.n_pairs)
    last, mass = read.next_states[read.ends], read.tails(mdp.discount)
    absorbing = absorbing_states(mdp)
    unknown = ~absorbing & (np.add.reduceat(counts, mdp.state_starts[:-1]) == 0) & (policy is None)
    policy = policy_of(mdp, counts) if policy is None else policy
    start = (1 - mdp.discount) * np.bincount(last, weights=mass, minlength=mdp.n_states)
    tail = solve_discounted(
        policy_chain(mdp, policy).T.tocsr(), np.asarray(start, dtype=np.float64), mdp.discount, norm=1
    )
    guessed = float(np.maximum(tail, 0.0)[unknown].sum())
    where = f", {guessed:.1%} in states that none of them leaves, by all actions alike" if guessed >= 0.0005 else ""
    warn_about_tails(float(mass[~absorbing[last]].sum()), EXTRAPOLATED + where)
    occupancy = seen + np.maximum(tail, 0.0)[mdp.pair_states] * policy
    return np.asarray(occupancy / occupancy.sum())


def demonstrated_pairs(read: Demonstrations, mdp: TabularMDP) -> IntArray:
    """Return the pair of each transition.

    An error names the first transition that the MDP does not have.
    """
    check_known(read, mdp.feasible)
    return mdp.pair_index(read.states, read.actions)


def absorbing_states(mdp: TabularMDP) -> NDArray[np.bool_]:
    """Return which states no action leaves."""
    p = mdp.transitions
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(p.indptr))
    leaving = np.bincount(rows[p.indices != mdp.pair_states[rows]], minlength=mdp.n_pairs)
    return np.asarray(np.add.reduceat(leaving, mdp.state_starts[:-1]) == 0)


def check_known(read: Demonstrations, feasible: NDArray[np.bool_]) -> None:
    """Check that the environment has every state, action and next state."""
    n_states, n_actions = feasible.shape
    arrived = read.states if read.next_states is None else read.next_states
    strange = (read.states < 0) | (read.states >= n_states)
    unknown = (read.actions < 0) | (read.actions >= n_actions)
    lost = (arrived < 0) | (arrived >= n_states)
    known = ~(strange | unknown)
    bad = ~known | lost
    bad[known] |= ~feasible[read.states[known], read.actions[known]]
    if not bad.any():
        return
    i = int(np.flatnonzero(bad)[0])
    if strange[i]:
        what = f"state {read.states[i]}, but the environment has states 0..{n_states - 1}"
    elif unknown[i]:
        what = f"action {read.actions[i]}, but the environment has actions 0..{n_actions - 1}"
    elif not feasible[read.states[i], read.actions[i]]:
        what = f"action {read.actions[i]}, which is not feasible in state {read.states[i]}"
    else:
        what = f"next state {arrived[i]}, but the environment has states 0..{n_states - 1}"
    raise ValueError(f"demonstrations: {read.where(i)} has {what}")


def _check_how(discounting: str, estimator: str = "count", prior: ArrayLike | None = None) -> None:
    _checks.one_of("discounting", discounting, DISCOUNTINGS)
    _checks.one_of("estimator", estimator, ESTIMATORS)
    if prior is not None and estimator != "policy":
        raise ValueError(f'prior is for estimator="policy" only, got estimator={estimator!r}')


def check_timed(read: Demonstrations, discounting: str, *, tables: bool = True) -> bool:
    """Return whether to discount, or raise an error if the demonstrations have no times.

    Only with `tables` can they be read as a policy instead, which the error suggests.
    """
    _check_how(discounting)
    if discounting == "trajectory" and read.lengths is None:
        policy = 'estimator="policy" to use only what was done in each state, ' if tables else ""
        raise ValueError(
            "demonstrations are transitions without times, from which no discounted occupancy can be computed: they "
            "are not in their order, as from a loader that shuffles, or lack next_obs or dones; pass trajectories, a "
            f'loader with shuffle=False, {policy}or discounting="none" to use the undiscounted frequencies'
        )
    return discounting == "trajectory"


def warn_about_tails(mass: float, what: str = EXTRAPOLATED) -> None:
    """Warn if much mass lies after the trajectories' ends; `what` says how it is treated."""
    if mass > SMALL_TAIL:
        warn(
            f"demonstrations end early: {mass:.1%} of the discounted mass lies after their ends and {what}",
            UserWarning,
            stacklevel=4,
        )
