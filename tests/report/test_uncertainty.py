"""The picture of how sure what was learned is."""

from __future__ import annotations

import numpy as np
import pytest

from rlfd_gym import RLfDProblem, demonstrate, uncertainty
from rlfd_gym.problem import examples
from rlfd_gym.report.uncertainty import plot_uncertainty


@pytest.fixture(scope="module")
def case():
    env, problem = examples.inventory_env(), examples.inventory(alpha=1.0)
    return env, problem, demonstrate(env.mdp, env.mdp.policy_of(problem.expert), 4, 30, seed=0)


def test_the_band_of_costs_and_the_shares_are_drawn(case):
    _, problem, walks = case
    found = uncertainty(problem, walks, n_resamples=4, progress_bar=False)
    figure = plot_uncertainty(found)
    left, right, *_ = figure.axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), np.sort(found.solution.cost))
    drawn = right.images[0].get_array()
    np.testing.assert_allclose(np.ma.filled(drawn, np.nan), problem.mdp.table(found.chosen).T)


def test_prices_are_drawn_by_name_within_their_ranges(case):
    env, problem, walks = case
    belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    found = uncertainty(
        RLfDProblem(problem.mdp, problem.expert, belief=belief), walks, n_resamples=3, progress_bar=False
    )
    left = plot_uncertainty(found).axes[0]
    assert [label.get_text() for label in left.get_yticklabels()] == ["order", "holding", "sell"]
    np.testing.assert_allclose(left.lines[0].get_xdata(), found.solution.mixture)


def test_anything_else_is_refused():
    with pytest.raises(TypeError, match=r"found must be an? Uncertainty"):
        plot_uncertainty("found")
