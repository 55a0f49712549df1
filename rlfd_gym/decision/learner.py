"""What is learned from a model and a behaviour, over the pairs that may be recommended."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.decision.resampling import Draw, only
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learned from a model and a behaviour."""

    policy: FloatArray
    x: FloatArray
    solution: Solution


@dataclass(frozen=True, eq=False)
class Learner:
    """Learns over the pairs that may be recommended."""

    pairs: IntArray
    belief: Belief
    reading: str

    def problem(self, draw: Draw) -> RLfDProblem:
        """Return the learning problem of a draw."""
        mdp = only(draw.mdp, self.pairs)
        expert = mdp.occupancy_of(mdp.policy_of(draw.visits[self.pairs]))
        return RLfDProblem(mdp, expert, belief=self.belief)

    def learn(self, draw: Draw) -> Learned:
        """Solve the problem of a draw."""
        solution = solve_exact(self.problem(draw))
        return self.read(draw, solution)

    def read(self, draw: Draw, solution: Solution) -> Learned:
        """Read a solution as a policy over all pairs."""
        policy = np.zeros(draw.mdp.n_pairs)
        policy[self.pairs] = solution.policy
        if self.reading == "mode":
            policy = most_likely(draw.mdp, policy)
        return Learned(policy, solution.cost if solution.mixture is None else solution.mixture, solution)


def most_likely(mdp: TabularMDP, policy: FloatArray) -> FloatArray:
    """Return the policy that takes the most likely action."""
    actions = mdp.likely_actions(policy)
    return (mdp.pair_actions == actions[mdp.pair_states]).astype(np.float64)
