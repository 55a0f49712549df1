"""What a solver may ask of any problem."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from strategies import black_box, hull_of, make_problem, random_point, small_shop, sparse

from rlfd_gym import RLfDProblem, TabularMDP
from rlfd_gym.beliefs import Hull, NearPrior
from rlfd_gym.problem import Point, Problem


@pytest.fixture(scope="module")
def kinds():
    """A problem of each kind."""
    problem = make_problem(1)
    return {"box": problem, "l1": sparse(problem), "hull": hull_of(problem), "black box": black_box(small_shop())[0]}


@pytest.mark.parametrize("kind", ["box", "l1", "hull", "black box"])
def test_every_kind_of_problem_answers_what_algorithm_1_asks(kinds, kind):
    problem = kinds[kind]
    assert isinstance(problem, Problem)
    assert problem.prior.shape == (problem.n_pairs,)
    assert problem.alpha == problem.belief.alpha
    assert problem.regulariser == ("l1" if kind == "l1" else "l2")
    names = problem.theorem.names
    assert len(problem.second_moments()) == (3 if kind == "hull" else 2) == len(names)
    assert len(problem.step_sizes(0.1)) == len(names)
    steps = problem.iterations(0.1)
    assert problem.accuracy(steps) <= 0.1 * (1 + 1e-12)


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize("kind", ["box", "l1", "hull", "black box"])
def test_starts_are_feasible_and_repeat_with_their_generator(kinds, kind, uniform):
    problem = kinds[kind]
    point, again = (problem.start(np.random.default_rng(2), uniform) for _ in range(2))
    for one, other in zip(point, again, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(problem.belief.check(point.x), point.x, atol=1e-15)
    assert np.abs(point.value).max() <= 1
    assert point.occupancy.sum() == pytest.approx(1)
    assert (np.ptp(point.occupancy) == 0) == uniform


def test_without_tables_there_are_no_bounds(kinds):
    point = kinds["black box"].start(np.random.default_rng(0), uniform=True)
    assert np.isnan(kinds["black box"].bounds(*point)).all()


def other_worlds(problem):
    """The same numbers of pairs and states, the same expert and belief, in another MDP."""
    mdp = problem.mdp
    rows = mdp.transitions.toarray()
    for transitions, initial in ((rows[::-1], mdp.initial), (rows, np.roll(mdp.initial, 1))):
        other = TabularMDP(transitions, mdp.pair_states, mdp.pair_actions, initial, mdp.discount, mdp.n_actions)
        yield RLfDProblem(other, problem.expert, problem.prior, problem.alpha)


def test_the_checksums_of_the_tables_are_computed_once(kinds, monkeypatch):
    problem = kinds["box"]
    first = problem.fingerprint()
    monkeypatch.setattr("rlfd_gym.problem.problem.checksums", None)
    assert problem.fingerprint() == problem.with_alpha(2.0).with_alpha(problem.alpha).fingerprint() == first


def test_fingerprints_tell_problems_apart_and_copies_not(kinds):
    problem = kinds["box"]
    others = [
        *kinds.values(),
        problem.with_alpha(0.2),
        problem.with_belief(NearPrior(-problem.prior, problem.alpha)),
        RLfDProblem(problem.mdp, problem.mdp.occupancy_of(problem.mdp.uniform_policy()), problem.prior, problem.alpha),
        problem.with_belief(Hull(np.eye(problem.n_pairs), problem.prior, problem.alpha)),
        make_problem(1, discount=0.6),
        *other_worlds(problem),
        problem.with_belief(NearPrior(problem.prior, problem.alpha, norm="l1", weights=np.arange(problem.n_pairs))),
    ]
    assert len({other.fingerprint() for other in others}) == len(others)
    assert pickle.loads(pickle.dumps(problem)).fingerprint() == problem.fingerprint()


def test_a_point_names_its_parts():
    point = Point(*random_point(make_problem(0), 1))
    assert point._fields == ("x", "value", "occupancy")
