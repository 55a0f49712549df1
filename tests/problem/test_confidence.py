"""Bounds from demonstrations hold as often as they say, and the tighter one where there are few vertices."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from rlfd_gym import RLfDProblem, TabularMDP, demonstrate, guarantee, solve_exact
from rlfd_gym.beliefs import Hull, Intervals, Prices
from rlfd_gym.experts.demonstrations import read_demonstrations
from rlfd_gym.problem import examples
from rlfd_gym.problem.confidence import Trajectories, betting_bound


def shop():
    """The inventory, its expert, ranges of prices, and the best policy for them."""
    env = examples.inventory_env()
    expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
    belief = env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    return env.mdp, expert, belief, solve_exact(RLfDProblem(env.mdp, expert, belief=belief)).policy


def draws(mdp, expert, number, seed, tail=1e-4):
    return demonstrate(mdp, mdp.policy_of(expert), number, mdp.horizon(tail), seed)


def test_the_betting_bound_holds_where_the_normal_approximation_does_not():
    # Rare small numbers: most samples have seen none, and a normal margin is then zero.
    rng, number, chance = np.random.default_rng(0), 60, 0.01
    samples = 1.0 - (rng.random((1000, number)) < chance)
    bounds = np.array([betting_bound(sample, 0.0, 1.0, 0.05) for sample in samples])
    normal = samples.mean(axis=1) - 1.645 * samples.std(axis=1, ddof=1) / math.sqrt(number)
    assert np.mean(bounds <= 1 - chance) >= 0.95
    assert np.mean(normal <= 1 - chance) < 0.7


@pytest.mark.parametrize("shape", [(0.5, 0.5), (8, 1), (1, 8), (50, 50)])
def test_the_betting_bound_holds_for_numbers_of_many_shapes(shape):
    rng = np.random.default_rng(1)
    samples = 3.0 * rng.beta(*shape, size=(500, 30)) - 2.0
    bounds = np.array([betting_bound(sample, -2.0, 1.0, 0.1) for sample in samples])
    assert np.mean(bounds <= 3.0 * shape[0] / sum(shape) - 2.0) >= 0.9


def test_at_the_betting_bound_the_wealth_just_reaches_its_goal():
    # The game once more, bet by bet, with nothing but what came before.
    sample, eta = np.random.default_rng(2).uniform(-0.5, 1.5, size=40), 0.05

    def wealth(bound):
        m, seen, total, squares, money = (bound + 1) / 3, 0.5, 1, 0.02, 1.0
        for x in (sample + 1) / 3:
            share = min(math.sqrt(2 * math.log(1 / eta) / (40 * squares / total)), 0.9 / m)
            money *= 1 + share * (x - m)
            seen, total = seen + x, total + 1
            squares += (x - seen / total) ** 2
        return money

    bound = betting_bound(sample, -1.0, 2.0, eta)
    assert wealth(bound) == pytest.approx(1 / eta, rel=1e-6)
    assert wealth(bound - 0.01) > 1 / eta > wealth(bound + 0.01)


def test_few_or_equal_numbers_leave_the_least_that_is_possible():
    assert betting_bound(np.array([0.9]), -1.0, 1.0, 0.05) == -1.0
    assert betting_bound(np.array([0.3, 0.3]), 0.3, 0.3, 0.05) == 0.3


def test_the_experts_mean_advantage_is_its_improvement():
    mdp, expert, belief, policy = shop()
    for x in belief.vertices():
        cost = belief.cost(x)
        advantage = cost - mdp.flow_transpose(mdp.value_of(policy, cost))
        improvement = expert @ cost - mdp.expected_cost(policy, cost)
        assert expert @ advantage == pytest.approx(improvement, abs=1e-12)


@pytest.mark.parametrize(("number", "sort"), [(20, False), (100, True)], ids=["20 as drawn", "100 sorted by cost"])
def test_safe_statements_about_prices_hold(number, sort):
    mdp, expert, belief, policy = shop()
    truth = guarantee(mdp, policy, expert, belief)
    costs = mdp.table(truth.worst_cost, 0.0)
    said = []
    for seed in range(40):
        shown = draws(mdp, expert, number, seed)
        if sort:
            shown.sort(key=lambda one: costs[one.obs[:-1], one.acts].sum())
        said.append(guarantee(mdp, policy, shown, belief, 0.95, seed=seed, n_resamples=1).improvement)
    assert np.mean(np.array(said) <= truth.improvement) >= 0.95


def test_few_vertices_make_the_safe_bound_much_tighter():
    mdp, expert, belief, policy = shop()
    said = guarantee(mdp, policy, draws(mdp, expert, 100, seed=3), belief, 0.95, n_resamples=1)
    mcdiarmid = belief.spread * math.sqrt(math.log(1 / 0.05) / 200)
    assert 0.07 < said.improvement < 0.0872  # what is certain for the exact expert
    assert said.estimate - said.improvement < 0.1 * mcdiarmid


def test_if_the_trajectories_show_nothing_better_the_reason_says_so():
    mdp, expert, belief, _ = shop()
    shown = draws(mdp, expert, 50, seed=0)
    said = guarantee(mdp, mdp.uniform_policy(), shown, belief, 0.95, n_resamples=1)
    assert not said
    assert "on these 50 trajectories the policy is" in said.reason


def test_other_beliefs_keep_mcdiarmids_margin():
    mdp, expert, _, policy = shop()
    prior = examples.inventory_env().cost_for(4, 2, 14)
    belief = Intervals(np.maximum(prior - 0.1, -1), np.minimum(prior + 0.1, 1))
    shown = draws(mdp, expert, 50, seed=0)
    said = guarantee(mdp, policy, shown, belief, 0.9, n_resamples=1)
    unknown = mdp.discount ** mdp.horizon(1e-4)
    margin = belief.spread * (math.sqrt(math.log(10) / 100) + unknown)
    assert said.improvement == pytest.approx(said.estimate - margin, abs=1e-12)


def test_a_hull_of_the_corners_promises_what_the_prices_do():
    mdp, expert, belief, policy = shop()
    factor = belief.largest
    columns = np.array([belief.cost(x) for x in belief.vertices()]).T / factor
    shown = draws(mdp, expert, 500, seed=1)
    by_prices, by_hull = (guarantee(mdp, policy, shown, kind, 0.95, n_resamples=1) for kind in (belief, Hull(columns)))
    assert by_hull.improvement * factor == pytest.approx(by_prices.improvement, abs=1e-9)


def test_what_was_not_seen_counts_as_the_worst_that_can_be():
    # Two states; both actions of state 1 stay there, so only the first trajectory's end is open.
    mdp = TabularMDP(np.array([[1, 0], [0, 1], [0, 1], [0, 1.0]]), [0, 0, 1, 1], [0, 1, 0, 1], [1, 0], 0.5)
    shown = [
        SimpleNamespace(obs=np.array([0, 0]), acts=np.array([0]), terminal=False),
        SimpleNamespace(obs=np.array([0, 1]), acts=np.array([1]), terminal=True),
    ]
    cost = np.array([0.2, 0.4, 0.6, 0.8])
    sample = Trajectories.of(read_demonstrations(shown), mdp)
    np.testing.assert_allclose(sample.least(cost), [0.5 * 0.2 + 0.5 * 0.2, 0.5 * 0.4 + 0.5 * 0.6])
    assert sample.unknown == 0.25
    np.testing.assert_allclose(sample.each.sum(axis=1), 1.0)


def test_short_trajectories_never_promise_more_than_their_continuations():
    mdp, expert, belief, _ = shop()
    long = draws(mdp, expert, 30, seed=2, tail=1e-6)
    short = [SimpleNamespace(obs=one.obs[:21], acts=one.acts[:20], terminal=False) for one in long]
    cost = belief.cost(belief.high)
    less, more = (Trajectories.of(read_demonstrations(some), mdp).least(cost) for some in (short, long))
    assert (less <= more).all()


def test_the_vertices_of_prices_are_the_corners_of_the_ranges():
    belief = Prices(np.eye(3), low=[0, 1, 2], high=[0.5, 1, 3])
    assert belief.vertices().tolist() == [[0, 1, 2], [0, 1, 3], [0.5, 1, 2], [0.5, 1, 3]]


@pytest.mark.parametrize(
    "belief",
    [
        Prices(np.eye(7), np.zeros(7), np.ones(7)),
        Prices(np.eye(2), [0, 0], [1, 1], prior=[0, 0], alpha=1.0),
        Hull(np.eye(65)),
        Hull(np.eye(2), prior=[0, 0], alpha=1.0),
        Intervals([0.0], [1.0]),
    ],
    ids=["many prices", "prices with a penalty", "many columns", "a hull with a penalty", "intervals"],
)
def test_many_vertices_or_a_penalty_leave_none_to_look_at(belief):
    assert belief.vertices() is None
