"""The quadratic program: against subgradients, other solvers and the optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import (
    grid_problem,
    make_mdp,
    mdps,
    random_problem,
    seeds,
    with_sampled_expert,
)

from rlfd_gym import TabularMDP, solve_exact
from rlfd_gym.problem import examples
from rlfd_gym.solvers import qp

ALPHAS = (0.0, 1e-3, 0.1, 10.0)


@given(mdps(), seeds, st.sampled_from(ALPHAS))
def test_the_quadratic_program_closes_the_gap_on_random_mdps(mdp, seed, alpha):
    problem = random_problem(mdp, seed, alpha)
    solution = solve_exact(problem, "qp")
    assert_solves(problem, solution, 1e-6 * max(1.0, solution.upper))


@given(mdps(max_discount=0.95), seeds, st.sampled_from((1e-3, 0.1, 10.0)))
def test_the_occupancy_is_the_multiplier_of_the_slack(mdp, seed, alpha):
    problem = random_problem(mdp, seed, alpha)
    solution = solve_exact(problem, "qp")
    slack = solution.cost - mdp.flow_transpose(solution.value)
    assert slack.min() >= -1e-5
    assert solution.occupancy @ (slack - slack.min()) <= 1e-5
    np.testing.assert_allclose(mdp.flow(solution.occupancy), mdp.initial, atol=1e-5)
    # α‖c - c*‖² is at most the gap, by strong convexity.
    np.testing.assert_allclose(solution.cost, problem.best_cost(solution.occupancy), atol=2 * np.sqrt(1e-6 / alpha))
    np.testing.assert_allclose(mdp.sum_by_state(solution.policy), 1.0, atol=1e-12)


def by_subgradients(problem, n_steps):
    """Max-margin planning with identity features: c ← clip(c - η_t(2α(c-ĉ) + μ_E - μ*(c))), the best value met."""
    mdp, alpha = problem.mdp, problem.alpha
    cost, values = np.clip(problem.prior, -1, 1), []
    for t in range(n_steps):
        plan = mdp.optimal(cost)
        values.append(alpha * np.sum((cost - problem.prior) ** 2) + problem.expert @ cost - plan.expected_cost)
        step = 2 * alpha * (cost - problem.prior) + problem.expert - plan.occupancy
        cost = np.clip(cost - step / (alpha * (t + 2)), -1, 1)
    return np.array(values)


@pytest.mark.parametrize("make", ["inventory", "grid", "random"])
def test_projected_subgradients_approach_the_same_value_from_above(make):
    problem = {
        "inventory": lambda: examples.inventory(0.1),
        "grid": lambda: grid_problem(6, 0.1),
        "random": lambda: random_problem(make_mdp(3, 6, 4, 0.9), 3, 0.1),
    }[make]()
    solution = solve_exact(problem)
    values = by_subgradients(problem, 300)
    assert values.min() >= solution.lower - 1e-9
    assert values.min() <= solution.upper + 0.02 * (values[0] - solution.upper)
    assert values[0] > solution.upper + 1e-3  # there was something to find


@settings(max_examples=20)
@given(mdps(max_states=4, max_actions=3, max_discount=0.9), seeds)
def test_the_linear_program_of_a_zero_prior_has_no_better_cost(mdp, seed):
    """α = 0 by an independent solver: no cost in the box makes the expert's regret negative, and HiGHS finds zero."""
    problem = random_problem(mdp, seed, 0.0)
    n, n_states = mdp.n_pairs, mdp.n_states
    slack = np.hstack([np.eye(n), -mdp.flow_matrix().T.toarray()])
    program = linprog(
        np.concatenate([problem.expert, -mdp.flow(problem.expert)]),
        A_ub=-slack,
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * n + [(None, None)] * n_states,
    )
    assert solve_exact(problem, "qp").upper == pytest.approx(program.fun, abs=1e-6)


def test_the_box_on_the_value_can_bind_for_a_sampled_expert():
    mdp = make_mdp(272, 3, 2, 0.9)
    exactly_known = random_problem(mdp, 272, 0.1, prior_size=1.5)
    problem = with_sampled_expert(exactly_known, 4, 272)
    unbounded = qp.io_al(problem, spread=False)[1]
    assert np.ptp(unbounded) > 3
    for method in ("qp", "matrix-free"):
        solution = solve_exact(problem, method)
        assert_solves(problem, solution, 0.01 * solution.upper)
        assert np.ptp(solution.value) == pytest.approx(2.0, abs=0.02)


@pytest.mark.parametrize("n_states", [50, 400])
def test_the_predicted_work_counts_fill_in(n_states):
    chain = np.eye(n_states)[np.minimum(np.arange(n_states) + 1, n_states - 1)]
    banded = TabularMDP(chain, np.arange(n_states), np.zeros(n_states, int), None, 0.9)
    assert qp.factorisation_work(banded) < 100 * n_states
    shuffled = np.random.default_rng(0).permutation(n_states)
    same = TabularMDP(chain[np.ix_(shuffled, shuffled)], np.arange(n_states), np.zeros(n_states, int), None, 0.9)
    assert qp.factorisation_work(same) < 100 * n_states
    successors = np.random.default_rng(0).integers(n_states, size=(n_states, 3))
    scattered = TabularMDP(np.eye(n_states)[successors].mean(axis=1), np.arange(n_states), 0 * shuffled, None, 0.9)
    assert qp.factorisation_work(scattered) > 170 * n_states + n_states**3 / 10  # 170 a pair, and the factor is full
