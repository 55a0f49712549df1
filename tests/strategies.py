"""The one source of problems: random MDPs, small, with state-dependent actions and sparse rows; a few named ones."""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import strategies as st

from rlfd_gym import BlackBoxProblem, RLfDProblem, SampledExpert, TabularMDP, noisy_expert
from rlfd_gym.beliefs import Ball, Hull, Intervals, NearPrior, Prices
from rlfd_gym.problem import HullProblem, Point, examples


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
far = partial(NearPrior, outside_box=True)
"""The belief in a prior that may leave the box."""


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
    return RLfDProblem(mdp, expert, belief=far(prior, draw(st.sampled_from([0.0, 1e-3, 0.1, 2.0]))))


def random_point(problem: RLfDProblem, seed: int):
    """A random feasible (c, u, μ)."""
    rng = np.random.default_rng(seed)
    n, n_states = problem.n_pairs, problem.n_states
    return rng.uniform(-1, 1, n), rng.uniform(-1, 1, n_states), rng.dirichlet(np.full(n, 0.5))


def random_problem(mdp: TabularMDP, seed: int, alpha: float, prior_size: float = 1.5) -> RLfDProblem:
    """Any expert, and a prior that may leave the box."""
    belief = far(prior_size * random_cost(mdp, seed + 1), alpha)
    return RLfDProblem(mdp, mdp.occupancy_of(random_policy(mdp, seed)), belief=belief)


def with_sampled_expert(problem: RLfDProblem, n_samples: int, seed: int) -> RLfDProblem:
    """The same problem with the expert estimated from a few draws: no policy has exactly this occupancy."""
    draws = np.random.default_rng(seed).multinomial(n_samples, problem.expert)
    return RLfDProblem(problem.mdp, draws / n_samples, belief=problem.belief)


def grid_problem(side: int = 10, alpha: float = 0.1, seed: int = 0, **options) -> RLfDProblem:
    """A windy gridworld, a noisy expert, and a prior that is right in half of the states."""
    env = examples.gridworld_env(side, **options)
    known = np.random.default_rng(seed).random(env.mdp.n_states) < 0.5
    prior = np.where(known[env.mdp.pair_states], env.cost, 0.0)
    return RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), prior, alpha)


def sparse(problem: RLfDProblem, alpha: float | None = None, weights=None) -> RLfDProblem:
    """The same problem with the ℓ1 penalty."""
    weight = problem.alpha if alpha is None else alpha
    return problem.with_belief(far(problem.prior, weight, norm="l1", weights=weights))


@st.composite
def sparse_problems(draw: st.DrawFn) -> RLfDProblem:
    """Random ℓ1 problems: priors outside the box, sampled experts, α from nothing to all, some with weights."""
    problem = draw(problems())
    rng = np.random.default_rng(draw(seeds))
    weights = rng.exponential(size=problem.n_pairs) * (rng.random(problem.n_pairs) < 0.8)
    alpha = draw(st.sampled_from([0.0, 1e-3, 0.03, 0.1, 2.0]))
    return sparse(problem, alpha, weights if draw(st.booleans()) else None)


def random_basis(n_pairs: int, size: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (n_pairs, size))


def hull_of(problem: RLfDProblem, size: int = 3, seed: int = 0) -> RLfDProblem:
    """The problem with its cost among the mixtures of a random basis."""
    return HullProblem(problem, random_basis(problem.n_pairs, size, seed))


def hull_point(hull: RLfDProblem, seed: int = 0) -> Point:
    """A random feasible (w, u, μ)."""
    _, u, mu = random_point(hull, seed)
    return Point(np.random.default_rng(seed).dirichlet(np.ones(hull.belief.basis.shape[1])), u, mu)


def small_shop():
    """An inventory of four articles."""
    return examples.inventory_env(max_inventory=4, demand_mean=2.0)


def black_box(env, n: int = 4000, alpha: float = 0.1, seed: int = 0) -> tuple[BlackBoxProblem, RLfDProblem]:
    """A problem known by its simulator alone, and the model-based problem with the same (empirical) expert."""
    mdp, rng = env.mdp, np.random.default_rng(seed)
    pairs = rng.choice(mdp.n_pairs, size=n, p=mdp.occupancy_of(mdp.uniform_policy()))
    states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
    expert = SampledExpert(states, actions, env.sample_next(states, actions, rng))
    sizes = {"n_states": mdp.n_states, "n_actions": mdp.n_actions, "discount": mdp.discount}
    box = BlackBoxProblem(env, expert, **sizes, prior=env.cost, alpha=alpha, feasible=mdp.feasible)
    counts = np.bincount(pairs, minlength=mdp.n_pairs) / n
    return box, RLfDProblem(mdp, counts, env.cost, alpha)


def believed_problem(kind: str, seed: int) -> RLfDProblem:
    """A random problem with the belief "intervals", "prices", "hull" or "ball", and with what is hard about it.

    Experts that are no occupancies, one state or one action, γ up to 0.99, sets of no width, prices in units a million
    apart, columns of zeros and columns twice, experts that are optimal for a cost of the set.
    """
    rng = np.random.default_rng(seed)
    sizes = int(rng.integers(1, 8)), int(rng.integers(1, 5))
    mdp = make_mdp(seed, *sizes, float(rng.choice([0.1, 0.5, 0.9, 0.95, 0.99])))
    n, width = mdp.n_pairs, rng.choice([0.0, 1e-6, 0.1, 0.5, 3.0])
    belief = _random_belief(kind, n, width, rng)
    truth = belief.cost(belief.best(rng.normal(size=n)))
    experts = (
        mdp.occupancy_of(random_policy(mdp, seed + 1)),
        rng.dirichlet(np.full(n, 0.3)),
        mdp.optimal(truth).occupancy,
    )
    return RLfDProblem(mdp, experts[rng.choice(3, p=[0.4, 0.4, 0.2])], belief=belief)


def _random_belief(kind: str, n: int, width: float, rng: np.random.Generator) -> Intervals | Ball | Hull | Prices:
    """A belief of the given kind, without a penalty."""
    if kind == "intervals":
        middle, half = rng.uniform(-1, 1, n), width * rng.random(n) * (rng.random(n) < 0.8)
        return Intervals(middle - half, middle + half)
    if kind == "ball":
        return Ball(rng.uniform(-1, 1, n), width)
    size = int(rng.integers(1, 7))
    columns = rng.uniform(-1, 1, (n, size)) * (rng.random((n, size)) < 0.6)
    columns[:, -1] *= rng.random() < 0.8
    columns[:, 0] = columns[:, -1] if rng.random() < 0.2 else columns[:, 0]
    if kind == "hull":
        return Hull(columns)
    unit = 10.0 ** rng.choice([-3, 0, 0, 3], size)
    low = rng.uniform(-1, 1, size)
    high = low + width * rng.random(size) * (rng.random(size) < 0.8)
    return Prices(columns * unit, low / unit, high / unit, rng.integers(2) * rng.uniform(-1, 1, n))
