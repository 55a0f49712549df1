"""The one source of random MDPs: small, with state-dependent actions and sparse rows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from rlfd_gym import RLfDProblem, TabularMDP


def _distribution(rng: np.random.Generator, size: int) -> np.ndarray:
    """A random probability vector with some zeros."""
    weights = rng.exponential(size=size) * (rng.random(size) < 0.7)
    if weights.sum() == 0:
        weights[rng.integers(size)] = 1.0
    return weights / weights.sum()


def make_mdp(seed: int, n_states: int, n_actions: int, discount: float) -> TabularMDP:
    """A random MDP: sparse rows, random action sets, possibly states that are never entered."""
    rng = np.random.default_rng(seed)
    feasible = rng.random((n_states, n_actions)) < 0.7
    feasible[np.arange(n_states), rng.integers(n_actions, size=n_states)] = True
    states, actions = np.nonzero(feasible)
    rows = np.array([_distribution(rng, n_states) for _ in states])
    return TabularMDP(rows, states, actions, _distribution(rng, n_states), discount, n_actions)


@st.composite
def mdps(draw: st.DrawFn, max_states: int = 6, max_actions: int = 4, max_discount: float = 0.99) -> TabularMDP:
    return make_mdp(
        draw(st.integers(0, 2**32 - 1)),
        draw(st.integers(1, max_states)),
        draw(st.integers(1, max_actions)),
        draw(st.floats(0.05, max_discount)),
    )


def random_policy(mdp: TabularMDP, seed: int) -> np.ndarray:
    """A random policy, often deterministic in some states."""
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=mdp.n_pairs) * (rng.random(mdp.n_pairs) < 0.7)
    return mdp.policy_of(weights)


def random_cost(mdp: TabularMDP, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, mdp.n_pairs)


seeds = st.integers(0, 2**32 - 1)


def make_problem(
    seed: int, n_states: int = 5, n_actions: int = 3, discount: float = 0.7, alpha: float = 0.1, regulariser: str = "l2"
):
    """A random problem with a random expert, who need not be optimal for anything, and a random prior."""
    mdp = make_mdp(seed, n_states, n_actions, discount)
    expert = mdp.occupancy_of(random_policy(mdp, seed + 1))
    return RLfDProblem(mdp, expert, random_cost(mdp, seed + 2), alpha, regulariser)


@st.composite
def problems(draw: st.DrawFn, max_states: int = 5, max_actions: int = 3, max_discount: float = 0.95) -> RLfDProblem:
    """Random problems; the prior may leave the box, the expert may be sampled rather than a true occupancy."""
    mdp = draw(mdps(max_states, max_actions, max_discount))
    rng = np.random.default_rng(draw(seeds))
    expert = mdp.occupancy_of(random_policy(mdp, int(rng.integers(2**32))))
    if draw(st.booleans()):
        expert = rng.multinomial(50, expert / expert.sum()) / 50
    prior = rng.uniform(-1, 1, mdp.n_pairs) * draw(st.sampled_from([0.5, 1.0, 3.0]))
    return RLfDProblem(mdp, expert, prior, draw(st.sampled_from([0.0, 1e-3, 0.1, 2.0])))


def random_point(problem: RLfDProblem, seed: int):
    """A random feasible (c, u, μ)."""
    rng = np.random.default_rng(seed)
    n, n_states = problem.n_pairs, problem.n_states
    return rng.uniform(-1, 1, n), rng.uniform(-1, 1, n_states), rng.dirichlet(np.full(n, 0.5))
