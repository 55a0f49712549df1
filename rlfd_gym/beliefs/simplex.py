r"""The best mixture in a simplex for a quadratic cost, and how far another mixture is from it.

**The best mixture** for f(w) = α wᵀGw + <h, w>, with G = CᵀC, is found by exchanges: the entry
with the smallest gradient takes weight from the entry for which this decreases f most, and takes
the amount that decreases f most. For whatever b this ends with, convexity gives
f(w') ≥ f(b) + <g, w' - b> with g = ∇f(b), so min f ≥ f(b) - <g, b> + min g. As f is quadratic,

    f(w) - min f  ≤  <w, g - min g> + α (w - b)ᵀG(w - b),

with equality if b is the best mixture. Neither term is negative, so nothing cancels.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym._compiled import allocating

TOLERANCE = 1e-14  # of the gradient, relative to its largest terms
LIMIT = 100_000  # exchanges; a few dozen are usual, and the bound holds wherever they end


@allocating
def best_mixture(gram, linear, alpha):
    """Return the w in the simplex that minimises α wᵀGw + <h, w>, up to rounding or `LIMIT`."""
    size = len(linear)
    best = np.zeros(size)
    first = np.argmin(np.array([alpha * gram[k, k] + linear[k] for k in range(size)]))
    best[first] = 1.0
    gradient = linear + 2.0 * alpha * gram[first]
    smallest_excess = TOLERANCE * (np.abs(linear).max() + 2.0 * alpha * np.abs(gram).max())
    for _ in range(LIMIT):
        taker = np.argmin(gradient)
        giver, amount, decrease, excess = taker, 0.0, 0.0, 0.0
        for k in range(size):
            steepness = gradient[k] - gradient[taker]
            if best[k] > 0.0 and steepness > 0.0:
                excess += best[k] * steepness
                curvature = max(2.0 * alpha * (gram[k, k] + gram[taker, taker] - 2.0 * gram[k, taker]), 0.0)
                step = min(best[k], steepness / curvature)
                if step * (steepness - 0.5 * step * curvature) > decrease:
                    giver, amount, decrease = k, step, step * (steepness - 0.5 * step * curvature)
        if excess <= smallest_excess or giver == taker:
            break
        best[giver] -= amount
        best[taker] += amount
        gradient += 2.0 * alpha * amount * (gram[taker] - gram[giver])
    return best


@allocating
def excess_of(gram, linear, alpha, weight):
    """Return a certified upper bound on f(w) - min f, which is tight up to rounding."""
    best = best_mixture(gram, linear, alpha)
    gradient = linear.copy()
    for k in range(len(best)):
        gradient += 2.0 * alpha * best[k] * gram[k]
    smallest = gradient.min()
    excess = 0.0
    for k in range(len(best)):
        excess += weight[k] * (gradient[k] - smallest)
        for m in range(len(best)):
            excess += alpha * (weight[k] - best[k]) * gram[k, m] * (weight[m] - best[m])
    return excess
