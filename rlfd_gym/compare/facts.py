"""What notes and pictures say about a task.

These facts are computed when a comparison is run, and stored with it. Showing a comparison
therefore solves nothing, and needs no registry of tasks.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rlfd_gym._files import load_arrays, save_arrays
from rlfd_gym._programs import solve_lp
from rlfd_gym.compare.tasks import Instance, Task
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.report.plots import Grid

NOTHING = 1e-7  # a bound on β* that is zero, up to the linear program's accuracy
KIND, VERSION = "rlfd_gym comparison task", 1


@dataclass(frozen=True, eq=False, kw_only=True)
class Facts:
    """What is known about a task.

    Attributes:
        title: the heading of its table.
        expert_cost: as in `Task`: a description of the cost in the hull of the basis under which
            the expert is optimal.
        hull_gain: what a method that knows only the hull of the basis is certain to gain over the
            expert, -β* of LPAL; `None` if that is nothing, because the expert is optimal for a
            cost in the hull.
        hull_is_blind: whether the hull contains a cost under which all policies are alike, such as 0;
            then every expert is optimal for a cost in the hull, and that says nothing about it.
        errs_evenly: whether the expert is imperfect, but its most frequent actions are optimal.
        belief: the costs of the task's belief, to follow "for every cost"; empty if it has none.
        pairs: the feasible pairs, over which policies and costs are drawn.
        grid: how to draw the states, if they lie on a grid.
    """

    title: str
    expert_cost: str
    hull_gain: float | None
    errs_evenly: bool
    belief: str = ""
    hull_is_blind: bool = False
    pairs: Pairs = field(repr=False)
    grid: Grid | None = field(repr=False)

    def values(self) -> dict[str, Any]:
        """Return all facts except those that only pictures need."""
        names = ("title", "expert_cost", "hull_gain", "hull_is_blind", "errs_evenly", "belief")
        return {name: getattr(self, name) for name in names}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store the facts in a file."""
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        header: dict[str, Any] = {"facts": self.values(), "grid": None}
        arrays: dict[str, NDArray[Any]] = {"feasible": self.pairs.feasible}
        if self.grid is not None:
            header["grid"] = {name: getattr(self.grid, name) for name in ("arrows", "action_names", "row_zero")}
            arrays["cells"] = self.grid.cells
        save_arrays(path, KIND, VERSION, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Facts:
        """Read stored facts."""
        header, arrays = load_arrays(path, KIND, VERSION)
        grid = header["grid"] and Grid(
            cells=arrays["cells"],
            arrows=tuple((right, up) for right, up in header["grid"]["arrows"]),
            action_names=tuple(header["grid"]["action_names"]),
            row_zero=header["grid"]["row_zero"],
        )
        return cls(**header["facts"], pairs=Pairs.of_mask(arrays["feasible"]), grid=grid)


def facts_of(task: Task) -> Facts:
    """Compute the facts about a task, made for seed 0, by LPAL, a linear program and two forward problems."""
    instance = task.make(0)
    return Facts(
        title=task.title,
        expert_cost=task.expert_cost,
        hull_gain=_hull_gain(instance),
        hull_is_blind=_hull_is_blind(instance),
        errs_evenly=_errs_evenly(instance),
        belief="" if instance.belief is None else instance.belief.scope(instance.belief.prior),
        pairs=instance.mdp,
        grid=instance.grid,
    )


def _hull_gain(instance: Instance) -> float | None:
    from rlfd_gym.baselines import lpal

    solution = lpal(instance.mdp, expert=instance.expert, basis=instance.basis)
    return -solution.upper if solution.lower < -NOTHING else None


def _hull_is_blind(instance: Instance) -> bool:
    """Return whether a mixture w and a value u have Cw = Tγᵀu: then all policies cost <ν₀, u>."""
    mdp, basis = instance.mdp, instance.basis
    columns = sp.hstack([sp.csr_array(basis), -mdp.flow_matrix().T])
    total = sp.csr_array(np.concatenate([np.ones(basis.shape[1]), np.zeros(mdp.n_states)])[None])
    answer = solve_lp(
        np.zeros(columns.shape[1]),
        A_eq=sp.csr_array(sp.vstack([columns, total])),
        b_eq=np.append(np.zeros(mdp.n_pairs), 1.0),
        bounds=[(0, None)] * basis.shape[1] + [(None, None)] * mdp.n_states,
    )
    return bool(answer.success)


def _errs_evenly(instance: Instance) -> bool:
    mdp, truth = instance.mdp, instance.truth
    policy = mdp.policy_of(instance.expert)
    modes = mdp.policy_of((policy >= mdp.max_by_state(policy)[mdp.pair_states] - NOTHING).astype(float))
    optimum = mdp.optimal(truth).expected_cost
    imperfect = mdp.expected_cost(policy, truth) >= optimum + NOTHING
    return bool(imperfect and mdp.expected_cost(modes, truth) <= optimum + NOTHING)
