"""Mixtures of policies: against the quadratic program, and conditions of optimality."""

from __future__ import annotations

import time

import numpy as np
import pytest
from structures import KINDS, learning_problem

from rlfd_gym import solve_exact
from rlfd_gym.solvers import policies
from rlfd_gym.solvers.incumbent import Incumbent, to_a_percent
from rlfd_gym.solvers.policies import BRIEFLY, THOROUGHLY, Policies


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_demonstrations", [None, 3])
def test_where_the_prior_weighs_much_policies_alone_keep_the_promise_and_agree(kind, n_demonstrations):
    for alpha in (0.5, 10.0):
        problem = learning_problem(kind, 240, 0.99, alpha, n_demonstrations)
        exactly, best, promise = solve_exact(problem, "qp"), Incumbent(problem), to_a_percent(problem)
        assert Policies(best).improve(promise, THOROUGHLY) > 0
        assert best.keeps(promise)
        assert exactly.lower - 1e-9 <= best.upper
        assert best.lower <= exactly.upper + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_where_it_weighs_little_they_give_up_with_bounds_that_hold(kind):
    problem = learning_problem(kind, 240, 0.99, 1e-4)
    exactly, best = solve_exact(problem, "qp"), Incumbent(problem)
    made = Policies(best).improve(lambda upper, lower: 0.0, BRIEFLY)
    assert 0 < made < 20
    assert best.gap > 0
    assert best.lower <= exactly.upper + 1e-9
    assert best.upper >= exactly.lower - 1e-9


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 1.0])  # with the smallest one most costs are at an end of the box
def test_the_mixture_is_the_one_with_the_best_lower_bound(alpha):
    problem, rng = learning_problem("garnet5", 80, 0.9, alpha), np.random.default_rng(0)
    mdp, mixture = problem.mdp, policies._Mixture(problem)
    occupancies = [problem.expert]
    for _ in range(4):
        occupancies.append(mdp.optimal(rng.uniform(-1, 1, mdp.n_pairs)).occupancy)
        mixture.add(occupancies[-1])

    # No step towards any of them raises the bound: the cost that answers the mixture is its derivative.
    cost = problem.best_cost(mixture.mean)
    assert min(mu @ cost for mu in occupancies) >= mixture.mean @ cost - 1e-6
    assert mixture.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(mixture.weights @ np.array(mixture.occupancies), mixture.mean, atol=1e-12)


def test_the_best_weights_minimise_the_model():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 12):
        factor, slope = rng.normal(size=(n, n)), rng.normal(size=n)
        hessian, weights = factor @ factor.T, np.full(n, 1 / n)

        def model(w, hessian=hessian, slope=slope, weights=weights):
            return slope @ (w - weights) + 0.5 * (w - weights) @ hessian @ (w - weights)

        found = policies._best_weights(weights, slope, hessian)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(1)
        # No shift of weight from one to another improves the model.
        gradient = slope + hessian @ (found - weights)
        assert (found * (gradient - gradient.min())).max() <= 1e-6
        assert model(found) <= min(map(model, np.eye(n))) + 1e-9


def test_after_the_deadline_no_policy_is_added():
    problem = learning_problem("grid", 400, 0.9, 0.1)
    best = Incumbent(problem, deadline=time.monotonic() - 1)
    assert Policies(best).improve(to_a_percent(problem), THOROUGHLY) == 0
    assert np.isfinite(best.gap)
