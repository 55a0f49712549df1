"""The library's warnings as values, so that threads do not lose or exchange them.

`warnings.catch_warnings` changes the filters of the whole process: threads that enter and leave it
in turn leave each other's filters behind, and record each other's warnings. Here a warning is
appended to a list that belongs to the context of the caller, and the filters are not touched. What
other libraries warn about is left to the filters of the process.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_innermost: ContextVar[list[str] | None] = ContextVar("rlfd_gym_warnings", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the library's warnings in a list of messages instead of issuing them.

    Only warnings of the same thread (or task of asyncio) are collected; of nested collections, the
    innermost has them.

    >>> import rlfd_gym
    >>> from rlfd_gym.problem import examples
    >>> with rlfd_gym.collected_warnings() as messages:
    ...     solution = rlfd_gym.solve_smd(examples.inventory(), n_iterations=10, step_size=1.0)
    >>> messages[0].split(" lets")[0]
    'step_size 1 for the occupancy'
    """
    messages: list[str] = []
    token = _innermost.set(messages)
    try:
        yield messages
    finally:
        _innermost.reset(token)


def warn(message: str, category: type[Warning], stacklevel: int = 1) -> None:
    """Collect a warning where warnings are collected; elsewhere, issue it like `warnings.warn`."""
    messages = _innermost.get()
    if messages is None:
        warnings.warn(message, category, stacklevel=stacklevel + 1)
    else:
        messages.append(message)
