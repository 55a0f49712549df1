"""Learning without a transition matrix: a simulator to draw from, and transitions that an expert was seen to make.

Algorithm 1 only ever draws: next states from P, and pairs from μ_E with the states that followed. `BlackBoxProblem` is
RLfD_α in these terms. It has no duality gap, because that needs P; the convergence theorem holds all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem.problem import REGULARISERS, ConvergenceTheorem


class TransitionOracle(Protocol):
    """Anything that draws s' ~ P(·|s, a), such as a simulator; rlfd_gym's environments do."""

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> Any:
        """One next state for each (state, action)."""
        ...


@dataclass(frozen=True, eq=False)
class BlackBoxProblem(ConvergenceTheorem):
    """RLfD_α with a transition oracle and a sampled expert in the place of P and μ_E.

    Args:
        oracle: what draws next states.
        expert: the transitions the expert was seen to make.
        n_states: how many states there are.
        n_actions: how many actions there are.
        discount: γ.
        prior: ĉ over pairs. `None` needs `alpha=0`.
        alpha: how much the prior weighs.
        regulariser: "l2" or "l1", as in `RLfDProblem`.
        feasible: (n_states, n_actions), which actions each state offers; by default all.

    Example:
        >>> import gymnasium as gym, numpy as np, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4).unwrapped
        >>> rng = np.random.default_rng(0)
        >>> states, actions = rng.integers(16, size=500), np.zeros(500, dtype=int)      # an expert who goes up
        >>> expert = SampledExpert(states, actions, env.sample_next(states, actions, rng))
        >>> problem = BlackBoxProblem(env, expert, n_states=16, n_actions=4, discount=0.7)
        >>> rlfd_gym.solve_smd(problem, n_iterations=200, n_runs=2).policy.shape
        (64,)
    """

    oracle: TransitionOracle
    expert: SampledExpert
    n_states: int
    n_actions: int
    discount: float
    prior: FloatArray = field(repr=False)
    alpha: float
    pair_states: IntArray = field(repr=False)
    pair_actions: IntArray = field(repr=False)
    state_starts: IntArray = field(repr=False)
    expert_pairs: IntArray = field(repr=False)
    n_pairs: int
    regulariser: str = "l2"

    def __init__(
        self,
        oracle: TransitionOracle,
        expert: SampledExpert,
        *,
        n_states: int,
        n_actions: int,
        discount: float,
        prior: ArrayLike | None = None,
        alpha: float = 0.0,
        feasible: ArrayLike | None = None,
        regulariser: str = "l2",
    ) -> None:
        """Check, and number the feasible pairs."""
        if not callable(getattr(oracle, "sample_next", None)):
            raise TypeError(f"oracle must have a method sample_next(states, actions, rng), got {type(oracle).__name__}")
        if not isinstance(expert, SampledExpert):
            raise TypeError(f"expert must be a SampledExpert, got {type(expert).__name__}")
        shape = (_checks.integer("n_states", n_states, 1), _checks.integer("n_actions", n_actions, 1))
        mask = np.ones(shape, dtype=bool) if feasible is None else np.asarray(feasible)
        if mask.shape != shape or mask.dtype != np.bool_ or not mask.any(axis=1).all():
            raise ValueError(f"feasible must be a boolean array of shape {shape} with an action in every state")
        states, actions = np.nonzero(mask)
        number = np.cumsum(mask).reshape(shape) - 1
        self._check_expert(expert, mask)
        guess, weight = _checks.prior_and_alpha(prior, alpha, len(states))
        values = {
            "oracle": oracle,
            "expert": expert,
            "n_states": shape[0],
            "n_actions": shape[1],
            "discount": _checks.discount_factor(discount),
            "prior": guess,
            "alpha": weight,
            "regulariser": _checks.one_of("regulariser", regulariser, REGULARISERS),
            "pair_states": states,
            "pair_actions": actions,
            "state_starts": np.concatenate([[0], np.cumsum(mask.sum(axis=1))]),
            "expert_pairs": number[expert.states, expert.actions],
            "n_pairs": len(states),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        _checks.lock(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Unpickled arrays are writeable: lock them again."""
        self.__dict__.update(state)
        _checks.lock(self)

    @staticmethod
    def _check_expert(expert: SampledExpert, mask: np.ndarray[Any, Any]) -> None:
        """Every transition of the expert must be one that the environment has."""
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
