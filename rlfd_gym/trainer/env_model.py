"""The environment as the trainer sees it: pairs, a discount, and tables or a simulator.

With tables everything can be computed. Without them there is `sample_next(states, actions, rng)`,
which draws next states, and what the environment says of its spaces. An environment that has
neither, but can be put into a state, is made a simulator by `rlfd_gym.simulate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from imitation.rewards.reward_nets import RewardNet
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.beliefs.near_prior import check_prior
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.mdp import adapters
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.mdp.simulating import can_be_placed, simulate
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution

STAY_DRAWS = 32  # draws per action after which a state that was never left counts as absorbing


@dataclass(frozen=True, eq=False)
class EnvModel:
    """The environment as the trainer sees it.

    Attributes:
        base: the environment itself, unwrapped.
        pairs: its feasible pairs.
        discount: γ.
        mdp: its tables; `None` for a simulator.
    """

    base: Any
    pairs: Pairs = field(repr=False)
    discount: float
    mdp: TabularMDP | None

    @classmethod
    def of(cls, env: Any, discount: float | None) -> EnvModel:
        """Read an environment: its tables, or what a simulator says of itself."""
        base = adapters.unwrap(env)
        try:
            mdp, _ = adapters.model_of_env(env, discount=discount)
        except adapters.NotTabularError:
            if not callable(getattr(base, "sample_next", None)):
                if not can_be_placed(env):
                    raise
                base = simulate(env, discount=discount)
            return cls._without_tables(base, discount)
        return cls(base, mdp, mdp.discount, mdp)

    @classmethod
    def _without_tables(cls, base: Any, discount: float | None) -> EnvModel:
        """Read a simulator, which has `Discrete` spaces and may have `feasible` and `discount`."""
        shape = []
        for name in ("observation_space", "action_space"):
            space: Any = getattr(base, name, None)
            if not hasattr(space, "n") or getattr(space, "start", 0) != 0:
                raise TypeError(f"env: {name} must be Discrete(n), starting at 0, for learning from draws; got {space}")
            shape.append(int(space.n))
        feasible = np.asarray(getattr(base, "feasible", np.ones(shape, dtype=bool)))
        if feasible.shape != tuple(shape) or feasible.dtype != np.bool_ or not feasible.any(axis=1).all():
            raise ValueError(f"env: feasible must be a boolean array of shape {tuple(shape)}, an action in every state")
        if discount is None:
            discount = getattr(base, "discount", adapters.DEFAULT_DISCOUNT)
        return cls(base, Pairs.of_mask(feasible), _checks.discount_factor(discount), None)

    @property
    def observations(self) -> FloatArray | None:
        """The observation of each state, where observations are vectors (seals)."""
        return getattr(self.base, "observation_matrix", None)

    def check_net(self, name: str, net: Any) -> None:
        """Refuse what is no reward net, or one that does not take every state and action."""
        if not isinstance(net, RewardNet):
            raise TypeError(f"{name} must be an imitation RewardNet, got {type(net).__name__}")
        states, actions, pairs = net.observation_space, net.action_space, self.pairs
        vectors = not hasattr(states, "n") and self.observations is not None
        if not (vectors or getattr(states, "n", 0) >= pairs.n_states) or getattr(actions, "n", 0) < pairs.n_actions:
            raise ValueError(
                f"{name} is for {states} and {actions}, but env has {pairs.n_states} states and {pairs.n_actions} "
                "actions"
            )

    def pairs_of(self, name: str, values: Any) -> FloatArray:
        """Return a prior over pairs from a vector, a table, or a function of state and action."""
        if callable(values):
            pairs = zip(self.pairs.pair_states.tolist(), self.pairs.pair_actions.tolist(), strict=True)
            values = [values(state, action) for state, action in pairs]
        return check_prior(self.pairs.pairs(values, name).copy())

    def problem(self, expert: Any, prior: Any, alpha: float, regulariser: str) -> RLfDProblem | BlackBoxProblem:
        """Pose the problem, for an occupancy or, without tables, for a `SampledExpert`.

        `prior` is a vector or `None`, or with tables a belief, which has its own α and norm.
        """
        if self.mdp is not None and isinstance(prior, Belief):
            return RLfDProblem(self.mdp, expert, belief=prior)
        if self.mdp is not None:
            return RLfDProblem(self.mdp, expert, prior, alpha, regulariser)
        return BlackBoxProblem(
            self.base,
            expert,
            n_states=self.pairs.n_states,
            n_actions=self.pairs.n_actions,
            discount=self.discount,
            prior=prior,
            alpha=alpha,
            feasible=self.pairs.feasible,
            regulariser=regulariser,
        )

    def state_occupancy(self, policy: FloatArray, occupancy: FloatArray) -> FloatArray:
        """Return a policy's state occupancy; without tables, that of the learned occupancy."""
        pairs = occupancy if self.mdp is None else self.mdp.occupancy_of(policy)
        sums = np.bincount(self.pairs.pair_states, weights=pairs, minlength=self.pairs.n_states)
        return np.asarray(sums, dtype=np.float64)

    def expected_costs(self, expert: Any, solution: Solution, policy: FloatArray) -> tuple[float, float]:
        """Return the expected costs of expert and apprentice under the learned cost."""
        if self.mdp is not None:
            return float(expert @ solution.cost), self.mdp.expected_cost(policy, solution.cost)
        shown = solution.cost[self.pairs.pair_index(expert.states, expert.actions)]
        return float(expert.weights @ shown), float(solution.occupancy @ solution.cost)

    def transitions(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """Return all possible transitions, with equal weight for each pair.

        Without tables there is one self-loop per pair.
        """
        states, actions, n = self.pairs.pair_states, self.pairs.pair_actions, self.pairs.n_pairs
        if self.mdp is None:
            return states, actions, states, np.full(n, 1.0 / n)
        p = self.mdp.transitions
        rows = np.repeat(np.arange(n), np.diff(p.indptr))
        return states[rows], actions[rows], p.indices.astype(np.int64), p.data / p.data.sum()

    def as_executed(self, read: Demonstrations) -> Demonstrations:
        """Replace infeasible actions by what the environment did instead.

        An agent that knows no masks asks for anything, and rollouts record what it asked for. The
        environment's `cut_action`, if there is one, says what was done.
        """
        cut = getattr(self.base, "cut_action", None)
        if not callable(cut):
            return read
        inside = (read.states >= 0) & (read.states < self.pairs.n_states)
        inside &= (read.actions >= 0) & (read.actions < self.pairs.n_actions)
        known = np.flatnonzero(inside)
        actions = read.actions.copy()
        for i in known[~self.pairs.feasible[read.states[known], actions[known]]]:
            actions[i] = cut(int(read.states[i]), int(actions[i]))
        return replace(read, actions=actions)

    def seems_absorbing(self, read: Demonstrations) -> NDArray[np.bool_]:
        """Return which of the states that trajectories terminated in no action seems to leave."""
        n_states, feasible = self.pairs.n_states, self.pairs.feasible
        absorbing = np.zeros(n_states, dtype=bool)
        if read.lengths is None or read.next_states is None:
            return absorbing
        rng = np.random.default_rng(0)
        last = read.next_states[read.ends[read.terminal]]
        for state in np.unique(last[(last >= 0) & (last < n_states)]):
            actions = np.repeat(np.flatnonzero(feasible[state]), STAY_DRAWS)
            drawn = self.base.sample_next(np.full(len(actions), state), actions, rng)
            absorbing[state] = bool((np.asarray(drawn) == state).all())
        return absorbing
