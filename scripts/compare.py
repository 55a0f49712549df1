"""Compare RLfD and other methods that learn from imperfect experts.

    python scripts/compare.py                                # all tasks, under three minutes
    python scripts/compare.py --quick                        # seconds
    python scripts/compare.py --list                         # tasks and methods
    python scripts/compare.py --tasks icu-sepsis --methods rlfd-ranges,lpal,cloning --demonstrations exact
    python scripts/compare.py --tasks windy --methods rlfd-exact,lpal --alpha 0.01,0.1 --seeds 20
    python scripts/compare.py --resume results/compare/...   # continue a run, or add to it

The script prints a table for each task, and writes rows, means, design, pictures and a page to
results/compare/<time>/.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from rlfd_gym import compare
from rlfd_gym.report import check_folder, run_script

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


def main() -> int:
    """Run the comparison, print its tables, and name the page."""
    parser = argument_parser()
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False, markup=False)
    if options.list:
        console.print(listing())
        return 0
    names = ("tasks", "methods", "seeds", "demonstrations", "alphas", "readings", "iterations", "runs")
    chosen = (QUICK if options.quick else {}) | {n: v for n in names if (v := getattr(options, n)) is not None}
    out = options.resume or options.out or Path("results/compare") / datetime.now().strftime("%Y-%m-%d_%H%M%S")
    where: dict[str, Any] = {"jobs": options.jobs, "scheduler": options.scheduler, "out": out}
    try:
        check_folder(out, "resume" if options.resume else "out")
        result = compare.run(**chosen, **where, resume=bool(options.resume), progress=True)
    except (compare.CellError, ConnectionError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except (ImportError, OSError, TypeError, ValueError) as error:
        parser.error(str(error))
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt}", file=sys.stderr)
        return 130
    console.print(result)
    console.print(compare.legend(), style="dim")
    print(f"\nreport: {out / 'report.html'}")
    return 0


def listing() -> str:
    """Return the tasks and the methods, with what each method does and how it is set."""
    lines = ["tasks:", *(f"  {name:<18}{task.title}" for name, task in compare.TASKS.items()), "methods:"]
    for name, method in compare.METHODS.items():
        lines.append(f"  {name:<18}{method.title}" + ("" if method.default else " (if named)"))
        for text in (method.explanation, method.setting):
            lines += textwrap.wrap(text, 98, initial_indent=" " * 20, subsequent_indent=" " * 20)
    return "\n".join(lines)


def argument_parser() -> argparse.ArgumentParser:
    """Return the options; those left out have the defaults of `rlfd_gym.compare.Design`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    parser.add_argument("--quick", action="store_true", help="the fast methods, two seeds, few iterations: seconds")
    parser.add_argument("--list", action="store_true", help="list tasks and methods, and exit")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, help="a new folder (default results/compare/<time>)")
    where.add_argument("--resume", type=Path, metavar="DIR", help="continue in this folder, keeping its finished cells")
    return parser


def words(text: str) -> list[str]:
    """Return the words of "a,b" as a list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[float]:
    """Return the numbers of "0.1,1" as a list."""
    return [float(word) for word in words(text)]


def levels(text: str) -> list[int | str]:
    """Return the levels of "1,10,exact" as a list."""
    return [word if word == "exact" else int(word) for word in words(text)]


if __name__ == "__main__":
    run_script(main)
