"""The command: its options, its output, Ctrl-C and a cluster."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_comparison import values

from rlfd_gym import compare

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "compare.py"


def command(*arguments, cwd):
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], cwd=cwd, capture_output=True, text=True)


def test_the_command_lists_tasks_and_methods_and_names_the_nearest_match(tmp_path):
    listed = command("--list", cwd=tmp_path)
    assert listed.returncode == 0
    for name in (*compare.TASKS, *compare.METHODS):
        assert f"  {name} " in listed.stdout
    wrong = command("--tasks", "wind", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'windy'?" in wrong.stderr
    (tmp_path / "file").touch()
    nowhere = command("--quick", "--out", "file/here", cwd=tmp_path)
    assert nowhere.returncode == 2
    assert nowhere.stderr.splitlines()[-1].endswith("file is a file, expected a folder")


def test_the_command_prints_tables_and_names_the_page(tmp_path):
    options = ["--quick", "--tasks", "inventory", "--methods", "rlfd-exact,lpal", "--jobs", "1"]
    result = command(*options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "RLfD exact α=0.1" in result.stdout
    assert "\x1b" not in result.stdout
    assert "10 of 10 cells" in result.stderr
    (page,) = re.findall(r"report: (.*)", result.stdout)
    assert (tmp_path / page).is_file()


@pytest.mark.slow
def test_ctrl_c_stops_the_command_and_a_second_command_continues(tmp_path):
    options = ["--tasks", "inventory", "--methods", "rlfd-smd,lpal", "--iterations", "3000000", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *options, "--out", "here"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    stored = tmp_path / "here" / "cells"
    while not (stored.is_dir() and len(list(stored.iterdir())) > 5):
        assert process.poll() is None
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "continue with --resume here" in errors
    kept = {path.name: path.stat().st_mtime_ns for path in stored.iterdir()}
    assert command("--resume", "here", "--jobs", "2", cwd=tmp_path).returncode == 0
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in stored.iterdir()}.items()
    assert (tmp_path / "here" / "report.html").is_file()


@pytest.mark.slow
def test_the_command_runs_its_cells_on_a_dask_cluster(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = ["--quick", "--tasks", "inventory", "--methods", "rlfd-exact", "--out"]
    assert command(*options, "here", "--jobs", "1", cwd=tmp_path).returncode == 0
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        there = command(*options, "there", "--scheduler", cluster.scheduler_address, cwd=tmp_path)
    assert there.returncode == 0, there.stderr
    assert values(compare.Comparison.load(tmp_path / "there")) == values(compare.Comparison.load(tmp_path / "here"))


def test_the_command_says_what_a_scheduler_needs(tmp_path):
    code = (
        f"import sys, runpy; sys.modules['distributed'] = None; sys.argv[1:] = ['--scheduler', 'tcp://x']; "
        f"runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 2
    assert 'a scheduler needs dask: pip install "rlfd-gym[cluster]"' in result.stderr
