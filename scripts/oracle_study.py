"""Measure the gap that is certified from draws alone, by both methods, against the number of draws.

    python scripts/oracle_study.py                  # some minutes; writes results/oracle/
    python scripts/oracle_study.py --docs docs      # also docs/oracle.md and its figure

The inventory, the windy gridworld, FrozenLake and Taxi are used as simulators: nothing but next states
is asked of them. The expert is optimal for the true cost, but 30% of its actions are random; the prior
is the true cost. `rlfd_gym.solve_sampled` learns by sampling the model and by Algorithm 1 on draws,
and certifies both in the same way.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import rlfd_gym
from rlfd_gym import BlackBoxProblem, RLfDProblem, SampledExpert, Solution, TabularMDP
from rlfd_gym.problem import examples
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METHODS = {"model": "sampling the model", "smd": "Algorithm 1 on draws"}
COLOURS = dict(zip(METHODS, (plots.BLUE, plots.VERMILION), strict=True))
NOISE = 0.3


@dataclass(frozen=True)
class Outcome:
    """One row of the result: a round of a solve.

    `gap` is the certified gap, `true_gap` that of the same cost and policy under the true tables,
    `value` the value of the problem.
    """

    task: str
    pairs: int
    method: str
    seed: int
    calls: int
    seconds: float
    gap: float
    true_gap: float
    holds: bool
    value: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, and print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000_000, help="draws at most (default ten million)")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions (default 1)")
    parser.add_argument("--tasks", default="inventory,gridworld,lake,taxi", help="some of them, with commas")
    parser.add_argument("--out", type=Path, default=Path("results/oracle"), help="output folder")
    parser.add_argument("--docs", type=Path, help="also write oracle.md and .png to this folder")
    options = parser.parse_args(arguments)
    try:
        for folder in (options.out, options.docs):
            if folder is not None:
                check_folder(folder)
    except ValueError as error:
        parser.error(str(error))
    names = options.tasks.split(",")
    if unknown := set(names) - set(TASKS):
        parser.error(f"unknown tasks {', '.join(sorted(unknown))}; there are {', '.join(TASKS)}")
    outcomes = [
        outcome
        for name in names
        for method in METHODS
        for seed in range(options.seeds)
        for outcome in curve(name, method, seed, options.calls)
    ]
    write_csv(options.out / "oracle.csv", [field.name for field in fields(Outcome)], map(astuple, outcomes))
    page, picture = report(outcomes, names), figure(outcomes, names)
    for folder in (options.out, options.docs):
        if folder is not None:
            write(folder / "oracle.md", page.encode())
            plots.save(picture, folder / "oracle.png")
    print(page)


def inventory() -> tuple[TabularMDP, NDArray[np.float64], float]:
    """Return the tables, the cost and the alpha of the inventory."""
    env = examples.inventory_env()
    return env.mdp, env.cost, 0.1


def gridworld() -> tuple[TabularMDP, NDArray[np.float64], float]:
    """Return those of the windy gridworld, 6 x 6."""
    env = examples.gridworld_env(6)
    return env.mdp, env.cost, 0.1


def lake() -> tuple[TabularMDP, NDArray[np.float64], float]:
    """Return those of FrozenLake, with a cost of -1 in each step on the goal."""
    mdp = TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=0.9)
    return mdp, np.where(mdp.pair_states == mdp.n_states - 1, -1.0, 0.0), 0.1


def taxi() -> tuple[TabularMDP, NDArray[np.float64], float]:
    """Return those of Taxi, with its rewards over 20."""
    env = gym.make("Taxi-v3")
    return TabularMDP.from_env(env, discount=0.95), rlfd_gym.cost_of_env(env) / 20, 0.1


TASKS = {"inventory": inventory, "gridworld": gridworld, "lake": lake, "taxi": taxi}
TITLES = {
    "inventory": "Inventory",
    "gridworld": "Windy gridworld 6 × 6",
    "lake": "FrozenLake 4 × 4",
    "taxi": "Taxi",
}


def simulated(problem: RLfDProblem) -> BlackBoxProblem:
    """Return the problem as it is known from draws; the expert's transitions are in proportion."""
    mdp, rows = problem.mdp, problem.mdp.transitions
    pairs = np.repeat(np.arange(mdp.n_pairs), np.diff(rows.indptr))
    weights = problem.expert[pairs] * rows.data
    seen = weights > 0
    expert = SampledExpert(
        mdp.pair_states[pairs][seen], mdp.pair_actions[pairs][seen], rows.indices[seen].astype(np.int64), weights[seen]
    )
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions}
    return BlackBoxProblem(
        rlfd_gym.simulate(mdp), expert, **sizes, discount=mdp.discount, prior=problem.prior, alpha=problem.alpha,
        feasible=mdp.feasible, initial=mdp.initial,
    )  # fmt: skip


def curve(name: str, method: str, seed: int, calls: int) -> list[Outcome]:
    """Learn by one method and return what each round has certified."""
    mdp, cost, alpha = TASKS[name]()
    problem = RLfDProblem(mdp, rlfd_gym.noisy_expert(mdp, cost, NOISE), cost, alpha)
    value, begun, found = rlfd_gym.solve_exact(problem).lower, time.perf_counter(), []

    def record(solution: Solution) -> None:
        upper, lower = true_bounds(problem, solution)
        holds = solution.lower <= lower + 1e-9 and upper - 1e-9 <= solution.upper
        spent = solution.stats["calls"], time.perf_counter() - begun
        found.append(
            Outcome(name, mdp.n_pairs, method, seed, *spent, solution.duality_gap, upper - lower, holds, value)
        )

    rlfd_gym.solve_sampled(simulated(problem), calls=calls, method=method, seed=seed, callback=record)
    return found


def true_bounds(problem: RLfDProblem, solution: Solution) -> tuple[float, float]:
    """Return the bounds of a solution's cost and policy under the true tables."""
    plan, occupancy = problem.mdp.optimal(solution.cost), problem.mdp.occupancy_of(solution.policy)
    upper = problem.penalty(solution.cost) + problem.expert @ solution.cost - plan.expected_cost
    worst = problem.best_cost(occupancy)
    return float(upper), float(problem.penalty(worst) + (problem.expert - occupancy) @ worst)


def report(outcomes: list[Outcome], names: list[str]) -> str:
    """Return the page."""
    rows = []
    for name in names:
        for method, words in METHODS.items():
            curve_of = [o for o in outcomes if (o.task, o.method, o.seed) == (name, method, 0)]
            last = curve_of[-1]
            cells = [_gap_at(curve_of, calls) for calls in (10_000, 100_000, 1_000_000)]
            rows.append(
                f"| {TITLES[name]} | {last.pairs} | {words} | {' | '.join(cells)} | {last.gap:.3g} ({last.calls:.2g}, "
                f"{last.seconds:.0f} s) | {last.true_gap:.2g} | {last.value:.3g} |"
            )
    held = sum(o.holds for o in outcomes)
    return PAGE.format(
        rows="\n".join(rows), held=held, rounds=len(outcomes), noise=f"{NOISE:.0%}", ahead=ahead(outcomes)
    )


def ahead(outcomes: list[Outcome]) -> str:
    """Say from how many draws on sampling the model certifies the smaller gap, whatever the task and seed."""
    behind = 0
    for rival in (o for o in outcomes if o.method == "smd"):
        rounds = [o for o in outcomes if (o.task, o.method, o.seed) == (rival.task, "model", rival.seed)]
        known = [o.gap for o in rounds if o.calls <= rival.calls]
        if not known or known[-1] > rival.gap:
            behind = max(behind, rival.calls)
    if not behind:
        return "Sampling the model certifies the smaller gap from the same draws, after every round."
    return f"After more than {behind:,} draws, sampling the model certifies the smaller gap from as many everywhere."


def _gap_at(rounds: list[Outcome], calls: int) -> str:
    known = [o.gap for o in rounds if o.calls <= calls]
    return f"{known[-1]:.3g}" if known else "-"


def figure(outcomes: list[Outcome], names: list[str]) -> Figure:
    """Draw the certified gap against the number of draws, over the value."""
    picture, axes = plots.new_figure(1, len(names), (3.1 * len(names), 3.2))
    for axis, name in zip(np.ravel(axes), names, strict=True):
        for method, words in METHODS.items():
            for seed in sorted({o.seed for o in outcomes}):
                rounds = [o for o in outcomes if (o.task, o.method, o.seed) == (name, method, seed)]
                for kind, style in (("gap", "o-"), ("true_gap", "x:")):
                    shares = [max(getattr(o, kind), 1e-9) / o.value for o in rounds]
                    label = words if kind == "gap" else f"{words}: true gap"
                    axis.plot(
                        [o.calls for o in rounds], shares, style, color=COLOURS[method], markersize=3,
                        label=label if seed == 0 else None,
                    )  # fmt: skip
        axis.axhline(0.05, color=plots.GREY, linewidth=0.8)
        axis.set(xscale="log", yscale="log", xlabel="draws", title=TITLES[name], ylim=(1e-4, 300))
    np.ravel(axes)[0].set_ylabel("gap over the problem's value")
    plots.legend_below(picture, 4)
    return picture


PAGE = """\
# Learning from an oracle alone

Made by `python scripts/oracle_study.py --docs docs`; every number on this page comes from it.

`rlfd_gym.solve_sampled` learns from a simulator that only draws next states, and certifies what it has learned under
the true transitions, with probability 0.95. Here the true tables are known, so that the certificate can be compared
with the truth. The expert's actions are random {noise} of the time, the prior is the true cost.

| environment | pairs | method | certified gap, 10⁴ draws | 10⁵ | 10⁶ | in the end (draws, time) | true gap | value |
|---|---:|---|---:|---:|---:|---:|---:|---:|
{rows}

![Certified and true gap against the number of draws](oracle.png)

The grey line is 5% of the value. Each point is a round: it learns from all draws so far and certifies by fresh ones.
The bounds of {held} of {rounds} rounds hold under the true tables.

- {ahead} It is what `RLfDTrainer` does without tables. The true gap of what
  it has learned is far below what can be certified: the rest is the price of not knowing the transitions.
- In Taxi every pair has one next state. Nobody says so, but the margin of draws that are all alike falls like 1/m,
  not like 1/√m. Where the oracle may be believed to be deterministic (`simulate(env, deterministic=True)`), one draw of
  each pair is enough.
"""


if __name__ == "__main__":
    run_script(main)
