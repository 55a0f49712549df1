"""Learn a cost and a policy from a log of (state, action, next state) rows, without a simulator.

    python scripts/examples/make_inventory_log.py results/shop
    python scripts/learn_from_log.py results/shop/log.csv --state stock --action order \\
        --next-state next_stock --episode shop --time week --prior results/shop/prior.csv \\
        --out results/shop

The prior is a CSV file with the columns state, action and cost, in any unit of money. Only the
pairs that it lists exist; rows of the log with other pairs are bad. The script writes
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
from rlfd_gym.experts.logs import EXPERTS, UNVISITED, read_costs
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.report import check_folder, run_script
from rlfd_gym.report.log import Learned, learn, summary, write_report


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    log: Path
    state: str
    action: str
    next_state: str
    episode: str | None
    time: str | None
    prior: Path
    range: tuple[float, float] | None
    alpha: float | str
    discount: float
    smoothing: float
    unvisited: str
    expert: str | None
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
    for row in summary(learned):
        print("".join(f"{text:>24}" if k else f"{text:<22}" for k, text in enumerate(row)))
    print(f"\nreport in {page}")


def parse(arguments: list[str] | None) -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="the log: .csv, .csv.gz or .parquet")
    parser.add_argument("--state", required=True, help="column of the state")
    parser.add_argument("--action", required=True, help="column of the action")
    parser.add_argument("--next-state", required=True, help="column of the next state")
    parser.add_argument("--episode", help="column that tells episodes apart: shop, patient, machine")
    parser.add_argument("--time", help="column that orders the rows of an episode: numbers or ISO dates")
    parser.add_argument("--prior", type=Path, required=True, help="CSV with columns state, action, cost")
    between = "range in which to seek the cost, in the prior's money (default: the prior's own range)"
    parser.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=between)
    rules = (
        "a number, or a rule: regret-budget:SHARE (default, 0.05), discrepancy, prior-error:DISTANCE, evidence, "
        "held-out, l-curve"
    )
    parser.add_argument("--alpha", default="regret-budget:0.05", help=rules)
    parser.add_argument("--discount", type=float, default=0.9, help="γ (default 0.9)")
    parser.add_argument("--smoothing", type=float, default=0.0, help="pseudo-counts (default 0)")
    parser.add_argument("--unvisited", choices=UNVISITED, default="infeasible", help="how to treat pairs never seen")
    parser.add_argument("--expert", choices=EXPERTS, help="how to estimate the expert (default: episodes, if any)")
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
    log = read_log(
        options.log,
        discount=options.discount,
        state=options.state,
        action=options.action,
        next_state=options.next_state,
        episode=options.episode,
        time=options.time,
        state_labels=sorted({state for state, _ in costs}),
        action_labels=sorted({action for _, action in costs}),
        feasible=costs,
        smoothing=options.smoothing,
        unvisited=options.unvisited,
        expert=options.expert,
    )
    scale = None if options.range is None else CostScale(*options.range)
    return learn(log, costs, options.alpha, scale=scale, state=options.state, action=options.action)


if __name__ == "__main__":
    run_script(main)
