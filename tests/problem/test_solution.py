"""What solvers return: short to print, fully explained by help(), and named by a method that is listed."""

from __future__ import annotations

import dataclasses
import pickle
import pydoc

import numpy as np
import pytest
from strategies import make_problem, random_basis, small_shop

import rlfd_gym
from rlfd_gym import Apprentice, History, RLfDProblem, Solution, solve_exact, solve_reweighted, solve_smd
from rlfd_gym import baselines as classic
from rlfd_gym.mdp import Pairs
from rlfd_gym.problem.solution import METHODS
from rlfd_gym.solvers import exact

PROBLEM = make_problem(3)
SPARSE = make_problem(3, alpha=0.02, regulariser="l1")
BASIS = random_basis(PROBLEM.n_pairs, 3)


def closed_form():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "QP_PAIRS", 1)
        return solve_exact(PROBLEM.with_alpha(0.0))


SOLVED = {
    "qp": lambda: solve_exact(PROBLEM, "qp"),
    "matrix-free": lambda: solve_exact(PROBLEM, "matrix-free"),
    "closed form": closed_form,
    "lp": lambda: solve_exact(SPARSE),
    "reweighted": lambda: solve_reweighted(SPARSE),
    "smd": lambda: solve_smd(PROBLEM, 2000, record_every=100, n_runs=2),
    "smd-hull": lambda: classic.solve_smd_hull(PROBLEM, BASIS, n_iterations=2000, record_every=100),
    "projection of the prior": lambda: rlfd_gym.project_prior(
        PROBLEM.mdp, PROBLEM.mdp.optimal(PROBLEM.prior).occupancy, PROBLEM.prior
    ),
    "lpal": lambda: classic.lpal(PROBLEM.mdp, PROBLEM.expert, BASIS),
    "mwal": lambda: classic.mwal(PROBLEM.mdp, PROBLEM.expert, BASIS, n_iterations=50),
    "projection": lambda: classic.projection(PROBLEM.mdp, PROBLEM.expert, BASIS, n_iterations=50),
    "max-margin": lambda: classic.max_margin(PROBLEM.mdp, PROBLEM.expert, BASIS),
    "lp-irl": lambda: classic.lp_irl(PROBLEM.mdp, PROBLEM.expert),
    "behavioural cloning": lambda: classic.behavioural_cloning(PROBLEM.mdp, PROBLEM.expert),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SOLVED)
def test_every_answer_has_a_listed_method_and_prints_in_two_short_lines(name):
    answer = SOLVED[name]()
    assert isinstance(answer, Apprentice)
    assert answer.method in METHODS
    for printed in (repr(answer), repr(getattr(answer, "history", ""))):
        lines = printed.split("\n")
        assert len(lines) <= 2
        assert max(map(len, lines)) <= 200


@pytest.mark.needs_imitation
def test_the_methods_that_wrap_imitation_are_listed_too():
    from rlfd_gym.baselines import mce_irl

    assert mce_irl(PROBLEM.mdp, PROBLEM.expert, n_iterations=5).method in METHODS
    assert {"mce-irl", "bc", "gail"} <= set(METHODS)


@pytest.mark.parametrize("kind", [Apprentice, Solution, History])
def test_help_explains_every_field(kind):
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    attributes = text[text.index("Attributes:") :]
    for field in dataclasses.fields(kind):
        assert f"{field.name}: " in attributes, field.name


def test_an_apprentice_says_what_was_used_and_its_numbers():
    half = np.array([0.5, 0.5])
    apprentice = Apprentice(
        policy=half, occupancy=half, method="cloning", n_iterations=3, stats={"unvisited_states": 1}
    )
    assert repr(apprentice) == "Apprentice('cloning', 2 pairs, 3 iterations, unvisited_states=1)"


def test_a_solution_says_what_was_proved_and_whether_it_was_interrupted():
    half = np.array([0.5, 0.5])
    parts = {"policy": half, "occupancy": half, "cost": half, "method": "smd"}
    assert repr(Solution(**parts)) == "Solution('smd', 2 pairs, 0 iterations)"
    proved = Solution(**parts, upper=1.5, lower=1.0, finished=False)
    assert repr(proved) == "Solution('smd', value in [1, 1.5], duality gap 0.5, 2 pairs, 0 iterations, not finished)"
    assert proved.duality_gap == 0.5
    assert np.isnan(Solution(**parts).duality_gap)


def test_arrays_among_the_stats_are_not_printed():
    half = np.array([0.5, 0.5])
    stats = {"weights": np.ones(1000), "rounds": list(range(1000)), "share": 0.123456789}
    text = repr(Apprentice(policy=half, occupancy=half, method="mwal", stats=stats))
    assert text == "Apprentice('mwal', 2 pairs, 0 iterations, share=0.1235)"


def test_a_history_says_how_the_gap_went():
    assert repr(History()) == "History(no records)"
    history = History(iteration=np.array([10, 20]), duality_gap=np.array([1.0, 0.25]))
    assert repr(history) == "History(2 records, gap 1 at 10 to 0.25 at 20 iterations)"
    assert len(history) == 2


def test_solutions_cannot_be_changed_and_take_their_fields_by_name_only():
    half = np.array([0.5, 0.5])
    apprentice = Apprentice(policy=half, occupancy=half)
    with pytest.raises(dataclasses.FrozenInstanceError):
        apprentice.method = "another"
    with pytest.raises(TypeError):
        Apprentice(half, half)


def test_a_solution_survives_pickling():
    solution = solve_smd(PROBLEM, 200, record_every=50)
    copy = pickle.loads(pickle.dumps(solution))
    assert repr(copy) == repr(solution)
    np.testing.assert_array_equal(copy.history.iteration, solution.history.iteration)


def test_problems_print_their_sizes_and_not_their_arrays():
    env = small_shop()
    problem = RLfDProblem(env.mdp, env.mdp.optimal(env.cost).occupancy, env.cost, 0.1)
    assert "alpha=0.1" in repr(problem)
    assert "array" not in repr(problem)
    assert len(repr(problem)) < 400


def test_a_solution_is_read_as_a_mixture_a_mode_or_a_plan():
    mdp, solution = PROBLEM.mdp, solve_exact(PROBLEM)
    assert solution.read(mdp) is solution.policy
    mode = solution.read(mdp, "mode")
    np.testing.assert_array_equal(mdp.likely_actions(mode), mdp.likely_actions(solution.policy))
    np.testing.assert_array_equal(solution.read(mdp, "greedy"), mdp.optimal(solution.cost).policy)


def test_what_has_no_cost_or_no_tables_cannot_be_greedy():
    mdp = PROBLEM.mdp
    clone = classic.behavioural_cloning(mdp, PROBLEM.expert)
    assert clone.read(mdp, "mode").max() == 1
    with pytest.raises(ValueError, match="'cloning' has learned none"):
        clone.read(mdp, "greedy")
    pairs = Pairs.of_mask(mdp.feasible)
    solution = solve_exact(PROBLEM)
    np.testing.assert_array_equal(solution.read(pairs, "mode"), solution.read(mdp, "mode"))
    with pytest.raises(TypeError, match="mdp must be a TabularMDP"):
        solution.read(pairs, "greedy")
    with pytest.raises(ValueError, match="kind must be one of occupancy, mode, greedy"):
        solution.read(mdp, "best")
    with pytest.raises(ValueError, match="pairs, but the policy is over"):
        solution.read(small_shop().mdp, "mode")
