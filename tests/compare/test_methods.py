"""The methods: what they are given, and that a new one is one entry."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from small_comparison import TINY

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.baselines import lp_irl
from rlfd_gym.compare.tasks import demonstrations_of


def test_a_new_method_is_one_entry(monkeypatch):
    def solve(lesson):
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    result = compare.run(**TINY | {"methods": ["mine"]})
    assert "my own" in str(result.table("inventory"))


def test_lp_irl_learns_from_a_single_demonstration_that_leaves_states_open():
    # Where the demonstrated actions lead out of what was seen, values need their own bounds.
    task = compare.TASKS["lake"].make(0)
    for seed in range(8):
        solution = lp_irl(task.mdp, demonstrations_of(task, 1, np.random.SeedSequence(seed)))
        assert solution.cost.min() >= -1
        assert solution.cost.max() <= 1
        assert np.abs(solution.value).max() <= 1 + 1e-9


def test_a_lesson_does_not_hold_the_truth_or_the_exact_expert_behind_demonstrations(monkeypatch):
    lessons = []

    def solve(lesson):
        lessons.append(lesson)
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    compare.run(**TINY | {"methods": ["mine"], "demonstrations": [2]})
    task, lesson = compare.TASKS["inventory"].make(0), lessons[-1]
    held = {item.name: getattr(lesson, item.name) for item in fields(lesson)}
    assert set(held) == {"mdp", "shown", "prior", "alpha", "basis", "iterations", "runs", "seed", "belief", "estimator"}
    np.testing.assert_array_equal(held["prior"], task.prior)
    np.testing.assert_array_equal(held["basis"], task.basis)
    secret = [task.truth, task.expert]
    vectors = [value for thing in (lesson, lesson.mdp) for value in vars(thing).values() if np.ndim(value) == 1]
    assert not any(np.array_equal(vector, hidden) for vector in vectors for hidden in secret)


def test_a_method_that_takes_alpha_uses_the_prior():
    assert compare.Method("mine", "my own", lambda lesson: lesson, takes_alpha=True).uses_prior
    assert not compare.Method("mine", "my own", lambda lesson: lesson).uses_prior
