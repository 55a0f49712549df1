"""The most likely cost: its bounds, its derivatives, its limits, and every way to it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import RLfDProblem, TabularMDP, occupancy_from_demonstrations, solve_exact
from rlfd_gym.experts.made_up import demonstrate
from rlfd_gym.solvers import soft_map as module
from rlfd_gym.solvers.soft_map import SoftProblem, evaluate, gradient, hessian, information, soft_map


def make(seed, n_states=5, n_actions=3, discount=0.8, size=1.0):
    """A random expert, who is a true occupancy, and a random prior."""
    mdp = make_mdp(seed, n_states, n_actions, discount)
    return SoftProblem.of(mdp, mdp.occupancy_of(random_policy(mdp, seed + 1)), size * random_cost(mdp, seed + 2))


def sampled(seed):
    """An expert estimated from a few trajectories, whose flow is not that of a policy from ν₀."""
    mdp = make_mdp(seed, 5, 3, 0.8)
    walks = demonstrate(mdp, random_policy(mdp, seed + 1), 4, mdp.horizon(), seed)
    return SoftProblem.of(mdp, occupancy_from_demonstrations(walks, mdp, estimator="count"), random_cost(mdp, seed + 2))


@settings(max_examples=40, deadline=None)
@given(mdps(max_discount=0.95), seeds, st.sampled_from([1.0, 10.0, 300.0]), st.sampled_from([1e-3, 0.1, 10.0]))
def test_the_bounds_meet_and_no_cost_is_below_them(mdp, seed, beta, alpha):
    problem = SoftProblem.of(mdp, mdp.occupancy_of(random_policy(mdp, seed)), 1.5 * random_cost(mdp, seed + 1))
    assert problem.convex
    point = soft_map(problem, beta, alpha)
    assert np.abs(point.cost).max() <= 1
    assert -1e-9 <= point.gap <= 1e-8
    rng = np.random.default_rng(seed)
    for cost in (rng.uniform(-1, 1, mdp.n_pairs), np.clip(point.cost + 1e-3 * rng.normal(size=mdp.n_pairs), -1, 1)):
        other = evaluate(problem, cost, beta, alpha)
        assert other.upper >= point.lower - 1e-10
        assert other.lower <= point.upper + 1e-10


def test_a_step_on_which_every_cost_meets_its_bound_is_no_dead_end():
    """The first step takes both costs beyond the box; only the one that is dearer to change may stay at its end."""
    mdp = TabularMDP(sp.csr_array(np.ones((2, 1))), np.zeros(2, int), np.arange(2), None, 0.5)
    problem = SoftProblem.of(mdp, np.array([0.0, 1.0]), np.array([-1.2430525, -0.78956848]))
    point = soft_map(problem, 300.0, 1e-3)
    assert point.gap <= 1e-9
    assert point.cost[1] == -1
    assert point.n_iterations < 30


@pytest.mark.parametrize("problem", [make(1), sampled(2)], ids=["occupancy", "estimate"])
def test_the_value_is_the_likelihood_and_the_derivatives_those_of_finite_differences(problem):
    beta, alpha, step = 5.0, 0.05, 1e-5
    cost = 0.5 * random_cost(problem.mdp, 9)
    point = evaluate(problem, cost, beta, alpha)
    away = cost - problem.prior
    likelihood = -problem.expert @ point.plan.log_policy
    assert point.upper == pytest.approx(alpha * away @ away + likelihood / beta, abs=1e-8)
    moves = np.eye(problem.mdp.n_pairs) * step
    near = [(evaluate(problem, cost + e, beta, alpha), evaluate(problem, cost - e, beta, alpha)) for e in moves]
    slope = [(up.upper - down.upper) / (2 * step) for up, down in near]
    np.testing.assert_allclose(gradient(problem, point), slope, atol=1e-6)
    if problem.convex:
        bend = [(gradient(problem, up) - gradient(problem, down)) / (2 * step) for up, down in near]
        np.testing.assert_allclose(hessian(problem, point), bend, atol=1e-6)
    else:  # Fisher's information, the mean over decisions of the squared score
        g = np.array([(down.plan.log_policy - up.plan.log_policy) / (2 * step * beta) for up, down in near]).T
        mass = problem.mdp.sum_by_state(problem.expert)[problem.mdp.pair_states] * point.plan.policy
        np.testing.assert_allclose(information(problem, point), beta * g.T @ (mass[:, None] * g), atol=1e-5)


def test_the_start_of_an_estimate_is_its_own():
    problem = sampled(3)
    assert not problem.convex
    assert problem.start.min() < 0
    np.testing.assert_allclose(problem.start, problem.mdp.flow(problem.expert))


@pytest.mark.parametrize("seed", range(4))
def test_an_estimate_has_a_local_minimum_above_the_entropy(seed):
    problem = sampled(10 + seed)
    point = soft_map(problem, 10.0, 0.01)
    assert point.lower == pytest.approx(problem.entropy / 10.0)
    assert point.upper >= point.lower
    slope = gradient(problem, point)
    inward = np.where(point.cost >= 1, np.maximum(slope, 0), np.where(point.cost <= -1, np.minimum(slope, 0), slope))
    np.testing.assert_allclose(inward, 0.0, atol=1e-4)
    near = np.random.default_rng(seed).normal(size=(20, problem.mdp.n_pairs)) * 0.02
    for step in near:
        assert evaluate(problem, np.clip(point.cost + step, -1, 1), 10.0, 0.01).upper >= point.upper - 1e-8


def test_a_rational_expert_is_that_of_rlfd():
    problem = make(21)
    exact = solve_exact(RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.1))
    most = np.log(np.diff(problem.mdp.state_starts).max())
    gaps = []
    for beta in (10.0, 1e3, 1e5):
        point = soft_map(problem, beta, 0.1)
        assert exact.lower - 1e-9 <= point.upper <= exact.upper + most / beta + 1e-9
        gaps.append(np.abs(point.cost - exact.cost).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 1e-3
    np.testing.assert_allclose(point.occupancy, exact.occupancy, atol=1e-3)


def test_without_a_prior_the_expert_is_matched():
    # Every action of this expert has its share, so that costs in the box explain it.
    mdp = make_mdp(31, 4, 3, 0.6)
    expert = mdp.occupancy_of(0.5 * random_policy(mdp, 32) + 0.5 * mdp.uniform_policy())
    mismatch = [
        np.abs(soft_map(SoftProblem.of(mdp, expert, np.zeros(mdp.n_pairs)), 5.0, alpha).plan.occupancy - expert).sum()
        for alpha in (1e-1, 1e-3, 1e-6)
    ]
    assert mismatch[0] > mismatch[1] > mismatch[2]
    assert mismatch[2] < 1e-4


def test_a_sure_prior_is_returned():
    problem = make(41, size=0.9)
    np.testing.assert_allclose(soft_map(problem, 5.0, 1e6).cost, problem.prior, atol=1e-6)


@pytest.mark.parametrize("make_problem", [make, sampled])
def test_the_first_order_method_gives_the_same(monkeypatch, make_problem):
    problem = make_problem(51)
    second = soft_map(problem, 8.0, 0.02)
    monkeypatch.setattr(module, "NEWTON_PAIRS", 1)
    first = soft_map(problem, 8.0, 0.02)
    assert first.upper == pytest.approx(second.upper, abs=1e-7)
    if problem.convex:
        assert first.gap < 1e-6
        np.testing.assert_allclose(first.cost, second.cost, atol=1e-2)


def test_a_near_start_gives_the_same():
    problem = make(61)
    cold = soft_map(problem, 50.0, 0.01)
    warm = soft_map(problem, 50.0, 0.01, start=soft_map(problem, 40.0, 0.02))
    np.testing.assert_allclose(warm.cost, cold.cost, atol=1e-4)
    assert warm.n_iterations <= cold.n_iterations
