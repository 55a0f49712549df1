"""A Stable-Baselines3 policy that is a table: π(a|s), zero where an action is infeasible.

It carries its own random generator, so that the same seed gives the same actions, and works on one
observation or a batch. `save` writes tensors and numbers only, and `load` reads with
`weights_only=True`: no code is executed. Importing this module registers the policy with imitation, for
`imitation.policies.serialize.load_policy("rlfd", venv, path=...)`.
"""

from __future__ import annotations

import os
from typing import Any

import gymnasium as gym
import numpy as np
import torch as th
from imitation.policies.serialize import policy_registry
from numpy.typing import ArrayLike, NDArray
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.trainer import tensors as _tensors

FORMAT = "rlfd_gym.TablePolicy"


class TablePolicy(BasePolicy):
    """A tabular policy with the interface of Stable-Baselines3.

    Args:
        observation_space: `Discrete`, the states.
        action_space: `Discrete`, the actions.
        probabilities: π, (n_states, n_actions), rows that sum to one; by default uniform.
        seed: of the generator that actions are drawn with, an int or a `Generator`.

    Example:
        >>> from gymnasium.spaces import Discrete
        >>> policy = TablePolicy(Discrete(2), Discrete(3), [[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]])
        >>> policy.predict(np.array([0, 1]), deterministic=True)[0].tolist()    # on a tie, the lowest action
        [0, 2]
        >>> int(policy.predict(1, deterministic=True)[0])
        2
    """

    probabilities: th.Tensor

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        probabilities: ArrayLike | None = None,
        seed: int | np.random.Generator = 0,
    ) -> None:
        """Check and copy the table."""
        shape = _tensors.table_shape(observation_space, action_space)
        super().__init__(observation_space, action_space)
        self.rng = _checks.generator("seed", seed)
        self.register_buffer("probabilities", th.empty(shape, dtype=th.float64))
        self.set_probabilities(np.full(shape, 1.0 / shape[1]) if probabilities is None else probabilities)

    def set_probabilities(self, probabilities: ArrayLike) -> None:
        """Replace the table in place, so that every reference to this policy sees the new one."""
        shape = tuple(self.probabilities.shape)
        table = _checks.numbers("probabilities", probabilities)
        if table.shape != shape:
            raise ValueError(f"probabilities has shape {table.shape}, expected {shape}: states × actions")
        if not ((table >= 0) & (table <= _checks.LARGEST)).all():
            raise ValueError("probabilities must be finite and not negative")
        sums = table.sum(axis=1)
        worst = int(np.argmax(np.abs(sums - 1)))
        if abs(sums[worst] - 1) > _checks.SUM_TOLERANCE:
            raise ValueError(f"probabilities must sum to 1 in each state, but they sum to {sums[worst]} in {worst}")
        sums[np.abs(sums - 1) < 1e-12] = 1.0  # normalised before: what was saved is loaded bit by bit
        with th.no_grad():
            self.probabilities.copy_(th.as_tensor(table / sums[:, None]))

    def seed(self, seed: int | np.random.Generator) -> None:
        """Restart the generator from a seed."""
        self.rng = _checks.generator("seed", seed)

    @property
    def device(self) -> th.device:
        """Where the table is; there are no parameters to ask."""
        return self.probabilities.device

    def _predict(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """Return the actions for a batch of observations."""
        states = self._states(observation)
        rows = self.probabilities.cpu().numpy()[states]
        actions = rows.argmax(axis=1) if deterministic else self._draw(rows)
        return th.as_tensor(actions, device=self.device)

    def forward(self, observation: Any, deterministic: bool = False) -> th.Tensor:
        """Return the actions for a batch of observations, as tensors."""
        return self._predict(observation, deterministic)

    def _draw(self, rows: FloatArray) -> NDArray[np.int64]:
        """Draw one action from each row."""
        cumulative = rows.cumsum(axis=1)
        drawn = (cumulative <= self.rng.random(len(rows))[:, None] * cumulative[:, -1:]).sum(axis=1)
        # Rounding may carry a draw to the end of a row, where infeasible actions are.
        last = rows.shape[1] - 1 - (rows[:, ::-1] > 0).argmax(axis=1)
        return np.minimum(drawn, last)

    def _states(self, observation: Any) -> NDArray[np.int64]:
        """Return observations as states of the table."""
        values = observation.cpu().numpy() if isinstance(observation, th.Tensor) else np.asarray(observation)
        states = values.reshape(-1).astype(np.int64)
        bad = (states != values.reshape(-1)) | (states < 0) | (states >= len(self.probabilities))
        if bad.any():
            raise ValueError(
                f"observation {values.reshape(-1)[bad][0]} is no state; states are 0..{len(self.probabilities) - 1}"
            )
        return states

    def _get_constructor_parameters(self) -> dict[str, Any]:
        """Return the arguments that make the same policy again."""
        return {
            "observation_space": self.observation_space,
            "action_space": self.action_space,
            "probabilities": self.probabilities.cpu().numpy().copy(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a file."""
        _tensors.save(path, FORMAT, "probabilities", self.probabilities)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], device: th.device | str = "auto", seed: int | np.random.Generator = 0
    ) -> TablePolicy:
        """Read a table from a file that `save` has written."""
        table = _tensors.load(path, FORMAT, "probabilities")
        with _tensors.naming(path):
            policy = cls(*_tensors.spaces_of(table), table.numpy(), seed)
        return policy.to(get_device(device))


def load_policy(venv: VecEnv, path: str | os.PathLike[str], seed: int | np.random.Generator = 0) -> TablePolicy:
    """Load a saved policy for an environment: what `load_policy("rlfd", venv, path=...)` calls."""
    policy = TablePolicy.load(path, seed=seed)
    _tensors.check_spaces(path, policy, venv)
    return policy


_tensors.register(policy_registry, "rlfd", f"{__name__}:load_policy")
