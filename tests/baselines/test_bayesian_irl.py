"""Bayesian IRL: its settings, its limits, and how its bands and samples agree with what they approximate."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from strategies import make_mdp, make_problem, random_cost, random_policy

from rlfd_gym import RLfDProblem, TabularMDP, demonstrate, occupancy_from_demonstrations, solve_exact
from rlfd_gym.baselines import Posterior, bayesian_irl
from rlfd_gym.baselines import posterior as module
from rlfd_gym.mdp.soft import soft_optimal
from rlfd_gym.solvers.soft_evidence import alpha_of
from rlfd_gym.solvers.soft_map import SoftProblem, evaluate

PROBLEM = make_problem(3)
GIVEN = {"mdp": PROBLEM.mdp, "expert": PROBLEM.expert, "prior": PROBLEM.prior}


def two_states() -> TabularMDP:
    """State 0 may be left, state 1 may be left for a while."""
    return TabularMDP([[1, 0], [0, 1], [0.2, 0.8], [0.9, 0.1]], [0, 0, 1, 1], [0, 1, 0, 1], [1, 0], discount=0.7)


def test_the_certificate_is_tight_and_the_policy_optimal_for_the_cost():
    solution = bayesian_irl(**GIVEN, rationality=10.0, prior_spread=0.3, n_decisions=50)
    assert -1e-9 <= solution.duality_gap <= 1e-8
    assert solution.stats["alpha"] == pytest.approx(alpha_of(10.0, 0.3, 50))
    assert solution.occupancy @ solution.cost == pytest.approx(PROBLEM.mdp.optimal(solution.cost).expected_cost)
    assert solution.method == "bayesian-irl"


def test_alpha_and_spread_are_two_names_of_one_setting():
    by_spread = bayesian_irl(**GIVEN, rationality=10.0, prior_spread=0.3, n_decisions=50)
    by_alpha = bayesian_irl(**GIVEN, rationality=10.0, alpha=by_spread.stats["alpha"], n_decisions=50)
    np.testing.assert_allclose(by_alpha.cost, by_spread.cost, atol=1e-6)
    assert by_alpha.stats["prior_spread"] == pytest.approx(0.3)


def test_a_rational_expert_gives_rlfd():
    exact = solve_exact(RLfDProblem(PROBLEM.mdp, PROBLEM.expert, PROBLEM.prior, 0.1))
    solution = bayesian_irl(**GIVEN, rationality=1e5, alpha=0.1)
    np.testing.assert_allclose(solution.cost, exact.cost, atol=1e-3)
    assert solution.upper == pytest.approx(exact.upper, abs=np.log(PROBLEM.mdp.n_actions) / 1e5 + 1e-8)


def test_demonstrations_say_how_many_decisions_they_are():
    walks = demonstrate(PROBLEM.mdp, random_policy(PROBLEM.mdp, 1), 6, 40, seed=0)
    solution = bayesian_irl(PROBLEM.mdp, iter(walks), PROBLEM.prior)
    assert solution.stats["n_decisions"] == pytest.approx(6 / (1 - PROBLEM.mdp.discount))
    assert solution.stats["convex"]  # the estimate is the occupancy of a policy
    counted = occupancy_from_demonstrations(walks, PROBLEM.mdp, estimator="count")
    loose = bayesian_irl(PROBLEM.mdp, counted, PROBLEM.prior, n_decisions=5.0, rationality=3.0, prior_spread=0.1)
    assert not loose.stats["convex"]
    assert loose.lower <= loose.upper
    assert solution.lower <= solution.upper
    assert {"log_evidence", "rationality", "prior_spread"} <= set(solution.stats)
    told = bayesian_irl(PROBLEM.mdp, walks, PROBLEM.prior, n_decisions=5.0, rationality=3.0, prior_spread=0.1)
    assert told.stats["n_decisions"] == 5.0
    assert "log_evidence" not in told.stats


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "n_decisions is None"),
        ({"rationality": 5.0, "prior_spread": 0.1}, "n_decisions is None"),
        ({"alpha": 0.1}, "needs rationality"),
        ({"alpha": 0.1, "rationality": 5.0, "prior_spread": 0.1}, "takes the place of prior_spread"),
        ({"rationality": 0.0, "alpha": 0.1}, "rationality must be"),
        ({"rationality": 1.0, "alpha": 0.0}, "alpha must be"),
        ({"prior_spread": -0.1, "n_decisions": 10}, "prior_spread must be"),
        ({"n_decisions": 0}, "n_decisions must be"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        bayesian_irl(**GIVEN, **settings)


def test_without_decisions_there_are_no_bands():
    solution = bayesian_irl(**GIVEN, rationality=5.0, alpha=0.1)
    with pytest.raises(ValueError, match="n_decisions was not given"):
        solution.state.bands()


def test_a_solution_can_be_stored():
    solution = pickle.loads(pickle.dumps(bayesian_irl(**GIVEN, rationality=5.0, prior_spread=0.2, n_decisions=20)))
    assert isinstance(solution.state, Posterior)
    assert solution.state.spread.shape == (PROBLEM.mdp.n_pairs,)


def test_the_covariance_is_the_inverse_of_the_second_derivative():
    mdp, step = two_states(), 1e-4
    truth = np.array([0.3, -0.2, 0.1, 0.4])
    expert = soft_optimal(mdp, truth, 4.0).occupancy
    posterior = bayesian_irl(mdp, expert, 0.5 * truth, rationality=4.0, prior_spread=0.3, n_decisions=30).state
    problem = SoftProblem.of(mdp, expert, 0.5 * truth)

    def energy(cost):
        return 120.0 * evaluate(problem, cost, 4.0, posterior.alpha).upper

    moves = np.eye(4) * step
    c = posterior.cost
    bend = [
        [(energy(c + x + y) - energy(c + x - y) - energy(c - x + y) + energy(c - x - y)) / (4 * step**2) for x in moves]
        for y in moves
    ]
    np.testing.assert_allclose(posterior.covariance @ bend, np.eye(4), atol=1e-3)
    np.testing.assert_allclose(posterior.spread, np.sqrt(np.diag(posterior.covariance)))


def test_bands_are_no_wider_than_the_prior_and_as_wide_along_shaping():
    mdp = make_mdp(5, 4, 3, 0.8)
    expert, sigma = soft_optimal(mdp, random_cost(mdp, 6), 10.0).occupancy, 0.1
    settings = {"rationality": 10.0, "prior_spread": sigma}
    few, many = (bayesian_irl(mdp, expert, np.zeros(mdp.n_pairs), n_decisions=n, **settings).state for n in (10, 1000))
    assert (many.spread <= few.spread + 1e-6).mean() > 0.9
    assert few.spread.max() <= sigma + 1e-9
    shape = mdp.flow_transpose(np.arange(4.0))
    np.testing.assert_allclose(many.covariance @ shape, sigma**2 * shape, atol=1e-9)
    low, high = many.bands(0.9)
    inside = np.abs(many.cost) < 0.5
    np.testing.assert_allclose((high - low)[inside], 2 * 1.6448536 * many.spread[inside], rtol=1e-6)


def test_samples_agree_with_importance_sampling():
    mdp, beta, sigma, n = two_states(), 3.0, 0.4, 20.0
    expert = mdp.occupancy_of([0.6, 0.4, 0.3, 0.7])
    prior = np.array([0.5, -0.8, 0.0, 0.3])
    posterior = bayesian_irl(mdp, expert, prior, rationality=beta, prior_spread=sigma, n_decisions=n).state
    drawn = posterior.samples(400, seed=1, burn_in=60)
    assert drawn.shape == (400, 4)
    assert np.abs(drawn).max() <= 1
    # Costs from the prior, within the box, weighed by the likelihood of the decisions.
    costs = prior + sigma * np.random.default_rng(2).normal(size=(2500, 4))
    costs = costs[(np.abs(costs) <= 1).all(axis=1)]
    logs = np.array([n * expert @ soft_optimal(mdp, cost, beta).log_policy for cost in costs])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ costs
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(drawn.std(axis=0), np.sqrt(weights @ (costs - mean) ** 2), atol=0.08)


def test_samples_are_those_of_their_seed_and_of_small_problems(monkeypatch):
    posterior = bayesian_irl(**GIVEN, rationality=5.0, prior_spread=0.2, n_decisions=20).state
    np.testing.assert_array_equal(posterior.samples(3, seed=4, burn_in=5), posterior.samples(3, seed=4, burn_in=5))
    monkeypatch.setattr(module, "SAMPLED_PAIRS", 2)
    with pytest.raises(ValueError, match="samples are drawn for at most 2"):
        posterior.samples(3)


def test_bands_cover_costs_that_are_drawn_from_the_prior():
    # Truth from the prior, a soft expert, trajectories: what the model assumes.
    mdp, beta, sigma = make_mdp(8, 5, 3, 0.8), 10.0, 0.2
    rng = np.random.default_rng(0)
    prior = rng.uniform(-0.4, 0.4, mdp.n_pairs)
    covered = []
    for seed in range(50):
        truth = prior + sigma * rng.normal(size=mdp.n_pairs)
        walks = demonstrate(mdp, soft_optimal(mdp, truth, beta).policy, 10, mdp.horizon(), seed)
        low, high = bayesian_irl(mdp, walks, prior, rationality=beta, prior_spread=sigma).state.bands(0.9)
        covered.append(((low <= truth) & (truth <= high)).mean())
    assert 0.86 <= np.mean(covered) <= 0.95
