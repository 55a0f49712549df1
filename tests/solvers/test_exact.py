from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest
from checks import assert_solves
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize
from strategies import make_mdp, mdps, random_cost, random_policy, seeds

from rlfd_gym import RLfDProblem, TabularMDP, project_prior, solve_exact
from rlfd_gym.solvers import exact, matrix_free, projection, qp
from rlfd_gym.solvers.incumbent import Incumbent

ALPHAS = (0.0, 1e-3, 0.1, 10.0)
alphas = st.sampled_from(ALPHAS)


@pytest.fixture(scope="module")
def stock():
    return gym.make("rlfd_gym/Inventory-v0").unwrapped


@pytest.fixture(scope="module")
def stock_problem(stock):
    """The paper's single instance: the expert believes in (5, 8, 15), the prior is (4, 2, 14)."""

    def make(alpha):
        expert = stock.mdp.optimal(stock.cost_for(5, 8, 15)).occupancy
        return RLfDProblem(stock.mdp, expert, stock.cost_for(4, 2, 14), alpha)

    return make


def noisy(mdp, cost, epsilon=0.3):
    """The occupancy of an optimal policy that takes a random action now and then."""
    return mdp.occupancy_of((1 - epsilon) * mdp.optimal(cost).policy + epsilon * mdp.uniform_policy())


def grid_problem(side=10, alpha=0.1, seed=0, **kwargs):
    """A windy gridworld, a noisy expert, and a prior that knows half of the obstacles and goals."""
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=side, width=side, **kwargs).unwrapped
    known = np.random.default_rng(seed).random(env.mdp.n_states) < 0.5
    return RLfDProblem(env.mdp, noisy(env.mdp, env.cost), np.where(known[env.mdp.pair_states], env.cost, 0.0), alpha)


def random_problem(mdp, seed, alpha, prior_size=1.5):
    """Any expert, and a prior that may leave the box."""
    return RLfDProblem(mdp, mdp.occupancy_of(random_policy(mdp, seed)), prior_size * random_cost(mdp, seed + 1), alpha)


def sampled(problem, n_samples, seed):
    """The same problem with the expert estimated from a few draws: no policy has exactly this occupancy."""
    draws = np.random.default_rng(seed).multinomial(n_samples, problem.expert)
    return RLfDProblem(problem.mdp, draws / n_samples, problem.prior, problem.alpha)


@given(mdps(), seeds, alphas)
def test_the_quadratic_program_closes_the_gap_on_random_mdps(mdp, seed, alpha):
    problem = random_problem(mdp, seed, alpha)
    solution = solve_exact(problem, "qp")
    assert_solves(problem, solution, 1e-6 * max(1.0, solution.upper))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_default_closes_the_gap_on_the_papers_environments(stock_problem, alpha):
    for problem in (stock_problem(alpha), grid_problem(alpha=alpha)):
        solution = solve_exact(problem)
        assert_solves(problem, solution, 1e-6)
        assert solution.method == "exact: qp"


@pytest.mark.parametrize("name", ["rlfd_gym/Inventory-v0", "rlfd_gym/InventoryPaper-v0"])
def test_the_papers_single_instance_recovers_parameters_close_to_the_prior(name):
    env = gym.make(name).unwrapped
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    solution = solve_exact(RLfDProblem(env.mdp, expert, env.cost_for(4, 2, 14), alpha=0.1))
    recovered = np.linalg.lstsq(env.features, env.scale.from_box(solution.cost), rcond=None)[0]
    np.testing.assert_allclose(recovered, [4, 2, 14], atol=0.3)
    # Better than the expert for the true cost, but far from optimal.
    best = env.mdp.optimal(env.cost).expected_cost
    loss, expert_loss = env.cost @ solution.occupancy - best, env.cost @ expert - best
    assert 0.1 * expert_loss < loss < expert_loss


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
def test_projected_subgradients_approach_the_same_value_from_above(make, stock_problem):
    problem = {
        "inventory": lambda: stock_problem(0.1),
        "grid": lambda: grid_problem(6, 0.1),
        "random": lambda: random_problem(make_mdp(3, 6, 4, 0.9), 3, 0.1),
    }[make]()
    solution = solve_exact(problem)
    values = by_subgradients(problem, 300)
    assert values.min() >= solution.lower - 1e-9
    assert values.min() <= solution.upper + 0.02 * (values[0] - solution.upper)
    assert values[0] > solution.upper + 1e-3  # there was something to find


@given(mdps(), seeds, alphas, st.booleans())
def test_the_matrix_free_method_keeps_its_promise_and_agrees(mdp, seed, alpha, few_samples):
    problem = random_problem(mdp, seed, alpha)
    if few_samples:
        problem = sampled(problem, 20, seed)
    solution = solve_exact(problem, "matrix-free")
    assert_solves(problem, solution, max(1e-6, 0.01 * solution.lower) * (1 + 1e-6))
    exactly = solve_exact(problem, "qp")
    assert exactly.lower - 1e-9 <= solution.upper
    assert solution.lower <= exactly.upper + 1e-9
    # α‖c - c°‖² is at most the distance of each from the optimum.
    assert (
        alpha * np.sum((solution.cost - exactly.cost) ** 2) <= 2 * (solution.duality_gap + exactly.duality_gap) + 1e-9
    )


def six_digits(upper, lower):
    """A promise: a millionth of the value."""
    return max(1e-9, 1e-6 * lower)


@pytest.mark.parametrize("part", [matrix_free.newton, matrix_free.interior_point])
def test_either_part_alone_finds_the_solution_to_six_digits(part, stock_problem):
    for problem in (stock_problem(0.1), grid_problem(8, 0.01, discount=0.9)):
        exactly = solve_exact(problem, "qp")
        best = Incumbent(problem)
        best.offer(np.clip(problem.prior, -1, 1), np.zeros(problem.mdp.n_states), problem.expert)
        assert part(best, six_digits) > 0
        assert best.keeps(six_digits)
        assert best.upper == pytest.approx(exactly.upper, rel=2e-6, abs=1e-8)


@pytest.mark.parametrize("discount", [0.7, 0.95, 0.99])
@pytest.mark.parametrize("alpha", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("layout_seed", [None, 1])
def test_larger_grids_are_certified_to_one_per_cent(discount, alpha, layout_seed):
    problem = grid_problem(30, alpha, discount=discount, layout_seed=layout_seed)
    solution = solve_exact(problem, "matrix-free")
    assert_solves(problem, solution, 0.01 * solution.upper)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("part", [matrix_free.newton, matrix_free.interior_point])
def test_bounds_hold_also_when_the_method_is_stopped_early(part, steps, monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    exactly = solve_exact(problem, "qp")
    monkeypatch.setattr(matrix_free, "MAX_STEPS", steps)
    best = Incumbent(problem)
    best.offer(np.clip(problem.prior, -1, 1), np.zeros(problem.mdp.n_states), problem.expert)
    part(best, lambda upper, lower: 0.0)
    assert best.gap > 0
    assert best.lower <= exactly.upper + 1e-9
    assert best.upper >= exactly.lower - 1e-9


@given(mdps(), seeds)
def test_at_alpha_zero_the_closed_form_imitates_the_expert_at_the_nearest_constant_cost(mdp, seed):
    problem = random_problem(mdp, seed, 0.0)
    solution = solve_exact(problem, "matrix-free")
    assert_solves(problem, solution, 1e-12)
    np.testing.assert_allclose(solution.occupancy, problem.expert, atol=1e-12)
    constant = minimize(lambda k: np.sum((k - problem.prior) ** 2), 0.0, bounds=[(-1, 1)]).x[0]
    np.testing.assert_allclose(solution.cost, constant, atol=1e-5)
    assert solve_exact(RLfDProblem(mdp, problem.expert), "matrix-free").cost.tolist() == [0.0] * mdp.n_pairs


def test_at_alpha_zero_the_linear_program_finds_the_expert_too(stock_problem):
    problem = stock_problem(0.0)
    solution = solve_exact(problem)
    assert solution.method == "exact: qp"
    assert_solves(problem, solution, 1e-6)
    np.testing.assert_allclose(solution.occupancy, problem.expert, atol=1e-12)
    assert np.ptp(solution.cost) > 0.1  # not the constant of the closed form
    # Every action that the expert does not take is told apart from the one that is.
    slack = solution.cost - problem.mdp.flow_transpose(solution.value)
    assert slack[problem.expert == 0].min() > 1e-3 > np.abs(slack[problem.expert > 0]).max()


def test_at_alpha_zero_a_problem_that_is_not_quick_takes_the_closed_form(stock_problem, monkeypatch):
    monkeypatch.setattr(exact, "QP_PAIRS", 10)
    solution = solve_exact(stock_problem(0.0))
    assert solution.method == "exact: closed form"
    assert solution.duality_gap < 1e-12


def test_a_large_alpha_gives_the_priors_optimal_policy(stock_problem):
    problem = stock_problem(1e4)
    plan = problem.mdp.optimal(np.clip(problem.prior, -1, 1))
    solution = solve_exact(problem)
    np.testing.assert_allclose(solution.cost, problem.prior, atol=1e-3)
    np.testing.assert_allclose(solution.occupancy, plan.occupancy, atol=1e-3)
    assert np.abs(problem.expert - plan.occupancy).sum() > 0.1  # which is not what the expert does


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("n_samples", [10, 500])
def test_an_expert_estimated_from_samples_is_solved_by_both_methods(alpha, n_samples):
    problem = sampled(grid_problem(8, alpha, discount=0.9), n_samples, seed=3)
    assert np.abs(problem.mdp.flow(problem.expert) - problem.mdp.initial).sum() > 0.1
    exactly = solve_exact(problem, "qp")
    assert_solves(problem, exactly, 1e-6 * max(1.0, exactly.upper))
    rough = solve_exact(problem, "matrix-free")
    assert_solves(problem, rough, max(1e-6, 0.01 * rough.lower) * (1 + 1e-6))
    assert exactly.lower - 1e-9 <= rough.upper <= exactly.upper * 1.011 + 1e-6


def test_the_box_on_the_value_can_bind_for_a_sampled_expert():
    mdp = make_mdp(272, 3, 2, 0.9)
    exactly_known = RLfDProblem(mdp, mdp.occupancy_of(random_policy(mdp, 272)), 1.5 * random_cost(mdp, 273), 0.1)
    problem = sampled(exactly_known, 4, 272)
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


@given(mdps(), seeds)
def test_conjugate_gradients_solve_the_normal_equations(mdp, seed):
    from rlfd_gym.solvers import _newton

    rng = np.random.default_rng(seed)
    p, flow = mdp.transitions, mdp.flow_matrix().toarray()
    weights, ridge, rhs = rng.random(mdp.n_pairs), rng.random(mdp.n_states), rng.normal(size=mdp.n_states)
    matrix = (p.data, p.indices, p.indptr, mdp.state_starts, mdp.discount, weights)
    normal = flow @ np.diag(weights) @ flow.T
    np.testing.assert_allclose(_newton.normal_diagonal(*matrix), np.diag(normal), rtol=1e-9)
    for share in (0.0, 1 / ridge.sum()):
        x = rng.normal(size=mdp.n_states)
        _newton.conjugate_gradients(*matrix, ridge, share, rhs, x, 1e-10, 1000)
        system = normal + np.diag(ridge) - share * np.outer(ridge, ridge)
        np.testing.assert_allclose(system @ x, rhs, atol=1e-5)


def test_auto_takes_the_method_that_the_structure_asks_for(monkeypatch):
    problem = grid_problem(12, 0.1)
    assert solve_exact(problem).method == "exact: qp"
    monkeypatch.setattr(exact, "QUICK_WORK", 1.0)
    assert solve_exact(problem).method == "exact: matrix-free"
    monkeypatch.undo()
    monkeypatch.setattr(exact, "QP_PAIRS", 100)
    assert solve_exact(problem).method == "exact: matrix-free"


def test_auto_goes_on_with_the_other_method_where_the_first_stalls(monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    monkeypatch.setattr(exact, "QUICK_WORK", 1.0)
    monkeypatch.setattr(matrix_free, "PATIENCE", 1)  # hardly any patience: the quick part gives up
    monkeypatch.setattr(matrix_free, "MAX_STEPS", 1)
    assert solve_exact(problem).method == "exact: qp"
    monkeypatch.undo()
    monkeypatch.setattr(qp, "io_al", lambda p, spread: (p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    solution = solve_exact(problem)  # the program is solved by somebody useless
    assert_solves(problem, solution, 1e-6)


@pytest.mark.parametrize("method", ["qp", "matrix-free", "auto"])
def test_a_promise_that_is_not_kept_is_a_warning_with_the_gap(method, monkeypatch):
    problem = grid_problem(12, 0.01, discount=0.95)
    monkeypatch.setattr(qp, "io_al", lambda p, spread: (0 * p.prior, np.zeros(p.mdp.n_states), p.expert, 1))
    monkeypatch.setattr(matrix_free, "MAX_STEPS", 1)
    with pytest.warns(RuntimeWarning, match="duality gap is .* as promised") as caught:
        solution = solve_exact(problem, method)
    assert f"{solution.duality_gap:.2g}" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert solution.lower < solution.upper


def test_the_projection_is_the_limit_of_small_alphas_on_the_inventory(stock_problem):
    problem = stock_problem(0.02)
    projection = project_prior(problem.mdp, problem.expert, problem.prior)
    solution = solve_exact(problem)
    np.testing.assert_allclose(projection.cost, solution.cost, atol=1e-3)
    assert solution.upper / problem.alpha == pytest.approx(projection.upper, abs=1e-4)
    assert problem.alpha * np.sum((projection.cost - problem.prior) ** 2) >= solution.lower - 1e-9
    # A larger alpha is another problem: there the penalty is not exact.
    assert solve_exact(stock_problem(1.0)).upper < 0.9 * projection.upper


@pytest.mark.filterwarnings("ignore:the projected cost tells")
@given(mdps(max_discount=0.95), seeds, st.booleans())
def test_the_projection_always_exists_explains_the_expert_and_is_certified(mdp, seed, few_samples):
    expert, prior = mdp.occupancy_of(random_policy(mdp, seed)), 1.5 * random_cost(mdp, seed + 1)
    if few_samples:
        expert = np.random.default_rng(seed).multinomial(10, expert / expert.sum()) / 10
    solution = project_prior(mdp, expert, prior)
    assert solution.duality_gap <= 1e-6 * max(1.0, solution.upper)
    assert np.abs(solution.cost).max() <= 1
    assert np.abs(solution.value).max() <= 1
    slack = solution.cost - mdp.flow_transpose(solution.value)
    assert slack.min() >= -1e-9
    assert expert @ slack <= 1e-9
    assert solution.upper <= np.sum((prior - np.clip(prior.mean(), -1, 1)) ** 2) + 1e-6  # not worse than a constant
    if not few_samples:
        regret = (
            mdp.initial @ mdp.value_of(mdp.policy_of(expert), solution.cost) - mdp.optimal(solution.cost).expected_cost
        )
        assert regret <= 1e-8


def test_an_expert_who_is_optimal_for_the_prior_leaves_it_as_it_is(stock):
    solution = project_prior(stock.mdp, stock.mdp.optimal(stock.cost).occupancy, stock.cost)
    np.testing.assert_allclose(solution.cost, stock.cost, atol=1e-4)
    assert solution.stats["surviving_variation"] == pytest.approx(1.0, abs=1e-4)
    assert solution.stats["surviving_spread"] == pytest.approx(1.0, abs=1e-4)


def test_the_surviving_variation_obeys_pythagoras(stock_problem):
    problem = stock_problem(0.0)
    prior = 0.3 * problem.prior  # far from the box
    solution = project_prior(problem.mdp, problem.expert, prior)
    share = solution.stats["surviving_variation"]
    assert 0.5 < share < 0.999
    assert share == pytest.approx(1 - solution.upper / np.sum((prior - prior.mean()) ** 2), abs=1e-5)
    bigger = project_prior(problem.mdp, problem.expert, 2 * prior + 0.1)
    assert bigger.stats["surviving_variation"] == pytest.approx(share, abs=1e-5)


def test_a_projection_that_tells_no_policies_apart_is_a_warning(gridworld):
    mdp = gridworld.mdp
    aimless = mdp.occupancy_of(mdp.uniform_policy())
    with pytest.warns(RuntimeWarning, match="tells almost no policies apart") as caught:
        solution = project_prior(mdp, aimless, gridworld.cost)
    assert caught[0].filename == __file__
    assert solution.stats["surviving_spread"] < 1e-6
    # It varies all the same: that is why variation alone does not say what was learned.
    assert solution.stats["surviving_variation"] > 0.1


def test_a_constant_prior_has_no_variation_to_lose(gridworld):
    with pytest.warns(RuntimeWarning, match="tells almost no policies apart"):
        solution = project_prior(gridworld.mdp, noisy(gridworld.mdp, gridworld.cost), np.full(400, 0.25))
    assert np.isnan(solution.stats["surviving_variation"])
    np.testing.assert_allclose(solution.cost, 0.25, atol=1e-6)


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


def test_bad_arguments_are_named(stock_problem, stock):
    problem = stock_problem(0.1)
    with pytest.raises(ValueError, match="method must be one of auto, qp, matrix-free; got 'simplex'"):
        solve_exact(problem, "simplex")
    with pytest.raises(TypeError, match="problem must be an RLfDProblem, got TabularMDP"):
        solve_exact(stock.mdp)
    with pytest.raises(ValueError, match=r"prior has shape \(3,\), expected \(136,\)"):
        project_prior(stock.mdp, problem.expert, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="expert must sum to 1"):
        project_prior(stock.mdp, 2 * problem.expert, problem.prior)
    with pytest.raises(TypeError, match="prior must be an array"):
        project_prior(stock.mdp, problem.expert, "cheap")
    with pytest.raises(TypeError, match="mdp must be a TabularMDP, got InventoryEnv"):
        project_prior(stock, problem.expert, problem.prior)


def test_a_sampled_expert_and_a_large_alpha_are_solved():
    mdp = make_mdp(186700092, 12, 4, 0.9)
    expert = np.zeros(mdp.n_pairs)
    expert[[20, 34]] = 1 / 3, 2 / 3
    problem = RLfDProblem(mdp, expert, random_cost(mdp, 186700093), 1e4)
    for method in ("auto", "matrix-free"):
        solution = solve_exact(problem, method)
        assert solution.duality_gap <= max(1e-6, 0.01 * solution.upper)


@pytest.mark.parametrize("factor", [1e-6, 1e-3, 200.0])
def test_the_projection_does_not_depend_on_the_scale_of_the_prior(factor):
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
    expert = env.mdp.optimal(env.cost).occupancy
    solution = project_prior(env.mdp, expert, factor * env.cost)  # the expert is optimal for it: no warning
    # The promised gap is 1e-6 in the squared distance, at the scale of the prior: 1e-3 in the cost.
    np.testing.assert_allclose(solution.cost, np.clip(factor * env.cost, -1, 1), atol=1e-3 * min(1.0, factor))
    assert solution.stats["surviving_variation"] == pytest.approx(1.0, abs=1e-4)
    assert solution.stats["surviving_spread"] == pytest.approx(1.0, abs=1e-4)


@given(mdps(max_states=4, max_actions=3, max_discount=0.9), seeds)
@settings(max_examples=20)
def test_the_projections_bounds_hold_the_value_of_another_solver(mdp, seed):
    from scipy.optimize import LinearConstraint

    expert = mdp.occupancy_of(random_policy(mdp, seed))
    prior = random_cost(mdp, seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a random expert may leave nothing of the prior
        solution = project_prior(mdp, expert, prior)
    n, taken = mdp.n_pairs, expert > 1e-12
    slack = np.hstack([np.eye(n), -mdp.flow_matrix().toarray().T])
    result = minimize(
        lambda x: np.sum((x[:n] - prior) ** 2),
        np.zeros(n + mdp.n_states),
        jac=lambda x: np.concatenate([2 * (x[:n] - prior), np.zeros(mdp.n_states)]),
        bounds=[(-1, 1)] * (n + mdp.n_states),
        constraints=[
            LinearConstraint(slack[rows], 0.0, high) for rows, high in ((taken, 0.0), (~taken, np.inf)) if rows.any()
        ],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solution.lower - 1e-6 <= result.fun <= solution.upper + 1e-4
    assert solution.upper - solution.lower <= 1e-6 * max(1.0, solution.upper)
    assert solution.lower <= solution.upper
    rng = np.random.default_rng(seed)
    for size in (0.01, 0.1, 1.0):  # the bound holds for every such ν, not only for the solver's
        nu = size * np.where(taken, rng.normal(size=n), rng.random(n))
        assert projection.projection_bound(mdp, prior, nu) <= solution.upper + 1e-9
