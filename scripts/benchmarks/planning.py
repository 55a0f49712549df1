"""Benchmarks of tables, plans and draws."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp
from structures import KINDS, world

from benchmarks.lines import Line, grid, take_turns, unwrapped
from rlfd_gym import TabularMDP
from rlfd_gym.envs import TabularEnv

DISCOUNTS = (0.7, 0.9, 0.95, 0.99, 0.999)
SIZES = (10**4, 10**5, 10**6)
SWEEPS = (20, 5, 100)  # of QuantEcon between two improvements of the policy; the best of them counts
LIMIT = 60.0  # seconds for QuantEcon
SHORT = 2.0  # seconds, below which both take more turns


def forward() -> Iterator[Line]:
    """Time `mdp.optimal` with a million pairs.

    The baseline is QuantEcon's modified policy iteration, to the same accuracy.
    """
    from quantecon.markov import DiscreteDP

    grid(60).mdp.optimal(grid(60).cost)  # compile
    for discount in (0.7, 0.95):
        env = grid(500, discount)
        mdp = env.mdp
        program = DiscreteDP(-env.cost, sp.csr_matrix(mdp.transitions), mdp.discount, mdp.pair_states, mdp.pair_actions)
        epsilon = 2e-9 / (1 - discount)  # QuantEcon's values are not normalised; its result is accurate to epsilon/2

        def quantecon(program: DiscreteDP = program, epsilon: float = epsilon) -> object:
            return program.solve(method="mpi", epsilon=epsilon, max_iter=10**6)

        def ours(env: TabularEnv = env) -> object:
            return env.mdp.optimal(env.cost)

        a, b = take_turns(ours, quantecon, turns=3)
        yield Line(
            f"optimal policy, {mdp.n_pairs:,} pairs, discount {discount}, to 1e-9",
            f"{a:.2f} s",
            f"QuantEcon {b:.2f} s",
            a / b,
            "at most 2",
            a / b <= 2,
        )


def structures_optimal() -> Iterator[Line]:
    """Time `mdp.optimal` on every kind of MDP, discount and size.

    The baseline is QuantEcon's modified policy iteration on the same matrices, to the same proven
    accuracy, with the number of sweeps that suits it best.
    """
    for kind in ("queues", "chain"):
        mdp, cost, _ = world(kind, 10_000, 0.99)
        mdp.optimal(cost)  # compile
    ratios = []
    for n_pairs in SIZES:
        for kind in KINDS:
            for discount in DISCOUNTS:
                line = _against_quantecon(kind, n_pairs, discount)
                ratios.append(line.ratio)
                yield line
    middle = median(ratios)
    yield Line("median of these", "", "QuantEcon", middle, "at most 0.5", middle <= 0.5)


def _against_quantecon(kind: str, n_pairs: int, discount: float) -> Line:
    """Solve one MDP by turns, QuantEcon with each of `SWEEPS` first."""
    mdp, cost, _ = world(kind, n_pairs, discount)
    program = _quantecon(mdp, cost)
    ours, theirs, sweeps = np.inf, np.inf, SWEEPS[0]
    errors = []

    def solve() -> float:
        start = time.perf_counter()
        errors.append(mdp.optimal(cost).value_error)
        return time.perf_counter() - start

    for k in SWEEPS:
        ours = min(ours, solve())
        taken = program.time(k, min(LIMIT, theirs))
        theirs, sweeps = (taken, k) if taken < theirs else (theirs, sweeps)
        if taken == np.inf and theirs == np.inf:
            break
    if theirs < SHORT:
        for _ in range(min(30, 3 + int(0.3 / theirs))):
            ours, theirs = min(ours, solve()), min(theirs, program.time(sweeps, LIMIT))
    late = theirs == np.inf
    ratio = ours / (LIMIT if late else theirs)
    return Line(
        f"optimal policy, {kind}, {mdp.n_pairs:,} pairs, discount {discount}, to 1e-9",
        f"{ours:.3g} s",
        f"QuantEcon {'over ' + format(LIMIT, '.0f') if late else format(theirs, '.3g')} s",
        ratio,
        "at most 1",
        ratio <= 1 and max(errors) <= 1e-9,
    )


def _quantecon(mdp: TabularMDP, cost: np.ndarray) -> Any:
    """Return QuantEcon's program of an MDP, which can be timed."""
    from quantecon.markov import DiscreteDP

    class Timed(DiscreteDP):  # type: ignore[misc]
        deadline = np.inf

        def bellman_operator(self, *args: Any, **kwargs: Any) -> Any:
            if time.perf_counter() > self.deadline:
                raise TimeoutError
            return super().bellman_operator(*args, **kwargs)

        def time(self, k: int, limit: float) -> float:
            """Return the seconds to 1e-9 of the normalised value, or infinity if they exceed the limit."""
            start = time.perf_counter()
            self.deadline = start + limit
            try:
                # QuantEcon's values are not normalised, and accurate to epsilon/2.
                self.solve(method="mpi", epsilon=2e-9 / (1 - self.beta), max_iter=10**6, k=k)
            except TimeoutError:
                return np.inf
            return time.perf_counter() - start

    return Timed(-cost, sp.csr_matrix(mdp.transitions), mdp.discount, mdp.pair_states, mdp.pair_actions)


def build() -> Iterator[Line]:
    """Time building the tables of a large grid, against filling them pair by pair in Python."""

    def large() -> object:
        return grid(1000)

    def by_pairs(side: int = 60) -> object:
        rows: dict[tuple[int, int], float] = {}
        moves = ((1, 0), (-1, 0), (0, -1), (0, 1))
        for state in range(side * side):
            for action, (dr, dc) in enumerate(moves):
                for chance, drift in ((0.8, 0), (0.2, -1)):
                    r, c = state // side + dr, state % side + dc + drift
                    to = r * side + c if 0 <= r < side and 0 <= c < side else state
                    key = (4 * state + action, to)
                    rows[key] = rows.get(key, 0.0) + chance
        pairs, states = zip(*rows, strict=True)
        return sp.csr_array((list(rows.values()), (pairs, states)), shape=(4 * side * side, side * side))

    a, b = take_turns(large, by_pairs, turns=3)
    per_pair, plain = a / 4e6, b / (4 * 60 * 60)
    yield Line(
        "building a 1000 x 1000 grid (4 million pairs), per pair",
        f"{per_pair * 1e9:.0f} ns ({a:.1f} s)",
        f"Python loop {plain * 1e9:.0f} ns",
        plain / per_pair,
        "at least 5",
        plain / per_pair >= 5,
    )


def oracle() -> Iterator[Line]:
    """Time `sample_next`, against drawing from the transition matrix row by row."""
    rng = np.random.default_rng(0)
    for name in ("rlfd_gym/Inventory-v0", "rlfd_gym/WindyGridworld-v0"):
        env = unwrapped(name)
        mdp = env.mdp
        pairs = rng.integers(mdp.n_pairs, size=1_000_000)
        states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
        dense, few = mdp.transitions.toarray(), pairs[:2000]

        def ours(env: TabularEnv = env, states: object = states, actions: object = actions) -> object:
            return env.sample_next(states, actions, rng)

        def plain(dense: np.ndarray = dense, few: np.ndarray = few) -> object:
            return [rng.choice(dense.shape[1], p=dense[pair]) for pair in few]

        a, b = take_turns(ours, plain, turns=5)
        rate, plain_rate = 1e6 / a, len(few) / b
        yield Line(
            f"transition oracle of {name.removeprefix('rlfd_gym/')}, draws per second",
            f"{rate / 1e6:.0f} million",
            f"choice(p=row) {plain_rate:,.0f}",
            rate / plain_rate,
            "at least 100, and a million a second",
            rate / plain_rate >= 100 and rate >= 1e6,
        )
