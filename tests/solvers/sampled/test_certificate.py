"""The certificate holds for the true transitions as often as it says, and does not depend on luck."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from oracles import box_of, true_bounds
from strategies import make_problem

from rlfd_gym import RLfDProblem, TabularMDP, solve_sampled
from rlfd_gym.solvers.sampled.certificate import Candidate, Side, shortfall


@pytest.mark.parametrize(("alpha", "regulariser"), [(0.1, "l2"), (0.0, "l2"), (0.05, "l1")])
def test_the_bounds_hold_for_the_true_transitions(alpha, regulariser):
    missed = 0
    for seed in range(6):
        problem = make_problem(seed, 4, 2, discount=0.6, alpha=alpha, regulariser=regulariser)
        solution = solve_sampled(box_of(problem), calls=4000, confidence=0.5, seed=seed)
        upper, lower = true_bounds(problem, solution)
        missed += solution.upper < upper - 1e-9 or solution.lower > lower + 1e-9
    assert missed <= 3


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


def test_first_draws_that_mislead_do_not_mislead_the_certificate():
    """What is learned comes from draws of another world; the bounds are those of the world that is drawn from later."""
    problem, other = make_problem(3, 4, 2, discount=0.6), make_problem(3, 4, 2, discount=0.6)
    first = 10 * problem.n_pairs
    for seed in range(3):
        box = box_of(problem)
        truth, calls = box.oracle.cumulative, []
        wrong = np.random.default_rng(seed).permuted(np.diff(truth, axis=1, prepend=0.0), axis=1).cumsum(axis=1)

        def draw(states, actions, rng, box=box, truth=truth, calls=calls, wrong=wrong):
            box.oracle.cumulative = wrong if sum(calls) < first else truth
            calls.append(len(states))
            return type(box.oracle).sample_next(box.oracle, states, actions, rng)

        box.oracle.sample_next = draw
        solution = solve_sampled(box, calls=3 * first, seed=seed)
        upper, lower = true_bounds(other, solution)
        assert solution.lower <= lower <= upper <= solution.upper


def test_a_pair_that_seemed_to_lead_to_the_least_value_is_credited_with_nothing_more():
    """The bound has no range there, so fresh draws cannot raise it above the least value."""
    mdp = TabularMDP([[0, 1], [0, 1]], [0, 1], [0, 0], [1.0, 0.0], 0.5)
    box = box_of(RLfDProblem(mdp, mdp.occupancy_of([1.0, 1.0]), [0.0, -1.0], 0.1))
    known = np.zeros(2, dtype=bool)
    candidate = Candidate(box, mdp, np.full(2, 10.0), known, np.array([0.0, -0.9]), np.ones(2))
    side = Side(1.0, np.array([-0.5, -1.0]), np.full(2, 0.9), 0.0)
    fresh = sp.csr_array([[60.0, 40.0], [0.0, 100.0]])  # the first pair was seen to stay, too
    assert shortfall(candidate, side, fresh, 5.0) == pytest.approx(0.0, abs=1e-12)


def test_more_calls_certify_a_smaller_gap_down_to_what_was_asked_for():
    problem = make_problem(5, 4, 2, discount=0.5, alpha=1.0)
    few, many = (solve_sampled(box_of(problem), calls=calls) for calls in (3000, 300_000))
    assert many.duality_gap < 0.2 * few.duality_gap
    asked = solve_sampled(box_of(problem), gap=0.1)
    assert asked.finished
    assert asked.duality_gap <= 0.1
