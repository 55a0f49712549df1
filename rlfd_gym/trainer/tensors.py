"""What the tabular policy and reward share: spaces, files without code, imitation's registries."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

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


def save(path: str | os.PathLike[str], kind: str, name: str, table: th.Tensor) -> None:
    """Write a table and a header."""
    content = {"format": kind, "version": VERSION, name: table.detach().cpu().clone(memory_format=th.contiguous_format)}
    with replacing(path) as file:
        th.save(content, file)


def load(path: str | os.PathLike[str], kind: str, name: str) -> th.Tensor:
    """Read the one table that `save` has written; nothing in the file is executed, or believed."""
    with open(path, "rb") as file:
        try:
            content = th.load(_copy(file), map_location="cpu", weights_only=True)
        except Exception as error:  # a damaged file can raise nearly anything
            raise ValueError(f"{path} is damaged or no {kind} file ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict) or content.get("format") != kind:
        raise ValueError(f"{path} is no {kind} file")
    if content.get("version") != VERSION:
        raise ValueError(f"{path} has version {content.get('version')!r}; this rlfd_gym reads version {VERSION}")
    table = content.get(name)
    if type(table) is not th.Tensor or table.ndim != 2 or 0 in table.shape or table.dtype != th.float64:
        raise ValueError(f"{path} is damaged: it has no table {name!r} of float64")
    plain = table.layout == th.strided and table.device.type == "cpu" and table.is_contiguous()
    if not plain or table.untyped_storage().nbytes() != table.numel() * table.element_size():
        raise ValueError(f"{path} is damaged: its table {name!r} is not stored as it is")
    return table


def _copy(file: IO[bytes]) -> IO[bytes]:
    """Return the archive in a file in a plain form: torch's reader then sees what was checked here."""
    copy, size = io.BytesIO(), os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(copy, "w") as plain:
        members = archive.infolist()
        if len({member.filename for member in members}) != len(members):
            raise ValueError("two of its parts have one name")
        if any(member.compress_type != zipfile.ZIP_STORED for member in members):
            raise ValueError("it is compressed, which tables are not")
        if any(member.compress_size != member.file_size for member in members):
            raise ValueError("its directory contradicts itself")
        if sum(member.file_size for member in members) > size:
            raise ValueError("its parts are larger than the file")
        for member in members:
            plain.writestr(member.filename, archive.read(member))
    copy.seek(0)
    return copy


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors about a table that was loaded name its file."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def check_spaces(path: str | os.PathLike[str], loaded: Any, venv: Any) -> None:
    """Refuse what was loaded if it is for other spaces than the environment's."""
    ours, theirs = (loaded.observation_space, loaded.action_space), (venv.observation_space, venv.action_space)
    if ours != theirs:
        raise ValueError(f"{path} is for the spaces {ours[0]}, {ours[1]}; the environment has {theirs[0]}, {theirs[1]}")


def register(registry: Registry[Any], key: str, target: str) -> None:
    """Register an import path once; imitation's registries refuse a second time."""
    if key not in set(registry.keys()):
        registry.register(key, indirect=target)
