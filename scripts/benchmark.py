"""Measure every performance claim as a ratio to a plain baseline in the same run.

    python scripts/benchmark.py              # all of them
    python scripts/benchmark.py --only forward
    python scripts/benchmark.py --docs docs  # also docs/performance.md

Each line says what was timed, our time, the baseline's time, their ratio, and the target that the
ratio has to meet. The library and the baseline take turns, and the best of several turns counts,
so that other work on the machine disturbs both equally.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from unittest import mock

import gymnasium as gym
import numpy as np
import oracle_study
import scipy.sparse as sp
from plain_smd import plain_smd
from structures import KINDS, learning_problem

from rlfd_gym import RLfDProblem, Solution, alpha_path, noisy_expert, solve_exact, solve_sampled, solve_smd
from rlfd_gym.baselines import HullProblem
from rlfd_gym.beliefs import Intervals, Prices
from rlfd_gym.compare.tasks import TASKS
from rlfd_gym.envs import InventoryEnv, TabularEnv, WindyGridworldEnv
from rlfd_gym.report import run_script, write

PAGE = """# Performance

Written by `python scripts/benchmark.py --docs docs` (`make bench` prints the same); every number on this page comes
from it.

Each line times the library and a plain baseline in the same run, by turns, and the best of several turns counts, so
that other work on the machine disturbs both equally. Ratios matter, times are those of one machine: {cores} cores,
{machine}, Python {python}. The last column is the target that the ratio had to meet.

| what | ours | baseline | ratio | target |
|---|---:|---:|---:|---|
{rows}
"""


@dataclass(frozen=True)
class Line:
    """One measured claim."""

    claim: str
    ours: str
    baseline: str
    ratio: float
    target: str
    met: bool


def main() -> None:
    """Print the chosen lines as they are measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}")
    parser.add_argument("--docs", type=Path, metavar="DIR", help="also write performance.md there; not with --only")
    options = parser.parse_args()
    name = options.only
    if name is not None and options.docs is not None:
        parser.error("--docs needs all benchmarks, not --only one")
    if name is not None and name not in BENCHMARKS:
        near = get_close_matches(name, BENCHMARKS, n=1)
        parser.error(f"unknown benchmark {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    chosen = BENCHMARKS if name is None else {name: BENCHMARKS[name]}
    print(f"{'what':<58}{'ours':>16}{'baseline':>22}{'ratio':>10}  target")
    lines = []
    for measure in chosen.values():
        for line in measure():
            lines.append(line)
            verdict = "met" if line.met else "MISSED"
            print(
                f"{line.claim:<58}{line.ours:>16}{line.baseline:>22}{line.ratio:>10.3g}  {line.target} ({verdict})",
                flush=True,
            )
    if options.docs is not None:
        write(options.docs / "performance.md", page(lines).encode())
        print(f"\nwritten: {options.docs / 'performance.md'}")


def page(lines: list[Line]) -> str:
    """Return the page of documentation."""
    rows = "\n".join(
        f"| {line.claim} | {line.ours} | {line.baseline} | {line.ratio:.3g} "
        f"| {line.target}, {'met' if line.met else 'missed'} |"
        for line in lines
    )
    return PAGE.format(rows=rows, cores=os.cpu_count(), machine=platform.machine(), python=platform.python_version())


def forward() -> Iterator[Line]:
    """Time `mdp.optimal` with a million pairs.

    The baseline is QuantEcon's modified policy iteration, to the same accuracy.
    """
    from quantecon.markov import DiscreteDP

    _grid(60).mdp.optimal(_grid(60).cost)  # compile
    for discount in (0.7, 0.95):
        env = _grid(500, discount)
        mdp = env.mdp
        program = DiscreteDP(-env.cost, sp.csr_matrix(mdp.transitions), mdp.discount, mdp.pair_states, mdp.pair_actions)
        epsilon = 2e-9 / (1 - discount)  # QuantEcon's values are not normalised; its result is accurate to epsilon/2

        def quantecon(program: DiscreteDP = program, epsilon: float = epsilon) -> object:
            return program.solve(method="mpi", epsilon=epsilon, max_iter=10**6)

        def ours(env: TabularEnv = env) -> object:
            return env.mdp.optimal(env.cost)

        a, b = _take_turns(ours, quantecon, turns=3)
        yield Line(
            f"optimal policy, {mdp.n_pairs:,} pairs, discount {discount}, to 1e-9",
            f"{a:.2f} s",
            f"QuantEcon {b:.2f} s",
            a / b,
            "at most 2",
            a / b <= 2,
        )


def build() -> Iterator[Line]:
    """Time building the tables of a large grid, against filling them pair by pair in Python."""

    def large() -> object:
        return _grid(1000)

    def by_pairs(side: int = 60) -> object:
        rows: dict[tuple[int, int], float] = {}
        moves = ((1, 0), (-1, 0), (0, -1), (0, 1))
        for state in range(side * side):
            for action, (dr, dc) in enumerate(moves):
                for chance, drift in ((0.8, 0), (0.2, -1)):
                    r, c = state // side + dr, state % side + dc + drift
                    to = r * side + c if 0 <= r < side and 0 <= c < side else state
                    key = (4 * state + action, to)
                    rows[key] = rows.get(key, 0.0) + chance
        pairs, states = zip(*rows, strict=True)
        return sp.csr_array((list(rows.values()), (pairs, states)), shape=(4 * side * side, side * side))

    a, b = _take_turns(large, by_pairs, turns=3)
    per_pair, plain = a / 4e6, b / (4 * 60 * 60)
    yield Line(
        "building a 1000 x 1000 grid (4 million pairs), per pair",
        f"{per_pair * 1e9:.0f} ns ({a:.1f} s)",
        f"Python loop {plain * 1e9:.0f} ns",
        plain / per_pair,
        "at least 5",
        plain / per_pair >= 5,
    )


def oracle() -> Iterator[Line]:
    """Time `sample_next`, against drawing from the transition matrix row by row."""
    rng = np.random.default_rng(0)
    for name in ("rlfd_gym/Inventory-v0", "rlfd_gym/WindyGridworld-v0"):
        env = _unwrapped(name)
        mdp = env.mdp
        pairs = rng.integers(mdp.n_pairs, size=1_000_000)
        states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
        dense, few = mdp.transitions.toarray(), pairs[:2000]

        def ours(env: TabularEnv = env, states: object = states, actions: object = actions) -> object:
            return env.sample_next(states, actions, rng)

        def plain(dense: np.ndarray = dense, few: np.ndarray = few) -> object:
            return [rng.choice(dense.shape[1], p=dense[pair]) for pair in few]

        a, b = _take_turns(ours, plain, turns=5)
        rate, plain_rate = 1e6 / a, len(few) / b
        yield Line(
            f"transition oracle of {name.removeprefix('rlfd_gym/')}, draws per second",
            f"{rate / 1e6:.0f} million",
            f"choice(p=row) {plain_rate:,.0f}",
            rate / plain_rate,
            "at least 100, and a million a second",
            rate / plain_rate >= 100 and rate >= 1e6,
        )


def smd() -> Iterator[Line]:
    """Time a step of SMD-RLfD against plain NumPy, its variants, and two jobs against one.

    Also measure how the time of a step grows with the problem, and the memory.
    """
    jobs = [
        _PlainSteps(_learning_problem(10)),
        _SmdSteps(_learning_problem(10), 400_000, "paper"),
        _SmdSteps(_learning_problem(500), 4_000_000, "paper"),
        _SmdSteps(_learning_problem(10), 400_000, "paper", record_every=400),
        _PlainSteps(_learning_problem(10), basis=_basis(10)),
        _SmdSteps(HullProblem(_learning_problem(10), _basis(10)), 400_000, "paper"),
        _SmdSteps(_learning_problem(10), 400_000, "proximal"),
        _SmdSteps(_learning_problem(500), 4_000_000, "proximal"),
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
    problem = _learning_problem(10)
    four = partial(solve_smd, problem, n_iterations=10_000_000, n_runs=4, variant="paper")
    a, b = _take_turns(lambda: four(n_jobs=2), four, turns=3)
    yield Line(
        "SMD-RLfD, four runs on two cores", f"{a:.1f} s", f"on one {b:.1f} s", b / a, "at least 1.7", b / a >= 1.7
    )
    peak = int(subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True).stdout)
    gib = peak / 2**20
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

            a, b = _take_turns(lambda solve=solve: solve("proximal"), lambda solve=solve: solve("paper"), turns=2)
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


def path() -> Iterator[Line]:
    """Time thirty exact solutions along α, including the search for both ends of the path.

    The baseline is as many forward problems solved by HiGHS.
    """
    problem = _learning_problem(10)
    a, b = _take_turns(
        lambda: alpha_path(problem),
        lambda: [problem.mdp.optimal(problem.prior, method="linear-program") for _ in range(30)],
        turns=3,
    )
    yield Line("30 points of the α path, 400 pairs", f"{a:.2f} s", f"HiGHS {b:.2f} s", a / b, "at most 2", a / b <= 2)


MEMORY = """if True:
    import resource, gymnasium as gym, numpy as np, rlfd_gym
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=1000, width=1000).unwrapped
    n = env.mdp.n_pairs
    problem = rlfd_gym.RLfDProblem(env.mdp, np.full(n, 1 / n), env.cost, 1e-5)
    rlfd_gym.solve_smd(problem, n_iterations=1_000_000)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def _learning_problem(side: int, discount: float = 0.7, alpha: float = 0.005) -> RLfDProblem:
    """Return a grid whose expert errs in 3 of 10 moves.

    Its prior knows a random half of the obstacles and goals.
    """
    env = _grid(side, discount)
    return RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), env.partial_prior(0.5, seed=0), alpha)


def _basis(side: int) -> np.ndarray:
    """Return the costs of obstacles, of goals and of all pairs alike, over the pairs of a grid."""
    cost = _grid(side).cost
    return np.column_stack([np.maximum(cost, 0), np.minimum(cost, 0), np.ones_like(cost)])


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
        few, many = _take_turns(
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


def exact() -> Iterator[Line]:
    """Time `solve_exact` with 40,000 pairs.

    The baseline is HiGHS, which only solves the *forward* linear program of the same MDP.
    """
    env, problem = _grid(100), _learning_problem(100)

    def highs() -> object:
        return env.mdp.optimal(env.cost, method="linear-program")

    solutions: list[Solution] = []
    a, b = _take_turns(lambda: solutions.append(solve_exact(problem)), highs, turns=2)
    gap = solutions[-1].duality_gap
    yield Line(
        f"{solutions[-1].method}, {env.mdp.n_pairs:,} pairs, gap {gap:.0e}",
        f"{a:.2f} s",
        f"HiGHS forward {b:.2f} s",
        a / b,
        "at most 0.5, gap at most 1e-6",
        a / b <= 0.5 and gap <= 1e-6,
    )


def exact_large() -> Iterator[Line]:
    """Time the matrix-free method against PIQP on the same problems, and on a million pairs."""
    solve_exact(_learning_problem(30, 0.95), "matrix-free")  # compile
    for discount in (0.7, 0.95):
        problem = _learning_problem(250, discount)
        solutions: list[Solution] = []

        def ours(problem: RLfDProblem = problem, solutions: list[Solution] = solutions) -> None:
            solutions.append(solve_exact(problem))

        def piqp(problem: RLfDProblem = problem) -> object:
            return solve_exact(problem, "qp")

        a, b = _take_turns(ours, piqp, turns=2)
        gap = solutions[-1].duality_gap / solutions[-1].lower
        yield Line(
            f"{solutions[-1].method}, {problem.mdp.n_pairs:,} pairs, discount {discount}, gap {gap:.1%}",
            f"{a:.2f} s",
            f"PIQP {b:.1f} s",
            b / a,
            "at least 5, gap at most 1%",
            b / a >= 5 and gap <= 0.01,
        )
    problem = _learning_problem(500)
    start = time.perf_counter()
    solution = solve_exact(problem)
    seconds, gap = time.perf_counter() - start, solution.duality_gap / solution.lower
    yield Line(
        f"{solution.method}, {problem.mdp.n_pairs:,} pairs, discount 0.7, gap {gap:.1%}",
        f"{seconds:.2f} s",
        "a minute",
        seconds / 60,
        "at most 1, gap at most 1%",
        seconds <= 60 and gap <= 0.01,
    )


ANCHOR_SECONDS = 120.0  # after which PIQP is stopped
CASES = ((0.99, 0.005, None), (0.99, 10.0, 100), (0.999, 0.1, 100))  # discounts, α, demonstrations (`None`: exact)


def structures() -> Iterator[Line]:
    """Time the matrix-free method on five kinds of MDP with 10,000 pairs, against PIQP on the same problems.

    Ours are seconds of the processor, PIQP's those of the clock. PIQP closes the gap to 1e-6, ours to 1%.
    """
    solve_exact(learning_problem("grid", 2_000, 0.9, 0.1), "matrix-free")  # compile
    for kind in KINDS:
        for discount, alpha, shown in CASES:
            problem = learning_problem(kind, 10_000, discount, alpha, shown)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a gap that is not as promised: it is in the line
                start = time.process_time()
                solution = solve_exact(problem, "matrix-free", time_limit=ANCHOR_SECONDS)
                ours, start = time.process_time() - start, time.perf_counter()
                anchor = solve_exact(problem, "qp", time_limit=ANCHOR_SECONDS)
                piqp = time.perf_counter() - start
            late = "" if anchor.finished else "over "
            gap = solution.duality_gap / solution.upper
            yield Line(
                f"{kind}, {problem.n_pairs:,} pairs, γ {discount}, α {alpha:g}, {shown or 'exact'}, gap {gap:.1%}",
                f"{ours:.2f} s",
                f"PIQP {late}{piqp:.1f} s",
                piqp / ours,
                "at least 1, gap at most 1%",
                piqp >= ours and gap <= 0.0101,
            )


def structures_large() -> Iterator[Line]:
    """Time `solve_exact` on five kinds of MDP with a million pairs: a minute for γ = 0.99, five for 0.999."""
    for kind in KINDS:
        for discount, alpha, shown in CASES:
            problem = learning_problem(kind, 1_000_000, discount, alpha, shown)
            most = 60.0 if discount <= 0.99 else 300.0
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                start = time.process_time()
                solution = solve_exact(problem, time_limit=10 * most)
                seconds = time.process_time() - start
            gap = solution.duality_gap / solution.upper
            yield Line(
                f"{kind}, {problem.n_pairs:,} pairs, γ {discount}, α {alpha:g}, {shown or 'exact'}, gap {gap:.1%}",
                f"{seconds:.1f} s",
                f"{most / 60:.0f} min",
                seconds / most,
                "at most 1, gap at most 1%",
                seconds <= most and gap <= 0.0101,
            )


def beliefs() -> Iterator[Line]:
    """Time `solve_exact` with ranges of prices and with intervals.

    The baselines are one forward problem of the same size, and HiGHS on the forward problem.
    """
    shop = _unwrapped("rlfd_gym/Inventory-v0")
    assert isinstance(shop, InventoryEnv)
    expert = shop.mdp.optimal(shop.cost_for(5, 8, 15)).occupancy
    ranges = shop.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    problem = RLfDProblem(shop.mdp, expert, belief=ranges)
    a, b = _take_turns(lambda: solve_exact(problem), lambda: solve_exact(problem, "qp"), turns=20)
    yield Line(
        "three prices of the inventory, exactly",
        f"{1e3 * a:.1f} ms",
        f"HiGHS {1e3 * b:.1f} ms",
        a / b,
        "at most 20 ms",
        a <= 0.02,
    )
    for discount in (0.7, 0.95):
        env = _grid(500, discount)
        for n_prices in (3, 5):
            problem = _prices_of(env, n_prices)
            start = time.perf_counter()
            solution = solve_exact(problem)
            seconds, gap = time.perf_counter() - start, solution.duality_gap / solution.lower
            once, _ = _take_turns(lambda env=env: env.mdp.optimal(env.cost).occupancy, lambda: None, turns=2)
            yield Line(
                f"{n_prices} prices, {env.mdp.n_pairs:,} pairs, discount {discount}, gap {gap:.1%}",
                f"{seconds:.2f} s",
                f"one plan {once:.2f} s",
                seconds / once,
                "at most 15 s, gap at most 1%",
                seconds <= 15 and gap <= 0.01,
            )
    env, problem = _grid(100), _learning_problem(100)
    problem = problem.with_belief(Intervals(problem.prior - 0.1, problem.prior + 0.1))
    start = time.perf_counter()
    solution = solve_exact(problem)
    seconds = time.perf_counter() - start
    highs, _ = _take_turns(lambda: env.mdp.optimal(env.cost, method="linear-program"), lambda: None, turns=1)
    yield Line(
        f"intervals, {solution.method}, {env.mdp.n_pairs:,} pairs, gap {solution.duality_gap:.0e}",
        f"{seconds:.2f} s",
        f"HiGHS forward {highs:.2f} s",
        seconds / highs,
        "at most 10 s",
        seconds <= 10,
    )


def reward_net() -> Iterator[Line]:
    """Time the fit of a reward net of the user's own, against the same fit with torch's own number of threads."""
    import torch
    from imitation.rewards.reward_nets import BasicRewardNet

    from rlfd_gym.trainer.reward import fit_reward_net

    env, rng = _grid(10), np.random.default_rng(0)
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

    seconds, plain = _take_turns(ours, threads, 2)
    yield Line(
        f"fit of a reward net, {torch.get_num_threads()} threads as torch has it", f"{seconds:.2f} s",
        f"{plain:.2f} s", seconds / plain, "<= 1.2", seconds <= 1.2 * plain,
    )  # fmt: skip


LOG_ROWS = (1_000_000, 10_000_000)
CHILD = """
import resource, sys, time
start = time.process_time()
{act}
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
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
    command = [sys.executable, "-c", CHILD.replace("{act}", act), str(path), str(n_rows)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds, peak = map(float, done.stdout.split())
    return seconds, peak / 1024


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


def _prices_of(env: WindyGridworldEnv, number: int) -> RLfDProblem:
    """Return a problem with the costs of obstacles, goals and free cells as prices.

    Of five prices, those of obstacles and of goals differ between the two halves of the grid. The
    expert goes by prices of its own.
    """
    cells, left = env.cells.ravel()[env.mdp.pair_states], env.mdp.pair_states % env.width < env.width // 2
    kinds = {3: [cells == 1, cells == -1], 5: [half & (cells == kind) for kind in (1, -1) for half in (left, ~left)]}
    features = np.column_stack([*kinds[number], cells == 0]).astype(np.float64)
    truth = np.array({3: [1, -1, 0], 5: [1, 1, -1, -1, 0]}[number], dtype=np.float64)
    own = truth + np.random.default_rng(0).normal(0, 0.3, number)
    expert = noisy_expert(env.mdp, features @ own, 0.3)
    return RLfDProblem(env.mdp, expert, belief=Prices(features, truth - 0.3, truth + 0.3))


def _take_turns(first: Callable[[], object], second: Callable[[], object], turns: int) -> tuple[float, float]:
    """Return the best time of each function, in seconds, over alternating turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for run, kept in zip((first, second), times, strict=True):
            start = time.perf_counter()
            run()
            kept.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def _grid(side: int, discount: float = 0.7) -> WindyGridworldEnv:
    """Return a square windy gridworld with the paper's layout."""
    env = _unwrapped("rlfd_gym/WindyGridworld-v0", height=side, width=side, discount=discount)
    assert isinstance(env, WindyGridworldEnv)
    return env


def _unwrapped(name: str, **kwargs: object) -> TabularEnv:
    env = gym.make(name, **kwargs).unwrapped
    assert isinstance(env, TabularEnv)
    return env


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


BENCHMARKS: dict[str, Callable[[], Iterator[Line]]] = {
    "forward": forward,
    "build": build,
    "oracle": oracle,
    "sampled": sampled,
    "smd": smd,
    "smd-gap": smd_gap,
    "path": path,
    "exact": exact,
    "exact-large": exact_large,
    "structures": structures,
    "structures-large": structures_large,
    "beliefs": beliefs,
    "reward-net": reward_net,
    "logs": logs,
}


if __name__ == "__main__":
    run_script(main)
