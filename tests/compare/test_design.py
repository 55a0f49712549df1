"""What is compared: which cells a design has, and what it refuses."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from rlfd_gym import compare


def test_a_cell_without_anything_random_is_run_for_one_seed():
    design = compare.Design.of(methods=("lpal", "rlfd-exact", "rlfd-smd"), seeds=3, alphas=(1.0,))
    seeds = defaultdict(int)
    for cell in design.cells():
        seeds[cell.task, cell.method, cell.demonstrations] += 1
    assert seeds["inventory", "lpal", "exact"] == seeds["inventory", "rlfd-exact", "exact"] == 1
    assert seeds["windy", "lpal", "exact"] == seeds["windy", "expert", "exact"] == 1
    assert seeds["windy", "rlfd-exact", "exact"] == seeds["windy", "prior", "exact"] == 3  # the prior is drawn
    assert seeds["inventory", "rlfd-smd", "exact"] == seeds["inventory", "lpal", 1] == 3


def test_methods_that_are_quick_are_run_for_more_seeds_from_five_on():
    for seeds, expected in ((4, 4), (5, 20), (6, 24)):
        design = compare.Design.of(
            tasks=("inventory",), methods=("cloning", "irl-io"), seeds=seeds, demonstrations=(1,)
        )
        cells = design.cells()
        assert sum(cell.method == "cloning" for cell in cells) == expected
        assert sum(cell.method == "irl-io" for cell in cells) == seeds
        assert all(map(design.has, cells))
    larger = set(compare.Design.of(tasks=("inventory",), methods=("cloning",), seeds=3).with_added(seeds=5).cells())
    assert set(compare.Design.of(tasks=("inventory",), methods=("cloning",), seeds=3).cells()) < larger


def test_planning_with_the_prior_alone_has_the_same_draws_of_it_as_rlfd():
    cells = compare.Design.of(tasks=("lake",), methods=("rlfd-exact",), demonstrations=(1,), alphas=(0.1,)).cells()
    seeds = {name: [cell.seed for cell in cells if cell.method == name] for name in ("prior", "rlfd-exact")}
    assert seeds["prior"] == seeds["rlfd-exact"] == list(range(20))


def test_every_method_is_run_for_five_seeds_at_least():
    assert all((method.most_seeds or 5) >= 5 for method in compare.METHODS.values())
    assert not any(method.quick and method.most_seeds for method in compare.METHODS.values())


def test_a_design_keeps_everything_once_and_in_order():
    # A row that is there twice would make its interval too narrow, and its seed must not depend on how 1 is written.
    twice = compare.Design.of(
        tasks=("inventory",) * 2, methods=("lpal", "lpal"), demonstrations=("exact", np.int64(2), 2), alphas=(1, 1.0)
    )
    once = compare.Design.of(tasks=("inventory",), methods=("lpal",), demonstrations=(2, "exact"), alphas=(1.0,))
    assert list(map(str, twice.cells())) == list(map(str, once.cells()))
    assert json.dumps(asdict(twice)) == json.dumps(asdict(once))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": ["inventori"]}, r"tasks must be one of .*; got 'inventori'; did you mean 'inventory'\?"),
        ({"methods": ["rlfd-exakt"]}, r"methods must be one of .*; got 'rlfd-exakt'; did you mean 'rlfd-exact'\?"),
        ({"methods": ["zzzzz"]}, "methods must be one of optimum, expert, .*; got 'zzzzz'$"),
        ({"tasks": []}, "tasks is empty"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"demonstrations": [0]}, "must be at least 1, got 0"),
        ({"demonstrations": []}, "demonstrations is empty"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [-1.0]}, "alphas must be a finite number"),
    ],
)
def test_a_design_that_cannot_be_run_is_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        compare.run(**wrong)


def test_a_series_of_methods_is_refused_without_being_shown():
    with pytest.raises(TypeError, match=r"methods must be a list, got Series$"):
        compare.Design.of(methods=pd.Series([np.inf], dtype=np.float16))  # pandas warns when it shows this


def test_cells_are_sorted_by_their_place_as_a_design_lists_them():
    design = compare.Design.of(seeds=2, alphas=(1.0, 0.1))
    cells = design.cells()
    assert sorted(reversed(cells), key=design.place) == cells
