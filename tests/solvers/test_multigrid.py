"""The V-cycle: what a preconditioner has to be, and that threads change nothing."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.polynomial import Chebyshev

from rlfd_gym import _rows
from rlfd_gym._rows import Threads
from rlfd_gym.solvers import multigrid
from rlfd_gym.solvers.multigrid import Multigrid, Rows


def laplacian(side: int, seed: int = 0) -> sp.csr_matrix:
    """The matrix of a square grid whose connections differ by orders of magnitude, slightly more than singular."""
    rng = np.random.default_rng(seed)
    cells = np.arange(side * side).reshape(side, side)
    ends = np.concatenate([[cells[:-1].ravel(), cells[1:].ravel()], [cells[:, :-1].ravel(), cells[:, 1:].ravel()]], 1)
    weights = np.exp(2 * rng.normal(size=ends.shape[1]))
    edges = sp.csr_matrix((weights, tuple(ends)), shape=(side * side,) * 2)
    edges = edges + edges.T
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    return sp.csr_matrix(sp.diags(degrees + 1e-3) - edges)


def dense(cycle: Multigrid, n: int) -> np.ndarray:
    """The matrix of a preconditioner, column by column."""
    return np.stack([cycle(column) for column in np.eye(n)], axis=1)


def test_the_cycle_is_symmetric_and_positive_and_nearly_the_inverse():
    matrix = laplacian(30)
    inverse = dense(Multigrid(matrix, Threads()), 900)
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-5 * np.abs(inverse).max())
    spectrum = np.linalg.eigvals(inverse @ matrix.toarray()).real
    assert spectrum.min() > 0.1  # of the matrix alone it is 1e-5 of the largest
    assert spectrum.max() < 1.01


def test_a_renewed_cycle_is_positive_for_the_other_matrix():
    cycle, other = Multigrid(laplacian(30), Threads()), laplacian(30, seed=1)
    cycle.renew(other)
    inverse = dense(cycle, 900)
    assert np.linalg.eigvalsh((inverse + inverse.T) / 2).min() > 0
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-5 * np.abs(inverse).max())


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_size_of_a_residual_does_not_matter(size):
    matrix, rng = laplacian(30), np.random.default_rng(0)
    cycle, r = Multigrid(matrix, Threads()), rng.normal(size=900)
    np.testing.assert_allclose(cycle(size * r), size * cycle(r), rtol=1e-4)
    assert not cycle(np.zeros(900)).any()


def test_the_smoother_is_the_polynomial_of_chebyshev():
    x = np.linspace(0, 1, 101)
    middle, half = (1 + multigrid.UPPER) / 2, (1 - multigrid.UPPER) / 2
    chebyshev = Chebyshev([0, 0, 1])
    left = 1 - x * (multigrid.ONCE - multigrid.TWICE * x)
    np.testing.assert_allclose(left, chebyshev((middle - x) / half) / chebyshev(middle / half), atol=1e-6)


def test_a_small_matrix_is_inverted():
    matrix = laplacian(10)
    inverse = dense(Multigrid(matrix, Threads()), 100)
    np.testing.assert_allclose(inverse @ matrix.toarray(), np.eye(100), atol=1e-2)


def test_neither_products_nor_cycles_depend_on_the_number_of_threads(monkeypatch):
    matrix, rng = laplacian(30), np.random.default_rng(0)
    monkeypatch.setattr(_rows, "LEAST_SHARED", 0)
    r, results = rng.normal(size=900), []
    for number in (1, 2, 7):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", number)
        threads = Threads()
        product = Rows(matrix, np.float64, threads) @ r
        np.testing.assert_allclose(product, matrix @ r, rtol=1e-12)
        results.append((product.tobytes(), Multigrid(matrix, threads)(r).tobytes()))
    assert results[0] == results[1] == results[2]
