"""Value iteration for large problems: sweeps where the chain mixes, rough solves where it does not.

Every round computes L u, which gives the bounds of `rlfd_gym.mdp.forward`, and the greedy policy π.
Then one of two things brings u nearer to V^π:

* **Sweeps** u ← (1-γ) c_π + γ P_π u, until the span of the change is a small part of that of
  L u - u, as in modified policy iteration. The constant part of the error is known from the bounds, so what
  counts is how quickly the chain mixes. The states are shared out among threads.
* **A rough solve** of u = (1-γ) c_π + γ P_π u: Gauss-Seidel passes of L, through the states and
  back, let a better policy spread along whole paths, and BiCGSTAB, or a factorisation where P_π is
  narrow, evaluates what these passes have chosen.

It begins with sweeps. If the speed at which these shrink the span, per entry of the tables that they
pass, means that they will need more than `LONG` passes over the tables, it turns to solves. If
solves make no progress, it returns to sweeps, which always converge.
Work is counted in passes, not in seconds, so the answer depends neither on the machine nor on the
number of threads.

Once nothing changes in the policy, it is evaluated to the accuracy that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.occupancy import solvers

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

SHRINK = 0.03  # of the span, by evaluating a policy that still changes
FINER = 0.01  # the same, by a solve
PASSES = 3  # of Gauss-Seidel before a solve
MOST_SWEEPS = 20  # in a round
LONG = 50.0  # passes over the tables
STUCK = 50  # rounds of solves without progress
PATIENCE = 1000  # rounds without progress: only rounding or a discount near one can cause these


@dataclass(frozen=True)
class Goal:
    """When to stop: how small the span of L u - u has to be.

    Attributes:
        span: at which the value is as exact as it is asked for.
        fine: at which also ties are certain. Between the two the iteration stops as soon as no pair
            is so near to `slack` that its place could change.
        slack: what a pair may cost more than the best and be chosen if it is the first.
    """

    span: float
    fine: float
    slack: float


@dataclass
class Iterate:
    """A value u with L u, the policy that is greedy for u, and the least and largest L u - u.

    `excess` is how much more than the best the policy of before costs in a step, at most.
    """

    u: FloatArray
    best: FloatArray
    pairs: IntArray
    low: float = -np.inf
    high: float = np.inf
    excess: float = np.inf

    @property
    def span(self) -> float:
        """How far apart the least and the largest entry of L u - u are."""
        return self.high - self.low


def iterate(
    mdp: TabularMDP,
    cost: FloatArray,
    goal: Goal,
    start: FloatArray | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterate:
    """Return a value that meets the goal, or the last one if rounding or `stop` does not let it.

    It begins at a value `start`, or at the least cost of each state. `stop` is asked in every round.
    """
    gain, share = mdp.discount / (1 - mdp.discount), mdp.n_states / mdp.n_pairs
    u = mdp.min_by_state(cost) if start is None else start.copy()
    at = Iterate(u, np.empty(mdp.n_states), mdp.state_starts[:-1].copy())
    solving = stuck = False
    begun = least = np.inf
    stalled, work = 0, 0.0
    tables = _Tables(mdp, cost)
    while True:
        tables.bellman(at)
        stalled = 0 if at.span < 0.999 * least else stalled + 1
        least = min(least, at.span)
        given_up = stalled > PATIENCE or stop()
        if at.span <= goal.span or given_up:
            settled, margin = tables.settled(at, goal.slack)
            if at.span <= goal.fine or margin > gain * at.span or given_up:
                at.pairs = settled
                return at
        # Sweeps are given up once they will take long, and solves if they do not help.
        if begun == np.inf:
            begun = at.span
        elif not stuck:
            solving = solving or work * np.log(at.span / goal.span) > LONG * np.log(begun / at.span)
        if solving and stalled > STUCK:
            solving, stuck = False, True
        # The bounds allow this shift: u stays on its side of V*.
        at.best += gain * max(at.low, 0.0) + gain * min(at.high, 0.0)
        at.u, at.best = at.best, at.u
        aim = max(SHRINK * min(at.excess, at.span), 0.5 * (goal.span if at.span > goal.span else goal.fine))
        if solving:
            tables.solve(at, aim)
        else:
            work += 1 + share * tables.sweep(at, aim)


class _Tables:
    """The arrays of an MDP and a cost, as the compiled sweeps take them."""

    def __init__(self, mdp: TabularMDP, cost: FloatArray) -> None:
        from rlfd_gym import _rows  # numba, and compiled code: loaded only for problems that need it
        from rlfd_gym.mdp import _sweeps

        self.sweeps, self.mdp = _sweeps, mdp
        self.threads, self.is_shared = _rows.Threads(), _rows.is_shared
        self.rows = _rows.rows_of(mdp.transitions)
        self.stage = (1 - mdp.discount) * cost
        # The rows of a policy, each in a place that holds the longest row of its state.
        starts = np.zeros(mdp.n_states + 1, dtype=np.uint64)
        _sweeps.longest_rows(self.rows[2], mdp.state_starts, starts[1:])
        starts = np.cumsum(starts)
        self.taken = np.full(mdp.n_states, -1, dtype=np.int64)
        self.policy_rows = (np.empty(int(starts[-1])), np.empty(int(starts[-1]), dtype=np.uint32), starts)

    def bellman(self, at: Iterate) -> None:
        """Set everything that follows from u."""
        arguments = (*self.rows, self.mdp.state_starts, self.stage, self.mdp.discount, at.u, at.best, at.pairs)
        lows, highs, excesses = self._shared(self.sweeps.bellman, arguments, self.mdp.transitions.nnz)
        at.low, at.high, at.excess = min(lows), max(highs), max(excesses)

    def settled(self, at: Iterate, slack: float) -> tuple[IntArray, float]:
        """Return the first of each state's tied pairs, and how far any pair is from a tie.

        It is not for evaluation on the way: if a tied pair is worse by a rounding, L u would choose
        another one in every round, and the span never become smaller than that.
        """
        mdp, pairs = self.mdp, np.empty_like(at.pairs)
        memory = (np.empty(mdp.n_pairs), pairs)
        arguments = (*self.rows, mdp.state_starts, self.stage, mdp.discount, at.u, slack, *memory)
        (margins,) = self._shared(self.sweeps.settle, arguments, mdp.transitions.nnz)
        return pairs, min(margins)

    def sweep(self, at: Iterate, aim: float) -> int:
        """Evaluate the policy by sweeps until their span is at most `aim`; return their number."""
        entries, stage, discount = self.policy_rows[0].size, self.stage[at.pairs], self.mdp.discount
        self._shared(self.sweeps.take_rows, (*self.rows, at.pairs, self.taken, *self.policy_rows), entries)
        if not self.is_shared(entries):
            done = int(self.sweeps.evaluate_until(aim, MOST_SWEEPS, *self.policy_rows, stage, discount, at.u, at.best))
            at.u, at.best = (at.best, at.u) if done % 2 else (at.u, at.best)
            return done
        done, span = 0, np.inf
        while span > aim and done < MOST_SWEEPS:
            arguments = (*self.policy_rows, stage, discount, at.u, at.best)
            lows, highs = self._shared(self.sweeps.evaluate, arguments, entries)
            at.u, at.best = at.best, at.u
            done, span = done + 1, max(highs) - min(lows)
        return done

    def solve(self, at: Iterate, aim: float) -> None:
        """Improve the policy along paths if it has changed, and evaluate it roughly."""
        mdp, pairs = self.mdp, at.pairs
        if at.excess > SHRINK * at.span:
            for _ in range(PASSES):
                self.sweeps.improve(*self.rows, mdp.state_starts, self.stage, mdp.discount, at.u, pairs)
        matrix = mdp.transitions[pairs]
        residual = self.stage[pairs] + mdp.discount * (matrix @ at.u) - at.u
        span = np.ptp(residual)
        for solver, _ in solvers(matrix, mdp.discount):
            step = solver(residual, min(FINER, aim / max(span, aim)))
            if np.ptp(residual - step + mdp.discount * (matrix @ step)) <= 0.5 * span:
                at.u += step
                break

    def _shared(self, kernel: Any, arguments: tuple[Any, ...], entries: int) -> Any:
        """Return the results of a kernel on all parts of the states, one list for each result."""
        return zip(*self.threads.share(kernel, arguments, self.mdp.n_states, entries), strict=True)
