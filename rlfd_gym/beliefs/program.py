"""`Program`: what solvers need of a belief whose costs are an affine function of a few numbers."""

from __future__ import annotations

from typing import NamedTuple

from rlfd_gym._checks import FloatArray


class Program(NamedTuple):
    """The belief's part of the small program in its K numbers x.

    The cost is `matrix` x + `shift`, the penalty is ½ xᵀHx + <`linear`, x> up to a constant, and x
    satisfies `low` ≤ x ≤ `high` and `equal` x = `total`.
    """

    matrix: FloatArray  # (n_pairs, K)
    shift: FloatArray  # (n_pairs,)
    hessian: FloatArray  # H, (K, K)
    linear: FloatArray
    low: FloatArray
    high: FloatArray
    equal: FloatArray  # (m, K), with m = 0 if there are no such rows
    total: FloatArray  # (m,)
