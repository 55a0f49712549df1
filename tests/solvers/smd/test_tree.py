"""The sum tree: draws in proportion to weights that change."""

from __future__ import annotations

import numpy as np
import pytest
from reference import kernel

from rlfd_gym._compiled import aligned
from rlfd_gym.solvers.smd import tree as parts
from rlfd_gym.solvers.smd.intrinsics import FAN
from rlfd_gym.solvers.smd.tree import tree_rebuild, tree_shape

tree_draw, tree_set, tree_total = (kernel(part) for part in (parts.tree_draw, parts.tree_set, parts.tree_total))


def tree_of(weights):
    levels, size = tree_shape(len(weights))
    tree = aligned(size * FAN, np.dtype("f8")).reshape(size, FAN)
    tree[:] = 0.0
    tree.reshape(-1)[: len(weights)] = weights
    tree_rebuild(tree, levels)
    return tree, levels


@pytest.mark.parametrize("n", [1, 2, 8, 9, 64, 65, 513])
def test_a_draw_from_the_tree_is_the_inverse_distribution_function(n):
    weights = np.random.default_rng(3).dirichlet(np.full(n, 0.3))
    weights[::3] = 0.0
    weights[-1] += 1e-3
    tree, levels = tree_of(weights)
    total = tree_total(tree, levels)
    assert total == pytest.approx(weights.sum(), rel=1e-14)
    sums = np.cumsum(weights)
    for x in np.random.default_rng(4).random(2000) * total:
        assert tree_draw(tree, levels, x) == np.searchsorted(sums, x, side="right")
    for x in (0.0, total, 2 * total):  # past the end: still a pair with weight
        assert weights[tree_draw(tree, levels, x)] > 0


def test_a_huge_weight_leaves_no_trace_in_the_tree():
    tree, levels = tree_of(np.full(100, 1e-8))
    before = tree.copy()
    tree_set(tree, levels, 42, 1e12)
    assert tree_set(tree, levels, 42, 1e-8) == tree_total(tree, levels)
    np.testing.assert_array_equal(tree, before)


@pytest.mark.parametrize("n", [1, 9, 513])
def test_setting_weights_one_by_one_gives_the_tree_that_is_built_at_once(n):
    weights = np.random.default_rng(5).exponential(size=n)
    tree, levels = tree_of(np.zeros(n))
    for pair in np.random.default_rng(6).permutation(n):
        total = tree_set(tree, levels, pair, weights[pair])
    assert total == pytest.approx(weights.sum(), rel=1e-14)
    np.testing.assert_allclose(tree, tree_of(weights)[0], rtol=1e-14)
