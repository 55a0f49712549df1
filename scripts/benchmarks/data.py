"""Benchmarks of what comes in and goes out: reward nets and long logs."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.lines import Line, grid, take_turns
from benchmarks.memory import HERE


def reward_net() -> Iterator[Line]:
    """Time the fit of a reward net of the user's own, against the same fit with torch's own number of threads."""
    import torch
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer.reward import fit_reward_net

    env, rng = grid(10), np.random.default_rng(0)
    mdp, p = env.mdp, env.mdp.transitions
    rows = np.repeat(np.arange(mdp.n_pairs), np.diff(p.indptr))
    transitions = mdp.pair_states[rows], mdp.pair_actions[rows], p.indices.astype(np.int64), p.data / p.data.sum()

    def ours() -> object:
        torch.manual_seed(0)
        net = BasicRewardNet(env.observation_space, env.action_space)
        return fit_reward_net(net, mdp.table(rng.uniform(-1, 1, mdp.n_pairs)), transitions, rng)

    def threads() -> object:
        with mock.patch("torch.set_num_threads"):  # so that the fit cannot ask for one
            return ours()

    seconds, plain = take_turns(ours, threads, 2)
    yield Line(
        f"fit of a reward net, {torch.get_num_threads()} threads as torch has it", f"{seconds:.2f} s",
        f"{plain:.2f} s", seconds / plain, "<= 1.2", seconds <= 1.2 * plain,
    )  # fmt: skip


LOG_ROWS = (1_000_000, 10_000_000)
CHILD = """
import sys, time
start = time.process_time()
{act}
seconds = time.process_time() - start
sys.path.insert(0, sys.argv[3])
from benchmarks.memory import peak_memory
print(seconds, peak_memory())
"""
READ = """
from rlfd_gym import read_log
names = {"state": "stock", "action": "order", "episode": "shop", "time": "week", "columns": ["sold"]}
log = read_log(sys.argv[1], discount=0.9, **names)
assert log.report.n_used + log.report.n_last == int(sys.argv[2])
"""
LEARN = """
import contextlib, io
from rlfd_gym.command import main
said = ["learn", sys.argv[1], "--state", "stock", "--action", "order", "--episode", "shop", "--time", "week"]
said += ["--price", "holding=0.3..3", "--feature", "holding=stock+order", "--price", "buying=4", "--feature"]
said += ["buying=order", "--price", "selling=10", "--feature", "selling=-sold", "--out", sys.argv[1] + ".out"]
with contextlib.redirect_stdout(io.StringIO()):
    assert main(said) == 0
"""
PANDAS = """
import pandas
assert len(pandas.read_csv(sys.argv[1])) == int(sys.argv[2])
"""


def logs() -> Iterator[Line]:
    """Measure a long log: seconds of the processor and peak memory, against pandas, which only reads it.

    The peak of ten times as many rows is compared with that of the fewer ones.
    """
    peaks: dict[str, list[float]] = {"read_log": [], "rlfd learn": []}
    for n_rows in LOG_ROWS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "log.csv"
            _write_log(path, n_rows)
            theirs, their_peak = _in_child(PANDAS, path, n_rows)
            for (name, most), act in zip({"read_log": 250, "rlfd learn": 350}.items(), (READ, LEARN), strict=True):
                ours, peak = _in_child(act, path, n_rows)
                peaks[name].append(peak)
                yield Line(
                    f"{name}, {n_rows:,} rows of CSV without next states",
                    f"{ours:.1f} s {peak:.0f} MB",
                    f"pandas {theirs:.1f} s {their_peak:.0f} MB",
                    ours / theirs,
                    f"at most {most} MB",
                    peak <= most,
                )
    for name, (few, many) in peaks.items():
        yield Line(
            f"{name}, peak memory with ten times as many rows",
            f"{many:.0f} MB",
            f"{few:.0f} MB",
            many / few,
            "at most 2",
            many <= 2 * few,
        )


def _in_child(act: str, path: Path, n_rows: int) -> tuple[float, float]:
    """Return the seconds of the processor and the peak memory, in MB, of a process that does this."""
    command = [sys.executable, "-c", CHILD.replace("{act}", act), str(path), str(n_rows), str(HERE)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak / 2**20


def _write_log(path: Path, n_rows: int, n_weeks: int = 1000) -> None:
    """Write a log of many shops, a part at a time: what is on the shelf, ordered, and sold in a week."""
    rng = np.random.default_rng(0)
    with open(path, "w") as file:
        file.write("shop,week,stock,order,sold\n")
        for shop in range(n_rows // n_weeks):
            stock, orders, demand = 0, rng.integers(0, 7, n_weeks).tolist(), rng.poisson(3.0, n_weeks).tolist()
            for week, (order, asked) in enumerate(zip(orders, demand, strict=True)):
                order = min(order, 20 - stock)
                sold = min(stock + order, asked)
                file.write(f"shop {shop},{week},{stock},{order},{sold}\n")
                stock += order - sold
