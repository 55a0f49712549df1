r"""Rules that choose α from a path (`select_alpha`): what each assumes, and when it misleads.

* `"regret-budget"` assumes that you know how suboptimal the expert may be. The budget is a share
  of the cost range, which is how far apart the best and the worst policy are under the prior. The
  rule takes the largest α whose cost keeps the expert's regret within the budget. It finds this α
  by bisection, as the regret is monotone. It does not look at the noise in the data, and with few
  demonstrations part of the regret is not the expert's but the sample's. If the budget is larger
  than the regret under the prior itself, the rule hands everything to the prior, right or wrong.
* `"discrepancy"` assumes that the expert is as good as it gets, and that only sampling blurs it
  (Morozov's principle). The rule takes the smallest α on the path at which the departure reaches
  the noise of μ̂_E, the error to expect of it in ℓ1-norm (`occupancy_noise`). In this norm the
  departure nearly always rises with α, but need not; the first crossing is taken. The rule knows
  nothing of an expert that is consistently wrong: with many demonstrations it imitates the expert.
  And the departure that is allowed is spent on what the prior dislikes, which need not be where
  the noise is.
* `"prior-error"` assumes that you know how wrong the prior may be, as a distance r = ‖c - ĉ‖ in
  ℓ2-norm. The rule takes the largest α whose learned cost is at least r away from the prior: the
  guarantee of its apprentice then covers every cost within r (`rlfd_gym.problem.guarantee`), and of
  all such α this one promises most. It finds this α by bisection, as the distance is monotone. If
  the expert is optimal for a cost within r of the prior, nothing can be promised, and the rule
  imitates.
* `"evidence"` assumes that the expert is more or less rational, and that the prior is off by a
  Gaussian error. How rational, and how far off, is what makes the demonstrations most probable; α
  follows from both (`rlfd_gym.alpha.soft_rules`). The rule sees an expert that errs at random, and
  a prior that does not fit. It takes whatever a consistent expert does for its intention.
* `"held-out"` assumes that the α that predicts the expert best is the best one. The rule learns
  from some of the trajectories and predicts the actions of the others. It takes the largest α whose
  prediction is within one standard error of the best. What predicts the expert need not improve on
  it.
* `"l-curve"` assumes nothing. The rule takes the corner of the trade-off between F and G. They lie
  on a convex curve whose slope at c_α is dF/dG = -α, so the point farthest below the chord between
  the path's ends is where α is the chord's slope,

      α = (F_last - F_first) / (G_first - G_last).

  There one more per cent of the distance is worth one per cent of the regret. (On logarithmic
  axes, where such corners are often sought, this curve has none: its slope there, -F/αG up to a
  factor, goes from 0 to -∞, and it bends away from the origin.) The rule weighs expert and prior
  alike, whatever they deserve.

**No rule that has only the data can see that a consistent expert is misled.** Its demonstrations are
those of a good expert under another cost. Only what you know yourself helps: how suboptimal the
expert may be ("regret-budget"), or how wrong the prior may be ("prior-error").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym.alpha.path import LARGEST, SMALLEST, AlphaPath, PathPoint, bracket, solve_at
from rlfd_gym.alpha.soft_rules import by_evidence, by_held_out
from rlfd_gym.experts.demonstrations import Demonstrations, check_known, read_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.incumbent import GAP
from rlfd_gym.solvers.projection import policy_spread


@dataclass(frozen=True, eq=False)
class AlphaChoice:
    """The α that a rule chose, what is learned with it, and why.

    Attributes:
        alpha: the chosen α.
        solution: what is learned with it.
        rule: the rule, as it was given.
        reason: why the rule chose this α, in a sentence.

    Example:
        >>> from rlfd_gym import alpha_path
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> choice = select_alpha(alpha_path(problem), "regret-budget:0.05")
        >>> choice.rule, choice.alpha > 0, choice.solution.duality_gap < 1e-6
        ('regret-budget:0.05', True, True)
    """

    alpha: float
    solution: Solution = field(repr=False)
    rule: str
    reason: str


@dataclass(frozen=True)
class Rule:
    """An entry of `RULES`: what a rule takes, how it chooses a point of a path and says why."""

    choose: Callable[..., tuple[PathPoint, str]]
    """A function of the path and the number after the colon, between them the demonstrations if it needs them."""
    parameter: str | None = None
    """What the number after the colon is; `None` for a rule that takes none."""
    largest: float = 0.0
    """The largest number that may stand after the colon."""
    needs_trajectories: bool = False
    """Whether the rule looks at the demonstrations themselves."""


def select_alpha(
    path: AlphaPath,
    rule: str = "regret-budget",
    *,
    budget: float = 0.05,
    noise: float | None = None,
    demonstrations: Any = None,
) -> AlphaChoice:
    """Choose α by a rule; the module's docstring says what each assumes and when it misleads.

    Args:
        path: from `alpha_path`. Its points bracket the answer, which is then found to 0.1% with
            further exact solves.
        rule: "regret-budget", "discrepancy", "prior-error", "evidence", "held-out" or "l-curve".
            Some may include their number, as in "regret-budget:0.05", "discrepancy:0.2" and
            "evidence:1000" (decisions), and "prior-error:0.1" must.
        budget: for "regret-budget", the regret that the expert may have, as a share of the cost
            range.
        noise: for "discrepancy", how far the expert's occupancy may be off in ℓ1-norm; see
            `occupancy_noise`.
        demonstrations: for "evidence" and "held-out", the trajectories that the expert's
            occupancy was estimated from.

    Example:
        >>> from rlfd_gym import alpha_path
        >>> from rlfd_gym.problem import examples
        >>> choice = select_alpha(alpha_path(examples.inventory()), "regret-budget", budget=0.05)
        >>> round(choice.alpha, 1)
        1.9
        >>> print(choice.reason)  # doctest: +NORMALIZE_WHITESPACE
        alpha = 1.88 is the largest at which the expert's regret, 0.0454, is within the budget
        of 5% of the cost range 0.909
    """
    if not isinstance(path, AlphaPath):
        raise TypeError(f"path must be what alpha_path returns, got {type(path).__name__}")
    name, number = parse_rule(rule)
    _checks.number("budget", budget, 0.0, 1.0)
    if noise is not None:
        _checks.number("noise", noise, 0.0)
    if number is None and name == "regret-budget":
        number = float(budget)
    if number is None and name == "discrepancy":
        if noise is None:
            raise ValueError('rule "discrepancy" needs noise, such as occupancy_noise(demonstrations, mdp); got None')
        number = float(noise)
    shown = _read(demonstrations, path.problem.mdp)
    if RULES[name].needs_trajectories:
        point, reason = RULES[name].choose(path, shown, number or 0.0)
    else:
        point, reason = RULES[name].choose(path, number or 0.0)
    return AlphaChoice(point.alpha, point.solution, rule, reason)


def parse_rule(rule: str) -> tuple[str, float | None]:
    """Return (name, number or `None`) of a rule such as "regret-budget:0.05".

    >>> parse_rule("regret-budget:0.05"), parse_rule("l-curve")
    (('regret-budget', 0.05), ('l-curve', None))
    """
    if not isinstance(rule, str):
        raise TypeError(f"rule must be a string, one of {', '.join(RULES)}; got {type(rule).__name__}: {rule!r}")
    name, colon, text = rule.partition(":")
    parameter, largest = RULES[_checks.one_of("rule", name, RULES)].parameter, RULES[name].largest
    if not colon:
        if name == "prior-error":
            raise ValueError('rule "prior-error" needs its number, how wrong the prior may be: "prior-error:0.1"')
        return name, None
    if parameter is None:
        raise ValueError(f"rule {name!r} takes no number, got {rule!r}")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"rule {name!r} takes a number after the colon, its {parameter}; got {rule!r}") from None
    return name, _checks.number(parameter, number, 0.0, largest)


def _read(demonstrations: Any, mdp: TabularMDP) -> Demonstrations | None:
    """Return demonstrations as arrays, if there are any, after checking that the MDP has all they show."""
    if demonstrations is None:
        return None
    read = demonstrations if isinstance(demonstrations, Demonstrations) else read_demonstrations(demonstrations)
    check_known(read, mdp.feasible)
    return read


def _crossing(path: AlphaPath, holds: Callable[[PathPoint], bool]) -> tuple[PathPoint | None, PathPoint | None]:
    """Find the last point at which something holds, and the next, at which it does not.

    A point that would lie beyond the path's ends is `None`.
    """
    number = next((k for k, point in enumerate(path) if not holds(point)), len(path))
    if number == 0:
        return None, path[0]
    if number == len(path):
        return path[-1], None
    return bracket(path.problem, path[number - 1], path[number], holds)


def _within_budget(path: AlphaPath, budget: float) -> tuple[PathPoint, str]:
    """Choose the largest α whose cost keeps the expert's regret within the budget."""
    spread = policy_spread(path.problem.mdp, np.clip(path.problem.prior, -1.0, 1.0))
    limit = max(budget * spread, GAP)  # the solver cannot tell a smaller regret from zero
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
    if inside is None:  # α is below the path: towards α = 0 the regret vanishes
        inside, _ = bracket(path.problem, solve_at(path.problem, SMALLEST), outside, holds)
    return inside, (
        f"alpha = {inside.alpha:.3g} is the largest at which the expert's regret, {inside.regret:.3g}, is within {what}"
    )


def _beyond_noise(path: AlphaPath, noise: float) -> tuple[PathPoint, str]:
    """Choose the smallest α at which the apprentice departs from the expert by the noise."""
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


def _within_trust(path: AlphaPath, radius: float) -> tuple[PathPoint, str]:
    """Choose the largest α whose guarantee covers every cost within `radius` of the prior."""

    def holds(point: PathPoint) -> bool:
        return point.distance >= radius

    inside, outside = _crossing(path, holds)
    if inside is None:  # α is below the path, unless the expert is optimal before the distance is reached
        inside = solve_at(path.problem, max(1e-3 * path[0].alpha, SMALLEST))
        if inside.regret <= GAP or not holds(inside):
            return path[0], (
                f"the expert is optimal, within {max(inside.regret, 0.0):.1g}, under a cost {inside.distance:.3g} from "
                f"the prior, so nothing can be promised for every cost within {radius:.3g}; the path's smallest "
                f"alpha = {path[0].alpha:.3g} imitates"
            )
        inside, _ = bracket(path.problem, inside, path[0], holds)
    elif outside is None:
        farthest = solve_at(path.problem, LARGEST)
        inside = farthest if holds(farthest) else bracket(path.problem, inside, farthest, holds)[0]
    return inside, (
        f"alpha = {inside.alpha:.3g} is the largest whose learned cost, {inside.distance:.3g} from the prior, is at "
        f"least {radius:.3g} away, so that every cost within that distance is covered"
    )


def _corner(path: AlphaPath, _: float) -> tuple[PathPoint, str]:
    """Choose the point of the trade-off farthest below the chord between the path's ends."""
    if len(path) < 2:
        raise ValueError('rule "l-curve" looks between two ends, so path must have two points at least; got 1')
    first, last = path[0], path[-1]
    regret, distance = last.regret - first.regret, first.distance**2 - last.distance**2
    if regret <= GAP or distance <= 0:
        return last, (
            f"there is no trade-off between alpha = {first.alpha:.3g} and {last.alpha:.3g}: the expert's regret is "
            f"{last.regret:.3g} throughout, so the prior may have its say"
        )
    corner = solve_at(path.problem, min(max(regret / distance, first.alpha), last.alpha))
    return corner, (
        f"alpha = {corner.alpha:.3g} is the corner, where regret {corner.regret:.3g} of {last.regret:.3g} is traded "
        f"for distance {corner.distance:.3g} of {first.distance:.3g}"
    )


RULES = {
    "regret-budget": Rule(_within_budget, "budget", 1.0),
    "discrepancy": Rule(_beyond_noise, "noise", 2.0),
    "prior-error": Rule(_within_trust, "error", np.inf),
    "evidence": Rule(by_evidence, "decisions", _checks.LARGEST, needs_trajectories=True),
    "held-out": Rule(by_held_out, needs_trajectories=True),
    "l-curve": Rule(_corner),
}
"""The rules by name."""
