"""The errors of the library that are not the caller's mistake."""

from __future__ import annotations


class SolverError(RuntimeError):
    """A solver gave up: the problem is well posed, but the solver did not solve it.

    The comparison stores this as the result of a cell; every other error stops it.

    Example:
        >>> try:
        ...     raise SolverError("HiGHS gave up")
        ... except RuntimeError as error:
        ...     print(error)
        HiGHS gave up
    """
