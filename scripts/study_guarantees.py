"""Measure how often statements from demonstrations hold, and draw what a guarantee is worth.

    python scripts/study_guarantees.py                # minutes on two cores
    python scripts/study_guarantees.py --quick        # seconds
    python scripts/study_guarantees.py --docs docs    # also rewrites the table in docs/guarantees.md and its figures
    python scripts/study_guarantees.py --redraw       # from the statements of the last run

Each draw learns a policy from one half of new demonstrations and judges it by the other half, with
95% confidence. The truth is the least improvement on the expert's exact occupancy, over the same
costs. The script writes `guarantees.csv`, with one row per statement, `guarantees.md`, with the
table, and the figures.
"""

from __future__ import annotations

import argparse
import csv
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest
from tqdm.auto import tqdm

from rlfd_gym import (
    RLfDProblem,
    TabularMDP,
    cost_of_env,
    demonstrate,
    guarantee,
    noisy_expert,
    occupancy_from_demonstrations,
    solve_exact,
)
from rlfd_gym.beliefs import Belief, Intervals, NearPrior, Prices
from rlfd_gym.problem import examples
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv
from rlfd_gym.report.guarantees import improvement_by_width, plot_price_map, plot_widths

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIDENCE = 0.95
TRAJECTORIES = (10, 100, 1000)
TAIL = 1e-3  # trajectories continue until only this much of the discounted mass is left
CHUNK = 20  # draws that one process does at a time
NOISE = 0.3
BEGIN, END = "<!-- written by scripts/study_guarantees.py -->", "<!-- end of what the script writes -->"


@dataclass(frozen=True)
class Case:
    """An environment, its expert and a belief."""

    mdp: TabularMDP
    expert: np.ndarray
    belief: Belief


@dataclass(frozen=True)
class Statement:
    """One row of the result: what one bound said, and what is true."""

    case: str
    trajectories: int
    draw: int
    bound: str
    said: float
    truth: float


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    draws: int
    numbers: tuple[int, ...]
    jobs: int
    out: Path
    docs: Path | None
    redraw: bool


def inventory(belief: str) -> Case:
    """Return the paper's inventory: ranges of its three prices, or a prior with α = 10."""
    env = examples.inventory_env()
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    ranges = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    return Case(env.mdp, expert, ranges if belief == "prices" else NearPrior(env.cost_for(4, 2, 14), 10.0))


def gridworld() -> Case:
    """Return the paper's 6 × 6 gridworld: ranges of what obstacles and goals cost."""
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
    belief = env.price_ranges(obstacle=(0.5, 1), goal=(-1, -0.5))
    return Case(env.mdp, noisy_expert(env.mdp, env.cost, NOISE), belief)


def frozen_lake(belief: str) -> Case:
    """Return Gymnasium's FrozenLake: the prize up to 20% in each pair, or its share and a step's cost."""
    env = gym.make("FrozenLake-v1")
    mdp, cost = TabularMDP.from_env(env, discount=0.95), cost_of_env(env)
    moving = 1.0 - mdp.transitions[np.arange(mdp.n_pairs), mdp.pair_states]  # not the holes, nor the goal
    columns = np.column_stack([cost, moving > 0])
    prices = Prices.named(columns, {"prize": (0.5, 1.5), "step": (0, 0.002)})
    intervals = Intervals(1.2 * cost, 0.8 * cost)
    return Case(mdp, noisy_expert(mdp, cost, NOISE), prices if belief == "prices" else intervals)


CASES: dict[str, Callable[[], Case]] = {
    "inventory, `Prices`": lambda: inventory("prices"),
    "inventory, `NearPrior`": lambda: inventory("near"),
    "gridworld, `Prices`": gridworld,
    "FrozenLake, `Prices`": lambda: frozen_lake("prices"),
    "FrozenLake, `Intervals`": lambda: frozen_lake("intervals"),
}


def main() -> None:
    """Run the study, and print and write its results."""
    options = parse()
    kept = options.out / "guarantees.csv"
    if options.redraw:
        with kept.open(newline="") as file:
            statements = [statement(row) for row in csv.DictReader(file)]
    else:
        statements = run(options)
        write_csv(kept, [field.name for field in fields(Statement)], map(astuple, statements))
    text = table(statements)
    print(text)
    write(options.out / "guarantees.md", text.encode())
    for name, figure in figures().items():
        for folder in (options.out, options.docs):
            if folder is not None:
                plots.save(figure, folder / f"{name}.png")
    if options.docs is not None:
        page = options.docs / "guarantees.md"
        write(page, filled(page.read_text(), text).encode())
    print(f"written: {kept}, and the table and the figures next to it")


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="draws of each case (default 200)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--quick", action="store_true", help="twenty draws, and at most 100 trajectories")
    parser.add_argument("--redraw", action="store_true", help="show the statements of the last run, without a new one")
    parser.add_argument("--out", type=Path, default=Path("results/guarantees"), help="output folder")
    parser.add_argument("--docs", type=Path, help="a folder with guarantees.md, whose table and figures to rewrite")
    given = parser.parse_args()
    try:
        check_folder(given.out)
    except ValueError as error:
        parser.error(str(error))
    if given.draws < 1:
        parser.error(f"--draws must be at least 1, got {given.draws}")
    numbers = TRAJECTORIES[:2] if given.quick else TRAJECTORIES
    return Options(20 if given.quick else given.draws, numbers, given.jobs, given.out, given.docs, given.redraw)


def run(options: Options) -> list[Statement]:
    """Make all draws, with a progress bar."""
    chunks = [range(first, min(first + CHUNK, options.draws)) for first in range(0, options.draws, CHUNK)]
    # The long ones first, so that no process is left with one of them at the end.
    work = list(itertools.product(sorted(options.numbers, reverse=True), CASES, chunks))
    done = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(study)(case, number, draws) for number, case, draws in work
    )
    return [one for some in tqdm(done, total=len(work), desc="studied", unit="chunk") for one in some]


def study(name: str, number: int, draws: Sequence[int]) -> list[Statement]:
    """Return what both bounds say in some draws of so many trajectories."""
    case = CASES[name]()
    mdp, belief, half = case.mdp, case.belief, number // 2
    policy, seeds, statements = mdp.policy_of(case.expert), np.random.SeedSequence(number), []
    for draw in draws:
        seed = np.random.SeedSequence(seeds.entropy, spawn_key=(list(CASES).index(name), draw))
        walks = demonstrate(mdp, policy, number, mdp.horizon(TAIL), seed)
        problem = RLfDProblem(mdp, occupancy_from_demonstrations(walks[:half], mdp), belief=belief)
        learned = solve_exact(problem)
        x = learned.cost if learned.mixture is None else learned.mixture
        said = guarantee(mdp, learned.policy, walks[half:], belief, CONFIDENCE, seed=draw, cost=x)
        truth = guarantee(mdp, learned.policy, case.expert, belief, cost=x).improvement
        assert said.bootstrap is not None  # there are demonstrations
        for bound, improvement in (("safe", said.improvement), ("bootstrap", said.bootstrap)):
            statements.append(Statement(name, number, draw, bound, improvement, truth))
    return statements


def statement(row: Mapping[str, str]) -> Statement:
    """Return a statement from a row of the CSV file."""
    numbers = int(row["trajectories"]), int(row["draw"])
    return Statement(row["case"], *numbers, row["bound"], float(row["said"]), float(row["truth"]))


def table(statements: list[Statement]) -> str:
    """Return the table: how often the bounds held, by how much, and how often they promised something."""
    groups: dict[tuple[str, int], list[Statement]] = {}
    for one in statements:
        groups.setdefault((one.case, one.trajectories), []).append(one)
    draws = len({one.draw for one in statements})
    lines = [
        f"Statements with {CONFIDENCE:.0%} confidence, {draws} draws each; costs in thousandths:",
        "",
        "| | trajectories | truth | safe: holds | margin | promises | bootstrap: holds | margin | promises |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for case, number in itertools.product(CASES, sorted({one.trajectories for one in statements})):
        mine = groups[case, number]
        cells = [case, str(number), f"{1000 * np.mean([one.truth for one in mine]):.1f}"]
        for bound in ("safe", "bootstrap"):
            cells += summary([one for one in mine if one.bound == bound])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(statements: list[Statement]) -> list[str]:
    """Return the share of statements that hold with its interval, their margin, and the share that promise."""
    held = sum(one.said <= one.truth + 1e-12 for one in statements)
    low, high = binomtest(held, len(statements)).proportion_ci(CONFIDENCE)
    margin = 1000 * np.mean([one.truth - one.said for one in statements])
    promises = np.mean([one.said > 0 for one in statements])
    return [
        f"{held / len(statements):.1%} ({100 * low:.0f} to {100 * high:.0f})",
        f"{margin:.1f}",
        f"{promises:.0%}",
    ]


def figures() -> dict[str, Figure]:
    """Draw the inventory: improvement against the width of the ranges, and over two of the prices."""
    env, case = examples.inventory_env(), inventory("prices")
    widest = env.price_ranges(order=(2, 6), holding=(0, 6), sell=(10, 16))
    widths = improvement_by_width(env.mdp, case.expert, widest, (3.5, 0.8, 14.5), env.cost, n_points=41)
    policy = solve_exact(RLfDProblem(env.mdp, case.expert, belief=case.belief)).policy
    promise = guarantee(env.mdp, policy, case.expert, case.belief)
    marks = {"truth": dict(zip(promise.belief.names, env.parameters.tolist(), strict=True))}
    return {
        "guarantees": plot_widths(widths),
        "guarantees_map": plot_price_map(promise, case.expert, ("order", "holding"), marks),
    }


def filled(page: str, text: str) -> str:
    """Return a page with the text between its two marks."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    run_script(main)
