"""From a log to a decision: costs, actions, savings, and how sure they are."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import study_logs

from rlfd_gym import RLfDProblem, TabularMDP, guarantee, read_log, solve_exact
from rlfd_gym.beliefs import Ball, Intervals, NearPrior, Prices
from rlfd_gym.decision import decide, price_belief, prior_belief
from rlfd_gym.decision.resampling import draws, only, supported, with_columns_redrawn
from rlfd_gym.decision.words import sentences

SHOP = study_logs.Shop.make()


def shop_log(shops, weeks, seed=0, **options):
    rows = SHOP.log(shops, weeks, np.random.default_rng(seed))
    return read_log(rows, discount=0.9, **study_logs.NAMES, **options)


@pytest.fixture(scope="module")
def log():
    return shop_log(3, 520)


@pytest.fixture(scope="module")
def decision(log):
    return decide(log, SHOP.belief(log), n_resamples=20)


def test_only_actions_with_enough_rows_are_recommended_or_the_present_one_marked(log, decision):
    visits = {pair: n for pair, n in zip(log.pair_labels(), log.visits.tolist(), strict=True)}
    for one in decision.recommendations:
        assert one.rows == visits[one.state, one.action]
        assert (
            one.present_rows
            == visits[one.state, one.present]
            == max(n for (s, _), n in visits.items() if s == one.state)
        )
        assert one.few == (one.rows < 10)
        assert not (one.few and one.changed)
        assert 0 <= one.agreement <= 1
    assert decision.n_few == sum(one.few for one in decision.recommendations) > 0
    assert decision.n_changed > 0
    assert sum(one.time for one in decision.recommendations) == pytest.approx(1, abs=0.05)


def test_the_promise_is_the_saving_in_the_estimated_model_and_the_estimate_is_below_it(log, decision):
    gain = log.mdp.expected_cost(log.policy, decision.reference) - log.mdp.expected_cost(
        decision.policy, decision.reference
    )
    assert decision.promised == pytest.approx(gain)
    assert decision.saving.low < decision.saving.value < decision.saving.high
    assert decision.saving.value < decision.promised
    assert decision.present.low < decision.present.value < decision.present.high < 0


def test_without_a_limit_on_rows_the_promise_is_far_above_the_truth():
    # Three shops and a year: what was promised was three times what came true, on the data it was learned from.
    log = shop_log(3, 52, seed=1)
    belief = SHOP.belief(log)
    naive = solve_exact(RLfDProblem(log.mdp, log.expert, belief=belief))
    decision = decide(log, belief, n_resamples=20)
    promised = float((log.expert - naive.occupancy) @ decision.reference)
    assert promised > 2 * SHOP.saving(log, naive.policy)
    truth = SHOP.saving(log, decision.policy)
    assert decision.saving.low <= truth <= decision.saving.high
    assert abs(decision.saving.value - truth) < abs(promised - SHOP.saving(log, naive.policy)) / 2


def test_the_guarantee_is_that_of_the_policy_in_the_estimated_model(log, decision):
    promise = guarantee(log.mdp, decision.policy, log.mdp.occupancy_of(log.policy), decision.belief)
    here = decision.path.chosen
    assert decision.path.values[here] == 1
    assert decision.path.guaranteed[here] == pytest.approx(promise.money, abs=1e-9)
    assert decision.path.improvement[here] == pytest.approx(decision.promised, abs=1e-9)
    assert decision.guaranteed.value <= decision.saving.value


def test_prices_lie_in_their_ranges_and_are_those_of_the_solution(decision):
    assert [price.name for price in decision.prices] == ["order", "holding", "sell"]
    for price, value in zip(decision.prices, decision.solution.mixture, strict=True):
        assert price.range[0] - 1e-9 <= price.price.low <= price.price.high <= price.range[1] + 1e-9
        assert price.price.value == pytest.approx(value)


def test_the_path_narrows_from_the_ranges_to_their_middle(log, decision):
    path = decision.path
    assert (path.parameter, path.values[0]) == ("width", 0)
    assert path.policies.shape == (len(path.values), log.mdp.n_pairs)
    assert path.actions.shape == (len(path.values), log.mdp.n_states)
    np.testing.assert_allclose(path.prices[0], [4, 0.5, 10])
    middle = only(log.mdp, supported(log, 10))
    best = middle.optimal(decision.reference[supported(log, 10)]).expected_cost
    assert path.expected_cost[0] == pytest.approx(best)
    assert path.guaranteed[0] == pytest.approx(path.improvement[0])
    np.testing.assert_array_equal(path.policies[path.chosen], decision.policy)


def test_a_table_of_costs_is_a_prior_whose_lacking_pairs_have_its_middle(log):
    costs = dict(
        zip(log.pair_labels(), SHOP.belief(log).scale.from_box(SHOP.belief(log).cost([4, 0.5, 10])), strict=True)
    )
    lost = log.pair_labels()[5]
    least, most = min(costs.values()), max(costs.values())
    del costs[lost]
    belief, lacking = prior_belief(log, costs)
    assert lacking == 1
    assert belief.scale.from_box(belief.prior)[5] == pytest.approx((least + most) / 2)
    decision = decide(log, costs, alpha=3.0, n_resamples=3)
    assert (decision.alpha, decision.reason, decision.n_without_prior) == (3.0, "alpha = 3 was given", 1)
    assert decision.path.parameter == "alpha"
    assert decision.path.values[decision.path.chosen] == 3.0
    assert "1 pairs without a prior have the middle of its range" in str(decision)
    assert (decision.cost_low <= decision.cost_high).all()
    assert "within" in decision.scope


def test_a_mixture_keeps_its_probabilities(log):
    belief = SHOP.belief(log)
    mixture = decide(log, belief, reading="mixture", n_resamples=2)
    np.testing.assert_allclose(mixture.policy[supported(log, 10)], mixture.solution.policy)
    assert set(np.unique(decide(log, belief, n_resamples=2).policy)) == {0.0, 1.0}


def test_intervals_are_understood_and_other_beliefs_refused(log):
    low = np.full(log.mdp.n_pairs, -0.5)
    assert decide(log, Intervals(low, low + 0.25), n_resamples=2).path.parameter == "width"
    with pytest.raises(TypeError, match=r"belief must be Prices, Intervals or NearPrior with the norm l2.*got Ball"):
        decide(log, Ball(low, 0.1))
    with pytest.raises(TypeError, match="got NearPrior"):
        decide(log, NearPrior(low, 0.1, norm="l1"))


def test_the_same_seed_gives_the_same_answer(log):
    one, other, third = (decide(log, SHOP.belief(log), n_resamples=3, seed=seed).saving for seed in (1, 1, 2))
    assert one == other != third


def test_draws_are_models_around_the_estimate(log):
    some = list(draws(log, 40, np.random.default_rng(0)))
    mean = np.mean([draw.mdp.transitions.toarray() for draw in some], axis=0)
    often = log.visits > 100
    assert np.abs(mean - log.mdp.transitions.toarray())[often].max() < 0.03
    known = log.mdp.sum_by_state(log.visits.astype(float))[log.mdp.pair_states] > 50
    rare = np.argmin(np.where(known, log.visits, 10**9))
    assert (
        np.std([draw.mdp.transitions.toarray()[rare] for draw in some], axis=0).max() > 0.05
    )  # one row is not certain
    policies = np.array([draw.policy for draw in some])
    np.testing.assert_allclose(policies.mean(axis=0)[often], log.policy[often], atol=0.03)


def test_many_episodes_are_resampled_whole():
    log = shop_log(40, 13)
    assert log.groups.shape == (40, log.counts.nnz)
    np.testing.assert_allclose(log.groups.sum(axis=0), log.counts.data)
    assert decide(log, SHOP.belief(log), n_resamples=2).method == "by resampling whole episodes (shop)"
    # Episodes that are all alike leave nothing uncertain but what is added to each pair.
    same = {"shop": np.repeat(np.arange(40), 3), "stock": np.tile([0, 1, 2], 40), "order": np.tile([1, 0, 0], 40)}
    same["next_stock"] = np.tile([1, 2, 0], 40)
    alike = read_log(same, discount=0.9, state="stock", action="order", next_state="next_stock", episode="shop")
    for draw in draws(alike, 3, np.random.default_rng(0)):
        np.testing.assert_allclose(draw.mdp.transitions.toarray(), alike.mdp.transitions.toarray())


def test_it_is_told_in_the_logs_words_and_money(decision):
    said = sentences(decision)
    assert said[0].startswith("Your rule earns about ")
    assert said[0].endswith(" a week per shop.")
    assert "more (" in said[1]
    assert "because there are only 3 episodes (shop)" in said[1]
    assert any("acts as if" in sentence for sentence in said)
    assert any("fewer than 10 weeks" in sentence for sentence in said)
    assert f"{520 * 3:,} of {520 * 3:,} rows were used, and all of them carried the answer." in said
    table = str(decision).splitlines()
    assert any(line.split()[:2] == ["stock", "order"] for line in table)
    assert any("few rows:" in line for line in table)
    assert repr(decision).startswith("Decision(Log(1,560 of 1,560 rows used")


def test_a_cost_is_a_cost():
    rows = {"s": [0, 0] * 20, "a": [0, 1] * 20, "next_state": [0] * 40}
    log = read_log(rows, discount=0.9, state="s", action="a")
    decision = decide(log, {(0, 0): 3.0, (0, 1): 1.0}, alpha=100.0, n_resamples=5)
    assert sentences(decision)[0] == "Your rule costs about 2.00 a step."
    assert sentences(decision)[1].startswith("Acting as below would cost 1.00 less (0.") or decision.n_changed == 0
    assert decision.saving.value == pytest.approx(1, abs=0.2)


def test_money_of_the_log_can_be_the_truth():
    rows = {"s": [0, 0] * 20, "a": [0, 1] * 20, "next_state": [0] * 40, "paid": [5.0, 1.0] * 20}
    log = read_log(rows, discount=0.9, state="s", action="a", columns=["paid"])
    decision = decide(log, {(0, 0): 3.0, (0, 1): 1.0}, alpha=100.0, money=log.mean("paid"), n_resamples=5)
    assert decision.present.value == pytest.approx(3)
    assert decision.promised == pytest.approx(2)


def test_price_ranges_are_stated_over_the_logs_own_words(log):
    belief = price_belief(log, {"buy": 4, "hold": (0.3, 3)}, {"hold": "stock + order", "buy": "order"})
    assert isinstance(belief, Prices)
    assert belief.names == ("buy", "hold")
    money = belief.scale.from_box(belief.cost([4, 1]))
    np.testing.assert_allclose(money, [4 * a + s + a for s, a in log.pair_labels()], atol=1e-9)
    low, high = belief.ends()
    assert (low.min(), high.max()) == pytest.approx((-1, 1))
    with pytest.raises(ValueError, match="'sell' is only in one"):
        price_belief(log, {"buy": 4}, {"buy": "order", "sell": "order"})


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"least_rows": 0}, ValueError, "least_rows must be"),
        ({"confidence": 1.0}, ValueError, "confidence must be"),
        ({"n_resamples": 1}, ValueError, "n_resamples must be"),
        ({"reading": "mean"}, ValueError, "reading must be one of mode, mixture"),
        ({"belief": 3}, TypeError, "belief must be a Belief"),
        ({"money": [1.0]}, ValueError, "money has shape"),
        ({"scale": study_logs.CostScale(0, 1)}, ValueError, "scale belongs to a table of costs"),
    ],
)
def test_mistakes_are_named(log, options, error, message):
    with pytest.raises(error, match=message):
        decide(**({"log": log, "belief": SHOP.belief(log)} | options))


def test_supported_pairs_leave_every_state_one(log):
    pairs = supported(log, 10**9)
    assert len(pairs) == log.mdp.n_states
    assert (log.mdp.pair_states[pairs] == np.arange(log.mdp.n_states)).all()
    assert (log.visits[pairs] == log.mdp.max_by_state(log.visits.astype(float))).all()
    assert isinstance(only(log.mdp, pairs), TabularMDP)


@pytest.mark.slow
def test_the_interval_of_the_saving_covers_the_truth_about_as_often_as_it_says():
    for weeks in (104, 520):  # three shops for ten years change their orders, for two years hardly
        outcomes = [study_logs.judge("prices", 3, weeks, seed, 20) for seed in range(40)]
        inside = sum(one.low <= one.true <= one.high for one in outcomes)
        assert inside >= 29  # of 40 at 90%: fewer less than once in a thousand
        assert abs(np.mean([one.estimate - one.true for one in outcomes])) < 0.4


def test_what_is_computed_from_columns_is_resampled_so_that_their_noise_saves_nothing():
    # All orders earn the same on average; some look better in the log by chance.
    rng = np.random.default_rng(0)
    stock = rng.integers(3, size=600)
    rows = {"stock": stock, "order": rng.integers(6, size=600), "next": np.roll(stock, -1)}
    rows["earned"] = rng.normal(0.0, 10.0, size=600).round(1)
    names = {"state": "stock", "action": "order", "next_state": "next"}
    log = read_log(rows, discount=0.9, columns=["earned"], **names)

    def costs(one):
        return dict(zip(one.pair_labels(), (-one.mean("earned")).tolist(), strict=True))

    fixed = decide(log, costs(log), alpha=10.0, n_resamples=30)
    anew = decide(log, costs, alpha=10.0, money=lambda one: -one.mean("earned"), n_resamples=30)
    assert fixed.saving.low > 1.0  # promised, but not there
    assert anew.promised == pytest.approx(fixed.promised)
    assert anew.saving.low < 0 < anew.saving.high


def test_a_function_must_state_prices_or_costs(log):
    with pytest.raises(TypeError, match="belief must return Prices or a table of costs for a log, got NoneType"):
        decide(log, lambda one: None)


def test_columns_are_drawn_together_with_the_transitions_that_they_belong_to():
    rows = SHOP.log(3, 104, np.random.default_rng(0))
    log = read_log(rows, discount=0.9, columns=["sold"], **study_logs.NAMES)
    rng = np.random.default_rng(1)
    ((*_, draw),) = [list(draws(log, 3, rng))]
    again = with_columns_redrawn(log, draw, rng)
    # What is sold is what is not left, whatever the weights; drawn apart, the two would differ.
    entries = np.repeat(np.arange(log.mdp.n_pairs), np.diff(log.counts.indptr))
    left = np.array(log.state_labels)[log.counts.indices]
    mean = np.bincount(entries, weights=draw.weights * left, minlength=log.mdp.n_pairs)
    seen = log.visits > 0
    sums = np.array([sum(pair) for pair in log.pair_labels()])
    expected = sums[seen] - mean[seen] / draw.visits[seen]
    np.testing.assert_allclose(again.mean("sold")[seen], expected, atol=1e-9)
    assert np.abs(again.mean("sold") - log.mean("sold"))[seen].max() > 0.05
    np.testing.assert_allclose(again.column("sold").n_rows[seen], draw.visits[seen])


def test_an_interval_has_its_coverage_for_any_number_of_resamples():
    # The truth is to the draws as they are to each other: with 19 draws it is beyond an end once in ten.
    quantile = sys.modules["rlfd_gym.decision.decide"]._quantile
    normal = np.random.default_rng(0).normal(size=(20, 20_000))
    low, high = (quantile(normal[:19], tail) for tail in (0.05, 0.95))
    assert ((low <= normal[19]) & (normal[19] <= high)).mean() == pytest.approx(0.9, abs=0.01)


def test_it_is_said_why_nothing_changes_and_what_would_change_that(log):
    costs = dict(zip(log.pair_labels(), SHOP.costs(log).tolist(), strict=True))
    little = decide(log, costs, n_resamples=3)
    assert little.n_changed == 0
    assert sentences(little)[2].startswith("Nothing else is recommended, because your prior counts little")
    assert "--alpha regret-budget:0.05" in sentences(little)[2]
    more = decide(log, costs, alpha="regret-budget:0.05", n_resamples=3)
    assert more.n_changed > 0
    assert not any("Nothing else" in sentence for sentence in sentences(more))


def test_a_recommendation_that_loses_is_called_a_loss():
    # Half of the time the cheap action is better, and the log shows it; a prior of no weight imitates the other one.
    rows = {"s": [0] * 60, "a": [0] * 31 + [1] * 29, "next_state": [0] * 60}
    log = read_log(rows, discount=0.9, state="s", action="a")
    decision = decide(log, {(0, 0): 3.0, (0, 1): 1.0}, alpha=1e-6, n_resamples=10)
    assert decision.saving.value < 0
    said = sentences(decision)[1]
    assert "would cost 0." in said or "would cost 1." in said
    assert said.endswith("That is a loss: keep your rule.")
    assert " more (" in said
