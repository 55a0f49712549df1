"""The tables of the report on a log: policies and costs, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.report import THIN

if TYPE_CHECKING:
    from rlfd_gym.report.log import Learned

SHOWN_STATES, SHOWN_COSTS = 40, 12  # on the page; the CSV files have all of them


def policy_table(learned: Learned) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of policies.

    For each state they show the most frequent action in the log and the apprentice's most likely
    one.
    """
    log, mdp = learned.log, learned.log.mdp
    time, n_rows = mdp.sum_by_state(mdp.occupancy_of(learned.policy)), rows_by_state(log)
    policies = log.policy, learned.policy
    likely = [(mdp.likely_actions(policy), mdp.max_by_state(policy)) for policy in policies]
    visits, rows = mdp.table(log.visits, fill=0.0), []
    for s in np.sort(np.argsort(-time, kind="stable")[:SHOWN_STATES]):
        if not n_rows[s]:
            continue  # it is not known what to do there
        row = [str(log.state_labels[s]), f"{n_rows[s]:,.0f}", f"{time[s]:.1%}"]
        for action, chance in likely:
            row += [str(log.action_labels[action[s]]), f"{chance[s]:.0%}"]
        rows.append([*row, _told_rows(int(visits[s, likely[1][0][s]]))])
    header = [learned.state, "rows", "apprentice's time", f"{learned.action} in the log", "share"]
    return [*header, f"{learned.action} learned", "probability", "its rows"], rows


def cost_table(learned: Learned) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table of the largest changes to the prior."""
    cost, prior, pairs = learned.cost, learned.prior, learned.log.pair_labels()
    rows = []
    for k in np.argsort(-np.abs(cost - prior), kind="stable")[:SHOWN_COSTS]:
        amounts = [f"{prior[k]:.2f}", f"{cost[k]:.2f}", f"{cost[k] - prior[k]:+.2f}"]
        rows.append([*map(str, pairs[k]), *amounts, f"{learned.log.visits[k]:,}"])
    return [learned.state, learned.action, "prior", "learned", "change", "rows"], rows


def _told_rows(count: int) -> str:
    """Write the rows behind a recommendation, and mark few."""
    if count == 0:
        return "never seen"
    return f"{count:,}" if count >= THIN else f"only {count}"


def unseen(log: Log) -> str:
    """Say what the maps show of pairs that were never seen."""
    if log.report.unvisited == "infeasible":
        return "Grey was never seen."
    return "Grey does not exist, or is a state that was never left; a cross was never seen, and is assumed."


def rows_by_state(log: Log) -> FloatArray:
    """Return the number of rows of the log in which each state was left."""
    return log.mdp.sum_by_state(log.visits.astype(np.float64))
