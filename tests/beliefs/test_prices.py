"""`Prices`: its best answer by hand and on all corners, names and money, and what it refuses."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from strategies import make_mdp, seeds

from rlfd_gym import CostScale
from rlfd_gym.beliefs import Prices

FEATURES = np.array([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]])


def corners(belief: Prices) -> np.ndarray:
    """All combinations of the ends of the ranges."""
    return np.array(list(product(*zip(belief.low, belief.high, strict=True))))


def random_prices(seed: int) -> Prices:
    """Up to six prices in different units; some are fixed, some columns are zero or twice another."""
    rng = np.random.default_rng(seed)
    n, size = rng.integers(1, 12), rng.integers(1, 7)
    unit = 10.0 ** rng.choice([-3, 0, 3], size)
    features = rng.normal(size=(n, size)) * (rng.random((n, size)) < 0.7) * unit
    low = rng.uniform(-1, 1, size) / unit
    return Prices(features, low, low + rng.random(size) * (rng.random(size) < 0.7) / unit, rng.uniform(-1, 1, n))


def test_the_best_answer_and_the_cost_by_hand():
    belief, d = Prices(FEATURES, [0.2, 0.5], [0.4, 1.0], offset=0.1), np.array([0.5, -0.1, -0.4])
    worst = belief.best(d)  # Cᵀd = (-0.3, -0.3)
    assert worst.tolist() == [0.4, 1.0]
    np.testing.assert_allclose(belief.cost(worst), [0.5, -0.9, 1.9])
    assert belief.excess(np.array([0.2, 0.5]), d) == pytest.approx(0.3 * 0.2 + 0.3 * 0.5)


def test_with_a_penalty_the_best_answer_is_the_clipped_step_from_the_prior():
    belief = Prices(FEATURES, [0.2, 0.5], [0.4, 1.0], prior=[0.3, 0.6], alpha=1.0)
    d = np.array([0.1, -0.1, 0.0])  # Cᵀd = (0.1, 0.1)
    np.testing.assert_allclose(belief.best(d), [0.25, 0.55])
    np.testing.assert_allclose(belief.best(10 * d), [0.2, 0.5])
    assert belief.penalty(np.array([0.4, 1.0])) == pytest.approx(0.01 + 0.16)


@given(seeds)
def test_the_ends_and_the_largest_cost_are_those_over_all_corners(seed):
    belief = random_prices(seed)
    costs = np.array([belief.cost(w) for w in corners(belief)])
    low, high = belief.ends()
    np.testing.assert_allclose(low, costs.min(axis=0), atol=1e-12)
    np.testing.assert_allclose(high, costs.max(axis=0), atol=1e-12)
    assert belief.largest == pytest.approx(np.abs(costs).max(), abs=1e-12)
    assert belief.spread >= np.ptp(costs, axis=1).max() - 1e-12


@given(seeds)
def test_the_worst_prices_are_those_of_all_corners(seed):
    belief = random_prices(seed)
    d = np.random.default_rng(seed + 1).normal(size=len(belief.offset))
    least = min(float(d @ belief.cost(w)) for w in corners(belief))
    assert d @ belief.cost(belief.best(d)) == pytest.approx(least, abs=1e-11)


def test_named_prices_are_ranges_or_numbers():
    belief = Prices.named(FEATURES, {"buy": (0.2, 0.4), "sell": 1}, offset=0.5)
    assert belief.names == ("buy", "sell")
    assert (belief.low.tolist(), belief.high.tolist()) == ([0.2, 1.0], [0.4, 1.0])
    assert belief.scope(belief.low) == "with 0.2 ≤ buy ≤ 0.4, sell = 1"


def test_prices_in_money_have_the_converted_cost_and_stay_in_money():
    scale = CostScale(-10.0, 30.0)
    money = Prices(10 * FEATURES, [0.2, 0.5], [0.4, 1.0], offset=[1.0, 2.0, 3.0], scale=scale)
    prices = np.array([0.3, 0.7])
    np.testing.assert_allclose(money.cost(prices), scale.to_box(10 * FEATURES @ prices + [1.0, 2.0, 3.0]))
    assert money.low.tolist() == [0.2, 0.5]


def test_the_inventorys_ranges_are_its_costs(inventory):
    belief = inventory.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=15)
    np.testing.assert_allclose(belief.cost(np.array([3.0, 1.0, 15.0])), inventory.cost_for(3, 1, 15), atol=1e-14)
    assert belief.names == ("order", "holding", "sell")


def test_the_gridworlds_ranges_are_its_costs(gridworld):
    belief = gridworld.price_ranges(obstacle=(0.5, 1), goal=(-1, -0.5), step=(0, 0.1))
    np.testing.assert_array_equal(belief.cost(np.array([1.0, -1.0, 0.0])), gridworld.cost)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"low": [0.5, 0.5], "high": [0.4, 1.0]}, r"low must not exceed high; price 0 has 0.5 > 0.4"),
        (
            {"low": [0.2, 2.0], "names": ["buy", "sell"]},
            r"low must not exceed high; sell has 2.0 > 1.0",
        ),
        ({"low": [0.2]}, r"low has shape \(1,\), expected \(2,\): one entry per column of features"),
        ({"high": [0.4, np.nan]}, "high must be finite"),
        ({"features": FEATURES + np.inf}, "features must be finite; entry"),
        ({"features": FEATURES[:, 0]}, r"features has shape \(3,\), expected \(n_pairs, K\)"),
        ({"offset": [0.0, 1.0]}, r"offset has shape \(2,\), expected \(3,\)"),
        ({"offset": np.nan}, "offset must be a finite number"),
        ({"names": ["buy"]}, "names has 1 entries, expected 2: one per column of features"),
        ({"alpha": 0.1}, "prior is None, so alpha must be 0, got 0.1"),
        ({"alpha": -0.1, "prior": [0.0, 0.0]}, "alpha must be a finite number"),
        ({"prior": [0.0], "alpha": 0.1}, r"prior has shape \(1,\), expected \(2,\)"),
    ],
)
def test_wrong_arguments_are_named(changes, message):
    arguments = {"features": FEATURES, "low": [0.2, 0.5], "high": [0.4, 1.0]}
    with pytest.raises(ValueError, match=message):
        Prices(**(arguments | changes))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((0.4, 0.2), r"buy must be a range \(low, high\) with low ≤ high"),
        ((0.1, 0.2, 0.3), "buy must be a number or a"),
    ],
)
def test_wrong_ranges_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        Prices.named(FEATURES[:, :1], {"buy": given})


@pytest.mark.parametrize(
    ("ranges", "kind", "message"),
    [
        ([(0.2, 0.4), (0.5, 1)], TypeError, r"ranges must be a Mapping, got list; from names to ranges \(low, high\)"),
        ({"buy": 1}, ValueError, "ranges has 1 entries, expected 2: one per column of features"),
        ({"buy": np.array(1.0), "sell": 1}, TypeError, "buy must be a number, got ndarray"),
    ],
)
def test_ranges_without_names_or_a_price_are_refused(ranges, kind, message):
    with pytest.raises(kind, match=message):
        Prices.named(FEATURES, ranges)


def test_features_of_another_environment_are_refused():
    with pytest.raises(ValueError, match=r"features has shape \(3, 2\), expected \(11, K\)"):
        Prices(FEATURES, [0.0, 0.0], [1.0, 1.0]).over(make_mdp(1, 5, 3, 0.9))


def test_prices_outside_their_ranges_prove_no_bound():
    belief = Prices.named(FEATURES, {"buy": (0.2, 0.4), "sell": (0.5, 1)})
    with pytest.raises(ValueError, match=r"sell is 1.5, its range is \[0.5, 1\]"):
        belief.check(np.array([0.3, 1.5]))
