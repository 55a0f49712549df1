"""Three operations on a node of the sum tree as vector code, a view of records, and what each means in plain Python.

LLVM turns the plain form of the three into branches, which a processor mispredicts half of the time.
The plain form of the view takes numba as long to compile as a small kernel. What is used instead is
written in LLVM's own language, so a new release of llvmlite or numba might refuse it. Then the plain forms,
which give the same numbers to the bit, are used with a warning.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from rlfd_gym._compiled import compiled, inlined

FAN = 8  # children per node: 8 doubles are one cache line
WEIGHT = np.dtype("f8")
TWO_WEIGHTS = np.dtype([("first", "f8"), ("second", "f8")])


@inlined
def plain_prefetch(array, index):
    """Do nothing."""


@inlined
def plain_scan(tree, node, x):
    """Return the child in which x falls, at most the last, and x - sum of those before it."""
    a, b, c, d = tree[node, 0], tree[node, 1], tree[node, 2], tree[node, 3]
    e, f, g = tree[node, 4], tree[node, 5], tree[node, 6]
    # Inclusive prefix sums in log2(8) rounds, of what is 1, 2 and 4 places before; the last one is not needed.
    g, f, e, d, c, b = g + f, f + e, e + d, d + c, c + b, b + a
    g, f, e, d, c = g + e, f + d, e + c, d + b, c + a
    g, f, e = g + c, f + b, e + a
    child, before = 0, 0.0
    for total in (a, b, c, d, e, f, g):
        if x >= total:
            child += 1
            before = max(before, total)
    return np.int64(child), x - before


@inlined
def plain_set(tree, node, child, weight):
    """Set one child of a node and return the sum of its children, all added anew."""
    tree[node, child] = weight
    entries = tree[node]
    even = (entries[0] + entries[4]) + (entries[2] + entries[6])
    return even + ((entries[1] + entries[5]) + (entries[3] + entries[7]))


@njit(inline="always")  # no call could return an array to a kernel that counts no references
def plain_view(array, dtype):
    """Return a contiguous array as one of another type, in one dimension."""
    return array.reshape(array.size).view(dtype)


@intrinsic
def vector_prefetch(typingctx, array, index):
    """Request the cache line at array[index] without waiting for it."""

    def codegen(context, builder, signature, args):
        line = _line(context, builder, signature.args[0], args)
        flag = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [line.type, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0")
        builder.call(function, [line, flag(0), flag(3), flag(1)])  # to read; keep in all levels; data cache
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


@intrinsic
def vector_scan(typingctx, tree, node, x):
    """Return the child in which x falls, at most the last, and x - sum of those before it.

    This is `plain_scan` as eight-wide vector code.
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
def vector_set(typingctx, tree, node, child, weight):
    """Set one child of a node and return the sum of its children, all added anew.

    This is `plain_set` with a vector that is read, changed and written as a whole: reading a
    vector from scalars that were just written (or the other way round, in the next draw) would
    stall.
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


@intrinsic
def emitted_view(typingctx, array, dtype):
    """Return a contiguous array as one of another type, in one dimension."""
    from numba.core.imputils import impl_ret_borrowed
    from numba.np.arrayobj import populate_array

    if array.layout != "C" or not array.mutable:
        return None
    entry = types.Array(dtype.dtype, 1, "C", aligned=not isinstance(dtype.dtype, types.Record))

    def codegen(context, builder, signature, args):
        source = context.make_array(signature.args[0])(context, builder, args[0])
        target = context.make_array(entry)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(dtype.dtype)))
        populate_array(
            target,
            data=builder.bitcast(source.data, target.data.type),
            shape=[builder.udiv(builder.mul(source.nitems, source.itemsize), size)],
            strides=[size],
            itemsize=size,
            meminfo=source.meminfo,
            parent=source.parent,
        )
        return impl_ret_borrowed(context, builder, entry, target._getvalue())

    return entry(array, dtype), codegen


def _splat(builder, scalar):
    """Emit code for a vector that has the same number FAN times."""
    vector = ir.Constant(ir.VectorType(scalar.type, FAN), ir.Undefined)
    vector = builder.insert_element(vector, scalar, ir.IntType(32)(0))
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), FAN), [0] * FAN))


def _line(context, builder, array_type, args):
    """Emit code for the address of array[index] (contiguous, first axis).

    `args` is (array, index, ...).
    """
    array = context.make_array(array_type)(context, builder, args[0])
    stride = cgutils.unpack_tuple(builder, array.strides)[0]
    base = builder.ptrtoint(array.data, ir.IntType(64))
    return builder.inttoptr(builder.add(base, builder.mul(args[1], stride)), ir.IntType(8).as_pointer())


@compiled
def _trial(tree):
    """Use each of the operations once."""
    vector_prefetch(tree, 0)
    total = vector_set(tree, 0, 0, 1.0)
    return total, vector_scan(tree, 0, 0.5), emitted_view(tree, TWO_WEIGHTS)[0].first, len(emitted_view(tree, WEIGHT))


def _emitted_code_works() -> bool:
    """Compile and run the code on a single node; warn if that fails."""
    try:
        return _trial(np.zeros((1, FAN))) == (1.0, (0, 0.5), 1.0, FAN)
    except Exception as error:  # whatever numba and llvmlite may raise
        warnings.warn(
            f"numba refuses the library's own code for Algorithm 1 ({error}): it is slower",
            RuntimeWarning,
            stacklevel=2,
        )
        return False


_WORKS = _emitted_code_works()
prefetch: Any = vector_prefetch if _WORKS else plain_prefetch
node_scan: Any = vector_scan if _WORKS else plain_scan
node_set: Any = vector_set if _WORKS else plain_set
view: Any = emitted_view if _WORKS else plain_view
