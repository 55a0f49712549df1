"""How the rivals are run on a lesson: functions for the entries of `METHODS`.

Baselines are imported when they are called. The tasks and methods can therefore be listed without
loading what only some of them need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlfd_gym.compare.tasks import signed_cells
from rlfd_gym.mdp.forward import optimal_actions
from rlfd_gym.problem.solution import Apprentice, Solution
from rlfd_gym.solvers.projection import project_prior

if TYPE_CHECKING:
    from rlfd_gym.compare.methods import Lesson

TIE = 1e-6  # what an action may cost more than the best one, and still count as optimal
EXACT = 1000  # trajectories that an exact occupancy counts as, where a method asks how much was shown
HULL_STEP = 4  # what a step of SMD-H may take, in steps of SMD
MARGINS = (0.001, 0.01, 0.1, 1.0)  # λ of maximum margin planning, to choose from


def projected(lesson: Lesson) -> Solution:
    """Learn a cost by IRL-IO_ĉ, and plan with it, taking all optimal actions alike.

    The projected cost makes everything that the expert was seen to do optimal, so that for an
    expert that errs it is almost constant. A plan that takes the first of the optimal actions would
    then measure how the actions are numbered.
    """
    mdp = lesson.mdp
    solution = project_prior(mdp, lesson.occupancy_with(lesson.prior), lesson.prior)
    return replace(solution, policy=optimal_actions(mdp, solution.cost, TIE * (1 - mdp.discount)))


def baseline(name: str, *known: str) -> Callable[[Lesson], Apprentice]:
    """Return a function that applies a baseline, imported when called, to a lesson.

    `known` are the fields of the lesson that the baseline takes, besides the expert.
    """

    def solve(lesson: Lesson) -> Apprentice:
        from rlfd_gym import baselines

        taken = {field: getattr(lesson, field) for field in known}
        return getattr(baselines, name)(lesson.mdp, expert=lesson.shown, **taken)

    return solve


def margin(lesson: Lesson) -> Solution:
    """Run maximum margin planning with the λ whose plan has the least loss on held-out demonstrations.

    One half of them is held out. An exact occupancy and a single demonstration judge themselves.
    """
    from rlfd_gym.baselines.max_margin import loss_of, max_margin

    shown = lesson.shown
    halves = (shown, shown) if isinstance(shown, np.ndarray) or len(shown) < 2 else (shown[::2], shown[1::2])
    loss = loss_of(lesson.mdp, halves[1])
    losses = [loss @ max_margin(lesson.mdp, halves[0], lesson.basis, regularisation=x).occupancy for x in MARGINS]
    # The largest of those that are as good as the best: the least that the data ask for.
    best = max(x for x, one in zip(MARGINS, losses, strict=True) if one <= min(losses) + TIE)
    return max_margin(lesson.mdp, shown, lesson.basis, regularisation=best)


def margin_near_prior(lesson: Lesson) -> Solution:
    """Run maximum margin planning around the prior: RLfD_α with a loss and without a box."""
    from rlfd_gym.baselines import max_margin

    weight = max(2 * lesson.alpha, 1e-9)  # α = 0 is the limit
    return max_margin(lesson.mdp, lesson.shown, regularisation=weight, prior=lesson.prior)


def smd_hull(lesson: Lesson) -> Solution:
    """Run stochastic mirror descent over the hull of the basis, for about the time that the box takes."""
    from rlfd_gym.baselines import solve_smd_hull

    steps = max(lesson.iterations // HULL_STEP, 1)
    return solve_smd_hull(lesson.problem, lesson.basis, n_iterations=steps, n_runs=lesson.runs, seed=lesson.seed)


def entropy(lesson: Lesson) -> Solution:
    """Run MCE-IRL.

    A weight for each state is equivalent to the signed indicators of all states.
    """
    from rlfd_gym.baselines import mce_irl

    states = np.array_equal(lesson.basis, signed_cells(lesson.mdp))
    return mce_irl(lesson.mdp, expert=lesson.shown, basis=None if states else lesson.basis)


def bayesian(lesson: Lesson) -> Solution:
    """Run Bayesian IRL, with β and σ of the largest evidence.

    The exact occupancy counts as that of `EXACT` trajectories.
    """
    from rlfd_gym.baselines import bayesian_irl

    exact = isinstance(lesson.shown, np.ndarray)
    decisions = EXACT / (1 - lesson.mdp.discount) if exact else None
    return bayesian_irl(lesson.mdp, lesson.shown, lesson.prior, n_decisions=decisions)


def network(lesson: Lesson) -> Apprentice:
    """Clone the expert by a network."""
    from rlfd_gym.baselines import cloning_network

    return cloning_network(lesson.mdp, expert=lesson.shown, seed=int(lesson.seed.generate_state(1)[0]))


def adversarial(lesson: Lesson) -> Apprentice:
    """Run GAIL, for as many steps as the lesson says, but no more than its default."""
    from rlfd_gym.baselines import gail

    steps = max(2048, min(50_000, lesson.iterations))  # at least one round
    return gail(lesson.mdp, expert=lesson.shown, n_timesteps=steps, seed=int(lesson.seed.generate_state(1)[0]))
