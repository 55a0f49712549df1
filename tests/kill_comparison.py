"""Kill the comparison again and again, and count what that costs: `killed` runs by itself, for tests and reports."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from small_comparison import values

from rlfd_gym import compare
from rlfd_gym.compare.cells import Row

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "compare.py"
OPTIONS = [
    *("--tasks", "inventory", "--methods", "rlfd-exact,rlfd-smd,lpal,cloning", "--alpha", "0.1,1"),
    *("--seeds", "3", "--iterations", "20000", "--jobs", "2"),
]


@dataclass(frozen=True)
class Counts:
    """What kills have done.

    Attributes:
        kills: how often the main process was killed while it ran.
        cells: how many cells there were at the end.
        lost: cells that were stored before a kill and not after it.
        damaged: files of cells that could not be read after a kill.
        left_behind: processes that outlived their main process by five seconds.
        different: cells whose numbers differ from those of a run that nobody killed.
    """

    kills: int
    cells: int
    lost: int
    damaged: int
    left_behind: int
    different: int


def killed(folder: Path, n_kills: int, seed: int = 0) -> Counts:
    """Kill a comparison `n_kills` times by SIGKILL at random times, let it finish, and count."""
    rng, out = random.Random(seed), folder / "killed"
    kills = lost = damaged = left = 0
    before: set[str] = set()
    while kills < n_kills:
        resume = (out / "results.json").exists()
        where = ["--resume", str(out)] if resume else [*OPTIONS, "--out", str(out)]
        process = subprocess.Popen(
            [sys.executable, str(SCRIPT), *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(rng.uniform(1.0, 12.0))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            kills += 1
            left += _alive_after(process.pid, 5.0)
        else:
            assert process.returncode == 0
            for path in sorted((out / "cells").iterdir())[::2]:  # finished already: make it work again
                path.unlink()
        now = set()
        for path in (out / "cells").glob("*.npz"):
            try:
                Row.load(path)
                now.add(path.name)
            except ValueError:
                damaged += 1
        lost += 0 if process.returncode == 0 else len(before - now)
        before = now
    end = subprocess.run([sys.executable, str(SCRIPT), "--resume", str(out)], capture_output=True, text=True)
    assert end.returncode == 0, end.stderr
    alone = subprocess.run([sys.executable, str(SCRIPT), *OPTIONS, "--out", str(folder / "alone")], capture_output=True)
    assert alone.returncode == 0
    ours, theirs = (values(compare.Comparison.load(path)) for path in (out, folder / "alone"))
    different = sum(one != other for one, other in zip(ours, theirs, strict=True))
    return Counts(kills, len(ours), lost, damaged, left, different)


def _alive_after(session: int, seconds: float) -> int:
    """Wait until a session has no process left, and return how many it has at the end."""
    end = time.monotonic() + seconds
    while (number := len(_processes(session))) and time.monotonic() < end:
        time.sleep(0.2)
    return number


def _processes(session: int) -> list[str]:
    found = subprocess.run(["ps", "-o", "pid=,stat=", "--sid", str(session)], capture_output=True, text=True)
    return [line for line in found.stdout.splitlines() if line.split()[1][0] != "Z"]
