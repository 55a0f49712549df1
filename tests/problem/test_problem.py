from __future__ import annotations

import itertools

import numpy as np
import pytest
from checks import dense_flow, one_state
from hypothesis import given
from reference import pull
from scipy.optimize import linprog
from strategies import make_problem, problems, random_point, seeds

from rlfd_gym import RLfDProblem


def test_the_lagrangian_by_hand():
    # ‖c - ĉ‖² = 0.25 + 0.25; Tγᵀu = u for one state; <μ_E - μ, c - u> = 0.5 (1 - 0.2) - 0.5 (0 - 0.2) = 0.5.
    problem = one_state()
    assert problem.lagrangian([1.0, 0.0], [0.2], [0.5, 0.5]) == pytest.approx(0.5 + 0.5)


def test_the_bounds_by_hand():
    # q = (0.8, -0.2): upper = 0.5 + 0.8 + 0.2. d = (0.5, -0.5), c* = (0.25, -0.25): lower = 0.125 + 0.25.
    problem = one_state()
    assert problem.bounds([1.0, 0.0], [0.2], [0.5, 0.5]) == pytest.approx((1.5, 0.375))
    assert problem.duality_gap([1.0, 0.0], [0.2], [0.5, 0.5]) == pytest.approx(1.125)


@given(problems(), seeds)
def test_the_lagrangian_is_its_formula(problem, seed):
    c, u, mu = random_point(problem, seed)
    T = dense_flow(problem.mdp)
    expected = problem.alpha * np.sum((c - problem.prior) ** 2) + (problem.expert - mu) @ (c - T.T @ u)
    assert problem.lagrangian(c, u, mu) == pytest.approx(expected, abs=1e-10)


@given(problems(), seeds)
def test_the_gradients_are_the_slopes_of_the_lagrangian(problem, seed):
    point = random_point(problem, seed)
    rng = np.random.default_rng(seed)
    for which, (gradient, sign) in enumerate(zip(problem.gradients(*point), (1, 1, -1), strict=True)):
        direction = rng.normal(size=len(gradient))
        ahead, behind = list(point), list(point)
        ahead[which], behind[which] = point[which] + 1e-4 * direction, point[which] - 1e-4 * direction
        slope = (problem.lagrangian(*ahead) - problem.lagrangian(*behind)) / 2e-4
        assert sign * gradient @ direction == pytest.approx(slope, abs=1e-5 * (1 + abs(slope)))


@given(problems(), seeds)
def test_the_upper_bound_is_a_linear_program_over_the_simplex(problem, seed):
    c, u, mu = random_point(problem, seed)
    q = c - dense_flow(problem.mdp).T @ u
    best = linprog(q, A_eq=np.ones((1, len(q))), b_eq=[1.0], bounds=(0, None))  # max over μ of <μ_E - μ, q>
    expected = problem.alpha * np.sum((c - problem.prior) ** 2) + problem.expert @ q - best.fun
    assert problem.bounds(c, u, mu)[0] == pytest.approx(expected, abs=1e-8)


@given(problems(), seeds)
def test_the_lower_bound_is_a_quadratic_program_over_the_boxes(problem, seed):
    import piqp

    c, u, mu = random_point(problem, seed)
    d = problem.expert - mu
    n, n_states = problem.n_pairs, problem.n_states
    hessian = np.diag(np.r_[np.full(n, 2 * problem.alpha), np.zeros(n_states)])
    gradient = np.r_[d - 2 * problem.alpha * problem.prior, -dense_flow(problem.mdp) @ d]
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.setup(hessian, gradient, x_l=np.full(n + n_states, -1.0), x_u=np.full(n + n_states, 1.0))
    assert solver.solve() == piqp.PIQP_SOLVED
    x = np.clip(solver.result.x, -1, 1)
    expected = 0.5 * x @ hessian @ x + gradient @ x + problem.alpha * np.sum(problem.prior**2)
    assert problem.bounds(c, u, mu)[1] == pytest.approx(expected, abs=1e-8)


@given(problems(), seeds)
def test_the_gap_is_the_difference_of_the_bounds_and_not_negative(problem, seed):
    point = random_point(problem, seed)
    upper, lower = problem.bounds(*point)
    assert problem.duality_gap(*point) == pytest.approx(upper - lower, abs=1e-12 * (1 + abs(upper)))
    assert problem.duality_gap(*point) >= 0
    assert lower - 1e-9 <= problem.lagrangian(*point) <= upper + 1e-9


@given(problems(), seeds)
def test_every_point_bounds_the_same_optimum(problem, seed):
    first, second = random_point(problem, seed), random_point(problem, seed + 1)
    assert problem.bounds(*first)[1] <= problem.bounds(*second)[0] + 1e-9


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


def second_moment_cu(problem, c, mu):
    """E‖g_cu‖² in closed form, from the independence of i and the rest."""
    mdp, n, gamma = problem.mdp, problem.n_pairs, problem.discount
    a = n * pull(problem, c, problem.prior)
    cost_part = np.mean(a**2) + 2 * np.mean(a * (problem.expert - mu)) + 2 - 2 * problem.expert @ mu
    P, b = mdp.transitions.toarray(), np.eye(mdp.n_states)[mdp.pair_states]
    flow_of = b - gamma * P  # the mean of e_s - γ e_s' given the pair
    squares = 1 + gamma**2 - 2 * gamma * P[np.arange(n), mdp.pair_states]
    cross = (mu @ flow_of) @ (problem.expert @ flow_of)
    return cost_part + (mu @ squares + problem.expert @ squares - 2 * cross) / (1 - gamma) ** 2


def test_the_papers_bound_fails_where_the_corrected_one_holds():
    # c = 1, ĉ = -1, α = 0.1 and 256 pairs, on the published inventory: the mean square of n·2α(c-ĉ) alone is 10486.
    import gymnasium as gym

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
    l1 = RLfDProblem(problem.mdp, problem.expert, problem.prior, problem.alpha, "l1")
    for own in (problem, l1):
        for c in (worst, np.clip(problem.prior, -1, 1), against):
            assert second_moment_cu(own, c, mu) <= own.second_moments()[0] * (1 + 1e-12)


def test_the_l1_bound_is_tight_for_the_cost():
    # One state, α = 1: a = 2 sign(c - ĉ) = (2, -2), so E a² = 4 = α²n², 2 E[a·w] = 2 (1 + 1) = 4α and E‖w‖² = 2.
    problem = one_state(regulariser="l1")
    moment = second_moment_cu(problem, np.array([1.0, -1.0]), np.array([0.0, 1.0]))
    assert moment == pytest.approx(4 + 4 + 2)  # the value's part vanishes where there is one state
    assert problem.second_moments()[0] == pytest.approx(4 + 4 + 2 + 2 * 9)


def test_steps_and_iterations_are_those_of_the_theorem():
    import gymnasium as gym

    env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
    problem = RLfDProblem(env.mdp, env.mdp.optimal(env.cost).occupancy, env.cost, alpha=0.1)
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
    inside, outside = one_state(prior=[1.0, -1.0]), one_state(prior=[3.0, -1.0])
    assert outside.second_moments("paper")[0] > inside.second_moments("paper")[0]
    assert outside.second_moments()[0] > inside.second_moments()[0]


def test_no_prior_means_no_alpha():
    assert one_state(prior=None, alpha=0.0).prior.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match=r"prior is None, so alpha must be 0, got 1\.0"):
        one_state(prior=None)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"alpha": -0.1}, ValueError, "alpha must be a finite number in"),
        ({"alpha": np.nan}, ValueError, "alpha"),
        ({"alpha": "0.1"}, TypeError, "alpha must be a number"),
        ({"expert": [0.5, 0.4]}, ValueError, "expert must sum to 1"),
        ({"expert": [1.5, -0.5]}, ValueError, "expert must not be negative"),
        ({"expert": [1.0]}, ValueError, r"expert has shape \(1,\), expected \(2,\)"),
        ({"prior": [0.0, np.nan]}, ValueError, "prior must be finite"),
        ({"prior": [0.0] * 3}, ValueError, r"prior has shape \(3,\), expected \(2,\): one entry per feasible"),
        ({"mdp": "grid"}, TypeError, "mdp must be a TabularMDP, got str"),
    ],
)
def test_bad_problems_are_refused_by_name(changes, error, message):
    with pytest.raises(error, match=message):
        one_state(**changes)


@pytest.mark.parametrize(
    ("point", "message"),
    [
        (([1.5, 0.0], [0.0], [0.5, 0.5]), r"cost must lie in \[-1, 1\]"),
        (([0.0, 0.0], [-1.1], [0.5, 0.5]), r"value must lie in \[-1, 1\]"),
        (([0.0, 0.0], [0.0], [0.5, 0.4]), "occupancy must be a probability vector"),
        (([0.0, 0.0], [0.0], [1.5, -0.5]), "occupancy must be a probability vector"),
        (([0.0], [0.0], [0.5, 0.5]), "cost has shape"),
        (([0.0, 0.0], [0.0, 0.0], [0.5, 0.5]), "value has shape"),
    ],
)
def test_infeasible_points_have_no_bounds(point, message):
    with pytest.raises(ValueError, match=message):
        one_state().duality_gap(*point)


def test_unknown_bounds_and_bad_epsilons_are_refused():
    with pytest.raises(ValueError, match="bound must be one of corrected, paper; got 'loose'"):
        one_state().step_sizes(0.1, bound="loose")
    with pytest.raises(ValueError, match="epsilon"):
        one_state().iterations(0.0)
