"""Learning problems on five kinds of MDP, for the benchmark and the tests.

They differ in what makes solvers fast or slow: how far transitions lead, how many next states a
pair has, and how quickly the chain mixes.

| kind | next states of a pair | mixes |
|---|---|---|
| "grid" | 1 or 2, neighbours in the plane | slowly |
| "garnet5", "garnet20" | 5 or 20, anywhere | quickly |
| "queues" | up to 5, neighbours in three dimensions | slowly |
| "chain" | 2, neighbours on a line | very slowly |
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from rlfd_gym import RLfDProblem, TabularMDP, demonstrate, noisy_expert, occupancy_from_demonstrations
from rlfd_gym.envs import WindyGridworldEnv

KINDS = ("grid", "garnet5", "garnet20", "queues", "chain")
NOISE = 0.3  # the share of its moves in which the expert errs
ARRIVALS, SERVICES = (0.1, 0.08, 0.06), (0.3, 0.26, 0.2)  # chances in a step, for each queue
HOLDING = (1.0, 2.0, 3.0)  # what waiting costs in each queue; the prior takes all to be the same


def learning_problem(
    kind: str, n_pairs: int, discount: float, alpha: float, n_demonstrations: int | None = None
) -> RLfDProblem:
    """Return a problem with about `n_pairs` pairs, whose prior is right in part.

    With `n_demonstrations` the expert is estimated from as many, of up to 2,000 steps each.
    """
    mdp, cost, prior = world(kind, n_pairs, discount)
    expert = noisy_expert(mdp, cost, NOISE)
    if n_demonstrations is not None:
        length = int(min(3 / (1 - discount), 2_000))
        walks = demonstrate(mdp, mdp.policy_of(expert), n_demonstrations, length, seed=0)
        expert = occupancy_from_demonstrations(walks, mdp)
    return RLfDProblem(mdp, expert, prior, alpha)


def world(kind: str, n_pairs: int, discount: float) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
    """Return an MDP of a kind, its true cost and a prior."""
    if kind == "grid":
        side = round((n_pairs / 4) ** 0.5)
        env = WindyGridworldEnv(height=side, width=side, discount=discount)
        return env.mdp, env.cost, env.partial_prior(0.5, seed=0)
    if kind == "queues":
        return _queues(n_pairs, discount)
    if kind == "chain":
        return _chain(n_pairs, discount)
    return _garnet(n_pairs, discount, int(kind.removeprefix("garnet")))


def _garnet(n_pairs: int, discount: float, n_next: int) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
    """Four actions in each state, each with random next states and a random cost."""
    rng, n_states = np.random.default_rng(0), n_pairs // 4
    n = 4 * n_states
    chances, to = rng.dirichlet(np.ones(n_next), size=n).ravel(), rng.integers(n_states, size=n_next * n)
    cost = rng.uniform(-1, 1, n)
    mdp = _mdp(np.repeat(np.arange(n), n_next), to, chances, n_states, 4, discount)
    return mdp, cost, _half(cost, rng)


def _queues(n_pairs: int, discount: float) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
    """Three queues with room for as many customers each; an action serves one of them."""
    k, room = len(ARRIVALS), round((n_pairs / 3) ** (1 / 3))
    shape = (room,) * k
    states = np.arange(room**k)
    waiting = np.array(np.unravel_index(states, shape))

    def after(queue: int, change: int) -> np.ndarray:
        moved = waiting.copy()
        moved[queue] = np.clip(moved[queue] + change, 0, room - 1)
        return np.ravel_multi_index(tuple(moved), shape)

    rows, to, chances = [], [], []
    for action in range(k):
        events = [*((after(q, 1), ARRIVALS[q]) for q in range(k)), (after(action, -1), SERVICES[action])]
        events.append((states, 1 - sum(chance for _, chance in events)))
        for there, chance in events:
            rows.append(k * states + action)
            to.append(there)
            chances.append(np.full(states.size, chance))
    mdp = _mdp(np.concatenate(rows), np.concatenate(to), np.concatenate(chances), states.size, k, discount)

    def scaled(prices: np.ndarray) -> np.ndarray:
        total = prices @ waiting
        return np.repeat(2 * total / total.max() - 1, k)

    noise = 0.1 * np.random.default_rng(0).normal(size=mdp.n_pairs)
    return mdp, np.clip(scaled(np.array(HOLDING)) + noise, -1, 1), scaled(np.ones(k))


def _chain(n_pairs: int, discount: float) -> tuple[TabularMDP, np.ndarray, np.ndarray]:
    """States on a line; the two actions move left or right, and one in five moves slips."""
    rng, n_states = np.random.default_rng(0), n_pairs // 2
    states = np.arange(n_states)
    left, right = np.maximum(states - 1, 0), np.minimum(states + 1, n_states - 1)
    rows = np.concatenate([2 * states, 2 * states, 2 * states + 1, 2 * states + 1])
    chances = np.repeat([0.8, 0.2, 0.8, 0.2], n_states)
    mdp = _mdp(rows, np.concatenate([left, right, right, left]), chances, n_states, 2, discount)
    cost = np.repeat(np.where(rng.random(n_states) < 0.02, -1.0, rng.uniform(0, 1, n_states)), 2)
    return mdp, cost, _half(cost, rng)


def _mdp(
    rows: np.ndarray, to: np.ndarray, chances: np.ndarray, n_states: int, n_actions: int, discount: float
) -> TabularMDP:
    """Return the MDP with the same number of actions everywhere and a uniform start."""
    n = n_states * n_actions
    transitions = sp.csr_array((chances, (rows, to)), shape=(n, n_states))
    transitions.sum_duplicates()
    return TabularMDP(
        transitions, np.repeat(np.arange(n_states), n_actions), np.tile(np.arange(n_actions), n_states), None, discount
    )


def _half(cost: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the cost of a random half of the pairs, and 0 for the others."""
    return np.where(rng.random(cost.size) < 0.5, cost, 0.0)
