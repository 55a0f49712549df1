"""Each baseline against a property that its paper proves, or against another way to the same answer."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from checks import assert_policy_and_occupancy, sampled
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from strategies import make_mdp, make_problem, mdps, random_cost, random_policy, seeds

import rlfd_gym
from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym import baselines as package
from rlfd_gym.baselines import (
    behavioural_cloning,
    lp_irl,
    lpal,
    max_margin,
    mwal,
    projection,
    scale_basis,
)
from rlfd_gym.baselines._expert import expert_occupancy
from rlfd_gym.beliefs.basis import check_basis

few = settings(max_examples=25)


@st.composite
def games(draw: st.DrawFn):
    """(mdp, the occupancy of some policy, a basis in the box)."""
    mdp = draw(mdps(max_states=5, max_actions=3, max_discount=0.95))
    seed = draw(seeds)
    expert = mdp.occupancy_of(random_policy(mdp, seed))
    basis = np.random.default_rng(seed).uniform(-1, 1, (mdp.n_pairs, draw(st.integers(1, 4))))
    return mdp, expert, basis


# The basis and the expert


def test_scaling_brings_every_column_into_the_box_and_keeps_its_direction():
    basis = np.array([[1.0, -30.0, 0.0], [0.5, 15.0, 0.0]])
    scaled = scale_basis(basis)
    np.testing.assert_array_equal(scaled, [[1.0, -1.0, 0.0], [0.5, 0.5, 0.0]])
    check_basis(scaled, 2)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (np.ones(3), r"basis has shape \(3,\), expected \(n_pairs, K\)"),
        (np.ones((4, 2)), r"basis has shape \(4, 2\), expected \(3, K\)"),
        (np.array([[1.0], [np.nan], [0.0]]), "entry .1, 0. is nan"),
        (np.array([[1.0, 0.0], [0.0, -2.0], [0.0, 0.0]]), r"column 1 reaches 2; rlfd_gym.beliefs.scale_basis"),
    ],
)
def test_a_basis_that_will_not_do_is_refused_with_what_to_do(basis, message):
    with pytest.raises(ValueError, match=message):
        check_basis(basis, 3)


def test_an_expert_is_a_vector_or_demonstrations():
    mdp = make_mdp(3, 4, 3, 0.5)
    policy = mdp.uniform_policy()
    exact = mdp.occupancy_of(policy)
    np.testing.assert_allclose(expert_occupancy(mdp, exact.tolist()), exact)
    demonstrations = sampled(mdp, policy, 5, 40, 0)
    np.testing.assert_array_equal(
        expert_occupancy(mdp, demonstrations), rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp)
    )


def test_an_expert_that_is_neither_is_refused_by_name():
    mdp = make_mdp(3, 4, 3, 0.5)
    with pytest.raises(ValueError, match=r"expert has shape \(2,\), expected"):
        behavioural_cloning(mdp, [0.5, 0.5])
    with pytest.raises(ValueError, match="expert must sum to 1"):
        behavioural_cloning(mdp, np.ones(mdp.n_pairs))
    with pytest.raises(TypeError, match="mdp must be a TabularMDP, got str"):
        lpal("grid", np.ones(3), np.ones((3, 1)))


def test_every_public_name_is_a_documented_function_whatever_was_imported_before():
    # The wrappers of imitation are looked at in their own tests.
    for name in set(package.__all__) - set(package.NEED_IMITATION):
        if importlib.util.find_spec(f"rlfd_gym.baselines.{name}"):
            importlib.import_module(f"rlfd_gym.baselines.{name}")
        assert callable(getattr(package, name))
        assert getattr(package, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


METHODS = {
    "behavioural_cloning": lambda mdp, expert, basis: behavioural_cloning(mdp, expert=expert),
    "lpal": lambda mdp, expert, basis: lpal(mdp, expert=expert, basis=basis),
    "mwal": lambda mdp, expert, basis: mwal(mdp, expert=expert, basis=basis, n_iterations=50),
    "projection": lambda mdp, expert, basis: projection(mdp, expert=expert, basis=basis),
    "max_margin": lambda mdp, expert, basis: max_margin(mdp, expert=expert, basis=basis),
    "lp_irl": lambda mdp, expert, basis: lp_irl(mdp, expert=expert),
}


@pytest.mark.parametrize("method", METHODS)
def test_demonstrations_and_the_occupancy_estimated_from_them_give_the_same(method, inventory):
    mdp, basis = inventory.mdp, scale_basis(inventory.features)
    demonstrations = sampled(mdp, mdp.optimal(inventory.cost).policy, 10, 60, 1)
    direct = METHODS[method](mdp, demonstrations, basis)
    estimated = METHODS[method](mdp, rlfd_gym.occupancy_from_demonstrations(demonstrations, mdp), basis)
    # Not to the last digit: a vector is divided by its sum once more.
    np.testing.assert_allclose(direct.policy, estimated.policy, atol=1e-9)
    assert assert_policy_and_occupancy(mdp, direct)


# Behavioural cloning


@few
@given(mdps(max_states=5, max_actions=3, max_discount=0.95), seeds)
def test_cloning_is_rlfd_on_the_box_without_a_prior(mdp, seed):
    expert = mdp.occupancy_of(random_policy(mdp, seed))
    exact = solve_exact(RLfDProblem(mdp, expert))
    solution = behavioural_cloning(mdp, expert)
    np.testing.assert_allclose(solution.occupancy, exact.occupancy, atol=1e-9)
    assert not hasattr(solution, "cost")


def test_cloning_acts_uniformly_where_the_expert_never_was():
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1:, :, 1] = 1.0
    mdp = rlfd_gym.TabularMDP.from_dense(P, initial=[1, 0, 0], discount=0.5)
    solution = behavioural_cloning(mdp, mdp.occupancy_of([1, 0, 1, 0, 1, 0]))
    np.testing.assert_array_equal(solution.policy, [1, 0, 1, 0, 0.5, 0.5])
    assert solution.stats["unvisited_states"] == 1


# LPAL


@few
@given(games(), seeds)
def test_lpal_is_never_worse_than_the_expert_under_any_cost_of_the_hull(game, seed):
    mdp, expert, basis = game
    solution = lpal(mdp, expert, basis)
    assert assert_policy_and_occupancy(mdp, solution)
    weights = np.random.default_rng(seed).dirichlet(np.ones(basis.shape[1]), size=20)
    assert ((solution.occupancy - expert) @ basis @ weights.T).max() <= solution.upper + 1e-9
    assert solution.upper <= 1e-8
    assert 0 <= solution.duality_gap <= 1e-7


@few
@given(games())
def test_lpals_value_is_that_of_the_program_over_weights_and_values(game):
    # Its dual, written by hand: max <ν₀, u> - <Cw, μ_E> over w in the simplex with Tγᵀu ≤ Cw.
    mdp, expert, basis = game
    k = basis.shape[1]
    dual = linprog(
        np.concatenate([basis.T @ expert, -mdp.initial]),
        A_ub=np.hstack([-basis, mdp.flow_matrix().toarray().T]),
        b_ub=np.zeros(mdp.n_pairs),
        A_eq=[[1.0] * k + [0.0] * mdp.n_states],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)] * mdp.n_states,
    )
    solution = lpal(mdp, expert, basis)
    assert solution.lower - 1e-7 <= -dual.fun <= solution.upper + 1e-7
    assert solution.mixture.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(solution.cost, basis @ solution.mixture)


def test_lpal_beats_a_noisy_expert_by_its_promise(inventory):
    # The truth times a factor lies in the hull of the scaled features, so -β* is a true advantage.
    mdp, basis = inventory.mdp, scale_basis(inventory.features)
    expert = rlfd_gym.noisy_expert(mdp, inventory.cost, 0.3)
    solution = lpal(mdp, expert, basis)
    prices = inventory.parameters * np.abs(inventory.features).max(axis=0)
    truth = basis @ (prices / prices.sum())
    assert truth @ solution.occupancy <= truth @ expert + solution.upper + 1e-9
    assert solution.upper < -1e-3


# MWAL


@few
@given(games(), st.sampled_from([1, 10, 100]))
def test_mwal_is_within_its_regret_bound_of_lpal(game, n_iterations):
    mdp, expert, basis = game
    solution = mwal(mdp, expert, basis, n_iterations=n_iterations)
    best = lpal(mdp, expert, basis)
    k = basis.shape[1]
    bound = 4 * (np.sqrt(2 * np.log(k) / n_iterations) + np.log(k) / n_iterations)
    assert solution.stats["regret_bound"] == pytest.approx(bound)
    assert best.lower - 1e-9 <= solution.upper <= best.upper + bound + 1e-7
    assert solution.lower <= best.upper + 1e-9
    assert solution.duality_gap <= bound + 1e-7
    assert assert_policy_and_occupancy(mdp, solution)


def test_mwals_error_shrinks_with_its_iterations(inventory):
    mdp, basis = inventory.mdp, scale_basis(inventory.features)
    expert = rlfd_gym.noisy_expert(mdp, inventory.cost, 0.3)
    gaps = [mwal(mdp, expert, basis, n_iterations=n).duality_gap for n in (10, 100, 500)]
    assert gaps[0] > gaps[1] > gaps[2]


def test_mwal_refuses_a_basis_outside_the_box_and_offers_the_scaling(inventory):
    expert = inventory.mdp.optimal(inventory.cost).occupancy
    with pytest.raises(ValueError, match="scale_basis"):
        mwal(inventory.mdp, expert, inventory.features)
    with pytest.raises(ValueError, match="n_iterations must be at least 1, got 0"):
        mwal(inventory.mdp, expert, scale_basis(inventory.features), n_iterations=0)


# Projection


@few
@given(games(), seeds)
def test_projection_costs_what_the_expert_costs_under_every_cost_of_the_unit_ball(game, seed):
    mdp, expert, basis = game
    epsilon = 0.01
    solution = projection(mdp, expert, basis, epsilon=epsilon, n_iterations=3000)
    w = np.random.default_rng(seed).normal(size=(20, basis.shape[1]))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    assert np.abs((solution.occupancy - expert) @ basis @ w.T).max() <= epsilon + 1e-9
    assert solution.upper <= epsilon + 1e-9
    assert 0.0 <= solution.lower <= 1e-9  # the expert is a policy, so the distance is zero
    assert assert_policy_and_occupancy(mdp, solution)


@few
@given(games(), seeds)
def test_projection_bounds_the_distance_of_an_expert_that_is_no_policy(game, seed):
    mdp, expert, basis = game
    estimate = np.random.default_rng(seed).multinomial(20, expert / expert.sum()) / 20
    solution = projection(mdp, estimate, basis, epsilon=0.01, n_iterations=3000)
    assert solution.duality_gap <= 0.01 + 1e-9
    # No policy comes nearer than the lower bound says.
    others = np.array([mdp.occupancy_of(random_policy(mdp, seed + i)) for i in range(10)])
    assert np.linalg.norm((others - estimate) @ basis, axis=1).min() >= solution.lower - 1e-9


def test_the_last_cost_of_projection_is_zero_where_nothing_was_to_be_learned():
    mdp = make_mdp(1, 4, 3, 0.8)
    solution = projection(mdp, mdp.occupancy_of(mdp.uniform_policy()), np.eye(mdp.n_pairs))
    assert not solution.cost.any()
    assert solution.n_iterations == 0


# Maximum margin planning


@few
@given(seeds)
def test_max_margin_with_identity_features_and_no_loss_is_io_al(seed):
    problem = make_problem(seed % 10**6, alpha=1.0)
    mdp, prior = problem.mdp, problem.prior / 2  # (μ - μ_E)/2α is at most 1/2, so the box is slack
    exact = solve_exact(RLfDProblem(mdp, problem.expert, prior, 1.0))
    solution = max_margin(mdp, problem.expert, regularisation=2.0, loss=np.zeros(mdp.n_pairs), mean=prior)
    np.testing.assert_allclose(solution.cost, exact.cost, atol=1e-4)
    np.testing.assert_allclose(solution.stats["adversary"], exact.occupancy, atol=1e-4)
    assert solution.upper == pytest.approx(exact.upper, abs=1e-5)
    assert 0 <= solution.duality_gap <= 1e-6


@few
@given(games())
def test_max_margin_closes_the_gap_between_its_bounds_on_any_basis(game):
    mdp, expert, basis = game
    solution = max_margin(mdp, expert, basis)
    assert 0 <= solution.duality_gap <= 1e-5 * max(1.0, solution.upper)
    assert assert_policy_and_occupancy(mdp, solution)


def test_max_margin_agrees_with_the_papers_subgradient_method():
    problem = make_problem(5)
    mdp, expert, weight = problem.mdp, problem.expert, 1.0
    basis = np.random.default_rng(0).uniform(-1, 1, (mdp.n_pairs, 3))
    solution = max_margin(mdp, expert, basis, regularisation=weight)
    w, mean = np.zeros(3), np.zeros(3)
    for t in range(1, 801):
        adversary = mdp.optimal(basis @ w - solution.stats["loss"]).occupancy
        w = w - (weight * w + basis.T @ (expert - adversary)) / (weight * t)
        mean += 2 / (t + 1) * (w - mean)  # later iterates weigh more
    np.testing.assert_allclose(mean, solution.mixture, atol=5e-3)


def test_the_loss_of_max_margin_counts_what_the_expert_does_not_do():
    mdp = rlfd_gym.TabularMDP.from_dense(np.full((2, 3, 2), [1.0, 0.0]), initial=[1, 0], discount=0.5)
    solution = max_margin(mdp, [0.75, 0.25, 0, 0, 0, 0])
    np.testing.assert_allclose(solution.stats["loss"], [0, 2 / 3, 1, 1, 1, 1])


def test_max_margin_refuses_what_it_cannot_use():
    mdp = make_mdp(3, 4, 3, 0.5)
    expert = mdp.occupancy_of(mdp.uniform_policy())
    with pytest.raises(ValueError, match="regularisation must be a finite number"):
        max_margin(mdp, expert, regularisation=0.0)
    with pytest.raises(ValueError, match=r"mean has shape \(2,\), expected \(1,\)"):
        max_margin(mdp, expert, np.ones((mdp.n_pairs, 1)), mean=[0.0, 0.0])
    with pytest.raises(ValueError, match="loss has shape"):
        max_margin(mdp, expert, loss=[1.0])


# LP-IRL


@few
@given(mdps(max_states=6, max_actions=4, max_discount=0.95), seeds, st.sampled_from([0.0, 0.05, 1.0]))
def test_the_experts_policy_is_optimal_for_the_cost_of_lp_irl(mdp, seed, penalty):
    expert = mdp.optimal(random_cost(mdp, seed)).occupancy
    solution = lp_irl(mdp, expert, penalty=penalty)
    policy = mdp.policy_of(expert)
    assert mdp.expected_cost(policy, solution.cost) <= mdp.optimal(solution.cost).expected_cost + 1e-7
    # Where the expert acts, the learned policy acts as it does.
    visited = (mdp.sum_by_state(expert) > 0)[mdp.pair_states]
    np.testing.assert_allclose(solution.policy[visited], policy[visited])
    assert np.abs(solution.cost).max() <= 1 + 1e-9
    assert assert_policy_and_occupancy(mdp, solution)


def test_lp_irl_solves_the_papers_program_with_inverted_matrices(gridworld):
    # Ng and Russell's own form, in R: rows (P_π - P_a)(I - γP_π)⁻¹ R, dense.
    mdp, penalty = gridworld.mdp, 0.5
    plan = mdp.optimal(gridworld.cost)
    n, P = mdp.n_states, mdp.transitions.toarray()
    pi = np.flatnonzero(plan.policy)
    inverse = np.linalg.inv(np.eye(n) - mdp.discount * P[pi])
    others = np.setdiff1d(np.arange(mdp.n_pairs), pi)
    rows = (P[pi[mdp.pair_states[others]]] - P[others]) @ inverse
    margins = np.eye(n)[mdp.pair_states[others]]
    result = linprog(
        np.concatenate([np.zeros(n), -np.ones(n), np.full(n, penalty)]),
        A_ub=np.vstack(
            [
                np.hstack([-rows, margins, np.zeros_like(margins)]),
                np.hstack([-rows, np.zeros_like(margins), np.zeros_like(margins)]),
                np.hstack([np.eye(n), np.zeros((n, n)), -np.eye(n)]),
                np.hstack([-np.eye(n), np.zeros((n, n)), -np.eye(n)]),
            ]
        ),
        b_ub=np.zeros(2 * len(others) + 2 * n),
        bounds=[(-1, 1)] * n + [(None, None)] * n + [(0, None)] * n,
    )
    solution = lp_irl(mdp, plan.occupancy, penalty=penalty)
    per_state = solution.cost[mdp.state_starts[:-1]]
    value = solution.stats["margin"] - penalty * np.abs(per_state).sum()
    assert value == pytest.approx(-result.fun, rel=1e-7)
    assert value > 1


def test_a_heavy_penalty_leaves_no_cost_and_a_negative_one_is_refused(gridworld):
    expert = gridworld.mdp.optimal(gridworld.cost).occupancy
    assert not lp_irl(gridworld.mdp, expert, penalty=100.0).cost.any()
    with pytest.raises(ValueError, match="penalty must be a finite number"):
        lp_irl(gridworld.mdp, expert, penalty=-1.0)
