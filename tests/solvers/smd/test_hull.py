from __future__ import annotations

import itertools
import pickle

import gymnasium as gym
import numpy as np
import piqp
import pytest
from checks import dense_flow
from hypothesis import given, settings
from reference import replay
from scipy.optimize import linprog
from strategies import make_problem, mdps, problems, random_point, random_policy, seeds

from rlfd_gym import RLfDProblem, TabularMDP, solve_smd
from rlfd_gym.baselines import HullProblem, scale_basis, solve_smd_hull
from rlfd_gym.beliefs.simplex import best_mixture, excess_of
from rlfd_gym.solvers.smd import kernels as _kernels
from rlfd_gym.solvers.smd import measure as _measure
from rlfd_gym.solvers.smd import solve as smd

DRAWS, VISITED = _kernels.DRAWS, _kernels.VISITED


def random_basis(n_pairs, size, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (n_pairs, size))


def hull_of(problem, size=3, seed=0):
    return HullProblem(problem, random_basis(problem.n_pairs, size, seed))


def hull_point(hull, seed=0):
    """A random feasible (w, u, μ)."""
    _, u, mu = random_point(hull.problem, seed)
    return _kernels.HullPoint(np.random.default_rng(seed).dirichlet(np.ones(hull.basis.shape[1])), u, mu)


def begin(hull, point):
    mdp = hull.mdp
    run = _kernels.start(mdp.pair_states, mdp.transitions.indptr, hull.prior, point, basis=hull.basis)
    return run, _kernels.tables_of(mdp, hull.expert)


def constants(hull, *etas):
    return tuple(_kernels.constants(hull.n_pairs, hull.discount, hull.alpha, *etas))


def quadratic_program(hessian, gradient, **constraints):
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-11
    solver.setup(hessian, gradient, **constraints)
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result


def optimum(hull):
    """min over (w, u, t) of α‖Cw - ĉ‖² + <μ_E, q> - t with q = Cw - Tγᵀu ≥ t, by PIQP: (value, (w, u, μ))."""
    basis, flow = hull.basis, dense_flow(hull.mdp)
    (n, size), n_states = basis.shape, hull.n_states
    hessian = np.zeros((size + n_states + 1,) * 2)
    hessian[:size, :size] = 2 * hull.alpha * basis.T @ basis
    gradient = np.r_[basis.T @ (hull.expert - 2 * hull.alpha * hull.prior), -flow @ hull.expert, -1.0]
    result = quadratic_program(
        hessian,
        gradient,
        A=np.r_[np.ones(size), np.zeros(n_states + 1)][None],
        b=np.ones(1),
        G=np.column_stack([basis, -flow.T, -np.ones(n)]),
        h_l=np.zeros(n),
        x_l=np.r_[np.zeros(size), np.full(n_states, -1.0), -1e3 / (1 - hull.discount)],
        x_u=np.r_[np.ones(size), np.ones(n_states), 1e3 / (1 - hull.discount)],
    )
    x, mu = result.x, np.maximum(result.z_l[:n], 0)
    value = 0.5 * x @ hessian @ x + gradient @ x + hull.alpha * np.sum(hull.prior**2)
    w, u = np.maximum(x[:size], 0), np.clip(x[size:-1], -1, 1)
    return value, (w / w.sum(), u, mu / mu.sum())


CASES = {
    "no prior": (make_problem(2, 4, 3, alpha=0.0), 3, (1e-2, 1e-2, 1e-2), 12_000),
    "prior": (make_problem(1, 4, 3), 5, (1e-3, 2e-2, 1e-2), 12_000),
    "one column": (make_problem(3, 4, 3), 1, (1e-2, 1e-2, 1e-2), 5_000),
    "weights that nearly vanish": (make_problem(4, 6, 3), 4, (0.2, 1e-2, 1e-2), 10_000),
}


@pytest.mark.parametrize("name", CASES)
def test_averages_and_last_iterate_agree_with_a_dense_replay(name):
    problem, size, etas, n_steps = CASES[name]
    hull = hull_of(problem, size)
    point = hull_point(hull)
    run, tables = begin(hull, point)
    draws = np.random.default_rng(1).random((n_steps, DRAWS))
    samples = np.empty((n_steps, DRAWS), np.int32)
    assert _kernels.advance(*run, *tables, constants(hull, *etas), draws, samples) == _kernels.OK
    mean, last, miss = replay(problem, etas[0], etas[2], point, samples, draws[:, VISITED], hull.basis, etas[1])
    for one, other in ((_kernels.average_of(run, n_steps), mean), (_kernels.iterate_of(run), last)):
        for mine, theirs in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9)
    assert miss < 1e-9


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_what_is_measured_along_the_way_is_the_gap_and_the_change_of_the_averages(alpha):
    hull = hull_of(make_problem(9, 6, 3, alpha=alpha), 4)
    step, p = constants(hull, 1e-2, 1e-2, 1e-2), hull.mdp.transitions
    scratch = np.empty(hull.n_pairs), np.empty(hull.n_states), np.empty(hull.n_states)
    gap_of = (p.data, p.indices, p.indptr, hull.expert, alpha, *scratch)
    draws = np.random.default_rng(1).random((2100, DRAWS))
    samples, records = np.empty((2100, DRAWS), np.int32), np.empty((3, _measure.COLUMNS))
    run, tables = begin(hull, hull_point(hull))
    assert _measure.advance_and_measure(*run, *tables, step, draws, samples, 700, 0, *gap_of, records) == _kernels.OK
    again, _ = begin(hull, hull_point(hull))
    for row in range(3):
        _kernels.advance(*again, *tables, step, draws[700 * row : 700 * row + 699], samples)
        before = _kernels.average_of(again, 700 * row + 699)
        _kernels.advance(*again, *tables, step, draws[700 * row + 699 : 700 * (row + 1)], samples)
        after = _kernels.average_of(again, 700 * (row + 1))
        assert records[row, 0] == pytest.approx(hull.duality_gap(*after), abs=1e-10)
        changes = [np.abs(new - old).sum() for new, old in zip(after, before, strict=True)]
        cost = np.abs(hull.basis @ (after.weights - before.weights)).sum()
        assert records[row, 1:] == pytest.approx([cost, changes[1], changes[2], changes[0]], abs=1e-11)


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_estimator_is_the_gradient_on_average_and_its_second_moment_is_bounded(alpha):
    # All samples (i, j, e) with their probabilities, each through the compiled step.
    hull = hull_of(make_problem(5, 3, 2, alpha=alpha), 3)
    point = hull_point(hull, 1)
    n, eta = hull.n_pairs, 1e-3
    mean, second = np.zeros(3), 0.0
    run, _ = begin(hull, point)
    for i, j, e in itertools.product(range(n), repeat=3):
        probability = point.occupancy[j] * hull.expert[e] / n
        fresh = run.hull._replace(log_weight=np.log(point.weights), weight=point.weights.copy())
        _kernels.update_cost(run.pairs, fresh, 0.0, eta, 2 * alpha * n * eta, i, j, e)
        g = -(fresh.log_weight - np.log(point.weights)) / eta
        mean += probability * (g - g.mean())  # constants do not matter
        second += probability * (np.ptp(g) / 2) ** 2
    exact = hull.basis.T @ hull.problem.gradients(hull.basis @ point.weights, point.value, point.occupancy)[0]
    np.testing.assert_allclose(mean, exact - exact.mean(), atol=1e-9)
    assert 0 < second <= hull.second_moments()[0]


@given(problems(), seeds)
@settings(max_examples=30)
def test_the_second_moments_of_the_value_and_occupancy_estimators_are_bounded(problem, seed):
    hull = hull_of(problem, 3, seed)
    w, u, mu = hull_point(hull, seed)
    for vector in (u, np.sign(u)):
        _, v_u, v_mu = hull.second_moments()
        P, states, gamma = hull.mdp.transitions.toarray(), hull.mdp.pair_states, hull.discount
        slack = (hull.basis @ w)[:, None] - (vector[states][:, None] - gamma * vector[None]) / (1 - gamma)
        assert (hull.n_pairs * P * slack**2).sum(axis=1).max() <= v_mu * (1 + 1e-12)
        x = np.eye(hull.n_states)[states][:, None] - gamma * np.eye(hull.n_states)[None]  # (pair, next state, state)
        first, square = np.einsum("ks,kst->kt", P, x), np.einsum("ks,kst->k", P, x**2)
        second = square @ (mu + hull.expert) - 2 * (mu @ first) @ (hull.expert @ first)
        assert second / (1 - gamma) ** 2 <= v_u * (1 + 1e-12)


@given(problems(), seeds)
@settings(max_examples=40)
def test_the_bounds_bracket_the_optimum_of_a_quadratic_program_and_meet_there(problem, seed):
    hull = hull_of(problem, int(seed % 4) + 1, seed)
    value, best = optimum(hull)
    upper, lower = hull.bounds(*hull_point(hull, seed))
    scale = 1 + abs(value)
    assert lower - 1e-7 * scale <= value <= upper + 1e-7 * scale
    assert hull.duality_gap(*hull_point(hull, seed)) >= 0
    upper, lower = hull.bounds(*best)
    assert (upper, lower) == pytest.approx((value, value), abs=1e-6 * scale / (1 - hull.discount))


@given(mdps(max_discount=0.95), seeds)
@settings(max_examples=30)
def test_without_a_prior_the_optimum_is_minus_that_of_lpal(mdp, seed):
    # LPAL: min B over occupancies μ with c_k·(μ - μ_E) ≤ B for every column.
    hull = hull_of(RLfDProblem(mdp, mdp.occupancy_of(random_policy(mdp, seed))), 3, seed)
    lpal = linprog(
        np.r_[np.zeros(mdp.n_pairs), 1.0],
        A_ub=np.column_stack([hull.basis.T, -np.ones(3)]),
        b_ub=hull.basis.T @ hull.expert,
        A_eq=np.column_stack([dense_flow(mdp), np.zeros(mdp.n_states)]),
        b_eq=mdp.initial,
        bounds=[(0, None)] * mdp.n_pairs + [(None, None)],
    )
    upper, lower = hull.bounds(*hull_point(hull, seed))
    assert lower - 1e-7 <= -lpal.fun <= upper + 1e-7
    assert optimum(hull)[0] == pytest.approx(-lpal.fun, abs=1e-6)
    assert -lpal.fun >= -1e-7  # who imitates the expert has margin 0


@given(seeds)
@settings(max_examples=60)
def test_the_best_weights_are_those_of_a_quadratic_program(seed):
    rng = np.random.default_rng(seed)
    size, alpha = int(rng.integers(1, 25)), float(rng.choice([0.0, 1e-3, 1.0]))
    basis = rng.uniform(-1, 1, (int(rng.integers(1, 40)), size))
    basis[:, size // 2] = basis[:, 0]  # the same column twice
    gram, linear = basis.T @ basis, rng.normal(size=size)
    result = quadratic_program(
        2 * alpha * gram, linear, A=np.ones((1, size)), b=np.ones(1), x_l=np.zeros(size), x_u=np.ones(size)
    )
    best = best_mixture(gram, linear, alpha)
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1)
    value, expected = (alpha * w @ gram @ w + linear @ w for w in (best, result.x))
    assert value == pytest.approx(expected, abs=1e-8)
    assert 0 <= excess_of(gram, linear, alpha, best) < 1e-11
    other = rng.dirichlet(np.ones(size))
    excess = alpha * other @ gram @ other + linear @ other - expected
    assert excess_of(gram, linear, alpha, other) == pytest.approx(excess, abs=1e-8)


@pytest.fixture(scope="module")
def inventory():
    """The inventory with the misspecified expert and the prior of the paper."""
    env = gym.make("rlfd_gym/Inventory-v0").unwrapped
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    return RLfDProblem(env.mdp, expert, env.cost_for(4, 2, 14), alpha=0.1), scale_basis(env.features)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_the_answer_on_the_inventory_is_feasible_certified_and_brackets_the_optimum(inventory, alpha):
    problem, basis = inventory
    problem = RLfDProblem(problem.mdp, problem.expert, problem.prior, alpha)
    solution = solve_smd_hull(problem, basis=basis, n_iterations=1_000_000)
    assert solution.mixture.min() >= 0
    assert solution.mixture.sum() == pytest.approx(1)
    np.testing.assert_array_equal(solution.cost, basis @ solution.mixture)
    np.testing.assert_allclose(solution.policy, problem.mdp.policy_of(solution.occupancy), atol=1e-14)
    hull = HullProblem(problem, basis)
    point = (solution.mixture, solution.value, solution.occupancy)
    assert (solution.upper, solution.lower) == hull.bounds(*point)
    assert solution.lower <= optimum(hull)[0] <= solution.upper
    assert solution.duality_gap < 0.4  # 0.2 measured; the theorem promises 2.2
    assert solution.method == "smd-hull"


def test_the_expected_gap_is_what_the_theorem_promises():
    hull = hull_of(make_problem(0, n_states=2, n_actions=2, discount=0.5), 3)
    gaps = [solve_smd(hull, epsilon=0.3, seed=seed).duality_gap for seed in range(10)]
    assert np.mean(gaps) <= 0.3
    solution = solve_smd(hull, epsilon=0.3)
    assert solution.n_iterations == hull.iterations(0.3)
    assert solution.stats["step_sizes"] == pytest.approx(hull.step_sizes(0.3))
    assert hull.accuracy(solution.n_iterations) == pytest.approx(0.3, rel=1e-3)
    # each step size is the best for its share of the bound, and the shares add up to ε
    regrets = zip(hull._regrets(), hull.step_sizes(0.3), strict=True)
    shares = [a / (eta * solution.n_iterations) + b * eta for (a, b), eta in regrets]
    assert sum(shares) == pytest.approx(0.3, rel=1e-3)


def same(one, other):
    for name in ("mixture", "cost", "value", "occupancy", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.history.duality_gap, other.history.duality_gap)


def test_seed_and_jobs_decide_nothing_but_what_they_should(inventory, monkeypatch):
    problem, basis = inventory
    monkeypatch.setattr(smd, "BATCH_STEPS", 4000)  # several batches, though the runs are short
    arguments = {"basis": basis, "n_iterations": 2000, "n_runs": 5, "record_every": 500}
    one = solve_smd_hull(problem, **arguments)
    same(one, solve_smd_hull(problem, **arguments, n_jobs=2))
    assert (one.mixture != solve_smd_hull(problem, **arguments, seed=1).mixture).any()
    assert one.history.iteration.tolist() == [500, 1000, 1500, 2000]
    assert (one.history.change_mixture > 0).all()
    assert (one.history.duality_gap_std > 0).all()


def test_the_box_has_no_change_of_weights(inventory):
    solution = solve_smd(inventory[0], n_iterations=100, record_every=50)
    assert (len(solution.history.change_cost), len(solution.history.change_mixture)) == (2, 0)
    assert solution.mixture is None


def test_going_on_is_the_same_as_not_having_stopped(inventory):
    problem, basis = inventory
    arguments = {"basis": basis, "step_size": (3.0, 1e-2, 1e-3), "record_every": 500}
    whole = solve_smd_hull(problem, n_iterations=4000, **arguments)
    part = solve_smd_hull(problem, n_iterations=1700, **arguments)
    assert part.state.last.weights.min() == 0  # underflown, but its logarithm is not lost
    going_on = solve_smd_hull(problem, n_iterations=2300, **arguments, initial=part)
    np.testing.assert_allclose(going_on.mixture, whole.mixture, atol=1e-9)
    np.testing.assert_allclose(going_on.history.duality_gap, whole.history.duality_gap, atol=1e-9)
    np.testing.assert_allclose(going_on.history.change_mixture, whole.history.change_mixture, atol=1e-12)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd_hull(problem, basis=0.5 * basis, n_iterations=10, initial=part)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(problem, n_iterations=10, initial=part)


def test_a_single_column_leaves_nothing_to_choose():
    problem = make_problem(7, 3, 2)
    solution = solve_smd_hull(problem, basis=problem.prior[:, None], n_iterations=50_000)
    assert solution.mixture.tolist() == [1.0]
    np.testing.assert_array_equal(solution.cost, problem.prior)
    assert solution.stats["step_sizes"][0] == 0


def test_a_hull_survives_pickling(inventory):
    hull = pickle.loads(pickle.dumps(HullProblem(*inventory)))
    assert not hull.basis.flags.writeable
    same(solve_smd(hull, n_iterations=500), solve_smd_hull(*inventory, n_iterations=500))


def test_scaling_a_basis_keeps_its_costs_up_to_a_factor():
    rng = np.random.default_rng(0)
    basis, weights = rng.normal(size=(20, 3)) * [0.01, 1.0, 100.0], rng.dirichlet(np.ones(3))
    scaled, largest = scale_basis(basis), np.abs(basis).max(axis=0)
    np.testing.assert_allclose(np.abs(scaled).max(axis=0), 1.0)
    mixture = weights * largest / (weights @ largest)
    np.testing.assert_allclose(scaled @ mixture * (weights @ largest), basis @ weights, atol=1e-12)
    assert scale_basis(np.zeros((4, 1))).tolist() == [[0.0]] * 4


def test_the_order_of_a_basis_in_memory_makes_no_difference(inventory):
    problem, basis = inventory
    same(*(solve_smd_hull(problem, b, n_iterations=500) for b in (basis, np.asfortranarray(basis))))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"basis": np.ones(6)}, ValueError, r"basis has shape \(6,\), expected \(n_pairs, K\), both at least 1"),
        ({"basis": np.ones((6, 0))}, ValueError, "both at least 1"),
        ({"basis": np.ones((5, 2))}, ValueError, r"basis has shape \(5, 2\), expected \(6, K\)"),
        ({"basis": "costs"}, TypeError, "basis must be an array"),
        ({"basis": np.full((6, 2), np.nan)}, ValueError, "basis must be finite; row 0, column 0 is nan"),
        ({"basis": np.diag([1, 1, -7.0, 1, 1, 2])}, ValueError, r"but column 2 reaches 7; .*scale_basis\(basis\)"),
        ({"problem": "inventory"}, TypeError, "problem must be an RLfDProblem, got str"),
        ({"step_size": (1e-2, 1e-2)}, ValueError, r"a number or three \(for weights, for value, for occupancy\)"),
        ({"n_iterations": 0}, ValueError, "n_iterations must be at least 1"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be a finite number"),
    ],
)
def test_bad_arguments_are_refused_by_name(change, error, message):
    mdp = TabularMDP(np.ones((6, 1)), [0] * 6, range(6), None, 0.7)
    arguments = {"problem": RLfDProblem(mdp, np.full(6, 1 / 6)), "basis": np.eye(6)}
    with pytest.raises(error, match=message):
        solve_smd_hull(**(arguments | change))


def test_what_the_hull_has_no_meaning_for_is_refused():
    hull = hull_of(make_problem(1))
    w, u, mu = hull_point(hull)
    with pytest.raises(ValueError, match="bound must be 'corrected' on a hull"):
        solve_smd(hull, bound="paper")
    with pytest.raises(ValueError, match="weights must sum to 1"):
        hull.bounds(2 * w, u, mu)
    with pytest.raises(ValueError, match="weights must not be negative"):
        hull.bounds([2.0, -1.0, 0.0], u, mu)
    with pytest.raises(ValueError, match=r"weights has shape \(2,\), expected \(3,\): one entry per column"):
        hull.bounds(w[:2], u, mu)
