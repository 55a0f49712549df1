r"""Weights in a simplex: the cost Cw that they stand for, and their mirror step.

**The step** is mirror descent with the entropy on the weights w of a basis C, with the estimator
of `rlfd_gym.beliefs.hull`:

    w ← normalise(w ∘ exp(-(a Cᵢ + η (C_e - C_j))))          a = η n 2α (Cᵢw - ĉᵢ)

The logarithm is what is updated, so that no weight is lost by underflow.
"""

from __future__ import annotations

import math

import numpy as np

from rlfd_gym._compiled import inlined


@inlined
def combine(basis, weight, i):
    """Return Cᵢw."""
    total = 0.0
    for k in range(len(weight)):
        total += basis[i, k] * weight[k]
    return total


@inlined
def mirror_step(basis, log_weight, weight, weight_sum, drift, eta, i, j, e):
    """Make one step of the weights and add them to their sum.

    `drift` is a of the module's docstring.
    """
    largest = -np.inf
    for k in range(len(weight)):
        log_weight[k] -= drift * basis[i, k] + eta * (basis[e, k] - basis[j, k])
        largest = max(largest, log_weight[k])
    total = 0.0
    for k in range(len(weight)):
        log_weight[k] -= largest
        weight[k] = math.exp(log_weight[k])
        total += weight[k]
    for k in range(len(weight)):
        weight[k] /= total
        weight_sum[k] += weight[k]
