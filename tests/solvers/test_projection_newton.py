"""The matrix-free projection of a prior: against the quadratic program, on every kind of MDP."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import mdps, random_cost, random_policy, seeds
from structures import KINDS, learning_problem

from rlfd_gym import project_prior
from rlfd_gym.solvers.projection_newton import explaining

pytestmark = pytest.mark.filterwarnings("ignore:the projected cost tells")


@pytest.mark.parametrize("factor", [0.1, 1.0, 1.7])
@pytest.mark.parametrize("n_demonstrations", [None, 20])
@pytest.mark.parametrize("kind", KINDS)
def test_it_agrees_with_the_program_on_every_kind_of_mdp(kind, n_demonstrations, factor):
    problem = learning_problem(kind, 200, 0.9, 0.01, n_demonstrations)
    prior = factor * problem.prior  # beyond 1 it leaves the box
    solution = project_prior(problem.mdp, problem.expert, prior, "matrix-free")
    program = project_prior(problem.mdp, problem.expert, prior, "qp")
    assert solution.lower <= program.upper * (1 + 1e-9)
    assert solution.upper >= program.lower * (1 - 1e-9)
    assert solution.duality_gap <= 1e-4 * solution.upper
    np.testing.assert_allclose(solution.cost, program.cost, atol=0.02 * solution.upper**0.5)


@given(mdps(max_discount=0.95), seeds, st.booleans(), st.sampled_from([1e-3, 0.5, 1.5, 50.0]))
@settings(max_examples=60, deadline=None)
def test_it_explains_the_expert_and_its_bounds_hold_the_value_of_the_program(mdp, seed, few_samples, factor):
    expert, prior = mdp.occupancy_of(random_policy(mdp, seed)), factor * random_cost(mdp, seed + 1)
    if few_samples:
        expert = np.random.default_rng(seed).multinomial(10, expert / expert.sum()) / 10
    solution = project_prior(mdp, expert, prior, "matrix-free")
    program = project_prior(mdp, expert, prior, "qp")
    slack = solution.cost - mdp.flow_transpose(solution.value)
    assert slack.min() >= -1e-9
    assert expert @ slack <= 1e-9
    assert max(np.abs(solution.cost).max(), np.abs(solution.value).max()) <= 1
    size = 1e-6 * max(min(1.0, factor**2), program.upper)
    assert solution.lower <= program.upper + size
    assert solution.upper >= program.lower - size


def test_a_value_that_is_a_little_too_large_leaves_the_costs_of_other_pairs_as_they_are():
    mdp = learning_problem("chain", 100, 0.9, 0.01).mdp
    taken = np.arange(mdp.n_pairs) < 10
    value = np.full(mdp.n_states, -1.001)
    cost, shrunk = explaining(mdp, np.full(mdp.n_pairs, 1.0), value, taken)
    np.testing.assert_allclose(shrunk, -1.0)
    np.testing.assert_array_equal(cost[~taken], 1.0)
    np.testing.assert_allclose(cost[taken], -1.0)


def test_an_expert_that_is_optimal_for_the_prior_leaves_it_as_it_is():
    problem = learning_problem("garnet5", 2_000, 0.9, 0.01)
    expert = problem.mdp.optimal(problem.prior).occupancy
    solution = project_prior(problem.mdp, expert, problem.prior, "matrix-free")
    np.testing.assert_allclose(solution.cost, problem.prior, atol=1e-2)
    assert solution.upper <= 1e-5 * np.sum((problem.prior - problem.prior.mean()) ** 2)


def test_a_constant_prior_is_its_own_projection():
    mdp = learning_problem("chain", 100, 0.9, 0.01).mdp
    solution = project_prior(mdp, mdp.occupancy_of(mdp.uniform_policy()), np.full(mdp.n_pairs, 0.25), "matrix-free")
    np.testing.assert_allclose(solution.cost, 0.25, atol=1e-9)


def test_a_method_that_does_not_exist_is_refused():
    problem = learning_problem("chain", 100, 0.9, 0.01)
    with pytest.raises(ValueError, match="method"):
        project_prior(problem.mdp, problem.expert, problem.prior, "lp")
