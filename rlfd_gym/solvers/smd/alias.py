"""Alias tables: samples from a fixed distribution in constant time (Walker; built as Vose does).

A table is a row of slots. A uniform draw in [0, 1) is multiplied by the number of slots. The
integer part of the product picks a slot, and the rest decides between the slot's own outcome and
its alias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rlfd_gym._checks import FloatArray
from rlfd_gym._compiled import aligned, compiled, inlined
from rlfd_gym.solvers.smd.intrinsics import view

SLOT = np.dtype([("threshold", "f8"), ("keep", "i4"), ("alias", "i4")])


def distribution_table(weights: FloatArray) -> np.ndarray[Any, Any]:
    """Build the table of one distribution, over the entries with positive weight."""
    return row_tables(sp.csr_array(np.where(weights > 0, weights, 0.0)[None, :]))


def row_tables(matrix: sp.csr_array) -> np.ndarray[Any, Any]:
    """Build one table per row of a sparse matrix, in the positions of the row's entries."""
    slots = aligned(matrix.nnz, SLOT)
    starts, outcomes = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
    slots["threshold"], slots["keep"], slots["alias"] = 1.0, outcomes, outcomes
    longest = int(np.diff(starts).max())
    fill_rows(slots.view(np.float64), starts, outcomes, matrix.data, np.empty(longest), np.empty(longest, np.int64))
    return slots


@inlined
def alias_draw(slots, first, length, draw):
    """Sample from the alias table slots[first:first+length] by a uniform draw."""
    x = draw * length
    slot = np.int64(x)
    entry = slots[first + slot]
    keep, alias = entry.keep, entry.alias  # both are read before the choice: no branch
    return keep if x - slot < entry.threshold else alias


@compiled
def fill_rows(slot_buffer, starts, outcomes, weights, scaled, stack):
    """Build Vose's alias table of each row, of slots that keep their own outcome until now.

    `scaled` and `stack` are scratch space for a row.
    """
    slots = view(slot_buffer, SLOT)
    for row in range(len(starts) - 1):
        first = starts[row]
        m = starts[row + 1] - first
        total = 0.0
        for x in range(first, first + m):
            total += weights[x]
        # One array holds both stacks: that of the small slots grows from its front, that of the large
        # ones from position m down.
        small, large = 0, m
        for x in range(m):
            scaled[x] = weights[first + x] * (m / total)
            if scaled[x] < 1.0:
                stack[small] = x
                small += 1
            else:
                large -= 1
                stack[large] = x
        # A large slot fills up a small one and becomes its alias.
        while small > 0 and large < m:
            small -= 1
            x, y = stack[small], stack[large]
            slots[first + x].threshold = scaled[x]
            slots[first + x].alias = outcomes[first + y]
            scaled[y] -= 1.0 - scaled[x]
            if scaled[y] < 1.0:
                large += 1
                stack[small] = y
                small += 1


@compiled
def draw_many(slot_buffer, draws, out):
    """Sample one outcome for each uniform draw, all from a single table."""
    slots = view(slot_buffer, SLOT)
    for t in range(len(draws)):
        out[t] = alias_draw(slots, 0, len(slots), draws[t])
