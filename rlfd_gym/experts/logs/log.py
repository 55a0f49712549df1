"""`Log`, what was read from a log: the model, the expert, and the user's words for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.logs.faults import listed
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.logs.report import LogReport
from rlfd_gym.mdp.tables import TabularMDP


@dataclass(frozen=True, eq=False, repr=False)
class Logged(_checks.Locked):
    """A column of numbers, as how often each value was logged with each transition.

    Of a column with very many values, each transition has two instead, with the mean and the
    variance of its rows.

    Attributes:
        name: the name of the column.
        values: the distinct values.
        by_transition: the number of rows with each entry of `Log.counts` and each value, sparse.
        counts: the same for each pair, sparse, (n_pairs, number of values).
        exact: whether the values are those of the rows.

    Example:
        >>> from rlfd_gym import read_log
        >>> rows = {"state": [0, 0, 1], "action": [0, 0, 0], "next_state": [1, 1, 0]}
        >>> rows["sold"] = [2, 4, 1]
        >>> read_log(rows, columns=["sold"], discount=0.9).columns["sold"].means().tolist()
        [3.0, 1.0]
    """

    name: str
    values: FloatArray
    by_transition: sp.csr_array
    counts: sp.csr_array
    exact: bool = True

    @classmethod
    def of(
        cls, name: str, values: FloatArray, by_transition: sp.csr_array, counts: sp.csr_array, exact: bool
    ) -> Logged:
        """Return the column from its rows by transition, the entries of `Log.counts`."""
        n_pairs, n_entries = counts.shape[0], counts.nnz
        sums = sp.csr_array((np.ones(n_entries), np.arange(n_entries), counts.indptr), shape=(n_pairs, n_entries))
        return cls(name, values, by_transition, sp.csr_array(sums @ by_transition), exact)

    def __post_init__(self) -> None:
        """Lock the arrays."""
        self._fill(**vars(self))

    @property
    def n_rows(self) -> FloatArray:
        """The number of rows of each pair that hold a number."""
        return np.asarray(self.counts.sum(axis=1), dtype=np.float64)

    def means(self) -> FloatArray:
        """Return the mean of the rows of each pair; NaN where no row holds a number."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts @ self.values / self.n_rows, dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Log(_checks.Locked):
    """What was read from a log: the model, the expert, and the user's words for both.

    Attributes:
        mdp: the model P̂.
        expert: μ_E, the occupancy of the logged behaviour.
        policy: π̂, how often each action was taken in its state.
        visits: N(s, a), over pairs; 0 where the transitions were not seen but assumed.
        state_labels: the log's word for each state.
        action_labels: the log's word for each action.
        report: what the log contained and how it was used.
        episodes: the episodes up to their cuts, as indices; `None` where the log has none. Those of
            a long log stay in a temporary file without a name, and are read when they are used.
        counts: N(s, a, s'), sparse, (n_pairs, n_states).
        groups: for each of up to a thousand groups of episodes, how often each entry of `counts` was
            seen in it, sparse, in the order of `counts.data`; `None` where there are too few
            episodes to resample.
        columns: the columns of numbers that were asked for.
        names: what the log calls its "state", "action", "episode" and "time".

    Example:
        >>> from rlfd_gym import read_log
        >>> rows = {"stock": [0, 2, 1], "order": [3, 0, 0], "next": [2, 1, 0]}
        >>> log = read_log(rows, state="stock", action="order", next_state="next", discount=0.9)
        >>> log.pair_labels(), log.visits.tolist()
        ([(0, 3), (1, 0), (2, 0)], [1, 1, 1])
    """

    mdp: TabularMDP
    expert: FloatArray
    policy: FloatArray
    visits: IntArray
    state_labels: tuple[Label, ...]
    action_labels: tuple[Label, ...]
    report: LogReport
    episodes: Demonstrations | None
    counts: sp.csr_array
    groups: sp.csr_array | None = None
    columns: Mapping[str, Logged] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Lock the arrays."""
        self._fill(**vars(self))

    def __repr__(self) -> str:
        """Say in one line how large the log and its model are."""
        report, mdp = self.report, self.mdp
        episodes = "" if report.n_episodes is None else f", {report.n_episodes:,} episodes"
        return (
            f"Log({report.n_used:,} of {report.n_rows:,} rows used{episodes}, {mdp.n_states} states, "
            f"{mdp.n_actions} actions, {mdp.n_pairs} pairs, discount {mdp.discount:g})"
        )

    def pair_labels(self) -> list[tuple[Label, Label]]:
        """Return the (state, action) of each pair, in the log's words."""
        states, actions = self.mdp.pair_states.tolist(), self.mdp.pair_actions.tolist()
        return [(self.state_labels[s], self.action_labels[a]) for s, a in zip(states, actions, strict=True)]

    def pair_values(
        self, name: str, table: Mapping[tuple[Label, Label], float], *, default: float | None = None
    ) -> FloatArray:
        """Return a vector over pairs from a table by labels.

        A pair that the table lacks has the `default`; without one it is an error.
        """
        _checks.instance(name, table, Mapping, "by (state label, action label)")  # type: ignore[type-abstract]
        filler = None if default is None else _checks.number("default", default)
        pairs = self.pair_labels()
        lacking = [pair for pair in pairs if pair not in table]
        if lacking and filler is None:
            raise ValueError(
                f"{name} lacks {len(lacking)} of the {len(pairs)} state-action pairs of the log: {listed(lacking)}"
            )
        return self.mdp.pairs([table.get(pair, filler) for pair in pairs], name)  # type: ignore[arg-type]

    def mean(self, column: str, *, pooling: float = 0.0) -> FloatArray:
        """Return the mean of a logged column over the rows of each pair, such as money.

        Args:
            column: one of the `columns` that `read_log` was asked for.
            pooling: how many rows of the state's mean are added to those of the pair. Without
                them a pair without a number is NaN.

        Example:
            >>> from rlfd_gym.experts.logs import read_log
            >>> rows = {"s": [0, 0, 0], "a": [0, 1, 1], "next": [0, 0, 0], "paid": [5.0, 1.0, 3.0]}
            >>> names = {"state": "s", "action": "a", "next_state": "next"}
            >>> log = read_log(rows, discount=0.9, columns=["paid"], **names)
            >>> log.mean("paid").tolist(), log.mean("paid", pooling=3).tolist()
            ([5.0, 2.0], [3.5, 2.6])
        """
        logged = self.column(column)
        weight = _checks.number("pooling", pooling, 0.0)
        if weight == 0:
            return logged.means()
        totals, n_rows = np.asarray(logged.counts @ logged.values), logged.n_rows
        by_state = self.mdp.sum_by_state(totals), self.mdp.sum_by_state(n_rows)
        with np.errstate(invalid="ignore"):
            around = np.where(by_state[1] > 0, by_state[0] / by_state[1], totals.sum() / n_rows.sum())
        return (totals + weight * around[self.mdp.pair_states]) / (n_rows + weight)

    def column(self, name: str) -> Logged:
        """Return a logged column of numbers; an error names those that there are."""
        _checks.instance("column", name, str, "the name of a column")
        if name not in self.columns:
            raise ValueError(
                f"column {name!r} was not read as numbers; read_log(columns=[…]) has {listed(self.columns) or 'none'}"
            )
        return self.columns[name]
