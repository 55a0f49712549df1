"""An imitation reward net that is a table: r(s, a) = -c(s, a), minus the learned cost.

It goes wherever imitation takes a `RewardNet`: `RewardVecEnvWrapper(venv, net.predict_processed)`
trains any Stable-Baselines3 agent on it, and `ReplayBufferRewardWrapper` those with a replay buffer,
which stores states and actions as columns, of shape (n, 1). The table is one double-precision
parameter, so `state_dict`, `to(device)` and imitation's ways of finding a net's device and dtype work,
and an algorithm that trains rewards may continue from it.

Importing this module registers the net with imitation, for
`imitation.rewards.serialize.load_reward("rlfd", path, venv)`.

`fit_reward_net` brings another net as near to a table as it can come: least squares over the pairs,

    min over θ  1/n Σ_(s,a) Σ_s' P(s'|s, a) (r_θ(s, a, s') - r(s, a))²,

by Adam. If the net looks at the state only, for example, the error that remains is the part of the
reward that it cannot express. The nets and batches are small, and torch's threads would wait for each
other for longer than they compute, so that the fit uses one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from gymnasium.spaces import Discrete
from imitation.rewards.reward_function import RewardFn
from imitation.rewards.reward_nets import PredictProcessedWrapper, RewardEnsemble, RewardNet
from imitation.rewards.serialize import ValidateRewardFn, reward_registry
from imitation.util import networks
from numpy.typing import ArrayLike
from stable_baselines3.common.vec_env import VecEnv

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.trainer import tensors as _tensors

FORMAT = "rlfd_gym.TableRewardNet"
FIT_STEPS = 1500
FIT_BATCH = 8192  # up to here every step of a fit sees all the transitions
FIT_TOLERANCE = 1e-3  # a root mean squared error that is as good as none, for rewards in [-1, 1]


class TableRewardNet(RewardNet):
    """A reward over states and actions, as a table.

    Args:
        observation_space: `Discrete`, the states.
        action_space: `Discrete`, the actions.
        table: r, (n_states, n_actions), finite; by default zero.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> net = TableRewardNet(Discrete(2), Discrete(2), [[0.0, -1.0], [0.5, 0.25]])
        >>> states, actions = np.array([0, 1, 1]), np.array([1, 0, 1])
        >>> net.predict(states, actions, next_state=states, done=np.zeros(3, dtype=bool)).tolist()
        [-1.0, 0.5, 0.25]
    """

    def __init__(
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], table: ArrayLike | None = None
    ) -> None:
        """Check and copy the table."""
        super().__init__(observation_space, action_space)
        self.table = th.nn.Parameter(th.zeros(_tensors.table_shape(observation_space, action_space), dtype=th.float64))
        if table is not None:
            self.set_table(table)

    def set_table(self, table: ArrayLike) -> None:
        """Replace the table in place, so that every reference to this net sees the new one."""
        values = _checks.numbers("table", table)
        if values.shape != tuple(self.table.shape):
            raise ValueError(f"table has shape {values.shape}, expected {tuple(self.table.shape)}: states × actions")
        if not (np.abs(values) <= _checks.LARGEST).all():
            raise ValueError("table must be finite: infeasible actions need a reward too, as an agent may try them")
        with th.no_grad():
            self.table.copy_(th.as_tensor(values))

    def preprocess(
        self, state: Any, action: Any, next_state: Any, done: Any
    ) -> tuple[th.Tensor, th.Tensor, th.Tensor, th.Tensor]:
        """Return states, actions and next states as one-hot rows, and `done` as numbers.

        States and actions are whole numbers of shape (n,), or (n, 1) as a replay buffer has them.
        """
        n_states, n_actions = self.table.shape
        states, actions = _column("state", state, n_states), _column("action", action, n_actions)
        following = _column("next_state", next_state, n_states)
        if not len(states) == len(actions) == len(following):
            sizes = ", ".join(str(np.shape(values)) for values in (state, action, next_state))
            raise ValueError(f"state, action and next_state must be equally many, got the shapes {sizes}")
        return super().preprocess(states, actions, following, np.asarray(done).reshape(-1))

    def forward(self, state: th.Tensor, action: th.Tensor, next_state: Any = None, done: Any = None) -> th.Tensor:
        """Return the rewards of one-hot states and actions, as `preprocess` makes them."""
        n_states, n_actions = self.table.shape
        if state.shape[1:] != (n_states,) or action.shape[1:] != (n_actions,) or len(state) != len(action):
            raise ValueError(
                f"state and action must be one-hot rows, (n, {n_states}) and (n, {n_actions}), as preprocess makes "
                f"them; got the shapes {tuple(state.shape)} and {tuple(action.shape)}"
            )
        return ((state.to(self.table.dtype) @ self.table) * action.to(self.table.dtype)).sum(dim=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file."""
        _tensors.save(path, FORMAT, "table", self.table)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableRewardNet:
        """Read a table from a file that `save` has written; no code is executed."""
        table = _tensors.load(path, FORMAT, "table")
        with _tensors.naming(path):
            return cls(*_tensors.spaces_of(table), table.numpy())


def _column(name: str, values: Any, number: int) -> IntArray:
    """Return states or actions, of shape (n,) or (n, 1), as whole numbers below `number`."""
    array = values.detach().cpu().numpy() if isinstance(values, th.Tensor) else np.asarray(values)
    if array.shape[1:] not in ((), (1,)) or array.ndim == 0 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} must be whole numbers of shape (n,) or (n, 1), got {array.dtype} of shape {array.shape}"
        )
    column = array.reshape(-1)
    bad = ~((column >= 0) & (column < number) & (column == np.floor(column)))
    if bad.any():
        raise ValueError(f"{name} must hold whole numbers from 0 to {number - 1}, but it holds {column[bad][0]}")
    return column.astype(np.int64)


def load_reward(path: str | os.PathLike[str], venv: VecEnv) -> RewardFn:
    """Load a saved reward for an environment: what `load_reward("rlfd", path, venv)` calls."""
    net = TableRewardNet.load(path)
    _tensors.check_spaces(path, net, venv)
    return ValidateRewardFn(net.predict_processed)


def reward_table(cost_table: FloatArray, env: Any) -> FloatArray:
    """Return -cost; an infeasible action has the reward of what the environment would do instead.

    `env.cut_action(state, action)` says what that is; without such a method it has the lowest one.
    """
    table = -cost_table + 0.0
    missing = np.argwhere(np.isnan(table))
    if len(missing) == 0:
        return table
    lowest = np.nanmin(table)
    cut = getattr(env, "cut_action", None)
    for state, action in missing:
        instead = table[state, cut(int(state), int(action))] if callable(cut) else np.nan
        table[state, action] = lowest if np.isnan(instead) else instead
    return table


def fit_reward_net(
    net: RewardNet,
    table: FloatArray,
    transitions: tuple[IntArray, IntArray, IntArray, FloatArray],
    rng: np.random.Generator,
    observations: FloatArray | None = None,
) -> float:
    """Fit `net` to a table in place, and return the root mean squared error that is left.

    Args:
        net: any reward net over the environment's observations and actions. Of an ensemble every
            member is fitted, and the largest error returned.
        table: r, (n_states, n_actions).
        transitions: states, actions, next states and weights to fit on; the weights sum to one.
        rng: draws the batches, where there are too many transitions for one.
        observations: what the net sees of each state, for environments whose observations are vectors.
    """
    while isinstance(net, PredictProcessedWrapper):  # it computes what its base does
        net = net.base
    if isinstance(net, RewardEnsemble):  # it computes nothing by itself
        members: list[Any] = list(net.members)
        return max(fit_reward_net(member, table, transitions, rng, observations) for member in members)
    if isinstance(net, TableRewardNet):
        net.set_table(table)
        return 0.0
    with _one_thread():
        return _train(net, _batches(net, table, transitions, observations), transitions[3], rng)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch compute with one thread, and with as many as before afterwards."""
    before = th.get_num_threads()
    th.set_num_threads(1)
    try:
        yield
    finally:
        th.set_num_threads(before)


def _batches(
    net: RewardNet,
    table: FloatArray,
    transitions: tuple[IntArray, IntArray, IntArray, FloatArray],
    observations: FloatArray | None,
) -> Callable[[IntArray], tuple[Any, th.Tensor]]:
    """Return a function that prepares transitions, given by number, as (inputs, targets)."""
    discrete = isinstance(net.observation_space, Discrete)
    if not discrete and observations is None:
        raise ValueError(
            f"reward_net has the observation space {net.observation_space}, but the environment's states are discrete"
        )
    seen = None if discrete else np.asarray(observations)
    states, actions, following, _ = transitions

    def prepare(rows: IntArray) -> tuple[Any, th.Tensor]:
        s, following_s = (x[rows] if seen is None else seen[x[rows]] for x in (states, following))
        inputs = net.preprocess(s, actions[rows], following_s, np.zeros(len(rows), dtype=bool))
        return inputs, th.as_tensor(table[states[rows], actions[rows]], dtype=net.dtype, device=net.device)

    return prepare


def _train(
    net: RewardNet,
    prepare: Callable[[IntArray], tuple[Any, th.Tensor]],
    weights: FloatArray,
    rng: np.random.Generator,
) -> float:
    """Train a net on weighted transitions, and return the root mean squared error that is left."""
    parameters = [p for p in net.parameters() if p.requires_grad]
    if not parameters:
        raise ValueError(f"reward_net is a {type(net).__name__} without trainable parameters: nothing can be fitted")

    def errors(inputs: Any, target: th.Tensor) -> th.Tensor:
        """r_θ - r."""
        return net(*inputs).reshape(-1) - target

    n = len(weights)
    everything = np.arange(n)
    whole = prepare(everything) if n <= FIT_BATCH else None
    weight = th.as_tensor(weights, dtype=net.dtype, device=net.device)
    optimizer = th.optim.Adam(parameters, lr=1e-2)
    schedule = th.optim.lr_scheduler.CosineAnnealingLR(optimizer, FIT_STEPS, eta_min=1e-4)
    with networks.training(net):
        for _ in range(FIT_STEPS):
            optimizer.zero_grad()
            if whole is not None:
                loss = (weight * errors(*whole) ** 2).sum()
            else:
                loss = (errors(*prepare(rng.choice(n, size=FIT_BATCH, p=weights))) ** 2).mean()
            loss.backward()
            optimizer.step()
            schedule.step()
            if loss.item() < FIT_TOLERANCE**2:
                break
    with networks.evaluating(net), th.no_grad():
        parts = np.array_split(everything, -(-n // FIT_BATCH))
        return float(np.sqrt(sum(float((weight[rows] * errors(*prepare(rows)) ** 2).sum()) for rows in parts)))


_tensors.register(reward_registry, "rlfd", f"{__name__}:load_reward")
