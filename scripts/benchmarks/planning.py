"""Benchmarks of tables, plans and draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from benchmarks.lines import Line, grid, take_turns, unwrapped
from rlfd_gym.envs import TabularEnv


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
