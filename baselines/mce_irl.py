r"""MCE-IRL, maximum causal entropy inverse reinforcement learning, by the `imitation` library.

It learns the cost Cw under which the soft-optimal policy, π(a|s) ∝ exp(-Q(s, a)) with
Q = Cw + γPV and V = -log Σ_a exp(-Q), has the expert's features: ψ(μ) = ψ_E. Nothing is rewritten
here: the tables and the expert are put into the form that imitation's `MCEIRL` wants. `MCEIRL`
knows neither infeasible actions nor costs of actions, its horizon is finite, and it discounts the
occupancies that it compares but not the values that its policy is made from. All of this goes into
the transitions of a model that is not discounted:

* The states of the model are the states s of the MDP; with the columns scaled to φ_k ∈ [0, 1], a
  state for each of the K features; an end that is never left; and a wall.
* With probability γ, (s, a) continues as in the MDP. With probability (1-γ) φ_k(s, a)/K it visits
  the state of feature k, whose reward is -w_k K/(1-γ), and ends; otherwise it just ends. The
  expected reward is then -<φ(s, a), w>, and what remains is discounting: in rewards,
  Q(s, a) = -<φ(s, a), w> + γ P V + a constant.
* An infeasible action runs into the wall at a reward of -1e6: its probability exp(-1e6) is zero.

The horizon is long enough for γ^T ≤ 1e-4, and the policy returned is that of the first step.
`stats` says how far ψ(μ) is from ψ_E at the end, by the exact occupancy of that policy, and
whether that is within the tolerance. A deterministic expert is matched only in the limit of
infinite weights, an estimated one perhaps by no policy at all.

Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", ICML
2010.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from imitation.algorithms.mce_irl import MCEIRL
from imitation.rewards.reward_nets import RewardNet
from numpy.typing import ArrayLike
from seals.base_envs import TabularModelPOMDP

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.beliefs.basis import check_basis
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution
from rlfd_gym.trainer.logging import quiet_logger

WALL = 1e6
DENSE_ENTRIES = 20_000_000  # of the dense model, 8 bytes each


def mce_irl(
    mdp: TabularMDP,
    expert: Any,
    basis: ArrayLike | None = None,
    *,
    n_iterations: int = 150,
    learning_rate: float = 1.0,
    tolerance: float = 1e-3,
) -> Solution:
    """Learn a cost and its soft-optimal policy by imitation's `MCEIRL` and Adam.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). `None` gives each state a cost of its own.
        n_iterations: the largest number of gradient steps.
        learning_rate: Adam's learning rate, for features scaled to [0, 1].
        tolerance: stop once the scaled features are matched up to this, in ℓ2-norm.

    Returns:
        A solution with the soft-optimal policy, the cost Cw, and `mixture` if a basis was given.
        `stats` has `"feature_mismatch"`, and in `"converged"` whether that is within `tolerance`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import mce_irl
        >>> small = dict(max_inventory=5, demand_mean=3.0, discount=0.7)
        >>> env = gym.make("rlfd_gym/Inventory-v0", **small).unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.5)
        >>> solution = mce_irl(env.mdp, expert=expert, basis=env.features)
        >>> solution.stats["converged"]
        True
    """
    mu_e = expert_occupancy(mdp, expert)
    steps = _checks.integer("n_iterations", n_iterations, 1, _checks.MOST_STEPS)
    rate = _checks.number("learning_rate", learning_rate, 0.0, np.inf, open_ends=True)
    goal = _checks.number("tolerance", tolerance, 0.0)
    given = None if basis is None else check_basis(basis, mdp.n_pairs, box=False)
    _check_size(mdp, mdp.n_states if given is None else given.shape[1])
    # The features φ, scaled to [0, 1], and ψ_E.
    c = np.eye(mdp.n_states)[mdp.pair_states] if given is None else given
    spread = np.ptp(c, axis=0)
    spread[spread == 0] = 1.0  # a constant feature says nothing; its weight stays zero
    features = (c - c.min(axis=0)) / spread
    target = features.T @ mu_e

    # How often the expert visits the states and features of the model; the rest does not count.
    model = _undiscounted_model(mdp, features)
    k = features.shape[1]
    visits = np.concatenate([mdp.sum_by_state(mu_e) / (1 - mdp.discount), target / k, np.zeros(2)])
    net = _LinearCost(model).double()
    trainer = MCEIRL(
        visits,
        model,
        net,
        np.random.default_rng(0),  # for drawing actions, which never happens
        optimizer_kwargs={"lr": rate},
        linf_eps=0.0,
        grad_l2_eps=0.8 * goal / (1 - mdp.discount),  # the rest is for what lies beyond the horizon
        log_interval=None,
        custom_logger=quiet_logger(),
    )
    trainer.train(max_iter=steps)

    # The policy of the first step, its exact occupancy, and the weights for unscaled features.
    table: Any = trainer.policy.pi  # over times, states and actions
    policy = mdp.policy_of(table[0, : mdp.n_states])
    occupancy = mdp.occupancy_of(policy)
    weights = net.used / spread
    mismatch = float(np.linalg.norm(features.T @ occupancy - target))
    return Solution(
        policy=policy,
        occupancy=occupancy,
        cost=c @ weights,
        mixture=None if basis is None else weights,
        method="mce-irl",
        n_iterations=int(next(iter(trainer.optimizer.state.values()))["step"]),
        stats={"feature_mismatch": mismatch, "converged": mismatch <= goal},
    )


class _LinearCost(RewardNet):
    """The reward of a model's state: minus its features times the weights, -`WALL` at the wall."""

    def __init__(self, model: TabularModelPOMDP[Any]) -> None:
        super().__init__(model.observation_space, model.action_space)
        self.weights = th.nn.Parameter(th.zeros(model.observation_matrix.shape[1] - 1))

    def forward(self, state: th.Tensor, action: Any, next_state: Any, done: Any) -> th.Tensor:
        # MCEIRL makes one more step after its last policy; these are the weights of that policy.
        self.used = self.weights.detach().numpy().copy()
        return -(state[:, :-1] @ self.weights) - WALL * state[:, -1]


def _check_size(mdp: TabularMDP, n_features: int) -> None:
    """Refuse a problem whose dense tables, which the library needs, would be too large."""
    entries = (mdp.n_states + n_features + 2) ** 2 * mdp.n_actions
    if entries > DENSE_ENTRIES:
        raise ValueError(
            f"mdp, basis: MCE-IRL needs a dense table of {entries:.1e} numbers for {mdp.n_states} states, "
            f"{mdp.n_actions} actions and {n_features} features; at most {DENSE_ENTRIES:.0e} are allowed"
        )


def _undiscounted_model(mdp: TabularMDP, features: FloatArray) -> TabularModelPOMDP[Any]:
    """Build the model of the module's docstring: states, features, end, wall."""
    n, k, gamma = mdp.n_states, features.shape[1], mdp.discount
    size = n + k + 2
    end, wall = size - 2, size - 1
    # Infeasible actions run into the wall; pairs continue, visit a feature or end.
    table = np.zeros((size, mdp.n_actions, size))
    table[:n, :, wall] = 1.0
    s, a = mdp.pair_states, mdp.pair_actions
    table[s, a, wall] = 0.0
    table[s, a, :n] = gamma * mdp.transitions.toarray()
    table[s, a, n:end] = (1 - gamma) * features / k
    table[s, a, end] = (1 - gamma) * (1 - features.sum(axis=1) / k)
    table[n:, :, end] = 1.0
    # What is seen of a state, times the weights, is minus its reward: w_k K/(1-γ) at feature k.
    seen = np.zeros((size, k + 1))
    seen[n:end, :k] = np.eye(k) * (k / (1 - gamma))
    seen[wall, k] = 1.0
    return TabularModelPOMDP(
        transition_matrix=table,
        observation_matrix=seen,
        reward_matrix=np.zeros(size),
        horizon=mdp.horizon() + 1,  # a feature is visited one step after its pair
        initial_state_dist=np.concatenate([mdp.initial, np.zeros(k + 2)]),
    )
