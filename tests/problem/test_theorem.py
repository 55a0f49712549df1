"""The convergence theorems: second moments by enumeration and in closed form, steps and iterations."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from checks import one_state
from hypothesis import given, settings
from reference import pull, second_moment_cu
from strategies import hull_of, hull_point, make_problem, problems, random_point, seeds, sparse

from rlfd_gym import RLfDProblem
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.problem import examples


def estimates(problem, point):
    """Every outcome of the two estimators, (probability, g_c, g_u) and (probability, k, g_μ), as the paper has them."""
    c, u, mu = point
    mdp, n, gamma = problem.mdp, problem.n_pairs, problem.discount
    P, s = mdp.transitions.toarray(), mdp.pair_states
    moves = [(j, t, P[j, t]) for j in range(n) for t in np.flatnonzero(P[j])]
    for i, (j, t, p), (e, te, pe) in itertools.product(range(n), moves, moves):
        chance = mu[j] * p * problem.expert[e] * pe / n
        if chance == 0:
            continue
        g_c, g_u = np.zeros(n), np.zeros(mdp.n_states)
        g_c[i] += n * pull(problem, c[i], problem.prior[i])
        g_c[e] += 1
        g_c[j] -= 1
        for index, amount in ((s[j], 1), (t, -gamma), (s[e], -1), (te, gamma)):
            g_u[index] += amount / (1 - gamma)
        yield "cu", chance, np.r_[g_c, g_u]
    for k, t, p in moves:
        g_mu = np.zeros(n)
        g_mu[k] = n * (c[k] - (u[s[k]] - gamma * u[t]) / (1 - gamma))
        yield "mu", p / n, g_mu


@pytest.mark.parametrize("regulariser", ["l2", "l1"])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_estimators_have_the_gradients_as_their_mean_and_the_bounds_hold(seed, alpha, regulariser):
    problem = make_problem(seed, n_states=3, n_actions=2, alpha=alpha, regulariser=regulariser)
    point = random_point(problem, seed + 10)
    point[0][0] = problem.prior[0]  # at the kink of "l1"
    mean = {"cu": 0.0, "mu": 0.0}
    second = {"cu": 0.0, "mu": np.zeros(problem.n_pairs)}
    total = {"cu": 0.0, "mu": 0.0}
    largest = 0.0
    for side, chance, g in estimates(problem, point):
        mean[side] = mean[side] + chance * g
        second[side] = second[side] + chance * (g @ g if side == "cu" else g**2)
        total[side] += chance
        if side == "mu":
            largest = max(largest, np.abs(g).max())
    assert total == pytest.approx({"cu": 1.0, "mu": 1.0}, abs=1e-12)
    g_c, g_u, g_mu = problem.gradients(*point)
    np.testing.assert_allclose(mean["cu"], np.r_[g_c, g_u], atol=1e-12)
    np.testing.assert_allclose(mean["mu"], g_mu, atol=1e-12)
    v_cu, v_mu = problem.second_moments()
    assert second["cu"] <= v_cu
    assert second["mu"].max() <= v_mu  # the local norm at every μ' at once: the worst μ' sits on one pair
    assert largest <= 2 * problem.n_pairs / (1 - problem.discount)


def test_the_papers_bound_fails_where_the_corrected_one_holds():
    # c = 1, ĉ = -1, α = 0.1 and 256 pairs, on the published inventory: the mean square of n·2α(c-ĉ) alone is 10486.
    mdp = gym.make("rlfd_gym/InventoryPaper-v0").unwrapped.mdp
    uniform = np.full(256, 1 / 256)
    problem = RLfDProblem(mdp, mdp.occupancy_of(mdp.uniform_policy()), np.full(256, -1.0), alpha=0.1)
    moment = second_moment_cu(problem, np.ones(256), uniform)
    assert moment > 10485
    assert problem.second_moments("paper")[0] == pytest.approx(64 * 0.01 * 256 + 4 * 1.81 / 0.01 + 8)
    assert problem.second_moments("paper")[0] < moment <= problem.second_moments("corrected")[0]


@given(problems(max_states=4), seeds)
def test_the_corrected_bound_holds_at_random_and_at_extreme_points(problem, seed):
    _, _, mu = random_point(problem, seed)
    worst = -np.where(problem.prior >= 0, 1.0, -1.0)  # the corner of the box farthest from the prior
    against = np.where(problem.expert >= mu, 1.0, -1.0)
    l1 = sparse(problem)
    for own in (problem, l1):
        for c in (worst, np.clip(problem.prior, -1, 1), against):
            assert second_moment_cu(own, c, mu) <= own.second_moments()[0] * (1 + 1e-12)


def test_the_l1_bound_is_tight_for_the_cost():
    # One state, α = 1: a = 2 sign(c - ĉ) = (2, -2), so E a² = 4 = α²n², 2 E[a·w] = 2 (1 + 1) = 4α and E‖w‖² = 2.
    problem = one_state(regulariser="l1")
    moment = second_moment_cu(problem, np.array([1.0, -1.0]), np.array([0.0, 1.0]))
    assert moment == pytest.approx(4 + 4 + 2)  # the value's part vanishes where there is one state
    assert problem.second_moments()[0] == pytest.approx(4 + 4 + 2 + 2 * 9)


@given(problems(), seeds)
@settings(max_examples=30)
def test_the_second_moments_of_the_value_and_occupancy_estimators_are_bounded(problem, seed):
    hull = hull_of(problem, 3, seed)
    w, u, mu = hull_point(hull, seed)
    for vector in (u, np.sign(u)):
        _, v_u, v_mu = hull.second_moments()
        P, states, gamma = hull.mdp.transitions.toarray(), hull.mdp.pair_states, hull.discount
        slack = (hull.belief.basis @ w)[:, None] - (vector[states][:, None] - gamma * vector[None]) / (1 - gamma)
        assert (hull.n_pairs * P * slack**2).sum(axis=1).max() <= v_mu * (1 + 1e-12)
        x = np.eye(hull.n_states)[states][:, None] - gamma * np.eye(hull.n_states)[None]  # (pair, next state, state)
        first, square = np.einsum("ks,kst->kt", P, x), np.einsum("ks,kst->k", P, x**2)
        second = square @ (mu + hull.expert) - 2 * (mu @ first) @ (hull.expert @ first)
        assert second / (1 - gamma) ** 2 <= v_u * (1 + 1e-12)


def test_steps_and_iterations_are_those_of_the_theorem():
    problem = examples.gridworld(size=6, noise=0, alpha=0.1, known=1)
    v_cu = 64 * 0.01 * 144 + 4 * 1.49 / 0.09 + 8
    v_mu = 144 * (2 + 4 * 1.49 / 0.09)
    assert problem.step_sizes(0.1, bound="paper") == pytest.approx((0.1 / (4 * v_cu), 0.1 / (4 * v_mu)))
    eta_cu, eta_mu = problem.step_sizes(0.1, bound="paper")
    expected = max(16 * 180 / (0.1 * eta_cu), 8 * np.log(144) / (0.1 * eta_mu))
    assert problem.iterations(0.1, bound="paper") == pytest.approx(expected, abs=1)
    assert problem.iterations(0.1, bound="paper") == pytest.approx(1.9e8, rel=0.02)
    assert problem.iterations(0.1) > problem.iterations(0.1, bound="paper")
    for bound in ("paper", "corrected"):
        steps = problem.iterations(0.1, bound)
        assert problem.accuracy(steps, bound) <= 0.1 < problem.accuracy(steps - 1, bound)


def test_a_prior_outside_the_box_enlarges_the_bounds():
    inside = one_state(prior=[1.0, -1.0])
    outside = inside.with_belief(NearPrior([3.0, -1.0], 1.0, outside_box=True))
    assert outside.second_moments("paper")[0] > inside.second_moments("paper")[0]
    assert outside.second_moments()[0] > inside.second_moments()[0]


def test_unknown_bounds_and_bad_epsilons_are_refused():
    with pytest.raises(ValueError, match="bound must be one of corrected, paper; got 'loose'"):
        one_state().step_sizes(0.1, bound="loose")
    with pytest.raises(ValueError, match="epsilon"):
        one_state().iterations(0.0)
