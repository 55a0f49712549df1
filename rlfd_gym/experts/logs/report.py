"""The report on a log: what it contained and how it was used."""

from __future__ import annotations

from dataclasses import dataclass

from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.logs.rows import BadRows, listed

THIN = 10  # pairs seen less often than this are reported: their rows of P̂ are rough


@dataclass(frozen=True)
class LogReport:
    """What a log contained and how it was used; `print` it.

    Attributes:
        n_rows: rows of the log.
        n_used: good rows.
        bad: the bad rows by reason. Their counts add up to n_rows - n_used: a row with several
            faults counts for the first.
        n_states: states of the model.
        n_actions: actions of the model.
        n_visited: pairs that were seen.
        n_thin: pairs that were seen fewer than `THIN` times.
        n_unvisited: pairs that exist and were not seen.
        unvisited: what was assumed about the pairs that were not seen.
        ends: states that were never left; they are absorbing.
        initial: where the initial distribution comes from.
        expert: how the expert was estimated.
        n_episodes: episodes whose beginning is known; `None` where the log has no episodes.
        n_behind_gaps: good rows after the first gap of their episode; they count only for the
            model and the policy.
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

    def rows(self) -> list[tuple[str, str]]:
        """Return the report as a table of names and numbers."""
        table = [("rows", f"{self.n_rows:,}"), ("used", f"{self.n_used:,}")]
        table += [(f"left out: {kind.reason}", f"{kind.count:,} ({kind.where})") for kind in self.bad]
        table += [
            ("states × actions", f"{self.n_states} × {self.n_actions}"),
            ("pairs seen", f"{self.n_visited:,}"),
            (f"pairs seen fewer than {THIN} times", f"{self.n_thin:,}"),
            (f"pairs never seen, {self.unvisited}", f"{self.n_unvisited:,}"),
            ("states never left, which stay", f"{len(self.ends)} ({listed(self.ends)})" if self.ends else "0"),
            ("initial distribution", self.initial),
            ("expert", self.expert),
        ]
        if self.n_episodes is not None:
            table += [
                ("episodes with a known beginning", f"{self.n_episodes:,}"),
                ("rows behind a gap in their episode", f"{self.n_behind_gaps:,}"),
            ]
        return table

    def __str__(self) -> str:
        """Return the table as text, with one line per entry."""
        width = max(len(what) for what, _ in self.rows())
        return "\n".join(f"{what:<{width}}  {number}" for what, number in self.rows())
