"""Compare l2, l1 and reweighted l1 on the windy gridworld, with a prior that knows half the truth.

    python scripts/sparse_priors.py              # a minute; writes docs/sparse_priors.md and .png

The expert moves at random 30% (or 5%) of the time; the prior has a random half of the obstacles
and of the goals. For each method and a range of α, the study measures how much of the cost is
exactly the prior, which of the obstacles and goals that the prior lacks are found, and what the
apprentice costs. Results are means over random halves.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rlfd_gym import (
    RLfDProblem,
    Solution,
    noisy_expert,
    pinning_alpha,
    share_at_prior,
    solve_exact,
    solve_reweighted,
)
from rlfd_gym.envs import WindyGridworldEnv
from rlfd_gym.report import check_folder, plots, run_script, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FloatArray = NDArray[np.float64]
Key = tuple[str, float]  # the method, and α or its share of the pinning α

NOISES, KNOWN = (0.3, 0.05), 0.5
MARGIN = 0.1  # a cost counts as found if it differs from the prior's by more than this
L2_ALPHAS = (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0)
L1_SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)  # of the α that pins the cost to the prior
METHODS = {"l2": plots.GREY, "l1": plots.BLUE, "reweighted l1": plots.VERMILION}
HEADER = """\
| method | α | pairs at the prior | cells at the prior | obstacles, cells | obstacles, moves | goals, cells | \
goals, moves | true cost |
|---|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class World:
    """The environment and its expert, the same for all draws of the prior."""

    env: WindyGridworldEnv
    noise: float
    expert: FloatArray
    into: Any
    """The cell that a move leads to without wind, as booleans of shape (n_pairs, n_states)."""

    @classmethod
    def make(cls, noise: float) -> World:
        """Make the paper's gridworld, with an expert that sometimes moves at random."""
        env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
        assert isinstance(env, WindyGridworldEnv)
        into = env.mdp.transitions.toarray() >= 0.5
        return cls(env, noise, noisy_expert(env.mdp, env.cost, noise), into)

    def cells(self, cost: FloatArray) -> FloatArray:
        """Return the mean cost of each cell."""
        return np.asarray(self.env.mdp.sum_by_state(cost) / np.bincount(self.env.mdp.pair_states), dtype=np.float64)


def main() -> None:
    """Run the studies, and print and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20, help="random halves of the truth as priors (default 20)")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="output folder")
    options = parser.parse_args()
    try:
        check_folder(options.out)
    except ValueError as error:
        parser.error(str(error))
    studies = [Study.run(World.make(noise), options.draws) for noise in NOISES]
    page = report(studies, options.draws)
    write(options.out / "sparse_priors.md", page.encode())
    plots.save(figure(studies), options.out / "sparse_priors.png")
    print(page)


@dataclass(frozen=True)
class Found:
    """How well the cells of one kind that the prior lacks were found, as shares.

    A share of nothing is `nan`.
    """

    cells_precision: float
    """The share of the cells counted as found that the prior does lack."""
    cells_recall: float
    """The share of the cells that the prior lacks that were found."""
    moves_precision: float
    """The same for single moves."""
    moves_recall: float


@dataclass(frozen=True)
class Measures:
    """The measures of one solution."""

    alpha: float
    pairs_at_prior: float
    cells_at_prior: float
    obstacles: Found
    goals: Found
    true_cost: float

    @property
    def goals_missed(self) -> float:
        """The share of the goals lacking in the prior that were not found as cells."""
        return 1 - self.goals.cells_recall


@dataclass(frozen=True)
class Study:
    """The results for one expert: the measures of each draw, by method and α.

    For l1 and reweighted l1, α is given as a share of the pinning α.
    """

    world: World
    table: dict[Key, list[Measures]]
    first: dict[Key, FloatArray]
    """The costs learned in the first draw."""

    def best(self, name: str) -> dict[str, Key]:
        """Return each method's key with the lowest mean of a measure, chosen in hindsight."""
        return {
            method: min((key for key in self.table if key[0] == method), key=lambda key: self.mean(key, name))
            for method in METHODS
        }

    def mean(self, key: Key, name: str) -> float:
        """Return the mean of a measure over the draws."""
        return float(over_draws(self.table[key], name).mean())

    @classmethod
    def run(cls, world: World, n_draws: int) -> Study:
        """Solve and measure all settings, for each draw of the prior."""
        table: dict[Key, list[Measures]] = {}
        first: dict[Key, FloatArray] = {}
        for seed in range(n_draws):
            prior = world.env.partial_prior(KNOWN, seed=seed)
            for key, (alpha, solve) in settings(world, prior).items():
                solution = solve()
                table.setdefault(key, []).append(measures(world, prior, alpha, solution.cost, solution.policy))
                first.setdefault(key, solution.cost)
            print(f"draw {seed + 1} of {n_draws}", flush=True)
        return cls(world, table, first)


def over_draws(draws: list[Measures] | list[Found], name: str) -> FloatArray:
    """Return one measure of every draw."""
    return np.array([getattr(one, name) for one in draws])


def settings(world: World, prior: FloatArray) -> dict[Key, tuple[float, Callable[[], Solution]]]:
    """Return α and a function that solves, by (method, α or its share of the pinning α)."""
    mdp, expert = world.env.mdp, world.expert
    pinning = pinning_alpha(RLfDProblem(mdp, expert, prior))
    chosen: dict[Key, tuple[float, Callable[[], Solution]]] = {}
    for alpha in L2_ALPHAS:
        chosen["l2", alpha] = alpha, lambda alpha=alpha: solve_exact(RLfDProblem(mdp, expert, prior, alpha))
    for method, solve in (("l1", solve_exact), ("reweighted l1", solve_reweighted)):
        for share in L1_SHARES:
            problem = RLfDProblem(mdp, expert, prior, share * pinning, regulariser="l1")
            chosen[method, share] = problem.alpha, lambda solve=solve, problem=problem: solve(problem)
    return chosen


def measures(world: World, prior: FloatArray, alpha: float, cost: FloatArray, policy: FloatArray) -> Measures:
    """Measure a learned cost and its policy."""
    mdp = world.env.mdp
    touched = np.bincount(mdp.pair_states, weights=np.abs(cost - prior) > 1e-9, minlength=mdp.n_states)
    return Measures(
        alpha=alpha,
        pairs_at_prior=share_at_prior(RLfDProblem(mdp, world.expert, prior), cost),
        cells_at_prior=float(np.mean(touched == 0)),
        obstacles=found_cells(world, prior, cost, plots.OBSTACLE),
        goals=found_cells(world, prior, cost, plots.GOAL),
        true_cost=mdp.expected_cost(policy, world.env.cost),
    )


def found_cells(world: World, prior: FloatArray, cost: FloatArray, kind: int) -> Found:
    """Compare the cells and moves whose cost has changed with the cells that the prior lacks.

    Obstacles count as found if they cost more than in the prior, goals if they cost less.
    """
    mdp, sign = world.env.mdp, 1 if kind == plots.OBSTACLE else -1
    missing = (world.env.cells.ravel() == kind) & (world.cells(prior) == 0)
    cells = sign * (world.cells(cost) - world.cells(prior)) > MARGIN
    moves = sign * (cost - prior) > MARGIN
    leads = world.into | (mdp.pair_states[:, None] == np.arange(mdp.n_states))
    return Found(
        cells_precision=share(missing[cells]),
        cells_recall=share(cells[missing]),
        moves_precision=share((leads & missing).any(axis=1)[moves]),
        moves_recall=share((leads & moves[:, None]).any(axis=0)[missing]),
    )


def share(flags: Any) -> float:
    """Return the share of flags that are true; `nan` if there are none."""
    return float(np.mean(flags)) if len(flags) else float("nan")


def precision_and_recall(draws: list[Found], what: str) -> str:
    """Return the means over the draws in which the shares exist, as text."""
    texts = []
    for name in (f"{what}_precision", f"{what}_recall"):
        values = over_draws(draws, name)
        known = values[~np.isnan(values)]
        texts.append(f"{known.mean():.2f}" if known.size else "-")
    return " / ".join(texts)


def report(studies: list[Study], n_draws: int) -> str:
    """Return the page."""
    env = studies[0].world.env
    priors = [env.partial_prior(KNOWN, seed=seed) for seed in range(n_draws)]
    alone = np.mean([env.mdp.expected_cost(env.mdp.optimal(prior).policy, env.cost) for prior in priors])
    return f"""# Sparse priors on the windy gridworld

Made by `python scripts/sparse_priors.py`; every number on this page comes from it.

`rlfd_gym/WindyGridworld-v0` ({env.height} × {env.width} cells, {env.mdp.n_pairs} pairs), an expert who sometimes
moves at random, and a prior that has a random {100 * KNOWN:.0f}% of the obstacles and of the goals and is 0 elsewhere,
{n_draws} times. True cost: optimum {env.mdp.optimal(env.cost).expected_cost:.4f}, the prior's own optimal policy
{alone:.4f}. All programs are solved exactly.

- α of l1 and reweighted l1 is a mass per pair; in brackets its share of `pinning_alpha`, above which the cost is the
  prior. Where actions make no difference, as on goals, `pinning_alpha` is larger than it need be.
- *pairs, cells at the prior*: the cost is the prior's to 1e-9, of a cell: for all its moves.
- *obstacles, cells*: a cell counts as a found obstacle if its mean learned cost is more than {MARGIN} above the
  prior's. Precision / recall against the obstacles that the prior lacks; precision over the draws where any was found.
- *obstacles, moves*: a single move counts if its cost is more than {MARGIN} above the prior's. It is right if it starts
  in an obstacle that the prior lacks or, without wind, leads into one; an obstacle is found if some such move counts.
- *goals* likewise, with lower costs. *true cost*: of the apprentice, ± standard error over draws. The best α of each
  method, in bold, is chosen in hindsight.

{"".join(section(study, n_draws) for study in studies)}
![learned costs](sparse_priors.png)

Above: the truth, one of the priors, and for the first expert the true cost against the number of changed pairs along α.
Below: what each method learns from this prior, means per cell, with an arrow for each move whose cost is more than
{MARGIN} above (black) or below (green) the prior's; from the first expert at the α of the best true cost, from the
second at the α that finds most goals as cells.

What to make of it. A cost that depends on the cell alone changes in all moves of a cell at once, which none of the
penalties knows: to keep the expert out of an obstacle it is enough, and cheaper, to change the moves around it. And an
expert who moves at random contradicts the goals and obstacles that the prior has more than those that it lacks, so that
few changes explain it best by weakening what is known. Goals that the prior lacks are where a better expert ends up
and stays, and there a few pairs make the difference. Which of the costs that explain the expert is the true one, the
demonstrations do not say.
"""


def section(study: Study, n_draws: int) -> str:
    """Return the section on one expert, with its table."""
    world, table, chosen, lines = study.world, study.table, study.best("true_cost"), []
    for key, draws in table.items():
        method, x = key
        alpha = f"{x:g}" if method == "l2" else f"{study.mean(key, 'alpha'):.2g} ({x:g})"
        shares = [f"{100 * study.mean(key, name):.1f}%" for name in ("pairs_at_prior", "cells_at_prior")]
        kinds = [one.obstacles for one in draws], [one.goals for one in draws]
        found = [precision_and_recall(kind, what) for kind in kinds for what in ("cells", "moves")]
        costs = over_draws(draws, "true_cost")
        cost = f"{costs.mean():.4f} ± {costs.std(ddof=1) / n_draws**0.5:.4f}"
        mark = "**" if chosen[method] == key else ""
        lines.append(f"| {method} | {alpha} | {' | '.join([*shares, *found])} | {mark}{cost}{mark} |")
    best = "; ".join(
        f"{method} {study.mean(key, 'true_cost'):.4f} with {100 * study.mean(key, 'pairs_at_prior'):.1f}% "
        "of the pairs at the prior"
        for method, key in chosen.items()
    )
    at_prior = {key: over_draws(draws, "pairs_at_prior") for key, draws in table.items()}
    sparser = np.mean([at_prior["reweighted l1", x] >= at_prior["l1", x] for x in L1_SHARES])
    own = world.expert @ world.env.cost
    return f"""## An expert who moves at random {100 * world.noise:.0f}% of the time: true cost {own:.4f}

{HEADER}{chr(10).join(lines)}

Best: {best}. Reweighted l1 had at least as many pairs at the prior as l1 with the same α in {100 * sparser:.0f}% of the
{n_draws * len(L1_SHARES)} comparisons.

"""


def figure(studies: list[Study]) -> Figure:
    """Draw truth, prior and trade-off above, and what the methods learn below."""
    env = studies[0].world.env
    prior, grid = env.partial_prior(KNOWN, seed=0), plots.Grid.of_env(env)
    assert grid is not None
    picture, axes = plots.new_figure(1 + len(studies), 3, (10, 3.5 * (1 + len(studies))))
    plots.draw_cost(axes[0, 0], grid, env.mdp, env.cost)
    axes[0, 0].set_title("truth")
    image = plots.draw_cost(axes[0, 1], grid, env.mdp, prior)
    axes[0, 1].set_title("prior: half of it")
    trade_off(axes[0, 2], studies[0])
    for row, study, measure in zip(axes[1:], studies, ("true_cost", "goals_missed"), strict=True):
        for axis, (method, key) in zip(row, study.best(measure).items(), strict=True):
            plots.draw_cost(axis, grid, env.mdp, study.first[key])
            draw_changes(axis, grid, env, study.first[key] - prior)
            axis.set_title(f"{method}, expert {100 * study.world.noise:.0f}% random")
    picture.colorbar(image, ax=axes.ravel().tolist(), location="bottom", shrink=0.4, aspect=40, label="cost")
    return picture


def trade_off(axis: Any, study: Study) -> None:
    """Draw the true cost against the number of changed pairs."""
    env = study.world.env
    for method, colour in METHODS.items():
        keys = [key for key in study.table if key[0] == method]
        changed = [env.mdp.n_pairs * (1 - study.mean(key, "pairs_at_prior")) for key in keys]
        costs = [study.mean(key, "true_cost") for key in keys]
        axis.plot(changed, costs, "o-", color=colour, markersize=3.5, label=method)
    axis.set_xscale("symlog", linthresh=1)
    axis.axhline(study.world.expert @ env.cost, color=plots.COLOURS["expert"], linestyle=":", label="expert")
    best = env.mdp.optimal(env.cost).expected_cost
    axis.axhline(best, color=plots.COLOURS["optimum"], linestyle="--", label="optimum")
    axis.set_title(f"along α, expert {100 * study.world.noise:.0f}% random")
    axis.set_xlabel("pairs changed, mean over draws")
    axis.set_ylabel("true cost of the apprentice")
    axis.legend(fontsize=8)


def draw_changes(axis: Any, grid: plots.Grid, env: WindyGridworldEnv, change: FloatArray) -> None:
    """Draw an arrow for each move whose cost differs from the prior's."""
    mdp, arrows = env.mdp, np.asarray(grid.arrows)
    for some, colour in ((change > MARGIN, plots.BLACK), (change < -MARGIN, plots.GREEN)):
        row, column = np.divmod(np.asarray(mdp.pair_states)[some], env.width)
        right, up = 0.45 * arrows[np.asarray(mdp.pair_actions)[some]].T
        axis.quiver(
            column, row, right, up, angles="xy", units="xy", scale_units="xy", scale=1.0, color=colour, width=0.07
        )


if __name__ == "__main__":
    run_script(main)
