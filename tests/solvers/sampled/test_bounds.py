"""The confidence bounds cover as often as they say, and are as narrow as the docstring says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rlfd_gym.solvers.sampled.bounds import margin, mean_square, norm_margin, rate


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.3])
@pytest.mark.parametrize("guess", [0.2, 1.0])
def test_the_lower_bound_on_a_mean_fails_no_more_often_than_it_says(chance, guess):
    rng, eta, m, trials = np.random.default_rng(0), 0.1, 60, 4000
    draws = (rng.random((trials, m)) >= chance).astype(float)  # a draw is 0 with the given chance, else 1
    squares = ((draws - guess) ** 2).sum(axis=1) / guess**2
    rates = rate(m * chance + 0.5, math.log(1 / eta))
    bound = draws.mean(axis=1) - margin(guess, squares, rates, math.log(1 / eta), m)
    assert (bound > 1 - chance).mean() <= eta


def test_draws_that_are_all_as_foreseen_have_a_margin_of_the_order_of_one_over_m():
    log_term = math.log(1 / 0.05)
    wide, narrow = (float(margin(1.0, 0.0, 0.9, log_term, m)) for m in (100, 1000))
    assert wide == pytest.approx(log_term / 90)
    assert narrow == pytest.approx(wide / 10)


def test_the_rate_is_nearly_the_best_for_the_squares_that_it_foresees():
    log_term = 5.0
    for squares in (0.1, 1.0, 30.0, 1e4):
        grid = np.linspace(1e-3, 0.995, 2000)
        least = margin(1.0, squares, grid, log_term, 1).min()
        assert float(margin(1.0, squares, rate(squares, log_term), log_term, 1)) <= 1.1 * least


def test_the_mean_of_vectors_is_as_near_as_the_bound_says():
    rng, eta, n, trials, size = np.random.default_rng(0), 0.1, 50, 500, 8
    missed = 0
    for _ in range(trials):
        vectors = rng.dirichlet(np.full(size, 0.2), size=n) - 1 / size
        square = mean_square(float((vectors**2).sum(axis=1).mean()), 2.0, math.log(2 / eta), n)
        missed += np.linalg.norm(vectors.mean(axis=0)) > norm_margin(square, math.sqrt(2), math.log(4 / eta), n)
    assert missed <= eta * trials
