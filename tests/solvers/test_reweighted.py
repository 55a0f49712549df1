"""Reweighted ℓ1: fewer changed pairs, round by round."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_solves
from strategies import sparse

from rlfd_gym import RLfDProblem, pinning_alpha, share_at_prior, solve_exact, solve_reweighted
from rlfd_gym.problem import examples


@pytest.fixture(scope="module")
def grid():
    """The paper's gridworld, a noisy expert, a prior with half of the obstacles and goals; α as a share of pinning."""
    problem = examples.gridworld(regulariser="l1")
    return lambda share: problem.with_alpha(share * pinning_alpha(problem))


@pytest.mark.parametrize("share", [0.003, 0.03, 0.1, 0.3, 0.7])
def test_reweighting_never_changes_more_pairs_and_never_raises_its_objective(grid, share):
    problem = grid(share)
    plain, solution = solve_exact(problem), solve_reweighted(problem)
    details = solution.stats
    assert details["at_prior"][0] == share_at_prior(problem, plain.cost)
    assert details["at_prior"][-1] == share_at_prior(problem, solution.cost) >= details["at_prior"][0]
    assert np.diff(details["objective"]).max() <= 1e-9
    assert_solves(sparse(problem, weights=details["weights"]), solution, 1e-9)


def test_reweighting_once_is_the_plain_program_and_the_weights_are_those_of_the_round_before(grid):
    problem = grid(0.1)
    once, twice = solve_reweighted(problem, 1), solve_reweighted(problem, 2, delta=0.2)
    np.testing.assert_array_equal(once.cost, solve_exact(problem).cost)
    assert once.stats["weights"] is None
    expected = 1 / (np.abs(once.cost - problem.prior) + 0.2)
    np.testing.assert_array_equal(twice.stats["weights"], expected)


def test_reweighting_needs_an_l1_problem_without_weights(grid):
    problem = grid(0.1)
    for other in (
        RLfDProblem(problem.mdp, problem.expert, problem.prior, 0.1),
        sparse(problem, alpha=0.0),
        sparse(problem, weights=np.ones(problem.n_pairs)),
    ):
        with pytest.raises(ValueError, match='problem must have regulariser="l1", alpha > 0 and no weights'):
            solve_reweighted(other)
    with pytest.raises(TypeError, match="problem must be an RLfDProblem, got str"):
        solve_reweighted("grid")
    with pytest.raises(ValueError, match="delta"):
        solve_reweighted(problem, delta=0.0)
    with pytest.raises(ValueError, match="n_rounds must be at least 1"):
        solve_reweighted(problem, 0)
