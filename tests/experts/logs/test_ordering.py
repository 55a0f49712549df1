"""Next states, their order and gaps are derived from episodes and times."""

from __future__ import annotations

import numpy as np
import pytest
from small_logs import bad_rows, told

from rlfd_gym import read_log

NAMES = {"state": "stock", "action": "order", "episode": "shop"}


def test_the_following_row_of_the_episode_tells_the_next_state():
    rows = {
        "shop": ["a", "b", "a", "b", "a"],
        "week": [3, 1, 1, 2, 2],
        "stock": [5, 7, 1, 8, 2],
        "order": [0, 1, 2, 3, 4],
    }
    log = read_log(rows, discount=0.9, **NAMES, time="week")
    seen = [
        (s, a, log.state_labels[t])
        for (s, a), row in zip(log.pair_labels(), log.counts.toarray(), strict=True)
        for t in np.flatnonzero(row)
    ]
    assert seen == [(1, 2, 2), (2, 4, 5), (7, 1, 8)]
    assert (log.report.n_used, log.report.n_last, log.report.bad) == (3, 2, ())
    assert "next states are those of the following rows" in str(log.report)


def test_it_is_the_same_log_as_with_a_column_of_next_states(inventory):
    rng = np.random.default_rng(0)
    stock = rng.integers(0, 5, (4, 31))
    order = rng.integers(0, 3, (4, 30))
    shop, day = np.repeat(np.arange(4), 30), np.tile(np.arange(30), 4)
    told = {
        "shop": shop,
        "day": day,
        "stock": stock[:, :-1].ravel(),
        "order": order.ravel(),
        "next_state": stock[:, 1:].ravel(),
    }
    mixed = rng.permutation(120)
    full = read_log({name: column[mixed] for name, column in told.items()}, discount=0.9, **NAMES, time="day")
    keep = day < 29  # the last day's next state is known from the column only
    lacking = {name: column[mixed] for name, column in told.items() if name != "next_state"}
    derived = read_log(lacking, discount=0.9, **NAMES, time="day")
    whole = read_log({name: column[keep] for name, column in told.items()}, discount=0.9, **NAMES, time="day")
    assert (full.report.n_used, derived.report.n_used, derived.report.n_last) == (120, 116, 4)
    assert derived.pair_labels() == whole.pair_labels()
    np.testing.assert_array_equal(derived.counts.toarray(), whole.counts.toarray())


@bad_rows
def test_a_missing_week_is_a_gap_and_its_neighbour_is_bad():
    rows = {
        "shop": ["a"] * 6,
        "week": ["2023-01-02", "2023-01-09", "2023-01-23", "2023-01-30", "2023-02-06", "2023-02-13"],
    }
    rows |= {"stock": [0, 1, 2, 3, 4, 5], "order": [0] * 6}
    log = read_log(rows, discount=0.9, **NAMES, time="week", max_dropped=0.2)
    assert told(log) == {"the row that should follow in week is not there": (1, (1,))}
    assert (log.report.n_used, log.report.n_last) == (4, 1)
    assert log.episodes.states.tolist() == [0]


@bad_rows
def test_a_row_before_one_without_a_state_is_bad_too():
    rows = {"shop": ["a"] * 4, "stock": [0, 1, None, 2], "order": [0, 1, 1, 0]}
    log = read_log(rows, discount=0.9, **NAMES, max_dropped=0.5)
    assert told(log) == {"stock is missing": (1, (2,)), "stock of the next row is missing": (1, (1,))}
    assert log.report.n_used == 1


def test_steps_that_differ_have_no_gaps_and_the_report_says_so():
    rows = {"shop": ["a"] * 5, "day": [0, 1, 5, 6, 13], "stock": [0, 1, 0, 1, 0], "order": [0] * 5}
    log = read_log(rows, discount=0.9, **NAMES, time="day")
    assert log.report.n_used == 4
    assert "the steps of day differ, so gaps cannot be told" in str(log.report)


def test_without_episodes_the_column_of_next_states_is_asked_for():
    with pytest.raises(
        ValueError, match=r"next_state='next_state': the log has no such column.*column of episodes by episode"
    ):
        read_log({"stock": [0, 1], "order": [0, 0]}, discount=0.9, state="stock", action="order")


def test_months_have_no_gaps():
    weeks = [f"2023-{month:02}-01" for month in range(1, 13)]
    rows = {"shop": ["a"] * 12, "month": weeks, "stock": [0, 1] * 6, "order": [0] * 12}
    assert read_log(rows, discount=0.9, **NAMES, time="month").report.n_used == 11
