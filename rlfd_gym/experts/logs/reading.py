"""`read_log`: from logged rows to a model and an expert; `read_costs`: a table of costs.

The estimates are those of `rlfd_gym.experts.logs.estimate`. Files are read in the spelling of any
spreadsheet (`Dialect`). Where the log has no column of next states, its order tells them
(`rlfd_gym.experts.logs.ordering`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import warn
from rlfd_gym.experts.demonstrations import Demonstrations, estimate_occupancy, read_demonstrations
from rlfd_gym.experts.logs import estimate
from rlfd_gym.experts.logs.cleaning import clean
from rlfd_gym.experts.logs.estimate import ENDS, EXPERTS, UNVISITED
from rlfd_gym.experts.logs.faults import told
from rlfd_gym.experts.logs.labels import Label, given_labels, label_columns
from rlfd_gym.experts.logs.log import Log
from rlfd_gym.experts.logs.records import Rawlog, column_names, read_records, read_table
from rlfd_gym.experts.logs.report import log_report
from rlfd_gym.experts.logs.rows import Rows, episodes_of
from rlfd_gym.experts.logs.values import Dialect
from rlfd_gym.mdp.tables import TabularMDP

NEXT_STATE = "next_state"
MAX_DROPPED = 0.05


def read_log(
    transitions: Any,
    *,
    discount: float,
    state: str = "state",
    action: str = "action",
    next_state: str | None = None,
    episode: str | None = None,
    time: str | None = None,
    columns: Sequence[str] = (),
    state_labels: Iterable[Any] | None = None,
    action_labels: Iterable[Any] | None = None,
    order: Iterable[Any] | None = None,
    fold: bool = True,
    feasible: Iterable[tuple[Label, Label]] | None = None,
    smoothing: float = 0.0,
    unvisited: str = "infeasible",
    ends: str | None = None,
    initial: ArrayLike | None = None,
    expert: str | None = None,
    max_dropped: float = MAX_DROPPED,
    dialect: Dialect | None = None,
) -> Log:
    """Estimate the model and the expert from a log; see `rlfd_gym.experts.logs.estimate`.

    Args:
        transitions: a tuple of arrays (states, actions, next_states); imitation's trajectories or
            `Transitions`; or a pandas DataFrame, a mapping of arrays, or the path of a CSV or
            parquet file, with the named columns.
        discount: γ.
        state, action: the columns to read.
        next_state: the column of next states. By default "next_state" if there is one; otherwise
            the state of the following row of the episode.
        episode: the column that tells episodes apart. Trajectories are always episodes.
        time: the column that orders the rows of an episode, numbers or dates. Without it the rows
            are taken in the order in which they come.
        columns: columns of numbers to read as well, such as money or demand; see `Log.mean` and
            `log_features`.
        state_labels, action_labels: the labels that exist, in the desired order; rows with other
            labels are bad. By default, the labels in the good rows of a table. Arrays and
            trajectories hold indices instead: 0, 1, … up to the largest seen; rows with negative
            indices are bad. If more than 10,000 indices would exist and fewer than a tenth of them
            were seen, the log is refused: give the labels that exist. So is a log that spells a
            number with and without leading zeros, "01" and "1".
        order: labels of states and actions in the order in which to number and show them, such as
            ["empty", "low", "full"]. Others come after them, sorted.
        fold: whether texts that differ only in case and blanks are one label; a warning tells which
            were.
        feasible: the pairs (state label, action label) that exist; rows with other pairs are bad.
            By default, all pairs exist.
        smoothing: κ ≥ 0, pseudo-counts.
        unvisited: "infeasible", "self" or "uniform".
        ends: what happens in states that were never left, "stay" or "continue". By default, as
            the episodes tell.
        initial: ν₀ over states. By default, the distribution of the first states of the episodes,
            or, without episodes, uniform over the states that were left.
        expert: "policy", the default, or "episodes".
        max_dropped: the largest share of bad rows; with more, the log is refused.
        dialect: how a file spells numbers and dates, where it does not tell itself.

    Example:
        >>> orders = ["none", "some", "none", "none"]
        >>> rows = {"stock": [2, 0, 1, 2], "order": orders, "next": [1, 2, 0, 0]}
        >>> names = {"state": "stock", "action": "order", "next_state": "next"}
        >>> log = read_log(rows, **names, discount=0.9)
        >>> log.pair_labels()
        [(0, 'some'), (1, 'none'), (2, 'none')]
        >>> log.mdp.transitions.toarray()[2].tolist()
        [0.5, 0.5, 0.0]

        Without next states, the following row of the same shop has them:

        >>> rows = {"shop": [1, 1, 1, 2, 2], "stock": [2, 0, 2, 2, 1], "order": [0, 2, 0, 0, 0]}
        >>> log = read_log(rows, state="stock", action="order", episode="shop", discount=0.9)
        >>> log.pair_labels(), log.report.n_used, log.report.n_last
        ([(0, 2), (1, 0), (2, 0)], 3, 2)
    """
    weight = _checks.number("smoothing", smoothing, 0.0)
    share = _checks.number("max_dropped", max_dropped, 0.0, 1.0)
    _checks.discount_factor(discount)
    _checks.one_of("unvisited", unvisited, UNVISITED)
    _checks.one_of("expert", EXPERTS[0] if expert is None else expert, EXPERTS)
    _checks.one_of("ends", ENDS[0] if ends is None else ends, ENDS)
    _checks.flag("fold", fold)
    if dialect is not None:
        _checks.instance("dialect", dialect, Dialect)
    if time is not None and episode is None:
        raise ValueError(f"time={time!r} orders the rows of episodes, but no episode column is named")

    # Read the good rows as indices, and warn about the others.
    roles = {"state": state, "action": action, "next_state": next_state, "episode": episode, "time": time}
    named = {
        role: _checks.instance(role, name, str, "the name of a column")
        for role, name in roles.items()
        if name is not None or role in ("state", "action")
    }
    records, indices = _read(transitions, named, _checks.items("columns", columns), dialect)
    rows = clean(
        records,
        indices,
        known_states=given_labels("state_labels", state_labels),
        known_actions=given_labels("action_labels", action_labels),
        known_pairs=None if feasible is None else set(feasible),
        sequence=given_labels("order", order) or (),
        fold=fold,
    )
    _judge(rows, share)
    episodes = None if rows.episodes is None else episodes_of(rows)
    if episodes is None and expert == "episodes":
        raise ValueError('expert="episodes", but the log has no episodes; name their column, or use "policy"')

    # Estimate the model, then the expert in it.
    start, source = estimate.initial_distribution(rows, initial)
    last = estimate.which_ends(rows) if ends is None else ends
    mdp, counts = estimate.estimate(rows, discount, start, weight, unvisited, last)
    visits = counts.sum(axis=1).astype(np.int64)
    policy = mdp.policy_of(visits)
    occupancy, how, carrying = _expert(mdp, policy, episodes, expert, rows.n_used)
    return Log(
        mdp=mdp,
        expert=occupancy,
        policy=policy,
        visits=visits,
        state_labels=rows.state_labels,
        action_labels=rows.action_labels,
        report=log_report(
            rows, episodes, visits, unvisited=unvisited, ends=last, initial=source, expert=how, n_carrying=carrying
        ),
        episodes=episodes,
        counts=counts,
        groups=estimate.episode_groups(rows, mdp, counts),
        columns=estimate.logged_columns(rows, mdp, counts),
        names={role: named[role] for role in named if role != "next_state"},
    )


def read_costs(
    source: Any, *, state: str = "state", action: str = "action", cost: str = "cost", dialect: Dialect | None = None
) -> dict[tuple[Label, Label], float]:
    """Read a prior: a table of costs by (state, action), in the user's words.

    The source is a path, a DataFrame or a mapping. Unlike a log it must be complete: a missing or
    repeated entry is an error. Amounts may carry a currency.

    >>> read_costs({"state": [0, 0, 1], "action": ["few", "many", "few"], "cost": [5, 2.5, "1.0"]})
    {(0, 'few'): 5.0, (0, 'many'): 2.5, (1, 'few'): 1.0}
    """
    roles = {"state": state, "action": action}
    for role, name in {**roles, "cost": cost}.items():
        _checks.instance(role, name, str, "the name of a column")
    if not isinstance(source, (str, os.PathLike, Mapping)) and (
        isinstance(source, type) or not hasattr(source, "columns")
    ):
        raise TypeError(f"source must be a path, a DataFrame or a mapping, got {type(source).__name__}")
    if dialect is not None:
        _checks.instance("dialect", dialect, Dialect)
    if cost not in (column_names(source, dialect) or ()):
        roles["cost"] = cost  # an error names the columns that there are
    table = read_table(source, roles, (cost,), dialect)
    states, actions = (label_columns([table.columns[role]])[0] for role in ("state", "action"))
    costs: dict[tuple[Label, Label], float] = {}
    codes = np.stack([states.column.codes, actions.column.codes], axis=1)
    for number, (i, j), amount in zip(table.rows.tolist(), codes.tolist(), table.amounts[cost].tolist(), strict=True):
        s, a = (None, None) if min(i, j) < 0 else (states.labels[i], actions.labels[j])
        if s is None or a is None or not abs(amount) <= sys.float_info.max:
            raise ValueError(f"costs: {table.unit} {number} must have a {state}, an {action} and a number as {cost}")
        if (s, a) in costs:
            raise ValueError(f"costs: {table.unit} {number} repeats {state} {s}, {action} {a}")
        costs[s, a] = amount
    if not costs:
        raise ValueError("costs must have at least one row")
    return costs


def _read(
    transitions: Any, roles: dict[str, str], amounts: Sequence[str], dialect: Dialect | None
) -> tuple[Rawlog, bool]:
    """Read any of the supported kinds of log.

    Also return whether its columns hold indices rather than labels.
    """
    if isinstance(transitions, (str, os.PathLike, Mapping)) or hasattr(transitions, "columns"):
        if NEXT_STATE not in roles and NEXT_STATE in (column_names(transitions, dialect) or ()):
            roles = {**roles, NEXT_STATE: NEXT_STATE}
        elif NEXT_STATE not in roles and "episode" not in roles:
            raise ValueError(
                f"next_state={NEXT_STATE!r}: the log has no such column. Name the column of next states by next_state, "
                "or the column of episodes by episode: the following row of an episode then tells"
            )
        return read_records(transitions, roles, amounts, dialect), False
    if "episode" in roles:
        raise ValueError(f"episode={roles['episode']!r} names a column of a table, but transitions are none")
    if amounts:
        raise ValueError(f"columns={list(amounts)!r} names columns of a table, but transitions are none")
    items = transitions if isinstance(transitions, (tuple, list)) else ()
    if len(items) == 3 and not any(isinstance(item, Mapping) or hasattr(item, "obs") for item in items):
        arrays = dict(zip(("state", "action", NEXT_STATE), transitions, strict=True))
    else:
        read = read_demonstrations(transitions)
        if read.next_states is None:
            raise ValueError("transitions must tell the next states (next_obs)")
        arrays = {"state": read.states, "action": read.actions, NEXT_STATE: read.next_states}
        if read.lengths is not None:
            arrays["episode"] = np.repeat(np.arange(len(read.lengths)), read.lengths)
    return read_records(arrays, {name: name for name in arrays}), True


def _judge(rows: Rows, max_dropped: float) -> None:
    """Warn about bad rows and folded labels; refuse a log with too many bad rows."""
    n_rows, n_bad = rows.n_rows, sum(kind.count for kind in rows.bad)
    if n_bad > max_dropped * n_rows:
        raise ValueError(
            f"transitions: {n_bad} of {n_rows} rows are bad, more than max_dropped={max_dropped:g} allows: "
            f"{told(rows.bad)}. Mend them, or raise max_dropped to leave them out"
        )
    if rows.bad:
        warn(f"{n_bad} of {n_rows} logged rows are bad and left out: {told(rows.bad)}", UserWarning, stacklevel=3)
    spelled = [note for note in rows.notes if " read as " in note]
    if spelled:
        warn(f"labels are spelled in several ways: {'; '.join(spelled)}; fold=False keeps them apart", UserWarning, 3)


def _expert(
    mdp: TabularMDP, policy: FloatArray, episodes: Demonstrations | None, how: str | None, n_used: int
) -> tuple[FloatArray, str, float]:
    """Return the expert's occupancy, how it was estimated, and by how many rows, effectively."""
    if episodes is None or how != "episodes":
        return mdp.occupancy_of(policy), "the policy of all rows, under the estimated model", float(n_used)
    weights = episodes.weights(mdp.discount)
    carrying = float(weights.sum() ** 2 / (weights**2).sum())
    return estimate_occupancy(episodes, mdp, estimator="count", policy=policy), "discounted episodes", carrying
