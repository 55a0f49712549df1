"""How cells are run: in this process, in processes of this machine, or on a Dask cluster.

A worker that dies, because it ran out of memory or a library crashed, costs the cells that it was
running and no others. So that these are known, every local process has an executor of its own, and
every cell on a cluster is pinned to a worker; a process, or a thread of a cluster's worker, gets no
second cell before its first one has ended. What is lost is yielded as `Lost`, and the other cells
are run.

Tasks and methods are functions, some of them made on the spot, which only cloudpickle can send. Each
is packed once, and a worker unpacks it once: one that is unpacked again for every cell is another
function each time, to which nothing that the worker has kept (the task's instances, the warm-up of
the method) belongs.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor
from joblib.externals.loky.backend.reduction import dumps

from rlfd_gym._install import command
from rlfd_gym.compare import provenance
from rlfd_gym.compare.cells import Cell, Row, run_cell
from rlfd_gym.compare.methods import Method
from rlfd_gym.compare.provenance import ProvenanceError
from rlfd_gym.compare.tasks import Task

Call = tuple[Task, Method, Cell, int, int]
PATIENCE = 60.0  # seconds until a cluster without workers is given up
THREADS = ("BLIS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Lost:
    """A cell whose worker died, and how it is known to be dead."""

    cell: Cell
    reason: str


def outcomes(calls: Sequence[Call], jobs: int, scheduler: str | None) -> Iterator[Row | Lost]:
    """Run cells, and yield their rows as they finish."""
    if scheduler is not None:
        return _on_cluster(calls, scheduler)
    number = joblib.effective_n_jobs(jobs)
    return (run_cell(*call) for call in calls) if number == 1 else _in_processes(calls, number)


def _in_processes(calls: Sequence[Call], jobs: int) -> Iterator[Row | Lost]:
    threads = str(max(1, joblib.cpu_count() // jobs))

    def new() -> Any:
        return ProcessPoolExecutor(
            max_workers=1,
            initializer=_end_with,
            initargs=(os.getpid(),),
            env={name: os.environ.get(name, threads) for name in THREADS},
        )

    waiting = deque(_packed(calls))
    running: dict[Future[Row], tuple[Cell, Any]] = {}
    executors = [new() for _ in range(min(jobs, len(waiting)))]
    free = list(executors)
    try:
        while waiting or running:
            while waiting and free:
                call, executor = waiting.popleft(), free.pop()
                running[executor.submit(_run_packed, *call)] = call[2], executor
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                cell, executor = running.pop(future)
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    executors.remove(executor)
                    executors.append(executor := new())
                free.append(executor)
                yield Lost(cell, str(error).split("\n")[0]) if isinstance(error, BrokenProcessPool) else future.result()
    finally:
        for executor in executors:
            executor.shutdown(wait=True, kill_workers=bool(running))  # idle ones end by themselves


def _packed(calls: Sequence[Call]) -> Iterator[tuple[bytes, bytes, Cell, int, int]]:
    """Yield the calls with their tasks and methods packed, each of these once."""
    packed = cache(lambda function: bytes(dumps(function)))
    return ((packed(task), packed(method), cell, iterations, runs) for task, method, cell, iterations, runs in calls)


def _run_packed(task: bytes, method: bytes, cell: Cell, iterations: int, runs: int) -> Row:
    return run_cell(_unpacked(task), _unpacked(method), cell, iterations, runs)


@cache
def _unpacked(packed: bytes) -> Any:
    """Return a task or a method, the same one for all cells of a worker."""
    return pickle.loads(packed)


def _end_with(parent: int) -> None:
    """End this process soon after its parent, which cannot do it when it is killed.

    Where the number of a dead parent stays, on Windows, nothing is ended.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _on_cluster(calls: Sequence[Call], scheduler: str) -> Iterator[Row | Lost]:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(f"a scheduler needs dask: {command('cluster')}", name="distributed") from error
    try:
        client = distributed.Client(scheduler, set_as_default=False)
    except OSError as error:
        raise ConnectionError(f"no Dask scheduler answers at {scheduler} ({error})") from error
    try:
        yield from _pinned(client, calls)
    except distributed.TimeoutError:
        raise ConnectionError(f"the scheduler {scheduler} has had no workers for {PATIENCE:.0f} seconds") from None
    except OSError as error:
        raise ConnectionError(f"the scheduler {scheduler} was lost ({type(error).__name__}: {error})") from error
    finally:
        client.close(timeout=5)


def _pinned(client: Any, calls: Sequence[Call]) -> Iterator[Row | Lost]:
    """Give every thread of every worker one cell at a time."""
    from distributed import KilledWorker

    client.wait_for_workers(1, timeout=PATIENCE)
    _check_workers(client.run(_made_with, on_error="return"))
    waiting, running = deque(_packed(calls)), dict[Any, tuple[Cell, str]]()
    ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
    while waiting or running:
        threads = client.nthreads()
        for future, (cell, worker) in list(running.items()):
            if worker not in threads and not future.done():
                del running[future]
                yield Lost(cell, f"the worker {worker} died")
        busy = Counter(worker for _, worker in running.values())
        for worker, number in threads.items():
            for _ in range(min(len(waiting), number - busy[worker])):
                call = waiting.popleft()
                future = client.submit(_run_packed, *call, workers=[worker], allow_other_workers=False, pure=False)
                running[future] = call[2], worker
                future.add_done_callback(ended.put)
        if not running:
            client.wait_for_workers(1, timeout=PATIENCE)
            continue
        with contextlib.suppress(queue.Empty):
            future = ended.get(timeout=1.0)
            if future.cancelled():
                raise ConnectionError("its tasks were cancelled")
            if future in running:  # not yet given up
                cell, worker = running.pop(future)
                killed = future.status == "error" and isinstance(future.exception(), KilledWorker)
                yield Lost(cell, f"the worker {worker} died") if killed else _checked(future.result(PATIENCE), worker)


def _made_with() -> dict[str, str]:
    return provenance.versions() | {"code": provenance.code()["digest"]}


def _check_workers(found: dict[str, Any]) -> None:
    """Check that all workers would make the cells as this process would."""
    for worker, theirs in found.items():
        if isinstance(theirs, BaseException):
            raise ProvenanceError(f"the worker {worker} cannot run cells: {type(theirs).__name__}: {theirs}")
        _require_same(theirs, worker)


def _checked(row: Row, worker: str) -> Row:
    """Return a row, also of a worker that came later, if it was made as this process would make it."""
    _require_same(row.versions | {"code": row.code["digest"]}, worker)
    return row


def _require_same(theirs: dict[str, str], worker: str) -> None:
    remedy = "Install the same versions on all machines"
    provenance.require_same(theirs, _made_with(), f"the worker {worker} has other versions", remedy)
