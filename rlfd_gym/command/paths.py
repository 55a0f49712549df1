"""`rlfd path`: exact solutions along α, from imitating the expert to following the prior."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from rlfd_gym.command.parser import SUCCESS, Mistake, Printed, add_json, columns, levels, numbers

DESCRIPTION = """Solve one task of the comparison exactly along α, from imitating the expert to following the prior.

  rlfd path inventory
  rlfd path windy --demonstrations 10 --points 12 --out results/path
  rlfd path lake --alpha 0.01,0.1,1 --json

The columns are the distance of the learned cost from the prior, the expert's regret under the
learned cost, how far the apprentice departs from the expert, and its true expected cost. With
--out, path.csv and path.png are written."""
HEADS = ("alpha", "distance", "regret", "departure", "true_cost")


def add(subcommands: Any) -> None:
    """Declare the options."""
    parser = subcommands.add_parser("path", help="solve a task along alpha", description=DESCRIPTION)
    parser.add_argument("task", help="a task of the comparison, by name; see `rlfd compare --list`")
    parser.add_argument("--demonstrations", type=levels, default=["exact"], help="their number, or exact (default)")
    parser.add_argument("--alpha", dest="alphas", type=numbers, help="weights of the prior (default: found)")
    parser.add_argument("--points", type=int, default=12, help="how many weights, if they are found (default 12)")
    parser.add_argument("--seed", type=int, default=0, help="seed of what the task draws (default 0)")
    parser.add_argument("--out", type=Path, help="a folder for path.csv and path.png")
    add_json(parser)
    parser.set_defaults(work=solve_path, parser=parser)


def solve_path(options: Namespace) -> int:
    """Solve along α, print a line for each point, and write the table and the picture."""
    from rlfd_gym.report import check_folder

    try:
        if options.out is not None:
            check_folder(options.out)
        path, rows = _solved(options)
        written = [] if options.out is None else _write(options.out, path, rows)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise Mistake(str(error)) from None
    printed = Printed(options.json)
    printed.result({"task": options.task, "points": [dict(zip(HEADS, row, strict=True)) for row in rows]})
    if not options.json:
        printed.text(*columns([HEADS, *(tuple(f"{number:.4g}" for number in row) for row in rows)]))
        printed.text(*(f"written: {name}" for name in written))
    return SUCCESS


def _solved(options: Namespace) -> tuple[Any, list[tuple[float, ...]]]:
    """Return the path, and a row of numbers for each of its points."""
    import numpy as np

    from rlfd_gym import _checks
    from rlfd_gym.alpha import alpha_path
    from rlfd_gym.compare import TASKS
    from rlfd_gym.compare.tasks import demonstrations_of
    from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
    from rlfd_gym.problem.problem import RLfDProblem

    task = TASKS[_checks.one_of("task", options.task, TASKS)].make(_checks.integer("seed", options.seed, 0))
    if len(options.demonstrations) != 1:
        raise ValueError(f"demonstrations must be one number or exact, got {options.demonstrations}")
    (level,) = options.demonstrations
    expert = task.expert
    if level != "exact":
        number = _checks.integer("demonstrations", level, 1)
        shown = demonstrations_of(task, number, np.random.SeedSequence(options.seed))
        expert = occupancy_from_demonstrations(shown, task.mdp)
    path = alpha_path(RLfDProblem(task.mdp, expert, task.prior, 0.1), options.alphas, options.points)
    rows: list[tuple[float, ...]] = [
        (point.alpha, point.distance, point.regret, point.departure, task.mdp.expected_cost(point.policy, task.truth))
        for point in path
    ]
    return path, rows


def _write(folder: Path, path: Any, rows: list[tuple[float, ...]]) -> list[Path]:
    """Write the table, and the picture; return their paths."""
    from rlfd_gym.report import plots
    from rlfd_gym.report.tables import write_csv

    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "path.csv", HEADS, rows)
    plots.save(plots.plot_path(path), folder / "path.png")
    return [folder / "path.csv", folder / "path.png"]
