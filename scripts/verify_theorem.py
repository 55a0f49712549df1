"""Test the convergence theorem on the paper's 6 x 6 gridworld, with the theorem's own step sizes.

    python scripts/verify_theorem.py                     # minutes on two cores
    python scripts/verify_theorem.py --quick             # ε = 1, under a minute
    python scripts/verify_theorem.py --docs docs         # also docs/theorem.md and its picture

For each α, Algorithm 1 runs T(ε) steps of the theorem's sizes: the paper's variant once with the paper's
second-moment bound and, where T allows, once with the corrected bound, and the proximal variant with
its own. The mean duality gap over runs, of the averages as they are, must be at most ε. The plot shows
the gap against iterations, next to the gap for the paper's fixed step size 1e-2. The script writes
`theorem.csv` and `theorem.png`. Each finished setting is stored on its own in `points/`, and --resume
keeps it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from rlfd_gym import RLfDProblem, noisy_expert, solve_smd
from rlfd_gym.compare.provenance import ProvenanceError, require_same, versions
from rlfd_gym.envs import WindyGridworldEnv
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALPHAS = (0.0, 0.1, 0.25)
FIXED = 1e-2
FIXED_ITERATIONS = 10_000_000  # a thousand times as many as in the paper
COLOURS = {"paper": plots.BLUE, "corrected": plots.GREEN, "proximal": plots.ORANGE, "fixed": plots.VERMILION}

STEPS = {
    "paper": "the theorem's, bound as stated",
    "corrected": "the theorem's, bound that holds",
    "proximal": "those of the proximal variant's theorem",
    "fixed": f"fixed, {FIXED:g}",
}
PAGE = """# The convergence theorem

Written by `python scripts/verify_theorem.py --docs docs`; every number on this page comes from it.

The paper's theorem promises an expected duality gap of at most ε after T(ε) steps of Algorithm 1 (`solve_smd`), for
steps of its own sizes. Run with these steps on the paper's 6 × 6 gridworld, with an expert that makes 30% random
moves and a prior that is the truth on half of the cells, it **{verdict}** for ε = {epsilon:g}. The mean gap over
the runs is at most {worst:.0%} of what was promised.

| α | step sizes | steps | runs | mean gap | the promise |
|---:|---|---:|---:|---:|---|
{rows}

The lemma behind the stated bound loses a factor n when α > 0. `rlfd_gym/beliefs/near_prior.py` says where, and has
a bound that holds, which is used by default (`bound="corrected"`); its numbers of steps that are too large for this
study are left out. The proximal variant (the default of `solve_smd`, here without repaired answers) has a theorem of
its own, whose steps do not become more as α grows. For fixed steps, the paper's choice in its experiments, nothing
is promised.

![Duality gap against iterations](theorem.png)
"""


@dataclass(frozen=True)
class Outcome:
    """One row of the result, and the curve of its gap."""

    alpha: float
    steps: str
    n_iterations: int
    n_runs: int
    mean_gap: float
    std_gap: float
    epsilon: float
    iterations: list[int] = field(repr=False)
    gaps: list[float] = field(repr=False)

    @property
    def verdict(self) -> str:
        """Whether the theorem's promise was kept; it promises nothing for fixed steps."""
        if self.steps == "fixed":
            return "-"
        return "holds" if self.mean_gap <= self.epsilon else "VIOLATED"


def main(arguments: list[str] | None = None) -> None:
    """Run Algorithm 1 for each α, print the gaps, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=0.1, help="the promised gap (default 0.1)")
    parser.add_argument("--runs", type=int, default=4, help="runs to average over (default 4)")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time (default 2)")
    parser.add_argument("--most", type=float, default=1e9, help="leave out settings whose T is larger (default 1e9)")
    parser.add_argument("--quick", action="store_true", help="ε = 1, two runs, T up to 4e7")
    parser.add_argument("--out", type=Path, default=Path("results/theorem"), help="output folder")
    parser.add_argument("--resume", action="store_true", help="keep the finished settings in the output folder")
    parser.add_argument("--docs", type=Path, metavar="DIR", help="also write theorem.md and theorem.png there")
    options = parser.parse_args(arguments)
    try:
        check_folder(options.out)
    except ValueError as error:
        parser.error(str(error))
    epsilon, runs, most = (1.0, 2, 4e7) if options.quick else (options.epsilon, options.runs, options.most)

    outcomes: list[Outcome] = []
    print(f"{'alpha':>6} {'step sizes':<10} {'T':>14} {'runs':>5} {'mean gap':>10} {'std':>9}  gap <= {epsilon:g}?")
    for alpha in ALPHAS:
        problem = paper_problem(alpha)
        for steps in ("paper", "corrected", "proximal", "fixed"):
            n_iterations = FIXED_ITERATIONS if steps == "fixed" else promised(problem, steps, epsilon)
            if n_iterations > most:
                print(f"{alpha:>6g} {steps:<10} {n_iterations:>14,}  left out: more than {most:,.0f} steps")
                continue
            path = options.out / "points" / f"{alpha:g}_{steps}.json"
            asked = {"alpha": alpha, "steps": steps, "n_iterations": n_iterations, "n_runs": runs, "epsilon": epsilon}
            outcome = stored(path, asked) if options.resume and path.exists() else None
            if outcome is None:
                outcome = measured(problem, asked, options.jobs)
                write(path, json.dumps(asdict(outcome) | {"versions": versions(imitation=False)}).encode())
            outcomes.append(outcome)
            gap, std = outcome.mean_gap, outcome.std_gap
            print(
                f"{alpha:>6g} {steps:<10} {n_iterations:>14,} {runs:>5} {gap:>10.4f} {std:>9.4f}  {outcome.verdict}",
                flush=True,
            )
    names = ["alpha", "steps", "n_iterations", "n_runs", "mean_gap", "std_gap", "epsilon", "verdict"]
    write_csv(options.out / "theorem.csv", names, ([getattr(one, name) for name in names] for one in outcomes))
    plots.save(figure(outcomes, epsilon), options.out / "theorem.png")
    print(f"\nwritten: {options.out / 'theorem.csv'}, {options.out / 'theorem.png'}")
    if options.docs is not None:
        write(options.docs / "theorem.md", page(outcomes, epsilon).encode())
        plots.save(figure(outcomes, epsilon), options.docs / "theorem.png")
        print(f"written: {options.docs / 'theorem.md'}, {options.docs / 'theorem.png'}")
    if any(outcome.verdict == "VIOLATED" for outcome in outcomes):
        raise SystemExit("the theorem was violated")


def promised(problem: RLfDProblem, steps: str, epsilon: float) -> int:
    """Return the theorem's number of steps."""
    if steps == "proximal":
        return problem.proximal_theorem.iterations(epsilon)
    return problem.iterations(epsilon, steps)


def measured(problem: RLfDProblem, asked: dict[str, Any], jobs: int) -> Outcome:
    """Run Algorithm 1 as asked, and return its gaps."""
    fixed = asked["steps"] == "fixed"
    solution = solve_smd(
        problem,
        n_iterations=asked["n_iterations"],
        step_size=FIXED if fixed else None,
        epsilon=None if fixed else asked["epsilon"],
        bound="corrected" if asked["steps"] == "corrected" else "paper",
        variant="proximal" if asked["steps"] == "proximal" else "paper",
        repair=False,
        n_runs=asked["n_runs"],
        n_jobs=jobs,
        record_every=max(1, asked["n_iterations"] // 2000),
        progress_bar=True,
    )
    if not solution.finished:
        raise SystemExit("interrupted; continue with --resume")
    history = solution.history
    gap, std = float(history.duality_gap[-1]), float(history.duality_gap_std[-1])
    iterations, gaps = history.iteration.tolist(), history.duality_gap.tolist()
    return Outcome(**asked, mean_gap=gap, std_gap=std, iterations=iterations, gaps=gaps)


def stored(path: Path, asked: dict[str, Any]) -> Outcome:
    """Read a finished setting, which must be the one that is asked for."""
    try:
        content = json.loads(path.read_text())
        theirs = {name: str(content[name]) for name in asked} | content.pop("versions")
        ours = {name: str(value) for name, value in asked.items()} | versions(imitation=False)
        require_same(theirs, ours, str(path), "Delete it, or run without --resume")
        return Outcome(**content)
    except ProvenanceError as error:
        raise SystemExit(f"--resume: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise SystemExit(f"--resume: {path} is damaged ({type(error).__name__}: {error})") from None


def paper_problem(alpha: float) -> RLfDProblem:
    """Return the problem of the 6 x 6 grid, with an expert that makes 30% random moves.

    The prior is the truth on a random half of the cells.
    """
    env = gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6).unwrapped
    assert isinstance(env, WindyGridworldEnv)
    return RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), env.partial_prior(0.5, seed=0), alpha)


def page(outcomes: list[Outcome], epsilon: float) -> str:
    """Return the page of documentation: what was promised, and what was measured."""
    kept = all(outcome.verdict != "VIOLATED" for outcome in outcomes)
    promised = [outcome for outcome in outcomes if outcome.steps != "fixed"]
    worst = max(outcome.mean_gap / outcome.epsilon for outcome in promised)
    rows = "\n".join(
        f"| {one.alpha:g} | {STEPS[one.steps]} | {one.n_iterations:,} | {one.n_runs} | {one.mean_gap:.4f} "
        f"| {one.verdict} |"
        for one in outcomes
    )
    return PAGE.format(
        verdict="keeps its promise" if kept else "does not keep its promise", epsilon=epsilon, rows=rows, worst=worst
    )


def figure(outcomes: list[Outcome], epsilon: float) -> Figure:
    """Draw the gap against iterations, with one panel per α."""
    labels = {"paper": "theorem's steps, stated bound", "corrected": "theorem's steps, corrected bound"}
    labels["proximal"] = "theorem's steps, proximal variant"
    figure, axes = plots.new_figure(1, len(ALPHAS), (11, 3.6), sharey=True)
    for axis, alpha in zip(axes[0], ALPHAS, strict=True):
        for outcome in outcomes:
            if outcome.alpha == alpha:
                label = labels.get(outcome.steps, f"fixed steps {FIXED:g}, as in the paper's figures")
                axis.loglog(outcome.iterations, outcome.gaps, color=COLOURS[outcome.steps], label=label)
        axis.axhline(epsilon, color="black", linestyle=":", linewidth=1, label=f"promised gap ε = {epsilon:g}")
        axis.set_title(f"α = {alpha:g}")
        axis.set_xlabel("iterations")
    axes[0, 0].set_ylabel("duality gap, mean over runs")
    plots.legend_below(figure, columns=2)
    return figure


if __name__ == "__main__":
    run_script(main)
