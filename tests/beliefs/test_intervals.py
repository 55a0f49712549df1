"""`Intervals`: its best answer and its box by hand, tables and money, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp

from rlfd_gym import CostScale
from rlfd_gym.beliefs import Intervals


def test_the_best_answer_and_the_excess_by_hand():
    belief = Intervals([-0.5, 0.0, 0.1], [0.5, 0.2, 0.1])
    d = np.array([0.3, -0.4, 0.1])
    assert belief.best(d).tolist() == [-0.5, 0.2, 0.1]
    assert belief.excess(np.array([0.0, 0.1, 0.1]), d) == pytest.approx(0.5 * 0.3 + 0.1 * 0.4)


def test_where_d_vanishes_the_best_answer_is_the_middle():
    assert Intervals([-0.5, 0.0], [0.5, 0.2]).best(np.zeros(2)).tolist() == [0.0, 0.1]


def test_what_lies_outside_the_box_is_left_out():
    belief = Intervals([-3.0, 0.5], [0.5, 1.5])
    assert (belief.low.tolist(), belief.high.tolist()) == ([-1.0, 0.5], [0.5, 1.0])


def test_intervals_in_money_are_those_of_the_converted_ends():
    scale = CostScale(-100.0, 300.0)
    money = Intervals([-50.0, 0.0], [0.0, 250.0], scale=scale)
    np.testing.assert_allclose([money.low, money.high], [[-0.75, -0.5], [-0.5, 0.75]])
    assert money.scale == scale


def test_a_table_may_have_anything_at_infeasible_actions_and_nothing_wrong_elsewhere():
    mdp = make_mdp(1, 5, 3, 0.9)
    state, action = np.argwhere(~mdp.feasible)[0]
    low, high = np.full((2, mdp.n_states, mdp.n_actions), 0.25)
    low[state, action], high[state, action] = 7.0, -np.inf
    over = Intervals(low, high).over(mdp)
    assert over.low.tolist() == over.high.tolist() == [0.25] * mdp.n_pairs
    low[mdp.pair_states[3], mdp.pair_actions[3]] = 0.5
    with pytest.raises(ValueError, match=r"low must not exceed high; entry 3 has 0.5 > 0.25"):
        Intervals(low, high).over(mdp)
    high[mdp.pair_states[3], mdp.pair_actions[3]] = np.nan
    with pytest.raises(ValueError, match="high must be finite"):
        Intervals(low, high).over(mdp)


def test_the_arguments_are_copied_also_as_tables():
    low, high = np.zeros((2, 2)), np.ones((2, 2))
    Intervals(low, high)
    low[0, 0] = 0.5  # it is not locked
    vector = np.zeros(3)
    belief = Intervals(vector, vector)
    vector[0] = 0.5
    assert belief.low.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 0.5], [0.1, 0.4]), r"low must not exceed high; entry 1 has 0.5 > 0.4"),
        (([0.0, 1.2], [0.1, 1.4]), r"miss the box \[-1, 1\] of learning costs: entry 1 is \[1.2, 1.4\]; .*scale="),
        (([-9.0, 0.0], [-2.0, 0.5]), r"miss the box .* entry 0 is \[-9, -2\]"),
        (([0.0, np.nan], [0.1, 0.4]), "low must be finite"),
        (([0.0, 0.0], [0.1, np.inf]), "high must be finite"),
        (([0.0, 0.0], [0.1]), r"low has shape \(2,\) and high has shape \(1,\), expected the same"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Intervals(*arguments)


def test_empty_intervals_in_money_are_shown_in_money():
    with pytest.raises(ValueError, match=r"entry 0 has 250.0 > 200.0"):
        Intervals([250.0], [200.0], scale=CostScale(0.0, 1000.0))


def test_a_cost_outside_the_intervals_proves_no_bound():
    belief = Intervals([-0.5, 0.0], [0.5, 0.2])
    with pytest.raises(ValueError, match=r"entry 1 is 0.3, its interval is \[0, 0.2\]"):
        belief.check(np.array([0.0, 0.3]))


def test_intervals_have_no_alpha():
    with pytest.raises(TypeError, match=r"Intervals has no penalty, so it takes no alpha; got 0.1"):
        Intervals([0.0], [0.1]).with_alpha(0.1)
