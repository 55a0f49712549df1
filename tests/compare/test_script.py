"""The command: its options, its output, Ctrl-C and a cluster."""

from __future__ import annotations

import os
import re
import runpy
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


@pytest.fixture
def ended(tmp_path, monkeypatch, capsys):
    """Run the command in this process, in an empty folder: (exit code, output, errors)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
        with pytest.raises(SystemExit) as end:
            runpy.run_path(str(SCRIPT), run_name="__main__")
        return end.value.code, *capsys.readouterr()

    return run


def test_the_command_lists_tasks_and_methods_and_names_the_nearest_match(ended, tmp_path):
    code, listed, _ = ended("--list")
    assert code == 0
    for name in (*compare.TASKS, *compare.METHODS):
        assert f"  {name} " in listed
    code, _, errors = ended("--tasks", "wind")
    assert code == 2
    assert "did you mean 'windy'?" in errors
    (tmp_path / "file").touch()
    code, _, errors = ended("--quick", "--out", "file/here")
    assert code == 2
    assert errors.splitlines()[-1].endswith("file is a file, expected a folder")


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


def test_the_command_says_what_a_scheduler_needs(ended, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, errors = ended("--scheduler", "tcp://x")
    assert code == 2
    assert 'a scheduler needs dask: pip install "dask>=' in errors


def test_the_command_ends_with_a_word_of_resume_and_not_with_zero_where_a_method_fails(tmp_path):
    code = f"""if True:
        import runpy, sys
        from rlfd_gym import compare
        def solve(lesson):
            raise RuntimeError("cannot cache function")
        compare.METHODS["mine"] = compare.Method("mine", "my own", solve)
        sys.argv[1:] = "--tasks inventory --methods mine --jobs 1 --out here".split()
        runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
    """
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert "failed: RuntimeError: cannot cache function; 4 of " in result.stderr
    assert result.stderr.rstrip().endswith("continue with --resume here")
    assert "Traceback" not in result.stderr
