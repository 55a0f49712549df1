"""Evidence: against the integral that it approximates, and for experts whose rationality is known."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp, random_cost

from rlfd_gym import TabularMDP
from rlfd_gym.mdp.soft import soft_optimal
from rlfd_gym.solvers.soft_evidence import alpha_of, evidence_at, fit_evidence
from rlfd_gym.solvers.soft_map import NEWTON_PAIRS, SoftProblem


def test_alpha_weighs_the_prior_against_the_decisions():
    assert alpha_of(rationality=10.0, prior_spread=0.5, n_decisions=20) == pytest.approx(1 / 100)


def test_laplace_is_near_the_integral():
    # One state, two actions: the likelihood of c is a logistic function, and the integral a plain average.
    mdp = TabularMDP([[1.0], [1.0]], [0, 0], [0, 1], initial=None, discount=0.5)
    expert, prior, beta, sigma, n = np.array([0.7, 0.3]), np.array([0.0, 0.1]), 2.0, 0.3, 12.0
    laplace = evidence_at(SoftProblem.of(mdp, expert, prior), beta, sigma, n).log_evidence
    costs = prior + sigma * np.random.default_rng(0).normal(size=(200_000, 2))
    logs = -np.logaddexp(0.0, beta * (costs - costs[:, ::-1]))
    integral = np.log(np.mean(np.exp(n * logs @ expert)))
    assert laplace == pytest.approx(integral, abs=0.05)


def test_a_single_action_tells_nothing():
    mdp = TabularMDP([[1.0]], [0], [0], initial=None, discount=0.5)
    found = evidence_at(SoftProblem.of(mdp, np.ones(1), np.array([0.2])), 5.0, 0.3, 100.0)
    assert found.log_evidence == pytest.approx(0.0, abs=1e-6)
    assert found.fit.cost == pytest.approx(0.2)


@pytest.mark.parametrize("beta", [2.0, 40.0])
def test_the_rationality_of_a_soft_expert_is_found(beta):
    mdp = make_mdp(5, 8, 3, 0.8)
    prior = random_cost(mdp, 6)
    expert = soft_optimal(mdp, np.clip(prior, -1, 1), beta).occupancy
    found = fit_evidence(SoftProblem.of(mdp, expert, prior), 1000.0, prior_spread=0.05)
    assert found.prior_spread == 0.05
    assert beta / 2 <= found.rationality <= 2 * beta


def test_a_prior_that_does_not_fit_is_trusted_less():
    mdp = make_mdp(7, 8, 3, 0.8)
    truth = random_cost(mdp, 8)
    expert = soft_optimal(mdp, truth, 20.0).occupancy
    right, wrong = (fit_evidence(SoftProblem.of(mdp, expert, prior), 1000.0) for prior in (truth, -truth))
    assert wrong.prior_spread > 3 * right.prior_spread
    assert wrong.alpha < right.alpha


def test_the_answer_is_better_than_its_neighbours():
    mdp = make_mdp(9, 5, 3, 0.8)
    problem = SoftProblem.of(mdp, soft_optimal(mdp, random_cost(mdp, 1), 8.0).occupancy, random_cost(mdp, 2))
    best = fit_evidence(problem, 200.0)
    for beta, sigma in ((1.5, 1), (1 / 1.5, 1), (1, 1.5), (1, 1 / 1.5)):
        spread = min(best.prior_spread * sigma, 1.0)
        assert evidence_at(problem, best.rationality * beta, spread, 200.0).log_evidence <= best.log_evidence + 0.05


def test_a_large_problem_is_refused():
    n = NEWTON_PAIRS + 1
    mdp = TabularMDP(np.ones((n, 1)), np.zeros(n, dtype=int), np.arange(n), None, 0.5)
    with pytest.raises(ValueError, match="give rationality and prior_spread or alpha"):
        fit_evidence(SoftProblem.of(mdp, np.full(n, 1 / n), np.zeros(n)), 10.0)
