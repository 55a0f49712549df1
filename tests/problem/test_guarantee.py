"""Guarantees: the theorem on drawn costs, brute force over corners, demonstrations, money, and the words."""

from __future__ import annotations

import pickle
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import believed_problem, make_mdp, random_cost, random_policy, seeds

from rlfd_gym import CostScale, RLfDProblem, TabularMDP, guarantee, solve_exact
from rlfd_gym.beliefs import Ball, Hull, Intervals, NearPrior, Prices
from rlfd_gym.experts.made_up import demonstrate
from rlfd_gym.problem import examples

KINDS = ("intervals", "prices", "hull", "ball")


@pytest.fixture(scope="module")
def shop():
    """The paper's inventory, and its expert, who overestimates the cost of holding stock."""
    env = examples.inventory_env()
    return SimpleNamespace(env=env, mdp=env.mdp, expert=env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy)


def solved(shop, belief):
    return solve_exact(RLfDProblem(shop.mdp, shop.expert, belief=belief))


def draws(belief, rng, number=50):
    """Costs of a belief, drawn from its inside and its surface."""
    costs = []
    for _ in range(number):
        if isinstance(belief, Hull):
            costs.append(belief.cost(rng.dirichlet(np.full(belief.basis.shape[1], 0.5))))
        elif isinstance(belief, Ball):
            step = rng.normal(size=belief.prior.size)
            costs.append(belief.prior + rng.choice([0.5, 1.0]) * belief.radius / np.linalg.norm(step) * step)
        else:
            x = rng.uniform(belief.low, belief.high)
            costs.append(belief.cost(np.where(rng.random(x.size) < 0.5, x, belief.low)))
    return costs


# The inventory, in figures.


def test_ranges_of_prices_promise_a_quarter_of_what_is_true(shop):
    solution = solved(shop, shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16)))
    promise = solution.guarantee
    assert promise
    assert promise.improvement == pytest.approx(0.0872, abs=5e-5)
    assert promise.worst_prices == {"order": 5.0, "holding": 3.0, "sell": 13.0}
    true = (shop.expert - solution.occupancy) @ shop.env.cost
    assert true == pytest.approx(0.358, abs=5e-4)
    best = shop.mdp.optimal(shop.env.cost).expected_cost
    assert (shop.expert @ shop.env.cost, best) == pytest.approx((-0.150, -0.589), abs=5e-4)
    assert true / (shop.expert @ shop.env.cost - best) == pytest.approx(0.82, abs=5e-3)


def test_wide_ranges_promise_nothing_and_show_prices_for_which_the_expert_is_optimal(shop):
    solution = solved(shop, shop.env.price_ranges(order=(2, 6), holding=(0.2, 6), sell=(10, 16)))
    assert solution.guarantee.improvement == pytest.approx(0.0, abs=1e-6)
    assert not solution.guarantee
    prices = solution.guarantee.worst_prices
    cost = shop.env.cost_for(*prices.values())
    assert shop.expert @ cost - shop.mdp.optimal(cost).expected_cost == pytest.approx(0.0, abs=1e-6)
    assert str(solution.guarantee).startswith("Nothing is guaranteed for every cost with 2 ≤ order ≤ 6, 0.2 ≤ holding")
    assert "under which the expert is optimal" in str(solution.guarantee)


@pytest.mark.parametrize(("width", "improvement"), [(0.05, 0.1231), (0.1, 0.0280)])
def test_intervals_around_the_prior_promise_what_was_computed_elsewhere(shop, width, improvement):
    prior = shop.env.cost_for(4, 2, 14)
    promise = solved(shop, Intervals(prior - width, prior + width)).guarantee
    assert promise.improvement == pytest.approx(improvement, abs=5e-5)


@pytest.mark.parametrize(
    ("alpha", "radius", "improvement"), [(0.1, 0.402, 0.0015), (1.0, 0.226, 0.0367), (10.0, 0.041, 0.1849)]
)
def test_alpha_is_a_radius_of_trust(shop, alpha, radius, improvement):
    belief = NearPrior(shop.env.cost_for(4, 2, 14), alpha)
    solution = solved(shop, belief)
    assert belief.radius(solution.cost) == pytest.approx(radius, abs=5e-4)
    assert solution.guarantee.improvement == pytest.approx(improvement, abs=5e-5)
    assert f"in [-1, 1] within {radius:.3f}" in str(solution.guarantee)


# The theorem.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(3))
def test_under_every_drawn_cost_the_improvement_is_at_least_the_guarantee(kind, block):
    for seed in range(100 * block, 100 * block + 8):
        problem = believed_problem(kind, seed)
        solution = solve_exact(problem)
        promise = solution.guarantee
        d = problem.expert - problem.mdp.occupancy_of(solution.policy)
        rounding = 1e-9 * max(1.0, problem.belief.largest)
        for cost in draws(problem.belief, np.random.default_rng(seed)):
            assert d @ cost >= promise.improvement - rounding
        if promise:  # and the worst cost attains it, up to the accuracy of the solution
            assert d @ promise.worst_cost <= promise.improvement + max(2 * solution.duality_gap, rounding)


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("alpha", [0.01, 0.3])
def test_with_a_penalty_the_covered_costs_are_those_no_farther_than_the_learned_one(shop, norm, alpha):
    belief = NearPrior(shop.env.cost_for(4, 2, 14), alpha, norm)
    solution = solved(shop, belief)
    radius, rng = belief.radius(solution.cost), np.random.default_rng(0)
    d = shop.expert - solution.occupancy
    for _ in range(200):
        step = rng.laplace(size=d.size) * rng.random(d.size) ** rng.integers(10)
        length = np.linalg.norm(step, 2 if norm == "l2" else 1)
        cost = np.clip(belief.prior + radius / length * step, -1, 1)
        assert d @ cost >= solution.guarantee.improvement - 1e-9
    assert d @ solution.cost == pytest.approx(solution.guarantee.improvement, abs=2e-6)


@given(st.sampled_from(KINDS), seeds)
@settings(max_examples=40)
def test_any_policy_has_the_guarantee_of_brute_force_over_the_vertices(kind, seed):
    problem = believed_problem(kind, seed)
    mdp, belief, policy = problem.mdp, problem.belief, random_policy(problem.mdp, seed)
    d = problem.expert - mdp.occupancy_of(policy)
    if kind == "hull":
        least = (d @ belief.basis).min()
    elif kind == "ball":
        least = d @ belief.prior - belief.radius * np.linalg.norm(d)
    elif kind == "intervals":  # every pair is a vertex's own choice
        least = sum(min(x * low, x * high) for x, low, high in zip(d, belief.low, belief.high, strict=True))
    else:
        corners = product(*zip(belief.low, belief.high, strict=True))
        least = min(d @ belief.cost(np.array(corner)) for corner in corners)
    promise = guarantee(mdp, policy, problem.expert, belief)
    assert promise.improvement == pytest.approx(least, abs=1e-10 * max(1, belief.largest))
    assert d @ promise.worst_cost == pytest.approx(least, abs=1e-10 * max(1, belief.largest))


def test_intervals_on_all_corners_by_hand():
    mdp = make_mdp(0, 2, 2, 0.6)
    expert, policy = mdp.occupancy_of(random_policy(mdp, 1)), mdp.uniform_policy()
    belief = Intervals(random_cost(mdp, 1) - 0.2, random_cost(mdp, 1) + 0.3)
    corners = product(*zip(belief.low, belief.high, strict=True))
    least = min((expert - mdp.occupancy_of(policy)) @ np.array(corner) for corner in corners)
    assert guarantee(mdp, policy, expert, belief).improvement == pytest.approx(least, abs=1e-12)


def test_the_guarantee_of_a_solution_and_of_its_policy_agree(shop):
    for belief in (
        shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16)),
        Ball(shop.env.cost_for(4, 2, 14), 0.1),
        NearPrior(shop.env.cost_for(4, 2, 14), 1.0),
    ):
        solution = solved(shop, belief)
        x = solution.cost if solution.mixture is None else solution.mixture
        promise = guarantee(shop.mdp, solution.policy, shop.expert, belief, cost=x)
        assert promise.improvement == pytest.approx(solution.guarantee.improvement, abs=1e-6)


def test_no_policy_is_guaranteed_more_than_the_solution(shop):
    belief = shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    upper = solved(shop, belief).upper
    rng = np.random.default_rng(0)
    policies = [shop.mdp.optimal(belief.cost(rng.uniform(belief.low, belief.high))).policy for _ in range(20)]
    for policy in [*policies, shop.mdp.uniform_policy(), shop.mdp.policy_of(shop.expert)]:
        assert guarantee(shop.mdp, policy, shop.expert, belief).improvement <= upper + 1e-9


@pytest.mark.parametrize("kind", ["prices", "intervals", "ball"])
def test_wider_beliefs_promise_less(shop, kind):
    middle, prior = np.array([4.0, 1.5, 14.5]), shop.env.cost_for(4, 2, 14)
    beliefs = {
        "prices": lambda w: Prices(
            shop.env.features, middle - w * np.array([1, 1, 2]), middle + w * np.array([1, 1, 2]), scale=shop.env.scale
        ),
        "intervals": lambda w: Intervals(prior - 0.1 * w, prior + 0.1 * w),
        "ball": lambda w: Ball(prior, 0.3 * w),
    }
    promised = [solved(shop, beliefs[kind](w)).guarantee.improvement for w in (0.0, 0.2, 0.5, 1.0)]
    assert np.all(np.diff(promised) < 0)
    assert promised[0] > 0.2


# What is said, and when nothing is.


@given(st.sampled_from(KINDS), seeds)
@settings(max_examples=40)
def test_nothing_that_is_not_positive_is_called_a_guarantee(kind, seed):
    problem = believed_problem(kind, seed)
    of_solution = solve_exact(problem).guarantee
    of_policy = guarantee(problem.mdp, random_policy(problem.mdp, seed), problem.expert, problem.belief)
    for promise in (of_solution, of_policy):
        assert bool(promise) == (promise.improvement > 1e-9 * problem.belief.largest)
        assert str(promise).startswith("At least " if promise else "Nothing is guaranteed")
        assert bool(promise.reason) != bool(promise)


def test_a_bad_policy_is_told_that_another_may_be_better(shop):
    belief = shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    promise = guarantee(shop.mdp, shop.mdp.uniform_policy(), shop.expert, belief)
    assert promise.improvement < 0
    assert "worse than the expert, though the expert is not optimal there" in str(promise)
    assert f"({-promise.money:.4g} in money per step)" in promise.reason
    assert str(promise).endswith("; worst at order = 5, holding = 3, sell = 13.")


def test_a_policy_worse_than_an_expert_who_may_be_optimal_is_told_by_how_much(shop):
    mdp, belief = shop.mdp, shop.env.price_ranges(order=5, holding=8, sell=15)
    random, own = (guarantee(mdp, p, shop.expert, belief) for p in (mdp.uniform_policy(), mdp.policy_of(shop.expert)))
    assert random.improvement < -0.01
    assert random.reason.endswith(
        f" may be {-random.improvement:.2g} ({-random.money:.4g} in money per step) worse than the expert"
    )
    assert own.reason.endswith("nobody can promise to be better")


def test_intervals_promise_nothing_about_what_was_left_out(shop):
    wide = Intervals(shop.env.cost - 5, shop.env.cost + 5)
    assert guarantee(shop.mdp, shop.mdp.uniform_policy(), shop.expert, wide).scope.startswith("in [-1, 1] and in ")


def test_an_improvement_under_a_cost_at_another_scale_is_that_much_smaller(shop):
    belief = shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    promise = solved(shop, belief).guarantee
    d = shop.expert - shop.mdp.occupancy_of(promise.policy)
    small = promise.worst_cost / 10
    assert promise.covers(small)
    assert d @ small == pytest.approx(promise.improvement / 10)


def test_a_guarantee_can_be_pickled(shop):
    promise = solved(shop, shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))).guarantee
    copy = pickle.loads(pickle.dumps(promise))
    assert str(copy) == str(promise)
    assert repr(copy) == f"Guarantee({str(promise)!r})"


def test_tables_are_taken_for_the_policy_and_the_expert(shop):
    mdp, policy, belief = shop.mdp, random_policy(shop.mdp, 0), Ball(shop.env.cost, 0.1)
    plain = guarantee(mdp, policy, shop.expert, belief)
    tables = guarantee(mdp, mdp.table(policy, 0.0), mdp.table(shop.expert, 0.0), Ball(mdp.table(shop.env.cost), 0.1))
    assert tables.improvement == plain.improvement
    for expert in (shop.expert.tolist(), list(mdp.table(shop.expert, 0.0)), tuple(shop.expert)):
        assert guarantee(mdp, policy, expert, belief).improvement == plain.improvement


def test_a_sampled_experts_solution_is_judged_from_the_start_of_the_mdp():
    for seed in range(20):
        problem = believed_problem("prices", seed)
        rng = np.random.default_rng(seed)
        problem = RLfDProblem(problem.mdp, rng.dirichlet(np.full(problem.n_pairs, 0.3)), belief=problem.belief)
        solution = solve_exact(problem)
        promise = guarantee(problem.mdp, solution.policy, problem.expert, problem.belief)
        assert solution.guarantee.improvement == pytest.approx(promise.improvement, abs=1e-9 * problem.belief.largest)


# Money.


def test_money_and_learning_units_say_the_same(shop):
    ranges = shop.env.price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=(13, 16))
    scale, money = shop.env.scale, shop.env.features
    by_hand = Prices(money * scale.factor, ranges.low, ranges.high, offset=float(scale.to_box(0.0)))
    stated, converted = solved(shop, ranges).guarantee, solved(shop, by_hand).guarantee
    assert converted.improvement == pytest.approx(stated.improvement, abs=1e-9)
    assert converted.money == converted.improvement
    d = shop.expert - shop.mdp.occupancy_of(stated.policy)
    assert stated.money == pytest.approx(d @ (money @ stated.worst), abs=1e-6)
    assert f"({stated.money:.4g} in money per step)" in str(stated)


@pytest.mark.parametrize("kind", ["intervals", "ball", "near prior"])
def test_costs_in_money_say_the_same(shop, kind):
    scale, policy = CostScale(-40.0, 160.0), shop.mdp.optimal(shop.env.cost).policy
    cost = scale.from_box(shop.env.cost_for(4, 2, 14))
    made = {
        "intervals": (Intervals(cost - 5, cost + 5, scale=scale), Intervals(*scale.to_box([cost - 5, cost + 5]))),
        "ball": (Ball(cost, 30.0, scale=scale), Ball(scale.to_box(cost), 0.3)),
        "near prior": (NearPrior(cost, 1.0, scale=scale), NearPrior(scale.to_box(cost), 1.0)),
    }
    stated, converted = (guarantee(shop.mdp, policy, shop.expert, belief) for belief in made[kind])
    assert stated.improvement == pytest.approx(converted.improvement, abs=1e-12)
    assert stated.money == pytest.approx(100 * stated.improvement)
    d = shop.expert - shop.mdp.occupancy_of(policy)
    assert stated.money == pytest.approx(d @ scale.from_box(stated.worst_cost), abs=1e-9)


# Demonstrations.


def walk() -> TabularMDP:
    """Two cells and an absorbing end: action 0 stays or is blown on, action 1 moves on; the end has one action."""
    rows = [[0.8, 0.2, 0.0], [0.1, 0.9, 0.0], [0.0, 0.7, 0.3], [0.0, 0.2, 0.8], [0.0, 0.0, 1.0]]
    return TabularMDP(rows, [0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1.0, 0.0, 0.0], 0.8)


def until_the_end(mdp, policy, number, seed, n_steps=60):
    """Trajectories that stop when the absorbing state is entered."""
    shown = []
    for trajectory in demonstrate(mdp, policy, number, n_steps, seed):
        arrived = np.flatnonzero(trajectory.obs == mdp.n_states - 1)
        stop = arrived[0] if arrived.size else n_steps
        acts = trajectory.acts[:stop]
        shown.append(SimpleNamespace(obs=trajectory.obs[: stop + 1], acts=acts, terminal=bool(arrived.size)))
    return shown


def test_the_margin_of_a_belief_with_many_vertices_is_that_of_the_formula():
    mdp = make_mdp(5, 4, 2, 0.5)
    shown = demonstrate(mdp, random_policy(mdp, 1), 30, 12, seed=0)
    low, high = np.linspace(-0.5, 0.1, mdp.n_pairs), np.linspace(-0.4, 0.8, mdp.n_pairs)
    belief = Intervals(low, high)
    promise = guarantee(mdp, mdp.uniform_policy(), shown, belief, confidence=0.9)
    margin = (high.max() - low.min()) * (np.sqrt(np.log(10) / 60) + 0.5**12)
    assert promise.estimate - promise.improvement == pytest.approx(margin, rel=1e-9)
    assert (promise.n_trajectories, promise.confidence) == (30, 0.9)
    assert promise.improvement < promise.bootstrap < promise.estimate


def test_a_trajectory_that_ends_in_an_absorbing_state_hides_nothing():
    mdp = walk()
    policy = np.array([0.5, 0.5, 0.5, 0.5, 1.0])
    shown = until_the_end(mdp, policy, 40, seed=0)
    belief = Intervals([-0.2] * 5, [0.3] * 5)
    promise = guarantee(mdp, mdp.uniform_policy(), shown, belief, confidence=0.9)
    assert promise.estimate - promise.improvement == pytest.approx(0.5 * np.sqrt(np.log(10) / 80), rel=1e-4)
    whole = guarantee(mdp, mdp.uniform_policy(), demonstrate(mdp, policy, 40, 60, seed=0), belief, confidence=0.9)
    assert whole.estimate == pytest.approx(promise.estimate, abs=1e-5)


def test_one_trajectory_is_enough_for_a_statement_and_not_for_a_guarantee():
    mdp = walk()
    belief = Intervals([-0.2] * 5, [0.3] * 5)
    shown = until_the_end(mdp, mdp.uniform_policy(), 1, seed=0)
    promise = guarantee(mdp, mdp.uniform_policy(), shown, belief, confidence=0.95)
    assert promise.bootstrap == pytest.approx(promise.estimate)
    assert not promise
    assert str(promise).startswith("Nothing is guaranteed with probability 0.95 for every cost in [-1, 1] and in ")
    assert "on these 1 trajectories the policy is" in promise.reason


def test_the_same_seed_gives_the_same_bootstrap_and_another_another():
    mdp, shown = walk(), until_the_end(walk(), walk().uniform_policy(), 30, seed=1)
    belief = Intervals([-0.2] * 5, [0.3] * 5)
    values = [
        guarantee(mdp, mdp.uniform_policy(), shown, belief, 0.9, seed=s, n_resamples=50).bootstrap for s in (3, 3, 4)
    ]
    assert values[0] == values[1] != values[2]


def test_with_a_penalty_the_statement_from_demonstrations_is_about_the_learned_radius():
    mdp, shown = walk(), until_the_end(walk(), walk().uniform_policy(), 30, seed=1)
    belief, learned = NearPrior(np.linspace(-0.5, 0.5, 5), 0.5), np.linspace(-0.4, 0.5, 5)
    promise = guarantee(mdp, mdp.uniform_policy(), shown, belief, confidence=0.9, cost=learned)
    np.testing.assert_array_equal(promise.worst, learned)
    assert promise.estimate - promise.improvement == pytest.approx(2 * np.sqrt(np.log(10) / 60), abs=1e-4)
    assert "within 0.137 of the prior" in promise.scope


def study(number: int, draws: int, n_resamples: int) -> tuple[float, float]:
    """How often the safe bound and the bootstrap are below the true guarantee."""
    mdp = walk()
    demonstrator = np.array([0.7, 0.3, 0.6, 0.4, 1.0])
    apprentice = np.array([0.1, 0.9, 0.2, 0.8, 1.0])
    expert = mdp.occupancy_of(demonstrator)
    cost = np.array([0.5, 0.6, 0.3, 0.4, -0.5])
    belief = Intervals(cost - 0.05, cost + 0.05)
    truth = guarantee(mdp, apprentice, expert, belief).improvement
    assert truth > 0.05
    promises = [
        guarantee(mdp, apprentice, until_the_end(mdp, demonstrator, number, seed), belief, 0.9, n_resamples=n_resamples)
        for seed in range(draws)
    ]
    safe, bootstrap = (np.array([getattr(p, name) for p in promises]) for name in ("improvement", "bootstrap"))
    return float(np.mean(safe <= truth)), float(np.mean(bootstrap <= truth))


def test_the_safe_bound_covers_the_truth_at_least_as_often_as_it_says():
    safe, bootstrap = study(number=25, draws=40, n_resamples=100)
    assert safe >= 0.9
    assert bootstrap > 0.6  # approximate: a study measures it


@pytest.mark.slow
def test_both_bounds_cover_the_truth_in_a_larger_study():
    safe, bootstrap = study(number=50, draws=300, n_resamples=500)
    assert safe >= 0.9
    assert bootstrap >= 0.85


# What is refused.


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"confidence": 0.95}, ValueError, r"confidence is 0.95, but expert is an occupancy"),
        ({"belief": "prices"}, TypeError, "belief must be a Belief of rlfd_gym.beliefs, got str"),
        ({"mdp": None}, TypeError, "mdp must be a TabularMDP, got NoneType"),
        ({"expert": np.full(5, 0.3)}, ValueError, "expert must sum to 1"),
        ({"expert": np.full(4, 0.25)}, ValueError, r"expert has shape \(4,\), expected \(5,\)"),
        ({"policy": np.full(5, 0.4)}, ValueError, "policy must sum to 1 over each state's pairs"),
        ({"policy": np.full(4, 0.5)}, ValueError, r"policy has shape \(4,\), expected \(5,\)"),
        ({"belief": Intervals([0.0], [0.1])}, ValueError, r"low has shape \(1,\), expected \(5,\)"),
        ({"expert": "shown"}, ValueError, r"confidence is None, but expert is estimated from demonstrations"),
        (
            {"expert": "shown", "confidence": 1.0},
            ValueError,
            r"confidence must be a finite number in \(0, 1\), got 1.0",
        ),
        ({"expert": "shown", "confidence": 0}, ValueError, r"confidence must be a finite number in \(0, 1\), got 0"),
        ({"expert": "shown", "confidence": 95}, ValueError, r"confidence must be a finite number in \(0, 1\), got 95"),
        ({"expert": "shown", "confidence": np.nan}, ValueError, "confidence must be a finite number"),
        ({"expert": "shown", "confidence": 0.9, "n_resamples": 0}, ValueError, "n_resamples"),
        ({"expert": "transitions", "confidence": 0.9}, ValueError, "expert has transitions without times"),
    ],
)
def test_wrong_arguments_are_named(changes, error, message):
    mdp = walk()
    uniform = mdp.uniform_policy()
    arguments = {"policy": uniform, "expert": mdp.occupancy_of(uniform), "belief": Intervals([-0.2] * 5, [0.3] * 5)}
    arguments |= {"mdp": mdp} | changes
    if arguments["expert"] is not None and isinstance(arguments["expert"], str):
        transitions = SimpleNamespace(obs=[0, 1], acts=[1, 1], next_obs=[1, 2])
        kinds = {"shown": until_the_end(mdp, uniform, 3, seed=0), "transitions": transitions}
        arguments["expert"] = kinds[arguments["expert"]]
    with pytest.raises(error, match=message):
        guarantee(**arguments)
