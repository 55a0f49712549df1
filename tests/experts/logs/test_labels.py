from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym import read_log
from rlfd_gym.experts.logs import read_costs


def test_a_column_holds_what_most_of_it_is():
    rows = {"state": ["S", "M", 40], "action": [True, False, True], "next_state": ["M", "40", "S"]}
    log = read_log(rows, discount=0.9)
    assert (log.state_labels, log.action_labels) == (("40", "M", "S"), ("False", "True"))
    whole = {"state": [1.0, 2.0], "action": ["7.0", "7"], "next_state": ["2", " 1 "]}
    assert read_log(whole, discount=0.9).pair_labels() == [(1, 7), (2, 7)]
    with pytest.raises(ValueError, match=r"state and next_state must hold .* mostly fractions: round or bin"):
        read_log({"state": [0.5, 1.5], "action": [0, 0], "next_state": [1.5, 0.25]}, discount=0.9)


def test_given_labels_are_texts_as_soon_as_one_is():
    rows = {"state": [1, 2, "full"], "action": [0, 0, 0], "next_state": ["2", "full", "1"]}
    assert read_log(rows, discount=0.9, state_labels=["1", "2", "full"]).state_labels == ("1", "2", "full")


@pytest.mark.parametrize("second", ["1", 1, " 1.0", "001"])
@pytest.mark.parametrize("column", ["state", "action", "episode"])
def test_leading_zeros_are_not_dropped_in_silence(column, second):
    rows = {name: [2, 3, 2] for name in ("state", "action", "next_state", "episode")}
    rows[column] = np.array(["01", second, 3], dtype=object)
    with pytest.raises(ValueError, match=rf"^{column}.* in one way, got '01' and {second!r}: .* letter before"):
        read_log(rows, discount=0.9, episode="episode")


def test_leading_zeros_are_compared_across_the_columns_that_share_labels_only():
    rows = {"state": ["01", "02"], "action": ["1", "1"], "next_state": ["02", "01"]}
    assert read_log(rows, discount=0.9).pair_labels() == [(1, 1), (2, 1)]
    with pytest.raises(ValueError, match="state and next_state must spell a number in one way, got '02' and '2'"):
        read_log(rows | {"next_state": ["2", "1"]}, discount=0.9)
    with pytest.raises(ValueError, match="state must spell a number in one way, got '0' and '00'"):
        read_costs({"state": ["0", "00"], "action": [1, 1], "cost": [1, 2]})


def test_among_texts_leading_zeros_make_another_label():
    rows = {"state": [0, 0, 0, 0, 0], "action": ["01", "1", "x", "y", "z"], "next_state": [0, 0, 0, 0, 0]}
    assert read_log(rows, discount=0.9).action_labels == ("01", "1", "x", "y", "z")


@pytest.mark.parametrize("labels", [["1", "1.0"], [1, 1], [1, "1"]])
def test_a_label_that_is_given_twice_is_refused_however_it_is_spelled(labels):
    with pytest.raises(ValueError, match=r"state_labels must hold .* none twice"):
        read_log(([1], [0], [1]), discount=0.9, state_labels=labels)
