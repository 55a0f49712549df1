"""Bases of costs."""

from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym.beliefs import check_basis, scale_basis


def test_scaling_a_basis_keeps_its_costs_up_to_a_factor():
    rng = np.random.default_rng(0)
    basis, weights = rng.normal(size=(20, 3)) * [0.01, 1.0, 100.0], rng.dirichlet(np.ones(3))
    scaled, largest = scale_basis(basis), np.abs(basis).max(axis=0)
    np.testing.assert_allclose(np.abs(scaled).max(axis=0), 1.0)
    mixture = weights * largest / (weights @ largest)
    np.testing.assert_allclose(scaled @ mixture * (weights @ largest), basis @ weights, atol=1e-12)
    assert scale_basis(np.zeros((4, 1))).tolist() == [[0.0]] * 4


@pytest.mark.parametrize(
    ("basis", "error", "message"),
    [
        (np.ones(6), ValueError, r"basis has shape \(6,\), expected \(n_pairs, K\), both at least 1"),
        (np.ones((6, 0)), ValueError, "both at least 1"),
        (np.ones((5, 2)), ValueError, r"basis has shape \(5, 2\), expected \(6, K\): one row per feasible"),
        ("costs", TypeError, "basis must be an array"),
        (np.full((6, 2), np.nan), ValueError, r"basis must be finite; entry \(0, 0\) is nan"),
        (np.diag([1, 1, -7.0, 1, 1, 2]), ValueError, r"but column 2 reaches 7; .*scale_basis\(basis\)"),
    ],
)
def test_bad_bases_are_refused_by_name(basis, error, message):
    with pytest.raises(error, match=message):
        check_basis(basis, 6)


def test_a_basis_that_need_not_be_in_the_box_may_be_large():
    assert check_basis([[30.0]], box=False).tolist() == [[30.0]]
