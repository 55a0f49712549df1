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

SLOT = np.dtype([("threshold", "f8"), ("keep", "i4"), ("alias", "i4")])


def distribution_table(weights: FloatArray) -> np.ndarray[Any, Any]:
    """Build the table of one distribution, over the entries with positive weight."""
    support = np.flatnonzero(weights > 0).astype(np.int32)
    slots = aligned(len(support), SLOT)
    scratch = np.empty(len(support)), np.empty(len(support), np.int64)
    fill_alias(slots, 0, support, np.ascontiguousarray(weights[support], dtype=np.float64), *scratch)
    return slots


def row_tables(matrix: sp.csr_array) -> np.ndarray[Any, Any]:
    """Build one table per row of a sparse matrix, in the positions of the row's entries."""
    slots = aligned(matrix.nnz, SLOT)
    _fill_rows(slots, matrix.indptr, matrix.indices, matrix.data)
    return slots


@inlined
def alias_draw(slots, first, length, draw):
    """Sample from the alias table slots[first:first+length] by a uniform draw."""
    x = draw * length
    slot = int(x)
    entry = slots[first + slot]
    keep, alias = entry.keep, entry.alias  # both are read before the choice: no branch
    return keep if x - slot < entry.threshold else alias


@compiled
def fill_alias(slots, first, outcomes, weights, scaled, stack):
    """Build Vose's alias table of one distribution in slots[first:first+len(weights)].

    `scaled` and `stack` are scratch space.
    """
    m = len(weights)
    total = weights.sum()
    # One array holds both stacks: that of the small slots grows from its front, that of the large
    # ones from position m down.
    small, large = 0, m
    for x in range(m):
        slots[first + x].keep = outcomes[x]
        slots[first + x].alias = outcomes[x]
        slots[first + x].threshold = 1.0
        scaled[x] = weights[x] * (m / total)
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
        slots[first + x].alias = outcomes[y]
        scaled[y] -= 1.0 - scaled[x]
        if scaled[y] < 1.0:
            large += 1
            stack[small] = y
            small += 1


@compiled
def draw_many(slot_buffer, draws):
    """Sample one outcome for each uniform draw, all from a single table."""
    slots = slot_buffer.view(SLOT)
    out = np.empty(len(draws), np.int64)
    for t in range(len(draws)):
        out[t] = alias_draw(slots, 0, len(slots), draws[t])
    return out


@compiled
def _fill_rows(slots, indptr, indices, data):
    """Build one alias table per row."""
    longest = np.max(indptr[1:] - indptr[:-1])
    scaled, stack = np.empty(longest), np.empty(longest, np.int64)
    for i in range(len(indptr) - 1):
        first, last = indptr[i], indptr[i + 1]
        fill_alias(slots, first, indices[first:last], data[first:last], scaled, stack)
