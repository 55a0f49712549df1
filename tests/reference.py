"""Algorithm 1 in plain NumPy, with given samples."""

from __future__ import annotations

import numpy as np
from plain_smd import descend, pull

from rlfd_gym import RLfDProblem


def replay(problem: RLfDProblem, eta: float, eta_mu: float, start, samples, draws, basis=None, eta_value=None):
    """Dense steps with given samples (i, j, s', e, s'_e, k, s'_k).

    Weights are kept as logarithms, so that the comparison also holds where a plain product would underflow. Returns the
    averages, the last iterate, and the largest distance of a draw from the interval of the distribution function of μ
    that belongs to the j that was taken for it.
    """
    prior, states, gamma = problem.prior, problem.mdp.pair_states, problem.mdp.discount
    x, u, mu = (vector.copy() for vector in start)  # x is c, or w
    n = len(mu)
    eta_value = eta if eta_value is None else eta_value
    with np.errstate(divide="ignore"):
        log_mu = np.log(mu)
    sums = [np.zeros_like(x), np.zeros_like(u), np.zeros_like(mu)]
    miss = 0.0
    for (i, j, next_j, e, next_e, k, next_k), draw in zip(samples.tolist(), draws, strict=True):
        c = x if basis is None else basis @ x
        upper = mu[: j + 1].sum()
        miss = max(miss, draw - upper, (upper - mu[j]) - draw)
        g_mu = n * (c[k] - (u[states[k]] - gamma * u[next_k]) / (1 - gamma))
        g_c = np.zeros_like(c)
        np.add.at(g_c, [i, e, j], [n * pull(problem, c[i], prior[i]), 1.0, -1.0])
        g_u = np.zeros_like(u)
        np.add.at(g_u, [states[j], next_j, states[e], next_e], [1.0, -gamma, -1.0, gamma])
        x = descend(x, g_c, eta, basis)
        u = np.clip(u - eta_value * g_u / (1 - gamma), -1, 1)
        log_mu[k] -= eta_mu * g_mu
        log_mu -= log_mu.max()
        mu = np.exp(log_mu)
        log_mu -= np.log(mu.sum())
        mu /= mu.sum()
        for total, new in zip(sums, (x, u, mu), strict=True):
            total += new
    return [total / len(samples) for total in sums], (x, u, mu), miss
