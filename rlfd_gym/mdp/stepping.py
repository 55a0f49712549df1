"""A simulator of an environment that can only be stepped: `Stepped`.

Episodes are played, and what followed each pair is kept in the order in which it was seen.
`sample_next` hands out these next states, each once, and plays on where it runs out, towards the
pairs that are asked for. That is as good as drawing: think of one stack of cards for each pair,
drawn in advance; playing only turns the cards over in some order, and how many are taken of each
stack was decided before they were seen. The first steps decide which pairs are feasible, so what
they have shown is not handed out; it serves to find the way.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from rlfd_gym._checks import IntArray
from rlfd_gym.mdp.simulator import Simulator
from rlfd_gym.mdp.tables import TabularMDP

WALK = 500  # steps with one plan towards the pairs that are asked for
CURIOUS = 0.2  # the share of steps that ignore the plan
MOST_WALKS = 200  # plans in a row that may bring nothing of what is asked for


class Stepped(Simulator):
    """Plays episodes, and hands out each transition once, in the order of each pair."""

    kind = "step"

    def __init__(self, *what: Any, steps: int, terminal: IntArray | None, seed: int) -> None:
        """Play the first steps, and fix which pairs are feasible."""
        super().__init__(*what)
        self._rng, self._seed, self._state = np.random.default_rng(seed), seed, -1
        self._cards: dict[tuple[int, int], deque[int]] = {}
        self._seen: dict[tuple[int, int, int], int] = {}
        allowed, met = self.feasible, np.zeros_like(self.feasible)
        self._fixed = terminal is not None
        if terminal is not None:
            self.absorbing[terminal] = True
        for _ in range(steps):
            here = self._here()
            tried = [len(self._cards.get((here, a), ())) for a in np.flatnonzero(allowed[here]).tolist()]
            least = np.flatnonzero(np.array(tried) == min(tried))
            action = int(np.flatnonzero(allowed[here])[self._rng.choice(least)])
            met[here, action] = True
            self._play(action)
        self._fixed = True
        self._cards = {}
        # Pairs that were not met are infeasible; a state that was never left is left by nothing.
        stays = self.absorbing | ~met.any(axis=1)
        self.unvisited = np.argwhere(allowed & ~met & ~self.absorbing[:, None])
        self.feasible = np.where(self.absorbing[:, None], allowed, met)
        lacking = np.flatnonzero(~self.feasible.any(axis=1))
        self.feasible[lacking, allowed[lacking].argmax(axis=1)] = True
        self.absorbing = stays

    def _draw(self, states: IntArray, actions: IntArray, rng: np.random.Generator) -> IntArray:
        pairs = list(zip(states.tolist(), actions.tolist(), strict=True))
        wanted: dict[tuple[int, int], int] = {}
        for pair in pairs:
            wanted[pair] = wanted.get(pair, 0) + 1
        self._collect(wanted)
        return np.array([self._cards[pair].popleft() for pair in pairs], dtype=np.int64)

    def _collect(self, wanted: dict[tuple[int, int], int]) -> None:
        """Play until there is a card for every draw that is asked for."""
        lacking = self._lacking(wanted)
        fruitless = 0
        while lacking:
            before = sum(lacking.values())
            self._walk(lacking)
            lacking = self._lacking(wanted)
            fruitless = fruitless + 1 if sum(lacking.values()) == before else 0
            if fruitless == MOST_WALKS:
                state, action = next(iter(lacking))
                raise RuntimeError(
                    f"env: {fruitless * WALK} steps did not lead to state {state} with action {action} again, which "
                    f"was met before; an environment that can be put into a "
                    "state (set_state=) does not have to walk there"
                )

    def _lacking(self, wanted: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
        short = {pair: number - len(self._cards.get(pair, ())) for pair, number in wanted.items()}
        return {pair: number for pair, number in short.items() if number > 0}

    def _walk(self, lacking: dict[tuple[int, int], int]) -> None:
        """Play some steps, mostly along a plan towards the pairs that lack cards."""
        states, actions = np.nonzero(self.feasible)
        rows = np.zeros((len(states), self.n_states))
        index = np.full(self.feasible.shape, -1)
        index[states, actions] = np.arange(len(states))
        for (state, action, following), number in self._seen.items():
            rows[index[state, action], following] += number
        empty = rows.sum(axis=1) == 0
        rows[empty, states[empty]] = 1.0
        cost = np.zeros(len(states))
        cost[[index[pair] for pair in lacking]] = -1.0
        known = TabularMDP(rows / rows.sum(axis=1, keepdims=True), states, actions, None, 0.95, self.n_actions)
        plan = known.likely_actions(known.optimal(cost).policy)
        for _ in range(WALK):
            here = self._here()
            if self._rng.random() < CURIOUS or not self.feasible[here, plan[here]]:
                self._play(int(self._rng.choice(np.flatnonzero(self.feasible[here]))))
            else:
                self._play(int(plan[here]))

    def _here(self) -> int:
        """Return the present state; begin an episode if the last one is over."""
        if self._state < 0:
            observation, _ = self.env.reset(seed=self._seed) if self.steps == 0 else self.env.reset()
            self._state = self._number(observation)
        return self._state

    def _play(self, action: int) -> None:
        """Make a step, and put what follows under the cards of its pair."""
        observation, _, terminated, truncated, _ = self.env.step(action)
        self.steps += 1
        state, following = self._state, self._number(observation)
        self._cards.setdefault((state, action), deque()).append(following)
        self._seen[state, action, following] = self._seen.get((state, action, following), 0) + 1
        if terminated and self._fixed:
            self._check_end(following)
        elif terminated:
            self.absorbing[following] = True
        self._state = -1 if terminated or truncated else following
