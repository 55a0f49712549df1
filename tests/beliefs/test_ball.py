"""`Ball`: its best answer by hand, money, tables, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp

from rlfd_gym import CostScale
from rlfd_gym.beliefs import Ball


def test_the_best_answer_and_the_excess_by_hand():
    belief, d = Ball([0.5, -0.5], 0.5), np.array([0.3, -0.4])
    np.testing.assert_allclose(belief.best(d), [0.2, -0.1])
    assert d @ belief.best(d) == pytest.approx(0.35 - 0.5 * 0.5)
    assert belief.excess(belief.prior, d) == pytest.approx(0.25)
    assert belief.excess(np.array([0.5, 0.0]), d) == pytest.approx(0.25 - 0.2)


def test_a_ball_without_a_radius_is_its_prior():
    belief, d = Ball([0.5, -0.5], 0.0), np.array([0.3, -0.4])
    assert belief.best(d).tolist() == [0.5, -0.5]
    assert belief.excess(belief.prior, d) == 0.0
    assert belief.largest == 0.5


def test_without_a_difference_the_best_answer_is_the_prior():
    belief = Ball([0.5, -0.5], 0.3)
    assert belief.best(np.zeros(2)).tolist() == [0.5, -0.5]
    assert belief.excess(np.array([0.6, -0.5]), np.zeros(2)) == 0.0


def test_the_nearest_cost_is_on_the_way_to_the_prior():
    belief = Ball([0.0, 0.0], 0.5)
    np.testing.assert_allclose(belief.nearest(np.array([3.0, -4.0])), [0.3, -0.4])
    assert belief.nearest(np.array([0.1, 0.2])).tolist() == [0.1, 0.2]


def test_a_ball_in_money_is_that_of_the_converted_prior_and_radius():
    money = Ball([50.0, 100.0], 20.0, scale=CostScale(0.0, 200.0))
    np.testing.assert_allclose(money.prior, [-0.5, 0.0])
    assert money.radius == pytest.approx(0.2)


def test_a_table_may_have_anything_at_infeasible_actions():
    mdp = make_mdp(1, 5, 3, 0.9)
    assert Ball(mdp.table(np.zeros(mdp.n_pairs), fill=99.0), 0.1).over(mdp).prior.tolist() == [0.0] * mdp.n_pairs
    with pytest.raises(ValueError, match=r"prior is 2 away from the box"):
        Ball(mdp.table(np.r_[3.0, np.zeros(mdp.n_pairs - 1)]), 0.1).over(mdp)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 2.0], 0.5), r"prior is 1 away from the box \[-1, 1\] of learning costs, and radius is only 0.5"),
        (([0.0, np.nan], 0.5), "prior must be finite"),
        (([0.0, 0.0], -0.5), r"radius must be a finite number in"),
        (([0.0, 0.0], np.nan), "radius must be a finite number"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        Ball(*arguments)


def test_a_prior_outside_the_box_is_fine_if_the_ball_reaches_it():
    assert Ball([0.0, 1.4], 0.5).largest == pytest.approx(1.9)


def test_a_cost_outside_the_ball_proves_no_bound():
    with pytest.raises(ValueError, match=r"cost must lie within 0.5 of the prior for bounds to hold, it is 0.6 away"):
        Ball([0.0, 0.0], 0.5).check(np.array([0.6, 0.0]))
