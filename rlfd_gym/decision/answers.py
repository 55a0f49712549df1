"""The four answers that a log gives, as data: costs, actions, savings, and how sure they are.

1. What did the manager act as if things cost? `Decision.prices` or `Decision.cost`.
2. What should be done instead? `Decision.recommendations`, one for each state.
3. How much would that save? `Decision.saving`, and `Decision.guaranteed` over all costs that are
   held possible.
4. How sure is this? The intervals, the rows behind each recommendation, and `Decision.method`.

Amounts are in the belief's money, per step. `str(decision)` says all of it in the log's own words.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.problem.solution import Solution


@dataclass(frozen=True)
class Estimate:
    """A number with an interval.

    Attributes:
        value: the estimate.
        low: the lower end of the interval.
        high: the upper end of the interval.

    Example:
        >>> print(Estimate(2.08, 1.21, 2.82))
        2.08 (1.21 to 2.82)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """Return the number and its interval."""
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True)
class PriceAnswer:
    """A price that the manager acts as if it were true.

    Attributes:
        name: what the price is called.
        price: the price within its range under which the manager is nearest to optimal.
        range: the range that was stated, (low, high).
        at_end: "low" or "high" if the whole interval lies at that end of the range, so that the
            price that explains the manager may lie beyond; otherwise empty.

    Example:
        >>> answer = PriceAnswer("holding", Estimate(2.6, 2.5, 2.8), range=(0.3, 3.0), at_end="")
        >>> print(f"{answer.name}: {answer.price}")
        holding: 2.6 (2.5 to 2.8)
    """

    name: str
    price: Estimate
    range: tuple[float, float]
    at_end: str


@dataclass(frozen=True)
class Recommendation:
    """What is done in a state and what should be, with the rows that say so.

    Attributes:
        state: the state, in the log's words.
        present: the most frequent action at present.
        present_share: how often it is taken.
        present_rows: how many rows show it.
        action: the recommended action.
        probability: how often it should be taken; 1 unless a mixture was asked for.
        rows: how many rows show the recommended action in this state.
        agreement: the share of the resamples that recommend it as well.
        time: the share of the time that is spent in the state under the recommendation.
        few: whether fewer rows than `Decision.least_rows` show it.

    Example:
        >>> import numpy as np
        >>> from rlfd_gym import decide, read_log
        >>> states, actions = np.arange(200) % 2, np.arange(200) % 3 % 2
        >>> log = read_log((states, actions, (states + actions) % 2), discount=0.9)
        >>> costs = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 1.0}
        >>> decision = decide(log, costs, alpha=10, n_resamples=5)
        >>> one = decision.recommendations[0]
        >>> one.state, one.present, one.action, one.rows
        (0, 0, 1, 33)
    """

    state: Label
    present: Label
    present_share: float
    present_rows: int
    action: Label
    probability: float
    rows: int
    agreement: float
    time: float
    few: bool

    @property
    def changed(self) -> bool:
        """Whether the recommendation differs from what is done at present."""
        return self.action != self.present


@dataclass(frozen=True, eq=False)
class Path(_checks.Locked):
    """The same decision for other α, or other widths of the ranges, as arrays for a slider.

    Attributes:
        parameter: "alpha", or "width": 1 is the ranges as stated, 0 their middle.
        values: K of them, ascending.
        policies: (K, n_pairs), as `Decision.policy`.
        actions: (K, n_states): the number of the recommended action.
        expected_cost: per step, in money, under the reference cost, in the estimated model.
        improvement: on the present rule, likewise. These numbers are promises, not corrected as
            `Decision.saving` is.
        guaranteed: the least improvement over the costs that are held possible.
        prices: (K, number of prices): the prices that explain the manager best; empty for α.
        chosen: the position of the decision's own value.

    Example:
        >>> import numpy as np
        >>> from rlfd_gym import decide, read_log
        >>> states, actions = np.arange(200) % 2, np.arange(200) % 3 % 2
        >>> log = read_log((states, actions, (states + actions) % 2), discount=0.9)
        >>> costs = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 1.0}
        >>> decision = decide(log, costs, alpha=10, n_resamples=5)
        >>> path = decision.path
        >>> path.parameter, path.actions[path.chosen].tolist()
        ('alpha', [1, 0])
    """

    parameter: str
    values: FloatArray
    policies: FloatArray = field(repr=False)
    actions: IntArray = field(repr=False)
    expected_cost: FloatArray
    improvement: FloatArray
    guaranteed: FloatArray
    prices: FloatArray = field(repr=False)
    chosen: int

    def __post_init__(self) -> None:
        """Lock the arrays."""
        self._fill(**vars(self))


@dataclass(frozen=True, eq=False, repr=False)
class Decision(_checks.Locked):
    """What a log and a belief recommend, how much it saves and how sure that is; `print` it.

    Attributes:
        log: the log.
        belief: what was believed about the cost, over the pairs of the log.
        policy: the recommended policy, over pairs.
        recommendations: for each state that was seen, what is done and what should be.
        cost: the learned cost of each pair, in money: what the manager acts as if things cost.
        cost_low: the lower ends of its intervals.
        cost_high: the upper ends of its intervals.
        prices: the same as prices, for a belief about prices; otherwise empty.
        reference: the cost of each pair in money under which amounts are reported.
        present: the present rule's expected cost per step.
        saving: the saving per step, corrected for optimism, with its interval.
        promised: what the estimated model promises: too much, as a rule.
        guaranteed: the least saving over all costs that are held possible, with its interval.
        scope: which costs these are, in words.
        confidence: the nominal coverage of all intervals.
        method: what was resampled, in words.
        n_resamples: how often.
        least_rows: actions with fewer rows are recommended only where they are the present ones.
        path: the decision along α or the width of the ranges.
        alpha: the α that was used; `None` for beliefs without a prior.
        reason: why this α.
        solution: the exact solution behind the policy.
        n_without_prior: pairs that the prior lacks; they have the middle of its range.

    Example:
        >>> import numpy as np
        >>> from rlfd_gym import decide, read_log
        >>> states, actions = np.arange(200) % 2, np.arange(200) % 3 % 2
        >>> log = read_log((states, actions, (states + actions) % 2), discount=0.9)
        >>> costs = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 0.0, (1, 1): 1.0}
        >>> decision = decide(log, costs, alpha=10, n_resamples=5)
        >>> [(one.state, one.action) for one in decision.recommendations]
        [(0, 1), (1, 0)]
    """

    log: Log
    belief: Belief
    policy: FloatArray
    recommendations: tuple[Recommendation, ...]
    cost: FloatArray
    cost_low: FloatArray
    cost_high: FloatArray
    prices: tuple[PriceAnswer, ...]
    reference: FloatArray
    present: Estimate
    saving: Estimate
    promised: float
    guaranteed: Estimate
    scope: str
    confidence: float
    method: str
    n_resamples: int
    least_rows: int
    path: Path
    alpha: float | None
    reason: str
    solution: Solution
    n_without_prior: int = 0

    def __post_init__(self) -> None:
        """Lock the arrays."""
        self._fill(**vars(self))

    @property
    def n_few(self) -> int:
        """How many recommendations rest on fewer than `least_rows` rows."""
        return sum(one.few for one in self.recommendations)

    @property
    def n_changed(self) -> int:
        """In how many states something else is recommended than is done."""
        return sum(one.changed for one in self.recommendations)

    def __str__(self) -> str:
        """Say what was found, in the log's own words."""
        from rlfd_gym.decision.words import text  # here, because it describes this class

        return text(self)

    def __repr__(self) -> str:
        """Name the log and the saving."""
        return f"Decision({self.log!r}, saving {self.saving})"


def as_object(decision: Decision) -> dict[str, Any]:
    """Return the answers as plain dictionaries, lists and arrays, such as for JSON."""
    from rlfd_gym.decision.words import sentences  # here, because it describes this class

    estimates = {name: asdict(getattr(decision, name)) for name in ("present", "saving", "guaranteed")}
    same = ("promised", "scope", "confidence", "method", "n_resamples", "least_rows", "alpha", "reason")
    return {
        "answers": sentences(decision),
        **estimates,
        **{name: getattr(decision, name) for name in same},
        "prices": [asdict(one) for one in decision.prices],
        "recommendations": [{**asdict(one), "changed": one.changed} for one in decision.recommendations],
        "path": {name: value for name, value in vars(decision.path).items() if name != "policies"},
        "action_labels": list(decision.log.action_labels),
    }
