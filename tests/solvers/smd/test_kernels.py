"""The compiled step against a dense replay of the same samples, and its samples against their distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from plain_smd import plain_smd
from reference import advance, begin, kernel, replay
from scipy import stats
from strategies import make_problem, random_point

from rlfd_gym import RLfDProblem, TabularMDP
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point, examples
from rlfd_gym.solvers.smd import kernels, records
from rlfd_gym.solvers.smd.tree import tree_set

TOLERANCE = 1e-9


def distance(one, other):
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def single_state():
    mdp = TabularMDP(np.ones((12, 1)), [0] * 12, range(12), None, 0.7)
    rng = np.random.default_rng(0)
    return RLfDProblem(mdp, rng.dirichlet(np.ones(12)), rng.uniform(-1, 1, 12), 0.5)


def lone_expert():
    """The expert is always at the same pair, so that indices coincide all the time."""
    problem = make_problem(3, n_states=4)
    return RLfDProblem(problem.mdp, np.eye(problem.n_pairs)[2], problem.prior, 0.1)


def with_intervals(problem, width):
    """The problem with intervals of that half-width around its prior, two of them without a width."""
    low, high = problem.prior - width, problem.prior + width
    low[:2] = high[:2] = problem.prior[:2]
    return problem.with_belief(Intervals(low, high))


CASES = {
    "prior": (lambda: make_problem(1, 4, 3), 1e-2, 1e-2, 60_000),
    "no prior": (lambda: make_problem(2, 4, 3, alpha=0.0), 1e-2, 1e-2, 60_000),
    "coinciding indices": (lone_expert, 1e-2, 1e-2, 60_000),
    "one state": (single_state, 1e-2, 1e-2, 50_000),
    "larger": (lambda: make_problem(4, 13, 5, alpha=0.05), 1e-2, 3e-3, 50_000),
    "steps that hit the box": (lambda: make_problem(5, 4, 3), 0.3, 0.1, 50_000),
    "exp out of range": (lambda: make_problem(6, 4, 3), 1e-2, 5.0, 50_000),
    "l1": (lambda: make_problem(14, 4, 3, alpha=0.02, regulariser="l1"), 1e-2, 1e-2, 20_000),
    "l1, steps that hit the box": (lambda: make_problem(15, 4, 3, alpha=0.5, regulariser="l1"), 0.2, 0.1, 20_000),
    "intervals": (lambda: with_intervals(make_problem(16, 4, 3), 0.3), 1e-2, 1e-2, 20_000),
    "intervals, steps that hit their ends": (lambda: with_intervals(make_problem(17, 4, 3), 0.05), 0.2, 0.1, 20_000),
    "rows of a hundred": (lambda: make_problem(7, 100, 4, alpha=0.1), 1e-2, 1e-2, 10_000),
}


@pytest.mark.parametrize("name", CASES)
def test_averages_and_last_iterate_agree_with_a_dense_replay(name):
    make, eta, eta_mu, n_steps = CASES[name]
    problem = make()
    run, tables, point = begin(problem)
    draws, samples = advance(run, tables, records.constants_of(problem, (eta, eta_mu)), n_steps)
    mean, last, miss = replay(problem, eta, eta_mu, point, samples, draws[:, records.VISITED])
    assert run.clock[records.FLUSHES] >= min(n_steps // 5000, 10)  # renormalised many times
    assert distance(records.average_of(run), mean) < TOLERANCE
    assert distance(records.iterate_of(run), last) < TOLERANCE
    assert miss < TOLERANCE  # j is the inverse-CDF sample of μ at every single step


def test_prefetching_hints_do_not_change_the_samples():
    env = examples.gridworld_env(70)
    assert env.mdp.n_pairs >= kernels.HINT_FROM
    problem = RLfDProblem(env.mdp, env.mdp.occupancy_of(env.mdp.uniform_policy()), env.cost, 1e-3)
    run, tables, point = begin(problem)
    draws, samples = advance(run, tables, records.constants_of(problem, (1e-2, 3e-6)), 2000)
    mean, last, miss = replay(problem, 1e-2, 3e-6, point, samples, draws[:, records.VISITED])
    assert distance(records.average_of(run), mean) < TOLERANCE
    assert distance(records.iterate_of(run), last) < TOLERANCE
    assert miss < TOLERANCE


def test_samples_follow_their_distributions():
    problem = make_problem(5, 5, 3, alpha=0.0)
    n, n_states = problem.n_pairs, problem.n_states
    run, tables, point = begin(problem)
    n_steps = 400_000
    _, samples = advance(run, tables, records.constants_of(problem, (0.0, 0.0)), n_steps)  # μ stands still
    P = problem.mdp.transitions.toarray()
    expected = {
        records.ANCHOR: np.full(n, 1 / n),
        records.TRIED: np.full(n, 1 / n),
        records.VISITED: point.occupancy,
        records.EXPERT: problem.expert,
    }
    for column, p in expected.items():
        counts = np.bincount(samples[:, column], minlength=n)
        assert (counts[p == 0] == 0).all()
        assert stats.chisquare(counts[p > 0], p[p > 0] / p.sum() * n_steps).pvalue > 1e-4
    for pair in (records.VISITED, records.EXPERT, records.TRIED):
        table = np.zeros((n, n_states))
        np.add.at(table, (samples[:, pair], samples[:, pair + 1]), 1)
        hope = table.sum(1, keepdims=True) * P
        assert (table[hope == 0] == 0).all()
        live = hope > 5
        statistic = ((table[live] - hope[live]) ** 2 / hope[live]).sum()
        assert stats.chi2.sf(statistic, live.sum() - live.any(axis=1).sum()) > 1e-4
    joint = np.zeros((n, n))
    np.add.at(joint, (samples[:, records.ANCHOR], samples[:, records.TRIED]), 1)
    assert stats.chi2_contingency(joint).pvalue > 1e-4  # i and k are independent


def test_steps_made_in_chunks_are_those_made_at_once():
    problem = make_problem(8, 20, 4)
    step = records.constants_of(problem, (1e-2, 1e-2))
    draws = np.random.default_rng(0).random((30_000, records.DRAWS))
    samples = np.empty((30_000, records.DRAWS), np.int32)
    whole, tables, _ = begin(problem)
    kernels.advance(whole, tables, step, draws, samples, None)
    parts, tables, _ = begin(problem)
    for part in np.array_split(draws, 37):
        kernels.advance(parts, tables, step, part, samples, None)
        records.average_of(parts)  # reading changes nothing
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_iterates_and_averages_stay_feasible():
    problem = make_problem(10, 20, 4)
    run, tables, _ = begin(problem)
    advance(run, tables, records.constants_of(problem, (0.2, 0.05)), 300_000)
    for c, u, mu in (records.iterate_of(run), records.average_of(run)):
        assert np.abs(c).max() <= 1 + 1e-12
        assert np.abs(u).max() <= 1 + 1e-12
        assert mu.min() >= 0
        assert mu.sum() == pytest.approx(1, abs=1e-10)


def test_a_vanished_weight_can_come_back():
    # A weight of exp(-2000) is 0 as a double; its logarithm is not lost.
    run, _, _ = begin(make_problem(11, 2, 2))
    run.pairs["log_weight"][1] = -2000.0
    for _ in range(2):  # once to make the tree agree, once to make the others sum to 1
        kernels.flush(run.pairs, run.states, run.tree, run.levels, run.clock)
    assert records.iterate_of(run).occupancy[1] == 0
    weight = kernel(kernels.update_mu)(run.pairs[1], 0.0, 0.0, -run.pairs["log_weight"][1])
    assert kernel(tree_set)(run.tree, run.levels, 1, weight) == pytest.approx(2.0)
    assert records.iterate_of(run).occupancy[1] == pytest.approx(0.5)


def test_steps_that_are_not_finite_are_reported():
    problem = make_problem(12)
    run, tables, _ = begin(problem)
    draws = np.random.default_rng(0).random((2000, records.DRAWS))
    samples = np.empty((2000, records.DRAWS), np.int32)
    step = records.constants_of(problem, (1e-2, np.nan))
    assert kernels.advance(run, tables, step, draws, samples, None) == kernels.NOT_FINITE


def test_the_compiled_runs_agree_with_the_plain_loop_in_distribution():
    # Different random numbers: the means over many short runs agree within their standard errors.
    problem = make_problem(13, 3, 2)
    n, n_states = problem.n_pairs, problem.n_states
    point = Point(np.zeros(n), np.zeros(n_states), np.full(n, 1 / n))
    step, n_steps, repeats = records.constants_of(problem, (2e-2, 2e-2)), 200, 150
    fast, plain = [], []
    for seed in range(repeats):
        run = records.start(problem, point)
        advance(run, records.tables_of(problem), step, n_steps, seed)
        fast.append(np.concatenate(records.average_of(run)))
        rng = np.random.default_rng(10_000 + seed)
        plain.append(np.concatenate(plain_smd(problem, 2e-2, 2e-2, point, n_steps, rng)))
    fast, plain = np.array(fast), np.array(plain)
    error = np.sqrt((fast.var(0) + plain.var(0)) / repeats)
    assert (np.abs(fast.mean(0) - plain.mean(0)) < 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("regulariser", ["l2", "l1"])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_the_sampled_step_of_the_cost_is_its_gradient_on_average_and_its_second_moment_is_bounded(alpha, regulariser):
    # All samples (i, j, e) with their probabilities, each through the compiled step, far from the ends of the box.
    problem = make_problem(5, 3, 2, alpha=alpha, regulariser=regulariser)
    n, eta = problem.n_pairs, 1e-4
    cost, value, mu = random_point(problem, 6)
    cost = 0.9 * cost
    cost[0] = np.clip(problem.prior[0], -0.9, 0.9)  # at the kink of "l1"
    run, _, _ = begin(problem, Point(cost, value, mu))
    step = records.constants_of(problem, (eta, eta))
    mean, second, update_cost = np.zeros(n), 0.0, kernel(kernels.update_cost)
    for i, j, e in itertools.product(range(n), repeat=3):
        run.pairs["x"] = cost
        update_cost(run.pairs, None, None, 0.0, step, i, j, e)
        g = -(run.pairs["x"] - cost) / eta
        chance = mu[j] * problem.expert[e] / n
        mean += chance * g
        second += chance * (g @ g)
    np.testing.assert_allclose(mean, problem.belief.gradient(cost, problem.expert - mu), atol=1e-9)
    assert second <= problem.belief.second_moment("corrected")


@pytest.mark.parametrize("regulariser", ["l2", "l1"])
def test_one_step_at_a_time_with_given_samples_is_the_same_step_to_the_bit(regulariser):
    problem = make_problem(8, 20, 4, regulariser=regulariser)
    step = records.constants_of(problem, (1e-2, 1e-2))
    run, tables, _ = begin(problem)
    draws, samples = advance(run, tables, step, 10_000)
    again, _, _ = begin(problem)
    pairs, states, trees, clocks = (array[None] for array in (again[0], again[1], again[2], again.clock))
    proposed = np.empty((1, records.DRAWS), np.int64)
    for draw, sample in zip(draws, samples, strict=True):
        kernels.propose(pairs, trees, again.levels, draw[None], proposed)
        for column in (records.ANCHOR, records.VISITED, records.TRIED):
            assert proposed[0, column] == sample[column]
        given = sample[None].astype(np.int64)
        assert kernels.apply(pairs, states, trees, again.levels, clocks, step, given) == kernels.OK
    assert again.clock[records.FLUSHES] > 0
    for one, other in zip(run, again, strict=True):
        np.testing.assert_array_equal(one, other)
