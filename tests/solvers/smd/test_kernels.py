"""The compiled step against a dense replay of the same samples, and its samples against their distributions."""

from __future__ import annotations

import numpy as np
import pytest
from plain_smd import plain_smd
from reference import replay
from scipy import stats
from strategies import make_problem, random_point

from rlfd_gym import RLfDProblem, TabularMDP
from rlfd_gym._compiled import aligned
from rlfd_gym.solvers.smd import alias as _alias
from rlfd_gym.solvers.smd import kernels as _kernels
from rlfd_gym.solvers.smd import measure as _measure
from rlfd_gym.solvers.smd import tree as _tree

TOLERANCE = 1e-9
VISITED = _kernels.VISITED


def begin(problem, seed=0):
    """A run at a random point, the problem's tables, and that point."""
    point = _kernels.Point(*random_point(problem, seed))
    run = _kernels.start(problem.mdp.pair_states, problem.mdp.transitions.indptr, problem.prior, point)
    return run, _kernels.tables_of(problem.mdp, problem.expert), point


def constants(problem, eta, eta_mu):
    alpha = _kernels.signed_alpha(problem.alpha, problem.regulariser)
    return tuple(_kernels.constants(problem.n_pairs, problem.discount, alpha, eta, eta_mu))


def advance(run, tables, step, n_steps, seed=1):
    draws = np.random.default_rng(seed).random((n_steps, _kernels.DRAWS))
    samples = np.empty((n_steps, _kernels.DRAWS), np.int32)
    assert _kernels.advance(*run, *tables, step, draws, samples) == _kernels.OK
    return draws, samples


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
    "rows of a hundred": (lambda: make_problem(7, 100, 4, alpha=0.1), 1e-2, 1e-2, 10_000),
}


@pytest.mark.parametrize("name", CASES)
def test_averages_and_last_iterate_agree_with_a_dense_replay(name):
    make, eta, eta_mu, n_steps = CASES[name]
    problem = make()
    run, tables, point = begin(problem)
    draws, samples = advance(run, tables, constants(problem, eta, eta_mu), n_steps)
    mean, last, miss = replay(problem, eta, eta_mu, point, samples, draws[:, VISITED])
    assert run.clock[_kernels.FLUSHES] >= min(n_steps // 5000, 10)  # renormalised many times
    assert distance(_kernels.average_of(run, n_steps), mean) < TOLERANCE
    assert distance(_kernels.iterate_of(run), last) < TOLERANCE
    assert miss < TOLERANCE  # j is the inverse-CDF sample of μ at every single step


def test_prefetching_hints_do_not_change_the_samples():
    import gymnasium as gym

    env = gym.make("rlfd_gym/WindyGridworld-v0", height=70, width=70).unwrapped
    assert env.mdp.n_pairs >= _kernels.HINT_FROM
    problem = RLfDProblem(env.mdp, env.mdp.occupancy_of(env.mdp.uniform_policy()), env.cost, 1e-3)
    run, tables, point = begin(problem)
    draws, samples = advance(run, tables, constants(problem, 1e-2, 3e-6), 2000)
    mean, last, miss = replay(problem, 1e-2, 3e-6, point, samples, draws[:, VISITED])
    assert distance(_kernels.average_of(run, 2000), mean) < TOLERANCE
    assert distance(_kernels.iterate_of(run), last) < TOLERANCE
    assert miss < TOLERANCE


def tree_of(weights):
    levels, size = _tree.tree_shape(len(weights))
    tree = aligned(size * _tree.FAN, np.dtype("f8")).reshape(size, _tree.FAN)
    tree[:] = 0.0
    tree.reshape(-1)[: len(weights)] = weights
    _tree.tree_rebuild(tree, levels)
    return tree, levels


@pytest.mark.parametrize("n", [1, 2, 8, 9, 64, 65, 513])
def test_a_draw_from_the_tree_is_the_inverse_distribution_function(n):
    weights = np.random.default_rng(3).dirichlet(np.full(n, 0.3))
    weights[::3] = 0.0
    weights[-1] += 1e-3
    tree, levels = tree_of(weights)
    total = _tree.tree_total(tree, levels)
    assert total == pytest.approx(weights.sum(), rel=1e-14)
    sums = np.cumsum(weights)
    for x in np.random.default_rng(4).random(2000) * total:
        assert _tree.tree_draw(tree, levels, x) == np.searchsorted(sums, x, side="right")
    for x in (0.0, total, 2 * total):  # past the end: still a pair with weight
        assert weights[_tree.tree_draw(tree, levels, x)] > 0


def test_a_huge_weight_leaves_no_trace_in_the_tree():
    tree, levels = tree_of(np.full(100, 1e-8))
    before = tree.copy()
    _tree.tree_set(tree, levels, 42, 1e12)
    assert _tree.tree_set(tree, levels, 42, 1e-8) == _tree.tree_total(tree, levels)
    np.testing.assert_array_equal(tree, before)


@pytest.mark.parametrize("length", [1, 2, 3, 16, 300])
def test_alias_tables_hold_the_probabilities(length):
    p = np.random.default_rng(length).dirichlet(np.full(length, 0.2))
    slots = _alias.distribution_table(p)
    held = np.zeros(length)
    np.add.at(held, slots["keep"], slots["threshold"] / len(slots))
    np.add.at(held, slots["alias"], (1 - slots["threshold"]) / len(slots))
    np.testing.assert_allclose(held, p, atol=1e-15)


def test_samples_follow_their_distributions():
    problem = make_problem(5, 5, 3, alpha=0.0)
    n, n_states = problem.n_pairs, problem.n_states
    run, tables, point = begin(problem)
    n_steps = 400_000
    _, samples = advance(run, tables, constants(problem, 0.0, 0.0), n_steps)  # μ stands still
    P = problem.mdp.transitions.toarray()
    expected = {
        _kernels.ANCHOR: np.full(n, 1 / n),
        _kernels.TRIED: np.full(n, 1 / n),
        _kernels.VISITED: point.occupancy,
        _kernels.EXPERT: problem.expert,
    }
    for column, p in expected.items():
        counts = np.bincount(samples[:, column], minlength=n)
        assert (counts[p == 0] == 0).all()
        assert stats.chisquare(counts[p > 0], p[p > 0] / p.sum() * n_steps).pvalue > 1e-4
    for pair in (_kernels.VISITED, _kernels.EXPERT, _kernels.TRIED):
        table = np.zeros((n, n_states))
        np.add.at(table, (samples[:, pair], samples[:, pair + 1]), 1)
        hope = table.sum(1, keepdims=True) * P
        assert (table[hope == 0] == 0).all()
        live = hope > 5
        statistic = ((table[live] - hope[live]) ** 2 / hope[live]).sum()
        assert stats.chi2.sf(statistic, live.sum() - live.any(axis=1).sum()) > 1e-4
    joint = np.zeros((n, n))
    np.add.at(joint, (samples[:, _kernels.ANCHOR], samples[:, _kernels.TRIED]), 1)
    assert stats.chi2_contingency(joint).pvalue > 1e-4  # i and k are independent


def test_chunks_make_no_difference():
    problem = make_problem(8, 20, 4)
    step = constants(problem, 1e-2, 1e-2)
    draws = np.random.default_rng(0).random((30_000, _kernels.DRAWS))
    samples = np.empty((30_000, _kernels.DRAWS), np.int32)
    whole, tables, _ = begin(problem)
    _kernels.advance(*whole, *tables, step, draws, samples)
    parts, tables, _ = begin(problem)
    for part in np.array_split(draws, 37):
        _kernels.advance(*parts, *tables, step, part, samples)
        _kernels.average_of(parts, 1)  # reading changes nothing
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("alpha", "regulariser"), [(0.0, "l2"), (0.1, "l2"), (0.0, "l1"), (0.03, "l1")])
def test_what_is_measured_along_the_way_is_the_gap_and_the_change_of_the_averages(alpha, regulariser):
    problem = make_problem(9, 6, 3, alpha=alpha, regulariser=regulariser)
    step = constants(problem, 1e-2, 1e-2)
    run, tables, _ = begin(problem)
    p = problem.mdp.transitions
    scratch = np.empty(problem.n_pairs), np.empty(problem.n_states), np.empty(problem.n_states)
    signed = _kernels.signed_alpha(alpha, regulariser)
    gap_of = (p.data, p.indices, p.indptr, problem.expert, signed, *scratch)
    draws = np.random.default_rng(1).random((3000, _kernels.DRAWS))
    samples, records = np.empty((3000, _kernels.DRAWS), np.int32), np.empty((10, _measure.COLUMNS))
    status = _measure.advance_and_measure(*run, *tables, step, draws, samples, 700, 0, *gap_of, records)
    assert (status, run.clock[_kernels.TOTAL]) == (_kernels.OK, 3000)
    again, _, _ = begin(problem)
    for row in range(4):
        _kernels.advance(*again, *tables, step, draws[700 * row : 700 * (row + 1) - 1], samples)
        before = _kernels.average_of(again, 700 * (row + 1) - 1)
        _kernels.advance(*again, *tables, step, draws[700 * (row + 1) - 1 : 700 * (row + 1)], samples)
        after = _kernels.average_of(again, 700 * (row + 1))
        assert records[row, 0] == pytest.approx(problem.duality_gap(*after), abs=1e-10)
        changes = [np.abs(new - old).sum() for new, old in zip(after, before, strict=True)]
        assert records[row, 1:] == pytest.approx([*changes, 0.0], abs=1e-11)


def test_iterates_and_averages_stay_feasible():
    problem = make_problem(10, 20, 4)
    run, tables, _ = begin(problem)
    advance(run, tables, constants(problem, 0.2, 0.05), 300_000)
    for c, u, mu in (_kernels.iterate_of(run), _kernels.average_of(run, 300_000)):
        assert np.abs(c).max() <= 1 + 1e-12
        assert np.abs(u).max() <= 1 + 1e-12
        assert mu.min() >= 0
        assert mu.sum() == pytest.approx(1, abs=1e-10)


def test_a_vanished_weight_can_come_back():
    # A weight of exp(-2000) is 0 as a double; its logarithm is not lost.
    run, _, _ = begin(make_problem(11, 2, 2))
    run.pairs["log_weight"][1] = -2000.0
    for _ in range(2):  # once to make the tree agree, once to make the others sum to 1
        _kernels.flush(run.pairs, run.states, run.tree, run.levels, run.clock)
    assert _kernels.iterate_of(run).occupancy[1] == 0
    weight = _kernels.update_mu(run.pairs[1], 0.0, 0.0, -run.pairs["log_weight"][1])
    assert _tree.tree_set(run.tree, run.levels, 1, weight) == pytest.approx(2.0)
    assert _kernels.iterate_of(run).occupancy[1] == pytest.approx(0.5)


def test_steps_that_are_not_finite_are_reported():
    problem = make_problem(12)
    run, tables, _ = begin(problem)
    draws = np.random.default_rng(0).random((2000, _kernels.DRAWS))
    samples = np.empty((2000, _kernels.DRAWS), np.int32)
    assert _kernels.advance(*run, *tables, constants(problem, 1e-2, np.nan), draws, samples) == _kernels.NOT_FINITE


def test_it_agrees_with_the_plain_loop_in_distribution():
    # Different random numbers: the means over many short runs agree within their standard errors.
    problem = make_problem(13, 3, 2)
    n, n_states = problem.n_pairs, problem.n_states
    point = _kernels.Point(np.zeros(n), np.zeros(n_states), np.full(n, 1 / n))
    step, n_steps, repeats = constants(problem, 2e-2, 2e-2), 200, 150
    fast, plain = [], []
    for seed in range(repeats):
        run = _kernels.start(problem.mdp.pair_states, problem.mdp.transitions.indptr, problem.prior, point)
        advance(run, _kernels.tables_of(problem.mdp, problem.expert), step, n_steps, seed)
        fast.append(np.concatenate(_kernels.average_of(run, n_steps)))
        rng = np.random.default_rng(10_000 + seed)
        plain.append(np.concatenate(plain_smd(problem, 2e-2, 2e-2, point, n_steps, rng)))
    fast, plain = np.array(fast), np.array(plain)
    error = np.sqrt((fast.var(0) + plain.var(0)) / repeats)
    assert (np.abs(fast.mean(0) - plain.mean(0)) < 4.5 * error + 1e-12).all()
