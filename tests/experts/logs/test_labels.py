from __future__ import annotations

import pytest

from rlfd_gym import read_log


def test_a_column_holds_what_most_of_it_is():
    rows = {"state": ["S", "M", 40], "action": [True, False, True], "next_state": ["M", "40", "S"]}
    log = read_log(rows, discount=0.9)
    assert (log.state_labels, log.action_labels) == (("40", "M", "S"), ("False", "True"))
    whole = {"state": [1.0, 2.0], "action": ["007", "7"], "next_state": ["2", " 1 "]}
    assert read_log(whole, discount=0.9).pair_labels() == [(1, 7), (2, 7)]
    with pytest.raises(ValueError, match=r"state and next_state must hold .* mostly fractions: round or bin"):
        read_log({"state": [0.5, 1.5], "action": [0, 0], "next_state": [1.5, 0.25]}, discount=0.9)


def test_given_labels_are_texts_as_soon_as_one_is():
    rows = {"state": [1, 2, "full"], "action": [0, 0, 0], "next_state": ["2", "full", "1"]}
    assert read_log(rows, discount=0.9, state_labels=["1", "2", "full"]).state_labels == ("1", "2", "full")
