"""The lazy step of the proximal variant against a dense loop with the same draws."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_same
from strategies import far, make_problem, sparse

from rlfd_gym import RLfDProblem, solve_smd
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point, examples
from rlfd_gym.solvers.smd import kernels, proximal, proximal_records, records


def believing(seed, belief):
    """The problem of a seed under a belief that is made from its prior."""
    problem = make_problem(seed)
    return RLfDProblem(problem.mdp, problem.expert, belief=belief(problem.prior))


def weighted(problem):
    """The same problem, with priors of different weights, some of them none."""
    return sparse(problem, weights=np.arange(problem.n_pairs) % 3 / 2)


PROBLEMS = {
    "l2": lambda: make_problem(0),
    "imitation": lambda: make_problem(1, alpha=0.0),
    "tiny": lambda: make_problem(1, alpha=1e-9),
    "least": lambda: make_problem(1, alpha=5e-324),
    "huge": lambda: make_problem(1, alpha=1e9),
    "l1": lambda: make_problem(2, alpha=0.01, regulariser="l1"),
    "strong l1": lambda: make_problem(3, alpha=0.1, regulariser="l1"),
    "weighted l1": lambda: weighted(make_problem(2, alpha=0.05, regulariser="l1")),
    "outside": lambda: believing(4, lambda prior: far(3 * prior, 0.1)),
    "outside l1": lambda: believing(4, lambda prior: far(3 * prior, 0.03, norm="l1")),
    "intervals": lambda: believing(5, lambda prior: Intervals(prior / 2 - 0.2, prior / 2 + 0.1)),
    "single": lambda: make_problem(0, n_states=1, n_actions=1),
}


def dense(problem, etas, start, samples):
    """The averages and the last iterate of the step in `rlfd_gym.problem.theorem`, with given samples."""
    eta, eta_value, eta_mu = etas
    belief, mdp, expert, gamma = problem.belief, problem.mdp, problem.expert, problem.discount
    (low, high), flow, scale = belief.ends(), mdp.flow(expert), 1 / (1 - gamma)
    c, u, mu = (vector.copy() for vector in start)
    logs, sums = np.log(mu), [np.zeros_like(c), np.zeros_like(u), np.zeros_like(mu)]
    for j, next_j, k, next_k in samples.tolist():
        for total, now in zip(sums, (c, u, mu), strict=True):
            total += now
        slack = c[k] - scale * (u[mdp.pair_states[k]] - gamma * u[next_k])
        y = c - eta * expert
        y[j] += eta
        if problem.regulariser == "l1":
            away = y - belief.prior
            c = belief.prior + np.sign(away) * np.maximum(np.abs(away) - eta * belief.pair_alpha, 0)
        else:
            c = (y + 2 * problem.alpha * eta * problem.prior) / (1 + 2 * problem.alpha * eta)
        c = np.clip(c, low, high)
        gradient = -flow
        gradient[mdp.pair_states[j]] += scale
        gradient[next_j] -= scale * gamma
        u = np.clip(u - eta_value * gradient, -1, 1)
        logs[k] -= eta_mu * len(mu) * slack
        logs -= logs.max()
        mu = np.exp(logs)
        mu /= mu.sum()
    return [total / len(samples) for total in sums], (c, u, mu)


def begun(problem, etas, seed=0):
    """A run at a random point, and the point."""
    rng = np.random.default_rng(seed)
    low, high = problem.belief.ends()
    n, n_states = problem.n_pairs, problem.n_states
    point = Point(np.clip(rng.uniform(-1, 1, n), low, high), rng.uniform(-1, 1, n_states), rng.dirichlet(np.ones(n)))
    step = proximal_records.step_of(problem, etas)
    return proximal_records.start(problem, point, step, problem.expert, problem.mdp.flow(problem.expert)), point


def advanced(problem, run, n_steps, seed=1):
    """The samples of steps that are made in uneven parts."""
    draws, slots = np.random.default_rng(seed).random((n_steps, proximal_records.DRAWS)), records.slots_of(problem)
    parts, rest = [], kernels.memory_of_hints(problem.n_pairs)
    for part in np.array_split(draws, 3):
        parts.append(np.empty(part.shape, np.int32))
        assert proximal.advance(run, slots, part, parts[-1], rest) == kernels.OK
    return np.vstack(parts)


@pytest.mark.parametrize("etas", [(0.05, 0.01, 0.01), (1e-3, 1e-4, 1e-3), (0.5, 0.1, 0.05), (0.0, 0.0, 0.0)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_averages_and_last_iterate_agree_with_a_dense_loop(name, etas):
    problem = PROBLEMS[name]()
    run, point = begun(problem, etas)
    samples = advanced(problem, run, 5000)
    average, last = dense(problem, etas, point, samples)
    for found, expected in zip(run.average(), average, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    for found, expected in zip(run.iterate(), last, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-12)
    assert run.clock[proximal_records.FLUSHES] > 0


def test_weights_that_vanish_are_not_lost():
    problem, etas = make_problem(3), (0.05, 0.01, 3.0)
    run, point = begun(problem, etas)
    average, _ = dense(problem, etas, point, advanced(problem, run, 2000))
    assert run.weights.min() == 0
    np.testing.assert_allclose(run.average().occupancy, average[2], atol=1e-9)


def test_hints_at_what_is_read_next_change_nothing(monkeypatch):
    problem = make_problem(0)
    (plain, _), (hinted, _) = (begun(problem, (0.05, 0.01, 0.01)) for _ in range(2))
    samples = advanced(problem, plain, 1000)
    monkeypatch.setattr(kernels, "HINT_FROM", 1)
    np.testing.assert_array_equal(advanced(problem, hinted, 1000), samples)
    np.testing.assert_array_equal(hinted.average().occupancy, plain.average().occupancy)


def test_looking_at_a_run_does_not_change_it():
    problem = make_problem(0)
    (one, _), (other, _) = (begun(problem, (0.05, 0.01, 0.01)) for _ in range(2))
    advanced(problem, one, 1000)
    advanced(problem, other, 1000)
    one.average(), one.iterate()
    advanced(problem, one, 1000)
    advanced(problem, other, 1000)
    np.testing.assert_array_equal(one.average().x, other.average().x)


def test_the_estimators_are_unbiased_and_their_second_moments_are_those_of_the_theorem():
    """By enumeration of all draws (j, s', k, s'_k)."""
    problem = make_problem(2, n_states=3, n_actions=2, discount=0.8)
    mdp, n, gamma, scale = problem.mdp, problem.n_pairs, problem.discount, 1 / (1 - problem.discount)
    _, (c, u, mu) = begun(problem, (0.1, 0.1, 0.1))
    u, P, states = np.sign(u), mdp.transitions.toarray(), mdp.pair_states  # the ends of the box are the worst
    flow = mdp.flow(problem.expert)
    mean_c, mean_u, mean_mu = np.zeros(n), np.zeros(mdp.n_states), np.zeros(n)
    square_c, square_u, square_mu = 0.0, 0.0, 0.0
    for pair in range(n):
        for then in range(mdp.n_states):
            weight = mu[pair] * P[pair, then]
            g_c, g_u = -np.eye(n)[pair], -flow
            g_u[states[pair]] += scale
            g_u[then] -= scale * gamma
            mean_c, mean_u = mean_c + weight * g_c, mean_u + weight * g_u
            square_c, square_u = square_c + weight * g_c @ g_c, square_u + weight * g_u @ g_u
            g_mu = n * (c[pair] - scale * (u[states[pair]] - gamma * u[then])) * np.eye(n)[pair]
            mean_mu += P[pair, then] / n * g_mu
            square_mu += P[pair, then] / n * mu @ g_mu**2
    exact = problem.gradients(c, u, mu)  # of all of L; the part for c that is known is not estimated
    np.testing.assert_allclose(mean_c, exact[0] - problem.belief.gradient(c, problem.expert), atol=1e-12)
    np.testing.assert_allclose(mean_u, exact[1], atol=1e-12)
    np.testing.assert_allclose(mean_mu, exact[2], atol=1e-12)
    v_c, v_u, v_mu = problem.proximal_theorem.second_moments()
    assert square_c == pytest.approx(v_c)
    assert square_u <= v_u
    assert square_mu <= v_mu


def test_the_bounds_on_the_second_moments_are_nearly_attained():
    """Two states that the chain alternates between, and an expert that stays: no smaller bound would do."""
    gamma = 0.9
    v_u = make_problem(0, discount=gamma).proximal_theorem.second_moments()[1]
    scale = 1 / (1 - gamma)
    x, b = scale * np.array([1, -gamma]), scale * np.array([-gamma, 1])  # s → s' and, for the expert, s' → s
    assert ((x - b) ** 2).sum() == pytest.approx(v_u)


def test_the_proximal_variant_keeps_its_theorems_promise():
    small = make_problem(0, n_states=2, n_actions=2, discount=0.5, alpha=3.0)
    theorem = small.proximal_theorem
    arguments = {"epsilon": 0.1, "repair": False}
    solutions = [solve_smd(small, **arguments, seed=seed) for seed in range(10)]
    assert solutions[0].n_iterations == theorem.iterations(0.1)
    assert solutions[0].stats["step_sizes"] == pytest.approx(theorem.step_sizes(0.1))
    assert np.mean([solution.duality_gap for solution in solutions]) <= 0.1
    assert theorem.accuracy(theorem.iterations(0.1)) == pytest.approx(0.1, rel=1e-3)
    assert theorem.iterations(0.1) == small.with_alpha(0.0).proximal_theorem.iterations(0.1)  # whatever α is


def test_other_step_sizes_continue_from_the_same_place():
    problem = examples.inventory(alpha=0.1)
    part = solve_smd(problem, 3000, step_size=(1e-2, 1e-4, 1e-4))
    same = solve_smd(problem, 1, step_size=(0.0, 0.0, 0.0), initial=part)
    np.testing.assert_allclose(same.state.last.x, part.state.last.x, atol=1e-14)
    whole = solve_smd(problem, 5000, step_size=(1e-2, 1e-4, 1e-4))
    assert_same(solve_smd(problem, 2000, initial=part), whole)
