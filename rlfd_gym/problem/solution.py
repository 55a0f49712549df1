"""What a solver or a baseline returns: an `Apprentice` or, with a learned cost, a `Solution`.

Numbers for people and data for the solver are in separate fields: `stats` holds numbers to read,
by name; `state` holds what a solver needs to continue, in a type that the solver defines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.mdp.pairs import Pairs
from rlfd_gym.mdp.reading import READINGS, mode_of
from rlfd_gym.mdp.tables import TabularMDP

if TYPE_CHECKING:
    from rlfd_gym.problem.guarantee import Guarantee

METHODS = (
    "exact: qp",
    "exact: matrix-free",
    "exact: qp, then matrix-free",
    "exact: lp",
    "exact: closed form",
    "exact: cutting planes",
    "exact: multiplier",
    "smd",
    "smd-hull",
    "sampled: model",
    "sampled: smd",
    "irl-io",
    "several-experts",
    "reweighted-l1",
    "lpal",
    "mwal",
    "projection",
    "max-margin",
    "lp-irl",
    "mce-irl",
    "bayesian-irl",
    "cloning",
    "majority",
    "mixture",
    "spibb",
    "broil",
    "drex",
    "bc",
    "gail",
    "planning",
    "fixed policy",
)
"""The names of the library's own methods in `Apprentice.method`; yours may have other names."""


def _empty() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """How a solve went, at the recorded iterations, as means over its runs.

    Attributes:
        iteration: the recorded iterations.
        duality_gap: the gap of each run's average so far, averaged over runs. This is what the
            convergence theorem bounds.
        duality_gap_std: the standard deviation of the gap over runs.
        change_cost: the ℓ1 distance between the average cost after this iteration and the one
            before, as in the paper's figures.
        change_value: the same for the value.
        change_occupancy: the same for the occupancy.
        change_mixture: the same for the mixture; empty for methods without one.

    Example:
        >>> from rlfd_gym import solve_smd
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.gridworld(alpha=0.1)
        >>> solution = solve_smd(problem, n_iterations=2000, record_every=1000)
        >>> solution.history.iteration.tolist(), len(solution.history)
        ([1000, 2000], 2)
    """

    iteration: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    duality_gap: FloatArray = field(default_factory=_empty)
    duality_gap_std: FloatArray = field(default_factory=_empty)
    change_cost: FloatArray = field(default_factory=_empty)
    change_value: FloatArray = field(default_factory=_empty)
    change_occupancy: FloatArray = field(default_factory=_empty)
    change_mixture: FloatArray = field(default_factory=_empty)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.iteration)

    def __repr__(self) -> str:
        """Return the number of records, and the gap at the first and the last of them."""
        if not len(self.duality_gap):
            return f"History({len(self) or 'no'} records)"
        first, last = ((self.iteration[k], self.duality_gap[k]) for k in (0, -1))
        return (
            f"History({len(self)} records, gap {first[1]:.2g} at {first[0]} to {last[1]:.2g} at {last[0]} iterations)"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Apprentice:
    """A learned policy.

    Attributes:
        policy: conditional probabilities, over pairs. `read` gives other readings of it.
        occupancy: μ over pairs, in the simplex. It is the occupancy of `policy` only up to the
            accuracy of the solve.
        method: the method's name; the library's own are `rlfd_gym.problem.solution.METHODS`.
        n_iterations: how many iterations the method took, in its own unit.
        stats: numbers that only this method reports, by name.

    Example:
        >>> from rlfd_gym.baselines import majority
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> apprentice = majority(problem.mdp, problem.expert)
        >>> apprentice.method, apprentice.policy.shape
        ('majority', (136,))
    """

    policy: FloatArray
    occupancy: FloatArray
    method: str = ""
    n_iterations: int = 0
    stats: dict[str, Any] = field(default_factory=dict)

    def read(self, mdp: Pairs, kind: str = "occupancy") -> FloatArray:
        """Return the policy in one of the readings of `rlfd_gym.mdp.reading`, over pairs.

        Args:
            mdp: the environment's tables; the pairs are enough, except for "greedy".
            kind: "occupancy" for the mixture, `policy` itself; "mode" for the most frequent action
                of each state, where equally frequent ones share the probability; "greedy" for the
                optimal policy for the learned cost, which only a `Solution` has.

        Example:
            >>> from rlfd_gym import solve_exact
            >>> from rlfd_gym.problem import examples
            >>> problem = examples.inventory(alpha=1.0)
            >>> policy = solve_exact(problem).read(problem.mdp, "mode")
            >>> bool((problem.mdp.max_by_state(policy) == 1).all())
            True
        """
        _checks.instance("mdp", mdp, Pairs, "see TabularMDP.from_env")
        _checks.one_of("kind", kind, READINGS)
        if mdp.n_pairs != len(self.policy):
            raise ValueError(f"mdp has {mdp.n_pairs} pairs, but the policy is over {len(self.policy)}")
        if kind == "greedy":
            return self._greedy(mdp)
        return self.policy if kind == "occupancy" else mode_of(mdp, self.policy)

    def _greedy(self, mdp: Pairs) -> FloatArray:
        raise ValueError(f'kind="greedy" plans with the learned cost, but {self.method!r} has learned none')

    def __repr__(self) -> str:
        """Return one line with the method and its result."""
        return f"{type(self).__name__}({', '.join(self._facts())})"

    def _facts(self) -> list[str]:
        """Return what `repr` says, one string for each fact."""
        numbers = [f"{name}={value:.4g}" for name, value in self.stats.items() if isinstance(value, (int, float))]
        return [f"{self.method!r}", f"{len(self.policy)} pairs", f"{self.n_iterations} iterations", *numbers]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Solution(Apprentice):
    """A learned cost and policy, with a certificate where the method has one.

    Attributes:
        policy: conditional probabilities, over pairs: those of `occupancy`, and in states that it
            does not reach the optimal actions for `cost` (see `rlfd_gym.mdp.reading`). Without
            tables such states are uniform.
        occupancy: μ over pairs, in the simplex. It is the occupancy of `policy` only up to the
            accuracy of the solve, and only from the expert's own start.
        cost: the learned cost, over pairs.
        value: u over states; `None` for methods without one.
        mixture: w, for methods that learn a cost Cw from a basis or features C, such as the prices
            of the belief `Prices`; otherwise `None`.
        upper: an upper bound on the optimum of the problem that was solved; `nan` for methods
            without one.
        lower: a lower bound on the same.
        method: the method's name; the library's own are `rlfd_gym.problem.solution.METHODS`.
        n_iterations: how many iterations the method took, in its own unit.
        finished: False after an interrupt or at a time limit; the solution is then the one reached
            until then.
        history: how the solve went, if that was recorded.
        stats: numbers that only this method reports, by name.
        state: what the solver needs to continue (`solve_smd(..., initial=solution)`); `None` for
            methods that cannot.
        guarantee: by how much the policy is better than the expert at least, for which costs;
            `None` for methods without a belief.

    Example:
        >>> from rlfd_gym import solve_exact
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> solution = solve_exact(problem)
        >>> solution.method, solution.duality_gap < 1e-6, solution.guarantee.improvement > 0.03
        ('exact: qp', True, True)
    """

    cost: FloatArray
    value: FloatArray | None = None
    mixture: FloatArray | None = None
    upper: float = float("nan")
    lower: float = float("nan")
    finished: bool = True
    history: History = field(default_factory=History)
    state: Any = None
    guarantee: Guarantee | None = None

    @property
    def duality_gap(self) -> float:
        """upper - lower, a bound on how far the solution is from optimal."""
        return self.upper - self.lower

    def _greedy(self, mdp: Pairs) -> FloatArray:
        tables: TabularMDP = _checks.instance("mdp", mdp, TabularMDP, 'which kind="greedy" plans in')
        return tables.optimal(self.cost).policy

    def __str__(self) -> str:
        """Return the facts of `repr`, and the guarantee in words if there is one."""
        return repr(self) if self.guarantee is None else f"{self!r}\n{self.guarantee}"

    def _facts(self) -> list[str]:
        method, *others = super()._facts()
        bounds = [] if np.isnan(self.upper) else [f"value in [{self.lower:.6g}, {self.upper:.6g}]"]
        gap = [f"duality gap {self.duality_gap:.2g}"] if bounds else []
        return [method, *bounds, *gap, *others, *([] if self.finished else ["not finished"])]
