"""The rivals that know the prior, and the trivial ones, at the ends where they are known."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_policy_and_occupancy, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from strategies import make_mdp, make_problem, mdps, random_cost, random_policy, seeds

import rlfd_gym
from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.baselines import (
    bayesian_irl,
    behavioural_cloning,
    broil,
    drex,
    lpal,
    majority,
    max_margin,
    mixture,
    spibb,
)
from rlfd_gym.baselines._planning import Planner
from rlfd_gym.baselines.broil import tail_mean
from rlfd_gym.baselines.drex import objective

few = settings(max_examples=15)


@st.composite
def lessons(draw: st.DrawFn):
    """(mdp, the occupancy of some policy, a prior in the box)."""
    mdp = draw(mdps(max_states=5, max_actions=3, max_discount=0.95))
    seed = draw(seeds)
    return mdp, mdp.occupancy_of(random_policy(mdp, seed)), random_cost(mdp, seed + 1)


METHODS = {
    "majority": lambda mdp, expert, prior: majority(mdp, expert=expert),
    "mixture": lambda mdp, expert, prior: mixture(mdp, expert=expert, prior=prior),
    "broil": lambda mdp, expert, prior: broil(mdp, expert=expert, prior=prior),
    "drex": lambda mdp, expert, prior: drex(mdp, expert=expert, prior=prior),
    "max_margin": lambda mdp, expert, prior: max_margin(mdp, expert=expert, prior=prior),
}


@pytest.mark.parametrize("method", METHODS)
def test_demonstrations_and_the_occupancy_estimated_from_them_give_the_same(method):
    mdp = make_mdp(7, 5, 3, 0.8)
    demonstrations, prior = sampled(mdp, mdp.uniform_policy(), 10, 60, 1), random_cost(mdp, 2)
    direct = METHODS[method](mdp, demonstrations, prior)
    estimated = METHODS[method](mdp, rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp), prior)
    np.testing.assert_allclose(direct.policy, estimated.policy, atol=1e-9)
    assert assert_policy_and_occupancy(mdp, direct)


KNOWING = {
    "bayesian_irl": lambda mdp, expert, prior: bayesian_irl(mdp, expert, prior, rationality=5.0, alpha=0.1),
    "broil": lambda mdp, expert, prior: broil(mdp, expert, prior, trade_off=0.1),
    "drex": lambda mdp, expert, prior: drex(mdp, expert, prior),
    "max_margin": lambda mdp, expert, prior: max_margin(mdp, expert, prior=prior, loss=np.zeros(mdp.n_pairs)),
    "mixture": lambda mdp, expert, prior: mixture(mdp, expert, prior, share=0.1),
}


@pytest.mark.parametrize("method", KNOWING)
def test_who_knows_a_prior_takes_the_expert_to_follow_it_where_nothing_was_seen_as_rlfd_does(method):
    mdp = make_mdp(7, 5, 3, 0.8)
    shown, prior = sampled(mdp, mdp.uniform_policy(), 1, 3, 1), random_cost(mdp, 2)
    with rlfd_gym.collected_warnings():
        blind = rlfd_gym.occupancy_from_demonstrations(shown, mdp)
        estimate = rlfd_gym.occupancy_from_demonstrations(shown, mdp, prior=prior)
    assert np.abs(blind - estimate).max() > 0.05
    direct, wanted, other = (KNOWING[method](mdp, expert, prior) for expert in (shown, estimate, blind))
    np.testing.assert_allclose(direct.cost, wanted.cost, atol=1e-9)
    np.testing.assert_allclose(direct.policy, wanted.policy, atol=1e-9)
    assert not (np.allclose(direct.cost, other.cost) and np.allclose(direct.policy, other.policy))


def test_a_prior_without_weight_is_not_used_for_what_was_not_seen():
    mdp = make_mdp(7, 5, 3, 0.8)
    shown, prior = sampled(mdp, mdp.uniform_policy(), 1, 3, 1), random_cost(mdp, 2)
    blind = rlfd_gym.occupancy_from_demonstrations(shown, mdp)
    costs = [drex(mdp, expert, prior, alpha=0.0).cost for expert in (shown, blind)]
    np.testing.assert_allclose(*costs, atol=1e-9)


# Majority action


def test_the_majority_counts_states_that_no_demonstration_leaves_as_unvisited():
    mdp = make_mdp(7, 5, 3, 0.8)
    shown = sampled(mdp, mdp.uniform_policy(), 1, 3, 1)
    stats = majority(mdp, shown).stats
    assert stats == {"unvisited_states": mdp.n_states - len(set(shown[0].obs[:-1].tolist())), "ties": 0}
    assert stats["unvisited_states"] == behavioural_cloning(mdp, shown).stats["unvisited_states"] > 0


@few
@given(mdps(max_states=5, max_actions=3, max_discount=0.95), seeds, st.floats(0.0, 0.9))
def test_the_majority_undoes_noise_that_is_spread_evenly(mdp, seed, noise):
    wanted = mdp.optimal(random_cost(mdp, seed)).policy
    noisy = (1 - noise) * wanted + noise * mdp.uniform_policy()
    solution = majority(mdp, mdp.occupancy_of(noisy))
    visited = (mdp.sum_by_state(mdp.occupancy_of(noisy)) > 0)[mdp.pair_states]
    np.testing.assert_array_equal(solution.policy[visited], wanted[visited])
    np.testing.assert_array_equal(solution.policy[~visited], mdp.uniform_policy()[~visited])
    assert assert_policy_and_occupancy(mdp, solution)


def test_the_majority_of_a_deterministic_expert_is_the_expert():
    problem = make_problem(3)
    plan = problem.mdp.optimal(problem.prior)
    np.testing.assert_array_equal(
        majority(problem.mdp, plan.occupancy).policy, behavioural_cloning(problem.mdp, plan.occupancy).policy
    )


def test_equally_frequent_actions_share_their_state_whatever_their_numbers():
    mdp = rlfd_gym.TabularMDP.from_dense(np.full((2, 3, 2), [1.0, 0.0]), initial=[1, 0], discount=0.5)
    solution = majority(mdp, [0.4, 0.2, 0.4, 0, 0, 0])
    np.testing.assert_allclose(solution.policy, [0.5, 0, 0.5, 1 / 3, 1 / 3, 1 / 3])
    assert solution.stats == {"unvisited_states": 1, "ties": 1}


# Mixture


@few
@given(lessons(), st.floats(0.0, 1.0))
def test_a_mixture_costs_what_its_parts_cost_under_every_cost(lesson, share):
    mdp, expert, prior = lesson
    solution = mixture(mdp, expert, prior, share=share)
    plan = mdp.optimal(prior).occupancy
    np.testing.assert_allclose(solution.occupancy, (1 - share) * expert + share * plan, atol=1e-9)
    assert assert_policy_and_occupancy(mdp, solution)


def test_the_ends_of_the_mixture_are_the_expert_and_the_plan_which_also_acts_where_neither_goes():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1:, :, 1] = 1.0
    mdp = rlfd_gym.TabularMDP.from_dense(P, initial=[1, 0, 0], discount=0.5)
    expert, prior = mdp.occupancy_of([1, 0, 1, 0, 1, 0]), np.array([0.0, 1.0, 0.0, -1.0, 0.0, -1.0])
    np.testing.assert_array_equal(mixture(mdp, expert, prior, share=0.0).policy, [1, 0, 1, 0, 0, 1])
    np.testing.assert_array_equal(mixture(mdp, expert, prior, share=1.0).policy, mdp.optimal(prior).policy)
    with pytest.raises(ValueError, match="share must be a finite number in"):
        mixture(mdp, expert, prior, share=1.5)


# SPIBB


@few
@given(lessons(), st.sampled_from([0, 1, 10, 100, 10**6]))
def test_spibb_keeps_the_probability_of_what_was_rarely_seen_and_no_such_policy_is_better(lesson, least):
    mdp, expert, prior = lesson
    solution = spibb(mdp, expert, prior, min_count=least, n_decisions=100)
    policy, kept = mdp.policy_of(expert), solution.stats["bootstrapped"]
    seen = mdp.sum_by_state(expert)[mdp.pair_states] > 0
    np.testing.assert_array_equal(kept, seen & (100 * expert < least))
    np.testing.assert_allclose(solution.policy[kept], policy[kept])
    assert 0 <= solution.duality_gap + 1e-12 <= 1e-8
    assert assert_policy_and_occupancy(mdp, solution)
    # Other policies that keep these probabilities.
    for seed in range(10):
        other = np.where(kept, 0.0, random_policy(mdp, seed) + 1e-3)
        left = 1 - mdp.sum_by_state(np.where(kept, policy, 0.0))
        other *= (left / np.maximum(mdp.sum_by_state(other), 1e-300))[mdp.pair_states]
        other = np.where(kept, policy, other)
        other /= mdp.sum_by_state(other)[mdp.pair_states]
        assert mdp.expected_cost(other, prior) >= solution.lower - 1e-9


@few
@given(lessons())
def test_the_ends_of_spibb_are_the_prior_alone_and_the_expert(lesson):
    mdp, expert, prior = lesson
    free = spibb(mdp, expert, prior, min_count=0)
    assert mdp.expected_cost(free.policy, prior) == pytest.approx(mdp.optimal(prior).expected_cost, abs=1e-9)
    bound = spibb(mdp, expert, prior, min_count=1e9, n_decisions=100)
    np.testing.assert_allclose(bound.occupancy, expert, atol=1e-9)
    assert free.stats["bootstrapped_share"] == 0
    assert bound.stats["bootstrapped_share"] == pytest.approx(1.0)


def test_spibb_of_an_exact_expert_chooses_among_what_the_expert_does_at_all():
    mdp = rlfd_gym.TabularMDP.from_dense(np.ones((1, 3, 1)), discount=0.5)
    solution = spibb(mdp, [0.5, 0.5, 0.0], [0.3, 0.2, -1.0])
    np.testing.assert_array_equal(solution.policy, [0, 1, 0])


def test_spibb_counts_demonstrations():
    # In the only state: action 0 once, action 1 three times, action 2 never. Action 1 is free, and so gets its own.
    mdp = rlfd_gym.TabularMDP.from_dense(np.ones((1, 3, 1)), discount=0.9)
    walk = rlfd_gym.experts.made_up.Walk(np.zeros(5, dtype=int), np.array([1, 1, 0, 1]))
    with rlfd_gym.collected_warnings():
        solution = spibb(mdp, [walk], [1.0, 0.0, -1.0], min_count=2)
        expert = mdp.policy_of(rlfd_gym.occupancy_from_demonstrations([walk], mdp))
        with pytest.raises(ValueError, match="n_decisions goes with an occupancy"):
            spibb(mdp, [walk], [1.0, 0.0, -1.0], n_decisions=4)
    np.testing.assert_array_equal(solution.stats["bootstrapped"], [True, False, True])
    np.testing.assert_allclose(solution.policy, expert)


# BROIL


def samples_of(mdp, seed, number=4):
    return np.random.default_rng(seed).uniform(-1, 1, (number, mdp.n_pairs))


@few
@given(lessons(), seeds, st.floats(0.0, 0.9))
def test_broil_with_all_weight_on_the_mean_plans_with_it(lesson, seed, tail):
    mdp, expert, _ = lesson
    costs = samples_of(mdp, seed)
    weights = np.random.default_rng(seed).dirichlet(np.ones(4))
    solution = broil(mdp, expert, costs=costs, weights=weights, trade_off=1.0, tail=tail)
    assert solution.upper == pytest.approx(mdp.optimal(weights @ costs).expected_cost, abs=1e-9)
    assert 0 <= solution.duality_gap + 1e-12 <= 1e-8


@few
@given(lessons(), seeds)
def test_broil_that_only_fears_the_worst_sample_is_lpal_on_the_samples(lesson, seed):
    mdp, expert, _ = lesson
    costs = samples_of(mdp, seed)
    solution, best = broil(mdp, expert, costs=costs, trade_off=0.0, tail=0.999), lpal(mdp, expert, costs.T)
    assert solution.upper == pytest.approx(best.upper, abs=1e-7)
    np.testing.assert_allclose(solution.stats["worst"].sum(), 1.0)
    assert solution.upper <= 1e-8  # the expert is a policy
    assert 0 <= solution.duality_gap + 1e-10 <= 1e-7


@few
@given(lessons(), seeds, st.floats(0.0, 0.95))
def test_more_weight_on_the_mean_never_lowers_the_risk_nor_raises_the_expected_cost(lesson, seed, tail):
    mdp, expert, _ = lesson
    costs = samples_of(mdp, seed, 6)
    points = [broil(mdp, expert, costs=costs, trade_off=x, tail=tail) for x in (0.0, 0.3, 0.7, 1.0)]
    expected, risk = ([p.stats[name] for p in points] for name in ("expected", "risk"))
    assert (np.diff(expected[1:]) <= 1e-7).all()
    assert (np.diff(risk[:-1]) >= -1e-7).all()
    assert max(p.duality_gap for p in points) <= 1e-7
    assert min(p.duality_gap for p in points) >= -1e-10


@few
@given(seeds, st.floats(0.0, 0.99))
def test_the_tail_mean_is_the_least_value_of_rockafellar_and_uryasev(seed, tail):
    rng = np.random.default_rng(seed)
    losses, p = rng.normal(size=5), rng.dirichlet(np.ones(5))
    ends = [t + p @ np.maximum(losses - t, 0) / (1 - tail) for t in losses]
    assert tail_mean(losses, p / (1 - tail)) == pytest.approx(min(ends), abs=1e-9)


def test_broil_draws_around_the_prior_by_its_seed_and_without_spread_plans_with_the_prior():
    problem = make_problem(4)
    mdp, expert, prior = problem.mdp, problem.expert, problem.prior
    first, again, other = (broil(mdp, expert, prior, n_samples=10, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.cost, again.cost)
    assert (first.cost != other.cost).any()
    certain = broil(mdp, expert, prior, prior_spread=0.0, n_samples=3)
    assert certain.stats["expected"] == pytest.approx(mdp.optimal(prior).expected_cost, abs=1e-8)


def test_broil_refuses_what_it_cannot_use():
    problem = make_problem(4)
    mdp, expert = problem.mdp, problem.expert
    with pytest.raises(ValueError, match="prior, costs: give one of them"):
        broil(mdp, expert)
    with pytest.raises(ValueError, match="prior, costs: give one of them"):
        broil(mdp, expert, problem.prior, costs=[problem.prior])
    with pytest.raises(ValueError, match="tail must be less than 1"):
        broil(mdp, expert, problem.prior, tail=1.0)
    with pytest.raises(ValueError, match=r"costs has shape \(3,\), expected \(n_samples, "):
        broil(mdp, expert, costs=np.zeros(3))
    with pytest.raises(ValueError, match=r"weights has shape \(2,\), expected \(1,\)"):
        broil(mdp, expert, costs=np.zeros((1, mdp.n_pairs)), weights=[0.5, 0.5])


# D-REX


@few
@given(seeds, st.sampled_from([0.0, 0.1, 2.0]))
def test_the_gradient_of_drex_is_that_of_finite_differences(seed, alpha):
    rng = np.random.default_rng(seed)
    differences, prior, cost = rng.normal(size=(6, 4)), rng.normal(size=4), rng.normal(size=4)
    numeric = approx_fprime(cost, lambda c: objective(c, differences, prior, alpha)[0], 1e-6)
    np.testing.assert_allclose(objective(cost, differences, prior, alpha)[1], numeric, atol=1e-4)


@few
@given(lessons(), st.sampled_from([0.0, 0.01, 1.0]))
def test_drex_is_certified_and_no_cost_of_the_box_is_better(lesson, alpha):
    mdp, expert, prior = lesson
    solution = drex(mdp, expert, prior, alpha=alpha)
    assert np.abs(solution.cost).max() <= 1
    assert 0 <= solution.duality_gap <= 1e-6
    policy = mdp.policy_of(expert)
    mus = [mdp.occupancy_of((1 - e) * policy + e * mdp.uniform_policy()) for e in (0, 0.25, 0.5, 0.75, 1)]
    differences = np.array([mus[i] - mus[j] for i in range(5) for j in range(i + 1, 5)])
    for seed in range(10):
        assert objective(random_cost(mdp, seed), differences, prior, alpha)[0] >= solution.lower - 1e-9
    assert assert_policy_and_occupancy(mdp, solution)


@few
@given(lessons())
def test_without_a_prior_drex_ranks_less_noise_before_more(lesson):
    mdp, expert, _ = lesson
    solution = drex(mdp, expert, alpha=0.0)
    policy = mdp.policy_of(expert)
    noisy = [mdp.occupancy_of((1 - e) * policy + e * mdp.uniform_policy()) for e in (0.0, 0.25, 0.5, 0.75, 1.0)]
    if np.abs(noisy[0] - noisy[-1]).max() > 1e-3:  # else there is nothing to rank
        assert noisy[0] @ solution.cost < noisy[-1] @ solution.cost
        assert solution.upper < len(noisy) * (len(noisy) - 1) / 2 * np.log(2)  # that of the zero cost


def test_a_heavy_prior_is_what_drex_learns_and_a_noisy_expert_is_surpassed(gridworld):
    mdp = gridworld.mdp
    expert = rlfd_gym.noisy_expert(mdp, gridworld.cost, 0.3)
    prior = 0.5 * gridworld.cost
    np.testing.assert_allclose(drex(mdp, expert, prior, alpha=1e6).cost, prior, atol=1e-5)
    solution = drex(mdp, expert, alpha=0.0)
    assert solution.stats["ranked"] == 1.0
    assert mdp.expected_cost(solution.policy, gridworld.cost) < expert @ gridworld.cost - 0.01


@pytest.mark.parametrize("levels", [[0.5], [0.5, 0.5], [0.0, 1.5], [[0.0, 1.0]]])
def test_drex_refuses_noise_levels_that_rank_nothing(levels):
    problem = make_problem(4)
    with pytest.raises(ValueError, match="noise_levels"):
        drex(problem.mdp, problem.expert, noise_levels=levels)


# Max margin with a prior


@few
@given(seeds)
def test_max_margin_near_a_prior_and_without_a_loss_is_rlfd_without_its_box(seed):
    problem = make_problem(seed % 10**6, alpha=1.0)
    mdp, prior = problem.mdp, problem.prior / 2  # (μ - μ_E)/2α is at most 1/2, so the box is slack
    exact = solve_exact(RLfDProblem(mdp, problem.expert, prior, 1.0))
    solution = max_margin(mdp, problem.expert, regularisation=2.0, loss=np.zeros(mdp.n_pairs), prior=prior)
    np.testing.assert_allclose(solution.cost, exact.cost, atol=1e-4)
    assert solution.upper == pytest.approx(exact.upper, abs=1e-5)


@few
@given(lessons(), st.sampled_from([0.01, 1.0]))
def test_a_prior_is_the_mean_of_max_margin_and_any_loss_keeps_its_certificate(lesson, weight):
    mdp, expert, prior = lesson
    near, mean = (max_margin(mdp, expert, regularisation=weight, **{name: prior}) for name in ("prior", "mean"))
    np.testing.assert_allclose(near.cost, mean.cost, atol=1e-9)
    basis = np.column_stack([np.ones(mdp.n_pairs), np.linspace(-1, 1, mdp.n_pairs)])
    both = max_margin(mdp, expert, basis, regularisation=weight, prior=prior)
    np.testing.assert_allclose(both.cost, prior + basis @ both.mixture)
    for solution in (near, both):
        assert -1e-9 <= solution.duality_gap <= 1e-5 * max(1.0, abs(solution.upper))


def test_a_heavy_weight_leaves_the_prior_as_it_is():
    problem = make_problem(6)
    solution = max_margin(problem.mdp, problem.expert, regularisation=1e6, prior=problem.prior)
    np.testing.assert_allclose(solution.cost, problem.prior, atol=1e-5)


# Planning in a loop


@few
@given(mdps(max_discount=0.95), seeds)
def test_plans_in_a_loop_are_as_good_as_plans_from_scratch(mdp, seed):
    planner = Planner(mdp)
    for k in range(4):
        cost = 3 * random_cost(mdp, seed + k // 2)  # every other time nothing has to be changed
        occupancy, least = planner.plan(cost)
        plan = mdp.optimal(cost)
        assert least <= plan.expected_cost + plan.value_error
        assert least == pytest.approx(plan.expected_cost, abs=1e-9)
        assert occupancy @ cost == pytest.approx(plan.expected_cost, abs=1e-9)
        np.testing.assert_allclose(mdp.flow(occupancy), mdp.initial, atol=1e-9)


def test_large_mdps_are_planned_without_dense_tables(monkeypatch):
    mdp = make_mdp(3, 6, 3, 0.9)
    monkeypatch.setattr("rlfd_gym.baselines._planning.DENSE_STATES", 5)
    cost = random_cost(mdp, 1)
    np.testing.assert_array_equal(Planner(mdp).plan(cost)[0], mdp.optimal(cost).occupancy)
