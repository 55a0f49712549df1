"""Algorithm 1 in plain NumPy: one version to time against, one that replays given samples."""

from __future__ import annotations

import numpy as np

from rlfd_gym import RLfDProblem


def pull(problem: RLfDProblem, cost, prior):
    """The (sub)gradient of the penalty at a pair, or at all: sign is 0 at 0."""
    if problem.regulariser == "l1":
        return problem.alpha * np.sign(cost - prior)
    return 2 * problem.alpha * (cost - prior)


def descend(x, g_c, eta, basis):
    """The step for c on the box, or that for w on the hull of a basis."""
    if basis is None:
        return np.clip(x - eta * g_c, -1, 1)
    x = x * np.exp(-eta * (basis.T @ g_c))
    return x / x.sum()


def plain_smd(
    problem: RLfDProblem, eta: float, eta_mu: float, start, n_steps: int, rng: np.random.Generator, basis=None
):
    """As a researcher would write it: dense vectors, `rng.choice` for every draw that is not uniform."""
    mdp, prior, expert = problem.mdp, problem.prior, problem.expert
    P, states, gamma = mdp.transitions.toarray(), mdp.pair_states, mdp.discount
    n, n_states = P.shape
    x, u, mu = (vector.copy() for vector in start)  # x is c, or w
    x_avg, u_avg, mu_avg = np.zeros(len(x)), np.zeros(n_states), np.zeros(n)
    for t in range(1, n_steps + 1):
        c = x if basis is None else basis @ x
        i = rng.integers(n)
        j = rng.choice(n, p=mu)
        next_j = rng.choice(n_states, p=P[j])
        e = rng.choice(n, p=expert)
        next_e = rng.choice(n_states, p=P[e])
        g_c = np.zeros(n)
        g_c[i] += n * pull(problem, c[i], prior[i])
        g_c[e] += 1
        g_c[j] -= 1
        g_u = np.zeros(n_states)
        g_u[states[j]] += 1
        g_u[next_j] -= gamma
        g_u[states[e]] -= 1
        g_u[next_e] += gamma
        g_u /= 1 - gamma

        k = rng.integers(n)
        next_k = rng.choice(n_states, p=P[k])
        g_mu = np.zeros(n)
        g_mu[k] = n * (c[k] - (u[states[k]] - gamma * u[next_k]) / (1 - gamma))

        x = descend(x, g_c, eta, basis)
        u = np.clip(u - eta * g_u, -1, 1)
        mu = mu * np.exp(-eta_mu * g_mu)
        mu = mu / mu.sum()

        x_avg += (x - x_avg) / t
        u_avg += (u - u_avg) / t
        mu_avg += (mu - mu_avg) / t
    return x_avg, u_avg, mu_avg


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
