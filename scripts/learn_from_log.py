"""From a log of (state, action, next state) rows to a cost, a policy and a report, without a simulator.

    python scripts/examples/make_inventory_log.py results/shop
    python scripts/learn_from_log.py results/shop/log.csv --state stock --action order --next-state next_stock \\
        --episode shop --time week --prior results/shop/prior.csv --out results/shop

The prior is a CSV file with the columns state, action and cost, in any unit of money; the pairs that it lists are those
that exist, and log rows with others are bad. Writes `report.html`, one page that needs nothing else, `cost.csv` (the
learned cost in the prior's money, which can serve as a prior again), `policy.csv`, `path.csv` and `path.png`.
"""

from __future__ import annotations

import argparse
import csv
import io
import shlex
import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rlfd_gym import (
    Log,
    RLfDProblem,
    Solution,
    alpha_path,
    occupancy_noise,
    plots,
    read_log,
    select_alpha,
    solve_exact,
)
from rlfd_gym._checks import FloatArray
from rlfd_gym._files import write
from rlfd_gym.alpha import AlphaChoice, AlphaPath, parse_rule
from rlfd_gym.experts.logs.estimate import EXPERTS, UNVISITED, read_costs
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.report.html import Report

SHOWN_STATES, SHOWN_COSTS = 40, 12  # in the report; the CSV files have all


@dataclass(frozen=True)
class Learned:
    """All that there is to tell."""

    log: Log
    scale: CostScale
    path: AlphaPath
    choice: AlphaChoice

    @property
    def solution(self) -> Solution:
        """What was learned with the α that was chosen."""
        return self.choice.solution


def main(arguments: list[str] | None = None) -> None:
    """Learn, write, print."""
    options = parse(arguments)
    command = shlex.join(["python", "scripts/learn_from_log.py", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            learned = learn(options)
        told = list(dict.fromkeys(str(warning.message) for warning in caught))
        write_tables(learned, options.out)
        write_report(learned, options, told, command)
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise SystemExit(f"learn_from_log: {error}") from None
    print(learned.log.report)
    print("".join(f"warning: {text}\n" for text in told), end="", file=sys.stderr)
    print(f"\n{learned.choice.reason}\n")
    for row in summary(learned):
        print("".join(f"{text:>24}" if k else f"{text:<22}" for k, text in enumerate(row)))
    print(f"\nreport in {options.out / 'report.html'}")


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="the log: .csv, .csv.gz or .parquet")
    parser.add_argument("--state", required=True, help="column of the state")
    parser.add_argument("--action", required=True, help="column of the action")
    parser.add_argument("--next-state", required=True, help="column of the next state")
    parser.add_argument("--episode", help="column that tells episodes apart: shop, patient, machine")
    parser.add_argument("--time", help="column that orders the rows of an episode: numbers or ISO dates")
    parser.add_argument("--prior", type=Path, required=True, help="CSV with columns state, action, cost")
    between = "between which costs to look, in the prior's money (default: the prior's own range)"
    parser.add_argument("--range", type=float, nargs=2, metavar=("LOW", "HIGH"), help=between)
    rules = "a number, or a rule: regret-budget:SHARE (default, 0.05), discrepancy, l-curve"
    parser.add_argument("--alpha", default="regret-budget:0.05", help=rules)
    parser.add_argument("--discount", type=float, default=0.9, help="γ (default 0.9)")
    parser.add_argument("--smoothing", type=float, default=0.0, help="pseudo-counts (default 0)")
    parser.add_argument("--unvisited", choices=UNVISITED, default="infeasible", help="what pairs never seen do")
    parser.add_argument("--expert", choices=EXPERTS, help="how to estimate whoever acted (default: episodes, if any)")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    return parser.parse_args(arguments)


def learn(options: argparse.Namespace) -> Learned:
    """Read the log and the prior, follow the path, choose α."""
    try:
        alpha: float | str = float(options.alpha)
    except ValueError:
        alpha = options.alpha
        parse_rule(alpha)  # complains before the work begins
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
    scale = CostScale.spanning(list(costs.values())) if options.range is None else CostScale(*options.range)
    problem = RLfDProblem(log.mdp, log.expert, scale.to_box(log.pair_values("prior", costs)))
    path = alpha_path(problem)
    if isinstance(alpha, float):
        solution = solve_exact(problem.with_alpha(alpha))
        return Learned(log, scale, path, AlphaChoice(alpha, solution, "hand", f"alpha = {alpha:g} was given"))
    noise = None
    if parse_rule(alpha) == ("discrepancy", None) and log.episodes is not None:
        noise = occupancy_noise(log.episodes, log.mdp)
    return Learned(log, scale, path, select_alpha(path, alpha, noise=noise))


def summary(learned: Learned) -> list[list[str]]:
    """A header, and what each policy costs in money per step in the estimated model."""
    mdp, prior = learned.log.mdp, learned.path.problem.prior
    policies = {
        "logged behaviour": learned.log.policy,
        "apprentice": learned.solution.policy,
        "best for the prior": mdp.optimal(prior).policy,
    }
    logged = mdp.occupancy_of(learned.log.policy)
    rows = [["cost per step", "under the prior", "under the learned cost", "unlike the log"]]
    for name, policy in policies.items():
        occupancy = mdp.occupancy_of(policy)
        money = [f"{learned.scale.from_box(occupancy @ cost):.2f}" for cost in (prior, learned.solution.cost)]
        rows.append([name, *money, f"{np.abs(occupancy - logged).sum() / 2:.0%} of the time"])
    return rows


def write_tables(learned: Learned, out: Path) -> None:
    """cost.csv, policy.csv and path.csv."""
    log, money = learned.log, learned.scale.from_box
    cost, prior = money(learned.solution.cost), money(learned.path.problem.prior)
    pairs = log.pair_labels()
    time = log.mdp.sum_by_state(learned.solution.occupancy)[log.mdp.pair_states]
    rows = zip(pairs, cost, prior, log.visits, strict=True)
    save(out / "cost.csv", ["state", "action", "cost", "prior", "visits"], ([*pair, *rest] for pair, *rest in rows))
    header = ["state", "action", "probability", "logged_share", "visits", "time_in_state"]
    rows = zip(pairs, learned.solution.policy, log.policy, log.visits, time, strict=True)
    save(out / "policy.csv", header, ([*pair, *rest] for pair, *rest in rows))
    names = ["alpha", "distance", "regret", "departure", "duality_gap"]
    save(out / "path.csv", names, ([getattr(point, name) for name in names] for point in learned.path))


def save(path: Path, header: list[str], rows: Iterable[list[Any]]) -> None:
    """Write a CSV file, numbers to six digits."""
    page = io.StringIO()
    lines = csv.writer(page, lineterminator="\n")
    lines.writerow(header)
    lines.writerows([f"{x:.6g}" if isinstance(x, float) else x for x in row] for row in rows)
    write(path, page.getvalue().encode())


def write_report(learned: Learned, options: argparse.Namespace, told: list[str], command: str) -> None:
    """report.html, with path.png."""
    log, used, why = learned.log, learned.log.report, learned.choice.reason
    page = Report(f"Learned from {options.log.name}")
    page.text(
        f"{used.n_used:,} of {used.n_rows:,} rows were used. They show {used.n_visited} pairs of {options.state} and "
        f"{options.action}. {why[0].upper()}{why[1:]}. The problem was solved to within "
        f"{learned.solution.duality_gap:.0e} of its optimum, which is proven."
    )
    for text in told:
        page.text(f"Warning: {text}.")
    page.heading("What it costs")
    header, *rows = summary(learned)
    page.table(header, rows, reference=[0, 2])
    page.text(
        "Discounted averages in the prior's money, lower is better, as the model estimated from the log has it. Nobody "
        "has tried the apprentice in practice."
    )
    page.heading("The policy")
    page.picture(
        plots.png(maps(learned, options)),
        "Left: what was done. Middle: what to do. Right: where the learned cost differs from the prior, in money, blue "
        "cheaper and red dearer. Grey was never seen.",
    )
    page.table(*policy_table(learned, options))
    if log.mdp.n_states > SHOWN_STATES:
        page.text(f"The {SHOWN_STATES} states where the apprentice is most often; policy.csv has all probabilities.")
    page.heading("The learned cost")
    page.table(*cost_table(learned, options))
    page.text(f"The largest changes to the prior, in money; cost.csv has all {log.mdp.n_pairs} pairs.")
    page.heading("Between the log and the prior")
    chosen = [learned.choice] if learned.choice.alpha > 0 else []  # 0 is not on a logarithmic axis
    page.picture(
        plots.save(plots.plot_path(learned.path, chosen), options.out / "path.png"),
        "How much the prior may say: alpha. Small, the logged behaviour is imitated; large, the prior decides. The "
        "upright line is the alpha used.",
    )
    page.heading("The log")
    page.table(["what", "number"], used.rows())
    page.heading("How this was made")
    page.code(command)
    page.write(options.out / "report.html")


def policy_table(learned: Learned, options: argparse.Namespace) -> tuple[list[str], list[list[str]]]:
    """Header and rows: for each state the most usual action in the log and the apprentice's."""
    log, mdp = learned.log, learned.log.mdp
    time = mdp.sum_by_state(learned.solution.occupancy)
    rows = []
    for s in np.sort(np.argsort(-time, kind="stable")[:SHOWN_STATES]):
        own = slice(mdp.state_starts[s], mdp.state_starts[s + 1])
        if not log.visits[own].any():
            continue  # nobody knows what to do there
        row = [str(log.state_labels[s]), f"{log.visits[own].sum():,}", f"{time[s]:.1%}"]
        for policy in (log.policy[own], learned.solution.policy[own]):
            best = int(np.argmax(policy))
            row += [str(log.action_labels[mdp.pair_actions[own][best]]), f"{policy[best]:.0%}"]
        rows.append(row)
    header = [options.state, "rows", "apprentice's time", f"{options.action} in the log", "share"]
    return [*header, f"{options.action} learned", "probability"], rows


def cost_table(learned: Learned, options: argparse.Namespace) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the largest changes."""
    log, money = learned.log, learned.scale.from_box
    cost, prior = money(learned.solution.cost), money(learned.path.problem.prior)
    pairs = log.pair_labels()
    rows = []
    for k in np.argsort(-np.abs(cost - prior), kind="stable")[:SHOWN_COSTS]:
        amounts = [f"{prior[k]:.2f}", f"{cost[k]:.2f}", f"{cost[k] - prior[k]:+.2f}"]
        rows.append([*map(str, pairs[k]), *amounts, f"{log.visits[k]:,}"])
    return [options.state, options.action, "prior", "learned", "change", "rows"], rows


def maps(learned: Learned, options: argparse.Namespace) -> Any:
    """States × actions: the logged policy, the apprentice's, and the change of the cost."""
    log, mdp = learned.log, learned.log.mdp
    figure, axes = plots.new_figure(1, 3, size=(11, 4.2), sharey=True)
    change = learned.scale.from_box(learned.solution.cost) - learned.scale.from_box(learned.path.problem.prior)
    most = float(np.abs(change).max()) or 1.0
    panels: list[tuple[str, FloatArray, dict[str, Any]]] = [
        ("the log", log.policy, {"cmap": "Blues", "vmin": 0, "vmax": 1}),
        ("the apprentice", learned.solution.policy, {"cmap": "Blues", "vmin": 0, "vmax": 1}),
        ("learned cost - prior", change, {"cmap": plots.COST_MAP, "vmin": -most, "vmax": most}),
    ]
    for axis, (title, values, colours) in zip(axes[0], panels, strict=True):
        table = np.full((mdp.n_states, mdp.n_actions), np.nan)
        table[mdp.pair_states, mdp.pair_actions] = values
        table[mdp.sum_by_state(log.visits) == 0] = np.nan
        axis.set_facecolor("#D9D9D9")
        image = axis.imshow(table, aspect="auto", interpolation="nearest", **colours)
        axis.grid(False)
        axis.set_title(title)
        axis.set_xlabel(options.action, parse_math=False)
        for ticks, labels in ((axis.set_xticks, log.action_labels), (axis.set_yticks, log.state_labels)):
            every = range(0, len(labels), -(-len(labels) // 25))
            ticks(list(every), [str(labels[k]) for k in every], parse_math=False)  # a price such as $5-$10 is none
        figure.colorbar(image, ax=axis, shrink=0.8)
    axes[0, 0].set_ylabel(options.state, parse_math=False)
    return figure


if __name__ == "__main__":
    main()
