"""Compiled passes over the matrices of `rlfd_gym.solvers.multigrid`, whose rows threads share (`rlfd_gym._rows`)."""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import compiled
from rlfd_gym._rows import ONE, row_times


@compiled
def product(data, indices, starts, x, out, first, last):
    """Set out = A x."""
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = row_times(data, indices, starts[i], starts[i + ONE], x)


@compiled
def add_product(data, indices, starts, x, out, first, last):
    """Set out = out + A x."""
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] += row_times(data, indices, starts[i], starts[i + ONE], x)


@compiled
def residual(data, indices, starts, x, r, out, first, last):
    """Set out = r - A x."""
    for i in range(np.uint64(first), np.uint64(last)):
        out[i] = r[i] - row_times(data, indices, starts[i], starts[i + ONE], x)


@compiled
def smooth(data, indices, starts, scale, scaled, once, twice, x, first, last):
    """Set x = x + once S r - twice S A S r, where S is the scale and `scaled` is S r."""
    for i in range(np.uint64(first), np.uint64(last)):
        x[i] += once * scaled[i] - twice * scale[i] * row_times(data, indices, starts[i], starts[i + ONE], scaled)
