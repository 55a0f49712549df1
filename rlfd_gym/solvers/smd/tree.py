"""A sum tree over weights, for sampling in proportion to them while they change, one at a time.

A node holds the sums of its `FAN` = 8 children, which is one cache line; the leaves are the weights themselves, in
order. Setting a weight re-adds the eight entries of each node above it (`total - old + new` would cancel
catastrophically), and a draw descends from the root: both touch log₈ n nodes. The draw is the inverse-CDF sample: the
first pair j with w₀ + … + w_j > x.

The three intrinsics are vector code for one node each. Their plain-Python meaning is in their docstrings; LLVM turns
that plain form into branches, which a processor mispredicts half of the time.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rlfd_gym._compiled import compiled, inlined

FAN = 8  # children per node: 8 doubles are one cache line


def tree_shape(n: int) -> tuple[np.ndarray, int]:
    """The first node of each level, that of the weights first, and the number of nodes."""
    levels: list[int] = []
    size, nodes = 0, n
    while nodes > 1 or not levels:
        nodes = -(-nodes // FAN)
        levels.append(size)
        size += nodes
    return np.array(levels, np.int64), size


@inlined
def node_sum(tree, node):
    """Sum of the eight children of a node, added in pairs."""
    return ((tree[node, 0] + tree[node, 1]) + (tree[node, 2] + tree[node, 3])) + (
        (tree[node, 4] + tree[node, 5]) + (tree[node, 6] + tree[node, 7])
    )


@inlined
def tree_total(tree, levels):
    """Sum of all weights: the children of the root."""
    return node_sum(tree, levels[-1])


@inlined
def node_draw(tree, node, x):
    """`node_scan`, but a child with weight even when rounding has taken x past the end."""
    child, rest = node_scan(tree, node, x)
    if tree[node, child] <= 0.0:
        child = np.int64(FAN - 1)
        while child > 0 and tree[node, child] <= 0.0:
            child -= 1
    return child, rest


@inlined
def tree_draw(tree, levels, x):
    """The pair in which x, 0 <= x < total, falls."""
    pair = np.int64(0)
    for level in range(len(levels) - 1, -1, -1):
        child, x = node_draw(tree, levels[level] + pair, x)
        pair = FAN * pair + child
    return pair


@inlined
def tree_set(tree, levels, pair, weight):
    """Set one weight, re-add the nodes above it, return the new total."""
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


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line at array[index] without waiting for it."""

    def codegen(context, builder, signature, args):
        line = _line(context, builder, signature.args[0], args)
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [line.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [line, flag(0), flag(3), flag(1)])  # to read; keep in all levels; data cache
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def node_scan(typingctx, tree, node, x):
    """(child, x - sum of the children before it) for the child of a node in which x falls, at most the last one.

    In plain Python: ``sums = cumsum(tree[node]); child = sum(x >= sums[:7]); rest = x - ([0] + sums)[child]``.
    As eight-wide vector code, because LLVM turns the scalar selection of a float into branches: mispredicted ones.
    """

    def codegen(context, builder, signature, args):
        width = ir.IntType(32)
        vector = ir.VectorType(ir.DoubleType(), FAN)
        lanes = ir.VectorType(width, FAN)
        zeros = ir.Constant(vector, [0.0] * FAN)
        last_lane = FAN - 1

        load = builder.load(builder.bitcast(_line(context, builder, signature.args[0], args), vector.as_pointer()))
        load.align = 8  # as fast when the line is aligned, and safe when a copy of the tree is not
        sums = load
        for shift in (1, 2, 4):  # inclusive prefix sums in log2(8) rounds; lane 8 of the pair (sums, zeros) is a 0
            lane = [FAN if target < shift else target - shift for target in range(FAN)]
            sums = builder.fadd(sums, builder.shuffle_vector(sums, zeros, ir.Constant(lanes, lane)))
        sums = builder.insert_element(sums, ir.Constant(ir.DoubleType(), math.inf), width(last_lane))
        passed = builder.fcmp_ordered(">=", _splat(builder, args[2]), sums)
        child = builder.ctpop(builder.bitcast(passed, ir.IntType(FAN)))
        before = builder.select(passed, sums, zeros)
        for shift in (4, 2, 1):  # maximum over the lanes
            lane = ir.Constant(lanes, [(target + shift) % FAN for target in range(FAN)])
            other = builder.shuffle_vector(before, before, lane)
            before = builder.select(builder.fcmp_ordered(">", before, other), before, other)
        rest = builder.fsub(args[2], builder.extract_element(before, width(0)))
        return context.make_tuple(builder, signature.return_type, [builder.zext(child, ir.IntType(64)), rest])

    return types.Tuple((types.int64, types.float64))(tree, types.int64, types.float64), codegen


@intrinsic
def node_set(typingctx, tree, node, child, weight):
    """Set one child of a node; returns the sum of its children, all added anew.

    In plain Python: ``tree[node, child] = weight; return tree[node].sum()``. A vector is read, changed and written as a
    whole: reading a vector from just written scalars (or the other way round, in the next draw) would stall.
    """

    def codegen(context, builder, signature, args):
        width = ir.IntType(32)
        vector = ir.VectorType(ir.DoubleType(), FAN)
        lanes = ir.VectorType(width, FAN)
        line = builder.bitcast(_line(context, builder, signature.args[0], args), vector.as_pointer())
        load = builder.load(line)
        load.align = 8
        index = _splat(builder, builder.trunc(args[2], width))
        chosen = builder.icmp_signed("==", index, ir.Constant(lanes, list(range(FAN))))
        entries = builder.select(chosen, _splat(builder, args[3]), load)
        store = builder.store(entries, line)
        store.align = 8
        for shift in (4, 2, 1):
            lane = ir.Constant(lanes, [(target + shift) % FAN for target in range(FAN)])
            entries = builder.fadd(entries, builder.shuffle_vector(entries, entries, lane))
        return builder.extract_element(entries, width(0))

    return types.float64(tree, types.int64, types.int64, types.float64), codegen


def _splat(builder, scalar):
    """Code for a vector of FAN times the same number."""
    vector = ir.Constant(ir.VectorType(scalar.type, FAN), ir.Undefined)
    vector = builder.insert_element(vector, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), FAN), [0] * FAN))


def _line(context, builder, array_type, args):
    """Code for the address of array[index] (contiguous, first axis); args = (array, index, ...)."""
    array = context.make_array(array_type)(context, builder, args[0])
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    base = builder.ptrtoint(array.data, ir.IntType(64))
    return builder.inttoptr(builder.add(base, builder.mul(args[1], stride)), ir.IntType(8).as_pointer())
