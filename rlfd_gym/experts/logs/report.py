"""The report on a log: what it contained and how it was used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rlfd_gym._checks import IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.faults import BadRows, listed
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.logs.rows import Rows

THIN = 10  # pairs seen less often than this are reported: their rows of P̂ are rough


@dataclass(frozen=True)
class LogReport:
    """What a log contained and how it was used; `print` it.

    Attributes:
        n_rows: rows of the log.
        n_used: good rows.
        bad: the bad rows by reason. Their counts add up to n_rows - n_used - n_last: a row with
            several faults counts for the first.
        n_states: states of the model.
        n_actions: actions of the model.
        n_visited: pairs that were seen.
        n_thin: pairs that were seen fewer than `THIN` times.
        n_unvisited: pairs that exist and were not seen.
        unvisited: what was assumed about the pairs that were not seen.
        ends: states that were never left.
        ends_rule: "stay" if they are absorbing, "continue" if they lead to a state of any row.
        initial: where the initial distribution comes from.
        expert: how the expert was estimated.
        n_episodes: episodes whose beginning is known; `None` where the log has no episodes.
        n_behind_gaps: good rows after the first gap of their episode; they count only for the
            model and the policy.
        n_last: last rows of their episodes, in a log without next states.
        n_carrying: the rows that carried the estimate of the expert: as many rows of equal weight
            would be as exact. All good rows, unless the expert is estimated from episodes.
        notes: how the log was read where there was a choice.

    Example:
        >>> from rlfd_gym import read_log
        >>> rows = {"stock": [0, 2, 1], "order": [3, 0, 0], "next": [2, 1, 0]}
        >>> log = read_log(rows, state="stock", action="order", next_state="next", discount=0.9)
        >>> log.report.n_rows, log.report.n_used, log.report.n_visited
        (3, 3, 3)
    """

    n_rows: int
    n_used: int
    bad: tuple[BadRows, ...]
    n_states: int
    n_actions: int
    n_visited: int
    n_thin: int
    n_unvisited: int
    unvisited: str
    ends: tuple[Label, ...]
    initial: str
    expert: str
    n_episodes: int | None
    n_behind_gaps: int
    n_last: int = 0
    n_carrying: float = 0.0
    ends_rule: str = "stay"
    notes: tuple[str, ...] = ()

    def rows(self) -> list[tuple[str, str]]:
        """Return the report as a table of names and numbers."""
        table = [("rows", f"{self.n_rows:,}"), ("used", f"{self.n_used:,}")]
        if self.n_last:
            table.append(("last of their episodes, so nothing follows", f"{self.n_last:,}"))
        for kind in self.bad:
            shown = f": {', '.join(kind.values)}" if kind.values else ""
            table.append((f"left out: {kind.reason}", f"{kind.count:,} ({kind.where}{shown})"))
        table += [
            ("states × actions", f"{self.n_states} × {self.n_actions}"),
            ("pairs seen", f"{self.n_visited:,}"),
            (f"pairs seen fewer than {THIN} times", f"{self.n_thin:,}"),
            (f"pairs never seen, {self.unvisited}", f"{self.n_unvisited:,}"),
            (
                f"states never left, which {self.ends_rule}",
                f"{len(self.ends)} ({listed(self.ends)})" if self.ends else "0",
            ),
            ("initial distribution", self.initial),
            ("expert", self.expert),
            ("rows that carried the expert's estimate", f"{self.n_carrying:,.0f} of {self.n_used:,}"),
        ]
        if self.n_episodes is not None:
            table += [
                ("episodes with a known beginning", f"{self.n_episodes:,}"),
                ("rows behind a gap in their episode", f"{self.n_behind_gaps:,}"),
            ]
        return table + [("read", note) for note in self.notes]

    def __str__(self) -> str:
        """Return the table as text, with one line per entry."""
        width = max(len(what) for what, _ in self.rows())
        return "\n".join(f"{what:<{width}}  {number}" for what, number in self.rows())


def log_report(
    rows: Rows,
    episodes: Demonstrations | None,
    visits: IntArray,
    *,
    unvisited: str,
    ends: str,
    initial: str,
    expert: str,
    n_carrying: float,
) -> LogReport:
    """Count what the log contained, and say how it was used."""
    n_states, n_actions = len(rows.state_labels), len(rows.action_labels)
    n_visited, n_used = int((visits > 0).sum()), rows.n_used
    n_possible = n_states * n_actions if rows.feasible is None else len(rows.feasible)
    return LogReport(
        n_rows=rows.n_rows,
        n_used=n_used,
        bad=rows.bad,
        n_states=n_states,
        n_actions=n_actions,
        n_visited=n_visited,
        n_thin=int(((visits > 0) & (visits < THIN)).sum()),
        n_unvisited=n_possible - n_visited,
        unvisited=unvisited,
        ends=tuple(rows.state_labels[s] for s in np.flatnonzero(~rows.left)),
        initial=initial,
        expert=expert,
        n_episodes=None if episodes is None or episodes.lengths is None else len(episodes.lengths),
        n_behind_gaps=0 if episodes is None else n_used - len(episodes.states),
        n_last=rows.n_last,
        n_carrying=n_carrying,
        ends_rule=ends,
        notes=rows.notes,
    )
