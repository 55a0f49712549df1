"""What the tabular policy and reward share: spaces, files without code, imitation's registries."""

from __future__ import annotations

import os
from typing import Any

import torch as th
from gymnasium.spaces import Discrete
from imitation.util.registry import Registry

from rlfd_gym._files import replacing

VERSION = 1


def table_shape(observation_space: Any, action_space: Any) -> tuple[int, int]:
    """Return (n_states, n_actions) of two discrete spaces that begin at zero."""
    for name, space in (("observation_space", observation_space), ("action_space", action_space)):
        if not isinstance(space, Discrete) or space.start != 0:
            raise TypeError(f"{name} must be Discrete(n), starting at 0, got {space}")
    return int(observation_space.n), int(action_space.n)


def spaces_of(table: th.Tensor) -> tuple[Discrete, Discrete]:
    """Return the spaces that a table is over."""
    return Discrete(table.shape[0]), Discrete(table.shape[1])


def save(path: str | os.PathLike[str], kind: str, tensors: dict[str, th.Tensor]) -> None:
    """Write tensors and a header."""
    content = {"format": kind, "version": VERSION, **{name: t.detach().cpu().clone() for name, t in tensors.items()}}
    with replacing(path) as file:
        th.save(content, file)


def load(path: str | os.PathLike[str], kind: str, names: tuple[str, ...]) -> dict[str, th.Tensor]:
    """Read what `save` has written; nothing in the file is executed."""
    with open(path, "rb") as file:
        try:
            content = th.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(f"{path} is damaged or no {kind} file ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict) or content.get("format") != kind:
        raise ValueError(f"{path} is no {kind} file")
    if content.get("version") != VERSION:
        raise ValueError(f"{path} has version {content.get('version')!r}; this rlfd_gym reads version {VERSION}")
    tables: dict[str, th.Tensor] = {}
    for name in names:
        table = content.get(name)
        if not isinstance(table, th.Tensor) or table.ndim != 2:
            raise ValueError(f"{path} is damaged: it has no table {name!r}")
        tables[name] = table
    return tables


def check_spaces(path: str | os.PathLike[str], loaded: Any, venv: Any) -> None:
    """Refuse what was loaded if it is for other spaces than the environment's."""
    ours, theirs = (loaded.observation_space, loaded.action_space), (venv.observation_space, venv.action_space)
    if ours != theirs:
        raise ValueError(f"{path} is for the spaces {ours[0]}, {ours[1]}; the environment has {theirs[0]}, {theirs[1]}")


def register(registry: Registry[Any], key: str, target: str) -> None:
    """Register an import path once; imitation's registries refuse a second time."""
    if key not in set(registry.keys()):
        registry.register(key, indirect=target)
