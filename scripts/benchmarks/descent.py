"""Benchmarks of Algorithm 1, and of learning from draws alone."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

import numpy as np
import oracle_study
from plain_smd import plain_smd

from benchmarks.lines import Line, grid, grid_problem, take_turns
from benchmarks.memory import HERE
from rlfd_gym import RLfDProblem, Solution, noisy_expert, solve_exact, solve_sampled, solve_smd
from rlfd_gym.baselines import HullProblem
from rlfd_gym.compare.tasks import TASKS

MEMORY = """if True:
    import sys, gymnasium as gym, numpy as np, rlfd_gym
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=1000, width=1000).unwrapped
    n = env.mdp.n_pairs
    problem = rlfd_gym.RLfDProblem(env.mdp, np.full(n, 1 / n), env.cost, 1e-5)
    rlfd_gym.solve_smd(problem, n_iterations=1_000_000)
    sys.path.insert(0, sys.argv[1])
    from benchmarks.memory import peak_memory
    print(peak_memory())
"""


def smd() -> Iterator[Line]:
    """Time a step of SMD-RLfD against plain NumPy, its variants, and two jobs against one.

    Also measure how the time of a step grows with the problem, and the memory.
    """
    jobs = [
        _PlainSteps(grid_problem(10)),
        _SmdSteps(grid_problem(10), 400_000, "paper"),
        _SmdSteps(grid_problem(500), 4_000_000, "paper"),
        _SmdSteps(grid_problem(10), 400_000, "paper", record_every=400),
        _PlainSteps(grid_problem(10), basis=_basis(10)),
        _SmdSteps(HullProblem(grid_problem(10), _basis(10)), 400_000, "paper"),
        _SmdSteps(grid_problem(10), 400_000, "proximal"),
        _SmdSteps(grid_problem(500), 4_000_000, "proximal"),
    ]
    for _ in range(8):
        for job in jobs:
            job.take_turn()
    best = [job.seconds_per_step() for job in jobs]
    yield Line(
        "SMD-RLfD, 400 pairs, a step",
        f"{best[1] * 1e9:.0f} ns",
        f"NumPy {best[0] * 1e6:.0f} µs",
        best[0] / best[1],
        "at least 800 times faster",
        best[0] / best[1] >= 800,
    )
    yield Line(
        "SMD-RLfD, 1,000,000 pairs, a step",
        f"{best[2] * 1e9:.0f} ns",
        f"400 pairs {best[1] * 1e9:.0f} ns",
        best[2] / best[1],
        "at most 6",
        best[2] / best[1] <= 6,
    )
    yield Line(
        "SMD-RLfD, 400 pairs, a step with the gap every 400 steps",
        f"{best[3] * 1e9:.0f} ns",
        f"without {best[1] * 1e9:.0f} ns",
        best[3] / best[1],
        "at most 2",
        best[3] / best[1] <= 2,
    )
    yield Line(
        "SMD-H, 400 pairs, 3 basis costs, a step",
        f"{best[5] * 1e9:.0f} ns",
        f"NumPy {best[4] * 1e6:.0f} µs",
        best[4] / best[5],
        "at least 800 times faster",
        best[4] / best[5] >= 800,
    )
    yield Line(
        "SMD-RLfD, 400 pairs, a proximal step",
        f"{best[6] * 1e9:.0f} ns",
        f"the paper's {best[1] * 1e9:.0f} ns",
        best[6] / best[1],
        "at most 1.5",
        best[6] / best[1] <= 1.5,
    )
    yield Line(
        "SMD-RLfD, 1,000,000 pairs, a proximal step",
        f"{best[7] * 1e9:.0f} ns",
        f"400 pairs {best[6] * 1e9:.0f} ns",
        best[7] / best[6],
        "at most 6",
        best[7] / best[6] <= 6,
    )
    problem = grid_problem(10)
    four = partial(solve_smd, problem, n_iterations=10_000_000, n_runs=4, variant="paper")
    a, b = take_turns(lambda: four(n_jobs=2), four, turns=3)
    yield Line(
        "SMD-RLfD, four runs on two cores", f"{a:.1f} s", f"on one {b:.1f} s", b / a, "at least 1.7", b / a >= 1.7
    )
    command = [sys.executable, "-c", MEMORY, str(HERE)]
    gib = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 2**30
    yield Line(
        "SMD-RLfD, 4,000,000 pairs, peak memory of the process",
        f"{gib:.2f} GiB",
        "2 GiB",
        gib / 2,
        "below 1",
        gib < 2,
    )


def smd_gap() -> Iterator[Line]:
    """Compare the gap of `solve_smd` with that of the paper's variant after as many steps.

    The problems are those of the comparison: three tasks, three weights of the prior.
    """
    for name in ("inventory", "windy", "lake"):
        task = TASKS[name].make(0)
        for alpha in (0.01, 0.1, 1.0):
            problem = RLfDProblem(task.mdp, task.expert, task.prior, alpha)
            solutions: dict[str, Solution] = {}

            def solve(variant: str, problem: RLfDProblem = problem, solutions: dict[str, Solution] = solutions) -> None:
                solutions[variant] = solve_smd(problem, n_iterations=1_000_000, variant=variant)

            a, b = take_turns(lambda solve=solve: solve("proximal"), lambda solve=solve: solve("paper"), turns=2)
            ours, paper = (solutions[variant].duality_gap for variant in ("proximal", "paper"))
            value = solve_exact(problem).upper
            yield Line(
                f"{name}, α = {alpha:g}, gap after 1,000,000 steps",
                f"{ours:.2g}",
                f"the paper's {paper:.2g}",
                ours / paper,
                "at most 0.125",
                ours <= 0.125 * paper,
            )
            yield Line(
                f"{name}, α = {alpha:g}, gap and value",
                f"{ours:.2g}",
                f"value {value:.2g}",
                ours / value,
                f"at most 0.1, in {a / b:.2f} times the paper's time",
                ours <= 0.1 * value,
            )


def sampled() -> Iterator[Line]:
    """Time how long Taxi, of which only draws are known, takes to be certified to 5% of its value."""
    mdp, cost, alpha = oracle_study.taxi()
    problem = RLfDProblem(mdp, noisy_expert(mdp, cost, oracle_study.NOISE), cost, alpha)
    box = oracle_study.simulated(problem)
    begun = time.perf_counter()
    solution = solve_sampled(box, relative=0.05, calls=60_000_000)
    spent = time.perf_counter() - begun
    certified, value = solution.duality_gap, solve_exact(problem).lower
    yield Line(
        "Taxi from draws alone, certified to 5% of its value",
        f"{spent:.0f} s, {solution.stats['calls'] / 1e6:.0f} M draws",
        f"gap / value {certified / value:.3f}",
        spent / 60,
        "at most 1: a minute",
        spent <= 60 and certified <= 0.05 * value,
    )


class _SmdSteps:
    """Time solves with few and with many steps.

    The difference is the time of the steps, without the set-up.
    """

    def __init__(self, problem: RLfDProblem, window: int, variant: str, record_every: int | None = None) -> None:
        largest = 2 * problem.n_pairs / (1 - problem.discount)
        names = (problem.theorem if variant == "paper" else problem.proximal_theorem).names
        steps = (*[1e-2] * (len(names) - 1), 0.5 / largest)  # the largest η_μ that the theorem allows
        self.window, self.few, self.many = window, np.inf, np.inf
        how = {"step_size": steps, "record_every": record_every, "variant": variant, "repair": False}
        start = solve_smd(problem, n_iterations=10_000, **how)
        self.solve = partial(solve_smd, problem, initial=start, **how)

    def take_turn(self) -> None:
        few, many = take_turns(
            lambda: self.solve(n_iterations=4096), lambda: self.solve(n_iterations=4096 + self.window), turns=1
        )
        self.few, self.many = min(self.few, few), min(self.many, many)

    def seconds_per_step(self) -> float:
        return (self.many - self.few) / self.window


class _PlainSteps:
    """Time the plain NumPy implementation."""

    def __init__(self, problem: RLfDProblem, window: int = 2000, basis: np.ndarray | None = None) -> None:
        n = problem.n_pairs
        first = np.zeros(n) if basis is None else np.full(basis.shape[1], 1 / basis.shape[1])
        self.arguments = problem, 1e-2, 1e-2, (first, np.zeros(problem.n_states), np.full(n, 1 / n)), window
        self.window, self.best, self.basis = window, np.inf, basis

    def take_turn(self) -> None:
        start = time.perf_counter()
        plain_smd(*self.arguments, np.random.default_rng(0), self.basis)
        self.best = min(self.best, time.perf_counter() - start)

    def seconds_per_step(self) -> float:
        return self.best / self.window


def _basis(side: int) -> np.ndarray:
    """Return the costs of obstacles, of goals and of all pairs alike, over the pairs of a grid."""
    cost = grid(side).cost
    return np.column_stack([np.maximum(cost, 0), np.minimum(cost, 0), np.ones_like(cost)])
