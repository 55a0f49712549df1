"""Algorithm 1 on a hull of costs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from checks import assert_same
from reference import hull_optimum
from strategies import hull_of, hull_point, make_problem

from rlfd_gym import RLfDProblem, TabularMDP, solve_smd
from rlfd_gym.baselines import scale_basis, solve_smd_hull
from rlfd_gym.problem import HullProblem, examples
from rlfd_gym.solvers.smd import runs


@pytest.fixture(scope="module")
def inventory():
    """The inventory with the misspecified expert and the prior of the paper."""
    return examples.inventory(alpha=0.1), scale_basis(examples.inventory_env().features)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_the_answer_on_the_inventorys_hull_is_feasible_certified_and_brackets_the_optimum(inventory, alpha):
    problem, basis = inventory
    problem = problem.with_alpha(alpha)
    solution = solve_smd_hull(problem, basis=basis, n_iterations=1_000_000)
    assert solution.mixture.min() >= 0
    assert solution.mixture.sum() == pytest.approx(1)
    np.testing.assert_array_equal(solution.cost, basis @ solution.mixture)
    np.testing.assert_allclose(solution.policy, problem.mdp.policy_of(solution.occupancy), atol=1e-14)
    hull = HullProblem(problem, basis)
    point = (solution.mixture, solution.value, solution.occupancy)
    assert (solution.upper, solution.lower) == hull.bounds(*point)
    assert solution.lower - 1e-12 <= hull_optimum(hull)[0] <= solution.upper + 1e-12
    assert solution.duality_gap < 0.1  # the theorem promises 2.2
    assert solution.method == "smd-hull"


def test_the_expected_gap_on_a_hull_is_what_the_theorem_promises():
    hull = hull_of(make_problem(0, n_states=2, n_actions=2, discount=0.5), 3)
    gaps = [solve_smd(hull, epsilon=0.3, seed=seed, repair=False).duality_gap for seed in range(10)]
    assert np.mean(gaps) <= 0.3
    solution = solve_smd(hull, epsilon=0.3)
    assert solution.n_iterations == hull.iterations(0.3)
    assert solution.stats["step_sizes"] == pytest.approx(hull.step_sizes(0.3))
    assert hull.accuracy(solution.n_iterations) == pytest.approx(0.3, rel=1e-3)
    # each step size is the best for its share of the bound, and the shares add up to ε
    regrets = zip(hull.theorem._regrets("corrected"), hull.step_sizes(0.3), strict=True)
    shares = [a / (eta * solution.n_iterations) + b * eta for (a, b), eta in regrets]
    assert sum(shares) == pytest.approx(0.3, rel=1e-3)


def test_on_a_hull_the_seed_decides_the_answer_and_the_number_of_jobs_does_not(inventory, monkeypatch):
    problem, basis = inventory
    monkeypatch.setattr(runs, "BATCH_STEPS", 4000)  # several batches, though the runs are short
    arguments = {"basis": basis, "n_iterations": 2000, "n_runs": 5, "record_every": 500}
    one = solve_smd_hull(problem, **arguments)
    assert_same(one, solve_smd_hull(problem, **arguments, n_jobs=2))
    assert (one.mixture != solve_smd_hull(problem, **arguments, seed=1).mixture).any()
    assert one.history.iteration.tolist() == [500, 1000, 1500, 2000]
    assert (one.history.change_mixture > 0).all()
    assert (one.history.duality_gap_std > 0).all()


def test_a_continued_solve_on_a_hull_equals_one_that_never_stopped(inventory):
    problem, basis = inventory
    arguments = {"basis": basis, "step_size": (3.0, 1e-2, 1e-3), "record_every": 500}
    whole = solve_smd_hull(problem, n_iterations=4000, **arguments)
    part = solve_smd_hull(problem, n_iterations=1700, **arguments)
    assert part.state.last.x.min() == 0  # underflown, but its logarithm is not lost
    continued = solve_smd_hull(problem, n_iterations=2300, **arguments, initial=part)
    assert_same(continued, whole)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd_hull(problem, basis=0.5 * basis, n_iterations=10, initial=part)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(problem, n_iterations=10, initial=part)


def test_a_hull_of_a_single_column_leaves_nothing_to_choose():
    problem = make_problem(7, 3, 2)
    solution = solve_smd_hull(problem, basis=problem.prior[:, None], n_iterations=50_000, variant="paper")
    assert solution.mixture.tolist() == [1.0]
    np.testing.assert_array_equal(solution.cost, problem.prior)
    assert solution.stats["step_sizes"][0] == 0


def test_a_pickled_hull_problem_is_locked_and_gives_the_same_answer(inventory):
    hull = pickle.loads(pickle.dumps(HullProblem(*inventory)))
    assert not hull.belief.basis.flags.writeable
    assert_same(solve_smd(hull, n_iterations=500), solve_smd_hull(*inventory, n_iterations=500))


def test_the_order_of_a_basis_in_memory_does_not_change_the_answer(inventory):
    problem, basis = inventory
    assert_same(*(solve_smd_hull(problem, b, n_iterations=500) for b in (basis, np.asfortranarray(basis))))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"basis": np.ones(6)}, ValueError, r"basis has shape \(6,\), expected \(n_pairs, K\), both at least 1"),
        ({"basis": np.ones((6, 0))}, ValueError, "both at least 1"),
        ({"basis": np.ones((5, 2))}, ValueError, r"basis has shape \(5, 2\), expected \(6, K\)"),
        ({"basis": "costs"}, TypeError, "basis must be an array"),
        ({"basis": np.full((6, 2), np.nan)}, ValueError, "basis must be finite; entry .0, 0. is nan"),
        ({"basis": np.diag([1, 1, -7.0, 1, 1, 2])}, ValueError, r"but column 2 reaches 7; .*scale_basis\(basis\)"),
        ({"problem": "inventory"}, TypeError, "problem must be an RLfDProblem, got str"),
        ({"step_size": (1e-2, 1e-2)}, ValueError, r"a number or three \(for mixture, for value, for occupancy\)"),
        ({"n_iterations": 0}, ValueError, "n_iterations must be at least 1"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be a finite number"),
    ],
)
def test_bad_arguments_of_solve_smd_hull_are_refused_by_name(change, error, message):
    mdp = TabularMDP(np.ones((6, 1)), [0] * 6, range(6), None, 0.7)
    arguments = {"problem": RLfDProblem(mdp, np.full(6, 1 / 6)), "basis": np.eye(6)}
    with pytest.raises(error, match=message):
        solve_smd_hull(**(arguments | change))


def test_a_bound_of_the_paper_and_mixtures_outside_the_simplex_are_refused_on_a_hull():
    hull = hull_of(make_problem(1))
    w, u, mu = hull_point(hull)
    with pytest.raises(ValueError, match="bound must be 'corrected' on a hull"):
        solve_smd(hull, bound="paper")
    with pytest.raises(ValueError, match="mixture must sum to 1"):
        hull.bounds(2 * w, u, mu)
    with pytest.raises(ValueError, match="mixture must not be negative"):
        hull.bounds([2.0, -1.0, 0.0], u, mu)
    with pytest.raises(ValueError, match=r"mixture has shape \(2,\), expected \(3,\): one entry per column"):
        hull.bounds(w[:2], u, mu)


def test_a_hull_has_the_quadratic_penalty_only():
    problem = make_problem(1, regulariser="l1")
    with pytest.raises(ValueError, match="problem must have regulariser=\"l2\" on a hull, got 'l1'"):
        HullProblem(problem, np.eye(problem.n_pairs)[:, :2])


def test_what_follows_the_basis_is_given_by_place_or_by_name():
    problem, basis = examples.inventory(), scale_basis(examples.inventory_env().features)
    by_place = solve_smd_hull(problem, basis, 500, (1e-3, 1e-2, 1e-4), None, 2)
    by_name = solve_smd_hull(problem, basis, n_iterations=500, step_size=(1e-3, 1e-2, 1e-4), n_runs=2)
    np.testing.assert_array_equal(by_place.mixture, by_name.mixture)
