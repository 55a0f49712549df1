"""The certificate holds for the true transitions as often as it says, and does not depend on luck."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import box_of, true_bounds
from strategies import make_mdp, make_problem

from rlfd_gym import solve_sampled


@pytest.mark.parametrize(("alpha", "regulariser"), [(0.1, "l2"), (0.0, "l2"), (0.05, "l1")])
def test_the_bounds_hold_for_the_true_transitions(alpha, regulariser):
    missed = 0
    for seed in range(12):
        problem = make_problem(seed, 4, 2, discount=0.6, alpha=alpha, regulariser=regulariser)
        solution = solve_sampled(box_of(problem), calls=4000, confidence=0.5, seed=seed)
        upper, lower = true_bounds(problem, solution)
        missed += solution.upper < upper - 1e-9 or solution.lower > lower + 1e-9
    assert missed <= 6


@pytest.mark.slow
@pytest.mark.parametrize("method", ["model", "smd"])
def test_the_certificate_covers_with_its_confidence(method):
    missed = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        problem = make_problem(seed, int(rng.integers(2, 6)), 3, float(rng.choice([0.3, 0.6, 0.9])), alpha=0.1)
        solution = solve_sampled(box_of(problem), calls=3000, confidence=0.9, seed=seed, method=method)
        upper, lower = true_bounds(problem, solution)
        missed.append(solution.upper < upper - 1e-9 or solution.lower > lower + 1e-9)
    assert np.mean(missed) <= 0.1


def test_an_oracle_that_contradicts_the_first_draws_is_not_certified_by_them():
    """The first draws all lead to one state; later ones show the truth, and the bounds are of the truth."""
    problem = make_problem(3, 4, 2, discount=0.6)
    for seed in range(5):
        solution = solve_sampled(box_of(problem), calls=20_000, seed=seed)
        upper, lower = true_bounds(problem, solution)
        assert solution.lower <= lower <= upper <= solution.upper


def test_more_calls_certify_a_smaller_gap_down_to_what_was_asked_for():
    problem = make_problem(5, 4, 2, discount=0.5, alpha=1.0)
    few, many = (solve_sampled(box_of(problem), calls=calls) for calls in (3000, 300_000))
    assert many.duality_gap < 0.2 * few.duality_gap
    asked = solve_sampled(box_of(problem), gap=0.1)
    assert asked.finished and asked.duality_gap <= 0.1 and asked.stats["calls"] < 10_000_000
    assert make_mdp(5, 4, 2, 0.5).n_pairs == problem.n_pairs
