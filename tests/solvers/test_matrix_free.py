"""The matrix-free method: against the quadratic program, and its parts on their own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from checks import assert_solves
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from strategies import believed_problem, grid_problem, make_mdp, mdps, random_problem, seeds, with_sampled_expert
from structures import KINDS, learning_problem

from rlfd_gym import RLfDProblem, TabularMDP, noisy_expert, solve_exact
from rlfd_gym.beliefs import Intervals, NearPrior
from rlfd_gym.problem import examples
from rlfd_gym.solvers import matrix_free
from rlfd_gym.solvers.incumbent import Incumbent, to_a_percent

ALPHAS = (0.0, 1e-3, 0.1, 10.0)


@given(mdps(), seeds, st.sampled_from(ALPHAS), st.booleans())
def test_the_matrix_free_method_keeps_its_promise_and_agrees(mdp, seed, alpha, few_samples):
    problem = random_problem(mdp, seed, alpha)
    if few_samples:
        problem = with_sampled_expert(problem, 20, seed)
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
def test_either_part_alone_finds_the_solution_to_six_digits(part):
    for problem in (examples.inventory(0.1), grid_problem(8, 0.01, discount=0.9)):
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


def test_conjugate_gradients_end_where_squares_are_too_small_for_a_float():
    from rlfd_gym.solvers import _newton

    mdp = make_mdp(0, 4, 2, 0.9)
    p = mdp.transitions
    matrix = (p.data, p.indices, p.indptr, mdp.state_starts, mdp.discount, np.ones(mdp.n_pairs), np.ones(4), 0.0)
    x = np.zeros(4)
    run = _newton.begin(*matrix, np.full(4, 1e-170), x)
    assert _newton.advance(*matrix, x, 0.0, 10, *run) <= 2
    assert np.isfinite(x).all()


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
        run, portions = _newton.begin(*matrix, ridge, share, rhs, x), [3]
        while portions[-1] == 3 and sum(portions) < 1000:
            portions.append(_newton.advance(*matrix, ridge, share, x, 1e-10, 3, *run))
        system = normal + np.diag(ridge) - share * np.outer(ridge, ridge)
        np.testing.assert_allclose(system @ x, rhs, atol=1e-5)


def within(problem: RLfDProblem, width: float) -> RLfDProblem:
    """The problem with intervals of that width around a cost that is right in half of the states."""
    return problem.with_belief(Intervals(problem.prior - width, problem.prior + width))


def random_graph(n_states: int, discount: float) -> RLfDProblem:
    """Four actions in each state, five random next states each, and a noisy expert for a random cost."""
    rng, n = np.random.default_rng(0), 4 * n_states
    entries = (
        rng.dirichlet(np.ones(5), size=n).ravel(),
        (np.repeat(np.arange(n), 5), rng.integers(n_states, size=5 * n)),
    )
    states, actions = np.repeat(np.arange(n_states), 4), np.tile(np.arange(4), n_states)
    mdp = TabularMDP(sp.csr_array(entries, shape=(n, n_states)), states, actions, None, discount)
    cost = rng.uniform(-1, 1, n)
    return RLfDProblem(mdp, noisy_expert(mdp, cost, 0.3), cost, 0.0)


@pytest.mark.parametrize("block", range(2))
def test_with_intervals_it_keeps_its_promise_and_agrees_with_the_linear_program(block):
    for seed in range(100 * block, 100 * block + 15):
        problem = believed_problem("intervals", seed)
        solution, exactly = solve_exact(problem, "matrix-free"), solve_exact(problem, "lp")
        assert_solves(problem, solution, max(1e-6, 0.01 * solution.lower) * (1 + 1e-6))
        assert exactly.lower - 1e-9 <= solution.upper
        assert solution.lower <= exactly.upper + 1e-9


@pytest.mark.parametrize("width", [0.01, 0.3])
def test_intervals_on_thousands_of_pairs_are_certified_and_agree_with_the_linear_program(width):
    for problem in (grid_problem(25, discount=0.95), random_graph(300, 0.9)):
        problem = within(problem, width)
        solution, exactly = solve_exact(problem, "matrix-free"), solve_exact(problem, "lp")
        assert_solves(problem, solution, max(1e-6, 0.01 * solution.lower) * (1 + 1e-6))
        assert exactly.lower - 1e-9 <= solution.upper <= max(1.011 * exactly.upper, exactly.upper + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("width", [0.01, 0.1, 0.3])
@pytest.mark.parametrize("discount", [0.7, 0.95])
def test_intervals_on_forty_thousand_pairs_are_certified(discount, width):
    for problem in (grid_problem(100, discount=discount, layout_seed=1), random_graph(10_000, discount)):
        problem = within(problem, width)
        solution = solve_exact(problem, "matrix-free")
        assert_solves(problem, solution, max(1e-6, 0.01 * solution.lower) * (1 + 1e-6))


def tiny_structures(alpha: float, n_demonstrations: int | None):
    """Every kind of MDP that the benchmark has, with some hundred pairs and a discount that mixes slowly."""
    return [learning_problem(kind, 240, 0.99, alpha, n_demonstrations) for kind in KINDS]


@pytest.mark.parametrize("n_demonstrations", [None, 3])
@pytest.mark.parametrize("alpha", [1e-4, 0.005, 0.1, 10.0])
def test_on_every_structure_it_keeps_its_promise_and_agrees_with_the_program(alpha, n_demonstrations):
    for problem in tiny_structures(alpha, n_demonstrations):
        exactly, solution = solve_exact(problem, "qp"), solve_exact(problem, "matrix-free")
        assert_solves(problem, solution, to_a_percent(problem)(solution.upper, solution.lower) * (1 + 1e-6))
        assert exactly.lower - 1e-9 <= solution.upper
        assert solution.lower <= exactly.upper + 1e-9


@pytest.mark.parametrize("n_demonstrations", [None, 3])
def test_the_interior_point_method_alone_solves_every_structure_to_six_digits(n_demonstrations):
    for problem in tiny_structures(0.01, n_demonstrations):
        exactly, best = solve_exact(problem, "qp"), Incumbent(problem)
        best.offer(np.clip(problem.prior, -1, 1), np.zeros(problem.n_states), problem.expert)
        matrix_free.interior_point(best, six_digits)
        assert best.keeps(six_digits)
        assert best.upper == pytest.approx(exactly.upper, rel=2e-6, abs=1e-8)


@pytest.mark.parametrize("kind", ["grid", "queues", "chain"])
@pytest.mark.parametrize("n_demonstrations", [None, 20])
def test_chains_that_mix_slowly_are_certified(kind, n_demonstrations):
    for alpha in (1e-3, 1.0):
        problem = learning_problem(kind, 3_000, 0.999, alpha, n_demonstrations)
        solution = solve_exact(problem, "matrix-free")  # a promise that is not kept is a warning, and so an error
        assert_solves(problem, solution, to_a_percent(problem)(solution.upper, solution.lower) * (1 + 1e-6))


def test_a_prior_outside_the_box_and_a_large_alpha_are_solved_to_a_percent_of_what_can_change():
    mdp = make_mdp(0, 300, 4, 0.9)
    prior = np.random.default_rng(0).uniform(-2, 2, mdp.n_pairs)
    belief = NearPrior(prior, 100.0, outside_box=True)
    problem = RLfDProblem(mdp, noisy_expert(mdp, np.clip(prior, -1, 1), 0.5), belief=belief)
    solution = solve_exact(problem, "matrix-free")
    constant = problem.penalty(np.clip(prior, -1, 1))
    assert constant > 1_000
    assert solution.duality_gap <= 0.0101 * (solution.lower - constant)
