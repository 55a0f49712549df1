"""The steps along the central path: what they solve to first order, and how far they go."""

from __future__ import annotations

import numpy as np
import pytest
from structures import learning_problem

from rlfd_gym.solvers import interior_point
from rlfd_gym.solvers.incumbent import Incumbent, imitate
from rlfd_gym.solvers.normal_equations import NormalEquations
from rlfd_gym.solvers.predictor_corrector import WEAKER, PathPoint, _mixed


def steps(kind: str) -> tuple[PathPoint, interior_point._System, list, PathPoint, list, PathPoint]:
    """A point, its system, and a predictor and a corrector with the targets of both."""
    problem = learning_problem(kind, 600, 0.95, 0.01)
    best = Incumbent(problem)
    imitate(best)
    point = interior_point._start(best, np.inf)
    system = interior_point._System(problem, point, NormalEquations(best))
    first = [-s * m for s, m in system.pairs]
    predicted, _ = system.step(first, np.zeros(problem.n_states), 1e-10)
    mean = system.complementarity / system.size
    second = [0.1 * mean - s * m - ds * dm for (s, m), (ds, dm) in zip(system.pairs, predicted.pairs, strict=True)]
    corrected, _ = system.step(second, predicted.value, 1e-10)
    return point, system, first, predicted, second, corrected


@pytest.mark.parametrize("kind", ["grid", "queues"])
@pytest.mark.parametrize("weight", [0.0, 0.4, 1.0])
def test_a_mixture_of_two_steps_is_the_step_of_the_mixed_targets(kind, weight):
    _, system, first, predicted, second, corrected = steps(kind)
    mixed = predicted.towards(corrected, weight)
    for (s, m), (ds, dm), a, b in zip(system.pairs, mixed.pairs, first, second, strict=True):
        np.testing.assert_allclose(s * dm + m * ds, a + weight * (b - a), atol=1e-7 * np.abs(a).max())


@pytest.mark.parametrize("kind", ["grid", "garnet5", "queues", "chain"])
@pytest.mark.parametrize("share", [0.0, 0.01])
def test_the_mixture_that_is_taken_goes_at_least_as_far_as_the_whole_correction(kind, share):
    _, system, _, predicted, _, corrected = steps(kind)
    length = predicted.longest(system, share)
    step, longest = _mixed(predicted, corrected, length, system, share)
    assert longest == step.longest(system, share) >= corrected.longest(system, share)
    assert step is corrected or any(np.allclose(step.value, predicted.towards(corrected, w).value) for w in WEAKER)


@pytest.mark.parametrize("kind", ["grid", "queues"])
def test_no_pair_leaves_the_inside_even_if_it_did_not_shorten_the_step(kind):
    point, system, _, predicted, _, _ = steps(kind)
    moved = point.moved(predicted, predicted.longest(system, 0.05))
    assert min(moved.slack.min(), *(m.min() for m in moved.multipliers)) > 0


@pytest.mark.parametrize("kind", ["grid", "garnet5", "queues", "chain"])
def test_a_start_is_inside_and_no_product_is_much_below_the_mean(kind):
    point, system, *_ = steps(kind)
    slack, mu = system.pairs[0]
    assert min(slack.min(), mu.min()) > 0
    assert all(s.min() > 0 and m.min() > 0 for s, m in system.pairs)
    assert (slack * mu).min() >= 0.2 * np.mean(slack * mu)
    assert point.slack is slack
