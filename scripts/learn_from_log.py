"""Learn a cost and a policy from a log of (state, action, next state) rows, without a simulator.

    python scripts/examples/make_inventory_log.py results/shop
    python scripts/learn_from_log.py results/shop/log.csv --state stock --action order \\
        --next-state next_stock --episode shop --time week --prior results/shop/prior.csv \\
        --out results/shop

The prior is a CSV file with the columns state, action and cost, in any unit of money. States and
actions that it does not list are mistakes (`--labels log` takes them all); pairs that it does not
list get the middle of its range. The script writes
`report.html`, a self-contained page, `cost.csv` (the learned cost in the prior's money, which can
be used as a prior again), `policy.csv`, `path.csv` and `path.png`. They replace those of an earlier
run all at once: the folder never shows a new table beside an old page.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rlfd_gym import collected_warnings, read_log
from rlfd_gym.alpha import parse_rule
from rlfd_gym.decision.words import sentences
from rlfd_gym.experts.logs import EXPERTS, UNVISITED, Dialect, read_costs
from rlfd_gym.experts.logs.values import DATES, DECIMALS
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.report import check_folder, run_script
from rlfd_gym.report.log import Learned, decided, learn, summary, write_report


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    log: Path
    state: str
    action: str
    next_state: str | None
    episode: str | None
    time: str | None
    prior: Path
    range: tuple[float, float] | None
    alpha: float | str
    discount: float
    smoothing: float
    unvisited: str
    expert: str | None
    labels: str
    max_dropped: float
    order: list[str] | None
    decimal: str | None
    dates: str | None
    encoding: str | None
    resamples: int
    out: Path


def main(arguments: list[str] | None = None) -> None:
    """Learn from the log, write the results, and print a summary."""
    options = parse(arguments)
    command = shlex.join(["python", "scripts/learn_from_log.py", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with collected_warnings() as messages:
            learned = learned_with(options)
        told = list(dict.fromkeys(messages))
        title = f"Learned from {options.log.name}"
        page = write_report(learned, options.out, title=title, warnings=told, command=command)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise SystemExit(f"learn_from_log: {error}") from None
    print(learned.log.report)
    print("".join(f"warning: {text}\n" for text in told), end="", file=sys.stderr)
    print(f"\n{learned.choice.reason}\n")
    if learned.decision is not None:
        print("\n".join(sentences(learned.decision)), end="\n\n")
    for row in summary(learned):
        print("".join(f"{text:>24}" if k else f"{text:<22}" for k, text in enumerate(row)))
    print(f"\nreport in {page}")


def parse(arguments: list[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="the log: .csv, .csv.gz or .parquet")
    parser.add_argument("--state", required=True, help="column of the state")
    parser.add_argument("--action", required=True, help="column of the action")
    following = 'column of the next state (default: "next_state", or else the state of the next row of the episode)'
    parser.add_argument("--next-state", help=following)
    parser.add_argument("--episode", help="column that tells episodes apart: shop, patient, machine")
    parser.add_argument("--time", help="column that orders the rows of an episode: numbers or dates")
    parser.add_argument("--prior", type=Path, required=True, help="CSV with columns state, action, cost")
    between = "range in which to seek the cost, in the prior's money (default: the prior's own range)"
    parser.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=between)
    rules = "a number, or a rule: regret-budget:SHARE (default, 0.05), discrepancy, prior-error:DISTANCE, l-curve"
    parser.add_argument("--alpha", default="regret-budget:0.05", help=rules)
    parser.add_argument("--discount", type=float, default=0.9, help="γ (default 0.9)")
    parser.add_argument("--smoothing", type=float, default=0.0, help="pseudo-counts (default 0)")
    parser.add_argument("--unvisited", choices=UNVISITED, default="infeasible", help="how to treat pairs never seen")
    parser.add_argument("--expert", choices=EXPERTS, help="how to estimate the expert (default: policy)")
    labels = "which states and actions exist: those of the prior (default), or all in the log"
    parser.add_argument("--labels", choices=("prior", "log"), default="prior", help=labels)
    parser.add_argument("--max-dropped", type=float, default=0.05, help="largest share of bad rows (default 0.05)")
    parser.add_argument("--order", type=lambda text: text.split(","), help="labels in order: empty,low,mid,full")
    parser.add_argument("--decimal", choices=DECIMALS, help="the decimal sign, if the file does not tell")
    parser.add_argument("--dates", choices=DATES, help="what 02/01/2023 means, if the file does not tell")
    parser.add_argument("--encoding", help="of the log: latin-1, cp1252 (default: UTF-8)")
    parser.add_argument("--resamples", type=int, default=100, help="of the log, for intervals (default 100; 0: none)")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    given = vars(parser.parse_args(arguments))
    with suppress(ValueError):  # a rule is not a number
        given["alpha"] = float(given["alpha"])
    return Options(**given)


def learned_with(options: Options) -> Learned:
    """Read the prior and the log, and learn from them, if the results can be written."""
    check_folder(options.out)
    if isinstance(options.alpha, str):
        parse_rule(options.alpha)  # raises an error before the work begins
    costs = read_costs(options.prior)
    known = options.labels == "prior"
    log = read_log(
        options.log,
        discount=options.discount,
        state=options.state,
        action=options.action,
        next_state=options.next_state,
        episode=options.episode,
        time=options.time,
        state_labels=sorted({state for state, _ in costs}) if known else None,
        action_labels=sorted({action for _, action in costs}) if known else None,
        order=options.order,
        feasible=costs if options.unvisited != "infeasible" else None,
        smoothing=options.smoothing,
        unvisited=options.unvisited,
        expert=options.expert,
        max_dropped=options.max_dropped,
        dialect=Dialect(decimal=options.decimal, dates=options.dates, encoding=options.encoding),
    )
    scale = None if options.range is None else CostScale(*options.range)
    learned = learn(log, costs, options.alpha, scale=scale, state=options.state, action=options.action)
    return decided(learned, costs, n_resamples=options.resamples) if options.resamples else learned


if __name__ == "__main__":
    run_script(main)
