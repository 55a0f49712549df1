r"""Learning without a transition matrix, from a simulator and an expert's observed transitions.

Algorithm 1 only needs samples: next states from P, and pairs from μ_E with the states that
followed. `BlackBoxProblem` is RLfD_α in these terms. It has no closed-form duality gap, because that
needs P, but the convergence theorem still holds, and `rlfd_gym.solve_sampled` certifies a gap that
holds with a stated probability.

**The start.** With tables the expert's start is Tγ μ_E. Without them it is what the transitions
show: each (s, a, s') of weight w adds w (e_s - γ e_s')/(1-γ), and along a trajectory with weights
(1-γ)γᵗ these add up to its first state, up to γ^T at its last. `initial` is this vector, negative
entries set to zero and the rest normalised, unless a distribution is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.beliefs.near_prior import NORMS
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.problem.problem import near_prior
from rlfd_gym.problem.protocol import Problem, checksums


class TransitionOracle(Protocol):
    """Anything that draws s' ~ P(·|s, a), such as a simulator or one of our environments."""

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> Any:
        """Draw one next state for each (state, action)."""
        ...


@dataclass(frozen=True, eq=False, init=False)
class BlackBoxProblem(Problem):
    """RLfD_α with a transition oracle and a sampled expert instead of P and μ_E.

    Args:
        oracle: an object with a method `sample_next`, which draws next states.
        expert: the expert's observed transitions.
        n_states: the number of states.
        n_actions: the number of actions.
        discount: γ.
        prior: ĉ, over pairs or as a table, in [-1, 1]. `None` needs `alpha=0`.
        alpha: α ≥ 0, the weight of the prior; by default 0.01 with a prior and 0 without.
        regulariser: "l2" or "l1", as in `RLfDProblem`.
        feasible: which actions each state offers, (n_states, n_actions); by default all.
        initial: the distribution of the first state; by default that of the expert's transitions.

    Attributes:
        belief: the `NearPrior` that `prior`, `alpha` and `regulariser` describe.
        pairs: the feasible pairs.
        n_pairs: the number of feasible pairs.
        state_starts: the pairs of state s are state_starts[s] … state_starts[s+1]-1.
        expert_pairs: the pair of each of the expert's transitions.
        initial: the distribution of the first state, from which `solve_sampled` judges policies.

    Example:
        >>> import gymnasium as gym, numpy as np, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4).unwrapped
        >>> rng = np.random.default_rng(0)
        >>> states, actions = rng.integers(16, size=500), np.zeros(500, dtype=int)  # it goes up
        >>> expert = SampledExpert(states, actions, env.sample_next(states, actions, rng))
        >>> problem = BlackBoxProblem(env, expert, n_states=16, n_actions=4, discount=0.7)
        >>> rlfd_gym.solve_smd(problem, n_iterations=200, n_runs=2).policy.shape
        (64,)
    """

    oracle: TransitionOracle
    expert: SampledExpert
    belief: NearPrior
    pairs: Pairs
    n_states: int
    n_actions: int
    n_pairs: int
    discount: float
    state_starts: IntArray = field(repr=False)
    expert_pairs: IntArray = field(repr=False)
    initial: FloatArray = field(repr=False)

    def __init__(
        self,
        oracle: TransitionOracle,
        expert: SampledExpert,
        *,
        n_states: int,
        n_actions: int,
        discount: float,
        prior: ArrayLike | None = None,
        alpha: float | None = None,
        feasible: ArrayLike | None = None,
        regulariser: str = "l2",
        initial: ArrayLike | None = None,
    ) -> None:
        """Check the arguments and number the feasible pairs."""
        if not callable(getattr(oracle, "sample_next", None)):
            raise TypeError(f"oracle must have a method sample_next(states, actions, rng), got {type(oracle).__name__}")
        _checks.instance("expert", expert, SampledExpert)
        shape = (
            _checks.integer("n_states", n_states, 1, _checks.MOST_STATES),
            _checks.integer("n_actions", n_actions, 1, _checks.MOST_STATES),
        )
        mask = np.ones(shape, dtype=bool) if feasible is None else _checks.as_array("feasible", feasible)
        if mask.shape != shape or mask.dtype != np.bool_ or not mask.any(axis=1).all():
            raise ValueError(f"feasible must be a boolean array of shape {shape} with an action in every state")
        self._check_expert(expert, mask)
        pairs = Pairs.of_mask(mask)
        norm = _checks.one_of("regulariser", regulariser, NORMS)
        values: dict[str, Any] = {
            "oracle": oracle,
            "expert": expert,
            "belief": near_prior(prior, alpha, norm, pairs.n_pairs).over(pairs),
            "pairs": pairs,
            "n_states": shape[0],
            "n_actions": shape[1],
            "n_pairs": pairs.n_pairs,
            "discount": _checks.discount_factor(discount),
            "state_starts": pairs.state_starts,
            "expert_pairs": pairs.pair_index(expert.states, expert.actions),
        }
        if initial is None:
            start = np.maximum(observed_start(expert, shape[0], values["discount"]), 0.0)
            values["initial"] = start / start.sum()
        else:
            values["initial"] = _checks.distribution("initial", initial, shape[0], "state (n_states)").copy()
        self._fill(**values)

    @property
    def pair_states(self) -> IntArray:
        """The state of each pair."""
        return self.pairs.pair_states

    @property
    def pair_actions(self) -> IntArray:
        """The action of each pair."""
        return self.pairs.pair_actions

    @cached_property
    def expert_occupancy(self) -> FloatArray:
        """μ_E over pairs: the weights of the expert's transitions, added up."""
        sums = np.bincount(self.expert_pairs, weights=self.expert.weights, minlength=self.n_pairs)
        return np.asarray(sums / sums.sum())

    @cached_property
    def world_sums(self) -> tuple[int, ...]:
        """The checksums of the feasible pairs and of the expert's transitions."""
        return checksums(
            self.pair_states, self.pair_actions, self.expert_pairs, self.expert.next_states, self.expert.weights
        )

    @staticmethod
    def _check_expert(expert: SampledExpert, mask: np.ndarray[Any, Any]) -> None:
        """Check that the environment has every transition of the expert."""
        n_states, n_actions = mask.shape
        outside = (expert.states < 0) | (expert.states >= n_states)
        outside |= (expert.next_states < 0) | (expert.next_states >= n_states)
        outside |= (expert.actions < 0) | (expert.actions >= n_actions)
        bad = outside.copy()
        bad[~outside] = ~mask[expert.states[~outside], expert.actions[~outside]]
        if bad.any():
            t = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"expert: transition {t} is (state {expert.states[t]}, action {expert.actions[t]}, next state "
                f"{expert.next_states[t]}), which an environment of {n_states} states and {n_actions} actions "
                "with these feasible actions does not have"
            )


def observed_start(expert: SampledExpert, n_states: int, discount: float) -> FloatArray:
    """Return where transitions begin: Σ w (e_s - γ e_s')/(1-γ), which sums to one.

    >>> walk = SampledExpert([0, 1, 1], [0, 0, 0], [1, 1, 1], weights=[0.5, 0.25, 0.25])
    >>> observed_start(walk, 2, discount=0.5).tolist()
    [1.0, 0.0]
    """
    left = np.bincount(expert.states, weights=expert.weights, minlength=n_states)
    entered = np.bincount(expert.next_states, weights=expert.weights, minlength=n_states)
    return np.asarray((left - discount * entered) / (1 - discount))
