"""A solve by Algorithm 1 on its way: what its runs do next, and the solution so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.occupancy import shares
from rlfd_gym.mdp.reading import planned_policy
from rlfd_gym.problem import BlackBoxProblem, RLfDProblem
from rlfd_gym.problem.guarantee import Guarantee, guarantee_at
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd import stages
from rlfd_gym.solvers.smd.checkpoints import SmdState, Start, Total
from rlfd_gym.solvers.smd.runs import Plan, run_all
from rlfd_gym.solvers.smd.stages import Search

CHANGES = ("change_cost", "change_value", "change_occupancy", "change_mixture")  # as `measure` records them


@dataclass
class Course:
    """A solve on its way: what is done next, and what there is so far."""

    problem: RLfDProblem | BlackBoxProblem
    plan: Plan
    search: Search | None
    repair: bool
    made: int
    variant: str
    history: History
    stage_ended: bool = False

    def advance(self, until: int, runs: list[Start], jobs: int, update: Callable[[int], Any]) -> Total:
        """Make all runs' steps up to `until`, or up to the end of the stage if that comes first."""
        plan, search, problem = self.plan, self.search, self.problem
        if search is not None:
            assert isinstance(problem, RLfDProblem)
            until = min(until, search.ends)
            anew = self.made == search.begins
            plan = replace(plan, etas=search.sizes(problem), point=search.start if anew else None)
        self.plan = replace(plan, steps=until - self.made, point=None)
        total = run_all(problem, replace(plan, steps=until - self.made), runs, jobs, update)
        self.history = _history(self.plan, total, self.history)
        self.made = total.count
        self.stage_ended = False
        if search is not None and total.finished and self.made == search.ends:
            assert isinstance(problem, RLfDProblem)
            self.search = search.after(problem, stages.judged(problem, total.mean_average(), self.repair))
            self.stage_ended = True
        return total

    def solution(self, total: Total) -> Solution:
        """Return the solution so far: the averages over the runs, repaired, or what was better before."""
        problem, plan = self.problem, self.plan
        average, last = total.mean_average(), total.mean_last()
        policy: FloatArray
        promise: Guarantee | None
        upper, lower = problem.bounds(*average)
        stats: dict[str, Any] = {"n_runs": total.n_runs, "step_sizes": plan.etas}
        if isinstance(problem, RLfDProblem):
            raw_gap = upper - lower
            if self.repair or self.search is not None:
                best = stages.judged(problem, average, self.repair)
                best = best if self.search is None else self.search.best.or_better(best)
                average = best.point
                upper, lower = problem.bounds(*average)
            if self.repair or self.variant != "paper":
                stats |= {"gap": upper - lower, "raw_gap": raw_gap}
            policy = planned_policy(problem.mdp, average.occupancy, problem.belief.cost(average.x))
            promise = guarantee_at(problem, average, upper, lower, policy)
        else:  # without tables one cannot plan where there is no mass
            policy, promise = shares(average.occupancy, problem.state_starts), None
        cost = problem.belief.cost(average.x)
        mixes = cost is not average.x
        return Solution(
            policy=policy,
            occupancy=average.occupancy,
            cost=cost,
            mixture=average.x if mixes else None,
            value=average.value,
            upper=upper,
            lower=lower,
            method="smd-hull" if mixes else "smd",
            n_iterations=total.count,
            finished=total.finished,
            history=self.history,
            stats=stats,
            state=SmdState(plan.etas, total.runs, last, problem.fingerprint(), self.variant, self.search),
            guarantee=promise,
        )


def _history(plan: Plan, total: Total, before: History) -> History:
    """Return the records from before, followed by the means over runs of the new ones."""
    if not plan.record_every:
        return before
    mean, squares = (rows / total.n_runs for rows in total.records)
    std = np.sqrt(np.maximum(squares - mean[:, 0] ** 2, 0.0))
    last = total.count // plan.record_every
    iteration = plan.record_every * np.arange(last - len(mean) + 1, last + 1)
    columns = {"iteration": iteration, "duality_gap": mean[:, 0], "duality_gap_std": std}
    columns |= {name: mean[:, 1 + k] for k, name in enumerate(CHANGES[: 4 if total.mixes else 3])}
    return History(**{name: np.concatenate([getattr(before, name), new]) for name, new in columns.items()})
