"""Algorithm 1 in plain NumPy, as a researcher would write it.

`benchmark.py` times the library against it.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym import RLfDProblem


def pull(problem: RLfDProblem, cost, prior):
    """Return the (sub)gradient of the penalty at one pair, or at all pairs; sign is 0 at 0."""
    if problem.regulariser == "l1":
        return problem.alpha * np.sign(cost - prior)
    return 2 * problem.alpha * (cost - prior)


def descend(x, g_c, eta, basis, low=-1, high=1):
    """Take the step for c on the box or on intervals, or the step for w on the hull of a basis."""
    if basis is None:
        return np.clip(x - eta * g_c, low, high)
    x = x * np.exp(-eta * (basis.T @ g_c))
    return x / x.sum()


def plain_smd(
    problem: RLfDProblem, eta: float, eta_mu: float, start, n_steps: int, rng: np.random.Generator, basis=None
):
    """Run Algorithm 1 with dense vectors, and return the averages.

    Every draw that is not uniform uses `rng.choice`.
    """
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
