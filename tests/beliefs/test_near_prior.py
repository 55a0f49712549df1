"""`NearPrior`: its penalty and best answer by hand and on a grid, and what it refuses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from checks import one_state
from hypothesis import given
from reference import pair_alpha
from strategies import random_point, seeds, sparse_problems

from rlfd_gym.beliefs import NearPrior
from rlfd_gym.beliefs.packing import pack, unpack
from rlfd_gym.experts import CostScale
from rlfd_gym.mdp import Pairs


def test_the_quadratic_penalty_and_its_best_answer_by_hand():
    belief = NearPrior([0.5, -0.5, 0.0], alpha=0.25)
    assert belief.penalty(np.array([1.0, 0.5, 0.0])) == pytest.approx(0.25 * 1.25)
    assert belief.best(np.array([0.1, -1.0, 0.0])).tolist() == pytest.approx([0.3, 1.0, 0.0])


def test_the_absolute_penalty_and_its_best_answer_by_hand():
    belief = NearPrior([0.5, -0.5, 3.0], 0.2, norm="l1", weights=[1.0, 2.0, 1.0], outside_box=True)
    assert belief.penalty(np.array([1.0, 0.5, 1.0])) == pytest.approx(0.2 * (0.5 + 2 * 1.0 + 2.0))
    # Within α·weight the prior, clipped to [-1, 1]; beyond it the end of the box.
    assert belief.best(np.array([0.2, 0.41, 0.1])).tolist() == [0.5, -1.0, 1.0]


def test_without_alpha_the_best_answer_is_the_corner_against_d():
    for norm in ("l2", "l1"):
        belief = NearPrior([0.5, 0.5, 0.25], 0.0, norm)
        assert belief.best(np.array([0.3, -1e-9, 2.0])).tolist() == [-1.0, 1.0, -1.0]


def test_a_subgradient_of_the_absolute_penalty_is_that_of_least_size_at_the_prior():
    belief = NearPrior([0.5, 0.5, 0.5], 0.2, norm="l1")
    assert belief.gradient(np.array([0.5, 0.6, 0.4]), np.zeros(3)).tolist() == [0.0, 0.2, -0.2]


@given(sparse_problems(), seeds)
def test_the_best_cost_of_the_absolute_penalty_is_that_of_a_fine_grid(problem, seed):
    mu = random_point(problem, seed)[2]
    d, alpha, prior = problem.expert - mu, pair_alpha(problem), problem.prior
    grid = np.unique(np.r_[np.linspace(-1, 1, 201), np.clip(prior, -1, 1)])
    value = lambda c: alpha * np.abs(c - prior) + d * c  # noqa: E731
    best = problem.best_cost(mu)
    assert np.abs(best).max() <= 1
    np.testing.assert_allclose(value(best), value(grid[:, None]).min(axis=0), atol=1e-14)


def test_a_belief_copies_what_it_is_given():
    prior, weights = np.array([0.5, -0.5]), np.ones(2)
    belief = NearPrior(prior, 0.1, "l1", weights)
    prior[:] = weights[:] = 7.0
    assert belief.prior.tolist() == [0.5, -0.5]
    assert belief.weights.tolist() == [1.0, 1.0]


def test_starts_are_in_the_box_whether_uniform_or_not():
    belief = NearPrior(np.zeros(1000), 0.1)
    for uniform in (False, True):
        start = belief.start(np.random.default_rng(0), uniform)
        assert -1 <= start.min() < -0.9
        assert 0.9 < start.max() <= 1


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"norm": "l0"}, ValueError, "norm must be one of l2, l1; got 'l0'"),
        ({"weights": [1.0, 1.0]}, ValueError, "weights need norm=\"l1\", got 'l2'"),
        ({"norm": "l1", "weights": [1.0, -1.0]}, ValueError, "weights must not be negative; entry 1 is -1"),
        ({"norm": "l1", "weights": [1.0, np.nan]}, ValueError, "weights must be finite; entry 1 is nan"),
        ({"norm": "l1", "weights": "heavy"}, TypeError, "weights must be an array"),
        ({"prior": [0.0, np.inf]}, ValueError, "prior must be finite; entry 1 is inf"),
        ({"prior": "cheap"}, TypeError, "prior must be an array"),
        ({"alpha": -0.1}, ValueError, "alpha must be a finite number in"),
        ({"alpha": np.nan}, ValueError, "alpha must be a finite number in"),
        ({"alpha": "0.1"}, TypeError, "alpha must be a number, got str"),
    ],
)
def test_bad_arguments_of_near_prior_are_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        NearPrior(**({"prior": [0.5, -0.5], "alpha": 0.1} | changes))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"weights has shape \(1,\), expected \(3,\)"),
        ([[1.0, -1.0], [1.0, np.nan]], "weights must not be negative; entry 1 is -1"),
        ([[1.0, np.nan], [1.0, np.nan]], "weights must be finite; entry 1 is nan"),
    ],
)
def test_weights_that_do_not_fit_the_pairs_are_refused(weights, message):
    pairs = Pairs.of_mask([[True, True], [True, False]])
    with pytest.raises(ValueError, match=message):
        NearPrior([0.0, 0.0, 0.0], 0.1, "l1", weights).over(pairs)


def test_an_unknown_regulariser_is_refused_by_the_problem():
    with pytest.raises(ValueError, match="regulariser must be one of l2, l1; got 'l0'"):
        one_state(regulariser="l0")


def test_costs_outside_the_box_are_refused_and_rounding_is_removed():
    belief = NearPrior([0.0, 0.0], 0.1)
    assert belief.check(np.array([1 + 1e-10, 0.5])).tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match=r"cost must lie in \[-1, 1\] for bounds to hold; entry 1 is -1\.5"):
        belief.check(np.array([0.0, -1.5]))
    with pytest.raises(ValueError, match=r"cost has shape \(3,\), expected \(2,\)"):
        belief.vector([0.0, 0.0, 0.0])


def test_second_moments_of_weights_and_of_the_papers_lemma_for_the_absolute_penalty_are_refused():
    with pytest.raises(ValueError, match="weights: Algorithm 1 and its theorem take none; use solve_exact"):
        NearPrior([0.0, 0.0], 0.1, "l1", [1.0, 1.0]).second_moment("corrected")
    with pytest.raises(ValueError, match='bound="paper" is a lemma on regulariser="l2"'):
        NearPrior([0.0, 0.0], 0.1, "l1").second_moment("paper")


@pytest.mark.parametrize("prior", [[-140.9, 0.0], [0.5, 1.001], [-1.23456789, 9.87654321], np.full((2, 1), 35.0)])
def test_a_prior_outside_the_box_is_refused_with_its_range_and_a_conversion_that_works(prior):
    low, high = np.min(prior), np.max(prior)
    pairs = Pairs.of_mask([[True], [True]])
    with pytest.raises(ValueError, match=f"prior has costs from {low:g} to {high:g}, expected costs in") as error:
        NearPrior(prior, 0.1).over(pairs)
    call = re.search(r"rlfd_gym\.experts\.(CostScale\(.*?\)\.to_box\(prior\))", str(error.value)).group(1)
    NearPrior(eval(call, {"CostScale": CostScale, "prior": prior}), 0.1).over(pairs)  # as the message says
    assert error.match(r"rlfd_gym\.beliefs\.NearPrior\(prior, alpha, outside_box=True\)")
    belief = NearPrior(prior, 0.1, outside_box=True).over(pairs)
    assert belief.prior.tolist() == np.ravel(prior).tolist()


def test_rounding_beyond_the_box_is_no_mistake_and_stays():
    assert NearPrior([1 + 1e-12, -1.0], 0.1).prior.tolist() == [1 + 1e-12, -1.0]


def test_a_table_is_judged_where_actions_are_feasible_only():
    pairs = Pairs.of_mask([[True, False], [True, True]])
    belief = NearPrior([[0.5, 1e6], [0.25, -1.0]], 0.1).over(pairs)
    assert belief.prior.tolist() == [0.5, 0.25, -1.0]
    with pytest.raises(ValueError, match="prior has costs from -1 to 70"):
        NearPrior([[70.0, 1e6], [0.25, -1.0]], 0.1).over(pairs)


def test_with_a_scale_the_prior_is_money_and_must_lie_in_it():
    scale = CostScale(-100.0, 0.0)
    assert NearPrior([-100.0, -25.0], 0.1, scale=scale).prior.tolist() == [-1.0, 0.5]
    with pytest.raises(ValueError, match="prior has costs from -100 to 30 in money, but its scale maps -100 … 0 to"):
        NearPrior([-100.0, 30.0], 0.1, scale=scale)
    assert NearPrior([-100.0, 50.0], 0.1, scale=scale, outside_box=True).prior.tolist() == [-1.0, 2.0]


def test_a_prior_that_may_be_outside_stays_so_in_copies_and_files():
    belief = NearPrior([3.0, 0.0], 0.1, outside_box=True)
    again = unpack(*pack(belief.with_alpha(0.5)))
    assert again.outside_box
    assert (again.prior.tolist(), again.alpha) == ([3.0, 0.0], 0.5)
