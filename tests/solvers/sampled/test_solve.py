"""`solve_sampled`: budgets, determinism, real environments, what an oracle declares, and errors."""

from __future__ import annotations

import itertools

import gymnasium as gym
import numpy as np
import pytest
from oracles import SteppedLake, TableOracle, box_of, exact_expert, true_bounds
from strategies import make_problem

from rlfd_gym import (
    BlackBoxProblem,
    RLfDProblem,
    SampledExpert,
    TabularMDP,
    noisy_expert,
    simulate,
    solve_exact,
    solve_sampled,
)
from rlfd_gym.solvers.sampled.certificate import Candidate, allocate
from rlfd_gym.solvers.sampled.draws import Oracle, tables_of
from rlfd_gym.solvers.sampled.estimated import solve_estimated


@pytest.fixture(scope="module")
def problem():
    return make_problem(1, 4, 3, discount=0.6, alpha=0.5)


def lake(simulator, discount=0.7, alpha=1.0):
    """FrozenLake with a noisy expert, as tables and as a simulator."""
    mdp = TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=discount)
    cost = np.where(mdp.pair_states == 15, -1.0, np.where(np.isin(mdp.pair_states, [5, 7, 11, 12]), 0.5, 0.0))
    tables = RLfDProblem(mdp, noisy_expert(mdp, cost, 0.5), cost, alpha)
    box = BlackBoxProblem(
        simulator, exact_expert(mdp, tables.expert), n_states=16, n_actions=4, discount=discount, prior=cost,
        alpha=alpha, feasible=simulator.feasible,
    )  # fmt: skip
    return tables, box


@pytest.mark.parametrize("method", ["model", "smd"])
def test_no_more_is_drawn_than_allowed_in_batches_as_large_as_allowed(problem, method):
    box = box_of(problem)
    solution = solve_sampled(box, calls=20_000, method=method, batch=700)
    assert solution.stats["calls"] == box.oracle.calls <= 20_000
    assert box.oracle.asked <= 700
    assert solution.method == f"sampled: {method}"
    few = 4 * problem.n_pairs + 2  # the least that is taken
    assert solve_sampled(box_of(problem), calls=few, method=method).stats["calls"] <= few


@pytest.mark.parametrize("method", ["model", "smd"])
def test_the_same_seed_gives_the_same_solution(problem, method):
    first, second, other = (solve_sampled(box_of(problem), calls=5000, seed=s, method=method) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.cost, second.cost)
    assert (first.upper, first.lower) == (second.upper, second.lower) != (other.upper, other.lower)


def test_it_stops_at_the_gap_or_the_share_that_was_asked_for():
    problem = make_problem(2, 3, 2, discount=0.4, alpha=2.0)
    value = solve_exact(problem).lower
    asked = solve_sampled(box_of(problem), gap=0.2)
    assert asked.finished
    assert asked.duality_gap <= 0.2
    share = solve_sampled(box_of(problem), relative=0.5)
    assert share.duality_gap <= 0.5 * share.lower <= 0.5 * value
    hopeless = solve_sampled(box_of(problem), gap=1e-9, calls=2000)
    assert not hopeless.finished


def test_the_callback_sees_every_round_and_may_stop(problem):
    seen = []
    solve_sampled(box_of(problem), calls=20_000, callback=seen.append)
    assert [s.stats["rounds"] for s in seen] == list(range(1, len(seen) + 1))
    assert all(b.duality_gap <= a.duality_gap for a, b in itertools.pairwise(seen))
    stopped = solve_sampled(box_of(problem), calls=20_000, callback=lambda solution: False)
    assert stopped.stats["rounds"] == 1


def test_a_deterministic_oracle_is_certified_by_few_draws_if_it_says_so():
    problem = make_problem(4, 5, 3, discount=0.8, alpha=0.5)
    moves = np.eye(5)[np.argmax(problem.mdp.transitions.toarray(), axis=1)]
    mdp = TabularMDP(moves, problem.mdp.pair_states, problem.mdp.pair_actions, problem.mdp.initial, 0.8)
    sure = RLfDProblem(mdp, mdp.occupancy_of(mdp.uniform_policy()), problem.prior, 0.5)
    told = solve_sampled(box_of(sure, deterministic=True), calls=20_000)
    assert told.upper == pytest.approx(true_bounds(sure, told)[0], abs=1e-9)
    untold = solve_sampled(box_of(sure), calls=20_000)
    assert untold.upper > told.upper + 1e-6


def test_frozen_lake_is_learned_from_its_steps_alone():
    tables, box = lake(simulate(gym.make("FrozenLake-v1"), discount=0.7))
    solution = solve_sampled(box, calls=60_000)
    upper, lower = true_bounds(tables, solution)
    assert solution.lower <= lower <= upper <= solution.upper
    assert upper - lower < 0.01
    assert solution.duality_gap < 0.5


def test_an_environment_that_can_only_be_stepped_is_learned_from_its_episodes():
    tables, box = lake(simulate(SteppedLake(), steps=2000, discount=0.7))
    solution = solve_sampled(box, calls=15_000)
    upper, lower = true_bounds(tables, solution)
    assert solution.lower <= lower <= upper <= solution.upper
    assert upper - lower < 0.05


@pytest.mark.slow
def test_taxi_is_certified_to_a_twentieth_of_its_value():
    env = gym.make("Taxi-v3")
    from rlfd_gym import cost_of_env

    mdp = TabularMDP.from_env(env, discount=0.95)
    tables = RLfDProblem(mdp, noisy_expert(mdp, cost_of_env(env) / 20, 0.3), cost_of_env(env) / 20, 0.1)
    box = box_of(tables)
    box = BlackBoxProblem(
        simulate(mdp), box.expert, n_states=500, n_actions=6, discount=0.95, prior=tables.prior, alpha=0.1
    )
    solution = solve_sampled(box, relative=0.05, calls=60_000_000)
    assert solution.finished
    upper, lower = true_bounds(tables, solution)
    assert solution.lower <= lower <= upper <= solution.upper <= 1.05 * solution.lower + 1e-12


@pytest.mark.parametrize(("alpha", "regulariser"), [(0.1, "l2"), (0.0, "l2"), (0.05, "l1")])
def test_estimated_tables_are_solved_to_optimality_although_the_expert_is_no_occupancy(alpha, regulariser):
    problem = make_problem(7, 5, 3, discount=0.8, alpha=alpha, regulariser=regulariser)
    counted = np.random.default_rng(0).multinomial(40, problem.expert) / 40
    box = box_of(problem)
    box = BlackBoxProblem(
        box.oracle, exact_expert(problem.mdp, counted), n_states=5, n_actions=3, discount=0.8, prior=problem.prior,
        alpha=alpha, regulariser=regulariser, feasible=problem.mdp.feasible, initial=problem.mdp.initial,
    )  # fmt: skip
    cost, policy = solve_estimated(box, problem.mdp)
    known = np.ones(problem.n_pairs, dtype=bool)
    upper, lower = Candidate(box, problem.mdp, np.ones(problem.n_pairs), known, cost, policy).believed()
    assert 0 <= upper - lower + 1e-9 < 1e-5


def test_draws_go_where_the_certificate_needs_them_and_never_to_known_pairs():
    problem = make_problem(9, 5, 3, discount=0.9)
    box = box_of(problem)
    oracle = Oracle(box, np.random.default_rng(0), 1000)
    counts = oracle.count(np.full(problem.n_pairs, 50))
    tables = tables_of(box, counts, oracle.absorbing)
    known = np.zeros(problem.n_pairs, dtype=bool)
    known[0] = True
    cost, policy = solve_estimated(box, tables)
    numbers = allocate(Candidate(box, tables, counts.sum(axis=1), known, cost, policy), 10_000, 10.0)
    assert numbers[0] == 0
    assert numbers[1:].min() >= 1
    assert 9_000 <= numbers.sum() <= 10_000
    plan = tables.optimal(cost)
    slack = cost - tables.flow_transpose(plan.value)
    assert np.median(numbers[1:][slack[1:] < 1e-9]) > np.median(numbers[1:][slack[1:] > np.median(slack)])


def test_an_expert_whose_start_is_unknown_is_reported(problem):
    mdp = problem.mdp
    shown = SampledExpert(mdp.pair_states[[0]], mdp.pair_actions[[0]], [3])
    sizes = {"n_states": 4, "n_actions": 3, "discount": 0.6, "feasible": mdp.feasible}
    with pytest.warns(UserWarning, match="do not tell where it starts"):
        solve_sampled(BlackBoxProblem(TableOracle(mdp), shown, **sizes), calls=500)
    solve_sampled(BlackBoxProblem(TableOracle(mdp), shown, **sizes, initial=mdp.initial), calls=500)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"problem": 1}, TypeError, "problem must be a BlackBoxProblem"),
        ({"gap": -1.0}, ValueError, "gap must be"),
        ({"calls": 10}, ValueError, "calls must be at least"),
        ({"confidence": 1.0}, ValueError, "confidence must be"),
        ({"relative": 2.0}, ValueError, "relative must be"),
        ({"method": "magic"}, ValueError, "method must be one of model, smd"),
        ({"batch": 0}, ValueError, "batch must be at least 1"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
    ],
)
def test_bad_arguments_are_refused_by_name(problem, arguments, error, message):
    with pytest.raises(error, match=message):
        solve_sampled(**{"problem": box_of(problem)} | arguments)


def test_a_bad_oracle_is_named(problem):
    class Outside(TableOracle):
        def sample_next(self, states, actions, rng):
            return np.full(np.shape(states), 9)

    box = box_of(problem)
    sizes = {"n_states": 4, "n_actions": 3, "discount": 0.6, "feasible": problem.mdp.feasible}
    with pytest.raises(ValueError, match=r"oracle: sample_next must return states 0\.\.3"):
        solve_sampled(BlackBoxProblem(Outside(problem.mdp), box.expert, **sizes), calls=5000)
    with pytest.raises(ValueError, match="oracle: absorbing must be a boolean vector over the 4 states"):
        solve_sampled(box_of(problem, absorbing=[1, 2]), calls=5000)
