"""Measure what several experts of declared skill add to a prior, with right and with wrong budgets.

    python scripts/study_experts.py                  # a minute; writes results/experts/
    python scripts/study_experts.py --docs docs      # also docs/several_experts.md and its figure

The world is the windy gridworld. Each of three drivers knows one third of its columns and is optimal
there; elsewhere half of its moves are random. The prior has a random half of the obstacles and of
the goals. `rlfd_gym.solve_experts` is told one, two or three drivers with their true regrets, or
with half or twice of them. The learned cost is planned with in the drivers' world and in one with
three times the wind, where no driver has been.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import TabularMDP, solve_experts
from rlfd_gym.problem import examples
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
FACTORS = {0.5: "budget half of the true regret", 1.0: "budget the true regret", 2.0: "budget twice the true regret"}
COLOURS = dict(zip(FACTORS, (plots.VERMILION, plots.BLUE, plots.GREY), strict=True))
ERRING, WIND, OTHER_WIND = 0.5, 0.2, 0.6


@dataclass(frozen=True)
class Outcome:
    """One row of the result.

    `distance` is ‖c - c_true‖ and `certain` the bound on it that right budgets promise, both over
    ‖ĉ - c_true‖. `here` and `there` are the regrets of planning with the cost in the two worlds.
    """

    draw: int
    drivers: int
    factor: float
    distance: float
    certain: float
    here: float
    there: float


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, and print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10, help="random halves of the truth as priors (default 10)")
    parser.add_argument("--size", type=int, default=10, help="cells of a side of the gridworld (default 10)")
    parser.add_argument("--out", type=Path, default=Path("results/experts"), help="output folder")
    parser.add_argument("--docs", type=Path, help="also write several_experts.md and .png to this folder")
    options = parser.parse_args(arguments)
    try:
        for folder in (options.out, options.docs):
            if folder is not None:
                check_folder(folder)
    except ValueError as error:
        parser.error(str(error))
    town = Town(options.size)
    outcomes = [outcome for draw in range(options.draws) for outcome in town.outcomes(draw)]
    write_csv(options.out / "several_experts.csv", [field.name for field in fields(Outcome)], map(astuple, outcomes))
    page, picture = report(town, outcomes, options.draws), figure(outcomes)
    for folder in (options.out, options.docs):
        if folder is not None:
            write(folder / "several_experts.md", page.encode())
            plots.save(picture, folder / "several_experts.png")
    print(page)


class Town:
    """The two worlds, and the drivers."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.here, self.there = (examples.gridworld_env(size, wind=wind).mdp for wind in (WIND, OTHER_WIND))
        self.truth = examples.gridworld_env(size, wind=WIND).cost
        best = self.here.optimal(self.truth).policy
        columns = self.here.pair_states % size * 3 // size
        erring = (1 - ERRING) * best + ERRING * self.here.uniform_policy()
        self.drivers = [np.where(columns == third, best, erring) for third in range(3)]
        self.regrets = [self.regret(self.here, policy) for policy in self.drivers]

    def regret(self, mdp: TabularMDP, policy: FloatArray) -> float:
        """Return by how much a policy is worse than the optimum in a world."""
        return mdp.expected_cost(policy, self.truth) - mdp.optimal(self.truth).expected_cost

    def outcomes(self, draw: int) -> list[Outcome]:
        """Learn from one, two and three drivers, with one prior."""
        prior = examples.gridworld(size=self.size, seed=draw).prior
        experts = [self.here.occupancy_of(policy) for policy in self.drivers]
        before = float(np.sum((prior - self.truth) ** 2))
        found = [self._outcome(draw, 0, factor, prior, before, 0.0) for factor in FACTORS]
        for number in (1, 2, 3):
            for factor in FACTORS:
                budgets = [factor * regret for regret in self.regrets[:number]]
                solution = solve_experts(self.here, list(zip(experts, budgets, strict=False)), prior)
                found.append(self._outcome(draw, number, factor, solution.cost, before, solution.lower))
        return found

    def _outcome(self, draw: int, number: int, factor: float, cost: FloatArray, before: float, moved: float) -> Outcome:
        distance = float(np.sum((cost - self.truth) ** 2))
        regrets = (self.regret(mdp, mdp.optimal(cost).policy) for mdp in (self.here, self.there))
        return Outcome(draw, number, factor, (distance / before) ** 0.5, max(0.0, 1 - moved / before) ** 0.5, *regrets)


def means(outcomes: list[Outcome], number: int, factor: float, name: str) -> tuple[float, float]:
    """Return the mean of a number over draws, and its standard error."""
    values = [getattr(o, name) for o in outcomes if (o.drivers, o.factor) == (number, factor)]
    return float(np.mean(values)), float(np.std(values) / max(1, len(values) - 1) ** 0.5)


def report(town: Town, outcomes: list[Outcome], draws: int) -> str:
    """Return the page."""
    lines = []
    for number in range(4):
        for factor, words in FACTORS.items():
            if number == 0 and factor != 1.0:
                continue
            cells = [means(outcomes, number, factor, name) for name in ("distance", "certain", "here", "there")]
            told = "prior alone" if number == 0 else f"{number} driver{'s' * (number > 1)}, {words}"
            certain = f"{cells[1][0]:.3f}" if number == 0 or factor >= 1 else "nothing"
            numbers = [f"{mean:.4f} ± {error:.4f}" for mean, error in cells[2:]]
            lines.append(f"| {told} | {cells[0][0]:.3f} | {certain} | {' | '.join(numbers)} |")
    regrets = ", ".join(f"{regret:.4f}" for regret in town.regrets)
    copied = ", ".join(f"{town.regret(town.there, policy):.4f}" for policy in town.drivers)
    return PAGE.format(
        size=town.size, draws=draws, regrets=regrets, copied=copied, rows="\n".join(lines), erring=f"{ERRING:.0%}"
    )


def figure(outcomes: list[Outcome]) -> Figure:
    """Draw the distance to the truth and the regret in the other world against the number of drivers."""
    picture, axes = plots.new_figure(1, 2, (9, 3.4))
    for axis, name, label in zip(
        axes.flat,
        ("distance", "there"),
        ("distance of the cost to the truth,\nover that of the prior", "regret where no driver has been"),
        strict=True,
    ):
        for shift, (factor, words) in enumerate(FACTORS.items()):
            points = [means(outcomes, number, factor, name) for number in range(4)]
            axis.errorbar(
                np.arange(4) + 0.05 * (shift - 1), [p[0] for p in points], [p[1] for p in points], fmt="o-",
                color=COLOURS[factor], label=words, capsize=2,
            )  # fmt: skip
        axis.set(xlabel="drivers", ylabel=label, xticks=range(4))
    plots.legend_below(picture, 3)
    return picture


PAGE = """\
# What several experts teach

Made by `python scripts/study_experts.py --docs docs`; every number on this page comes from it.

`rlfd_gym.solve_experts(mdp, [(occupancy, budget), ...], prior)` finds the cost nearest to the prior under which no
expert is worse than its budget says. Here the world is the windy gridworld of {size} × {size} cells. Each of three
drivers is optimal in one third of the columns, and elsewhere {erring} of its moves are random; their true regrets are
{regrets}. The prior has a random half of the obstacles and goals, {draws} times. The learned cost is planned
with in the drivers' world, and in one with three times the wind, where no driver has been; there the drivers' own
policies have the regrets {copied}.

| told | distance to the truth | certain | regret here | regret there |
|---|---:|---:|---:|---:|
{rows}

*Distance to the truth*: ‖c - c_true‖ over ‖ĉ - c_true‖. *Certain*: the bound on it that holds whenever the budgets
are at least the true regrets, √(1 - ‖c - ĉ‖²/‖ĉ - c_true‖²). *Regret*: of planning with the learned cost, ± standard
error over draws.

![Distance and regret by the number of drivers](several_experts.png)

- A budget is one number about an expert, so the cost moves little, and where the drivers' choices depend on it.
- Budgets that are too large are safe: less is learned. Budgets that are too small cannot be noticed, there is always a
  cost that fits, and nothing is promised.
- In the experts' own world, copying the expert with the least budget has a regret of at most that budget, and no prior
  is needed. A cost is for worlds in which no expert has been.
"""

if __name__ == "__main__":
    run_script(main)
