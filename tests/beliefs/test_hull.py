"""`Hull`: its best mixture against other solvers, its starts, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from strategies import random_basis, seeds

from rlfd_gym.beliefs import Hull


def random_hull(seed: int, alpha: float) -> tuple[Hull, np.ndarray]:
    """A hull, and a difference of two occupancies."""
    rng = np.random.default_rng(seed)
    n_pairs, size = rng.integers(1, 15), rng.integers(2, 7)
    one, other = rng.dirichlet(np.full(n_pairs, 0.5), size=2)
    return Hull(random_basis(n_pairs, size, seed), rng.uniform(-1.5, 1.5, n_pairs), alpha), one - other


@given(seeds)
def test_without_alpha_the_best_mixture_is_the_column_with_the_least_product(seed):
    hull, d = random_hull(seed, alpha=0.0)
    best = hull.best(d)
    assert sorted(best.tolist()) == [0.0] * (len(best) - 1) + [1.0]
    assert d @ hull.cost(best) == pytest.approx((d @ hull.basis).min(), abs=1e-15)


@given(seeds, st.sampled_from([1e-3, 0.1, 2.0]))
@settings(max_examples=40)
def test_the_best_mixture_is_that_of_scipy(seed, alpha):
    hull, d = random_hull(seed, alpha)
    size = hull.basis.shape[1]
    result = minimize(
        lambda w: hull.penalty(w) + d @ hull.basis @ w,
        np.full(size, 1 / size),
        jac=lambda w: hull.gradient(w, d),
        bounds=[(0, 1)] * size,
        constraints=[LinearConstraint(np.ones((1, size)), 1, 1)],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    best = hull.best(d)
    assert hull.penalty(best) + d @ hull.cost(best) == pytest.approx(result.fun, abs=1e-8)


def test_the_same_column_twice_is_no_difficulty():
    column = np.array([1.0, -0.5, 0.25])
    hull = Hull(np.column_stack([column, column]), prior=np.zeros(3), alpha=1.0)
    np.testing.assert_allclose(hull.cost(hull.best(np.array([0.1, 0.2, -0.3]))), column, atol=1e-15)


def test_a_start_is_a_mixture_and_in_the_middle_if_uniform_after_the_same_draws():
    hull = Hull(random_basis(5, 4))
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    drawn, middle = hull.start(one, uniform=False), hull.start(other, uniform=True)
    np.testing.assert_array_equal(hull.check(drawn), drawn)
    assert drawn.min() > 0
    assert middle.tolist() == [0.25] * 4
    assert one.random() == other.random()


def test_starts_are_uniform_in_the_simplex():
    hull, rng = Hull(random_basis(5, 3)), np.random.default_rng(0)
    starts = np.array([hull.start(rng, uniform=False) for _ in range(20_000)])
    np.testing.assert_allclose(starts.mean(axis=0), 1 / 3, atol=0.01)
    np.testing.assert_allclose(starts.var(axis=0), 1 / 18, atol=0.002)  # of Dirichlet(1, 1, 1)


def test_rounding_outside_the_box_is_removed_from_a_basis():
    assert Hull([[1 + 1e-10], [-1 - 1e-10]]).basis.tolist() == [[1.0], [-1.0]]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"basis": np.ones(4)}, ValueError, r"basis has shape \(4,\), expected \(n_pairs, K\), both at least 1"),
        ({"basis": np.full((2, 2), 1.5)}, ValueError, r"basis must have its entries in \[-1, 1\]"),
        ({"basis": "features"}, TypeError, "basis must be an array"),
        ({"prior": None}, ValueError, r"prior is None, so alpha must be 0, got 0\.1"),
        ({"prior": [np.nan, 0.0]}, ValueError, "prior must be finite; entry 0 is nan"),
        ({"alpha": -1.0}, ValueError, "alpha must be a finite number in"),
        ({"alpha": "0.1"}, TypeError, "alpha must be a number, got str"),
    ],
)
def test_bad_arguments_of_hull_are_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        Hull(**({"basis": np.eye(2), "prior": [0.0, 0.0], "alpha": 0.1} | changes))


def test_mixtures_outside_the_simplex_are_refused_and_rounding_is_removed():
    hull = Hull(np.eye(2))
    assert hull.check(np.array([0.5, 0.5 + 1e-9])).sum() == pytest.approx(1.0, abs=1e-15)
    for mixture, message in (
        ([0.5, 0.4], "mixture must sum to 1"),
        ([1.5, -0.5], "mixture must not be negative; entry 1"),
        ([1.0], r"mixture has shape \(1,\), expected \(2,\): one entry per column of the basis"),
    ):
        with pytest.raises(ValueError, match=message):
            hull.check(np.array(mixture))


def test_the_paper_has_no_second_moment_for_a_hull():
    with pytest.raises(ValueError, match="bound must be 'corrected' on a hull, for which the paper states none"):
        Hull(np.eye(2)).second_moment("paper")
