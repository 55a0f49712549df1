r"""imitation's own algorithms on our tables: behavioural cloning by a network, MCE-IRL, GAIL.

Nothing is rewritten here: the tables and the expert are put into the form that the library wants, and the policy that
comes out is read as probabilities over pairs, infeasible actions removed and the rest renormalised. Logs go nowhere,
and the global random generators are left as they were found.

**MCE-IRL** (Ziebart, Bagnell and Dey, "Modeling interaction via the principle of maximum causal entropy", ICML 2010)
learns a cost Cw under which the soft-optimal policy has the expert's features. imitation's `MCEIRL` knows neither
infeasible actions nor costs of actions, its horizon is finite, and it discounts the occupancy it compares but not
the policy it compares it with. All of this is put into the transitions of a model that is not discounted:

* the states s of the MDP; with the columns scaled to φ_k ∈ [0, 1], a state for each of the K features; an end that
  is never left; and a wall;
* (s, a) goes on with probability γ as the MDP does. With probability (1-γ) φ_k(s, a)/K it visits the state of
  feature k, whose reward is -w_k K/(1-γ), and ends; else it just ends. The expected reward is -<φ(s, a), w> then, and
  what remains is discounting: Q(s, a) = -<φ(s, a), w> + γ P V + a constant;
* an infeasible action runs into the wall at a reward of -1e6: its probability exp(-1e6) is zero.

The horizon is long enough for γ^T ≤ 1e-4, and the policy returned is that of the first step. `details` says how far
ψ(μ) is from ψ_E at the end, by the exact occupancy of that policy, and whether that is within the tolerance.
A deterministic expert is matched in the limit of infinite weights only, an estimated one perhaps by no policy at all.
"""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from imitation.algorithms.bc import BC
from imitation.algorithms.mce_irl import MCEIRL
from imitation.data.types import Transitions
from imitation.rewards.reward_nets import RewardNet
from imitation.util.logger import HierarchicalLogger
from numpy.typing import ArrayLike
from seals.base_envs import TabularModelPOMDP
from stable_baselines3.common.logger import Logger

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines.basis import check_basis
from rlfd_gym.baselines.expert import expert_occupancy, is_occupancy
from rlfd_gym.demonstrations import demonstrated_pairs, read_demonstrations
from rlfd_gym.mdp import TabularMDP
from rlfd_gym.solution import Solution

TAIL = 1e-4  # the discounted mass beyond the horizon
WALL = 1e6
BATCH = 128
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
    """Maximum causal entropy inverse reinforcement learning, by imitation's `MCEIRL` and Adam.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        basis: C, (n_pairs, K). `None` gives each state a cost of its own.
        n_iterations: the largest number of gradient steps.
        learning_rate: Adam's, for features scaled to [0, 1].
        tolerance: stop once the scaled features are matched up to this, in ℓ2-norm.

    Returns:
        A solution with the soft-optimal policy, the cost Cw, and `weights` where a basis was given. `details` has the
        `"feature_mismatch"` and whether it `"converged"`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import mce_irl
        >>> env = gym.make("rlfd_gym/Inventory-v0", max_inventory=5, demand_mean=3.0, discount=0.7).unwrapped
        >>> expert = rlfd_gym.noisy_expert(env.mdp, env.cost, noise=0.5)
        >>> solution = mce_irl(env.mdp, expert=expert, basis=env.features)
        >>> solution.details["converged"]
        True
    """
    mu_e = expert_occupancy(mdp, expert)
    steps = _checks.integer("n_iterations", n_iterations, 1)
    rate = _checks.number("learning_rate", learning_rate, 0.0, np.inf, open_ends=True)
    goal = _checks.number("tolerance", tolerance, 0.0)
    c = np.eye(mdp.n_states)[mdp.pair_states] if basis is None else check_basis(basis, mdp.n_pairs, box=False)
    spread = np.ptp(c, axis=0)
    spread[spread == 0] = 1.0  # a constant feature says nothing; its weight stays zero
    features = (c - c.min(axis=0)) / spread
    target = features.T @ mu_e

    model = _undiscounted_model(mdp, features)
    k = features.shape[1]
    visits = np.concatenate([mdp.sum_by_state(mu_e) / (1 - mdp.discount), target / k, np.zeros(2)])
    net = _LinearCost(model).double()
    trainer = MCEIRL(
        visits,
        model,
        net,
        np.random.default_rng(0),  # for drawing actions, which nobody does
        optimizer_kwargs={"lr": rate},
        linf_eps=0.0,
        grad_l2_eps=0.8 * goal / (1 - mdp.discount),  # the rest is for what lies beyond the horizon
        log_interval=None,
        custom_logger=_quiet(),
    )
    trainer.train(max_iter=steps)

    policy = _over_pairs(mdp, trainer.policy.pi[0, : mdp.n_states])
    occupancy = mdp.occupancy_of(policy)
    weights = net.used / spread
    mismatch = float(np.linalg.norm(features.T @ occupancy - target))
    return Solution(
        policy=policy,
        occupancy=occupancy,
        cost=c @ weights,
        weights=None if basis is None else weights,
        method="MCE-IRL (imitation)",
        n_iterations=int(next(iter(trainer.optimizer.state.values()))["step"]),
        details={"feature_mismatch": mismatch, "converged": mismatch <= goal},
    )


def cloning_network(
    mdp: TabularMDP, expert: Any, *, n_batches: int = 500, n_samples: int = 5000, seed: int = 0
) -> Solution:
    """Behavioural cloning by imitation's `BC`, with its default network.

    Args:
        mdp: the environment's tables.
        expert: demonstrations, each of whose transitions counts once, as in imitation; or the expert's occupancy over
            pairs, from which `n_samples` transitions are drawn.
        n_batches: how many gradient steps, of 128 transitions each.
        n_samples: see `expert`.
        seed: of the network, its training and the transitions drawn.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> from rlfd_gym.baselines import cloning_network
        >>> env = gym.make("rlfd_gym/Inventory-v0", max_inventory=5, demand_mean=3.0).unwrapped
        >>> expert = env.mdp.optimal(env.cost).occupancy
        >>> solution = cloning_network(env.mdp, expert=expert, n_batches=150)
        >>> bool(abs(solution.occupancy @ env.cost - expert @ env.cost) < 0.1)
        True
    """
    batches = _checks.integer("n_batches", n_batches, 1)
    rng = np.random.default_rng(seed)
    shown = _transitions(mdp, expert, _checks.integer("n_samples", n_samples, 1), rng)
    with _seeded(seed):
        trainer = BC(
            observation_space=spaces.Discrete(mdp.n_states),
            action_space=spaces.Discrete(mdp.n_actions),
            rng=rng,
            demonstrations=shown,
            batch_size=min(BATCH, len(shown)),
            device="cpu",
            custom_logger=_quiet(),
        )
        trainer.train(n_batches=batches, progress_bar=False, log_interval=batches + 1)
    policy = _network_policy(mdp, trainer.policy)
    return Solution(policy=policy, occupancy=mdp.occupancy_of(policy), method="BC (imitation)", n_iterations=batches)


class _LinearCost(RewardNet):
    """The reward of a state of the model: minus its features times the weights, and the wall's."""

    def __init__(self, model: TabularModelPOMDP[Any]) -> None:
        super().__init__(model.observation_space, model.action_space)
        self.weights = th.nn.Parameter(th.zeros(model.observation_matrix.shape[1] - 1))

    def forward(self, state: th.Tensor, action: Any, next_state: Any, done: Any) -> th.Tensor:
        # MCEIRL makes one step more after its last policy, which belongs to these.
        self.used = self.weights.detach().numpy().copy()
        return -(state[:, :-1] @ self.weights) - WALL * state[:, -1]


def _undiscounted_model(mdp: TabularMDP, features: FloatArray) -> TabularModelPOMDP[Any]:
    """The model of the module's docstring: states, features, end, wall."""
    n, k, gamma = mdp.n_states, features.shape[1], mdp.discount
    size = n + k + 2
    entries = size * mdp.n_actions * size
    if entries > DENSE_ENTRIES:
        raise ValueError(
            f"mdp, basis: MCE-IRL needs a dense table of {entries:.1e} numbers for {n} states, {mdp.n_actions} actions "
            f"and {k} features; at most {DENSE_ENTRIES:.0e} are allowed"
        )
    end, wall = size - 2, size - 1
    table = np.zeros((size, mdp.n_actions, size))
    table[:n, :, wall] = 1.0
    s, a = mdp.pair_states, mdp.pair_actions
    table[s, a, wall] = 0.0
    table[s, a, :n] = gamma * mdp.transitions.toarray()
    table[s, a, n:end] = (1 - gamma) * features / k
    table[s, a, end] = (1 - gamma) * (1 - features.sum(axis=1) / k)
    table[n:, :, end] = 1.0
    seen = np.zeros((size, k + 1))
    seen[n:end, :k] = np.eye(k) * (k / (1 - gamma))
    seen[wall, k] = 1.0
    return TabularModelPOMDP(
        transition_matrix=table,
        observation_matrix=seen,
        reward_matrix=np.zeros(size),
        horizon=math.ceil(math.log(TAIL) / math.log(gamma)) + 1,
        initial_state_dist=np.concatenate([mdp.initial, np.zeros(k + 2)]),
    )


def _transitions(mdp: TabularMDP, expert: Any, n_samples: int, rng: np.random.Generator) -> Transitions:
    """What the demonstrations show, or as many transitions drawn from an occupancy."""
    if is_occupancy(expert):
        pairs = rng.choice(mdp.n_pairs, size=n_samples, p=expert_occupancy(mdp, expert))
    else:
        pairs = demonstrated_pairs(read_demonstrations(expert), mdp)
    states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
    nothing = np.zeros(len(pairs), dtype=bool)
    # The library wants next states and ends too, but what is used of it here looks at neither.
    return Transitions(states, actions, np.array([{}] * len(pairs)), next_obs=states, dones=nothing)


def _network_policy(mdp: TabularMDP, policy: Any) -> FloatArray:
    """What a Stable-Baselines3 policy does, over pairs."""
    with th.no_grad():
        table = policy.get_distribution(th.arange(mdp.n_states)).distribution.probs
    return _over_pairs(mdp, table.double().cpu().numpy())


def _over_pairs(mdp: TabularMDP, table: FloatArray) -> FloatArray:
    """A table of probabilities over pairs, renormalised without the infeasible actions."""
    return mdp.policy_of(table[mdp.pair_states, mdp.pair_actions])


def _quiet() -> HierarchicalLogger:
    return HierarchicalLogger(Logger(folder=None, output_formats=[]))


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators that the libraries draw from, and put them back afterwards."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with th.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad")  # when BC logs its loss
            th.manual_seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
