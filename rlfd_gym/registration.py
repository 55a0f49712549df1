"""The environments' Gymnasium ids, in one place.

`register_envs` is called by `import rlfd_gym`. Gymnasium 0.29 calls it, too, during
`import gymnasium`, through the `gymnasium.envs` entry point. Therefore this module and
`rlfd_gym/__init__.py` must stay light, and may use nothing of Gymnasium but its registration
module, because the rest is not loaded yet.

`max_episode_steps` is long enough that γ^T < 1e-4 for the default discount. With another discount,
pass `max_episode_steps=env.unwrapped.horizon` to `gym.make`.
"""

from __future__ import annotations

from typing import Any

_ENVS: dict[str, dict[str, Any]] = {
    "rlfd_gym/Inventory-v0": {
        "entry_point": "rlfd_gym.envs:InventoryEnv",
        "max_episode_steps": 100,
    },
    "rlfd_gym/InventoryPaper-v0": {
        "entry_point": "rlfd_gym.envs:InventoryEnv",
        "max_episode_steps": 100,
        "kwargs": {"limit_orders": False, "expected_sales": "truncated", "cost_scale": (-130.0, 0.0)},
    },
    "rlfd_gym/WindyGridworld-v0": {
        "entry_point": "rlfd_gym.envs:WindyGridworldEnv",
        "max_episode_steps": 30,
    },
}


def register_envs() -> None:
    """Register the environments with Gymnasium; calling it again does nothing.

    Example:
        >>> import gymnasium as gym
        >>> register_envs()
        >>> gym.make("rlfd_gym/Inventory-v0").spec.id
        'rlfd_gym/Inventory-v0'
    """
    from gymnasium.envs.registration import register, registry

    for env_id, spec in _ENVS.items():
        if env_id not in registry:
            register(id=env_id, **spec)


def env_ids() -> tuple[str, ...]:
    """Return the ids of this library's environments."""
    return tuple(_ENVS)
