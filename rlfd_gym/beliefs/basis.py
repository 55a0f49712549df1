"""Bases of costs: C with one row per pair and K columns, costs Cw, features ψ(μ) = Cᵀμ.

Methods that learn from a hull take w in the simplex, so that Cw is a mixture of the columns.
Methods whose step sizes or error bounds rely on |C| ≤ 1 need the columns in the box [-1, 1].
`scale_basis` scales any basis to the box. It does not change the sign of any column, so a mixture
of the scaled columns is a nonnegative combination of the original ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray

BOX_TOLERANCE = 1e-9  # how far rounding may put an entry outside the box


def scale_basis(basis: ArrayLike) -> FloatArray:
    """Divide each column of the basis by its largest absolute value.

    A column of zeros is not changed.

    >>> scale_basis([[1.0, -30.0], [0.5, 15.0]]).tolist()
    [[1.0, -1.0], [0.5, 0.5]]
    """
    c = _matrix("basis", basis)
    size = np.abs(c).max(axis=0)
    return c / np.where(size > 0, size, 1.0)


def check_basis(basis: ArrayLike, n_pairs: int | None = None, *, box: bool = True, name: str = "basis") -> FloatArray:
    """Return `basis` as a finite (n_pairs, K) array, or raise an error that calls it `name`.

    With `box`, its entries must be in [-1, 1].

    Example:
        >>> check_basis([[1, 0], [0, -1]]).shape
        (2, 2)
    """
    c = _matrix(name, basis)
    _checks.flag("box", box)
    if n_pairs is not None and c.shape[0] != _checks.integer("n_pairs", n_pairs, 1):
        raise ValueError(
            f"{name} has shape {c.shape}, expected ({n_pairs}, K): one row per feasible state-action pair "
            "(mdp.n_pairs), one column per feature"
        )
    if box and np.abs(c).max() > 1 + BOX_TOLERANCE:
        column = int(np.argmax(np.abs(c).max(axis=0)))
        raise ValueError(
            f"{name} must have its entries in [-1, 1], but column {column} reaches {np.abs(c[:, column]).max():g}; "
            "rlfd_gym.beliefs.scale_basis(basis) divides each column by its largest absolute value"
        )
    return c


def _matrix(name: str, basis: ArrayLike) -> FloatArray:
    """Return `basis` as a finite matrix with a row and a column at least, or raise an error."""
    c = _checks.numbers(name, basis)
    if c.ndim != 2 or 0 in c.shape:
        raise ValueError(f"{name} has shape {c.shape}, expected (n_pairs, K), both at least 1")
    return _checks.finite(name, c)
