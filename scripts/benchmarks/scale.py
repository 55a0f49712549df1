"""Benchmarks of how the cost of exact solutions grows: structures × discounts × α × experts, and 10⁷ pairs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from structures import KINDS, NOISE, learning_problem, world

from benchmarks.lines import Line, expert_of
from benchmarks.memory import peak_memory
from rlfd_gym import RLfDProblem, noisy_expert, solve_exact
from rlfd_gym.beliefs import Prices
from rlfd_gym.problem.solution import Solution
from rlfd_gym.report import write
from rlfd_gym.solvers.incumbent import to_a_percent

DISCOUNTS, ALPHAS, SHOWN = (0.9, 0.99, 0.999), (1e-4, 0.005, 0.1, 1.0, 10.0), (None, 100, 10_000)
SIZES, LARGEST = (10_000, 100_000, 1_000_000), 10_000_000
SCALED_KINDS, SCALED_BELIEFS = ("grid", "garnet5"), ("NearPrior", "Prices")
SCALED_DISCOUNT, SCALED_ALPHA = 0.9, 0.005
EXPERTS_PRICES = (0.3, 1.0, 0.7)  # what the expert goes by; each is known to be in [0.4, 1]
MOST_GIB = 12.0  # of memory, for ten million pairs
GIBS = (0.2, 0.5, 1, 2, 5)  # that the axis of the memory names
CHILD = "from benchmarks.scale import child; child(*__import__('sys').argv[1:])"


def sweep(n_pairs: int) -> Iterator[Line]:
    """Solve problems of every structure, discount, α and expert; a line is for the slowest α, and the largest gap.

    The target at a million pairs is a minute by the clock for γ up to 0.99 and five for 0.999; other sizes in
    proportion.
    """
    solve_exact(learning_problem("grid", 2_000, 0.9, 0.1), "matrix-free")  # compile
    for kind in KINDS:
        for discount in DISCOUNTS:
            most = (60.0 if discount <= 0.99 else 300.0) * n_pairs / 1e6
            for shown in SHOWN:
                problem = learning_problem(kind, n_pairs, discount, 1.0, shown)
                cases = []
                for alpha in ALPHAS:
                    start = time.perf_counter()
                    solution, worked = timed(problem.with_alpha(alpha), 3 * most)
                    seconds = time.perf_counter() - start
                    cases.append((seconds, worked, alpha, share_of(problem.with_alpha(alpha), solution)))
                seconds, worked, alpha, _ = max(cases)
                share = max(share for *_, share in cases)
                yield Line(
                    f"{kind}, {problem.n_pairs:,} pairs, γ {discount}, {expert_of(shown)}, "
                    f"slowest of {len(ALPHAS)} α: {alpha:g}, largest gap {share:.2f}%",
                    f"{seconds:.1f} s ({worked:.0f} s of processors)",
                    f"{most:g} s",
                    seconds / most,
                    "at most 1, gaps at most 1%",
                    seconds <= most and share <= 1.001,
                )


def timed(problem: RLfDProblem, limit: float | None = None) -> tuple[Solution, float]:
    """Return the solution, and the seconds that all processors took together.

    Small programs would be solved by another process, whose seconds are not seen: the matrix-free method is asked for.
    """
    method = "auto" if isinstance(problem.belief, Prices) else "matrix-free"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a gap that is not as promised: it is in the line
        start = time.process_time()
        solution = solve_exact(problem, method, time_limit=limit)
        return solution, time.process_time() - start


def share_of(problem: RLfDProblem, solution: Solution) -> float:
    """Return the duality gap as per cent of what the promise takes to be the whole."""
    return solution.duality_gap / to_a_percent(problem)(solution.upper, solution.lower)


def ten_million(folder: Path) -> Iterator[Line]:
    """Solve problems with ten million pairs, each in a process of its own: seconds and peak memory.

    Here and below, what is in `folder` is not measured again.
    """
    for kind in SCALED_KINDS:
        for belief in SCALED_BELIEFS:
            found, before = (measured(kind, belief, size, folder) for size in (LARGEST, SIZES[-1]))
            yield Line(
                f"{kind}, {belief}, {found['n_pairs']:,} pairs, γ {SCALED_DISCOUNT}, gap {found['share']:.2f}%",
                f"{found['seconds']:.0f} s, {found['memory']:.1f} GiB",
                f"{before['n_pairs']:,} pairs {before['seconds']:.1f} s",
                found["seconds"] / before["seconds"],
                f"gap at most 1%, {MOST_GIB:.0f} GiB",
                found["share"] <= 1.001 and found["memory"] <= MOST_GIB,
            )


def scaling(folder: Path) -> Iterator[Line]:
    """Measure how the seconds grow from ten thousand to ten million pairs."""
    for kind in SCALED_KINDS:
        for belief in SCALED_BELIEFS:
            rows = [measured(kind, belief, size, folder) for size in (*SIZES, LARGEST)]
            slope = slope_of(rows)
            yield Line(
                f"{kind}, {belief}, γ {SCALED_DISCOUNT}: seconds ~ pairs^{slope:.2f}",
                f"{rows[-1]['n_pairs']:,} pairs {rows[-1]['seconds']:.0f} s",
                f"{rows[0]['n_pairs']:,} pairs {rows[0]['seconds']:.2f} s",
                slope,
                "a slope of at most 1.3",
                slope <= 1.3,
            )


def slope_of(rows: list[dict[str, float]]) -> float:
    """Return the slope of the logarithm of the seconds in that of the pairs."""
    return float(np.polyfit(*(np.log([row[name] for row in rows]) for name in ("n_pairs", "seconds")), 1)[0])


def measured(kind: str, belief: str, n_pairs: int, folder: Path) -> dict[str, float]:
    """Return what `child` prints in a process of its own, or has printed before."""
    path = folder / f"{kind}-{belief}-{n_pairs}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    command = [sys.executable, "-c", CHILD, kind, belief, str(n_pairs)]
    here = Path(__file__).resolve().parent.parent
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=here)
    write(path, done.stdout.encode())
    return dict(json.loads(done.stdout))


def child(kind: str, belief: str, n_pairs: str) -> None:
    """Solve one problem, and print the pairs, the seconds of the processors, the peak memory in GiB and the gap."""
    solve_exact(learning_problem("grid", 2_000, 0.9, 0.1), "matrix-free")  # compile
    problem = _problem(kind, belief, int(n_pairs))
    solution, seconds = timed(problem)
    memory = peak_memory() / 2**30
    share = share_of(problem, solution)
    print(json.dumps({"n_pairs": problem.n_pairs, "seconds": seconds, "memory": memory, "share": share}))


def _problem(kind: str, belief: str, n_pairs: int) -> RLfDProblem:
    """Return a problem whose belief is near the prior, or has a price for each of three groups of pairs."""
    mdp, cost, prior = world(kind, n_pairs, SCALED_DISCOUNT)
    if belief == "NearPrior":
        return RLfDProblem(mdp, noisy_expert(mdp, cost, NOISE), prior, SCALED_ALPHA)
    group = np.random.default_rng(1).integers(3, size=mdp.n_pairs)
    features = cost[:, None] * (group[:, None] == np.arange(3))
    expert = noisy_expert(mdp, features @ np.array(EXPERTS_PRICES), NOISE)
    return RLfDProblem(mdp, expert, belief=Prices(features, np.full(3, 0.4), np.ones(3)))


def draw(path: Path, folder: Path) -> str:
    """Draw how the seconds and the memory grow, and return a section for the page."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), constrained_layout=True)
    rows = []
    for kind in SCALED_KINDS:
        for belief in SCALED_BELIEFS:
            found = [measured(kind, belief, size, folder) for size in (*SIZES, LARGEST)]
            pairs = [row["n_pairs"] for row in found]
            label = f"{kind}, {belief}: slope {slope_of(found):.2f}"
            style = {"marker": "o" if kind == "grid" else "s", "linestyle": "-" if belief == "NearPrior" else "--"}
            axes[0].loglog(pairs, [row["seconds"] for row in found], label=label, **style)
            axes[1].loglog(pairs, [row["memory"] for row in found], label=f"{kind}, {belief}", **style)
            rows += [
                f"| {kind} | {belief} | {row['n_pairs']:,} | {row['seconds']:.3g} | {row['memory']:.2f} "
                f"| {row['share']:.2f}% |"
                for row in found
            ]
    for axis, title in zip(axes, ("seconds of all processors", "peak memory of the process, GiB"), strict=True):
        axis.set_xlabel("pairs")
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=8)
    axes[1].set_yticks(GIBS, [f"{gib:g}" for gib in GIBS])
    axes[1].minorticks_off()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return SECTION.format(picture=path.name, discount=SCALED_DISCOUNT, alpha=SCALED_ALPHA, rows="\n".join(rows))


SECTION = """
## From ten thousand to ten million pairs

`solve_exact` with γ = {discount} on a grid and on a random graph with five next states a pair: `NearPrior` with
α = {alpha} by the matrix-free method, and `Prices` with three ranges by cutting planes. Each is solved in a process of
its own. The gap is in per cent of the part of the value that can change; the memory is that of the whole process, with
the tables and what building them took.

![Seconds and memory against the number of pairs, on logarithmic axes]({picture})

| MDP | belief | pairs | seconds | GiB | gap |
|---|---|---:|---:|---:|---:|
{rows}
"""
