"""`rlfd compare`: RLfD and other methods that learn from imperfect experts, side by side."""

from __future__ import annotations

import sys
import textwrap
from argparse import Namespace
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rlfd_gym.command.parser import FAILURE, SUCCESS, Mistake, Printed, add_json, levels, numbers, words

DESCRIPTION = """Compare RLfD and other methods that learn from imperfect experts.

  rlfd compare                                # the default tasks, under three minutes
  rlfd compare --quick                        # half a minute
  rlfd compare --list                         # tasks and methods
  rlfd compare --tasks icu-sepsis --methods rlfd-ranges,lpal,cloning --demonstrations exact
  rlfd compare --tasks windy --methods rlfd-exact,lpal --alpha 0.01,0.1 --seeds 20
  rlfd compare --resume results/compare/...   # continue a run, or add to it

The command prints a table for each task, and writes rows, means, design, pictures and a page to
results/compare/<time>/."""

QUICK: dict[str, Any] = {
    "methods": [
        "rlfd-exact",
        "rlfd-ranges",
        "rlfd-smd",
        "irl-io",
        "lpal",
        "max-margin",
        "lp-irl",
        "cloning",
        "majority",
    ],
    "seeds": 2,
    "demonstrations": [10, "exact"],
    "alphas": [0.1],
    "iterations": 100_000,
    "runs": 1,
}
PAGE_ROWS = [
    ("prior", None, "occupancy"),
    ("rlfd-ranges", None, "occupancy"),
    *(("rlfd-exact", alpha, reading) for reading in ("occupancy", "mode") for alpha in (0.01, 0.1, 1.0)),
    ("mixture", None, "occupancy"),
    ("max-margin-prior", 0.1, "occupancy"),
    ("drex", 0.1, "occupancy"),
    ("bayesian-irl", None, "occupancy"),
    ("broil", None, "occupancy"),
    ("spibb", None, "occupancy"),
    ("majority", None, "mode"),
    ("max-margin", None, "occupancy"),
    ("lpal", None, "occupancy"),
    ("mce-irl", None, "occupancy"),
    ("cloning", None, "occupancy"),
]
README_ROWS = [
    ("prior", None, "occupancy"),
    ("rlfd-ranges", None, "occupancy"),
    ("rlfd-exact", 0.01, "occupancy"),
    ("rlfd-exact", 0.01, "mode"),
    ("bayesian-irl", None, "occupancy"),
    ("majority", None, "mode"),
    ("mce-irl", None, "occupancy"),
    ("cloning", None, "occupancy"),
]
DESIGN = ("tasks", "methods", "seeds", "demonstrations", "alphas", "readings", "iterations", "runs")


def add(subcommands: Any) -> None:
    """Declare the options; those left out have the defaults of `rlfd_gym.compare.Design`."""
    parser = subcommands.add_parser("compare", help="compare RLfD with other methods", description=DESCRIPTION)
    parser.add_argument("--tasks", type=words, help="tasks, by name: a,b")
    parser.add_argument("--methods", type=words, help="methods, by name: a,b")
    parser.add_argument("--seeds", type=int, help="how many seeds to average over (default 5)")
    parser.add_argument("--demonstrations", type=levels, help="numbers of demonstrations (default 1,10,100,exact)")
    parser.add_argument("--alpha", dest="alphas", type=numbers, help="weights of the prior (default 0.01,0.1,1)")
    parser.add_argument("--readings", type=words, help="own (default), occupancy, mode: how policies are read")
    parser.add_argument("--iterations", type=int, help="steps of each run of the stochastic solvers (default 1000000)")
    parser.add_argument("--runs", type=int, help="runs that these solvers average over (default 1)")
    parser.add_argument("--jobs", type=int, default=-1, help="cells at a time (default: one for each core)")
    parser.add_argument("--scheduler", help="run on the workers of this Dask scheduler, tcp://...")
    parser.add_argument("--quick", action="store_true", help="the fast methods, two seeds, few steps: half a minute")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="also write comparison.md there, and the README's table"
    )
    parser.add_argument("--list", action="store_true", help="list tasks and methods, and exit")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, help="a new folder (default results/compare/<time>)")
    where.add_argument("--resume", type=Path, metavar="DIR", help="continue in this folder, keeping its finished cells")
    add_json(parser)
    parser.set_defaults(work=compare_methods, parser=parser)


def compare_methods(options: Namespace) -> int:
    """Run the comparison, print its tables, and name the page."""
    from rlfd_gym import compare
    from rlfd_gym.report import check_folder

    printed = Printed(options.json)
    if options.list:
        return _list(printed)
    chosen = (QUICK if options.quick else {}) | {n: v for n in DESIGN if (v := getattr(options, n)) is not None}
    out = options.resume or options.out or Path("results/compare") / datetime.now().strftime("%Y-%m-%d_%H%M%S")
    where: dict[str, Any] = {"jobs": options.jobs, "scheduler": options.scheduler, "out": out}
    try:
        check_folder(out, "resume" if options.resume else "out")
        result = compare.run(**chosen, **where, resume=bool(options.resume), progress=True)
    except (compare.CellError, ConnectionError) as error:
        print(f"\n{error}", file=sys.stderr)
        return FAILURE
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise Mistake(str(error)) from None
    written = [] if options.docs is None else compare.write_docs(result, options.docs, PAGE_ROWS, README_ROWS)
    page = out / "report.html"
    printed.result({"page": page, "folder": out, "summaries": [summary.values() for summary in result.summaries()]})
    if not options.json:
        _show(result, compare.legend())
        print("\n".join(["", *(f"written: {path}" for path in written), f"report: {page}"]))
    return SUCCESS


def _show(result: Any, legend: str) -> None:
    """Print the tables, in colour where rich is installed."""
    if find_spec("rich") is None:
        print(f"{result}\n\n{legend}")
        return
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False, markup=False)
    console.print(result)
    console.print(legend, style="dim")


def _list(printed: Printed) -> int:
    """Print the tasks, and the methods with what each does and how it is set."""
    from rlfd_gym import compare

    printed.text("tasks:", *(f"  {name:<18}{task.title}{_named(task)}" for name, task in compare.TASKS.items()))
    printed.text("methods:")
    for name, method in compare.METHODS.items():
        printed.text(f"  {name:<18}{method.title}{_named(method)}")
        for text in filter(None, (method.explanation, method.setting)):
            printed.text(textwrap.fill(text, 98, initial_indent=" " * 20, subsequent_indent=" " * 20))
    printed.result(
        {
            "tasks": [{"name": name, "title": task.title} for name, task in compare.TASKS.items()],
            "methods": [
                {"name": name, "title": method.title, "explanation": method.explanation, "setting": method.setting}
                for name, method in compare.METHODS.items()
            ],
        }
    )
    return SUCCESS


def _named(entry: Any) -> str:
    return "" if entry.default else " (if named)"
