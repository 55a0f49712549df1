from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import poisson

ORDER_UP_TO_15 = [15 - s for s in range(16)]
DEMANDS = np.arange(400)
CHANCES = poisson.pmf(DEMANDS, 10.0)
ORDER_UP_TO_14 = [max(14 - s, 0) for s in range(16)]


def make(name="Inventory-v0", **kwargs):
    return gym.make(f"rlfd_gym/{name}", **kwargs).unwrapped


def orders(env, cost):
    return env.mdp.pair_actions[env.mdp.optimal(cost).policy > 0].tolist()


def test_it_has_the_papers_pairs(inventory):
    assert inventory.mdp.n_states == 16
    assert inventory.mdp.n_pairs == 136
    assert (inventory.mdp.pair_states + inventory.mdp.pair_actions <= 15).all()
    assert make("InventoryPaper-v0").mdp.n_pairs == 256


def test_the_optimum_orders_up_to_15_and_in_the_published_variant_up_to_14(inventory):
    assert orders(inventory, inventory.cost) == ORDER_UP_TO_15
    paper = make("InventoryPaper-v0")
    assert orders(paper, paper.cost) == ORDER_UP_TO_14


def test_truncated_sales_alone_make_the_difference():
    env = make(expected_sales="truncated")
    assert orders(env, env.cost) == ORDER_UP_TO_14


def test_transitions_are_those_of_poisson_demand(inventory):
    dense = np.zeros((136, 16))
    for pair, level in enumerate(inventory.mdp.pair_states + inventory.mdp.pair_actions):
        np.add.at(dense[pair], np.maximum(0, level - DEMANDS), CHANCES)
    np.testing.assert_allclose(inventory.mdp.transitions.toarray(), dense, atol=1e-14)


def test_in_the_published_variant_what_remains_above_capacity_is_thrown_away():
    env = make("InventoryPaper-v0")
    dense = np.zeros((256, 16))
    for pair, level in enumerate(env.mdp.pair_states + env.mdp.pair_actions):
        np.add.at(dense[pair], np.clip(level - DEMANDS, 0, 15), CHANCES)
    np.testing.assert_allclose(env.mdp.transitions.toarray(), dense, atol=1e-14)


def test_raw_cost_is_the_formula_with_the_expectation_exact(inventory):
    for pair, (s, a) in enumerate(zip(inventory.mdp.pair_states, inventory.mdp.pair_actions, strict=True)):
        sales = np.minimum(s + a, DEMANDS) @ CHANCES
        assert inventory.raw_cost[pair] == pytest.approx(3 * a + 0.5 * (s + a) - 15 * sales, abs=1e-10)
        assert inventory.features[pair].tolist() == pytest.approx([a, s + a, -sales], abs=1e-10)


def test_the_raw_ranges_are_the_known_ones(inventory):
    assert (inventory.raw_cost.min(), inventory.raw_cost.max()) == (pytest.approx(-140.95, abs=0.005), 0.0)
    paper = make("InventoryPaper-v0")
    assert (paper.raw_cost.min(), paper.raw_cost.max()) == (pytest.approx(-129.9812290598009, abs=1e-9), 0.0)


def test_the_cost_is_the_raw_cost_scaled_onto_the_box(inventory):
    assert (inventory.cost.min(), inventory.cost.max()) == (-1.0, 1.0)
    np.testing.assert_allclose(inventory.scale.from_box(inventory.cost), inventory.raw_cost, atol=1e-12)


def test_settings_can_share_a_scale(inventory):
    expert = make(order_cost=5.0, holding_cost=8.0, sell_price=15.0, cost_scale=(-141.0, 0.0))
    truth = make(cost_scale=(-141.0, 0.0))
    np.testing.assert_allclose(truth.cost_for(5, 8, 15), expert.cost, atol=1e-14)
    np.testing.assert_allclose(truth.scale.from_box(expert.cost), expert.raw_cost, atol=1e-12)
    np.testing.assert_array_equal(inventory.cost_for(3, 0.5, 15), inventory.cost)


def test_the_published_scale_does_not_follow_the_prices():
    env = make("InventoryPaper-v0", order_cost=5.0, holding_cost=8.0)
    assert (env.scale.low, env.scale.high) == (-130.0, 0.0)
    assert env.cost.max() > 1.0


def test_a_misspecified_expert_keeps_less_stock(inventory):
    expert = orders(inventory, inventory.cost_for(5, 8, 15))
    assert all(ordered <= best for ordered, best in zip(expert, ORDER_UP_TO_15, strict=True))
    assert max(s + a for s, a in enumerate(expert) if a > 0) < 15


def test_an_order_beyond_capacity_is_cut_and_reported(inventory):
    inventory.reset(seed=0, options={"state": 10})
    reward = inventory.step(15)
    assert reward[4]["order"] == 5
    assert reward[1] == -inventory.cost[inventory.mdp.pair_index(10, 5)]


def test_steps_report_the_demand_that_moved_the_stock(inventory):
    state, _ = inventory.reset(seed=1)
    for _ in range(200):
        order = int(inventory.np_random.integers(16))
        after, _, _, _, info = inventory.step(order)
        assert after == max(0, state + info["order"] - info["demand"])
        state = after


def test_the_mask_holds_the_orders_that_fit(inventory):
    _, info = inventory.reset(options={"state": 13})
    assert info["action_mask"].tolist() == [1, 1, 1] + [0] * 13
    assert inventory.action_masks().tolist() == [True] * 3 + [False] * 13


def test_text_and_picture_show_stock_order_and_demand():
    env = make(render_mode="ansi")
    env.reset(seed=0, options={"state": 4})
    assert env.render() == "stock   4 of 15 [###########.............................]  no order yet\n"
    env.step(6)
    assert f"last order 6, last demand {env.last_demand}" in env.render()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_inventory": 0}, ValueError, "max_inventory must be at least 1, got 0"),
        ({"max_inventory": 2.5}, TypeError, "max_inventory must be an integer"),
        ({"demand_mean": -1.0}, ValueError, "demand_mean must be a finite number in"),
        ({"order_cost": np.nan}, ValueError, "order_cost"),
        ({"sell_price": "15"}, TypeError, "sell_price must be a number"),
        ({"discount": 1.0}, ValueError, "discount"),
        (
            {"expected_sales": "guess"},
            ValueError,
            "expected_sales must be one of exact, truncated; got 'guess'",
        ),
        ({"cost_scale": (0.0, -1.0)}, ValueError, "low must be below high"),
        ({"render_mode": "vr"}, ValueError, "render_mode must be one of ansi, rgb_array, human"),
        ({"order_cost": 0.0, "holding_cost": 0.0, "sell_price": 0.0}, ValueError, "raw costs must differ"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, error, message):
    from rlfd_gym.envs import InventoryEnv

    with pytest.raises(error, match=message):
        InventoryEnv(**arguments)


@pytest.mark.parametrize(("states", "actions"), [([0, 10], [0, 6]), ([16], [0]), ([-1], [0]), ([0], [-1])])
def test_the_oracle_refuses_infeasible_pairs(inventory, states, actions):
    with pytest.raises(ValueError, match="is not feasible in state"):
        inventory.sample_next(states, actions, np.random.default_rng(0))
