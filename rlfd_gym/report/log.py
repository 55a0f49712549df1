"""Learning from a log, and the report on it: tables as CSV, and one page of HTML.

The model and the expert come from the log (`rlfd_gym.experts.logs`), the prior from a table of
costs in money. Exact solutions are computed along α, one of them is chosen, and the results are
reported in the log's own words:

    costs = read_costs("prior.csv")
    learned = learn(read_log("log.csv", discount=0.9), costs)
    write_report(learned, folder, title="Learned from log.csv")

With `decided(learned, costs)` the page is that of the decision, which begins with what to do
instead and what that saves, and all of this is folded up at its end; see
`rlfd_gym.report.decision_page`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._file_sets import replacing_set
from rlfd_gym.alpha import AlphaChoice, AlphaPath, alpha_path, parse_rule, select_alpha
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.decision import Decision, decide, prior_belief
from rlfd_gym.decision.resampling import only, supported
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.logs.log import Log
from rlfd_gym.experts.logs.report import THIN
from rlfd_gym.experts.noise import occupancy_noise
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.report import plots
from rlfd_gym.report.decision_page import decision_page, technical, with_command, write_pairs
from rlfd_gym.report.html import Report
from rlfd_gym.report.log_tables import SHOWN_STATES, cost_table, policy_table, rows_by_state, unseen
from rlfd_gym.report.tables import write_csv
from rlfd_gym.solvers.exact import solve_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIGITS = 6  # of numbers in the CSV files


@dataclass(frozen=True, eq=False, repr=False)
class Learned:
    """What was learned from a log and a prior.

    Attributes:
        log: the model, the expert, and the words for states and actions.
        scale: the conversion between the prior's money and [-1, 1].
        path: the exact solutions along α.
        choice: the α that was chosen, the reason, and its solution.
        state: what the log calls a state.
        action: what the log calls an action.
        n_without_prior: pairs that the prior lacks; they have the middle of its range.
        decision: what follows from it all, if it was asked for.
    """

    log: Log
    scale: CostScale
    path: AlphaPath
    choice: AlphaChoice
    state: str = "state"
    action: str = "action"
    n_without_prior: int = 0
    decision: Decision | None = None

    @property
    def solution(self) -> Solution:
        """The solution for the α that was chosen."""
        return self.choice.solution

    @property
    def cost(self) -> FloatArray:
        """The learned cost, in money: the decision's, if there is one."""
        return self.scale.from_box(self.solution.cost) if self.decision is None else self.decision.cost

    @property
    def policy(self) -> FloatArray:
        """The learned policy: the decision's, if there is one."""
        return self.solution.policy if self.decision is None else self.decision.policy

    @property
    def prior(self) -> FloatArray:
        """The prior, in money."""
        return self.scale.from_box(self.path.problem.prior)

    def __repr__(self) -> str:
        """Say which log was used, and which α was chosen."""
        return f"Learned({self.log!r}, α = {self.choice.alpha:.3g} by {self.choice.rule})"


def learn(
    log: Log,
    costs: Mapping[tuple[Label, Label], float],
    alpha: float | str = DEFAULT_ALPHA,
    *,
    scale: CostScale | None = None,
    state: str = "state",
    action: str = "action",
) -> Learned:
    """Compute the path of exact solutions along α, and choose one of them.

    Args:
        log: what `read_log` returns.
        costs: the prior in money, as returned by `read_costs`. Pairs of the log that it lacks get
            the middle of the range, where learning begins without a prior.
        alpha: a number, by default the same as everywhere, or a rule of `select_alpha`.
        scale: the range in which the cost is sought, in the prior's money. By default, the
            prior's own range.
        state: what the log calls a state.
        action: what the log calls an action.
    """
    scale = CostScale.spanning(list(costs.values())) if scale is None else scale
    belief, lacking = prior_belief(log, costs, scale=scale)
    problem = RLfDProblem(log.mdp, log.expert, belief=belief)
    path = alpha_path(problem)
    if isinstance(alpha, str):
        noise = None
        if parse_rule(alpha) == ("discrepancy", None) and log.episodes is not None:
            noise = occupancy_noise(log.episodes, log.mdp)
        choice = select_alpha(path, alpha, noise=noise, demonstrations=log.episodes)
    else:
        solution = solve_exact(problem.with_alpha(alpha))
        choice = AlphaChoice(alpha, solution, "hand", f"alpha = {alpha:g} was given")
    return Learned(log, scale, path, choice, state, action, lacking)


def decided(
    learned: Learned,
    costs: Mapping[tuple[Label, Label], float] | Callable[[Log], Mapping[tuple[Label, Label], float]],
    **options: Any,
) -> Learned:
    """Return what was learned, with what follows from it: `decide` for the same α and range.

    Args:
        learned: what `learn` returns.
        costs: the prior in money that it was learned with, or how to compute it from a log.
        options: others of `decide`.
    """
    decision = decide(learned.log, costs, alpha=learned.choice.alpha, scale=learned.scale, **options)
    return replace(learned, decision=replace(decision, reason=learned.choice.reason))


def summary(learned: Learned) -> list[list[str]]:
    """Return a header, and the cost per step of each policy, in money, in the estimated model.

    The best policy for the prior takes actions that were seen; what an apprentice does on pairs that
    were seen rarely or never is told.
    """
    mdp, prior = learned.log.mdp, learned.prior
    seen, best = supported(learned.log, 1), np.zeros(mdp.n_pairs)
    best[seen] = only(mdp, seen).optimal(prior[seen]).policy
    policies = {
        "logged behaviour": learned.log.policy,
        "apprentice": learned.policy,
        "best for the prior": best,
    }
    logged = mdp.occupancy_of(learned.log.policy)
    rows = [["cost per step", "under the prior", "under the learned cost", "unlike the log", "on fewer than 10 rows"]]
    for name, policy in policies.items():
        occupancy = mdp.occupancy_of(policy)
        money = [f"{occupancy @ cost:.2f}" for cost in (prior, learned.cost)]
        thin = float(occupancy[learned.log.visits < THIN].sum())
        rows.append(
            [name, *money, f"{np.abs(occupancy - logged).sum() / 2:.0%} of the time", f"{thin:.0%} of the time"]
        )
    return rows


def write_report(
    learned: Learned, folder: str | os.PathLike[str], *, title: str, warnings: Sequence[str] = (), command: str = ""
) -> Path:
    """Write what `write_tables` and `write_page` do as a set, and return the path of the page.

    Whenever this is stopped, the folder shows all files from before or all of the new ones: they
    are links into a hidden folder beside them, see `rlfd_gym._file_sets`.
    """
    with replacing_set(folder) as new:
        write_tables(learned, new)
        page = write_page(learned, new, title=title, warnings=warnings, command=command)
    return Path(folder) / page.name


def write_tables(learned: Learned, folder: str | os.PathLike[str]) -> None:
    """Write cost.csv (which can be used as a prior again), policy.csv and path.csv."""
    log, out = learned.log, Path(folder)
    if learned.decision is not None:
        write_pairs(learned.decision, out)
    else:
        states, actions = zip(*log.pair_labels(), strict=True)
        time = log.mdp.sum_by_state(learned.solution.occupancy)[log.mdp.pair_states]
        rows = zip(states, actions, learned.cost, learned.prior, log.visits, strict=True)
        write_csv(out / "cost.csv", ["state", "action", "cost", "prior", "visits"], rows, DIGITS)
        header = ["state", "action", "probability", "logged_share", "visits", "time_in_state"]
        rows = zip(states, actions, learned.policy, log.policy, log.visits, time, strict=True)
        write_csv(out / "policy.csv", header, rows, DIGITS)
    names = ["alpha", "distance", "regret", "departure", "duality_gap"]
    write_csv(out / "path.csv", names, ([getattr(point, name) for name in names] for point in learned.path), DIGITS)


def write_page(
    learned: Learned, folder: str | os.PathLike[str], *, title: str, warnings: Sequence[str] = (), command: str = ""
) -> Path:
    """Write report.html, a self-contained page, and path.png; return the path of the page.

    Args:
        learned: what `learn` returns.
        folder: where to write; it is created if necessary.
        title: the heading of the page.
        warnings: warnings for the reader, one sentence each.
        command: the command that made the page.
    """
    log, out = learned.log, Path(folder)
    page = Report(title)
    page.text(_opening(learned))
    for text in warnings if learned.decision is None else ():
        page.text(f"Warning: {text}.")
    page.heading("What it costs")
    header, *rows = summary(learned)
    page.table(header, rows, reference=[0, 2])
    page.text(
        "Discounted averages in the prior's money, lower is better, as the model estimated from the log has it. A "
        "policy that was chosen on the same log looks better there than it is, the more so the fewer rows it rests on."
    )
    page.heading("The policy")
    page.picture(
        plots.png(draw_maps(learned)),
        "Left: what was done. Middle: what to do. Right: where the learned cost differs from the prior, in money, blue "
        f"cheaper and red more expensive. {unseen(log)}",
    )
    page.table(*policy_table(learned))
    if log.mdp.n_states > SHOWN_STATES:
        page.text(f"The {SHOWN_STATES} states where the apprentice is most often; policy.csv has all probabilities.")
    page.heading("The learned cost")
    page.table(*cost_table(learned))
    page.text(f"The largest changes to the prior, in money; cost.csv has all {log.mdp.n_pairs} pairs.")
    page.heading("Between the log and the prior")
    chosen = [learned.choice] if learned.choice.alpha > 0 else []  # a logarithmic axis has no 0
    page.picture(
        plots.save(plots.plot_path(learned.path, chosen), out / "path.png"),
        "How much the prior may say: alpha. Small, the logged behaviour is imitated; large, the prior decides. The "
        "upright line is the alpha used.",
    )
    if learned.decision is None:
        page.heading("The log")
        page.table(["what", "number"], log.report.rows())
        with_command(page, command)
    else:
        page.parts += technical(learned.decision, command).parts
        whole = decision_page(learned.decision, title=title, warnings=warnings)
        page = whole.details("Technical details", page)
    page.write(out / "report.html")
    return out / "report.html"


def draw_maps(learned: Learned) -> Figure:
    """Draw the logged policy, the apprentice's policy and the change of the cost, as maps."""
    log, mdp = learned.log, learned.log.mdp
    figure, axes = plots.new_figure(1, 3, size=(11, 4.2), sharey=True)
    change = learned.cost - learned.prior
    most = float(np.abs(change).max()) or 1.0
    panels: list[tuple[str, FloatArray, dict[str, Any]]] = [
        ("the log", log.policy, {"cmap": "Blues", "vmin": 0, "vmax": 1}),
        ("the apprentice", learned.policy, {"cmap": "Blues", "vmin": 0, "vmax": 1}),
        ("learned cost - prior", change, {"cmap": plots.COST_MAP, "vmin": -most, "vmax": most}),
    ]
    for axis, (title, values, colours) in zip(axes[0], panels, strict=True):
        table = mdp.table(values)
        table[rows_by_state(log) == 0] = np.nan
        axis.set_facecolor("#D9D9D9")
        image = axis.imshow(table, aspect="auto", interpolation="nearest", **colours)
        assumed = np.argwhere((mdp.table(log.visits) == 0) & np.isfinite(table))
        axis.plot(assumed[:, 1], assumed[:, 0], "x", color="black", markersize=4)
        axis.grid(False)
        axis.set_title(title)
        axis.set_xlabel(learned.action, parse_math=False)
        for ticks, labels in ((axis.set_xticks, log.action_labels), (axis.set_yticks, log.state_labels)):
            every = range(0, len(labels), -(-len(labels) // 25))
            ticks(list(every), [str(labels[k]) for k in every], parse_math=False)  # $5-$10 is a price, not a formula
        figure.colorbar(image, ax=axis, shrink=0.8)
    axes[0, 0].set_ylabel(learned.state, parse_math=False)
    return figure


def _opening(learned: Learned) -> str:
    """Return the first paragraph: what was used, which α and why, and how exact the answer is."""
    used, why = learned.log.report, learned.choice.reason
    middle = (learned.scale.low + learned.scale.high) / 2
    lacking = f" {learned.n_without_prior} pairs without a prior have the middle of its range, {middle:.2f}."
    lacking = lacking if learned.n_without_prior else ""
    return (
        f"{used.n_used:,} of {used.n_rows:,} rows were used. They show {used.n_visited} pairs of {learned.state} and "
        f"{learned.action}. {why[0].upper()}{why[1:]}. The problem was solved to within "
        f"{learned.solution.duality_gap:.0e} of its optimum, which is proven.{lacking}"
    )
