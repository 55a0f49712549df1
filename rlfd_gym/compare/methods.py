"""The methods of the comparison, each of them one entry in `METHODS`.

A method is a function from a `Lesson` to an `Apprentice`. A lesson is all that a method may know:
the tables, what the expert showed (its exact occupancy or demonstrations), the prior with its
weight α, the basis and the belief. It does not contain the true cost. The reference rows of the tables are
entries too, but they are functions of the task's `Instance`, which includes the true cost and the
exact expert.

The numbers of iterations are such that the whole comparison takes under two minutes on two cores;
where a method's own default is slow, fewer iterations are used. To see a method at its best, call
it from `rlfd_gym.baselines`.

**Seeds.** A method is run once if nothing about it is random: it draws nothing itself, it is shown
exact occupancies, and it uses no prior that the task draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym.beliefs import Belief
from rlfd_gym.compare.tasks import signed_cells
from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Apprentice, Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.projection import project_prior
from rlfd_gym.solvers.smd.solve import solve_smd

EXACT = 1000  # trajectories that an exact occupancy counts as, where a method asks how much was shown


@dataclass(frozen=True, eq=False, kw_only=True)
class Lesson:
    """What a method is given.

    Attributes:
        mdp: the tables.
        shown: the expert's exact occupancy, or demonstrations.
        prior: the prior cost, over pairs.
        alpha: the weight of the prior; 0 for methods that take none.
        basis: C, of shape (n_pairs, K), for methods that look for the cost in its hull.
        belief: what is believed about the cost, if the task says so.
        iterations: steps of each run of the stochastic solvers.
        runs: runs that a stochastic solver averages over.
        seed: the seed of everything that a method draws.
    """

    mdp: TabularMDP
    shown: Any = field(repr=False)
    prior: FloatArray = field(repr=False)
    alpha: float
    basis: FloatArray = field(repr=False)
    iterations: int
    runs: int
    seed: np.random.SeedSequence = field(repr=False)
    belief: Belief | None = field(default=None, repr=False)

    @property
    def occupancy(self) -> FloatArray:
        """The expert's occupancy, as far as the lesson shows it."""
        return occupancy_from_demonstrations(self.shown, self.mdp)

    @property
    def problem(self) -> RLfDProblem:
        """The problem RLfD_α of this lesson; without the prior if α = 0."""
        return RLfDProblem(self.mdp, self.occupancy, self.prior if self.alpha else None, self.alpha)


@dataclass(frozen=True)
class Method:
    """An entry of the registry.

    Attributes:
        name: the method's name on the command line and in the files.
        title: the method's name in tables and pictures.
        solve: a function from a `Lesson` to what was learned; for a reference row, from the
            task's `Instance`.
        takes_alpha: whether the method is run once for each α; such methods use the prior.
        uses_prior: whether another prior gives another result.
        uses_basis: whether the method looks for the cost in the hull of the task's basis.
        uses_belief: whether the method is told the task's belief.
        stochastic: whether the method draws random numbers.
        reference: whether this is a row to compare with, which does not depend on demonstrations
            and is always included.
        default: whether the method is run when no methods are named.
        most_seeds: the largest number of seeds to run the method for, if it is slow.
        needs_imitation: whether the method needs imitation; if that is not installed, the default
            leaves the method out.
    """

    name: str
    title: str
    solve: Callable[[Any], Apprentice] = field(repr=False)
    takes_alpha: bool = False
    uses_prior: bool = False
    uses_basis: bool = False
    uses_belief: bool = False
    stochastic: bool = False
    reference: bool = False
    default: bool = True
    most_seeds: int | None = None
    needs_imitation: bool = False

    def __post_init__(self) -> None:
        """Set `uses_prior` for methods that take α."""
        object.__setattr__(self, "uses_prior", self.uses_prior or self.takes_alpha)

    @property
    def chosen(self) -> bool:
        """Whether the method is run on this machine when no methods are named."""
        return self.default and not (self.needs_imitation and find_spec("imitation") is None)


def _robust(lesson: Lesson) -> Solution:
    """Maximise the guarantee over the task's belief."""
    if lesson.belief is None:
        raise SolverError("the task states no belief about the cost")
    return solve_exact(RLfDProblem(lesson.mdp, lesson.occupancy, belief=lesson.belief))


def _projected(lesson: Lesson) -> Solution:
    """Learn a cost by IRL-IO_ĉ, and plan with it."""
    solution = project_prior(lesson.mdp, lesson.occupancy, lesson.prior)
    return replace(solution, policy=lesson.mdp.optimal(solution.cost).policy)


def _smd(lesson: Lesson) -> Solution:
    return solve_smd(lesson.problem, n_iterations=lesson.iterations, n_runs=lesson.runs, seed=lesson.seed)


def _baseline(name: str, basis: bool = False, **options: Any) -> Callable[[Lesson], Apprentice]:
    """Return a function that applies a baseline, imported when called, to a lesson."""

    def solve(lesson: Lesson) -> Apprentice:
        from rlfd_gym import baselines

        columns = {"basis": lesson.basis} if basis else {}
        return getattr(baselines, name)(lesson.mdp, expert=lesson.shown, **columns, **options)

    return solve


def _smd_hull(lesson: Lesson) -> Solution:
    from rlfd_gym.baselines import solve_smd_hull

    return solve_smd_hull(
        lesson.problem, lesson.basis, n_iterations=lesson.iterations, n_runs=lesson.runs, seed=lesson.seed
    )


def _entropy(lesson: Lesson) -> Solution:
    """Run MCE-IRL.

    A weight for each state is equivalent to the signed indicators of all states.
    """
    from rlfd_gym.baselines import mce_irl

    states = np.array_equal(lesson.basis, signed_cells(lesson.mdp))
    return mce_irl(lesson.mdp, expert=lesson.shown, basis=None if states else lesson.basis, n_iterations=60)


def _bayesian(lesson: Lesson) -> Solution:
    """Run Bayesian IRL, with β and σ of the largest evidence.

    The exact occupancy counts as that of `EXACT` trajectories.
    """
    from rlfd_gym.baselines import bayesian_irl

    exact = isinstance(lesson.shown, np.ndarray)
    decisions = EXACT / (1 - lesson.mdp.discount) if exact else None
    return bayesian_irl(lesson.mdp, lesson.shown, lesson.prior, n_decisions=decisions)


def _network(lesson: Lesson) -> Apprentice:
    from rlfd_gym.baselines import cloning_network

    return cloning_network(lesson.mdp, expert=lesson.shown, seed=int(lesson.seed.generate_state(1)[0]))


def _adversarial(lesson: Lesson) -> Apprentice:
    from rlfd_gym.baselines import gail

    steps = max(2048, min(50_000, lesson.iterations))  # at least one round
    return gail(lesson.mdp, expert=lesson.shown, n_timesteps=steps, seed=int(lesson.seed.generate_state(1)[0]))


def _planned(mdp: TabularMDP, cost: FloatArray) -> Solution:
    plan = mdp.optimal(cost)
    return Solution(policy=plan.policy, occupancy=plan.occupancy, cost=cost, method="planning")


def _acting(mdp: TabularMDP, policy: FloatArray) -> Apprentice:
    return Apprentice(policy=policy, occupancy=mdp.occupancy_of(policy), method="fixed policy")


METHODS = {
    method.name: method
    for method in (
        Method("optimum", "optimum", lambda task: _planned(task.mdp, task.truth), reference=True),
        Method("expert", "expert", lambda task: _acting(task.mdp, task.mdp.policy_of(task.expert)), reference=True),
        Method("prior", "prior alone", lambda task: _planned(task.mdp, task.prior), uses_prior=True, reference=True),
        Method("random", "random", lambda task: _acting(task.mdp, task.mdp.uniform_policy()), reference=True),
        Method("rlfd-exact", "RLfD exact", lambda lesson: solve_exact(lesson.problem), takes_alpha=True),
        Method("rlfd-ranges", "RLfD price ranges", _robust, uses_belief=True),
        Method("rlfd-smd", "RLfD SMD", _smd, takes_alpha=True, stochastic=True),
        Method("irl-io", "IRL-IO", _projected, uses_prior=True),
        Method("smd-hull", "SMD-H", _smd_hull, uses_basis=True, stochastic=True, most_seeds=2),
        Method(
            "smd-hull-prior", "SMD-H", _smd_hull, takes_alpha=True, uses_basis=True, stochastic=True, default=False,
        ),
        Method("lpal", "LPAL", _baseline("lpal", basis=True), uses_basis=True),
        Method("mwal", "MWAL", _baseline("mwal", basis=True, n_iterations=100), uses_basis=True),
        Method("projection", "projection", _baseline("projection", basis=True, n_iterations=100), uses_basis=True),
        Method("max-margin", "max. margin", _baseline("max_margin", basis=True), uses_basis=True),
        Method("lp-irl", "LP-IRL", _baseline("lp_irl")),
        Method("mce-irl", "MCE-IRL", _entropy, uses_basis=True, needs_imitation=True, most_seeds=1),
        Method("bayesian-irl", "Bayesian IRL", _bayesian, uses_prior=True),
        Method("cloning", "cloning", _baseline("behavioural_cloning")),
        Method("bc", "BC network", _network, stochastic=True, needs_imitation=True, default=False),
        Method(
            "gail", "GAIL", _adversarial, stochastic=True, needs_imitation=True, most_seeds=1, default=False,
        ),
    )
}  # fmt: skip
"""The methods by name."""
