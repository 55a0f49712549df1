"""The best mixture of a quadratic cost, against a quadratic program."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from reference import quadratic_program
from strategies import seeds

from rlfd_gym.beliefs.simplex import best_mixture, excess_of


@given(seeds)
@settings(max_examples=60)
def test_the_best_mixture_is_that_of_a_quadratic_program_and_the_excess_its_distance(seed):
    rng = np.random.default_rng(seed)
    size, alpha = int(rng.integers(1, 25)), float(rng.choice([0.0, 1e-3, 1.0]))
    basis = rng.uniform(-1, 1, (int(rng.integers(1, 40)), size))
    basis[:, size // 2] = basis[:, 0]  # the same column twice
    gram, linear = basis.T @ basis, rng.normal(size=size)
    result = quadratic_program(
        2 * alpha * gram, linear, A=np.ones((1, size)), b=np.ones(1), x_l=np.zeros(size), x_u=np.ones(size)
    )
    best = best_mixture(gram, linear, alpha)
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1)
    value, expected = (alpha * w @ gram @ w + linear @ w for w in (best, result.x))
    assert value == pytest.approx(expected, abs=1e-8)
    assert 0 <= excess_of(gram, linear, alpha, best) < 1e-11
    other = rng.dirichlet(np.ones(size))
    excess = alpha * other @ gram @ other + linear @ other - expected
    assert excess_of(gram, linear, alpha, other) == pytest.approx(excess, abs=1e-8)
