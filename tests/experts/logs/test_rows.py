from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_logs import EPISODES, NAMES, bad_rows, early_ends, told

from rlfd_gym import read_log
from rlfd_gym.experts.logs.faults import Faults
from rlfd_gym.experts.logs.records import read_table
from rlfd_gym.experts.logs.rows import FREE_INDICES, _all_indices


def test_a_row_with_several_faults_counts_for_the_first():
    faults = Faults(read_table({"state": [0, 1, 2]}, {"state": "state"}))
    faults.blame(np.array([True, False, False]), "first")
    faults.blame(np.array([True, True, False]), "second")
    assert faults.good.tolist() == [False, False, True]
    assert [(kind.reason, kind.first) for kind in faults.bad_rows()] == [("first", (0,)), ("second", (1,))]


def test_bad_rows_are_counted_by_reason_and_listed_by_line(csv):
    path = csv(
        "1,a,5,2,3\n"
        "2,a,,2,3\n"  # line 3
        "3,a,5,2,n/a\n"
        "4,a,5,2 pcs,3\n"
        "5,a,5.5,2,3\n"
        "6,a,5,2,3,late, ill\n"
        "\n"  # not a row
        "7,a,5\n"
        "8,,5,2,3\n"
        "soon,a,5,2,3\n"
        "1,a,5,2,1\n"  # the first line again, corrected: which one is right, nobody knows
        "9,a,3,2,9\n"
        "10,a,3,2,inf\n"
        "11,a,,2,3\n"
    )
    with pytest.warns(UserWarning, match=r"11 of 13 logged rows are bad .*stock is missing, 2 \(line 3, 15\)"):
        log = read_log(path, discount=0.9, **NAMES, **EPISODES, max_dropped=1)
    assert told(log) == {
        "another number of fields than the header": (2, (7, 9)),
        "stock is missing": (2, (3, 15)),
        "stock is no whole number": (1, (6,)),
        "order is no whole number": (1, (5,)),
        "next_stock is missing": (1, (4,)),
        "next_stock is no whole number": (1, (14,)),
        "shop is missing": (1, (10,)),
        "day is missing or neither a number nor a date": (1, (11,)),
        "same shop and day as an earlier row": (1, (12,)),
    }
    assert log.report.n_used == 2
    assert log.state_labels == (3, 5, 9)
    assert "stock is missing" in str(log.report)


@early_ends
@bad_rows
def test_numbers_too_long_for_a_float_make_a_row_bad(csv):
    path = csv(f"1,a,0,1,1\n{10**400},a,1,0,0\n3,a,{'9' * 5000},0,0\n")
    assert told(read_log(path, discount=0.9, **NAMES, **EPISODES, max_dropped=1)) == {
        "stock is no whole number": (1, (4,)),
        "day is missing or neither a number nor a date": (1, (3,)),
    }


@bad_rows
@pytest.mark.parametrize("large", [10**25, -(2**53) - 1, "1e25"])
def test_a_number_that_no_shelf_can_hold_is_a_fault_and_not_a_state(csv, large):
    log = read_log(csv(f"1,a,0,1,1\n2,a,1,0,{large}\n3,a,{2**53},0,0\n"), discount=0.9, **NAMES, max_dropped=0.5)
    assert told(log) == {"next_stock is too large a number": (1, (3,))}
    assert log.report.bad[0].values == (repr(str(large)),)
    assert "put a letter before them" in log.report.bad[0].mend
    assert log.state_labels == (0, 1, 2**53)


@bad_rows
def test_only_the_first_bad_rows_are_listed():
    arrays = np.full(100, np.nan), np.zeros(100), np.zeros(100)
    arrays[0][90:] = 0
    (kind,) = read_log(arrays, discount=0.9, max_dropped=1).report.bad
    assert (kind.count, kind.first) == (90, (0, 1, 2, 3, 4))
    assert kind.where == "row 0, 1, 2, 3, 4, …"


@bad_rows
def test_indices_must_not_be_negative_but_labels_may():
    rows = {"state": [0, -2, 3], "action": [0, 0, 0], "next_state": [3, 0, -2]}
    log = read_log(rows, discount=0.9)
    assert log.state_labels == (-2, 0, 3)
    log = read_log(tuple(rows.values()), discount=0.9, max_dropped=1)
    assert told(log) == {"state is negative": (1, (1,)), "next_state is negative": (1, (2,))}
    assert log.state_labels == (0, 1, 2, 3)  # indices that do not occur exist nevertheless
    assert log.report.ends == (1, 2, 3)


def test_an_index_far_beyond_the_others_is_refused_with_what_was_seen():
    seen = "state holds 10000000, which is no index: only 3 of the 10000001 indices up to it were seen.*state_labels="
    with pytest.raises(ValueError, match=seen):
        read_log(([0, 1, 10**7], [0, 0, 0], [1, 0, 0]), discount=0.9)
    with pytest.raises(ValueError, match="action holds 20000, which is no index: only 2 of"):
        read_log(([0, 1, 0], [0, 0, 20_000], [1, 0, 0]), discount=0.9)
    as_labels = {"state": [0, 1, 10**7], "action": [0, 0, 0], "next_state": [1, 0, 0]}
    assert read_log(as_labels, discount=0.9).state_labels == (0, 1, 10**7)


def test_indices_may_be_sparse_where_there_are_few_or_where_their_number_is_given():
    assert _all_indices("state", [0, FREE_INDICES - 1]) == tuple(range(FREE_INDICES))
    assert len(_all_indices("state", [*range(1_099), 10_999])) == 11_000
    with pytest.raises(ValueError, match="only 1099 of the 11000 indices"):
        _all_indices("state", [*range(1_098), 10_999])
    rows = [0, 0, 0], [0, 1, FREE_INDICES], [0, 0, 0]
    assert read_log(rows, discount=0.9, action_labels=range(FREE_INDICES + 1)).mdp.n_actions == FREE_INDICES + 1


@bad_rows
def test_labels_that_do_not_exist_make_a_row_bad():
    rows = {"state": ["low", "high", "hihg"], "action": [0, 3, 3], "next_state": ["high", "low", "low"]}
    log = read_log(rows, discount=0.9, state_labels=["low", "mid", "high"], max_dropped=0.4)
    assert told(log) == {"state is not among the labels given": (1, (2,))}
    assert (log.state_labels, log.action_labels) == (("low", "mid", "high"), (0, 3))
    assert log.pair_labels() == [("low", 0), ("mid", 0), ("high", 3)]


@early_ends
def test_episodes_are_told_apart_by_what_their_labels_mean(csv):
    log = read_log(csv("1,7,0,1,1\n2,7.0,1,0,0\n3,7 ,0,1,1\n1,b,0,1,1\n"), discount=0.9, **NAMES, **EPISODES)
    assert log.episodes.lengths.tolist() == [3, 1]


@bad_rows
def test_every_episode_with_a_bad_beginning_is_an_error_that_tells_the_way_out(csv):
    path = csv("1,a,?,1,1\n2,a,1,0,0\n3,a,0,1,1\n")
    with pytest.raises(ValueError, match=r"every episode begins with a bad row.*; leave out episode$"):
        read_log(path, discount=0.9, **NAMES, **EPISODES, max_dropped=1)
    assert read_log(path, discount=0.9, **NAMES, max_dropped=0.4).report.n_used == 2


@early_ends
@bad_rows
def test_episodes_count_up_to_their_first_gap(csv):
    path = csv(
        "2024-01-02,a,1,0,0\n"
        "2024-01-01,a,0,1,1\n"
        "2024-01-04,a,1,0,1\n"  # the row before ended in 0, so one is missing here
        "2024-01-01,b,,0,1\n"  # a bad beginning says nothing about beginnings
        "2024-01-02,b,1,0,1\n"
        "2024-01-01,c,1,0,0\n"
        "2024-01-02,c,0,7,x\n"
        "2024-01-03,c,0,1,1\n"
    )
    log = read_log(path, discount=0.5, **NAMES, **EPISODES, max_dropped=1, expert="episodes", ends="stay")
    episodes = log.episodes
    assert episodes.states.tolist() == [0, 1, 1]
    assert episodes.lengths.tolist() == [2, 1]
    assert (log.report.n_episodes, log.report.n_behind_gaps) == (2, 3)
    np.testing.assert_allclose(log.mdp.initial, [1 / 2, 1 / 2])
    np.testing.assert_allclose(log.policy, [1, 1])  # (0, 1) and (1, 0): all good rows count
    # a: 1/2 on (0, 1), 1/4 on (1, 0), then on from 0; c: 1/2 on (1, 0), then on from 0. From 0 the action leads to 1,
    # and from 1 two of four rows lead to 0.
    chain = np.array([[0, 1], [1 / 2, 1 / 2]])
    tail = np.linalg.solve(np.eye(2) - 0.5 * chain.T, [0.5, 0])
    expected = 0.5 * (np.array([1 / 2, 1 / 4]) + tail / 4) + 0.5 * (np.array([0, 1 / 2]) + tail / 2)
    np.testing.assert_allclose(log.expert, expected, atol=1e-14)


@given(st.lists(st.tuples(*[st.one_of(st.none(), st.integers(-2, 4), st.sampled_from(["x", "3", "2.5", ""]))] * 3)))
@bad_rows
def test_no_row_is_lost_whatever_comes(rows):
    columns = dict(zip(("state", "action", "next_state"), zip(*rows, strict=True), strict=True)) if rows else {}
    source = {name: np.array(column, dtype=object) for name, column in columns.items()}
    try:
        log = read_log(source, discount=0.9, max_dropped=1)
    except ValueError:  # nothing good in it, no columns at all, or fractions
        return
    assert log.report.n_used + sum(kind.count for kind in log.report.bad) == log.report.n_rows == len(rows)
    assert log.visits.sum() == log.report.n_used
    assert log.expert.sum() == pytest.approx(1)
