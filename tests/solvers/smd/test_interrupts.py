"""Ctrl-C: where one run is made at a time it leaves an answer, a parallel solve is stopped and raises."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest
from checks import Interrupter, assert_same

from rlfd_gym import solve_smd
from rlfd_gym.problem import examples
from rlfd_gym.solvers.smd import kernels, runs, solve


@pytest.fixture(scope="module")
def problem():
    """The paper's 6 x 6 grid with an optimal expert and the true cost as prior."""
    return examples.gridworld(size=6, noise=0, alpha=0.1, known=1)


def pressed_after(monkeypatch, bar):
    monkeypatch.setattr(solve, "_progress_bar", lambda wanted, total: bar)


def test_an_interrupted_run_is_an_answer_that_can_be_continued(problem, monkeypatch):
    pressed_after(monkeypatch, Interrupter(20_000))
    solution = solve_smd(problem, n_iterations=1_000_000, step_size=1e-2)
    assert not solution.finished
    assert 20_000 <= solution.n_iterations < 30_000
    monkeypatch.undo()
    assert_same(solution, solve_smd(problem, n_iterations=solution.n_iterations, step_size=1e-2))
    rest = solve_smd(problem, n_iterations=40_000 - solution.n_iterations, step_size=1e-2, initial=solution)
    assert rest.finished
    assert_same(rest, solve_smd(problem, n_iterations=40_000, step_size=1e-2))


def test_an_interrupt_keeps_the_runs_that_are_whole(problem, monkeypatch):
    pressed_after(monkeypatch, Interrupter(25_000))
    solution = solve_smd(problem, n_iterations=10_000, step_size=1e-2, n_runs=8)
    assert not solution.finished
    assert (solution.stats["n_runs"], solution.n_iterations) == (2, 10_000)


def test_an_interrupt_among_several_batches_keeps_whole_runs_and_their_history(problem, monkeypatch):
    monkeypatch.setattr(runs, "BATCH_STEPS", 1)  # a run to a batch
    whole = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=2, record_every=5000)
    pressed_after(monkeypatch, Interrupter(45_000))
    solution = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=4, record_every=5000)
    assert not solution.finished
    assert_same(solution, whole)
    assert solution.history.iteration.tolist() == [5000, 10_000, 15_000, 20_000]


def test_an_interrupt_in_a_later_batch_keeps_the_runs_of_that_batch_that_are_whole(problem, monkeypatch):
    monkeypatch.setattr(runs, "BATCH_STEPS", 40_000)  # four runs to a batch
    pressed_after(monkeypatch, Interrupter(75_000))
    solution = solve_smd(problem, n_iterations=10_000, step_size=1e-2, n_runs=8)
    assert not solution.finished
    assert (solution.stats["n_runs"], solution.n_iterations) == (7, 10_000)


def test_an_interrupt_between_callbacks_returns_all_runs_as_they_were_at_the_last_one(problem, monkeypatch):
    seen = []
    pressed_after(monkeypatch, Interrupter(35_000))
    solution = solve_smd(
        problem, n_iterations=50_000, step_size=1e-2, n_runs=3, callback=seen.append, callback_every=5000
    )
    assert not solution.finished
    assert (solution.stats["n_runs"], solution.n_iterations) == (3, 10_000)
    assert_same(solution, seen[-1])
    monkeypatch.undo()
    rest = solve_smd(problem, n_iterations=10_000, step_size=1e-2, initial=solution)
    assert_same(rest, solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=3))


def test_one_interrupt_ends_the_batches_that_have_not_begun_too(problem, monkeypatch):
    class Once(Interrupter):
        def update(self, steps):
            self.left, before = self.left - steps, self.left
            if self.left < 0 <= before:
                raise KeyboardInterrupt

    monkeypatch.setattr(runs, "BATCH_STEPS", 1)  # a run to a batch
    pressed_after(monkeypatch, Once(25_000))
    solution = solve_smd(problem, n_iterations=20_000, step_size=1e-2, n_runs=4)
    assert not solution.finished
    assert solution.stats["n_runs"] == 1  # the second was interrupted


def test_an_interrupt_before_the_first_step_is_raised(problem, monkeypatch):
    def pressed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(kernels, "advance", pressed)
    with pytest.raises(KeyboardInterrupt, match="interrupted before the first step"):
        solve_smd(problem, n_iterations=10, step_size=1e-2, variant="paper")


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
    pressed_after(monkeypatch, StartsTimer(lambda: interrupt_after(seconds)))
    arguments = {"step_size": 1e-2, "record_every": record_every}
    solution = solve_smd(problem, n_iterations=50_000_000, **arguments)
    monkeypatch.undo()
    assert not solution.finished
    assert solution.n_iterations >= 1000
    assert_same(solution, solve_smd(problem, n_iterations=solution.n_iterations, **arguments))


def test_a_real_ctrl_c_in_a_parallel_solve_is_raised_within_a_second_and_leaves_no_thread_running(
    problem, interrupt_after
):
    solve_smd(problem, n_iterations=5000, step_size=1e-2)  # compiled
    threads = set(threading.enumerate())
    interrupt_after(1.0)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        solve_smd(problem, n_iterations=100_000_000, step_size=1e-2, n_runs=2, n_jobs=2)
    assert time.monotonic() - begun < 2.5
    while time.monotonic() - begun < 3.5 and any(thread.is_alive() for thread in working(threads)):
        time.sleep(0.01)
    assert not working(threads)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.2  # nobody continues computing


def working(before):
    """The threads that were not there before; tqdm's monitor only looks at bars."""
    return {thread for thread in threading.enumerate() if thread not in before and "tqdm" not in thread.name}


def test_after_a_stopped_parallel_solve_another_one_runs_as_ever(problem, interrupt_after, monkeypatch):
    monkeypatch.setattr(runs, "BATCH_STEPS", 1)  # a run to a batch
    interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        solve_smd(problem, n_iterations=100_000_000, step_size=1e-2, n_runs=2, n_jobs=2)
    arguments = {"n_iterations": 2000, "step_size": 1e-2, "n_runs": 4}
    assert_same(solve_smd(problem, **arguments, n_jobs=2), solve_smd(problem, **arguments))
