r"""The regularisation path, and rules that choose α from it.

RLfD_α trades two things for each other: with F(c) = the expert's regret under the cost c and G(c) = ‖c - ĉ‖²,

    c_α minimises F(c) + α G(c).

**Regret rises with α, distance falls.** Let α < β. That c_α is best for α, and c_β for β, says

    F(c_α) + α G(c_α) ≤ F(c_β) + α G(c_β),        F(c_β) + β G(c_β) ≤ F(c_α) + β G(c_α).

Adding them gives (β - α) (G(c_β) - G(c_α)) ≤ 0; with this, the first gives F(c_α) ≤ F(c_β). For answers that are only
optimal up to duality gaps ε_α and ε_β the same lines give G(c_β) ≤ G(c_α) + (ε_α + ε_β)/(β - α) and
F(c_α) ≤ F(c_β) + ε_α + α (ε_α + ε_β)/(β - α).

**The ends.** Where the box is not active the apprentice is μ_α = μ_E + 2α (c_α - ĉ). Towards α = 0 the cost settles at
the projection of the prior (`project_prior`), so the departure ‖μ_α - μ_E‖₁ vanishes in proportion to α: the expert is
reproduced. Upwards no entry of c differs from the prior, cut to the box, by more than 1/2α, and from some α on μ_α no
longer changes what it costs under the prior: the prior decides. The path runs from the α at which 1% of the departure
is left to the one at which all but 0.01% of what the apprentice can gain under the prior is gained.

**Regret and sampled experts.** F(c) = min over u of <μ_E, q> - min q, q = c - Tγᵀu. For the occupancy of a policy that
is <μ_E, c> - ρ*_c. An expert estimated from samples starts where Tγ μ_E says, not at ν₀; <μ_E, c> - ρ*_c may then be
negative, and what is meant, and monotone, is the regret from the expert's own start.

**Every point is solved from scratch.** An interior point method gains nothing from a neighbour's solution, which lies
at the border. Keeping PIQP's factorisation pattern and scaling (its `update`) was tried: the scaling of one α is so
wrong for another that it takes ten times as many steps. Thirty points of the paper's problems take a fifth of a second.

**The rules** (`select_alpha`), what each assumes and when it misleads:

* `"regret-budget"`: you know how suboptimal the expert may be. The budget is a share of the cost range, by which is
  meant how far the best and the worst policy are apart under the prior. The largest α whose cost keeps the expert's
  regret within the budget; monotone, so by bisection. It does not look at the noise in the data, and with few
  demonstrations part of the regret is not the expert's but the sample's. With a budget larger than the regret under the
  prior itself it hands everything to the prior, right or wrong.
* `"discrepancy"`: the expert is as good as it gets, and only sampling blurs him (Morozov's principle). The smallest α
  on the path at which the departure reaches the noise of μ̂_E, measured as its bootstrap standard error
  (`occupancy_noise`). In ℓ1-norm the departure nearly always rises with α, but need not; the first crossing is taken.
  The rule knows nothing of an expert who is consistently wrong: with many demonstrations it imitates him. And the
  departure that is allowed is spent on what the prior dislikes, which need not be where the noise is.
* `"l-curve"`: nothing is known. The corner of the trade-off between F and G. Both fall on a convex curve whose slope
  at c_α is dF/dG = -α, so the point farthest below the chord between the path's ends is where α is the chord's slope,

      α = (F_last - F_first) / (G_first - G_last),

  where one more per cent of the distance is worth one per cent of the regret. (On logarithmic axes, where such corners
  are often looked for, this curve has none: its slope there, -F/αG up to a factor, goes from 0 to -∞ and it bends away
  from the origin.) The rule weighs expert and prior alike, whatever they deserve.
"""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.demonstrations import Demonstrations, estimate_occupancy, read_demonstrations
from rlfd_gym.exact import QP_GAP, policy_spread, solve_exact
from rlfd_gym.mdp import TabularMDP
from rlfd_gym.problem import RLfDProblem
from rlfd_gym.solution import Solution

RULES = ("regret-budget", "discrepancy", "l-curve")
PARAMETERS = {"regret-budget": "budget", "discrepancy": "noise"}  # what the number after the colon is
SMALLEST, LARGEST = 1e-9, 1e4  # where the ends are looked for; at the larger no cost differs from the prior by 1e-4
REPRODUCED = 1e-2  # of the departure that the prior would cause
DECIDED = 1e-4  # of what the apprentice can gain under the prior
INDIFFERENT = (1e-3, 1.0)  # the ends where expert and prior agree, and every α gives the same
CLOSE = 1.001  # the ratio of α at which a rule's bisection ends


@dataclass(frozen=True, eq=False)
class PathPoint:
    """The exact solution for one α, and where it stands between expert and prior."""

    alpha: float
    solution: Solution = field(repr=False)
    distance: float
    """‖c - ĉ‖, the learned cost's distance from the prior."""
    regret: float
    """The expert's regret under the learned cost."""
    departure: float
    """‖μ_A - μ_E‖₁, the apprentice's from the expert: twice the share of time that they spend differently."""

    @property
    def duality_gap(self) -> float:
        """How far from optimal the solution is at most."""
        return self.solution.duality_gap

    @property
    def policy(self) -> FloatArray:
        """The apprentice's policy, over pairs."""
        return self.solution.policy


@dataclass(frozen=True, eq=False)
class AlphaPath(Sequence[PathPoint]):
    """Exact solutions of one problem for ascending α."""

    problem: RLfDProblem
    """The problem; its own α plays no part."""
    points: tuple[PathPoint, ...]

    @overload
    def __getitem__(self, index: int) -> PathPoint: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PathPoint, ...]: ...

    def __getitem__(self, index: int | slice) -> PathPoint | tuple[PathPoint, ...]:
        """The point at an index, or the points of a slice."""
        return self.points[index]

    def __len__(self) -> int:
        """How many points there are."""
        return len(self.points)


@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """The α that a rule chose, what is learned with it, and why in a sentence."""

    alpha: float
    solution: Solution = field(repr=False)
    rule: str
    reason: str


def alpha_path(problem: RLfDProblem, alphas: ArrayLike | None = None, n_points: int = 30) -> AlphaPath:
    """Exact solutions of RLfD_α along α, from imitating the expert to following the prior.

    Args:
        problem: the learning problem; its own α plays no part.
        alphas: positive numbers, in any order. By default both ends are found, see the module's docstring, and the rest
            lies between them at equal ratios.
        n_points: how many, if `alphas` are not given.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> path = alpha_path(rlfd_gym.RLfDProblem(env.mdp, expert, prior=env.cost_for(4, 2, 14)), n_points=5)
        >>> [round(point.regret, 3) for point in path]
        [0.0, 0.0, 0.031, 0.159, 0.213]
        >>> path[0].distance > path[-1].distance
        True
    """
    if not isinstance(problem, RLfDProblem):
        raise TypeError(f"problem must be an RLfDProblem, got {type(problem).__name__}: the path needs exact solutions")
    if problem.regulariser != "l2":
        raise ValueError(f'problem must have regulariser="l2" for a path, got {problem.regulariser!r}')
    if alphas is None:
        grid = np.geomspace(*_ends(problem), _checks.integer("n_points", n_points, 2))
    else:
        grid = np.unique(_checks.as_array("alphas", alphas, np.float64))
        if grid.size == 0 or not (np.isfinite(grid) & (grid > 0)).all():
            raise ValueError(f"alphas must be positive numbers, at least one; got {alphas!r}")
    return AlphaPath(problem, tuple(_point(problem, float(alpha)) for alpha in grid))


def select_alpha(
    path: AlphaPath, rule: str = "regret-budget", *, budget: float = 0.05, noise: float | None = None
) -> AlphaChoice:
    """Choose α by a rule; the module's docstring says what each assumes and when it misleads.

    Args:
        path: from `alpha_path`. Its points bracket the answer, which is then found to 0.1% with further exact solves.
        rule: "regret-budget", "discrepancy" or "l-curve"; the first two may bring their number along, as in
            "regret-budget:0.05" and "discrepancy:0.2".
        budget: for "regret-budget", the regret that the expert may have, as a share of the cost range.
        noise: for "discrepancy", how far the expert's occupancy may be off in ℓ1-norm; see `occupancy_noise`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy
        >>> path = alpha_path(rlfd_gym.RLfDProblem(env.mdp, expert, prior=env.cost_for(4, 2, 14)))
        >>> choice = select_alpha(path, "regret-budget", budget=0.05)
        >>> round(choice.alpha, 1)
        1.9
        >>> print(choice.reason)  # doctest: +NORMALIZE_WHITESPACE
        alpha = 1.88 is the largest at which the expert's regret, 0.0454, is within the budget of 5% of the cost range
        0.909
    """
    if not isinstance(path, AlphaPath):
        raise TypeError(f"path must be what alpha_path returns, got {type(path).__name__}")
    name, number = parse_rule(rule)
    if name == "regret-budget":
        point, reason = _within_budget(path, _checks.number("budget", budget if number is None else number, 0.0, 1.0))
    elif name == "discrepancy":
        level = noise if number is None else number
        if level is None:
            raise ValueError('rule "discrepancy" needs noise, such as occupancy_noise(demonstrations, mdp); got None')
        point, reason = _beyond_noise(path, _checks.number("noise", level, 0.0))
    else:
        point, reason = _corner(path)
    return AlphaChoice(point.alpha, point.solution, rule, reason)


def parse_rule(rule: str) -> tuple[str, float | None]:
    """(name, number or `None`) of a rule such as "regret-budget:0.05".

    >>> parse_rule("regret-budget:0.05"), parse_rule("l-curve")
    (('regret-budget', 0.05), ('l-curve', None))
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a string, one of {', '.join(RULES)}; got {type(rule).__name__}: {rule!r}")
    name, colon, text = rule.partition(":")
    if name not in RULES:
        near = difflib.get_close_matches(name, RULES, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"rule must be one of {', '.join(RULES)}; got {rule!r}{hint}")
    if not colon:
        return name, None
    if name not in PARAMETERS:
        raise ValueError(f"rule {name!r} takes no number, got {rule!r}")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(
            f"rule {name!r} takes a number after the colon, its {PARAMETERS[name]}; got {rule!r}"
        ) from None
    return name, _checks.number(PARAMETERS[name], number, 0.0, 1.0 if name == "regret-budget" else 2.0)


def occupancy_noise(
    demonstrations: Any, mdp: TabularMDP, *, discounting: str = "trajectory", n_bootstrap: int = 200, seed: int = 0
) -> float:
    """How far the occupancy estimated from demonstrations may be off: its bootstrap standard error in ℓ1-norm.

    Whole trajectories are drawn with replacement and the occupancy estimated anew, as `occupancy_from_demonstrations`
    does. The root mean square of its ℓ1 distances from the original estimate, times √(K/(K-1)), without which K
    trajectories would look less noisy than they are. It does not see what no trajectory has shown.

    Args:
        demonstrations: two trajectories at least, in any form that `occupancy_from_demonstrations` takes.
        mdp: the environment's tables.
        discounting: as for `occupancy_from_demonstrations`.
        n_bootstrap: how many resamples.
        seed: of the resampling.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> mdp = gym.make("rlfd_gym/WindyGridworld-v0", height=4, width=4).unwrapped.mdp
        >>> few, many = (rlfd_gym.demonstrate(mdp, mdp.uniform_policy(), k, 20, seed=0) for k in (10, 250))
        >>> occupancy_noise(few, mdp) > 3 * occupancy_noise(many, mdp)
        True
    """
    read = demonstrations if isinstance(demonstrations, Demonstrations) else read_demonstrations(demonstrations)
    if read.lengths is None or len(read.lengths) < 2:
        found = "transitions without times" if read.lengths is None else "one trajectory"
        raise ValueError(f"demonstrations must hold at least two trajectories for a standard error, got {found}")
    rng, number = np.random.default_rng(seed), len(read.lengths)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about early ends: whoever estimates the occupancy is told
        estimate = estimate_occupancy(read, mdp, discounting=discounting)
        squares = [
            np.abs(
                estimate_occupancy(_only(read, rng.integers(number, size=number)), mdp, discounting=discounting)
                - estimate
            ).sum()
            ** 2
            for _ in range(_checks.integer("n_bootstrap", n_bootstrap, 2))
        ]
    return math.sqrt(float(np.mean(squares)) * number / (number - 1))


def _only(read: Demonstrations, which: Any) -> Demonstrations:
    """The trajectories with these numbers, in this order, as often as they occur."""
    assert read.lengths is not None
    assert read.next_states is not None
    lengths = read.lengths[which]
    begins = np.cumsum(lengths) - lengths
    index = np.arange(lengths.sum()) + np.repeat((read.ends - read.lengths + 1)[which] - begins, lengths)
    return replace(
        read,
        states=read.states[index],
        actions=read.actions[index],
        next_states=read.next_states[index],
        lengths=lengths,
        terminal=read.terminal[which],
    )


def _point(problem: RLfDProblem, alpha: float) -> PathPoint:
    """Solve for one α and measure."""
    solution = solve_exact(problem.with_alpha(alpha))
    assert solution.cost is not None
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
    """The α below which the expert is reproduced, and the one above which the prior decides."""
    prior = np.clip(problem.prior, -1.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # so far out a gap may stay open, which is allowed for below
        both = _point(problem, SMALLEST), _point(problem, LARGEST)
    last = both[1]
    least = float(prior @ last.solution.occupancy)
    gain = float(prior @ problem.expert) - least
    if gain <= 10 * QP_GAP:
        return INDIFFERENT
    allowed = max(DECIDED * gain, QP_GAP, last.duality_gap)
    low, _ = _bracket(problem, *both, lambda point: point.departure <= REPRODUCED * last.departure, 2.0)
    _, high = _bracket(problem, *both, lambda point: float(prior @ point.solution.occupancy) > least + allowed, 2.0)
    return low.alpha, max(high.alpha, 2 * low.alpha)


def _bracket(
    problem: RLfDProblem, first: PathPoint, last: PathPoint, holds: Callable[[PathPoint], bool], ratio: float = CLOSE
) -> tuple[PathPoint, PathPoint]:
    """Two α between these, within `ratio` of each other, between which something that held at first ceases to hold."""
    while last.alpha > ratio * first.alpha:
        middle = _point(problem, math.sqrt(first.alpha * last.alpha))
        first, last = (middle, last) if holds(middle) else (first, middle)
    return first, last


def _crossing(path: AlphaPath, holds: Callable[[PathPoint], bool]) -> tuple[PathPoint | None, PathPoint | None]:
    """The last α at which something holds, and the first above at which it does not; `None` beyond the path's ends."""
    number = next((k for k, point in enumerate(path) if not holds(point)), len(path))
    if number == 0:
        return None, path[0]
    if number == len(path):
        return path[-1], None
    return _bracket(path.problem, path[number - 1], path[number], holds)


def _within_budget(path: AlphaPath, budget: float) -> tuple[PathPoint, str]:
    """The largest α whose cost keeps the expert's regret within the budget."""
    spread = policy_spread(path.problem.mdp, np.clip(path.problem.prior, -1.0, 1.0))
    limit = max(budget * spread, QP_GAP)  # the solver cannot tell less from nothing
    what = f"the budget of {100 * budget:.3g}% of the cost range {spread:.3g}"

    def holds(point: PathPoint) -> bool:
        return point.regret <= limit

    inside, outside = _crossing(path, holds)
    if outside is None:
        assert inside is not None
        return inside, (
            f"even at the path's largest alpha = {inside.alpha:.3g} the expert's regret, {inside.regret:.3g}, is "
            f"within {what}"
        )
    if inside is None:  # below the path: towards α = 0 there is no regret
        inside, _ = _bracket(path.problem, _point(path.problem, SMALLEST), outside, holds)
    return inside, (
        f"alpha = {inside.alpha:.3g} is the largest at which the expert's regret, {inside.regret:.3g}, is within {what}"
    )


def _beyond_noise(path: AlphaPath, noise: float) -> tuple[PathPoint, str]:
    """The smallest α at which the apprentice departs from the expert by as much as the noise."""
    nearer, reached = _crossing(path, lambda point: point.departure < noise)
    if nearer is None:
        return path[0], (
            f"already at the path's smallest alpha = {path[0].alpha:.3g} the apprentice departs from the expert by "
            f"{path[0].departure:.3g}, no less than the noise {noise:.3g}"
        )
    if reached is None:
        return nearer, (
            f"even at the path's largest alpha = {nearer.alpha:.3g} the apprentice departs from the expert by "
            f"{nearer.departure:.3g} only, less than the noise {noise:.3g}: the data cannot contradict the prior"
        )
    return reached, (
        f"alpha = {reached.alpha:.3g} is the smallest at which the apprentice departs from the expert by "
        f"{reached.departure:.3g}, as much as the noise {noise:.3g}"
    )


def _corner(path: AlphaPath) -> tuple[PathPoint, str]:
    """The point of the trade-off farthest below the chord between the path's ends."""
    if len(path) < 2:
        raise ValueError('rule "l-curve" looks between two ends, so path must have two points at least; got 1')
    first, last = path[0], path[-1]
    regret, distance = last.regret - first.regret, first.distance**2 - last.distance**2
    if regret <= QP_GAP or distance <= 0:
        return last, (
            f"there is no trade-off between alpha = {first.alpha:.3g} and {last.alpha:.3g}: the expert's regret is "
            f"{last.regret:.3g} throughout, so the prior may have its say"
        )
    corner = _point(path.problem, min(max(regret / distance, first.alpha), last.alpha))
    return corner, (
        f"alpha = {corner.alpha:.3g} is the corner, where regret {corner.regret:.3g} of {last.regret:.3g} is traded "
        f"for distance {corner.distance:.3g} of {first.distance:.3g}"
    )
