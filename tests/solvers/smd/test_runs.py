"""Runs: their sum, how many at a time, and how they are continued."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from checks import assert_same
from strategies import make_problem, sparse

from rlfd_gym import RLfDProblem, solve_smd
from rlfd_gym.problem import examples
from rlfd_gym.solvers.smd import runs


@pytest.fixture(scope="module")
def problem():
    """The paper's 6 x 6 grid with an optimal expert and the true cost as prior."""
    return examples.gridworld(size=6, noise=0, alpha=0.1, known=1)


def test_several_runs_are_the_mean_of_their_single_runs(problem):
    together = solve_smd(problem, n_iterations=3000, step_size=1e-2, n_runs=4, seed=5, variant="paper")
    children = [np.random.SeedSequence(5, spawn_key=(i,)) for i in range(4)]
    apart = []
    for child in children:
        plan = runs.Plan(3000, (1e-2, 1e-2), uniform_start=False, record_every=0, keep=True)
        apart.append(runs.run_all(problem, plan, [child], 1, lambda steps: None).mean_average().x)
    np.testing.assert_allclose(together.cost, np.mean(apart, axis=0), atol=1e-14)
    assert together.stats["n_runs"] == 4


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_jobs_makes_no_difference(problem, n_jobs, monkeypatch):
    monkeypatch.setattr(runs, "BATCH_STEPS", 4000)  # several batches, though the runs are short
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 9, "record_every": 500}
    one, many = solve_smd(problem, **arguments), solve_smd(problem, **arguments, n_jobs=n_jobs)
    assert_same(one, many)


def test_joblib_processes_make_no_difference(problem, monkeypatch):
    from joblib import parallel_config

    monkeypatch.setattr(runs, "BATCH_STEPS", 4000)
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 4}
    one = solve_smd(problem, **arguments)
    with parallel_config(backend="loky"):
        assert_same(one, solve_smd(problem, **arguments, n_jobs=2))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_dask_cluster_makes_no_difference(problem, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from joblib import parallel_config

    monkeypatch.setattr(runs, "BATCH_STEPS", 4000)
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 4}
    one = solve_smd(problem, **arguments)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        assert_same(one, solve_smd(problem, **arguments, n_jobs=2))


@pytest.mark.parametrize("n_runs", [1, 3])
def test_a_continued_solve_equals_one_that_never_stopped(problem, n_runs):
    arguments = {"step_size": 1e-2, "n_runs": n_runs, "record_every": 500, "seed": 6}
    whole = solve_smd(problem, n_iterations=4000, **arguments)
    part = solve_smd(problem, n_iterations=1700, **arguments)
    continued = solve_smd(problem, n_iterations=2300, **arguments, initial=part)
    assert continued.n_iterations == 4000
    assert_same(continued, whole)
    assert_same(continued, solve_smd(problem, n_iterations=2300, **arguments, initial=part))  # `part` was not used up


def test_a_continued_solve_remembers_weights_that_have_vanished_from_double_precision(problem):
    arguments = {"step_size": (1e-2, 5e-2), "seed": 1}
    whole = solve_smd(problem, n_iterations=60_000, **arguments)
    part = solve_smd(problem, n_iterations=30_000, **arguments)
    assert (part.state.last.occupancy == 0).any()
    rest = solve_smd(problem, n_iterations=30_000, initial=part, **arguments)
    assert_same(rest, whole)


def test_a_continued_solve_keeps_the_step_sizes(problem):
    part = solve_smd(problem, n_iterations=20_000)
    rest = solve_smd(problem, n_iterations=10, initial=part)
    assert rest.stats["step_sizes"] == part.stats["step_sizes"]
    with pytest.raises(ValueError, match="initial and epsilon exclude each other"):
        solve_smd(problem, epsilon=0.5, initial=part)


def test_a_pickled_solution_can_be_continued(problem):
    part = pickle.loads(pickle.dumps(solve_smd(problem, n_iterations=500, step_size=1e-2)))
    copy = pickle.loads(pickle.dumps(problem))
    assert not copy.expert.flags.writeable
    rest = solve_smd(copy, n_iterations=500, step_size=1e-2, initial=part)
    whole = solve_smd(problem, n_iterations=1000, step_size=1e-2)
    assert_same(rest, whole)


def test_solutions_of_another_problem_are_not_continued(problem):
    other = solve_smd(make_problem(1), n_iterations=100)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(problem, n_iterations=100, initial=other)
    three = solve_smd(problem, n_iterations=100, n_runs=3)
    with pytest.raises(ValueError, match="n_runs is 2, but initial has 3 runs"):
        solve_smd(problem, n_iterations=100, initial=three, n_runs=2)


def test_only_solutions_of_the_very_same_problem_are_continued(problem):
    part = solve_smd(problem, n_iterations=100)
    other = RLfDProblem(problem.mdp, problem.expert, -problem.prior, problem.alpha)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(other, n_iterations=100, initial=part)
    with pytest.raises(TypeError, match="initial must be a Solution, got tuple"):
        solve_smd(problem, n_iterations=100, initial=(1, 2))


def test_large_solutions_do_not_keep_their_runs(problem, monkeypatch):
    monkeypatch.setattr(runs, "RESUME_BYTES", 1000)
    solution = solve_smd(problem, n_iterations=100)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem by solve_smd that kept"):
        solve_smd(problem, n_iterations=100, initial=solution)


def test_a_solve_is_continued_with_the_same_penalty_only_and_the_papers_takes_no_weights():
    problem = make_problem(0, regulariser="l1")
    begun = solve_smd(problem, 1000)
    assert solve_smd(problem, 1000, initial=begun).n_iterations == 2000
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(make_problem(0, regulariser="l2"), 1000, initial=begun)
    weighted = sparse(problem, weights=np.ones(problem.n_pairs))
    for attempt in (lambda: solve_smd(weighted, step_size=0.01, variant="paper"), lambda: weighted.iterations(0.1)):
        with pytest.raises(ValueError, match="weights: Algorithm 1 and its theorem take none; use solve_exact"):
            attempt()
