"""The regularisation path and the rules: against theory, other solvers, and brute force."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import make_mdp, make_problem, problems, random_policy

from rlfd_gym import (
    RLfDProblem,
    alpha_path,
    demonstrate,
    noisy_expert,
    occupancy_from_demonstrations,
    occupancy_noise,
    project_prior,
    select_alpha,
)
from rlfd_gym.alpha import parse_rule


def paper_inventory(env):
    return RLfDProblem(env.mdp, env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy, env.cost_for(4, 2, 14))


def paper_gridworld(env):
    return RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), env.partial_prior(0.5, seed=0))


@pytest.fixture(scope="module")
def path():
    """A path of a small random problem, whose expert is a true occupancy."""
    return alpha_path(make_problem(3), n_points=15)


@pytest.mark.filterwarnings("ignore:the projected cost tells almost no policies apart")
@pytest.mark.parametrize("name", ["inventory", "gridworld"])
def test_the_ends_of_the_path_are_the_experts_policy_and_the_priors(name, request):
    make = {"inventory": paper_inventory, "gridworld": paper_gridworld}[name]
    problem = make(request.getfixturevalue(name))
    mdp = problem.mdp
    first, *_, last = alpha_path(problem, n_points=3)
    assert first.departure < 0.02
    assert first.regret < 1e-6
    projection = project_prior(mdp, problem.expert, problem.prior)
    assert first.distance == pytest.approx(np.sqrt(projection.upper), rel=1e-3)
    plan = mdp.optimal(problem.prior)
    worth = mdp.expected_cost(mdp.policy_of(problem.expert), problem.prior) - plan.expected_cost
    assert mdp.expected_cost(last.policy, problem.prior) - plan.expected_cost < 1e-4 * worth
    # Where every state has one best action under the prior, that is what the apprentice does.
    if name == "inventory":
        np.testing.assert_allclose(last.solution.occupancy, plan.occupancy, atol=1e-4)
        np.testing.assert_array_equal(np.round(last.policy, 2), plan.policy)


def test_the_ends_are_not_farther_out_than_they_must_be(inventory):
    problem = paper_inventory(inventory)
    first, last = alpha_path(problem, n_points=2)
    nearer = alpha_path(problem, [2.1 * first.alpha, last.alpha / 2.1])
    assert nearer[0].departure > 0.01 * last.departure
    gain = problem.prior @ (problem.expert - last.solution.occupancy)
    assert problem.prior @ (nearer[1].solution.occupancy - last.solution.occupancy) > 1e-4 * gain


@given(problems())
@settings(max_examples=15)
def test_regret_rises_and_distance_falls_along_the_path(problem):
    # The tolerances are those of the exchange argument in the module's docstring, for the gaps that were reached.
    for low, high in pairwise(alpha_path(problem, n_points=6)):
        both = (low.duality_gap + high.duality_gap) / (high.alpha - low.alpha)
        assert low.alpha < high.alpha
        assert high.distance**2 <= low.distance**2 + both + 1e-12
        assert low.regret <= high.regret + low.duality_gap + low.alpha * both + 1e-12


def test_the_numbers_of_a_point_are_what_they_are_called(path):
    problem = path.problem
    for point in path:
        cost = point.solution.cost
        regret = problem.expert @ cost - problem.mdp.optimal(cost).expected_cost
        assert point.regret == pytest.approx(regret, abs=2e-6)
        assert point.distance == np.linalg.norm(cost - problem.prior)
        assert point.departure == np.abs(point.solution.occupancy - problem.expert).sum()
        assert point.duality_gap < 1e-6
    # Inside the box the apprentice is the expert plus 2α (c - ĉ).
    inside = [point for point in path if np.abs(point.solution.cost).max() < 0.999]
    assert inside
    for point in inside:
        shift = 2 * point.alpha * (point.solution.cost - problem.prior)
        np.testing.assert_allclose(problem.expert + shift, point.solution.occupancy, atol=1e-4)


def test_given_alphas_are_sorted_and_taken_as_they_are():
    path = alpha_path(make_problem(0), [1.0, 0.01, 0.1, 0.1])
    assert [point.alpha for point in path] == [0.01, 0.1, 1.0]
    assert len(path) == 3
    assert path[1:] == path.points[1:]


def test_without_a_trade_off_every_alpha_gives_the_expert():
    problem = make_problem(1)
    mdp = problem.mdp
    agreeing = RLfDProblem(mdp, mdp.optimal(problem.prior).occupancy, problem.prior)
    path = alpha_path(agreeing, n_points=4)
    assert max(point.departure for point in path) < 1e-3
    for rule in ("regret-budget", "l-curve"):
        assert select_alpha(path, rule).alpha == path[-1].alpha
    assert "no trade-off" in select_alpha(path, "l-curve").reason


def test_one_point_has_no_corner():
    with pytest.raises(ValueError, match="path must have two points at least; got 1"):
        select_alpha(alpha_path(make_problem(3), [0.1]), "l-curve")


@pytest.mark.parametrize("budget", [0.0, 0.01, 0.1])
def test_the_regret_budget_is_met_and_with_a_larger_alpha_it_is_not(path, budget):
    mdp, prior = path.problem.mdp, path.problem.prior
    choice = select_alpha(path, "regret-budget", budget=budget)
    limit = max(1e-6, budget * (-mdp.optimal(-prior).expected_cost - mdp.optimal(prior).expected_cost))
    here, above = alpha_path(path.problem, [choice.alpha, 1.002 * choice.alpha])
    assert here.regret <= limit < above.regret
    assert path[0].alpha < choice.alpha < path[-1].alpha


def test_a_budget_beyond_the_prior_takes_the_last_and_one_below_the_path_goes_on_below(path):
    everything = select_alpha(path, "regret-budget", budget=1.0)
    assert everything.alpha == path[-1].alpha
    assert everything.reason.startswith("even at the path's largest alpha")
    short = alpha_path(path.problem, [path[-1].alpha])
    expected = select_alpha(path, "regret-budget:0.01")
    assert select_alpha(short, "regret-budget:0.01").alpha == pytest.approx(expected.alpha, rel=2e-3)


def test_the_discrepancy_rule_departs_by_as_much_as_the_noise(path):
    noise = 0.3 * path[-1].departure
    choice = select_alpha(path, "discrepancy", noise=noise)
    below, here = alpha_path(path.problem, [choice.alpha / 1.002, choice.alpha])
    assert below.departure < noise <= here.departure
    assert select_alpha(path, "discrepancy", noise=0.0).alpha == path[0].alpha
    beyond = select_alpha(path, "discrepancy", noise=2.0)
    assert beyond.alpha == path[-1].alpha
    assert "cannot contradict" in beyond.reason


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_the_corner_is_the_point_farthest_below_the_chord(seed):
    path = alpha_path(make_problem(seed), n_points=60)
    regret = np.array([point.regret for point in path])
    distance = np.array([point.distance**2 for point in path])
    below = (regret - regret[0]) / np.ptp(regret) + (distance - distance[-1]) / np.ptp(distance)
    best = int(np.argmin(below))
    alpha = select_alpha(path, "l-curve").alpha
    # The chord's ends of a finer path are the same, so its best point and α are neighbours at most.
    assert path[max(best - 1, 0)].alpha <= alpha <= path[min(best + 1, len(path) - 1)].alpha


def test_a_rule_may_bring_its_number_along(path):
    for text, settings_ in (
        ("regret-budget:0.02", {"rule": "regret-budget", "budget": 0.02}),
        ("discrepancy:0.1", {"rule": "discrepancy", "noise": 0.1}),
    ):
        short, long = select_alpha(path, text), select_alpha(path, **settings_)
        assert (short.alpha, short.reason) == (long.alpha, long.reason)
        assert short.rule == text
        assert f"{short.alpha:.3g}" in short.reason
        np.testing.assert_allclose(short.solution.cost, long.solution.cost, atol=1e-9)


def test_the_bootstrap_finds_the_error_that_new_demonstrations_show():
    mdp = make_mdp(5, 4, 3, 0.6)
    policy = random_policy(mdp, 6)
    length, number = 12, 40
    samples = [demonstrate(mdp, policy, number, length, seed) for seed in range(80)]
    errors = [np.abs(occupancy_from_demonstrations(some, mdp) - mdp.occupancy_of(policy)).sum() for some in samples]
    actual = np.sqrt(np.mean(np.square(errors)))
    guessed = np.mean([occupancy_noise(some, mdp, n_bootstrap=30) for some in samples[:6]])
    assert guessed == pytest.approx(actual, rel=0.2)


def test_demonstrations_that_do_not_vary_have_no_noise():
    mdp = make_mdp(5, 4, 3, 0.6)
    one = demonstrate(mdp, random_policy(mdp, 6), 1, 20, seed=0)
    assert occupancy_noise(one * 3, mdp, n_bootstrap=5) == pytest.approx(0.0, abs=1e-15)


def test_the_bootstrap_depends_on_its_seed_alone():
    mdp = make_mdp(5, 4, 3, 0.6)
    walks = demonstrate(mdp, random_policy(mdp, 6), 5, 20, seed=0)
    first, same, other = (occupancy_noise(walks, mdp, n_bootstrap=5, seed=seed) for seed in (0, 0, 1))
    assert first == same != other


def test_errors_name_what_was_wrong(path):
    problem = path.problem
    sparse = RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.1, regulariser="l1")
    cases = [
        (lambda: select_alpha(path, "regret_budget"), ValueError, "did you mean 'regret-budget'"),
        (lambda: select_alpha(path, "lcurve"), ValueError, "did you mean 'l-curve'"),
        (lambda: select_alpha(path, "xyz"), ValueError, "rule must be one of regret-budget, discrepancy, l-curve"),
        (lambda: select_alpha(path, 0.1), TypeError, "rule must be a string"),
        (lambda: select_alpha(path, "l-curve:3"), ValueError, "takes no number"),
        (lambda: select_alpha(path, "regret-budget:much"), ValueError, "a number after the colon, its budget"),
        (lambda: parse_rule("regret-budget:2"), ValueError, r"budget must be a finite number in \[0, 1\]"),
        (lambda: parse_rule("discrepancy:3"), ValueError, r"noise must be a finite number in \[0, 2\]"),
        (lambda: select_alpha(path, "regret-budget", budget=-1), ValueError, "budget must be"),
        (lambda: select_alpha(path, "discrepancy"), ValueError, "needs noise"),
        (lambda: select_alpha(list(path)), TypeError, "path must be what alpha_path returns, got list"),
        (lambda: alpha_path(sparse), ValueError, "problem must have regulariser=\"l2\" for a path, got 'l1'"),
        (lambda: alpha_path(problem.mdp), TypeError, "problem must be an RLfDProblem, got TabularMDP"),
        (lambda: alpha_path(problem, [0.1, 0.0]), ValueError, "alphas must be positive"),
        (lambda: alpha_path(problem, []), ValueError, "at least one"),
        (lambda: alpha_path(problem, n_points=1), ValueError, "n_points must be at least 2"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    walks = demonstrate(problem.mdp, problem.mdp.uniform_policy(), 1, 40, seed=0)
    with pytest.raises(ValueError, match="at least two trajectories for a standard error, got one"):
        occupancy_noise(walks, problem.mdp)
    with pytest.raises(ValueError, match="got transitions without times"):
        occupancy_noise([{"obs": [0], "acts": [0]}], problem.mdp)
