"""Workers that die, machines that differ: what is lost is named, everything else is kept."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from small_comparison import TINY, values

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import cells, provenance, running

CHOSEN = TINY | {"methods": ["mine", "cloning"]}


@pytest.fixture
def deadly(monkeypatch, tmp_path):
    """A method whose second seed kills its process, unless the file that it returns exists."""
    healed = tmp_path / "healed"

    def solve(lesson):
        if lesson.mdp.n_states > 4 and isinstance(lesson.shown, list) and not os.path.exists(str(healed)):
            os.kill(os.getpid(), signal.SIGKILL)
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    return healed


def check_what_is_lost(deadly, out, **where):
    """Two of the cells kill their workers; the others are stored, and resuming adds these two."""
    with pytest.raises(compare.CellError) as caught:
        compare.run(**CHOSEN, out=out, **where)
    message = str(caught.value)
    assert message.startswith("workers died, and with them 2 cells:\n  Cell(task='inventory', method='mine'")
    assert message.endswith(f"8 of 10 cells finished; continue with --resume {out}")
    assert len(list((out / "cells").iterdir())) == 8
    deadly.touch()
    again = compare.run(out=out, resume=True)
    assert values(again) == values(compare.run(**CHOSEN))


# A process is killed while it may still be starting; what loky's own thread makes of that says nothing about the rows.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_dies_costs_its_cell_only(deadly, tmp_path, no_page):
    check_what_is_lost(deadly, tmp_path / "out", jobs=2)


# A process is killed while it may still be starting; what loky's own thread makes of that says nothing about the rows.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_method_in_error_says_how_to_continue(tmp_path, monkeypatch):
    def solve(lesson):
        raise ZeroDivisionError("by nought")

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    with pytest.raises(compare.CellError, match=r"failed: ZeroDivisionError: by nought; 4 of 10 cells .* --resume"):
        compare.run(**CHOSEN, out=tmp_path)


def test_workers_of_another_version_are_refused_by_name():
    theirs = running._made_with() | {"numpy": "1.0"}
    with pytest.raises(compare.ProvenanceError, match=r"the worker tcp://w has other versions: numpy 1.0, here"):
        running._check_workers({"tcp://w": theirs})
    with pytest.raises(compare.ProvenanceError, match=r"the worker tcp://w cannot run cells: ModuleNotFoundError"):
        running._check_workers({"tcp://w": ModuleNotFoundError("No module named 'rlfd_gym'")})


def test_a_row_of_a_worker_with_other_code_is_not_believed():
    cell = cells.Cell("inventory", "expert", None, "exact", 0)
    row = cells.run_cell(compare.TASKS["inventory"], compare.METHODS["expert"], cell, 1, 1)
    assert running._checked(row, "tcp://w") is row
    with pytest.raises(compare.ProvenanceError, match="the worker tcp://w has other versions: code other, here"):
        running._checked(replace(row, code={"digest": "other"}), "tcp://w")


@pytest.mark.slow
def test_a_worker_of_a_cluster_that_dies_costs_its_cell_only(deadly, tmp_path, no_page):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        check_what_is_lost(deadly, tmp_path / "out", scheduler=cluster.scheduler_address)


@pytest.mark.slow
def test_a_cluster_of_another_version_is_refused_before_the_work(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    ours = provenance.versions() | {"numba": "0.1"}
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        monkeypatch.setattr(provenance, "versions", lambda imitation=True: ours)
        with pytest.raises(compare.ProvenanceError, match=r"the worker tcp://.* has .* numba .*, here 0.1"):
            compare.run(**TINY, out=tmp_path, scheduler=cluster.scheduler_address)
    assert not list((tmp_path / "cells").iterdir())


@pytest.mark.slow
def test_a_lost_scheduler_is_named_with_the_way_to_continue(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    pids = tmp_path / "pid"

    def solve(lesson):
        if lesson.mdp.n_states > 4:
            os.kill(int(pids.read_text()), signal.SIGKILL)
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    scheduler = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = next(line for line in scheduler.stderr if "Scheduler at:" in line)
    (address,) = re.findall(r"tcp://\S+", line)
    pids.write_text(str(scheduler.pid))
    worker = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"],
        stderr=subprocess.DEVNULL,
    )
    try:
        with pytest.raises(ConnectionError, match=rf"the scheduler {address} was lost .*continue with --resume"):
            compare.run(**CHOSEN, out=tmp_path / "out", scheduler=address)
    finally:
        for process in (worker, scheduler):
            process.terminate()
            process.wait()
        scheduler.stderr.close()
