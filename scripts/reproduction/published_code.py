"""What the published code does differently; this is for comparison only, not part of the library.

**Overwriting.** In a step, the paper's estimators add up unit vectors at the sampled indices,

    g_c = 2αn(cᵢ - ĉᵢ) eᵢ - e_j + e_E,
    g_u = (e_{s_j} - γ e_{s'_j} - e_{s_E} + γ e_{s'_E}) / (1-γ).

The published code assigns instead of adding, in this order. Where indices coincide, the later
entry replaces the earlier one, and the estimators are biased, most of all where the expert and the
apprentice agree.

**The gap of the published figures** scales Tγ by 1/(1-γ) a second time, weighs the bilinear term
by 1-α, and replaces (Tγᵀu)(s, a) by a number that does not depend on s: a sum over states inside
the loop over states uses the loop's own letter, and adds up the entries at which both are equal,

    Σ_σ (1 - γ P(σ|σ, a)) u(σ) / (1-γ)²    for every s.

**SMD-H** ran on the features (a, s+a, -sales) themselves, with entries up to 2M, not scaled into
the unit box.
"""

from __future__ import annotations

import numba
import numpy as np

from rlfd_gym import RLfDProblem

DRAWS = 7  # i, j, s'_j, e, s'_e, k, s'_k


def overwriting_smd(
    problem: RLfDProblem, n_iterations: int, n_runs: int, step_size: float, seed: int, n_jobs: int = 1
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run Algorithm 1 with estimators that overwrite.

    Return the averages (cost, value, occupancy) of each run.
    """
    from joblib import Parallel, delayed

    tables = tables_of(problem)

    def run(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng([seed, number])
        n = problem.n_pairs
        weights = rng.random(n)
        start = rng.uniform(-1, 1, n), rng.uniform(-1, 1, problem.n_states), weights / weights.sum()
        samples = np.empty((n_iterations, DRAWS), np.int64)
        return dense_steps(*tables, *start, rng.random((n_iterations, DRAWS)), step_size, step_size, True, samples)

    results = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(run)(number) for number in range(n_runs))
    cost, value, occupancy = (np.array(runs) for runs in zip(*results, strict=True))
    return cost, value, occupancy


def tables_of(problem: RLfDProblem) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Return what `dense_steps` needs of a problem."""
    reach = np.cumsum(problem.mdp.transitions.toarray(), axis=1)
    return (
        np.asarray(problem.mdp.pair_states),
        reach,
        np.cumsum(problem.expert),
        np.asarray(problem.prior),
        problem.alpha,
        problem.discount,
    )


@numba.njit(nogil=True, cache=True)
def dense_steps(
    states, reach, expert, prior, alpha, gamma, cost, value, occupancy, draws, eta, eta_mu, overwrite, samples
):  # type: ignore[no-untyped-def]
    """Return the averages of the iterates of one run; fill `samples` with the drawn indices."""
    n, n_states = reach.shape
    c, u, mu = cost.copy(), value.copy(), occupancy.copy()
    c_sum, u_sum, mu_sum = np.zeros(n), np.zeros(n_states), np.zeros(n)
    g_u = np.zeros(n_states)
    total = mu.sum()
    for t in range(len(draws)):
        i = min(int(draws[t, 0] * n), n - 1)
        target, j = draws[t, 1] * total, 0
        left = mu[0]
        while left <= target and j < n - 1:
            j += 1
            left += mu[j]
        next_j = min(np.searchsorted(reach[j], draws[t, 2], "right"), n_states - 1)
        e = min(np.searchsorted(expert, draws[t, 3], "right"), n - 1)
        next_e = min(np.searchsorted(reach[e], draws[t, 4], "right"), n_states - 1)
        k = min(int(draws[t, 5] * n), n - 1)
        next_k = min(np.searchsorted(reach[k], draws[t, 6], "right"), n_states - 1)
        samples[t] = i, j, next_j, e, next_e, k, next_k

        g_mu = n * (c[k] - (u[states[k]] - gamma * u[next_k]) / (1 - gamma))
        pull = 2 * alpha * n * (c[i] - prior[i])
        touched = (states[j], next_j, states[e], next_e)
        for s in touched:
            g_u[s] = 0.0
        if overwrite:
            g_i, g_j, g_e = pull, -1.0, 1.0
            if i in (e, j):
                g_i = 0.0
            if j == e:
                g_j = 0.0
            g_u[states[j]] = 1.0
            g_u[next_j] = -gamma
            g_u[states[e]] = -1.0
            g_u[next_e] = gamma
        else:
            g_i, g_j, g_e = pull, -1.0, 1.0
            g_u[states[j]] += 1.0
            g_u[next_j] -= gamma
            g_u[states[e]] -= 1.0
            g_u[next_e] += gamma

        # Entries that add up at one index must be clipped once, after their sum.
        c[i] -= eta * g_i
        c[j] -= eta * g_j
        c[e] -= eta * g_e
        for index in (i, j, e):
            c[index] = min(max(c[index], -1.0), 1.0)
        for s in touched:
            u[s] -= eta * g_u[s] / (1 - gamma)
            u[s] = min(max(u[s], -1.0), 1.0)
            g_u[s] = 0.0
        mu[k] *= np.exp(-eta_mu * g_mu)
        mu /= mu.sum()
        total = 1.0
        c_sum += c
        u_sum += u
        mu_sum += mu
    return c_sum / len(draws), u_sum / len(draws), mu_sum / len(draws)


def published_gap(problem: RLfDProblem, cost: np.ndarray, value: np.ndarray, occupancy: np.ndarray) -> float:
    """Return the duality gap by the published code's formula."""
    mdp, alpha, weight = problem.mdp, problem.alpha, 1 - problem.alpha
    stays = mdp.transitions[np.arange(mdp.n_pairs), mdp.pair_states]
    entries = (1 - mdp.discount * stays) / (1 - mdp.discount) ** 2
    by_action = np.bincount(mdp.pair_actions, weights=entries * value[mdp.pair_states])
    slack = cost - by_action[mdp.pair_actions]
    d = problem.expert - occupancy
    upper = alpha * np.sum((cost - problem.prior) ** 2) + weight * (problem.expert @ slack - slack.min())
    best = np.clip(problem.prior - weight * d / (2 * alpha), -1, 1) if alpha > 0 else -np.sign(d)
    surplus = np.bincount(mdp.pair_actions, weights=d)[mdp.pair_actions]
    least = -np.abs(mdp.sum_by_state(entries * surplus)).sum()  # over the values in the box
    lower = alpha * np.sum((best - problem.prior) ** 2) + weight * (d @ best + least)
    return float(upper - lower)


def unscaled_hull(
    problem: RLfDProblem, basis: np.ndarray, n_iterations: int, n_runs: int, step_size: float, seed: int
) -> np.ndarray:
    """Return the averaged occupancy of each run of SMD-H at α = 0, on a basis of any size."""
    states, reach, expert, _, _, gamma = tables_of(problem)
    occupancies = []
    for number in range(n_runs):
        rng = np.random.default_rng([seed, number])
        weights, mu = rng.random(basis.shape[1]), rng.random(problem.n_pairs)
        start = weights / weights.sum(), rng.uniform(-1, 1, problem.n_states), mu / mu.sum()
        draws, samples = rng.random((n_iterations, DRAWS)), np.empty((n_iterations, DRAWS), np.int64)
        occupancies.append(hull_steps(states, reach, expert, gamma, basis, *start, draws, step_size, samples))
    return np.array(occupancies)


@numba.njit(nogil=True, cache=True)
def hull_steps(states, reach, expert, gamma, basis, weights, value, occupancy, draws, eta, samples):  # type: ignore[no-untyped-def]
    """Return the averaged occupancy of one run of SMD-H at α = 0.

    Its estimators add up; `samples` is filled with the drawn indices.
    """
    n, n_states = reach.shape
    w, u, mu = weights.copy(), value.copy(), occupancy.copy()
    mu_sum = np.zeros(n)
    for t in range(len(draws)):
        j, left = 0, mu[0]
        while left <= draws[t, 1] and j < n - 1:
            j += 1
            left += mu[j]
        next_j = min(np.searchsorted(reach[j], draws[t, 2], "right"), n_states - 1)
        e = min(np.searchsorted(expert, draws[t, 3], "right"), n - 1)
        next_e = min(np.searchsorted(reach[e], draws[t, 4], "right"), n_states - 1)
        k = min(int(draws[t, 5] * n), n - 1)
        next_k = min(np.searchsorted(reach[k], draws[t, 6], "right"), n_states - 1)
        samples[t] = min(int(draws[t, 0] * n), n - 1), j, next_j, e, next_e, k, next_k
        g_mu = n * ((basis[k] * w).sum() - (u[states[k]] - gamma * u[next_k]) / (1 - gamma))
        w = w * np.exp(-eta * (basis[e] - basis[j]))
        w /= w.sum()
        u[states[j]] -= eta / (1 - gamma)
        u[next_j] += eta * gamma / (1 - gamma)
        u[states[e]] += eta / (1 - gamma)
        u[next_e] -= eta * gamma / (1 - gamma)
        for s in (states[j], next_j, states[e], next_e):
            u[s] = min(max(u[s], -1.0), 1.0)
        mu[k] *= np.exp(min(-eta * g_mu, 700.0))
        mu /= mu.sum()
        mu_sum += mu
    return mu_sum / len(draws)
