"""Quadratic programs by PIQP and linear programs by HiGHS, which Ctrl-C and a deadline can stop.

PIQP keeps Python's lock until it is done, so that no signal handler and no other thread runs
meanwhile. HiGHS releases the lock, but cannot be stopped from outside, and a thread that was given
up would keep a core busy for minutes. So programs with more than `SMALL` entries, which may take
longer than half a second, are solved in another process. It is killed on Ctrl-C or at the
deadline. Otherwise it waits for the thread's next program, because starting it takes up to a
second. The answers are the same to the bit. It ends with the thread that started it, and on Linux
also if that is killed; elsewhere it may finish its program first.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SMALL = 10_000  # entries of the rows; such programs take half a second at most
PATIENCE = 0.1  # seconds between two looks at the clock: on Windows waiting ignores Ctrl-C
_here = threading.local()  # `worker`: the process of this thread


class OutOfTime(Exception):
    """The deadline came before the solver was done."""


class Program(NamedTuple):
    """The solution of a quadratic program.

    Attributes:
        x: the point.
        y: the multipliers of the equations.
        z: the multipliers of the lower bounds of the rows.
        n_iterations: the number of interior point steps.
    """

    x: FloatArray
    y: FloatArray
    z: FloatArray
    n_iterations: int


def solve_qp(
    hessian: FloatArray,
    gradient: FloatArray,
    equal: Any,
    rows: Any,
    lower: FloatArray,
    upper: FloatArray | None,
    box: FloatArray,
    tolerance: float = 1e-8,
    *,
    deadline: float = np.inf,
) -> Program:
    """Minimise ½ x'Hx + g'x subject to equal x = 0, lower ≤ rows x ≤ upper, |x| ≤ box, by PIQP.

    H is diagonal, and `hessian` is its diagonal. `deadline` is a time of `time.monotonic`; after
    it, `OutOfTime` is raised.
    """
    size = rows.nnz + (0 if equal is None else equal.nnz)
    return run(_piqp, (hessian, gradient, equal, rows, lower, upper, box, tolerance), {}, size, deadline)


def solve_lp(objective: FloatArray, *, deadline: float = np.inf, **program: Any) -> Any:
    """Minimise a linear objective by `scipy.optimize.linprog`, whose arguments these are.

    `deadline` is as for `solve_qp`.
    """
    from scipy.optimize import linprog  # slow to load

    matrices = (program.get("A_eq"), program.get("A_ub"))
    size = sum(matrix.nnz if sp.issparse(matrix) else np.size(matrix) for matrix in matrices if matrix is not None)
    return run(linprog, (objective,), program, size, deadline)


def _piqp(
    hessian: FloatArray,
    gradient: FloatArray,
    equal: Any,
    rows: Any,
    lower: FloatArray,
    upper: FloatArray | None,
    box: FloatArray,
    tolerance: float,
) -> Program:
    """Do what `solve_qp` says, in this process."""
    import piqp  # compiled: loaded only when asked for

    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.eps_abs, settings.eps_rel = tolerance, 0.1 * tolerance
    settings.eps_duality_gap_abs, settings.eps_duality_gap_rel = tolerance * gradient.size, 0.1 * tolerance
    some_equal, some_rows = equal is not None and equal.shape[0], rows.shape[0] > 0
    solver.setup(
        sp.csc_matrix(sp.diags_array(hessian)),
        gradient,
        sp.csc_matrix(equal) if some_equal else None,
        np.zeros(equal.shape[0]) if some_equal else None,
        sp.csc_matrix(rows) if some_rows else None,
        lower if some_rows else None,
        upper,
        -box,
        box,
    )
    solver.solve()  # its verdict is ignored: the bounds say what the result is worth
    result = solver.result
    return Program(result.x.copy(), result.y.copy(), result.z_l.copy(), int(result.info.iter))


def run(function: Callable[..., Any], args: tuple[Any, ...], options: Any, size: int, deadline: float) -> Any:
    """Call a function here if the program is small, and otherwise in the other process.

    The function is one of a module, and what it takes and returns can be pickled. `size` is the
    number of entries of the program's rows.
    """
    if time.monotonic() >= deadline:
        raise OutOfTime
    if size <= SMALL:
        return function(*args, **options)
    worker = getattr(_here, "worker", None)
    if worker is None or not worker.usable():
        worker = _Worker()
    _here.worker = None  # until it has answered
    succeeded, answer = worker.ask((function, args, options), deadline)
    _here.worker = worker
    if not succeeded:
        raise answer
    return answer


class _Worker:
    """Another process that solves one program after the other."""

    def __init__(self) -> None:
        paths = [str(path) for path in sys.path]
        code = f"import sys; sys.path[:] = {paths!r}; from rlfd_gym import _programs; _programs._serve()"
        self.process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.owner = os.getpid()
        self.end = weakref.finalize(self, _end, self.process, self.owner)

    def usable(self) -> bool:
        """Return whether the process still waits, and for this process: not for one it forked from."""
        return self.owner == os.getpid() and self.process.poll() is None

    def ask(self, question: Any, deadline: float) -> tuple[bool, Any]:
        """Return (whether the call succeeded, its result or error); kill the process on any exception."""
        answers: list[tuple[bool, Any]] = []
        failures: list[Exception] = []

        def exchange() -> None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
            try:
                pickle.dump(question, self.process.stdin, pickle.HIGHEST_PROTOCOL)
                self.process.stdin.flush()
                answers.append(pickle.load(self.process.stdout))
            except Exception as error:  # most likely because the process has ended
                failures.append(error)

        waiting = threading.Thread(target=exchange, daemon=True)
        try:
            waiting.start()
            while waiting.is_alive():
                left = deadline - time.monotonic()
                if left <= 0:
                    raise OutOfTime
                waiting.join(min(left, PATIENCE))
            if failures:
                self.end()
                ending = f"with exit code {self.process.returncode}"
                raise RuntimeError(f"the process that solves large programs ended {ending}") from failures[0]
        except BaseException:
            self.end()
            raise
        return answers[0]


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Kill the process and wait for its end, unless it belongs to the process that this one forked from."""
    if owner == os.getpid():
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(OSError):  # what was not yet written has no reader any more
            pipe.close()


def _serve() -> None:
    """Answer questions from the standard input until it ends: this is what the other process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal; the owner decides
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: end with the owner
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a solver prints must not come between the answers
    while True:
        try:
            function, args, options = pickle.load(questions)
        except (EOFError, pickle.UnpicklingError):  # the owner has ended, maybe in the middle of a question
            return
        try:
            answer = True, function(*args, **options)
        except Exception as error:
            answer = False, error
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()
