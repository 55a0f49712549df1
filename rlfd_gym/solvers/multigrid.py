r"""A V-cycle of algebraic multigrid, as the preconditioner of `rlfd_gym.solvers.normal_equations`.

The levels are made by `pyamg` (smoothed aggregation). States that are hardly connected are not put
together, and two steps minimise the energy of the vectors that carry a correction to the finer level:
the weights D differ by many orders of magnitude, and without both it takes two or three times as many
cycles.

Every level smooths by a Chebyshev polynomial of its matrix A, because passes over its rows can be
shared by threads, which Gauss-Seidel sweeps cannot. With S, the inverse of the sums of |A| along the
rows, the spectrum of S A lies in (0, 1], so that no random vector is needed to estimate it. The
polynomial of degree two is nearly 1/x on the upper part [`UPPER`, 1] of the spectrum:

    smoothed r = `ONCE` S r - `TWICE` S A S r.

A preconditioner need not be exact, so everything here is in single precision, which halves the memory
that a cycle has to read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._checks import FloatArray
from rlfd_gym._rows import Threads, rows_of
from rlfd_gym.solvers import _multigrid
from rlfd_gym.solvers.normal_equations import CYCLE, MULTIGRID

CONNECTED = 0.01  # the least entry that connects two states, as a share of their diagonal entries' geometric mean
COARSEST = 500  # states of the level at which a dense matrix is inverted, at most
UPPER = 0.1  # where the upper part of the spectrum begins
_MIDDLE, _HALF = (1 + UPPER) / 2, (1 - UPPER) / 2
# From 1 - x (once - twice x) = T₂((middle - x)/half) / T₂(middle/half), where T₂(y) = 2y² - 1.
TWICE = np.float32(2 / (2 * _MIDDLE**2 - _HALF**2))
ONCE = np.float32(2 * _MIDDLE) * TWICE

Floats = NDArray[np.float32]


class Multigrid:
    """A V-cycle, made for a matrix, which serves for nearby matrices too.

    Attributes:
        lasting: how many conjugate gradient steps with a later matrix take as long as preparing it anew.
    """

    lasting = int(MULTIGRID / CYCLE)

    def __init__(self, matrix: sp.csr_matrix, threads: Threads) -> None:
        """Make the levels."""
        from pyamg import smoothed_aggregation_solver  # slow to load

        matrix = matrix.copy()
        matrix.eliminate_zeros()  # of pairs without a weight
        *finer, coarsest = smoothed_aggregation_solver(
            matrix,
            B=np.ones((matrix.shape[0], 1)),
            strength=("symmetric", {"theta": CONNECTED}),
            smooth=("energy", {"maxiter": 2, "weighting": "diagonal"}),
            improve_candidates=None,
            max_coarse=COARSEST,
        ).levels
        self.threads = threads
        self.smoothers = [_Smoother(level.A, threads) for level in finer]
        spreads = [sp.csr_matrix(level.P) for level in finer]
        self.spreads = [Rows(spread, np.float32, threads) for spread in spreads]
        self.gathers = [Rows(sp.csr_matrix(spread.T), np.float32, threads) for spread in spreads]
        self.coarsest = np.linalg.pinv(coarsest.A.toarray(), hermitian=True).astype(np.float32)

    def renew(self, matrix: sp.csr_matrix) -> None:
        """Smooth with another matrix, and keep the coarse levels."""
        if self.smoothers:
            self.smoothers[0] = _Smoother(matrix, self.threads)

    def __call__(self, r: FloatArray) -> FloatArray:
        """Return the approximate inverse times r."""
        size = float(np.abs(r).max()) or 1.0  # so that nothing is too small for single precision
        return size * self._corrected((r / size).astype(np.float32), 0).astype(np.float64)

    def _corrected(self, r: Floats, depth: int) -> Floats:
        """Return nearly the inverse of the matrix at a depth times r."""
        if depth == len(self.smoothers):
            return np.einsum("ij,j->i", self.coarsest, r)
        smoother, x = self.smoothers[depth], np.zeros_like(r)
        smoother.add_smoothed(r, x)
        coarse = self._corrected(self.gathers[depth] @ smoother.residual(r, x), depth + 1)
        self.spreads[depth].add_product(coarse, x)
        smoother.add_smoothed(smoother.residual(r, x), x)
        return x


class Rows:
    """A sparse matrix whose products with vectors threads share."""

    def __init__(self, matrix: Any, dtype: type[np.floating[Any]], threads: Threads) -> None:
        """Take a matrix, with its entries in the given precision."""
        data, *structure = rows_of(sp.csr_matrix(matrix))
        self.arrays, self.dtype = (data.astype(dtype, copy=False), *structure), dtype
        self.n_rows, self.threads = matrix.shape[0], threads

    def share(self, kernel: Any, *arguments: Any) -> None:
        """Run a kernel of `_multigrid` on this matrix."""
        self.threads.share(kernel, (*self.arrays, *arguments), self.n_rows, self.arrays[0].size)

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        """Return the product with a vector."""
        out = np.empty(self.n_rows, self.dtype)
        self.share(_multigrid.product, x, out)
        return out

    def add_product(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Add the product with a vector to another one."""
        self.share(_multigrid.add_product, x, out)


class _Smoother(Rows):
    """The matrix of a level, and S."""

    def __init__(self, matrix: Any, threads: Threads) -> None:
        super().__init__(matrix, np.float32, threads)
        data, _, starts = self.arrays
        sums = np.add.reduceat(np.abs(data), starts[:-1].view(np.int64))
        self.scale: Floats = np.reciprocal(sums, dtype=np.float32)

    def residual(self, r: Floats, x: Floats) -> Floats:
        """Return r - A x."""
        left = np.empty_like(r)
        self.share(_multigrid.residual, x, r, left)
        return left

    def add_smoothed(self, r: Floats, x: Floats) -> None:
        """Add the smoothed r to x."""
        self.share(_multigrid.smooth, self.scale, self.scale * r, ONCE, TWICE, x)
