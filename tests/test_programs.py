"""Programs that are solved in another process: the same answers, and an end to Ctrl-C and to time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from strategies import grid_problem, sparse

from rlfd_gym import _programs
from rlfd_gym.solvers import lp, qp

SLOW_SOLVE = """
import numpy as np, scipy.sparse as sp
from rlfd_gym import RLfDProblem, TabularMDP, solve_exact
rng, S, A, k = np.random.default_rng(0), {n_states}, 4, 8
rows = sp.csr_array((rng.random(S * A * k), (np.repeat(np.arange(S * A), k), rng.integers(S, size=S * A * k))))
mdp = TabularMDP(rows / rows.sum(axis=1)[:, None], np.repeat(np.arange(S), A), np.tile(np.arange(A), S),
                 initial=np.full(S, 1 / S), discount=0.95)
prior = rng.uniform(-1, 1, S * A)
expert = mdp.occupancy_of(mdp.uniform_policy())
print("begins", flush=True)
solve_exact(RLfDProblem(mdp, expert, prior, {alpha}, "{norm}"), "{method}")
print("ended", flush=True)
"""


@pytest.fixture
def everything_is_large(monkeypatch):
    """Send every program to the other process, and end it after the test."""
    monkeypatch.setattr(_programs, "SMALL", 0)
    yield
    if getattr(_programs._here, "worker", None) is not None:
        _programs._here.worker.end()
        _programs._here.worker = None


def fails() -> None:
    raise ValueError("a reason")


@pytest.mark.usefixtures("everything_is_large")
def test_the_other_process_gives_the_same_answers_to_the_bit(monkeypatch):
    problem = grid_problem(6)
    there = [qp.io_al(problem, spread=True), lp.linear_program(sparse(problem, 1e-3))]
    worker = _programs._here.worker
    assert worker.process.pid != os.getpid()
    monkeypatch.setattr(_programs, "SMALL", 10**9)
    here = [qp.io_al(problem, spread=True), lp.linear_program(sparse(problem, 1e-3))]
    for one, other in zip(there, here, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("everything_is_large")
def test_a_deadline_ends_the_other_process_and_the_next_program_starts_a_new_one():
    start = time.monotonic()
    with pytest.raises(_programs.OutOfTime):
        _programs.run(time.sleep, (60.0,), {}, 1, start + 0.3)
    assert time.monotonic() - start < 5.0
    assert _programs._here.worker is None
    assert _programs.run(abs, (-3,), {}, 1, np.inf) == 3


def test_a_deadline_that_has_passed_starts_nothing():
    with pytest.raises(_programs.OutOfTime):
        _programs.run(fails, (), {}, 0, time.monotonic())


@pytest.mark.usefixtures("everything_is_large")
def test_errors_of_the_other_process_are_raised_here_and_its_death_is_named():
    with pytest.raises(ValueError, match="could not convert"):
        _programs.run(float, ("nothing",), {}, 1, np.inf)
    survivor = _programs._here.worker
    assert _programs.run(abs, (-3,), {}, 1, np.inf) == 3
    assert _programs._here.worker is survivor
    with pytest.raises(RuntimeError, match="ended with exit code 3"):
        _programs.run(os._exit, (3,), {}, 1, np.inf)
    assert _programs.run(abs, (-3,), {}, 1, np.inf) == 3


@pytest.mark.usefixtures("everything_is_large")
def test_the_other_process_ends_with_the_thread_that_started_it():
    processes = []

    def solve() -> None:
        _programs.run(abs, (-3,), {}, 1, np.inf)
        processes.append(_programs._here.worker.process)

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert processes[0].wait(timeout=10) == -signal.SIGKILL


def test_a_quadratic_program_with_equations_is_solved():
    """The nearest point to (1, 2) with x = y."""
    program = (np.full(2, 2.0), np.array([-2.0, -4.0]), sp.csr_array([[1.0, -1.0]]), sp.csr_array((0, 2)))
    result = _programs.solve_qp(*program, np.zeros(0), None, np.full(2, 5.0))
    np.testing.assert_allclose(result.x, 1.5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
@pytest.mark.parametrize(
    ("method", "norm", "alpha", "n_states"),
    [("qp", "l2", 1e-3, 3_000), ("lp", "l1", 1e-4, 1_500), ("matrix-free", "l2", 1e-7, 400_000)],
)
@pytest.mark.parametrize("after", [0.2, 4.0])
def test_ctrl_c_in_the_middle_of_a_solve_ends_it_within_seconds(method, norm, alpha, n_states, after):
    code = SLOW_SOLVE.format(method=method, norm=norm, alpha=alpha, n_states=n_states)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"begins\n"
            time.sleep(after)
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
            took = time.monotonic() - sent
        finally:
            process.kill()
    assert out == b"", "the solve was over before the signal"
    assert b"KeyboardInterrupt" in err.splitlines()[-1]
    assert took < 3.0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the program is finished first")
def test_the_other_process_does_not_outlive_one_that_is_killed():
    code = """
import time
from rlfd_gym import _programs
_programs.run(abs, (1,), {}, 10**9, float("inf"))
print(_programs._here.worker.process.pid, flush=True)
_programs.run(time.sleep, (60,), {}, 10**9, float("inf"))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        other = int(process.stdout.readline())
        time.sleep(0.5)
        process.kill()
    ended = time.monotonic() + 5.0
    while running(other) and time.monotonic() < ended:
        time.sleep(0.05)
    assert not running(other)


def running(pid: int) -> bool:
    """Return whether a process runs; one that has ended but was not waited for does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
