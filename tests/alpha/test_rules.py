"""The rules that choose α, and the noise of demonstrations that one of them takes."""

from __future__ import annotations

import numpy as np
import pytest
from strategies import make_mdp, make_problem, random_policy

from rlfd_gym import RLfDProblem, alpha_path, demonstrate, occupancy_from_demonstrations, occupancy_noise, select_alpha
from rlfd_gym.alpha import parse_rule


@pytest.fixture(scope="module")
def path():
    """A path of a small random problem, whose expert is a true occupancy."""
    return alpha_path(make_problem(3), n_points=15)


def test_without_a_trade_off_every_alpha_gives_the_expert():
    problem = make_problem(1)
    mdp = problem.mdp
    agreeing = RLfDProblem(mdp, mdp.optimal(problem.prior).occupancy, problem.prior)
    path = alpha_path(agreeing, n_points=4)
    assert max(point.departure for point in path) < 1e-3
    for rule in ("regret-budget", "l-curve"):
        assert select_alpha(path, rule).alpha == path[-1].alpha
    assert "no trade-off" in select_alpha(path, "l-curve").reason


def test_a_path_of_one_point_has_no_corner():
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


def test_a_budget_beyond_the_prior_takes_the_largest_alpha_and_one_below_the_path_extends_it(path):
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


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rule": "regret_budget"}, ValueError, "did you mean 'regret-budget'"),
        ({"rule": "lcurve"}, ValueError, "did you mean 'l-curve'"),
        (
            {"rule": "xyz"},
            ValueError,
            "rule must be one of regret-budget, discrepancy, prior-error, evidence, held-out, l-curve",
        ),
        ({"rule": 0.1}, TypeError, "rule must be a string"),
        ({"rule": "l-curve:3"}, ValueError, "takes no number"),
        ({"rule": "regret-budget:much"}, ValueError, "a number after the colon, its budget"),
        ({"rule": "regret-budget", "budget": -1}, ValueError, "budget must be"),
        ({"rule": "discrepancy"}, ValueError, "needs noise"),
        ({"path": []}, TypeError, "path must be what alpha_path returns, got list"),
    ],
)
def test_bad_arguments_of_select_alpha_are_refused_by_name(path, arguments, error, message):
    with pytest.raises(error, match=message):
        select_alpha(**({"path": path} | arguments))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("regret-budget:2", r"budget must be a finite number in \[0, 1\]"),
        ("discrepancy:3", r"noise must be a finite number in \[0, 2\]"),
    ],
)
def test_a_rule_with_a_number_out_of_range_is_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        parse_rule(rule)


def test_the_noise_of_one_trajectory_or_of_transitions_without_times_is_refused(path):
    mdp = path.problem.mdp
    walks = demonstrate(mdp, mdp.uniform_policy(), 1, 40, seed=0)
    with pytest.raises(ValueError, match="at least two trajectories for a standard error, got one"):
        occupancy_noise(walks, mdp)
    with pytest.raises(ValueError, match="got transitions without times"):
        occupancy_noise([{"obs": [0], "acts": [0]}], mdp)
