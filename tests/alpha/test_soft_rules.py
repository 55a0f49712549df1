"""The rules that look at the demonstrations: evidence and held-out likelihood."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp, random_cost

from rlfd_gym import RLfDProblem, alpha_path, demonstrate, occupancy_from_demonstrations, select_alpha
from rlfd_gym.alpha import soft_rules
from rlfd_gym.alpha.soft_rules import POINTS, held_out_scores
from rlfd_gym.experts.demonstrations import read_demonstrations
from rlfd_gym.mdp.soft import soft_optimal
from rlfd_gym.solvers.soft_evidence import alpha_of, fit_evidence
from rlfd_gym.solvers.soft_map import SoftProblem, soft_map

MDP = make_mdp(4, 6, 3, 0.8)
TRUTH = random_cost(MDP, 5)


def walks_of(policy, number, seed=0):
    return demonstrate(MDP, policy, number, MDP.horizon(), seed)


SHOWN = walks_of(soft_optimal(MDP, TRUTH, 5.0).policy, 12)


def path_of(walks, prior, n_points=6):
    return alpha_path(RLfDProblem(MDP, occupancy_from_demonstrations(walks, MDP), prior), n_points=n_points)


def test_evidence_gives_the_alpha_of_its_rationality_and_spread():
    path = path_of(SHOWN, TRUTH)
    choice = select_alpha(path, "evidence", demonstrations=SHOWN)
    decisions = 12 / (1 - MDP.discount)
    found = fit_evidence(SoftProblem.of(MDP, path.problem.expert, TRUTH), decisions)
    assert choice.alpha == pytest.approx(alpha_of(found.rationality, found.prior_spread, decisions))
    assert choice.reason.startswith(f"alpha = {choice.alpha:.3g} is 1/(2σ²βN) for 60 decisions")
    assert select_alpha(path, "evidence:60").alpha == pytest.approx(choice.alpha)
    assert choice.solution.duality_gap < 1e-6


def test_the_evidence_is_sought_once_for_both_rules_but_again_for_another_number_of_decisions(monkeypatch):
    asked = []
    monkeypatch.setattr(soft_rules, "fit_evidence", lambda problem, n: asked.append(n) or fit_evidence(problem, n))
    path, same = path_of(SHOWN, TRUTH), path_of(SHOWN, TRUTH)
    for rule in ("evidence", "held-out"):
        select_alpha(path, rule, demonstrations=SHOWN)
    assert asked == [pytest.approx(60)]
    select_alpha(path, "evidence:500")
    select_alpha(same, "evidence", demonstrations=SHOWN)
    assert asked == [pytest.approx(60), 500, pytest.approx(60)]


def test_a_wrong_prior_weighs_less_by_either_rule():
    for rule in ("evidence", "held-out"):
        right, wrong = (select_alpha(path_of(SHOWN, p), rule, demonstrations=SHOWN).alpha for p in (TRUTH, -TRUTH))
        assert wrong < right, rule


@pytest.mark.parametrize("rule", ["evidence", "held-out"])
def test_neither_rule_sees_that_a_consistent_expert_is_misled(rule):
    # An expert that is optimal for another cost is imitated, although the prior is the truth.
    walks = walks_of(MDP.optimal(random_cost(MDP, 79)).policy, 20)
    path = path_of(walks, TRUTH)
    apprentice = select_alpha(path, rule, demonstrations=walks).solution.occupancy
    assert np.abs(apprentice - path.problem.expert).sum() < 0.02 * path[-1].departure


def test_scores_are_likelihoods_of_trajectories_that_the_fit_has_not_seen():
    read, path = read_demonstrations(SHOWN[:3]), path_of(SHOWN[:3], TRUTH)
    scores = held_out_scores(path, read, [0.1], 5.0)
    assert scores.shape == (1, 3)
    for k in range(3):  # three trajectories are three folds
        others = [walk for j, walk in enumerate(SHOWN[:3]) if j != k]
        fit = soft_map(SoftProblem.of(MDP, occupancy_from_demonstrations(others, MDP), TRUTH), 5.0, 0.1)
        pairs = MDP.pair_index(SHOWN[k].obs[:-1], SHOWN[k].acts)
        weights = (1 - MDP.discount) * MDP.discount ** np.arange(len(pairs))
        assert scores[0, k] == pytest.approx(weights @ fit.plan.log_policy[pairs], abs=1e-3)


def test_held_out_takes_the_largest_alpha_near_the_best():
    path = path_of(SHOWN, np.zeros(MDP.n_pairs), n_points=POINTS)
    choice = select_alpha(path, "held-out", demonstrations=SHOWN)
    found = fit_evidence(SoftProblem.of(MDP, path.problem.expert, path.problem.prior), 12 / (1 - MDP.discount))
    alphas = [point.alpha for point in path]
    scores = held_out_scores(path, read_demonstrations(SHOWN), alphas, found.rationality)
    best = scores.mean(axis=1).argmax()
    limit = scores[best].mean() - scores[best].std(ddof=1) / np.sqrt(12)
    chosen = alphas.index(choice.alpha)
    assert chosen >= best
    assert scores[chosen].mean() >= limit
    assert all(scores[k].mean() < limit for k in range(chosen + 1, POINTS))
    assert "held-out log-likelihood" in choice.reason


@pytest.mark.parametrize(("rule", "shown"), [("evidence", None), ("held-out", None), ("held-out", SHOWN[:1])])
def test_the_rules_need_trajectories(rule, shown):
    with pytest.raises(ValueError, match=f'rule "{rule}" needs demonstrations with at least'):
        select_alpha(path_of(SHOWN, TRUTH, 2), rule, demonstrations=shown)


def test_the_rules_take_no_transitions_without_times():
    timeless = [{"obs": MDP.pair_states[:1], "acts": MDP.pair_actions[:1]}]
    with pytest.raises(ValueError, match="got transitions without times"):
        select_alpha(path_of(SHOWN, TRUTH, 2), "evidence", demonstrations=timeless)
