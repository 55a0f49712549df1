"""`rlfd learn`: what to do instead, and what that saves, from a log and without a simulator."""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from argparse import Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlfd_gym.command.parser import SUCCESS, Mistake, Printed, add_json, words
from rlfd_gym.command.wording import as_options

if TYPE_CHECKING:
    from rlfd_gym._checks import FloatArray
    from rlfd_gym.decision import Decision
    from rlfd_gym.experts.logs import Log
    from rlfd_gym.experts.logs.labels import Label

DESCRIPTION = """Learn from a log what the manager acts as if things cost, what to do instead, how much
that saves, and how sure this is. No simulator is needed.

  rlfd learn log.csv --state stock --action order --episode shop --time week --prior prior.csv

  rlfd learn log.csv --state stock --action order --episode shop --time week \\
      --price holding=0.3..3 --feature holding=stock+order \\
      --price buying=4       --feature buying=order \\
      --price selling=10     --feature selling=-sold

  rlfd learn log.csv --state stock --action order --episode shop --time week --revenue profit

What you believe about the costs is said in one of three ways:
  --prior: a CSV file with the columns state, action and cost. Only the pairs that it lists exist;
    rows of the log with other pairs are bad.
  --price and --feature: the range of a price, or the price, and how much of it a row pays; what is
    earned has a minus. Columns of the log are averaged over the rows of each state and action. With
    --demand demand, "selling=-min(stock+order, demand)" meets the demand of all rows.
  --revenue or --cost alone: what the log says that each row brought or cost.

The command writes `report.html`, a self-contained page with a slider, `cost.csv` (the learned cost
in money, which can be used as a prior again), `policy.csv` and `path.csv`; with a prior also
`path.png`. They replace those of an earlier run all at once: the folder never shows a new table
beside an old page."""
LEAST_ROWS, CONFIDENCE, RESAMPLES = 10, 0.9, 100


def add(subcommands: Any) -> None:
    """Declare the options."""
    from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
    from rlfd_gym.experts.logs import EXPERTS, UNVISITED
    from rlfd_gym.experts.logs.values import DATES, DECIMALS

    parser = subcommands.add_parser("learn", help="learn from a log what to do instead", description=DESCRIPTION)
    parser.add_argument("log", type=Path, help="the log: .csv, .csv.gz or .parquet")

    columns = parser.add_argument_group("columns of the log")
    columns.add_argument("--state", required=True, help="column of the state")
    columns.add_argument("--action", required=True, help="column of the action")
    following = 'column of the next state (default: "next_state", or else the state of the next row of the episode)'
    columns.add_argument("--next-state", help=following)
    columns.add_argument("--episode", help="column that tells episodes apart: shop, patient, machine")
    columns.add_argument("--time", help="column that orders the rows of an episode: numbers or dates")
    amounts = columns.add_mutually_exclusive_group()
    reported = "in which results are reported, and the prior if there is no other"
    amounts.add_argument("--revenue", metavar="COLUMN", help=f"money that a row brought, {reported}")
    amounts.add_argument("--cost", metavar="COLUMN", help=f"money that a row cost, {reported}")
    demand = "column that depends on neither state nor action, for --feature; may be repeated"
    columns.add_argument("--demand", metavar="COLUMN", action="append", default=[], help=demand)

    belief = parser.add_argument_group("what you believe about the costs, in money")
    belief.add_argument("--prior", type=Path, metavar="FILE", help="CSV with columns state, action, cost")
    priced = "range of a price, such as holding=0.3..3, or the price: buying=4; may be repeated"
    belief.add_argument("--price", type=price, metavar="NAME=LOW..HIGH", action="append", default=[], help=priced)
    paid = "how much of a price a row pays, from the columns: holding=stock+order; + - * / < min max abs"
    belief.add_argument("--feature", type=named, metavar="NAME=FORMULA", action="append", default=[], help=paid)
    between = "range in which to seek the cost, in the prior's money (default: the prior's own range)"
    belief.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=between)
    rules = "regret-budget:SHARE, prior-error:DISTANCE, discrepancy, evidence, held-out or l-curve"
    alpha = f"weight of the prior: a number (default {DEFAULT_ALPHA:g}), or a rule: {rules}"
    belief.add_argument("--alpha", default=DEFAULT_ALPHA, help=alpha)

    answers = parser.add_argument_group("answers")
    answers.add_argument("--out", type=Path, help="output folder (default: results/learn/NAME-OF-THE-LOG)")
    reading = "mode: one action for each state (default); mixture: probabilities"
    answers.add_argument("--reading", choices=("mode", "mixture"), default="mode", help=reading)
    least = f"an action with fewer rows is kept, but not newly recommended (default {LEAST_ROWS})"
    answers.add_argument("--least-rows", type=int, default=LEAST_ROWS, metavar="N", help=least)
    sure = f"nominal coverage of the intervals (default {CONFIDENCE})"
    answers.add_argument("--confidence", type=float, default=CONFIDENCE, metavar="SHARE", help=sure)
    often = f"of the log, for intervals (default {RESAMPLES}; 0: none, only with a prior)"
    answers.add_argument("--resamples", type=int, default=RESAMPLES, metavar="N", help=often)
    answers.add_argument("--seed", type=int, default=0, help="of the resampling (default 0)")
    add_json(answers)

    reading_of = parser.add_argument_group("how to read the log")
    reading_of.add_argument("--discount", type=float, default=0.9, help="γ (default 0.9)")
    reading_of.add_argument("--smoothing", type=float, default=0.0, help="pseudo-counts (default 0)")
    unseen = "how to treat pairs never seen (default: infeasible)"
    reading_of.add_argument("--unvisited", choices=UNVISITED, default="infeasible", help=unseen)
    reading_of.add_argument("--expert", choices=EXPERTS, help="how to estimate the expert (default: policy)")
    labels = "which states and actions exist: those of the prior (default), or all in the log"
    reading_of.add_argument("--labels", choices=("prior", "log"), default="prior", help=labels)
    reading_of.add_argument("--max-dropped", type=float, default=0.05, help="largest share of bad rows (default 0.05)")
    reading_of.add_argument("--order", type=words, help="labels in order: empty,low,mid,full")
    one = "whether Empty and empty are one label (default: they are, with a warning)"
    reading_of.add_argument("--fold", action=argparse.BooleanOptionalAction, default=True, help=one)
    reading_of.add_argument("--decimal", choices=DECIMALS, help="the decimal sign, if the file does not tell")
    reading_of.add_argument("--dates", choices=DATES, help="what 02/01/2023 means, if the file does not tell")
    reading_of.add_argument("--encoding", help="of the log: latin-1, cp1252 (default: UTF-8)")
    parser.set_defaults(work=learn_from_log, parser=parser)


def learn_from_log(options: Namespace) -> int:
    """Learn from the log, write the results, and print a summary."""
    from rlfd_gym._warnings import collected_warnings

    printed = Printed(options.json)
    with suppress(ValueError):  # a rule is not a number
        options.alpha = float(options.alpha)
    options.out = options.out or Path("results", "learn", options.log.name.split(".")[0] or "log")
    title, command = f"Learned from {options.log.name}", shlex.join(["rlfd", *sys.argv[1:]])
    try:
        _check(options)
        with collected_warnings() as messages:
            learned, decision = _learned(options)
        told = list(dict.fromkeys(map(as_options, messages)))
        page = _written(learned, decision, options.out, title=title, warnings=told, command=command)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise Mistake(as_options(str(error))) from None
    print("".join(f"warning: {text}\n" for text in told), end="", file=sys.stderr)
    log = learned.log if decision is None else decision.log
    printed.text(str(log.report), "")
    if learned is not None:
        printed.text(learned.choice.reason, "")
    printed.text(*_summary(learned) if decision is None else [str(decision)])
    printed.text("", f"report in {page}")
    printed.result({"page": page, "warnings": told, **_as_object(learned, decision)})
    return SUCCESS


def price(text: str) -> tuple[str, tuple[float, float] | float]:
    """Return the name and the range of "holding=0.3..3", or the name and the price of "buying=4".

    >>> price("holding=0.3..3"), price("buying=4")
    (('holding', (0.3, 3.0)), ('buying', 4.0))
    """
    name, stated = named(text)
    try:
        ends = [float(end) for end in stated.split("..")]
    except ValueError:
        ends = []
    if len(ends) not in (1, 2) or not all(map(math.isfinite, ends)) or ends != sorted(ends):
        raise argparse.ArgumentTypeError(f"{text!r} must be a range, as in holding=0.3..3, or a price, as in buying=4")
    return name, (ends[0], ends[1]) if len(ends) == 2 else ends[0]


def named(text: str) -> tuple[str, str]:
    """Return the name and the rest of "name=rest"."""
    name, sign, rest = (part.strip() for part in text.partition("="))
    if not (name and sign and rest):
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=…, as in holding=stock+order")
    return name, rest


def _check(options: Namespace) -> None:
    """Refuse what contradicts itself before the work begins."""
    from rlfd_gym.alpha import parse_rule
    from rlfd_gym.report import check_folder

    check_folder(options.out)
    if isinstance(options.alpha, str):
        parse_rule(options.alpha)
    for option in ("price", "feature"):
        names = [name for name, _ in getattr(options, option)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"--{option} {name} is given {names.count(name)} times")
    prices, features = ({name for name, _ in given} for given in (options.price, options.feature))
    for name in sorted(prices - features):
        raise ValueError(f"--price {name} needs --feature {name}=…, how much of it a row pays, such as stock+order")
    for name in sorted(features - prices):
        raise ValueError(f"--feature {name} needs --price {name}=LOW..HIGH, the range of its price")
    if prices and options.prior:
        raise ValueError("--prior and --price say the same in two ways: give one of them")
    if not (prices or options.prior or options.revenue or options.cost):
        raise ValueError(
            "what do you believe about the costs? Give --prior FILE, or --price holding=0.3..3 with "
            "--feature holding=stock+order, or --revenue COLUMN or --cost COLUMN of the log"
        )
    if prices and options.range:
        raise ValueError("--range belongs to a prior; --price has ranges of its own")
    if prices and not options.resamples:
        raise ValueError("--resamples 0 goes with a prior only; with --price give 2 or more")


def _learned(options: Namespace) -> tuple[Any, Decision | None]:
    """Read the belief and the log, and learn from them: what `learn` returns, and the decision."""
    from rlfd_gym.decision import decide, price_belief
    from rlfd_gym.experts.logs import read_costs
    from rlfd_gym.experts.scale import CostScale
    from rlfd_gym.report.log import decided, learn

    costs = read_costs(options.prior) if options.prior else None
    log = _log(options, costs)
    _tell_missing(log)
    paid = partial(_amounts, options=options) if options.revenue or options.cost else None
    how = {
        "money": paid,
        "reading": options.reading,
        "least_rows": options.least_rows,
        "confidence": options.confidence,
        "n_resamples": options.resamples,
        "seed": options.seed,
        "progress_bar": True,
    }
    if options.price:
        ranges, features = dict(options.price), dict(options.feature)
        # A function, because what the columns of the log say is resampled as well.
        return None, decide(log, lambda one: price_belief(one, ranges, features, exogenous=options.demand), **how)
    stated: Any = costs if paid is None or costs is not None else partial(_costs, options=options)
    costs = _costs(log, options) if costs is None else costs
    scale = None if options.range is None else CostScale(*options.range)
    learned = learn(log, costs, options.alpha, scale=scale, state=options.state, action=options.action)
    if not options.resamples:
        return learned, None
    learned = decided(learned, stated, **how)
    return learned, learned.decision


def _log(options: Namespace, costs: dict[tuple[Label, Label], float] | None) -> Log:
    """Read the log with the columns that amounts and features need."""
    from rlfd_gym.experts.logs import Dialect, read_log
    from rlfd_gym.experts.logs.features import names_in

    used = [column for name, formula in options.feature for column in names_in(name, formula)]
    asked = [*filter(None, (options.revenue, options.cost)), *options.demand, *used]
    listed = costs if options.labels == "prior" else None
    return read_log(
        options.log,
        discount=options.discount,
        state=options.state,
        action=options.action,
        next_state=options.next_state,
        episode=options.episode,
        time=options.time,
        columns=[column for column in dict.fromkeys(asked) if column not in (options.state, options.action)],
        state_labels=None if listed is None else sorted({state for state, _ in listed}),
        action_labels=None if listed is None else sorted({action for _, action in listed}),
        order=options.order,
        fold=options.fold,
        feasible=costs if options.unvisited != "infeasible" else None,
        smoothing=options.smoothing,
        unvisited=options.unvisited,
        expert=options.expert,
        max_dropped=options.max_dropped,
        dialect=Dialect(decimal=options.decimal, dates=options.dates, encoding=options.encoding),
    )


def _tell_missing(log: Log) -> None:
    """Warn about good rows that hold no number where one was asked for."""
    from rlfd_gym._warnings import warn

    for name, column in log.columns.items():
        missing = log.report.n_used - round(float(column.n_rows.sum()))
        if missing:
            warn(
                f"{missing} of {log.report.n_used} good rows hold no number as {name}: the others stand for them",
                UserWarning,
            )


def _amounts(log: Log, options: Namespace) -> FloatArray:
    """Return the mean cost of each pair in the log's own money; pairs without any have their state's."""
    import numpy as np

    column = options.revenue or options.cost
    if not log.column(column).n_rows.sum():
        raise ValueError(f"column {column!r} holds no numbers")
    means = log.mean(column)
    means = np.where(np.isnan(means), log.mean(column, pooling=1.0), means)
    return -means if options.revenue else means


def _costs(log: Log, options: Namespace) -> dict[tuple[Label, Label], float]:
    """Return the same as a prior."""
    return dict(zip(log.pair_labels(), _amounts(log, options).tolist(), strict=True))


def _written(learned: Any, decision: Decision | None, folder: Path, **about: Any) -> Path:
    """Write the files, and return the path of the page."""
    from rlfd_gym.report.decision_page import write_decision
    from rlfd_gym.report.log import write_report

    if learned is not None:
        return write_report(learned, folder, **about)
    return write_decision(decision, folder, **about)  # type: ignore[arg-type]


def _summary(learned: Any) -> list[str]:
    from rlfd_gym.report.log import summary

    return ["".join(f"{text:>24}" if k else f"{text:<22}" for k, text in enumerate(row)) for row in summary(learned)]


def _as_object(learned: Any, decision: Decision | None) -> dict[str, Any]:
    """Return the answers for programs."""
    from rlfd_gym.decision.answers import as_object
    from rlfd_gym.report.log import summary

    told = {} if learned is None else {"alpha": learned.choice.alpha, "summary": summary(learned)}
    return told if decision is None else {**as_object(decision), **told}
