"""The methods: what they are given, and that a new one is one entry."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
from small_comparison import TINY

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.baselines import lp_irl, max_margin
from rlfd_gym.baselines.max_margin import loss_of
from rlfd_gym.compare.rivals import MARGINS
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


def lesson_of(task, **changes):
    given = {
        "mdp": task.mdp, "shown": task.expert, "prior": task.prior, "alpha": 0.0, "basis": task.basis, "iterations": 10,
        "runs": 1, "seed": np.random.SeedSequence(0),
    }  # fmt: skip
    return compare.Lesson(**given | changes)


def test_every_method_is_explained_in_one_line():
    for method in compare.METHODS.values():
        assert 10 < len(method.explanation) < 120, method.name
        assert "\n" not in method.explanation + method.setting
        assert method.setting or not method.takes_alpha


def test_irl_io_takes_all_actions_alike_where_its_cost_tells_none_apart():
    # The expert of the lake errs everywhere, so every action is optimal for the projected cost.
    task = compare.TASKS["lake"].make(0)
    with rlfd_gym.collected_warnings():
        solution = compare.METHODS["irl-io"].solve(lesson_of(task))
    visited = task.mdp.sum_by_state(task.expert)[task.mdp.pair_states] > 0
    np.testing.assert_allclose(solution.policy[visited], task.mdp.uniform_policy()[visited])


def test_max_margin_chooses_the_weight_of_least_loss():
    task = compare.TASKS["lake"].make(0)
    chosen = compare.METHODS["max-margin"].solve(lesson_of(task))
    loss = chosen.stats["loss"]
    others = [max_margin(task.mdp, task.expert, task.basis, regularisation=x) for x in (0.001, 0.01, 0.1, 1.0)]
    assert loss @ chosen.occupancy == min(loss @ other.occupancy for other in others)


def test_max_margin_is_judged_by_what_the_held_out_half_was_seen_to_do():
    # Where the held-out half never was, every action is a loss: it cannot vouch for a plan that goes there.
    task = compare.TASKS["lake"].make(0)
    shown = demonstrations_of(task, 2, np.random.SeedSequence(3))
    seen = np.zeros(task.mdp.n_states, dtype=bool)
    seen[shown[1].obs[:-1]] = True
    loss = loss_of(task.mdp, shown[1:])
    assert (loss[~seen[task.mdp.pair_states]] == 1).all()
    assert (task.mdp.min_by_state(loss)[seen] == 0).all()
    chosen = compare.METHODS["max-margin"].solve(lesson_of(task, shown=shown))
    halves = {x: max_margin(task.mdp, shown[:1], task.basis, regularisation=x).occupancy @ loss for x in MARGINS}
    weight = max(x for x in MARGINS if halves[x] <= min(halves.values()) + 1e-6)
    wanted = max_margin(task.mdp, shown, task.basis, regularisation=weight)
    np.testing.assert_allclose(chosen.cost, wanted.cost)
