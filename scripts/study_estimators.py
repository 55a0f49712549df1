"""Measure how the expert is best estimated from demonstrations, and what each reading is worth.

    python scripts/study_estimators.py                # minutes on two cores
    python scripts/study_estimators.py --quick        # seconds
    python scripts/study_estimators.py --docs docs    # also rewrites the tables of two pages, and the figure

For each task of the comparison, number of demonstrations and seed, the expert is estimated by its
discounted count and by the occupancy of its estimated policy, which in states that were not seen
acts uniformly or plans with the prior. The error is measured against the expert's exact occupancy,
and RLfD learns from each estimate. The script writes `estimators.csv`, with one row per result,
`estimators.md` and `noise_and_error.md`, with the tables, and the figure.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from rlfd_gym import RLfDProblem, occupancy_from_demonstrations, solve_exact
from rlfd_gym.compare import TASKS
from rlfd_gym.compare.tasks import demonstrations_of
from rlfd_gym.experts import action_variation
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv
from rlfd_gym.report.tables import mean_and_margin

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TASK_NAMES = ("inventory", "windy", "lake")
ESTIMATES = {
    "count": "discounted count",
    "policy": "policy, uniform where unseen",
    "policy+prior": "policy, planning where unseen",
}
BELIEFS = ("0.01", "0.1", "1", "ranges")
READINGS = {"occupancy": "mixture", "mode": "mode"}
PAGES = ("estimators.md", "noise_and_error.md")
BEGIN, END = "<!-- written by scripts/study_estimators.py -->", "<!-- end of what the script writes -->"


@dataclass(frozen=True)
class Result:
    """One row of the result: a number of one estimate. Without a belief, it is about the estimate itself."""

    task: str
    number: int
    seed: int
    estimate: str
    belief: str
    measure: str
    value: float


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    seeds: int
    numbers: tuple[int, ...]
    jobs: int
    out: Path
    docs: Path | None
    redraw: bool


def main() -> None:
    """Run the study, or read its last results, and write tables and figure."""
    options = parse()
    path = options.out / "estimators.csv"
    if options.redraw:
        with path.open(newline="") as file:
            results = [result(row) for row in csv.DictReader(file)]
    else:
        results = run(options)
        write_csv(path, [field.name for field in fields(Result)], map(astuple, results))
    texts = dict(zip(PAGES, (estimators(results), readings(results)), strict=True))
    for folder in (options.out, options.docs):
        if folder is not None:
            plots.save(figure(results), folder / "estimators.png", dpi=110)
    for name, text in texts.items():
        write(options.out / name, text.encode())
        if options.docs is not None:
            page = options.docs / name
            write(page, filled(page.read_text(), text).encode())
        print(text)


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three seeds, 1 and 10 demonstrations")
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds to average over (default 20)")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (default: one for each core)")
    parser.add_argument("--out", type=Path, default=Path("results/estimators"), help="where the results go")
    parser.add_argument("--docs", type=Path, help="a folder with the pages whose tables to rewrite")
    parser.add_argument("--redraw", action="store_true", help="from the results of the last run")
    given = parser.parse_args()
    if given.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {given.seeds}")
    check_folder(given.out, "out")
    numbers = (1, 10) if given.quick else (1, 3, 10, 30, 100)
    return Options(3 if given.quick else given.seeds, numbers, given.jobs, given.out, given.docs, given.redraw)


def run(options: Options) -> list[Result]:
    """Study all tasks, seeds and numbers of demonstrations."""
    calls = [
        delayed(study)(task, number, seed)
        for task in TASK_NAMES
        for number in reversed(options.numbers)
        for seed in range(options.seeds)
    ]
    parts = Parallel(n_jobs=options.jobs, return_as="generator")(calls)
    return [row for part in tqdm(parts, total=len(calls), desc="demonstrations", disable=None) for row in part]


def study(task: str, number: int, seed: int) -> list[Result]:
    """Estimate one expert in all ways, and learn from each estimate."""
    instance = TASKS[task].make(seed)
    mdp, truth = instance.mdp, instance.truth
    walks = demonstrations_of(instance, number, np.random.SeedSequence([seed, number]))
    rows = [Result(task, number, seed, "", "", "variation", action_variation(walks, mdp, n_resamples=1).estimate)]
    for name in ESTIMATES:
        for belief in BELIEFS:
            guess = instance.belief.guess if belief == "ranges" else instance.prior
            occupancy = occupancy_from_demonstrations(
                walks, mdp, estimator=name.removesuffix("+prior"), prior=guess if name.endswith("+prior") else None
            )
            if belief == "ranges":
                problem = RLfDProblem(mdp, occupancy, belief=instance.belief)
            else:
                problem = RLfDProblem(mdp, occupancy, instance.prior, float(belief))
                error = float(np.abs(occupancy - instance.expert).sum())
            solution = solve_exact(problem)
            costs = {kind: mdp.expected_cost(solution.read(mdp, kind), truth) for kind in READINGS}
            rows += [Result(task, number, seed, name, belief, kind, cost) for kind, cost in costs.items()]
        rows.append(Result(task, number, seed, name, "", "error", error))
    ends = zip(("expert", "optimum"), instance.ends, strict=True)
    return rows + [Result(task, number, seed, "", "", kind, cost) for kind, cost in ends]


def result(row: Mapping[str, str]) -> Result:
    """Return a row of the file as a result."""
    kinds = {"number": int, "seed": int, "value": float}
    return Result(**{name: kinds.get(name, str)(text) for name, text in row.items()})


def of(results: Sequence[Result], **wanted: str | int) -> list[float]:
    """Return the numbers over seeds with the given properties."""
    return [row.value for row in results if all(getattr(row, name) == value for name, value in wanted.items())]


def shown(values: Sequence[float]) -> str:
    """Return a mean with its 95% interval."""
    known = [value for value in values if not np.isnan(value)]
    if not known:
        return "–"
    mean, margin = mean_and_margin(known)
    return f"{mean:.3f}" + ("" if margin is None else f" ± {margin:.3f}")


def lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a table in Markdown."""
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def estimators(results: list[Result]) -> str:
    """Return the tables about estimators."""
    numbers = sorted({row.number for row in results})
    seeds = len({row.seed for row in results})
    text = [f"Means over {seeds} seeds with 95% intervals.", "", "**ℓ1 error of the estimated occupancy**", ""]
    head = ["task", "demonstrations", *ESTIMATES.values()]
    rows = [
        [task, str(n), *(shown(of(results, task=task, number=n, estimate=e, measure="error")) for e in ESTIMATES)]
        for task in TASK_NAMES
        for n in numbers
    ]
    text += [*lines(head, rows), ""]
    for kind, title in READINGS.items():
        text += [f"**True expected cost of RLfD read as a {title}** (lower is better)", ""]
        rows = [
            [
                task,
                str(n),
                belief if belief == "ranges" else f"α = {belief}",
                *(shown(of(results, task=task, number=n, estimate=e, belief=belief, measure=kind)) for e in ESTIMATES),
            ]
            for task in TASK_NAMES
            for n in numbers
            for belief in BELIEFS
        ]
        text += [*lines(["task", "demonstrations", "belief", *ESTIMATES.values()], rows), ""]
    return "\n".join([*text, *wins(results)]) + "\n"


def wins(results: list[Result]) -> list[str]:
    """Say how often, and by how much, each estimate beats the count, as a share of the way to the optimum."""
    text = []
    keys = sorted({(row.task, row.number, row.seed) for row in results})
    ways = {(t, n, s): of(results, task=t, number=n, seed=s, measure="expert")[0]
            - of(results, task=t, number=n, seed=s, measure="optimum")[0] for t, n, s in keys}  # fmt: skip
    cost = {(r.task, r.number, r.seed, r.belief, r.measure, r.estimate): r.value for r in results if r.belief}
    for name in list(ESTIMATES)[1:]:
        for kind, title in READINGS.items():
            # The beliefs share the demonstrations, so their mean is one number for each sample.
            gains = [
                np.mean([cost[(*key, b, kind, "count")] - cost[(*key, b, kind, name)] for b in BELIEFS]) / ways[key]
                for key in keys
            ]
            text.append(
                f"* {ESTIMATES[name]}, read as a {title}: {shown(gains)} of the way from expert to optimum better than "
                "the count, over all samples."
            )
    return text


def readings(results: list[Result]) -> str:
    """Return the table about readings: the share of the way to the optimum, as a mixture and as a mode."""
    rows = []
    for task in TASK_NAMES:
        for n in sorted({row.number for row in results}):
            expert, optimum = (of(results, task=task, number=n, measure=end)[0] for end in ("expert", "optimum"))
            closed = []
            for belief in BELIEFS:
                for kind in READINGS:
                    found = of(results, task=task, number=n, estimate="policy+prior", belief=belief, measure=kind)
                    closed.append(f"{np.mean([(expert - cost) / (expert - optimum) for cost in found]):.0%}")
            varies = of(results, task=task, number=n, measure="variation")
            known = [value for value in varies if not np.isnan(value)]
            rows.append([task, str(n), f"{np.mean(known):.0%}" if known else "–", *closed])
    heads = [f"{'' if b == 'ranges' else 'α = '}{b}, {title}" for b in BELIEFS for title in READINGS.values()]
    text = ["Share of the way from the expert to the optimum, and how often the expert varies its action.", ""]
    return "\n".join([*text, *lines(["task", "demonstrations", "varies", *heads], rows)]) + "\n"


def figure(results: list[Result]) -> Figure:
    """Draw the error of the estimates against the number of demonstrations."""
    drawn, axes = plots.new_figure(1, len(TASK_NAMES), size=(10.0, 3.4), sharey=True)
    numbers = sorted({row.number for row in results})
    for axis, task in zip(axes[0], TASK_NAMES, strict=True):
        for k, (name, title) in enumerate(ESTIMATES.items()):
            found = [mean_and_margin(of(results, task=task, number=n, estimate=name, measure="error")) for n in numbers]
            axis.errorbar(
                numbers, [mean for mean, _ in found], yerr=[margin or 0.0 for _, margin in found], label=title,
                color=plots.SEQUENCE[k], marker="os^"[k], markersize=4, linewidth=1.2, capsize=2,
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xticks(numbers, [str(n) for n in numbers])
        axis.set_title(task)
        axis.set_xlabel("demonstrations")
    axes[0, 0].set_ylabel("ℓ1 error of the expert's occupancy")
    axes[0, 0].legend(fontsize=8, frameon=False)
    return drawn


def filled(page: str, text: str) -> str:
    """Return a page with its written part replaced."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"docs: the page has no lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{text}{END}{after}"


if __name__ == "__main__":
    run_script(main)
