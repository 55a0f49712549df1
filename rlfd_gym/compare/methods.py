"""The methods of the comparison, one entry in `METHODS` each: from a `Lesson` to a `Solution`.

A lesson is all that a method may know: the tables, what the expert showed (its exact occupancy or demonstrations), and
where the method asks for them the prior with its weight α and the basis. The true cost is not in it. The reference rows
of the tables are methods too, with the truth in hand.

Iterations are such that the whole comparison takes under two minutes on two cores, fewer than a method's own default
where that is slow. Who wants to see a method at its best calls it from `rlfd_gym.baselines`.

**Seeds.** A method is run once where nothing about it is random: it draws nothing itself, it is shown exact
occupancies, and it asks for no prior that the task draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.compare.tasks import Setting
from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Apprentice, Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.projection import project_prior
from rlfd_gym.solvers.smd.solve import solve_smd


@dataclass(frozen=True, eq=False)
class Lesson:
    """What a method is told."""

    setting: Setting = field(repr=False)
    shown: Any = field(repr=False)
    """The expert's exact occupancy, or demonstrations."""
    alpha: float
    iterations: int
    """Steps of each run of the stochastic solvers."""
    runs: int
    seed: np.random.SeedSequence = field(repr=False)

    @property
    def mdp(self) -> TabularMDP:
        """The tables."""
        return self.setting.mdp

    @property
    def occupancy(self) -> FloatArray:
        """The expert's occupancy, as far as the lesson shows it."""
        return occupancy_from_demonstrations(self.shown, self.mdp)

    @property
    def problem(self) -> RLfDProblem:
        """RLfD_α of this lesson; without the prior where α = 0."""
        return RLfDProblem(self.mdp, self.occupancy, self.setting.prior if self.alpha else None, self.alpha)


@dataclass(frozen=True)
class Method:
    """An entry of the registry."""

    name: str
    title: str
    solve: Callable[[Lesson], Apprentice] = field(repr=False)
    alpha: bool = False
    """Run once for each α; such methods use the prior."""
    prior: bool = False
    """Whether the prior is used."""
    basis: bool = False
    """Whether the cost is sought in the hull of the task's basis."""
    stochastic: bool = False
    reference: bool = False
    """A row to compare with: it does not depend on demonstrations and is always there."""
    default: bool = True
    """Whether it is run when no methods are named."""
    most_seeds: int | None = None
    """Run for at most so many seeds, where it is slow."""
    needs_imitation: bool = False
    """Left out of the default where imitation is not installed."""

    @property
    def chosen(self) -> bool:
        """Whether it is run when no methods are named, on this machine."""
        return self.default and not (self.needs_imitation and find_spec("imitation") is None)

    @property
    def uses_prior(self) -> bool:
        """Whether a prior drawn anew gives another result."""
        return self.alpha or self.prior


def _projected(lesson: Lesson) -> Solution:
    """IRL-IO_ĉ learns a cost; its apprentice plans with it."""
    solution = project_prior(lesson.mdp, lesson.occupancy, lesson.setting.prior)
    return replace(solution, policy=lesson.mdp.optimal(solution.cost).policy)


def _smd(lesson: Lesson) -> Solution:
    return solve_smd(lesson.problem, n_iterations=lesson.iterations, n_runs=lesson.runs, seed=lesson.seed)


def _baseline(name: str, basis: bool = False, **options: Any) -> Callable[[Lesson], Apprentice]:
    """A function of `rlfd_gym.baselines`, imported when it is called, with the task's basis if it takes one."""

    def solve(lesson: Lesson) -> Apprentice:
        from rlfd_gym import baselines

        columns = {"basis": lesson.setting.basis} if basis else {}
        return getattr(baselines, name)(lesson.mdp, expert=lesson.shown, **columns, **options)

    return solve


def _smd_hull(lesson: Lesson) -> Solution:
    from rlfd_gym.baselines import solve_smd_hull

    return solve_smd_hull(
        lesson.problem, lesson.setting.basis, n_iterations=lesson.iterations, n_runs=lesson.runs, seed=lesson.seed
    )


def _entropy(lesson: Lesson) -> Solution:
    """MCE-IRL; on grids a weight for each cell says the same as the signed indicators."""
    from rlfd_gym.baselines import mce_irl

    setting = lesson.setting
    return mce_irl(
        lesson.mdp, expert=lesson.shown, basis=setting.basis if setting.grid is None else None, n_iterations=60
    )


def _network(lesson: Lesson) -> Apprentice:
    from rlfd_gym.baselines import cloning_network

    return cloning_network(lesson.mdp, expert=lesson.shown, seed=int(lesson.seed.generate_state(1)[0]))


def _adversarial(lesson: Lesson) -> Apprentice:
    from rlfd_gym.baselines import gail

    steps = max(2048, min(50_000, lesson.iterations))  # one round at least
    return gail(lesson.mdp, expert=lesson.shown, n_timesteps=steps, seed=int(lesson.seed.generate_state(1)[0]))


def _planned(mdp: TabularMDP, cost: FloatArray) -> Solution:
    plan = mdp.optimal(cost)
    return Solution(policy=plan.policy, occupancy=plan.occupancy, cost=cost, method="planning")


def _acting(mdp: TabularMDP, policy: FloatArray) -> Apprentice:
    return Apprentice(policy=policy, occupancy=mdp.occupancy_of(policy), method="fixed policy")


METHODS = {
    method.name: method
    for method in (
        Method(
            "optimum", "optimum", lambda lesson: _planned(lesson.mdp, lesson.setting.truth), reference=True,
        ),
        Method(
            "expert", "expert", lambda lesson: _acting(lesson.mdp, lesson.mdp.policy_of(lesson.setting.expert)),
            reference=True,
        ),
        Method(
            "prior", "prior alone", lambda lesson: _planned(lesson.mdp, lesson.setting.prior), prior=True,
            reference=True,
        ),
        Method(
            "random", "random", lambda lesson: _acting(lesson.mdp, lesson.mdp.uniform_policy()), reference=True,
        ),
        Method("rlfd-exact", "RLfD exact", lambda lesson: solve_exact(lesson.problem), alpha=True),
        Method("rlfd-smd", "RLfD SMD", _smd, alpha=True, stochastic=True),
        Method("irl-io", "IRL-IO", _projected, prior=True),
        Method("smd-hull", "SMD-H", _smd_hull, basis=True, stochastic=True, most_seeds=2),
        Method("smd-hull-prior", "SMD-H", _smd_hull, alpha=True, basis=True, stochastic=True, default=False),
        Method("lpal", "LPAL", _baseline("lpal", basis=True), basis=True),
        Method("mwal", "MWAL", _baseline("mwal", basis=True, n_iterations=100), basis=True),
        Method("projection", "projection", _baseline("projection", basis=True, n_iterations=100), basis=True),
        Method("max-margin", "max. margin", _baseline("max_margin", basis=True), basis=True),
        Method("lp-irl", "LP-IRL", _baseline("lp_irl")),
        Method("mce-irl", "MCE-IRL", _entropy, basis=True, needs_imitation=True, most_seeds=1),
        Method("cloning", "cloning", _baseline("behavioural_cloning")),
        Method("bc", "BC network", _network, stochastic=True, needs_imitation=True, default=False),
        Method(
            "gail", "GAIL", _adversarial, stochastic=True, needs_imitation=True, most_seeds=1, default=False,
        ),
    )
}  # fmt: skip
"""The methods by name."""
