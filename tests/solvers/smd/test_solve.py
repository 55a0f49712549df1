from __future__ import annotations

import os
import pickle
import signal
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from strategies import make_problem

from rlfd_gym import RLfDProblem, TabularMDP, solve_smd
from rlfd_gym.solvers.smd import solve as smd


@pytest.fixture(scope="module")
def problem():
    """The paper's 6 x 6 grid with an optimal expert and the true cost as prior."""
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
    return RLfDProblem(env.mdp, env.mdp.optimal(env.cost).occupancy, env.cost, alpha=0.1)


def same(one, other):
    for name in ("cost", "value", "occupancy", "policy"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.duality_gap == other.duality_gap


def test_the_answer_is_feasible_and_certified(problem):
    solution = solve_smd(problem, n_iterations=50_000)
    assert np.abs(solution.cost).max() <= 1
    assert np.abs(solution.value).max() <= 1
    assert solution.occupancy.sum() == pytest.approx(1)
    np.testing.assert_allclose(solution.policy, problem.mdp.policy_of(solution.occupancy), atol=1e-14)
    gap = problem.duality_gap(solution.cost, solution.value, solution.occupancy)
    assert solution.duality_gap == pytest.approx(gap, abs=1e-12)
    assert (solution.upper, solution.lower) == problem.bounds(solution.cost, solution.value, solution.occupancy)
    assert solution.finished
    assert solution.n_iterations == 50_000


def test_more_iterations_bring_a_smaller_gap(problem):
    gaps = [solve_smd(problem, n_iterations=n, seed=1).duality_gap for n in (10_000, 300_000, 10_000_000)]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]
    assert gaps[2] < 0.05


def test_the_expected_gap_is_what_the_theorem_promises():
    # A problem so small that the theorem's own T is affordable many times over.
    small = make_problem(0, n_states=2, n_actions=2, discount=0.5, alpha=0.1)
    for bound in ("corrected", "paper"):
        gaps = [solve_smd(small, epsilon=0.4, bound=bound, seed=seed).duality_gap for seed in range(20)]
        assert np.mean(gaps) <= 0.4
    solution = solve_smd(small, epsilon=0.4)
    assert solution.n_iterations == small.iterations(0.4)
    assert solution.stats["step_sizes"] == small.step_sizes(0.4)


def test_without_a_step_size_the_theorem_is_inverted():
    problem = make_problem(1, n_states=3, n_actions=2, discount=0.5)
    n_iterations = problem.iterations(0.5)
    solution = solve_smd(problem, n_iterations=n_iterations)
    assert solution.stats["step_sizes"] == pytest.approx(problem.step_sizes(0.5), rel=1e-6)
    few = solve_smd(problem, n_iterations=10).stats["step_sizes"]
    assert few[1] == pytest.approx(0.5 * (1 - 0.5) / (2 * problem.n_pairs))  # the proof's cap on η_μ


def test_step_sizes_may_be_one_number_or_two(problem):
    one = solve_smd(problem, n_iterations=2000, step_size=1e-3)
    two = solve_smd(problem, n_iterations=2000, step_size=(1e-3, 1e-3))
    same(one, two)
    other = solve_smd(problem, n_iterations=2000, step_size=(1e-3, 1e-4))
    assert (other.occupancy != one.occupancy).any()


def test_the_same_seed_gives_the_same_result_and_another_does_not(problem):
    first = solve_smd(problem, n_iterations=5000, seed=3)
    same(first, solve_smd(problem, n_iterations=5000, seed=3))
    assert (solve_smd(problem, n_iterations=5000, seed=4).cost != first.cost).any()
    sequence = np.random.SeedSequence(3)
    same(first, solve_smd(problem, n_iterations=5000, seed=sequence))
    same(first, solve_smd(problem, n_iterations=5000, seed=sequence))  # not used up by the first call
    generators = (np.random.default_rng(7), np.random.default_rng(7))
    same(*(solve_smd(problem, n_iterations=5000, seed=generator) for generator in generators))


def test_several_runs_are_the_mean_of_their_single_runs(problem):
    together = solve_smd(problem, n_iterations=3000, step_size=1e-2, n_runs=4, seed=5)
    children = [np.random.SeedSequence(5, spawn_key=(i,)) for i in range(4)]
    apart = []
    for child in children:
        state = smd._RunState(np.random.Generator(np.random.PCG64(child)))
        batch = smd._run_batch(problem, smd._Plan(3000, (1e-2, 1e-2), False, 0, True), [state])
        apart.append(batch.average[0])
    np.testing.assert_allclose(together.cost, np.mean(apart, axis=0), atol=1e-14)
    assert together.stats["n_runs"] == 4


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_the_number_of_jobs_makes_no_difference(problem, n_jobs, monkeypatch):
    monkeypatch.setattr(smd, "BATCH_STEPS", 4000)  # several batches, though the runs are short
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 9, "record_every": 500}
    one, many = solve_smd(problem, **arguments), solve_smd(problem, **arguments, n_jobs=n_jobs)
    same(one, many)
    np.testing.assert_array_equal(one.history.duality_gap, many.history.duality_gap)


def test_joblib_processes_make_no_difference(problem, monkeypatch):
    from joblib import parallel_config

    monkeypatch.setattr(smd, "BATCH_STEPS", 4000)
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 4}
    one = solve_smd(problem, **arguments)
    with parallel_config(backend="loky"):
        same(one, solve_smd(problem, **arguments, n_jobs=2))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning")
def test_a_dask_cluster_makes_no_difference(problem, monkeypatch):
    distributed = pytest.importorskip("distributed")
    from joblib import parallel_config

    monkeypatch.setattr(smd, "BATCH_STEPS", 4000)
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 4}
    one = solve_smd(problem, **arguments)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        parallel_config(backend="dask"),
    ):
        same(one, solve_smd(problem, **arguments, n_jobs=2))


def test_the_history_holds_the_gap_of_the_average_so_far(problem):
    solution = solve_smd(problem, n_iterations=4000, step_size=1e-2, record_every=1000, seed=2)
    assert solution.history.iteration.tolist() == [1000, 2000, 3000, 4000]
    for row, n in enumerate((1000, 2000, 3000, 4000)):
        shorter = solve_smd(problem, n_iterations=n, step_size=1e-2, seed=2)
        assert solution.history.duality_gap[row] == pytest.approx(shorter.duality_gap, abs=1e-10)
    assert (solution.history.change_cost > 0).all()
    assert len(solution.history) == 4


def test_the_history_of_several_runs_is_their_mean_and_spread(problem):
    history = solve_smd(problem, n_iterations=1000, step_size=1e-2, record_every=500, n_runs=3).history
    assert (history.duality_gap_std > 0).all()
    assert solve_smd(problem, n_iterations=1000, step_size=1e-2, record_every=500).history.duality_gap_std.max() == 0


def test_nothing_is_recorded_unless_asked(problem):
    assert len(solve_smd(problem, n_iterations=100).history) == 0


@pytest.mark.parametrize("n_runs", [1, 3])
def test_going_on_is_the_same_as_not_having_stopped(problem, n_runs):
    arguments = {"step_size": 1e-2, "n_runs": n_runs, "record_every": 500, "seed": 6}
    whole = solve_smd(problem, n_iterations=4000, **arguments)
    part = solve_smd(problem, n_iterations=1700, **arguments)
    going_on = solve_smd(problem, n_iterations=2300, **arguments, initial=part)
    assert going_on.n_iterations == 4000
    np.testing.assert_allclose(going_on.cost, whole.cost, atol=1e-9)
    np.testing.assert_allclose(going_on.occupancy, whole.occupancy, atol=1e-9)
    np.testing.assert_array_equal(going_on.history.iteration, whole.history.iteration)
    np.testing.assert_allclose(going_on.history.duality_gap, whole.history.duality_gap, atol=1e-9)
    same(going_on, solve_smd(problem, n_iterations=2300, **arguments, initial=part))  # `part` was not used up


def test_the_last_iterate_is_there_on_request(problem):
    last = solve_smd(problem, n_iterations=500, step_size=1e-2).state.last
    average = solve_smd(problem, n_iterations=500, step_size=1e-2)
    assert last.occupancy.sum() == pytest.approx(1)
    assert (last.cost != average.cost).any()


class Interrupter:
    """A progress bar at which somebody presses Ctrl-C after so many steps."""

    def __init__(self, after):
        self.left = after

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def update(self, steps):
        self.left -= steps
        if self.left < 0:
            raise KeyboardInterrupt


def test_an_interrupt_returns_what_there_is(problem, monkeypatch):
    monkeypatch.setattr(smd, "_progress", lambda wanted, total: Interrupter(20_000))
    solution = solve_smd(problem, n_iterations=1_000_000, step_size=1e-2)
    assert not solution.finished
    assert 20_000 <= solution.n_iterations < 30_000
    monkeypatch.undo()
    same(solution, solve_smd(problem, n_iterations=solution.n_iterations, step_size=1e-2))
    rest = solve_smd(problem, n_iterations=40_000 - solution.n_iterations, step_size=1e-2, initial=solution)
    whole = solve_smd(problem, n_iterations=40_000, step_size=1e-2)
    assert rest.finished
    np.testing.assert_allclose(rest.cost, whole.cost, atol=1e-9)


def test_an_interrupt_keeps_the_whole_runs(problem, monkeypatch):
    monkeypatch.setattr(smd, "_progress", lambda wanted, total: Interrupter(25_000))
    solution = solve_smd(problem, n_iterations=10_000, step_size=1e-2, n_runs=8)
    assert not solution.finished
    assert (solution.stats["n_runs"], solution.n_iterations) == (2, 10_000)


def test_the_progress_bar_counts_every_step(problem, capsys):
    solve_smd(problem, n_iterations=5000, n_runs=2, progress_bar=True)
    assert "10.0k/10.0k" in capsys.readouterr().err


def test_a_reckless_step_size_warns_and_stays_finite(problem):
    with pytest.warns(RuntimeWarning, match=r"step_size 1 for the occupancy lets one step change a weight by exp"):
        solution = solve_smd(problem, n_iterations=5000, step_size=1.0)
    assert np.isfinite(solution.duality_gap)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_iterations": 0}, ValueError, "n_iterations must be at least 1"),
        ({"n_iterations": 1e4}, TypeError, "n_iterations must be an integer"),
        ({"n_runs": 0}, ValueError, "n_runs must be at least 1"),
        ({"record_every": 0}, ValueError, "record_every must be at least 1"),
        ({"step_size": -1.0}, ValueError, "step_size must be a finite number"),
        ({"step_size": np.nan}, ValueError, "step_size"),
        ({"step_size": (1e-2,)}, ValueError, "step_size must be a number or a pair"),
        ({"step_size": 0.1, "epsilon": 0.1}, ValueError, "step_size and epsilon exclude each other"),
        ({"epsilon": -0.1}, ValueError, "epsilon"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": "x"}, TypeError, "seed must be an integer"),
        ({"bound": "loose"}, ValueError, "bound must be one of"),
    ],
)
def test_bad_arguments_are_refused_by_name(problem, arguments, error, message):
    with pytest.raises(error, match=message):
        solve_smd(problem, **arguments)


def test_solutions_of_another_problem_are_not_gone_on_from(problem):
    other = solve_smd(make_problem(1), n_iterations=100)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(problem, n_iterations=100, initial=other)
    three = solve_smd(problem, n_iterations=100, n_runs=3)
    with pytest.raises(ValueError, match="n_runs is 2, but initial has 3 runs"):
        solve_smd(problem, n_iterations=100, initial=three, n_runs=2)


def test_something_that_is_no_problem_is_refused():
    with pytest.raises(TypeError, match="problem must be an RLfDProblem or a BlackBoxProblem, got str"):
        solve_smd("inventory")


def test_a_problem_with_a_single_pair_is_solved():
    mdp = TabularMDP([[1.0]], [0], [0], None, 0.9)
    solution = solve_smd(RLfDProblem(mdp, [1.0], [0.3], 1.0), n_iterations=20_000)
    assert solution.cost.tolist() == pytest.approx([0.3], abs=0.05)
    assert solution.policy.tolist() == [1.0]


def test_large_solutions_do_not_keep_their_runs(problem, monkeypatch):
    monkeypatch.setattr(smd, "RESUME_BYTES", 1000)
    solution = solve_smd(problem, n_iterations=100)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem by solve_smd that kept"):
        solve_smd(problem, n_iterations=100, initial=solution)


@pytest.fixture
def interrupt_after():
    """A function that sends Ctrl-C, as the terminal does, some time from now."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job starts with it ignored

    def later(seconds):
        threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

    yield later
    signal.signal(signal.SIGINT, before)


class StartsTimer(Interrupter):
    """A progress bar that calls something at the first step."""

    def __init__(self, start):
        self.start = start

    def update(self, steps):
        if self.start is not None:
            self.start()
        self.start = None


@pytest.mark.parametrize("record_every", [None, 1000])
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.17])
def test_a_real_ctrl_c_wherever_it_lands_leaves_a_true_average(
    problem, seconds, record_every, interrupt_after, monkeypatch
):
    monkeypatch.setattr(smd, "_progress", lambda wanted, total: StartsTimer(lambda: interrupt_after(seconds)))
    arguments = {"step_size": 1e-2, "record_every": record_every}
    solution = solve_smd(problem, n_iterations=50_000_000, **arguments)
    monkeypatch.undo()
    assert not solution.finished
    assert solution.n_iterations > 1000
    again = solve_smd(problem, n_iterations=solution.n_iterations, **arguments)
    same(solution, again)
    np.testing.assert_array_equal(solution.history.duality_gap, again.history.duality_gap)


def test_a_real_ctrl_c_stops_all_threads_and_returns_the_longest_beginning(problem, interrupt_after):
    solve_smd(problem, n_iterations=5000, step_size=1e-2)  # compiled
    interrupt_after(1.0)
    try:
        solution = solve_smd(problem, n_iterations=100_000_000, step_size=1e-2, n_runs=2, n_jobs=2)
    except KeyboardInterrupt as error:  # or it would end the whole test session
        pytest.fail(f"the interrupt was not handled: {error}")
    assert not solution.finished
    assert solution.stats["n_runs"] == 1
    assert solution.n_iterations > 10_000
    assert np.isfinite(solution.duality_gap)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.2  # nobody goes on computing


def test_an_interrupt_among_several_batches_keeps_whole_runs_and_their_history(problem, monkeypatch):
    monkeypatch.setattr(smd, "BATCH_STEPS", 1)  # a run to a batch
    whole = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=2, record_every=5000)
    monkeypatch.setattr(smd, "_progress", lambda wanted, total: Interrupter(45_000))
    solution = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=4, record_every=5000)
    assert not solution.finished
    same(solution, whole)
    assert solution.history.iteration.tolist() == [5000, 10_000, 15_000, 20_000]
    np.testing.assert_array_equal(solution.history.duality_gap, whole.history.duality_gap)


def test_one_interrupt_ends_the_batches_that_have_not_begun_too(problem, monkeypatch):
    class Once(Interrupter):
        def update(self, steps):
            self.left, before = self.left - steps, self.left
            if self.left < 0 <= before:
                raise KeyboardInterrupt

    monkeypatch.setattr(smd, "BATCH_STEPS", 1)  # a run to a batch
    monkeypatch.setattr(smd, "_progress", lambda wanted, total: Once(25_000))
    solution = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=4)
    assert not solution.finished
    assert solution.stats["n_runs"] == 1  # the second was interrupted


def test_going_on_remembers_weights_that_have_vanished_from_double_precision(problem):
    arguments = {"step_size": (1e-2, 5e-2), "seed": 1}
    whole = solve_smd(problem, n_iterations=60_000, **arguments)
    part = solve_smd(problem, n_iterations=30_000, **arguments)
    assert (part.state.runs[0].iterate.occupancy == 0).any()
    rest = solve_smd(problem, n_iterations=30_000, initial=part, **arguments)
    np.testing.assert_allclose(rest.cost, whole.cost, atol=1e-9)


def test_going_on_keeps_the_step_sizes(problem):
    part = solve_smd(problem, n_iterations=20_000)
    rest = solve_smd(problem, n_iterations=10, initial=part)
    assert rest.stats["step_sizes"] == part.stats["step_sizes"]
    with pytest.raises(ValueError, match="initial and epsilon exclude each other"):
        solve_smd(problem, epsilon=0.5, initial=part)


def test_only_solutions_of_the_very_same_problem_are_gone_on_from(problem):
    part = solve_smd(problem, n_iterations=100)
    other = RLfDProblem(problem.mdp, problem.expert, -problem.prior, problem.alpha)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(other, n_iterations=100, initial=part)
    with pytest.raises(TypeError, match="initial must be a Solution, got tuple"):
        solve_smd(problem, n_iterations=100, initial=(1, 2))


@pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), ("two", TypeError)])
def test_a_number_of_jobs_is_a_number(problem, n_jobs, error):
    with pytest.raises(error, match="n_jobs must"):
        solve_smd(problem, n_iterations=100, n_jobs=n_jobs)


def test_a_pickled_solution_can_be_gone_on_from(problem):
    part = pickle.loads(pickle.dumps(solve_smd(problem, n_iterations=500, step_size=1e-2)))
    copy = pickle.loads(pickle.dumps(problem))
    assert not copy.expert.flags.writeable
    rest = solve_smd(copy, n_iterations=500, step_size=1e-2, initial=part)
    whole = solve_smd(problem, n_iterations=1000, step_size=1e-2)
    np.testing.assert_allclose(rest.cost, whole.cost, atol=1e-9)
