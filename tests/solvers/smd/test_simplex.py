"""The mirror step for the mixture of a basis: against a dense replay, and by enumeration of its samples."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from reference import advance, begin, kernel, replay
from strategies import hull_of, hull_point, make_problem

from rlfd_gym.solvers.smd import kernels, records

CASES = {
    "no prior": (make_problem(2, 4, 3, alpha=0.0), 3, (1e-2, 1e-2, 1e-2), 12_000),
    "prior": (make_problem(1, 4, 3), 5, (1e-3, 2e-2, 1e-2), 12_000),
    "one column": (make_problem(3, 4, 3), 1, (1e-2, 1e-2, 1e-2), 5_000),
    "weights that nearly vanish": (make_problem(4, 6, 3), 4, (0.2, 1e-2, 1e-2), 10_000),
}


@pytest.mark.parametrize("name", CASES)
def test_mixture_value_and_occupancy_agree_with_a_dense_replay_of_the_same_samples(name):
    problem, size, etas, n_steps = CASES[name]
    hull = hull_of(problem, size)
    run, tables, point = begin(hull, hull_point(hull))
    draws, samples = advance(run, tables, records.constants_of(hull, etas), n_steps)
    draws_of_mu = draws[:, records.VISITED]
    mean, last, miss = replay(problem, etas[0], etas[2], point, samples, draws_of_mu, hull.belief.basis, etas[1])
    for one, other in ((records.average_of(run), mean), (records.iterate_of(run), last)):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
    assert miss < 1e-9


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_sampled_step_of_the_mixture_is_its_gradient_on_average_and_its_second_moment_is_bounded(alpha):
    # All samples (i, j, e) with their probabilities, each through the compiled step.
    hull = hull_of(make_problem(5, 3, 2, alpha=alpha), 3)
    run, _, point = begin(hull, hull_point(hull, 1))
    n, eta = hull.n_pairs, 1e-3
    step = records.constants_of(hull, (eta, eta, eta))
    mean, second, update_cost = np.zeros(3), 0.0, kernel(kernels.update_cost)
    for i, j, e in itertools.product(range(n), repeat=3):
        probability = point.occupancy[j] * hull.expert[e] / n
        fresh = run.mixture._replace(log_weight=np.log(point.x), weight=point.x.copy())
        update_cost(run.pairs, fresh, None, 0.0, step, i, j, e)
        g = -(fresh.log_weight - np.log(point.x)) / eta
        mean += probability * (g - g.mean())  # constants do not matter
        second += probability * (np.ptp(g) / 2) ** 2
    exact = hull.gradients(*point)[0]
    np.testing.assert_allclose(mean, exact - exact.mean(), atol=1e-9)
    assert 0 < second <= hull.second_moments()[0]
