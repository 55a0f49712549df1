"""`solve_smd`: what it returns, what it promises, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_same
from strategies import make_problem

from rlfd_gym import RLfDProblem, TabularMDP, solve_exact, solve_smd
from rlfd_gym.problem import examples


@pytest.fixture(scope="module")
def problem():
    """The paper's 6 x 6 grid with an optimal expert and the true cost as prior."""
    return examples.gridworld(size=6, noise=0, alpha=0.1, known=1)


def test_the_answer_is_feasible_and_certified(problem):
    solution = solve_smd(problem, n_iterations=50_000)
    assert np.abs(solution.cost).max() <= 1
    assert np.abs(solution.value).max() <= 1
    assert solution.occupancy.sum() == pytest.approx(1)
    np.testing.assert_allclose(solution.policy, problem.mdp.policy_of(solution.occupancy), atol=1e-14)
    gap = problem.duality_gap(solution.cost, solution.value, solution.occupancy)
    assert solution.duality_gap == pytest.approx(gap, abs=1e-12)
    assert (solution.upper, solution.lower) == problem.bounds(solution.cost, solution.value, solution.occupancy)
    assert solution.finished
    assert solution.n_iterations == 50_000


def test_more_iterations_bring_a_smaller_gap(problem):
    paper = [solve_smd(problem, n, seed=1, variant="paper").duality_gap for n in (10_000, 300_000, 10_000_000)]
    assert paper[0] > 3 * paper[1] > 9 * paper[2]
    assert paper[2] < 0.05
    harder = examples.gridworld(size=6, alpha=0.01)
    gaps = [solve_smd(harder, n, seed=1).duality_gap for n in (10_000, 1_000_000)]
    assert gaps[0] > 3 * gaps[1]
    assert gaps[1] < 0.1 * solve_smd(harder, 10_000_000, seed=1, variant="paper").duality_gap


def test_the_expected_gap_is_what_the_theorem_promises():
    # A problem so small that the theorem's own T is affordable many times over.
    small = make_problem(0, n_states=2, n_actions=2, discount=0.5, alpha=0.1)
    for bound in ("corrected", "paper"):
        arguments = {"epsilon": 0.4, "bound": bound, "variant": "paper"}
        gaps = [solve_smd(small, **arguments, seed=seed).duality_gap for seed in range(20)]
        assert np.mean(gaps) <= 0.4
    solution = solve_smd(small, epsilon=0.4, variant="paper")
    assert solution.n_iterations == small.iterations(0.4)
    assert solution.stats["step_sizes"] == small.step_sizes(0.4)


def test_without_a_step_size_the_theorem_is_inverted():
    problem = make_problem(1, n_states=3, n_actions=2, discount=0.5)
    n_iterations = problem.iterations(0.5)
    solution = solve_smd(problem, n_iterations=n_iterations, variant="paper")
    assert solution.stats["step_sizes"] == pytest.approx(problem.step_sizes(0.5), rel=1e-6)
    few = solve_smd(problem, n_iterations=10, variant="paper").stats["step_sizes"]
    assert few[1] == pytest.approx(0.5 * (1 - 0.5) / (2 * problem.n_pairs))  # the proof's cap on η_μ


@pytest.mark.parametrize("step_size", [1e12, (1e10, 1e-3)])
def test_steps_so_large_that_the_averages_would_be_lost_are_refused(problem, step_size):
    with pytest.raises(ValueError, match=r"step_size must be at most 1e\+09 .* averages"):
        solve_smd(problem, n_iterations=10, step_size=step_size)


def test_the_largest_steps_of_cost_and_value_leave_the_averages_right(problem):
    """Any step from 1e6 on goes from end to end of the box, so the averages are the same."""
    large, larger = (solve_smd(problem, n_iterations=500, step_size=(eta, 1e-3), seed=1) for eta in (1e6, 1e9))
    np.testing.assert_allclose(large.value, larger.value, atol=1e-4)


def test_a_solution_of_another_mdp_is_not_continued(problem):
    mdp = problem.mdp
    rows = mdp.transitions[::-1]
    other = TabularMDP(rows, mdp.pair_states, mdp.pair_actions, mdp.initial, mdp.discount, mdp.n_actions)
    stranger = solve_smd(RLfDProblem(other, problem.expert, problem.prior, problem.alpha), n_iterations=10)
    with pytest.raises(ValueError, match="initial must be a solution of the same problem"):
        solve_smd(problem, n_iterations=10, initial=stranger)


def test_step_sizes_may_be_one_number_or_two(problem):
    one = solve_smd(problem, n_iterations=2000, step_size=1e-3)
    two = solve_smd(problem, n_iterations=2000, step_size=(1e-3, 1e-3))
    assert_same(one, two)
    other = solve_smd(problem, n_iterations=2000, step_size=(1e-3, 1e-4))
    assert (other.occupancy != one.occupancy).any()


def test_the_same_seed_gives_the_same_result_and_another_does_not(problem):
    first = solve_smd(problem, n_iterations=5000, seed=3)
    assert_same(first, solve_smd(problem, n_iterations=5000, seed=3))
    assert (solve_smd(problem, n_iterations=5000, seed=4).state.last.x != first.state.last.x).any()
    sequence = np.random.SeedSequence(3)
    assert_same(first, solve_smd(problem, n_iterations=5000, seed=sequence))
    assert_same(first, solve_smd(problem, n_iterations=5000, seed=sequence))  # not used up by the first call
    generators = (np.random.default_rng(7), np.random.default_rng(7))
    assert_same(*(solve_smd(problem, n_iterations=5000, seed=generator) for generator in generators))


def test_the_history_holds_the_gap_of_the_average_so_far(problem):
    solution = solve_smd(problem, n_iterations=4000, step_size=1e-2, record_every=1000, seed=2)
    assert solution.history.iteration.tolist() == [1000, 2000, 3000, 4000]
    for row, n in enumerate((1000, 2000, 3000, 4000)):
        shorter = solve_smd(problem, n_iterations=n, step_size=1e-2, seed=2, repair=False)
        assert solution.history.duality_gap[row] == pytest.approx(shorter.duality_gap, abs=1e-10)
    assert (solution.history.change_cost > 0).all()
    assert len(solution.history) == 4


def test_the_history_of_several_runs_is_their_mean_and_spread(problem):
    history = solve_smd(problem, n_iterations=1000, step_size=1e-2, record_every=500, n_runs=3).history
    assert (history.duality_gap_std > 0).all()
    assert solve_smd(problem, n_iterations=1000, step_size=1e-2, record_every=500).history.duality_gap_std.max() == 0


def test_there_is_no_history_unless_asked_for(problem):
    assert len(solve_smd(problem, n_iterations=100).history) == 0


def test_the_last_iterate_is_kept_in_the_state(problem):
    last = solve_smd(problem, n_iterations=500, step_size=1e-2).state.last
    average = solve_smd(problem, n_iterations=500, step_size=1e-2)
    assert last.occupancy.sum() == pytest.approx(1)
    assert (last.x != average.cost).any()


def test_the_progress_bar_counts_every_step(problem, capsys):
    solve_smd(problem, n_iterations=5000, n_runs=2, progress_bar=True)
    assert "10.0k/10.0k" in capsys.readouterr().err


def test_a_reckless_step_size_warns_and_stays_finite(problem):
    with pytest.warns(RuntimeWarning, match=r"step_size 1 for the occupancy lets one step change a weight by exp"):
        solution = solve_smd(problem, n_iterations=5000, step_size=1.0)
    assert np.isfinite(solution.duality_gap)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_iterations": 0}, ValueError, "n_iterations must be at least 1"),
        ({"n_iterations": 1e4}, TypeError, "n_iterations must be an integer"),
        ({"n_runs": 0}, ValueError, "n_runs must be at least 1"),
        ({"record_every": 0}, ValueError, "record_every must be at least 1"),
        ({"step_size": -1.0}, ValueError, "step_size must be a finite number"),
        ({"step_size": np.nan}, ValueError, "step_size"),
        ({"step_size": (1e-2,)}, ValueError, "step_size must be a number or three"),
        ({"step_size": (1e-2,), "variant": "paper"}, ValueError, "step_size must be a number or a pair"),
        ({"variant": "best"}, ValueError, "variant must be one of proximal, paper"),
        ({"gap": 0.0}, ValueError, "gap must be"),
        ({"repair": "no"}, TypeError, "repair must be"),
        ({"step_size": 0.1, "epsilon": 0.1}, ValueError, "step_size and epsilon exclude each other"),
        ({"epsilon": -0.1}, ValueError, "epsilon"),
        ({"epsilon": 1e-9}, ValueError, "epsilon=1e-09 asks for .* steps"),
        ({"epsilon": 1e-29}, ValueError, "epsilon=1e-29 asks for .* steps"),
        ({"seed": -1}, ValueError, "seed must be at least 0"),
        ({"seed": "x"}, TypeError, "seed must be an integer"),
        ({"bound": "loose"}, ValueError, "bound must be one of"),
    ],
)
def test_bad_arguments_of_solve_smd_are_refused_by_name(problem, arguments, error, message):
    with pytest.raises(error, match=message):
        solve_smd(problem, **arguments)


@pytest.mark.parametrize(("n_jobs", "error"), [(0, ValueError), ("two", TypeError)])
def test_a_number_of_jobs_is_a_number(problem, n_jobs, error):
    with pytest.raises(error, match="n_jobs must"):
        solve_smd(problem, n_iterations=100, n_jobs=n_jobs)


def test_something_that_is_no_problem_is_refused():
    with pytest.raises(TypeError, match="problem must be an RLfDProblem or a BlackBoxProblem, got str"):
        solve_smd("inventory")


def test_a_problem_with_a_single_pair_is_solved():
    mdp = TabularMDP([[1.0]], [0], [0], None, 0.9)
    solution = solve_smd(RLfDProblem(mdp, [1.0], [0.3], 1.0), n_iterations=20_000)
    assert solution.cost.tolist() == pytest.approx([0.3], abs=0.05)
    assert solution.policy.tolist() == [1.0]


def test_with_the_l1_penalty_it_comes_near_the_value_of_the_linear_program():
    problem = make_problem(0, alpha=0.02, regulariser="l1")
    exact = solve_exact(problem)
    rough, long = (solve_smd(problem, n, seed=1, variant="paper") for n in (30_000, 3_000_000))
    for solution in (rough, long):
        assert solution.lower - 1e-12 <= exact.upper <= solution.upper + 1e-12
        assert solution.duality_gap <= problem.accuracy(solution.n_iterations)  # what the theorem promises
    assert long.duality_gap < rough.duality_gap / 5  # √100 = 10 times less, says the theorem's rate
