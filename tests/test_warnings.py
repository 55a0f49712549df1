"""Warnings as values: each lands where it belongs, whatever other threads do."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from strategies import make_problem

import rlfd_gym
from rlfd_gym import alpha_path, collected_warnings, compare
from rlfd_gym._warnings import warn
from rlfd_gym.compare import cells


def test_the_innermost_collection_has_the_warning():
    with collected_warnings() as outer:
        with collected_warnings() as inner:
            warn("one", RuntimeWarning)
        warn("two", UserWarning)
    assert (inner, outer) == (["one"], ["two"])


def test_a_collection_ends_with_its_block_even_after_an_error():
    with pytest.raises(ZeroDivisionError), collected_warnings():
        1 / 0  # noqa: B018
    with pytest.warns(RuntimeWarning, match="now"):
        warn("now", RuntimeWarning)


def test_a_warning_names_the_callers_line():
    def library():
        warn("look", RuntimeWarning, stacklevel=2)

    with pytest.warns(RuntimeWarning, match="look") as caught:
        library()
    assert caught[0].filename == __file__


def test_other_threads_collect_nothing_of_it():
    with collected_warnings() as mine, ThreadPoolExecutor(1) as pool, pytest.warns(RuntimeWarning, match="theirs"):
        pool.submit(warn, "theirs", RuntimeWarning).result()
    assert mine == []


def test_paths_in_eight_threads_leave_the_filters_of_the_process_as_they_were():
    before, problem = list(warnings.filters), make_problem(3)
    for _ in range(10):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: alpha_path(problem, n_points=2), range(8)))
        assert warnings.filters == before
    with pytest.warns(RuntimeWarning, match="still heard"):
        warnings.warn("still heard", RuntimeWarning, stacklevel=1)


def test_with_threads_a_warning_lands_on_its_own_row():
    """Both methods are inside their solves when the one warns, in either order."""
    both, said = threading.Barrier(2), threading.Barrier(2)

    def solve(lesson, word):
        if lesson.mdp.n_states > 4:  # not the warm-up
            both.wait(20)
            if word:
                warn(word, RuntimeWarning)
            said.wait(20)
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    methods = [compare.Method(word or "-", "", lambda lesson, word=word: solve(lesson, word)) for word in ("boo", "")]

    def note(method):
        cell = cells.Cell("inventory", method.name, None, "exact", 0)
        return cells.run_cell(compare.TASKS["inventory"], method, cell, 1, 1).note

    for _ in range(5):
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(note, methods)) == ["boo", ""]
