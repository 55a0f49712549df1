"""Make draws ahead, so that memory is requested before it is needed.

This changes the speed of Algorithm 1 and nothing else. Draws that do not depend on the iterate are
made for a block of steps ahead, in several passes, each of which prefetches what the next one
reads. For j, which does depend on the iterate, a pass samples from the tree as it is at the start
of the block. The result is a hint what to prefetch and is never used as the sample.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import compiled
from rlfd_gym.solvers.smd.alias import alias_draw
from rlfd_gym.solvers.smd.intrinsics import FAN, prefetch
from rlfd_gym.solvers.smd.records import ANCHOR, EXPERT, EXPERT_NEXT, TRIED, TRIED_NEXT
from rlfd_gym.solvers.smd.tree import node_draw, tree_total


@compiled
def draw_ahead(pairs, states, slots, expert, tree, draws, samples):
    """Make the draws of a block of steps that do not depend on the iterate.

    Each pass prefetches what the next one reads.
    """
    n = len(pairs)
    for t in range(len(draws)):  # i and k
        i = np.int64(draws[t, ANCHOR] * n)
        k = np.int64(draws[t, TRIED] * n)
        samples[t, ANCHOR] = i
        samples[t, TRIED] = k
        prefetch(expert, np.int64(draws[t, EXPERT] * len(expert)))
        prefetch(pairs, k)
        prefetch(pairs, i)
        prefetch(tree, k // FAN)
    for t in range(len(draws)):  # e
        e = np.int64(alias_draw(expert, 0, len(expert), draws[t, EXPERT]))
        samples[t, EXPERT] = e
        prefetch(pairs, e)
        pair = pairs[samples[t, TRIED]]
        prefetch(slots, pair.row + np.int64(draws[t, TRIED_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):  # s'_k
        pair = pairs[samples[t, EXPERT]]
        prefetch(slots, pair.row + np.int64(draws[t, EXPERT_NEXT] * pair.row_length))
        prefetch(states, np.int64(pair.state))
        pair = pairs[samples[t, TRIED]]
        then = np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, TRIED_NEXT]))
        samples[t, TRIED_NEXT] = then
        prefetch(states, then)
    for t in range(len(draws)):  # s'_e
        pair = pairs[samples[t, EXPERT]]
        then = np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, EXPERT_NEXT]))
        samples[t, EXPERT_NEXT] = then
        prefetch(states, then)


@compiled
def hint_ahead(pairs, states, slots, tree, levels, draws, samples, rest, columns):
    """Prefetch what the draws of j in a block will probably lead to.

    The hints are drawn from μ as it is now, level by level of the tree. `columns` says where the
    draws of j, s' and k are.
    """
    visited, visited_next, tried = columns
    z = tree_total(tree, levels)
    for t in range(len(draws)):
        samples[t, visited] = 0
        rest[t] = draws[t, visited] * z
        for level in range(1, min(4, len(levels))):
            prefetch(tree, levels[level] + samples[t, tried] // FAN ** (level + 1))
    # From the root down to the pair j.
    for level in range(len(levels) - 1, -1, -1):
        for t in range(len(draws)):
            pair = np.int64(samples[t, visited])
            child, rest[t] = node_draw(tree, levels[level] + pair, rest[t])
            pair = FAN * pair + child
            samples[t, visited] = pair
            if level > 0:
                prefetch(tree, levels[level - 1] + pair)
            else:
                prefetch(pairs, pair)
    # Its state, its alias table, and the next state s'.
    for t in range(len(draws)):
        pair = pairs[samples[t, visited]]
        prefetch(slots, pair.row + np.int64(draws[t, visited_next] * pair.row_length))
        prefetch(states, np.int64(pair.state))
    for t in range(len(draws)):
        pair = pairs[samples[t, visited]]
        prefetch(states, np.int64(alias_draw(slots, pair.row, pair.row_length, draws[t, visited_next])))
