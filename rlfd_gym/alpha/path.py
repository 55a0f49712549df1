r"""The regularisation path: exact solutions of one problem along α.

RLfD_α trades two things off against each other. With F(c) = the expert's regret under the cost c
and G(c) = ‖c - ĉ‖²,

    c_α minimises F(c) + α G(c).

**Regret rises with α, and distance falls.** Let α < β. As c_α is best for α, and c_β for β,

    F(c_α) + α G(c_α) ≤ F(c_β) + α G(c_β),        F(c_β) + β G(c_β) ≤ F(c_α) + β G(c_α).

Adding them gives (β - α) (G(c_β) - G(c_α)) ≤ 0; with this, the first gives F(c_α) ≤ F(c_β). For
solutions that are only optimal up to duality gaps ε_α and ε_β the same lines give
G(c_β) ≤ G(c_α) + (ε_α + ε_β)/(β - α) and F(c_α) ≤ F(c_β) + ε_α + α (ε_α + ε_β)/(β - α).

**The ends.** Where the box is not active the apprentice is μ_α = μ_E + 2α (c_α - ĉ). Towards α = 0
the cost settles at the projection of the prior (`project_prior`), so the departure ‖μ_α - μ_E‖₁
vanishes in proportion to α: the expert is reproduced. For large α no entry of c differs from the
prior, clipped to [-1, 1], by more than 1/2α, and from some α on the cost of μ_α under the prior no
longer changes: the prior decides. The path runs from the α at which 1% of the departure is left to
the one at which the apprentice has gained all but 0.01% of what it can gain under the prior.

**Regret and sampled experts.** F(c) = min over u of <μ_E, q> - min q with q = c - Tγᵀu. For the
occupancy of a policy this is <μ_E, c> - ρ*_c. An expert estimated from samples starts where Tγ μ_E
says, not at ν₀, and <μ_E, c> - ρ*_c may then be negative. The quantity we report, which is
monotone in α, is the regret from the expert's own start.

**Every point is solved from scratch.** An interior point method gains nothing from a neighbour's
solution, which lies on the boundary. Keeping PIQP's factorisation pattern and scaling (its
`update`) was tried: the scaling of one α is so wrong for another that it takes ten times as many
steps. Thirty points of the paper's problems take a fifth of a second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._warnings import collected_warnings, warn
from rlfd_gym.beliefs import NearPrior
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.incumbent import GAP

SMALLEST, LARGEST = 1e-9, 1e4  # where the ends are sought; at the larger no cost differs from the prior by 1e-4
REPRODUCED = 1e-2  # the share of the departure under the prior that is left where the path begins
DECIDED = 1e-4  # the share of the gain under the prior that is missing where the path ends
INDIFFERENT = (1e-3, 1.0)  # the ends if expert and prior agree, so that every α gives the same
CLOSE = 1.001  # the ratio of the two α at which a rule's bisection ends


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The exact solution for one α, and where it stands between expert and prior.

    Attributes:
        alpha: the α that was solved for.
        solution: the exact solution.
        distance: ‖c - ĉ‖, the learned cost's distance from the prior.
        regret: the expert's regret under the learned cost.
        departure: ‖μ_A - μ_E‖₁, how far the apprentice departs from the expert: twice the share
            of time that they spend differently.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> point = alpha_path(problem, alphas=[1.0])[0]
        >>> point.alpha, 0 < point.departure < 2, point.distance > 0
        (1.0, True, True)
    """

    alpha: float
    solution: Solution = field(repr=False)
    distance: float
    regret: float
    departure: float

    @property
    def duality_gap(self) -> float:
        """The largest amount by which the solution can fail to be optimal."""
        return self.solution.duality_gap

    @property
    def policy(self) -> FloatArray:
        """The apprentice's policy, over pairs."""
        return self.solution.policy


@dataclass(frozen=True, eq=False, repr=False)
class AlphaPath(Sequence[PathPoint]):
    """Exact solutions of one problem in the order of ascending α: a sequence of `PathPoint`.

    Attributes:
        problem: the problem; its own α plays no part.
        points: the solutions, one for each α.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> path = alpha_path(problem, alphas=[0.1, 1.0])
        >>> [point.alpha for point in path], path[0].regret < path[1].regret
        ([0.1, 1.0], True)
    """

    problem: RLfDProblem
    points: tuple[PathPoint, ...]

    @overload
    def __getitem__(self, index: int) -> PathPoint: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PathPoint, ...]: ...

    def __getitem__(self, index: int | slice) -> PathPoint | tuple[PathPoint, ...]:
        """Return the point at an index, or the points of a slice."""
        return self.points[index]

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.points)

    def __repr__(self) -> str:
        """Name the number of points, the range of α and the size of the problem."""
        first, last = self.points[0].alpha, self.points[-1].alpha
        return f"AlphaPath({len(self)} points, alpha {first:.3g} to {last:.3g}, {self.problem.n_pairs} pairs)"


def alpha_path(
    problem: RLfDProblem, alphas: ArrayLike | None = None, n_points: int = 30, *, n_jobs: int = 1
) -> AlphaPath:
    """Solve RLfD_α exactly along α, from imitating the expert to following the prior.

    Args:
        problem: the learning problem; its own α plays no part.
        alphas: positive numbers, in any order. By default both ends are found (see the module's
            docstring) and the other points lie between them at equal ratios.
        n_points: the number of points if `alphas` is not given.
        n_jobs: how many points joblib solves at a time, in processes unless
            `joblib.parallel_config` names another backend, such as "dask"; -1 means all cores. The
            result does not depend on it. The ends are found one after the other.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> path = alpha_path(examples.inventory(), n_points=5)
        >>> [round(point.regret, 3) for point in path]
        [0.0, 0.0, 0.031, 0.159, 0.213]
        >>> path[0].distance > path[-1].distance
        True
    """
    _checks.instance("problem", problem, RLfDProblem, "the path needs exact solutions")
    if not isinstance(problem.belief, NearPrior):
        raise TypeError(f"problem must have the belief NearPrior for a path, got {type(problem.belief).__name__}")
    if problem.regulariser != "l2":
        raise ValueError(f'problem must have regulariser="l2" for a path, got {problem.regulariser!r}')
    number = _checks.integer("n_points", n_points, 2, _checks.MOST_TIMES)
    jobs = _checks.integer("n_jobs", n_jobs, -(2**31))
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    if alphas is None:
        grid = np.geomspace(*_ends(problem), number)
    else:
        grid = np.unique(_checks.numbers("alphas", alphas))
        if grid.size == 0 or not ((grid >= 1 / _checks.LARGEST) & (grid <= _checks.LARGEST)).all():
            raise ValueError(f"alphas must be positive numbers, at least one; got {alphas!r}")
    if jobs == 1:
        return AlphaPath(problem, tuple(solve_at(problem, float(alpha)) for alpha in grid))
    from joblib import Parallel, delayed  # slow to load

    parts = Parallel(n_jobs=min(jobs, grid.size))(delayed(_solve_apart)(problem, float(alpha)) for alpha in grid)
    for message in dict.fromkeys(message for _, messages in parts for message in messages):
        warn(message, RuntimeWarning, stacklevel=2)
    return AlphaPath(problem, tuple(point for point, _ in parts))


def _solve_apart(problem: RLfDProblem, alpha: float) -> tuple[PathPoint, list[str]]:
    """Solve for one α in another process, and return its warnings, which would be lost there."""
    with collected_warnings() as messages:
        return solve_at(problem, alpha), messages


def solve_at(problem: RLfDProblem, alpha: float) -> PathPoint:
    """Solve exactly for one α, and measure where the solution stands."""
    solution = solve_exact(problem.with_alpha(alpha))
    assert solution.value is not None
    slack = solution.cost - problem.mdp.flow_transpose(solution.value)
    return PathPoint(
        alpha=alpha,
        solution=solution,
        distance=float(np.linalg.norm(solution.cost - problem.prior)),
        regret=max(0.0, float(problem.expert @ slack - slack.min())),
        departure=float(np.abs(solution.occupancy - problem.expert).sum()),
    )


def _ends(problem: RLfDProblem) -> tuple[float, float]:
    """Find the α below which the expert is reproduced, and that above which the prior decides."""
    prior = np.clip(problem.prior, -1.0, 1.0)
    with collected_warnings():  # not passed on: so far out a gap may stay open, see `allowed`
        both = solve_at(problem, SMALLEST), solve_at(problem, LARGEST)
    # What the apprentice can gain under the prior, and how much of it may be missing.
    last = both[1]
    least = float(prior @ last.solution.occupancy)
    gain = float(prior @ problem.expert) - least
    if gain <= 10 * GAP:
        return INDIFFERENT
    allowed = max(DECIDED * gain, GAP, last.duality_gap)
    low, _ = bracket(problem, *both, lambda point: point.departure <= REPRODUCED * last.departure, 2.0)
    _, high = bracket(problem, *both, lambda point: float(prior @ point.solution.occupancy) > least + allowed, 2.0)
    return low.alpha, max(high.alpha, 2 * low.alpha)


def bracket(
    problem: RLfDProblem, first: PathPoint, last: PathPoint, holds: Callable[[PathPoint], bool], ratio: float = CLOSE
) -> tuple[PathPoint, PathPoint]:
    """Bisect, geometrically, for the α at which `holds` turns false.

    Returns the last point where it holds and the first where it does not, at most a factor `ratio`
    apart.
    """
    while last.alpha > ratio * first.alpha:
        middle = solve_at(problem, math.sqrt(first.alpha * last.alpha))
        first, last = (middle, last) if holds(middle) else (first, middle)
    return first, last
