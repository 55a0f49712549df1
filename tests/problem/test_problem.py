"""RLfD_α: its Lagrangian, its bounds and its gap, by hand and against programs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from checks import dense_flow, one_state
from hypothesis import given, settings
from reference import hull_optimum, pair_alpha, quadratic_program
from scipy.optimize import linprog
from strategies import (
    hull_of,
    hull_point,
    make_problem,
    mdps,
    problems,
    random_point,
    random_policy,
    seeds,
    sparse,
    sparse_problems,
)

from rlfd_gym import RLfDProblem
from rlfd_gym.beliefs import Hull, NearPrior, Prices
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.problem import HullProblem


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
    c, u, mu = random_point(problem, seed)
    d = problem.expert - mu
    n, n_states = problem.n_pairs, problem.n_states
    hessian = np.diag(np.r_[np.full(n, 2 * problem.alpha), np.zeros(n_states)])
    gradient = np.r_[d - 2 * problem.alpha * problem.prior, -dense_flow(problem.mdp) @ d]
    box = np.ones(n + n_states)
    x = np.clip(quadratic_program(hessian, gradient, x_l=-box, x_u=box).x, -1, 1)
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


@given(sparse_problems(), seeds)
def test_with_the_l1_penalty_the_lagrangian_and_its_subgradient_are_their_formulas(problem, seed):
    c, u, mu = random_point(problem, seed)
    T, alpha = dense_flow(problem.mdp), pair_alpha(problem)
    expected = np.sum(alpha * np.abs(c - problem.prior)) + (problem.expert - mu) @ (c - T.T @ u)
    assert problem.lagrangian(c, u, mu) == pytest.approx(expected, abs=1e-10)
    c[0] = np.clip(problem.prior[0], -1, 1)  # at the kink, unless the prior is outside
    here, (g_c, g_u, _) = problem.lagrangian(c, u, mu), problem.gradients(c, u, mu)
    for step in (1e-3, 1.0):
        other, value = random_point(problem, seed + 1)[:2]
        there = problem.lagrangian(c + step * (other - c), u + step * (value - u), mu)
        assert there >= here + step * (g_c @ (other - c) + g_u @ (value - u)) - 1e-10
    if problem.prior[0] == c[0]:
        assert g_c[0] == problem.expert[0] - mu[0]


@given(sparse_problems(), seeds)
def test_with_the_l1_penalty_the_bounds_are_linear_programs(problem, seed):
    c, u, mu = random_point(problem, seed)
    T, d = dense_flow(problem.mdp), problem.expert - mu
    alpha, n, n_states = pair_alpha(problem), problem.n_pairs, problem.n_states
    q = c - T.T @ u
    upper, lower = problem.bounds(c, u, mu)
    assert upper == pytest.approx(np.sum(alpha * np.abs(c - problem.prior)) + problem.expert @ q - q.min(), abs=1e-10)
    rows = np.block(
        [[np.eye(n), np.zeros((n, n_states)), -np.eye(n)], [-np.eye(n), np.zeros((n, n_states)), -np.eye(n)]]
    )
    inner = linprog(
        np.r_[d, -T @ d, alpha],
        rows,
        np.r_[problem.prior, -problem.prior],
        bounds=[(-1, 1)] * (n + n_states) + [(0, None)] * n,
    )
    assert lower == pytest.approx(inner.fun, abs=1e-7)
    assert problem.duality_gap(c, u, mu) == pytest.approx(upper - lower, abs=1e-12 * (1 + abs(upper)))


def test_a_tiny_gap_between_large_bounds_survives_rounding():
    # Next to an optimum by 1e-13 in one entry of the cost, between bounds of about 1000.
    problem = sparse(make_problem(0, alpha=0.0), alpha=100.0)
    far = NearPrior(problem.prior + 4 * np.sign(problem.prior), 100.0, "l1", outside_box=True)
    outside = RLfDProblem(problem.mdp, problem.expert, belief=far)
    mu = problem.mdp.optimal(np.clip(outside.prior, -1, 1)).occupancy
    best, value = outside.best_cost(mu), problem.mdp.optimal(outside.best_cost(mu)).value
    moved = best.copy()
    moved[0] -= np.sign(best[0]) * 1e-13
    assert outside.bounds(best, value, mu)[0] > 1000
    assert 0.9e-11 < outside.duality_gap(moved, value, mu) - outside.duality_gap(best, value, mu) < 1.1e-11


@given(problems(), seeds)
@settings(max_examples=40)
def test_on_a_hull_the_bounds_bracket_the_optimum_of_a_quadratic_program_and_meet_there(problem, seed):
    hull = hull_of(problem, int(seed % 4) + 1, seed)
    value, best = hull_optimum(hull)
    upper, lower = hull.bounds(*hull_point(hull, seed))
    scale = 1 + abs(value)
    assert lower - 1e-7 * scale <= value <= upper + 1e-7 * scale
    assert hull.duality_gap(*hull_point(hull, seed)) >= 0
    upper, lower = hull.bounds(*best)
    assert (upper, lower) == pytest.approx((value, value), abs=1e-6 * scale / (1 - hull.discount))


@given(mdps(max_discount=0.95), seeds)
@settings(max_examples=30)
def test_without_a_prior_the_optimum_on_a_hull_is_minus_that_of_lpal(mdp, seed):
    # LPAL: min B over occupancies μ with c_k·(μ - μ_E) ≤ B for every column.
    hull = hull_of(RLfDProblem(mdp, mdp.occupancy_of(random_policy(mdp, seed))), 3, seed)
    lpal = linprog(
        np.r_[np.zeros(mdp.n_pairs), 1.0],
        A_ub=np.column_stack([hull.belief.basis.T, -np.ones(3)]),
        b_ub=hull.belief.basis.T @ hull.expert,
        A_eq=np.column_stack([dense_flow(mdp), np.zeros(mdp.n_states)]),
        b_eq=mdp.initial,
        bounds=[(0, None)] * mdp.n_pairs + [(None, None)],
    )
    upper, lower = hull.bounds(*hull_point(hull, seed))
    assert lower - 1e-7 <= -lpal.fun <= upper + 1e-7
    assert hull_optimum(hull)[0] == pytest.approx(-lpal.fun, abs=1e-6)
    assert -lpal.fun >= -1e-7  # who imitates the expert has margin 0


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


def test_a_prior_and_its_alpha_are_short_for_a_belief():
    short = one_state(regulariser="l1")
    long = RLfDProblem(short.mdp, short.expert, belief=NearPrior(short.prior, 1.0, norm="l1"))
    point = ([1.0, 0.0], [0.2], [0.5, 0.5])
    assert long.bounds(*point) == short.bounds(*point)
    assert long.fingerprint() == short.fingerprint()
    assert (long.alpha, long.regulariser) == (1.0, "l1")


def test_another_belief_or_alpha_leaves_the_rest_of_a_problem_as_it_is():
    problem = one_state()
    for other in (problem.with_alpha(0.25), problem.with_belief(NearPrior(problem.prior, 0.25))):
        assert other.mdp is problem.mdp
        assert other.alpha == 0.25
        np.testing.assert_array_equal(other.expert, problem.expert)
        np.testing.assert_array_equal(other.prior, problem.prior)
    assert problem.alpha == 1.0


def test_a_prior_without_alpha_has_the_default_one_and_is_ignored_only_when_asked():
    problem = one_state()
    mdp, expert, prior = problem.mdp, problem.expert, problem.prior
    assert RLfDProblem(mdp, expert, prior).alpha == DEFAULT_ALPHA > 0
    assert RLfDProblem(mdp, expert, prior, 0.0).alpha == 0
    assert RLfDProblem(mdp, expert).alpha == 0
    assert Hull(np.eye(2), prior).alpha == DEFAULT_ALPHA
    assert (Hull(np.eye(2)).alpha, Hull(np.eye(2), prior, 0.0).alpha) == (0, 0)
    with pytest.raises(ValueError, match='alpha has no default with regulariser="l1"'):
        RLfDProblem(mdp, expert, prior, regulariser="l1")
    with pytest.raises(ValueError, match="alpha is None, but there is a prior"):
        Prices(np.eye(2), [0, 0], [1, 1], prior=[0.5, 0.5])
    assert Prices(np.eye(2), [0, 0], [1, 1]).alpha == 0


def test_a_prior_in_money_is_refused_by_the_problem():
    problem = one_state()
    with pytest.raises(ValueError, match=r"prior has costs from -30 to 12\.5.*CostScale\(-30, 12\.5\)\.to_box"):
        RLfDProblem(problem.mdp, problem.expert, [-30.0, 12.5], 0.1)


def test_a_belief_excludes_a_prior_and_must_be_one():
    problem = one_state()
    for change in ({"prior": [0.0, 0.0]}, {"alpha": 0.1}):
        with pytest.raises(ValueError, match="belief and prior exclude each other"):
            RLfDProblem(problem.mdp, problem.expert, **change, belief=problem.belief)
    with pytest.raises(TypeError, match=r"belief must be a Belief, got str; see rlfd_gym\.beliefs"):
        RLfDProblem(problem.mdp, problem.expert, belief="near")
    with pytest.raises(TypeError, match="prior must be a cost over pairs, got NearPrior: give a belief as belief="):
        RLfDProblem(problem.mdp, problem.expert, prior=problem.belief)


def test_a_pickled_problem_is_locked_with_all_its_parts():
    problem = pickle.loads(pickle.dumps(one_state()))
    for array in (problem.expert, problem.prior, problem.belief.prior, problem.mdp.initial, problem.state_starts):
        assert not array.flags.writeable


@given(seeds)
def test_another_belief_leaves_the_expert_as_it_is_to_the_bit(seed):
    rng = np.random.default_rng(seed)
    problem = make_problem(seed % 10**6)
    counts = rng.multinomial(30, problem.expert / problem.expert.sum())
    problem = RLfDProblem(problem.mdp, counts / 30, problem.prior, 0.1)
    for other in (problem.with_alpha(0.1), HullProblem(problem, np.eye(problem.n_pairs))):
        np.testing.assert_array_equal(other.expert, problem.expert)
    assert problem.with_alpha(0.1).fingerprint() == problem.fingerprint()
