"""The linear systems of the matrix-free methods: every means finds the solution of a dense solver."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from strategies import grid_problem
from structures import KINDS, learning_problem, world

from rlfd_gym import RLfDProblem
from rlfd_gym.solvers import multigrid, normal_equations
from rlfd_gym.solvers.incumbent import Incumbent
from rlfd_gym.solvers.normal_equations import NormalEquations

MEANS = ("products", "multigrid", "factorisation")


def system(problem, seed: int = 0, share: bool = True):
    """Random weights of very different sizes, a ridge, a right-hand side, and the dense matrix."""
    rng, mdp = np.random.default_rng(seed), problem.mdp
    weights, ridge = np.exp(3 * rng.normal(size=mdp.n_pairs)), 1e-3 * rng.random(mdp.n_states)
    part = 1 / ridge.sum() if share else 0.0
    flow = mdp.flow_matrix().toarray()
    dense = flow @ np.diag(weights) @ flow.T + np.diag(ridge) - part * np.outer(ridge, ridge)
    return weights, ridge, part, rng.normal(size=mdp.n_states), dense


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("kind", ["grid", "queues", "chain"])
@pytest.mark.parametrize("share", [False, True])
def test_every_means_solves_a_system_on_local_structures(kind, means, share):
    problem = learning_problem(kind, 600, 0.99, 0.1)
    *terms, rhs, dense = system(problem, share=share)
    equations = NormalEquations(Incumbent(problem))
    assert not equations.is_scattered
    equations.means = means
    equations.at(*terms)
    x = np.zeros(problem.n_states)
    assert equations.solve(rhs, x, 1e-7) > 0
    assert np.abs(dense @ x - rhs).sum() <= 1e-5
    if not share:
        np.testing.assert_allclose(x, np.linalg.solve(dense, rhs), rtol=1e-3, atol=1e-6 * np.abs(x).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_guess_that_solves_the_system_is_left_alone(kind):
    problem = learning_problem(kind, 400, 0.9, 0.1)
    *terms, rhs, dense = system(problem, share=False)
    x = np.linalg.solve(dense, rhs)
    before = x.copy()
    equations = NormalEquations(Incumbent(problem))
    equations.at(*terms)
    assert equations.solve(rhs, x, 1e-3) == 0
    np.testing.assert_array_equal(x, before)


def test_only_local_structures_have_their_matrix_formed():
    local = {}
    for kind in KINDS:
        mdp, _, prior = world(kind, 8_000, 0.9)
        problem = RLfDProblem(mdp, np.full(mdp.n_pairs, 1 / mdp.n_pairs), prior, 0.1)
        local[kind] = not NormalEquations(Incumbent(problem)).is_scattered
    assert local == {"grid": True, "garnet5": False, "garnet20": False, "queues": True, "chain": True}


def test_hard_systems_are_solved_by_better_means_from_then_on():
    problem = learning_problem("chain", 2_000, 0.99, 0.1)
    *terms, rhs, _ = system(problem)
    equations = NormalEquations(Incumbent(problem))
    equations.at(*terms)
    equations.solve(rhs, np.zeros(problem.n_states), 1e-6)
    assert equations.means == "factorisation"  # on a chain it is cheaper than multigrid
    equations.at(*terms)
    assert equations.solve(rhs, np.zeros(problem.n_states), 1e-6) <= 3


@pytest.mark.parametrize(("change", "prepared"), [(0.1, 1), (4.0, 2)])
def test_a_hierarchy_serves_for_matrices_that_are_near_and_is_made_anew_for_others(change, prepared, monkeypatch):
    made = []

    class Counted(multigrid.Multigrid):
        def __init__(self, matrix, threads):
            made.append(matrix)
            super().__init__(matrix, threads)

    monkeypatch.setattr(multigrid, "Multigrid", Counted)
    problem = learning_problem("queues", 3_000, 0.99, 0.1)
    weights, ridge, share, rhs, _ = system(problem)
    weights = np.ones_like(weights)
    equations = NormalEquations(Incumbent(problem))
    equations.means = "multigrid"
    flow = problem.mdp.flow_matrix().toarray()
    for seed in range(2):
        now = weights * np.exp(seed * change * np.random.default_rng(seed).normal(size=weights.size))
        equations.at(now, ridge, share)
        x = np.zeros(problem.n_states)
        equations.solve(rhs, x, 1e-2)
        assert np.abs(flow @ (now * (flow.T @ x)) + ridge * (x - share * (ridge @ x)) - rhs).sum() <= 1.1e-2
    assert len(made) == prepared


def test_the_answers_do_not_depend_on_anything_random():
    problem = learning_problem("queues", 600, 0.99, 0.1)
    *terms, rhs, _ = system(problem)
    answers, state = [], np.random.get_state()[1].copy()  # noqa: NPY002
    for _ in range(2):
        equations = NormalEquations(Incumbent(problem))
        assert not equations.is_scattered
        equations.means = "multigrid"
        equations.at(*terms)
        answers.append(np.zeros(problem.n_states))
        equations.solve(rhs, answers[-1], 1e-6)
    np.testing.assert_array_equal(*answers)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_the_width_of_a_graph_is_the_largest_number_of_states_at_the_same_distance():
    line = sp.csr_matrix(sp.diags([np.ones(9), np.ones(10), np.ones(9)], [-1, 0, 1]))
    assert normal_equations._width(line) == 1
    cycle = line.tolil()
    cycle[0, 9] = cycle[9, 0] = 1
    assert normal_equations._width(sp.csr_matrix(cycle)) == 2
    star = sp.lil_matrix((6, 6))
    star[0, :] = star[:, 0] = 1
    assert normal_equations._width(sp.csr_matrix(star)) == 4  # from a leaf: the centre, then the other leaves
    assert normal_equations._width(sp.csr_matrix(np.ones((1, 1)))) == 1


def test_a_singular_matrix_is_no_error():
    problem = grid_problem(4)
    equations = NormalEquations(Incumbent(problem))
    assert not equations.is_scattered
    equations.means = "factorisation"
    equations.at(np.zeros(problem.n_pairs), np.zeros(problem.n_states), 0.0)
    x = np.zeros(problem.n_states)
    equations.solve(np.ones(problem.n_states), x, 1e-6)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("means", MEANS)
def test_after_the_deadline_nothing_is_done(means):
    problem = learning_problem("grid", 600, 0.99, 0.1)
    *terms, rhs, _ = system(problem)
    equations = NormalEquations(Incumbent(problem, deadline=time.monotonic() - 1))
    assert not equations.is_scattered
    equations.means = means
    equations.at(*terms)
    assert equations.solve(rhs, np.zeros(problem.n_states), 0.0) == 0


@pytest.mark.parametrize("kind", ["grid", "queues", "chain"])
@pytest.mark.parametrize("idle", [0.0, 0.7])
def test_the_matrix_is_formed_entry_by_entry_also_where_most_pairs_have_no_weight(kind, idle):
    problem = learning_problem(kind, 2_000, 0.99, 0.1)
    weights, ridge, _, rhs, _ = system(problem)
    weights[np.random.default_rng(1).random(weights.size) < idle] = 0.0
    equations = NormalEquations(Incumbent(problem))
    equations.means = "multigrid"
    equations.at(weights, ridge, 0.0)
    x = np.zeros(problem.n_states)
    equations.solve(rhs, x, 1e-8 * np.abs(rhs).sum())
    flow = problem.mdp.flow_matrix().toarray()
    dense = flow @ np.diag(weights) @ flow.T + np.diag(ridge)
    np.testing.assert_allclose(equations.matrix.toarray(), dense, rtol=1e-9, atol=1e-12 * np.abs(dense).max())
    assert np.abs(dense @ x - rhs).sum() <= 1e-6 * np.abs(rhs).sum()
