"""A sum tree over weights, for sampling in proportion to them while they change, one at a time.

A node holds the sums of its `FAN` = 8 children, which is one cache line; the leaves are the
weights themselves, in order. Setting a weight re-adds the eight entries of each node above it
(`total - old + new` would cancel catastrophically), and a draw descends from the root: both touch
log₈ n nodes. The draw is the inverse-CDF sample: the first pair j with w₀ + … + w_j > x.

The operations on a single node are in `rlfd_gym.solvers.smd.intrinsics`.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import compiled, inlined
from rlfd_gym.solvers.smd.intrinsics import FAN, node_scan, node_set


def tree_shape(n: int) -> tuple[np.ndarray, int]:
    """Return the first node of each level, beginning with the weights, and the number of nodes."""
    levels: list[int] = []
    size, nodes = 0, n
    while nodes > 1 or not levels:
        nodes = -(-nodes // FAN)
        levels.append(size)
        size += nodes
    return np.array(levels, np.int64), size


@inlined
def node_sum(tree, node):
    """Return the sum of the eight children of a node, added in pairs."""
    return ((tree[node, 0] + tree[node, 1]) + (tree[node, 2] + tree[node, 3])) + (
        (tree[node, 4] + tree[node, 5]) + (tree[node, 6] + tree[node, 7])
    )


@inlined
def tree_total(tree, levels):
    """Return the sum of all weights, which is that of the root's children."""
    return node_sum(tree, levels[-1])


@inlined
def node_draw(tree, node, x):
    """Scan a node for x, but return a child with weight even if rounding took x past the end."""
    child, rest = node_scan(tree, node, x)
    if tree[node, child] <= 0.0:
        child = np.int64(FAN - 1)
        while child > 0 and tree[node, child] <= 0.0:
            child -= 1
    return child, rest


@inlined
def tree_draw(tree, levels, x):
    """Return the pair in which x, 0 <= x < total, falls."""
    pair = np.int64(0)
    for level in range(len(levels) - 1, -1, -1):
        child, x = node_draw(tree, levels[level] + pair, x)
        pair = FAN * pair + child
    return pair


@inlined
def tree_set(tree, levels, pair, weight):
    """Set one weight, re-add the nodes above it, and return the new total."""
    for level in range(len(levels)):
        weight = node_set(tree, levels[level] + pair // FAN, pair % FAN, weight)
        pair //= FAN
    return weight


@compiled
def tree_rebuild(tree, levels):
    """Recompute all inner levels from the leaves."""
    for level in range(len(levels) - 1):
        for node in range(levels[level + 1] - levels[level]):
            tree[levels[level + 1] + node // FAN, node % FAN] = node_sum(tree, levels[level] + node)
