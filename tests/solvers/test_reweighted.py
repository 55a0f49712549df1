"""The ℓ1 regulariser and reweighted ℓ1, against an independent linear program and the problem's own bounds."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from checks import assert_solves, dense_flow, one_state
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import make_problem, problems, random_point, seeds

from rlfd_gym import (
    BlackBoxProblem,
    RLfDProblem,
    SampledExpert,
    noisy_expert,
    pinning_alpha,
    share_at_prior,
    solve_exact,
    solve_reweighted,
    solve_smd,
)


def sparse(problem, alpha=None, weights=None):
    """The same problem with the ℓ1 regulariser."""
    weight = problem.alpha if alpha is None else alpha
    return RLfDProblem(problem.mdp, problem.expert, problem.prior, weight, "l1", weights)


@st.composite
def sparse_problems(draw):
    """Random ℓ1 problems: priors outside the box, sampled experts, α from nothing to all, some with weights."""
    problem = draw(problems())
    rng = np.random.default_rng(draw(seeds))
    weights = rng.exponential(size=problem.n_pairs) * (rng.random(problem.n_pairs) < 0.8)
    alpha = draw(st.sampled_from([0.0, 1e-3, 0.03, 0.1, 2.0]))
    return sparse(problem, alpha, weights if draw(st.booleans()) else None)


@pytest.fixture(scope="module")
def grid():
    """The paper's gridworld, a noisy expert, a prior with half of the obstacles and goals; α as a share of pinning."""
    env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
    expert, prior = noisy_expert(env.mdp, env.cost, 0.3), env.partial_prior(0.5, seed=0)
    pinning = pinning_alpha(RLfDProblem(env.mdp, expert, prior))
    return lambda share: RLfDProblem(env.mdp, expert, prior, share * pinning, "l1")


def textbook_program(problem):
    """The optimum of RLfD_α from its definition: variables c, u, |c - ĉ| ≤ a, t ≤ qᵢ, dense."""
    n, n_states = problem.n_pairs, problem.n_states
    T, zero = dense_flow(problem.mdp), np.zeros
    objective = np.r_[problem.expert, -T @ problem.expert, problem.alpha * weights_of(problem), -1.0]
    rows = np.block(
        [
            [np.eye(n), zero((n, n_states)), -np.eye(n), zero((n, 1))],
            [-np.eye(n), zero((n, n_states)), -np.eye(n), zero((n, 1))],
            [-np.eye(n), T.T, zero((n, n)), np.ones((n, 1))],
        ]
    )
    bounds = [(-1, 1)] * (n + n_states) + [(0, None)] * n + [(None, None)]
    result = linprog(objective, rows, np.r_[problem.prior, -problem.prior, zero(n)], bounds=bounds, method="highs-ds")
    assert result.status == 0
    return result.fun


def weights_of(problem):
    return np.ones(problem.n_pairs) if problem.weights is None else problem.weights


@given(sparse_problems())
def test_the_program_closes_the_gap_and_has_the_value_of_a_textbook_program(problem):
    solution = solve_exact(problem, "lp")
    assert_solves(problem, solution, 1e-9)
    assert solution.upper == pytest.approx(textbook_program(problem), abs=1e-7)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("alpha", [1e-10, 1e-8])
def test_an_alpha_near_the_tolerance_is_solved_too(seed, alpha):
    problem = make_problem(seed)
    flat = RLfDProblem(problem.mdp, problem.expert, np.zeros(problem.n_pairs), alpha, "l1")
    solution = solve_exact(flat)
    assert solution.duality_gap < 1e-6
    assert solution.upper == pytest.approx(textbook_program(flat), abs=1e-6)


@given(sparse_problems(), seeds)
def test_the_lagrangian_and_its_subgradient_are_their_formulas(problem, seed):
    c, u, mu = random_point(problem, seed)
    T, alpha = dense_flow(problem.mdp), problem.alpha * weights_of(problem)
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
def test_the_best_cost_is_that_of_a_fine_grid(problem, seed):
    mu = random_point(problem, seed)[2]
    d, alpha, prior = problem.expert - mu, problem.alpha * weights_of(problem), problem.prior
    grid = np.unique(np.r_[np.linspace(-1, 1, 201), np.clip(prior, -1, 1)])
    value = lambda c: alpha * np.abs(c - prior) + d * c  # noqa: E731
    best = problem.best_cost(mu)
    assert np.abs(best).max() <= 1
    np.testing.assert_allclose(value(best), value(grid[:, None]).min(axis=0), atol=1e-14)


@given(sparse_problems(), seeds)
def test_the_bounds_are_linear_programs(problem, seed):
    c, u, mu = random_point(problem, seed)
    T, d = dense_flow(problem.mdp), problem.expert - mu
    alpha, n, n_states = problem.alpha * weights_of(problem), problem.n_pairs, problem.n_states
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


def test_the_gap_survives_rounding():
    # Next to an optimum by 1e-13 in one entry of the cost, between bounds of about 1000.
    problem = sparse(make_problem(0, alpha=0.0), alpha=100.0)
    outside = RLfDProblem(problem.mdp, problem.expert, problem.prior + 4 * np.sign(problem.prior), 100.0, "l1")
    mu = problem.mdp.optimal(np.clip(outside.prior, -1, 1)).occupancy
    best, value = outside.best_cost(mu), problem.mdp.optimal(outside.best_cost(mu)).value
    moved = best.copy()
    moved[0] -= np.sign(best[0]) * 1e-13
    assert outside.bounds(best, value, mu)[0] > 1000
    assert 0.9e-11 < outside.duality_gap(moved, value, mu) - outside.duality_gap(best, value, mu) < 1.1e-11


@given(problems())
def test_a_large_alpha_returns_exactly_the_prior(problem):
    pinned = sparse(problem, 1.01 * pinning_alpha(problem) + 1e-6)
    solution = solve_exact(pinned)
    np.testing.assert_array_equal(solution.cost, np.clip(problem.prior, -1, 1))
    assert share_at_prior(pinned, solution.cost) == 1.0


@given(problems(), seeds)
def test_without_alpha_the_regularisers_coincide(problem, seed):
    l1, l2 = (RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.0, name) for name in ("l1", "l2"))
    point = random_point(problem, seed)
    assert l1.bounds(*point) == pytest.approx(l2.bounds(*point), abs=1e-12)
    one, other = solve_exact(l1), solve_exact(l2)
    for name in ("cost", "value", "occupancy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_apprentice_stays_within_alpha_of_the_expert_or_pays_the_full_price(grid):
    problem = grid(0.1)
    solution = solve_exact(problem)
    apart = problem.expert - solution.occupancy
    within = np.abs(apart) < problem.alpha - 1e-12
    np.testing.assert_array_equal(solution.cost[within], problem.prior[within])
    beyond = np.abs(apart) > problem.alpha + 1e-9
    np.testing.assert_allclose(solution.cost[beyond], -np.sign(apart[beyond]), atol=1e-12)
    assert within.any()
    excess = np.maximum(np.abs(apart) - problem.alpha, 0)
    dual = problem.prior @ solution.occupancy + np.sum((1 + problem.prior * np.sign(apart)) * excess)
    assert solution.upper == pytest.approx(problem.prior @ problem.expert - dual, abs=1e-9)


@pytest.mark.parametrize("share", [0.003, 0.03, 0.1, 0.3, 0.7])
def test_reweighting_never_changes_more_pairs_and_never_raises_its_objective(grid, share):
    problem = grid(share)
    plain, solution = solve_exact(problem), solve_reweighted(problem)
    details = solution.stats
    assert details["at_prior"][0] == share_at_prior(problem, plain.cost)
    assert details["at_prior"][-1] == share_at_prior(problem, solution.cost) >= details["at_prior"][0]
    assert np.diff(details["objective"]).max() <= 1e-9
    assert_solves(details["weighted_problem"], solution, 1e-9)


def test_reweighting_once_is_the_plain_program_and_the_weights_are_those_of_the_round_before(grid):
    problem = grid(0.1)
    once, twice = solve_reweighted(problem, 1), solve_reweighted(problem, 2, delta=0.2)
    np.testing.assert_array_equal(once.cost, solve_exact(problem).cost)
    assert once.stats["weighted_problem"].weights is None
    expected = 1 / (np.abs(once.cost - problem.prior) + 0.2)
    np.testing.assert_array_equal(twice.stats["weighted_problem"].weights, expected)


def test_l1_leaves_most_pairs_at_the_prior_and_l2_hardly_any(grid):
    problem = grid(0.1)
    quadratic = RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.01)
    assert share_at_prior(problem, solve_exact(problem).cost) > 0.9
    assert share_at_prior(problem, solve_exact(quadratic).cost) < 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"regulariser": "l0"}, "regulariser must be one of l2, l1; got 'l0'"),
        ({"regulariser": "l2", "weights": [1.0, 1.0]}, "weights need regulariser=\"l1\", got 'l2'"),
        ({"weights": [1.0]}, r"weights has shape \(1,\)"),
        ({"weights": [1.0, -1.0]}, "weights must not be negative; entry 1 is -1"),
    ],
)
def test_bad_regularisers_and_weights_are_refused_by_name(changes, message):
    with pytest.raises(ValueError, match=message):
        one_state(**({"regulariser": "l1"} | changes))


def test_methods_and_bounds_of_the_other_regulariser_are_refused(grid):
    problem = grid(0.1)
    for method in ("qp", "matrix-free"):
        with pytest.raises(ValueError, match=f"regulariser=\"l1\", method must be one of auto, lp; got '{method}'"):
            solve_exact(problem, method)
    with pytest.raises(ValueError, match="regulariser=\"l2\", method must be one of auto, qp, matrix-free; got 'lp'"):
        solve_exact(RLfDProblem(problem.mdp, problem.expert), "lp")
    with pytest.raises(ValueError, match='bound="paper" is a lemma on regulariser="l2"'):
        problem.step_sizes(0.1, bound="paper")


def test_reweighting_needs_an_l1_problem_without_weights(grid):
    problem = grid(0.1)
    for other in (
        RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.1),
        sparse(problem, alpha=0.0),
        sparse(problem, weights=np.ones(problem.n_pairs)),
    ):
        with pytest.raises(ValueError, match='problem must have regulariser="l1", alpha > 0 and no weights'):
            solve_reweighted(other)
    with pytest.raises(TypeError, match="problem must be an RLfDProblem, got str"):
        solve_reweighted("grid")
    with pytest.raises(ValueError, match="delta"):
        solve_reweighted(problem, delta=0.0)
    with pytest.raises(ValueError, match="n_rounds must be at least 1"):
        solve_reweighted(problem, 0)


def test_smd_comes_near_the_value_of_the_program():
    problem = make_problem(0, alpha=0.02, regulariser="l1")
    exact = solve_exact(problem)
    rough, long = (solve_smd(problem, n, seed=1) for n in (30_000, 3_000_000))
    for solution in (rough, long):
        assert solution.lower - 1e-12 <= exact.upper <= solution.upper + 1e-12
        assert solution.duality_gap <= problem.accuracy(solution.n_iterations)  # what the theorem promises
    assert long.duality_gap < rough.duality_gap / 5  # √100 = 10 times less, says the theorem's rate


def test_smd_goes_on_only_with_the_same_regulariser_and_takes_no_weights():
    problem = make_problem(0, regulariser="l1")
    begun = solve_smd(problem, 1000)
    assert solve_smd(problem, 1000, initial=begun).n_iterations == 2000
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(make_problem(0, regulariser="l2"), 1000, initial=begun)
    weighted = sparse(problem, weights=np.ones(problem.n_pairs))
    for attempt in (lambda: solve_smd(weighted, step_size=0.01), lambda: weighted.iterations(0.1)):
        with pytest.raises(ValueError, match="weights: Algorithm 1 and its theorem take none; use solve_exact"):
            attempt()


def test_a_black_box_pulls_with_the_sign():
    # With no step for the occupancy and an expert seen in one pair only, costs walk to the prior in steps of αnη.
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3).unwrapped
    expert = SampledExpert([4], [0], env.sample_next([4], [0], np.random.default_rng(0)))
    sizes = {"n_states": 9, "n_actions": 4, "discount": 0.7}
    problem = BlackBoxProblem(env, expert, prior=np.full(36, 0.25), alpha=0.5, regulariser="l1", **sizes)
    stride = 0.5 * 36 * 3e-3
    last = solve_smd(problem, 1500, step_size=(3e-3, 0.0)).state.last.cost
    assert np.mean(np.abs(last - 0.25) <= stride + 0.01) > 0.9
    assert problem.second_moments()[0] == pytest.approx(18**2 + 4 * 0.5 + 2 + 2 * (1.7 / 0.3) ** 2)
    with pytest.raises(ValueError, match="regulariser must be one of l2, l1; got 'l3'"):
        BlackBoxProblem(env, expert, regulariser="l3", **sizes)


def test_a_hull_has_the_quadratic_penalty_only(grid):
    from rlfd_gym.problem.hull import HullProblem

    problem = grid(0.1)
    with pytest.raises(ValueError, match="problem must have regulariser=\"l2\" on a hull, got 'l1'"):
        HullProblem(problem, np.eye(problem.n_pairs)[:, :2])
