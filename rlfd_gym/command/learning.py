"""`rlfd learn`: a cost and a policy from a log of what was done, without a simulator."""

from __future__ import annotations

import shlex
import sys
from argparse import Namespace
from contextlib import suppress
from pathlib import Path
from typing import Any

from rlfd_gym.command.parser import SUCCESS, Mistake, Printed, add_json, words

DESCRIPTION = """Learn a cost and a policy from a log of (state, action, next state) rows, without a simulator.

  rlfd learn log.csv --state stock --action order --episode shop --time week --prior prior.csv \\
      --out results/shop

The prior is a CSV file with the columns state, action and cost, in any unit of money. Only the
pairs that it lists exist; rows of the log with other pairs are bad. The command writes
`report.html`, a self-contained page, `cost.csv` (the learned cost in the prior's money, which can
be used as a prior again), `policy.csv`, `path.csv` and `path.png`. They replace those of an earlier
run all at once: the folder never shows a new table beside an old page."""


def add(subcommands: Any) -> None:
    """Declare the options."""
    from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
    from rlfd_gym.experts.logs import EXPERTS, UNVISITED
    from rlfd_gym.experts.logs.values import DATES, DECIMALS

    parser = subcommands.add_parser("learn", help="learn from a log what to do instead", description=DESCRIPTION)
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
    rules = "regret-budget:SHARE, prior-error:DISTANCE, discrepancy, evidence, held-out or l-curve"
    alpha = f"weight of the prior: a number (default {DEFAULT_ALPHA:g}), or a rule: {rules}"
    parser.add_argument("--alpha", default=DEFAULT_ALPHA, help=alpha)
    parser.add_argument("--discount", type=float, default=0.9, help="γ (default 0.9)")
    parser.add_argument("--smoothing", type=float, default=0.0, help="pseudo-counts (default 0)")
    parser.add_argument("--unvisited", choices=UNVISITED, default="infeasible", help="how to treat pairs never seen")
    parser.add_argument("--expert", choices=EXPERTS, help="how to estimate the expert (default: policy)")
    labels = "which states and actions exist: those of the prior (default), or all in the log"
    parser.add_argument("--labels", choices=("prior", "log"), default="prior", help=labels)
    parser.add_argument("--max-dropped", type=float, default=0.05, help="largest share of bad rows (default 0.05)")
    parser.add_argument("--order", type=words, help="labels in order: empty,low,mid,full")
    parser.add_argument("--decimal", choices=DECIMALS, help="the decimal sign, if the file does not tell")
    parser.add_argument("--dates", choices=DATES, help="what 02/01/2023 means, if the file does not tell")
    parser.add_argument("--encoding", help="of the log: latin-1, cp1252 (default: UTF-8)")
    parser.add_argument("--resamples", type=int, default=100, help="of the log, for intervals (default 100; 0: none)")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    add_json(parser)
    parser.set_defaults(work=learn_from_log, parser=parser)


def learn_from_log(options: Namespace) -> int:
    """Learn from the log, write the results, and print a summary."""
    from rlfd_gym._warnings import collected_warnings
    from rlfd_gym.decision.words import sentences
    from rlfd_gym.report.log import summary, write_report

    printed = Printed(options.json)
    with suppress(ValueError):  # a rule is not a number
        options.alpha = float(options.alpha)
    try:
        with collected_warnings() as messages:
            learned = _learned(options)
        told = list(dict.fromkeys(messages))
        title, command = f"Learned from {options.log.name}", shlex.join(["rlfd", *sys.argv[1:]])
        page = write_report(learned, options.out, title=title, warnings=told, command=command)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise Mistake(str(error)) from None
    print("".join(f"warning: {text}\n" for text in told), end="", file=sys.stderr)
    rows = summary(learned)
    said = [] if learned.decision is None else sentences(learned.decision)
    printed.text(str(learned.log.report), "", learned.choice.reason, "", *said, "")
    printed.text(*("".join(f"{text:>24}" if k else f"{text:<22}" for k, text in enumerate(row)) for row in rows))
    printed.text("", f"report in {page}")
    printed.result({"page": page, "alpha": learned.choice.alpha, "warnings": told, "answers": said, "summary": rows})
    return SUCCESS


def _learned(options: Namespace) -> Any:
    """Read the prior and the log, and learn from them, if the results can be written."""
    from rlfd_gym.alpha import parse_rule
    from rlfd_gym.experts.logs import Dialect, read_costs, read_log
    from rlfd_gym.experts.scale import CostScale
    from rlfd_gym.report import check_folder
    from rlfd_gym.report.log import decided, learn

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
