"""Problems that are known by a simulator alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from strategies import black_box, small_shop

from rlfd_gym import BlackBoxProblem, SampledExpert, solve_smd
from rlfd_gym.problem import Point


@pytest.fixture(scope="module")
def env():
    return small_shop()


def test_a_black_box_numbers_its_pairs_and_takes_its_steps_as_the_model_does(env):
    box, model = black_box(env)
    np.testing.assert_array_equal(box.pair_states, env.mdp.pair_states)
    np.testing.assert_array_equal(box.pair_actions, env.mdp.pair_actions)
    np.testing.assert_array_equal(box.state_starts, env.mdp.state_starts)
    assert box.step_sizes(0.1) == model.step_sizes(0.1)
    assert box.iterations(0.1) == model.iterations(0.1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"oracle": object()}, TypeError, "oracle must have a method sample_next"),
        ({"expert": [1, 2]}, TypeError, "expert must be a SampledExpert"),
        ({"n_states": 0}, ValueError, "n_states must be at least 1"),
        ({"discount": 1.0}, ValueError, "discount"),
        ({"prior": None}, ValueError, "prior is None, so alpha must be 0"),
        ({"prior": [0.0]}, ValueError, "prior has shape"),
        ({"alpha": -1.0}, ValueError, "alpha"),
        ({"feasible": np.zeros((5, 5), dtype=bool)}, ValueError, "feasible must be a boolean array"),
        ({"expert": SampledExpert([0], [9], [0])}, ValueError, r"expert: transition 0 is \(state 0, action 9"),
        ({"expert": SampledExpert([0, 4], [0, 3], [0, 0])}, ValueError, r"expert: transition 1 is \(state 4, action 3"),
        ({"expert": SampledExpert([0], [0], [7])}, ValueError, "next state 7"),
    ],
)
def test_bad_black_box_problems_are_refused_by_name(env, changes, error, message):
    mdp = env.mdp
    arguments = {
        "oracle": env,
        "expert": SampledExpert([0], [0], [0]),
        "n_states": mdp.n_states,
        "n_actions": mdp.n_actions,
        "discount": 0.9,
        "prior": env.cost,
        "alpha": 0.1,
        "feasible": mdp.feasible,
    } | changes
    with pytest.raises(error, match=message):
        BlackBoxProblem(arguments.pop("oracle"), arguments.pop("expert"), **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], [], []), ValueError, "at least one transition"),
        (([0, 1], [0], [0, 1]), ValueError, r"actions has shape \(1,\), expected \(2,\)"),
        (([0.5], [0], [0]), TypeError, "states must hold integers"),
        (([0], [0], [0], [-1.0]), ValueError, "weights must not be negative"),
        (([0], [0], [0], [0.0]), ValueError, "weights must not all be zero"),
    ],
)
def test_bad_sampled_experts_are_refused_by_name(arguments, error, message):
    with pytest.raises(error, match=message):
        SampledExpert(*arguments)


def test_the_weights_of_a_sampled_expert_are_normalised(env):
    assert SampledExpert([0, 1], [0, 0], [0, 0], [1.0, 3.0]).weights.tolist() == [0.25, 0.75]
    assert isinstance(solve_smd(black_box(env)[0], n_iterations=5).state.last, Point)


def test_pickled_problems_and_sampled_experts_are_still_locked(env):
    _, model = black_box(env)
    assert not pickle.loads(pickle.dumps(model)).prior.flags.writeable
    assert not pickle.loads(pickle.dumps(SampledExpert([0], [0], [0]))).weights.flags.writeable
