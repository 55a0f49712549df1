"""Algorithm 1 without a model: all runs are made side by side.

Each step makes one call of the oracle, for j and k of every run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import IntArray
from rlfd_gym.problem import BlackBoxProblem
from rlfd_gym.solvers.smd import kernels, measure
from rlfd_gym.solvers.smd.alias import distribution_table, draw_many
from rlfd_gym.solvers.smd.checkpoints import Checkpoint, Start, Total
from rlfd_gym.solvers.smd.records import (
    DRAWS,
    EXPERT,
    EXPERT_NEXT,
    TRIED,
    TRIED_NEXT,
    VISITED,
    VISITED_NEXT,
    Run,
    constants_of,
)
from rlfd_gym.solvers.smd.runs import Plan, begin, generator_of

BLOCK = 256  # steps whose uniforms are drawn at a time


def run_in_lockstep(problem: BlackBoxProblem, plan: Plan, starts: list[Start], update: Callable[[int], Any]) -> Total:
    """Make the runs side by side; after Ctrl-C, return the steps made so far."""
    if plan.record_every:
        raise ValueError("record_every needs a model: without transition probabilities there is no duality gap")
    generators = [generator_of(start) for start in starts]
    oracle_rng = np.random.default_rng(generators[0].integers(2**63))
    checkpoints = [
        begin(problem, start, generator, plan.uniform_start)
        for start, generator in zip(starts, generators, strict=True)
    ]
    # The arrays of all runs, stacked.
    runs = [checkpoint.run for checkpoint in checkpoints]
    pairs, values, trees, clocks = (
        np.stack([getattr(run, name) for run in runs]) for name in ("pair_buffer", "state_buffer", "tree", "clock")
    )
    levels, step = runs[0].levels, constants_of(problem, plan.etas)
    expert_table = distribution_table(problem.expert.weights).view(np.float64)
    samples, seen = np.empty((len(runs), DRAWS), np.int64), np.empty(len(runs), np.int64)
    block = np.empty((len(runs), BLOCK, DRAWS))
    total = Total()
    before = runs[0].steps
    try:
        for done in range(plan.steps):
            if done % BLOCK == 0:
                for checkpoint, own in zip(checkpoints, block, strict=True):
                    checkpoint.generator.random(out=own)
            # i, j and k by the kernel, e and s'_e from the expert, s' and s'_k from the oracle.
            draws = np.ascontiguousarray(block[:, done % BLOCK])
            kernels.propose(pairs, trees, levels, draws, samples)
            draw_many(expert_table, draws[:, EXPERT], seen)
            samples[:, EXPERT] = problem.expert_pairs[seen]
            samples[:, EXPERT_NEXT] = problem.expert.next_states[seen]
            arrived = _ask(problem, samples[:, [VISITED, TRIED]], oracle_rng)
            samples[:, VISITED_NEXT], samples[:, TRIED_NEXT] = arrived[:, 0], arrived[:, 1]
            if kernels.apply(pairs, values, trees, levels, clocks, step, samples) != kernels.OK:
                raise FloatingPointError(f"step_size: the iterates are no longer finite after {done} steps")
            update(len(runs))
    except KeyboardInterrupt:
        total.finished = False
    for r, checkpoint in enumerate(checkpoints):
        run = Run(pairs[r], values[r], trees[r], levels, clocks[r])
        if run.steps > before:
            total.add_run(Checkpoint(run, checkpoint.generator), np.empty((0, measure.COLUMNS)), plan.keep)
    return total


def _ask(problem: BlackBoxProblem, pairs: IntArray, rng: np.random.Generator) -> IntArray:
    """Ask the oracle for a next state of each pair."""
    states, actions = problem.pair_states[pairs], problem.pair_actions[pairs]
    answer = problem.oracle.sample_next(states, actions, rng)
    arrived = _checks.integers("oracle: what sample_next returns", answer)
    if arrived.shape != pairs.shape or arrived.min() < 0 or arrived.max() >= problem.n_states:
        raise ValueError(
            f"oracle: sample_next must return states 0..{problem.n_states - 1} in the shape {pairs.shape} of "
            f"what it is asked, got shape {arrived.shape}"
        )
    return arrived
