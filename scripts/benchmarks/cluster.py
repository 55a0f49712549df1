"""Benchmarks of more than one worker: the same comparison on a Dask cluster with one and with two."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator

from benchmarks.lines import Line
from rlfd_gym import compare

SEEDS, ITERATIONS = 10, 1_000_000  # some forty cells of a second or two
COMPARISON = {
    "tasks": ["windy"],
    "methods": ["rlfd-smd"],
    "demonstrations": [10, "exact"],
    "alphas": [0.1, 1.0],
    "runs": 2,
}
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def dask(seeds: int = SEEDS, iterations: int = ITERATIONS) -> Iterator[Line]:
    """Time a comparison on two workers of one thread each, against one worker.

    Each cluster runs a small comparison first, so that neither loading nor compiling is timed. On a
    machine that does other work the ratio says little.
    """
    try:
        from distributed import LocalCluster
    except ImportError:
        print("dask: left out, because the packages dask and distributed are not installed")
        return
    seconds, rows = {}, {}
    os.environ.update(THREADS)
    for workers in (2, 1):
        with LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR
        ) as cluster:
            where = {"scheduler": cluster.scheduler_address}
            compare.run(**COMPARISON, seeds=2, iterations=1_000, **where)
            start = time.perf_counter()
            result = compare.run(**COMPARISON, seeds=seeds, iterations=iterations, **where)
            seconds[workers] = time.perf_counter() - start
        rows[workers] = [{k: v for k, v in row.values().items() if k != "seconds"} for row in result.rows]
    ratio = seconds[1] / seconds[2]
    same = rows[1] == rows[2]
    yield Line(
        f"comparison, {len(rows[2])} cells, two Dask workers, {'same' if same else 'OTHER'} numbers",
        f"{seconds[2]:.1f} s",
        f"one worker {seconds[1]:.1f} s",
        ratio,
        "at least 1.7, same numbers",
        ratio >= 1.7 and same,
    )
