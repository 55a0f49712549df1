"""What is believed about the costs of a log's pairs, stated in money.

`price_belief` takes ranges of a few prices, and an expression for how much of each a pair pays;
`prior_belief` takes a table of costs. Both choose the scale on which learning happens, so that all
costs that are possible lie in [-1, 1], and results come back in money.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs import Belief, Intervals, NearPrior, Prices
from rlfd_gym.beliefs.prices import Range
from rlfd_gym.experts.logs import Log, log_features
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.scale import CostScale


def price_belief(
    log: Log,
    ranges: Mapping[str, Range],
    features: Mapping[str, str],
    *,
    exogenous: Iterable[str] = (),
    offset: ArrayLike = 0.0,
) -> Prices:
    """State ranges of prices over the pairs of a log, in money.

    Args:
        log: what `read_log` returns.
        ranges: for each price its range (low, high), or the price itself.
        features: for each price, how much of it a pair pays, as an expression in the log's own
            words (`rlfd_gym.experts.logs.features`); what is earned has a minus.
        exogenous: logged columns that depend on neither state nor action, such as the demand.
        offset: a part of the cost that is known, in money, a number or over pairs.

    Example:
        >>> from rlfd_gym import read_log
        >>> rows = {"stock": [0, 2, 1], "order": [3, 0, 0], "next": [2, 1, 0]}
        >>> names = {"state": "stock", "action": "order", "next_state": "next"}
        >>> log = read_log(rows, discount=0.9, **names)
        >>> ranges = {"holding": (0.3, 3), "buying": 4}
        >>> belief = price_belief(log, ranges, {"holding": "stock + order", "buying": "order"})
        >>> belief.scale.from_box(belief.cost([1.0, 4.0])).round(6).tolist()
        [15.0, 1.0, 2.0]
    """
    _checks.instance("ranges", ranges, Mapping, "from names to ranges (low, high)")  # type: ignore[type-abstract]
    unmatched = set(ranges) ^ set(_checks.instance("features", features, Mapping, "from names to expressions"))  # type: ignore[type-abstract]
    if unmatched:
        raise ValueError(f"ranges and features must have the same names, {sorted(unmatched)[0]!r} is only in one")
    columns = log_features(log, {name: features[name] for name in ranges}, exogenous=exogenous)
    plain = Prices.named(columns, ranges, offset=offset)
    low, high = plain.ends()
    least, most = float(low.min()), float(high.max())
    if not least - 1.0 < most + 1.0:  # one is lost in rounding
        raise ValueError(f"offset must leave digits for the prices, but costs are about {most:g} with it")
    scale = CostScale(least, most) if most > least else CostScale(least - 1.0, most + 1.0)
    return Prices.named(columns, ranges, offset=offset, scale=scale)


def prior_belief(
    log: Log, costs: Mapping[tuple[Label, Label], float], alpha: float = 0.0, *, scale: CostScale | None = None
) -> tuple[NearPrior, int]:
    """State a prior from a table of costs in money.

    Pairs of the log that the table lacks get the middle of the range, where learning begins without
    a prior. Return the belief and the number of such pairs.

    Example:
        >>> from rlfd_gym import read_log
        >>> rows = {"stock": [0, 2, 1], "order": [3, 0, 0], "next": [2, 1, 0]}
        >>> log = read_log(rows, state="stock", action="order", next_state="next", discount=0.9)
        >>> belief, lacking = prior_belief(log, {(0, 3): 6.0, (2, 0): 2.0}, alpha=0.1)
        >>> belief.prior.tolist(), lacking
        ([1.0, 0.0, -1.0], 1)
    """
    _checks.instance("log", log, Log)
    _checks.instance("costs", costs, Mapping, "by (state label, action label)")  # type: ignore[type-abstract]
    lacking = sum(pair not in costs for pair in log.pair_labels())
    if lacking == log.mdp.n_pairs:
        raise ValueError(f"belief: costs must be by (state, action) of the log, but none is of its {lacking} pairs")
    chosen = CostScale.spanning(list(costs.values())) if scale is None else _checks.instance("scale", scale, CostScale)
    middle = (chosen.low + chosen.high) / 2
    prior = chosen.to_box(log.pair_values("prior", costs, default=middle))
    # The scale says where the cost is sought; the guess itself may lie outside.
    return NearPrior(prior, alpha, outside_box=True).stated_in(chosen), lacking


def belief_over(log: Log, belief: Any, scale: CostScale | None) -> tuple[Belief, int]:
    """Return the belief over the pairs of the log, and how many of them the prior lacks."""
    if callable(belief):
        stated = _asked("belief", belief, log)
        if not isinstance(stated, (Mapping, Prices)):
            raise TypeError(f"belief must return Prices or a table of costs for a log, got {type(stated).__name__}")
        belief = stated
    if isinstance(belief, Mapping):
        return prior_belief(log, belief, scale=scale)
    _checks.instance("belief", belief, Belief, "or a table of costs")  # type: ignore[type-abstract]
    if scale is not None:
        raise ValueError("scale belongs to a table of costs; a belief has its own")
    return belief.over(log.mdp), 0


def amounts_of(log: Log, belief: Belief, money: Any) -> FloatArray:
    """Return the cost of each pair in money under which amounts are reported."""
    if money is None:
        return reference(belief)
    return log.mdp.pairs(_asked("money", money, log) if callable(money) else money, "money")


def _asked(name: str, function: Any, log: Log) -> Any:
    """Return what a function says about a log; its own mistakes are told with its name."""
    try:
        return function(log)
    except TypeError as error:
        raise TypeError(f"{name}, a function of the log, failed: {error}") from error


def restricted(belief: Belief, pairs: IntArray) -> Belief:
    """Return the same belief over some of the pairs, given by their numbers."""
    small: Belief
    if isinstance(belief, Prices):
        small = Prices(
            belief.features[pairs],
            belief.low,
            belief.high,
            belief.offset[pairs],
            prior=belief.prior,
            alpha=belief.alpha,
            names=belief.names,
        )
    elif isinstance(belief, Intervals):
        small = Intervals(belief.low[pairs], belief.high[pairs])
    elif isinstance(belief, NearPrior) and belief.norm == "l2":
        small = NearPrior(belief.prior[pairs], belief.alpha, outside_box=belief.outside_box)
    else:
        raise TypeError(
            f"belief must be Prices, Intervals or NearPrior with the norm l2, to decide; got {type(belief).__name__}"
        )
    return small if belief.scale is None else small.stated_in(belief.scale)


def in_money(belief: Belief, cost: FloatArray) -> FloatArray:
    """Return a cost in the money that a belief was stated in."""
    return cost if belief.scale is None else belief.scale.from_box(cost)


def widened(belief: Prices | Intervals, width: float) -> Belief:
    """Return the belief with ranges of `width` times the length, about the same middle."""
    middle, half = (belief.low + belief.high) / 2, (belief.high - belief.low) / 2 * width
    if isinstance(belief, Intervals):
        small: Belief = Intervals(middle - half, middle + half)
    else:
        small = Prices(belief.features, middle - half, middle + half, belief.offset, names=belief.names)
    return small if belief.scale is None else small.stated_in(belief.scale)


def reference(belief: Belief) -> FloatArray:
    """Return the cost under which amounts are reported: the prior, or the middle of the ranges."""
    return np.asarray(in_money(belief, belief.cost(belief.prior)), dtype=np.float64)
