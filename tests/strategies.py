"""The one source of random MDPs: small, with state-dependent actions and sparse rows."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from rlfd_gym import TabularMDP


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
