"""Apprenticeship learning from imperfect experts with prior beliefs, for Gymnasium and imitation.

Importing this package registers its environments with Gymnasium and loads nothing heavy: the
public names, listed once in `__init__.pyi`, are imported on first use.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import lazy_loader

from rlfd_gym import _moved
from rlfd_gym.registration import register_envs

__version__ = "0.2.0"

_lazily, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

_moved.install()
register_envs()


def __getattr__(name: str) -> Any:
    if name == "RLfDTrainer":
        require_imitation(f"rlfd_gym.{name}")
    if name in __all__:
        return _lazily(name)
    if not name.startswith("_") and importlib.util.find_spec(f"rlfd_gym.{name}") is not None:
        # A package, such as rlfd_gym.compare, which `import rlfd_gym` does not load.
        return importlib.import_module(f"rlfd_gym.{name}")
    raise AttributeError(f"module 'rlfd_gym' has no attribute {name!r}")


def require_imitation(name: str) -> None:
    """Raise an error that says what to install, if imitation or what it imports is missing."""
    from rlfd_gym import _install  # here, because Gymnasium 0.29 imports this module

    _install.require_imitation(name)
