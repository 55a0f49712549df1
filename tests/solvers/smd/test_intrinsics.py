"""The vector code of the sum tree's nodes, and the plain code that it must equal to the bit."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from strategies import hull_of, make_problem, seeds

from rlfd_gym import solve_smd
from rlfd_gym.solvers.smd import intrinsics
from rlfd_gym.solvers.smd.intrinsics import FAN


@njit
def scan(tree, node, x):
    return intrinsics.vector_scan(tree, node, x)


@njit
def set_child(tree, node, child, weight):
    return intrinsics.vector_set(tree, node, child, weight)


@njit
def ask_for(tree, node):
    intrinsics.vector_prefetch(tree, node)


@st.composite
def nodes(draw: st.DrawFn) -> np.ndarray:
    """Three nodes: weights of any size that a double has, many of them zero, many of them equal."""
    rng = np.random.default_rng(draw(seeds))
    low, high = draw(st.sampled_from([(-307, 307), (-323, -300), (290, 307), (-8, 0), (0, 0)]))
    tree = 10.0 ** rng.uniform(low, high, (3, FAN))
    tree[rng.random(tree.shape) < draw(st.sampled_from([0.0, 0.3, 0.9, 1.0]))] = 0.0
    return tree


def bits(number: float) -> int:
    """The bits of a double: equal numbers that are not the same, as 0.0 and -0.0, differ in them."""
    return int(np.float64(number).view(np.int64))


@given(nodes(), seeds)
def test_the_scan_of_a_node_is_that_of_the_plain_code_to_the_bit(tree, seed):
    sums = np.cumsum(tree[1])
    inside = np.random.default_rng(seed).random(20) * min(sums[-1], 1e308)
    near_the_ends = np.concatenate([sums, np.nextafter(sums, 0.0), np.nextafter(sums, np.inf)])
    for x in (0.0, *inside, *near_the_ends[np.isfinite(near_the_ends)], 1e308):
        (child, rest), (plain_child, plain_rest) = scan(tree, 1, x), intrinsics.plain_scan(tree, 1, x)
        assert (child, bits(rest)) == (plain_child, bits(plain_rest))
        assert 0 <= child < FAN


@given(nodes())
def test_a_view_shows_the_memory_of_the_array_as_the_plain_view_does(tree):
    pair = np.dtype([("count", "u4"), ("sign", "i4"), ("weight", "f8")])

    @njit
    def seen(array):
        records, numbers = intrinsics.emitted_view(array, pair), intrinsics.emitted_view(array, intrinsics.WEIGHT)
        numbers[1] = 2.0
        records[1].count = 7
        return records[0].weight, len(records), len(numbers)

    plain = tree.copy()
    records, numbers = intrinsics.plain_view(plain, pair), intrinsics.plain_view(plain, intrinsics.WEIGHT)
    numbers[1], records["count"][1] = 2.0, 7
    assert seen(tree) == (2.0, len(records), len(numbers)) == (2.0, tree.size // 2, tree.size)
    np.testing.assert_array_equal(tree.view(np.int64), plain.view(np.int64))


@given(nodes(), st.integers(0, FAN - 1), st.sampled_from([0.0, 5e-324, 1e-300, 1.0, 1e300, 1e308]))
def test_setting_a_child_gives_the_node_and_the_sum_of_the_plain_code_to_the_bit(tree, child, weight):
    mine, plain = tree.copy(), tree.copy()
    assert bits(set_child(mine, 1, child, weight)) == bits(intrinsics.plain_set(plain, 1, child, weight))
    np.testing.assert_array_equal(mine.view(np.int64), plain.view(np.int64))
    tree[1, child] = weight
    np.testing.assert_array_equal(mine, tree)  # and nothing but this child has changed


@given(nodes())
def test_asking_for_memory_changes_nothing(tree):
    before = tree.copy()
    ask_for(tree, 1)
    intrinsics.plain_prefetch(tree, 1)
    np.testing.assert_array_equal(tree, before)


def test_the_vector_code_is_what_is_used_where_it_works():
    assert intrinsics.node_scan is intrinsics.vector_scan
    assert intrinsics.node_set is intrinsics.vector_set
    assert intrinsics.prefetch is intrinsics.vector_prefetch
    assert intrinsics.view is intrinsics.emitted_view


WITHOUT_VECTORS = """if True:
    import sys, warnings
    from llvmlite import ir

    def refuse(*arguments):
        raise TypeError("this release has no vectors")

    ir.VectorType = refuse
    sys.path.insert(0, sys.argv[1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from rlfd_gym.solvers.smd import intrinsics
    print([str(warning.message) for warning in caught])
    assert intrinsics.node_scan is intrinsics.plain_scan
    assert intrinsics.node_set is intrinsics.plain_set
    assert intrinsics.view is intrinsics.plain_view

    import numpy as np
    from strategies import hull_of, make_problem
    from rlfd_gym import solve_smd

    problem = make_problem(3, 12, 4)
    for task, name in ((problem, "box"), (hull_of(problem), "hull")):
        solution = solve_smd(task, 20_000, step_size=2e-2, record_every=5000)
        np.savez(sys.argv[2] + name, gap=solution.history.duality_gap, x=solution.state.last.x,
                 cost=solution.cost, value=solution.value, occupancy=solution.occupancy)
"""


@pytest.mark.slow  # a fresh interpreter that compiles all kernels anew
def test_where_llvm_refuses_the_vector_code_a_warning_says_so_and_the_answer_is_the_same_to_the_bit(tmp_path):
    tests = os.path.dirname(os.path.abspath(sys.modules["strategies"].__file__))
    command = [sys.executable, "-c", WITHOUT_VECTORS, tests, str(tmp_path / "plain-")]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}  # what is compiled here is for nobody else
    result = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "numba refuses the library's own code for Algorithm 1 (" in result.stdout
    assert "this release has no vectors): it is slower" in result.stdout
    problem = make_problem(3, 12, 4)
    for task, name in ((problem, "box"), (hull_of(problem), "hull")):
        mine = solve_smd(task, 20_000, step_size=2e-2, record_every=5000)
        plain = np.load(tmp_path / f"plain-{name}.npz")
        np.testing.assert_array_equal(plain["gap"], mine.history.duality_gap)
        np.testing.assert_array_equal(plain["x"], mine.state.last.x)
        for field in ("cost", "value", "occupancy"):
            np.testing.assert_array_equal(plain[field], getattr(mine, field))
