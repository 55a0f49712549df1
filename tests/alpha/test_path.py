"""The regularisation path: against theory, other solvers, and brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from joblib import parallel_config
from strategies import make_problem, problems

from rlfd_gym import alpha_path, project_prior
from rlfd_gym.problem import examples


@pytest.fixture(scope="module")
def path():
    """A path of a small random problem, whose expert is a true occupancy."""
    return alpha_path(make_problem(3), n_points=15)


@pytest.mark.filterwarnings("ignore:the projected cost tells almost no policies apart")
@pytest.mark.parametrize("name", ["inventory", "gridworld"])
def test_the_ends_of_the_path_are_the_experts_policy_and_the_priors(name):
    problem = {"inventory": examples.inventory, "gridworld": examples.gridworld}[name]()
    mdp = problem.mdp
    first, *_, last = alpha_path(problem, n_points=3)
    assert first.departure < 0.02
    assert first.regret < 1e-6
    projection = project_prior(mdp, problem.expert, problem.prior)
    assert first.distance == pytest.approx(np.sqrt(projection.upper), rel=1e-3)
    plan = mdp.optimal(problem.prior)
    worth = mdp.expected_cost(mdp.policy_of(problem.expert), problem.prior) - plan.expected_cost
    assert mdp.expected_cost(last.policy, problem.prior) - plan.expected_cost < 1e-4 * worth
    # Where every state has one best action under the prior, that is what the apprentice does.
    if name == "inventory":
        np.testing.assert_allclose(last.solution.occupancy, plan.occupancy, atol=1e-4)
        np.testing.assert_array_equal(np.round(last.policy, 2), plan.policy)


def test_the_ends_of_the_path_are_not_farther_out_than_they_must_be():
    problem = examples.inventory()
    first, last = alpha_path(problem, n_points=2)
    nearer = alpha_path(problem, [2.1 * first.alpha, last.alpha / 2.1])
    assert nearer[0].departure > 0.01 * last.departure
    gain = problem.prior @ (problem.expert - last.solution.occupancy)
    assert problem.prior @ (nearer[1].solution.occupancy - last.solution.occupancy) > 1e-4 * gain


@given(problems())
@settings(max_examples=15)
def test_regret_rises_and_distance_falls_along_the_path(problem):
    # The tolerances are those of the exchange argument in the module's docstring, for the gaps that were reached.
    for low, high in pairwise(alpha_path(problem, n_points=6)):
        both = (low.duality_gap + high.duality_gap) / (high.alpha - low.alpha)
        assert low.alpha < high.alpha
        assert high.distance**2 <= low.distance**2 + both + 1e-12
        assert low.regret <= high.regret + low.duality_gap + low.alpha * both + 1e-12


def test_regret_distance_and_departure_of_a_point_are_those_of_its_solution(path):
    problem = path.problem
    for point in path:
        cost = point.solution.cost
        regret = problem.expert @ cost - problem.mdp.optimal(cost).expected_cost
        assert point.regret == pytest.approx(regret, abs=2e-6)
        assert point.distance == np.linalg.norm(cost - problem.prior)
        assert point.departure == np.abs(point.solution.occupancy - problem.expert).sum()
        assert point.duality_gap < 1e-6
    # Inside the box the apprentice is the expert plus 2α (c - ĉ).
    inside = [point for point in path if np.abs(point.solution.cost).max() < 0.999]
    assert inside
    for point in inside:
        shift = 2 * point.alpha * (point.solution.cost - problem.prior)
        np.testing.assert_allclose(problem.expert + shift, point.solution.occupancy, atol=1e-4)


def test_alphas_that_are_given_are_sorted_and_taken_as_they_are():
    path = alpha_path(make_problem(0), [1.0, 0.01, 0.1, 0.1])
    assert [point.alpha for point in path] == [0.01, 0.1, 1.0]
    assert len(path) == 3
    assert path[1:] == path.points[1:]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"problem": make_problem(3, regulariser="l1")},
            ValueError,
            "problem must have regulariser=\"l2\" for a path, got 'l1'",
        ),
        ({"problem": None}, TypeError, "problem must be an RLfDProblem, got NoneType"),
        ({"alphas": [0.1, 0.0]}, ValueError, "alphas must be positive"),
        ({"alphas": []}, ValueError, "at least one"),
        ({"n_points": 1}, ValueError, "n_points must be at least 2"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
    ],
)
def test_bad_arguments_of_alpha_path_are_refused_by_name(change, error, message):
    arguments = {"problem": make_problem(3)} | change
    with pytest.raises(error, match=message):
        alpha_path(**arguments)


def assert_same_path(one, two):
    assert [point.alpha for point in one] == [point.alpha for point in two]
    for here, there in zip(one, two, strict=True):
        np.testing.assert_array_equal(here.solution.cost, there.solution.cost)
        np.testing.assert_array_equal(here.policy, there.policy)


def test_the_path_does_not_depend_on_the_number_of_jobs():
    problem = make_problem(3)
    assert_same_path(alpha_path(problem, n_points=4), alpha_path(problem, n_points=4, n_jobs=2))


def test_warnings_of_other_processes_are_not_lost(monkeypatch):
    from rlfd_gym.alpha import path

    def solve(problem, alpha):
        path.warn("so much is missing", RuntimeWarning)
        return solve_at(problem, alpha)

    solve_at = path.solve_at
    monkeypatch.setattr(path, "solve_at", solve)
    with parallel_config(backend="threading"), pytest.warns(RuntimeWarning, match="so much is missing") as caught:
        alpha_path(make_problem(3), [0.1, 1.0], n_jobs=2)
    assert [warning.filename for warning in caught] == [__file__]  # said once, to the caller


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_dask_cluster_makes_no_difference_to_the_path():
    distributed = pytest.importorskip("distributed")
    problem = make_problem(3)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        there = alpha_path(problem, [0.01, 0.1, 1.0], n_jobs=-1)
    assert_same_path(alpha_path(problem, [0.01, 0.1, 1.0]), there)
