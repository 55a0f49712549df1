"""`decide`: learn from a log, judge what was learned, and hold the answers as data.

The expert is what the log shows: the policy of all its rows, however `log.expert` was estimated. The
belief is what the user says about the costs. The apprentice is
the exact solution of the learning problem over the pairs that enough rows support. Its saving is
corrected for the optimism of having been chosen on the same log, see
`rlfd_gym.decision.resampling`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import collected_warnings
from rlfd_gym.alpha import AlphaPath, alpha_path, select_alpha
from rlfd_gym.beliefs import Belief, Intervals, NearPrior, Prices
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.decision.answers import Decision, Estimate, Path, PriceAnswer, Recommendation
from rlfd_gym.decision.learner import Learned, Learner
from rlfd_gym.decision.resampling import Draw, draws, how_resampled, supported, with_columns_redrawn
from rlfd_gym.decision.stated import amounts_of, belief_over, in_money, restricted, widened
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.labels import Label
from rlfd_gym.experts.scale import CostScale

READINGS = ("mode", "mixture")
LEAST_ROWS, RESAMPLES, CONFIDENCE = 10, 100, 0.9
MOST_ROWS = 2**31 - 1
WIDTHS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5)
PATH_POINTS = 15
AT_END = 1e-6  # a price that is so near to the end of its range, relative to its width, is there


def decide(
    log: Log,
    belief: Belief | Mapping[tuple[Label, Label], float] | Callable[[Log], Any],
    *,
    alpha: float | str = DEFAULT_ALPHA,
    scale: CostScale | None = None,
    money: ArrayLike | Callable[[Log], ArrayLike] | None = None,
    reading: str = "mode",
    least_rows: int = LEAST_ROWS,
    confidence: float = CONFIDENCE,
    n_resamples: int = RESAMPLES,
    seed: int | np.random.Generator = 0,
    progress_bar: bool = False,
) -> Decision:
    """Decide what to do instead of what the log shows, and say how much that saves.

    Args:
        log: what `read_log` returns.
        belief: what is believed about the costs: `Prices` (see `price_belief`), `Intervals` or
            `NearPrior`, over the pairs of the log; or a prior as a table of costs in money, see
            `read_costs`. Pairs that the table lacks get the middle of its range. If `Prices` or a
            table are computed from columns of the log, give the function that computes them from
            a log: it is asked anew for each resample. Otherwise savings are promised that come
            from the noise of these columns alone.
        alpha: for a prior: the weight, or a rule of `select_alpha`. A `NearPrior` with a positive
            α of its own keeps it.
        scale: for a table of costs: the range in which the cost is sought. By default, its own.
        money: the cost of each pair in money under which amounts are reported, such as
            `-log.mean("revenue")`, or a function from a log to it, as above. By default the prior,
            or the middle of the ranges.
        reading: "mode" recommends one action for each state, the apprentice's most likely one;
            "mixture" its probabilities.
        least_rows: actions with fewer rows are recommended only where they are the present ones.
        confidence: the nominal coverage of the intervals.
        n_resamples: how often the log is resampled.
        seed: of the resampling.
        progress_bar: whether to show one, in a terminal, if it takes more than two seconds.

    Example:
        >>> from rlfd_gym import read_log
        >>> rng = np.random.default_rng(0)
        >>> stock, rows = 0, []
        >>> for week in range(400):
        ...     order = int(rng.integers(3)) if stock == 0 else 0
        ...     following = max(0, stock + order - int(rng.integers(1, 3)))
        ...     rows.append((stock, order, following))
        ...     stock = following
        >>> log = read_log(tuple(np.array(rows).T), discount=0.9)
        >>> belief = {pair: 4.0 - 3 * min(sum(pair), 2) + 2 * pair[1] for pair in log.pair_labels()}
        >>> decision = decide(log, belief, alpha=10, n_resamples=20)
        >>> [(one.state, one.action, one.rows) for one in decision.recommendations]
        [(0, 2, 117), (1, 0, 57)]
        >>> decision.saving.low > 0
        True
    """
    _checks.instance("log", log, Log)
    _checks.one_of("reading", reading, READINGS)
    least = _checks.integer("least_rows", least_rows, 1, MOST_ROWS)
    share = _checks.number("confidence", confidence, 0.0, 1.0, open_ends=True)
    number = _checks.integer("n_resamples", n_resamples, 2, _checks.MOST_TIMES)
    rng = _checks.generator("seed", seed)
    _checks.flag("progress_bar", progress_bar)
    held, lacking = belief_over(log, belief, scale)
    amounts = amounts_of(log, held, money)
    pairs = supported(log, least)
    learner = Learner(pairs, restricted(held, pairs), reading)
    now = Draw(log.mdp, log.policy, log.visits.astype(np.float64), log.counts.data)
    learner, path, reason = _with_alpha(learner, now, alpha)
    held = held.with_alpha(learner.belief.alpha) if isinstance(held, NearPrior) else held
    learned = learner.learn(now)

    def stated(draw: Draw) -> tuple[Learner, Belief, FloatArray]:
        if not (callable(belief) or callable(money)):
            return learner, held, amounts
        again = with_columns_redrawn(log, draw, rng)
        fresh = (
            belief_over(again, belief, held.scale if isinstance(held, NearPrior) else None)[0]
            if callable(belief)
            else held
        )
        fresh = fresh.with_alpha(held.alpha) if isinstance(fresh, NearPrior) else fresh
        return replace(learner, belief=restricted(fresh, pairs)), fresh, amounts_of(again, fresh, money)

    resampled = _Resamples.of(log, learned, held, amounts, number, draws(log, number, rng, progress_bar), stated)
    tails = (1 - share) / 2, (1 + share) / 2
    cost = _spread(held, learned.x, pairs, log.mdp.n_pairs)
    costs = np.array([_spread(held, x, pairs, cost.size) for x in resampled.x])
    ends = [_quantile(costs, tail) for tail in tails]
    saving, promised = resampled.saving(tails)
    return Decision(
        log=log,
        belief=held,
        policy=learned.policy,
        recommendations=_recommendations(log, learned.policy, resampled.policies, least),
        cost=cost,
        cost_low=ends[0],
        cost_high=ends[1],
        prices=_prices(held, learned.x, resampled.x, tails),
        reference=amounts,
        present=_estimate(float(log.mdp.occupancy_of(log.policy) @ amounts), resampled.present, tails),
        saving=saving,
        promised=promised,
        guaranteed=resampled.least(tails),
        scope=held.scope(held.best(resampled.difference)),
        confidence=share,
        method=how_resampled(log),
        n_resamples=number,
        least_rows=least,
        path=_path(learner, now, path, held, amounts),
        alpha=learner.belief.alpha if isinstance(held, NearPrior) else None,
        reason=reason,
        solution=learned.solution,
        n_without_prior=lacking,
    )


@dataclass(frozen=True, eq=False)
class _Resamples:
    """What each resample of the log says."""

    promised: float
    difference: FloatArray
    savings: FloatArray
    optimism: FloatArray
    floors: FloatArray
    optimistic_floors: FloatArray
    present: FloatArray
    policies: list[FloatArray]
    x: list[FloatArray]

    @classmethod
    def of(
        cls,
        log: Log,
        learned: Learned,
        belief: Belief,
        amounts: FloatArray,
        number: int,
        logs: Iterable[Draw],
        stated: Callable[[Draw], tuple[Learner, Belief, FloatArray]],
    ) -> _Resamples:
        """Learn anew from each resample, as it states the costs, and judge in it and in the estimated model."""
        expert = log.mdp.occupancy_of(log.policy)
        here = expert - log.mdp.occupancy_of(learned.policy)
        savings, optimism, floors, high_floors, present = np.zeros((5, number))
        policies, x = [], []
        with collected_warnings():  # a gap that stays open in one resample is no news
            for k, draw in enumerate(logs):
                learner, believed, paid = stated(draw)
                again = learner.learn(draw)
                drawn = draw.mdp.occupancy_of(draw.policy)
                fixed = drawn - draw.mdp.occupancy_of(learned.policy)
                there = drawn - draw.mdp.occupancy_of(again.policy)
                back = expert - log.mdp.occupancy_of(again.policy)
                savings[k] = fixed @ paid
                optimism[k] = there @ paid - back @ amounts
                floors[k] = _least(believed, fixed)
                high_floors[k] = _least(believed, there) - _least(belief, back)
                present[k] = drawn @ paid
                policies.append(again.policy)
                x.append(again.x)
        return cls(
            promised=float(here @ amounts),
            difference=here,
            savings=savings,
            optimism=optimism,
            floors=floors,
            optimistic_floors=high_floors,
            present=present,
            policies=policies,
            x=x,
        )

    def saving(self, tails: tuple[float, float]) -> tuple[Estimate, float]:
        """Return the saving, corrected for optimism, and the promise."""
        corrected = self.savings - self.optimism.mean()
        return _estimate(float(corrected.mean()), corrected, tails), self.promised

    def least(self, tails: tuple[float, float]) -> Estimate:
        """Return the least saving over the belief, corrected likewise."""
        corrected = self.floors - self.optimistic_floors.mean()
        return _estimate(float(corrected.mean()), corrected, tails)


def _with_alpha(learner: Learner, now: Draw, alpha: float | str) -> tuple[Learner, AlphaPath | None, str]:
    """Return the learner with its α, the path of α, and why this one."""
    if not isinstance(learner.belief, NearPrior):
        return learner, None, ""
    path = alpha_path(learner.problem(now), n_points=PATH_POINTS)
    if learner.belief.alpha > 0:
        return learner, path, f"alpha = {learner.belief.alpha:g} was given"
    if isinstance(alpha, str):
        choice = select_alpha(path, alpha)
        chosen, reason = choice.alpha, choice.reason
    else:
        chosen = _checks.number("alpha", alpha, 0.0)
        reason = f"alpha = {chosen:g} was given"
    return Learner(learner.pairs, learner.belief.with_alpha(chosen), learner.reading), path, reason


def _path(learner: Learner, now: Draw, path: AlphaPath | None, belief: Belief, amounts: FloatArray) -> Path:
    """Return the decision along α, or along the width of the ranges."""
    if path is not None:
        values = sorted({point.alpha for point in path} | {learner.belief.alpha})
        known = {point.alpha: point.solution for point in path}
        learners = [Learner(learner.pairs, learner.belief.with_alpha(value), learner.reading) for value in values]
        beliefs: list[Belief] = [belief.with_alpha(value) for value in values]
        chosen, parameter = values.index(learner.belief.alpha), "alpha"
    else:
        assert isinstance(belief, (Prices, Intervals))
        assert isinstance(learner.belief, (Prices, Intervals))
        values, known, chosen, parameter = list(WIDTHS), {}, WIDTHS.index(1.0), "width"
        learners = [Learner(learner.pairs, widened(learner.belief, value), learner.reading) for value in values]
        beliefs = [widened(belief, value) for value in values]
    found = [
        one.read(now, known[value]) if value in known else one.learn(now)
        for value, one in zip(values, learners, strict=True)
    ]
    expert = now.mdp.occupancy_of(now.policy)
    differences = [expert - now.mdp.occupancy_of(one.policy) for one in found]
    improvement = np.array([d @ amounts for d in differences])
    return Path(
        parameter=parameter,
        values=np.array(values),
        policies=np.array([one.policy for one in found]),
        actions=np.array([now.mdp.likely_actions(one.policy) for one in found]),
        expected_cost=float(expert @ amounts) - improvement,
        improvement=improvement,
        guaranteed=np.array([_least(one, d) for one, d in zip(beliefs, differences, strict=True)]),
        prices=np.array([one.x for one in found]) if isinstance(belief, Prices) else np.zeros((len(values), 0)),
        chosen=chosen,
    )


def _recommendations(log: Log, policy: FloatArray, others: list[FloatArray], least: int) -> tuple[Recommendation, ...]:
    """Return what is done and what should be, for each state that was left."""
    mdp = log.mdp
    present, now = mdp.likely_actions(log.policy), mdp.likely_actions(policy)
    agreement = np.mean([mdp.likely_actions(other) == now for other in others], axis=0)
    time = mdp.sum_by_state(mdp.occupancy_of(policy))
    shares, chances, visits = (mdp.table(values, fill=0.0) for values in (log.policy, policy, log.visits))
    return tuple(
        Recommendation(
            state=log.state_labels[s],
            present=log.action_labels[present[s]],
            present_share=float(shares[s, present[s]]),
            present_rows=int(visits[s, present[s]]),
            action=log.action_labels[now[s]],
            probability=float(chances[s, now[s]]),
            rows=int(visits[s, now[s]]),
            agreement=float(agreement[s]),
            time=float(time[s]),
            few=bool(visits[s, now[s]] < least),
        )
        for s in np.flatnonzero(visits.sum(axis=1) > 0)
    )


def _prices(
    belief: Belief, x: FloatArray, others: list[FloatArray], tails: tuple[float, float]
) -> tuple[PriceAnswer, ...]:
    """Return the prices that the manager acts as if they were true."""
    if not isinstance(belief, Prices):
        return ()
    answers, drawn = [], np.array(others)
    for k, name in enumerate(belief.names):
        low, high = float(belief.low[k]), float(belief.high[k])
        price, near = _estimate(float(x[k]), drawn[:, k], tails), AT_END * (high - low)
        end = ("low" if price.high <= low + near else "high" if price.low >= high - near else "") if high > low else ""
        answers.append(PriceAnswer(name, price, (low, high), end))
    return tuple(answers)


def _spread(belief: Belief, x: FloatArray, pairs: IntArray, n_pairs: int) -> FloatArray:
    """Return the learned cost of all pairs in money; that of pairs left out is the prior's."""
    if isinstance(belief, Prices):
        return in_money(belief, belief.cost(x))
    cost = belief.cost(belief.prior).copy()
    cost[pairs] = x
    return in_money(belief, cost)


def _least(belief: Belief, d: FloatArray) -> float:
    """Return the least improvement over a belief, in money."""
    worst = belief.best(d)
    return float(d @ belief.cost(worst)) / (1.0 if belief.scale is None else belief.scale.factor)


def _quantile(drawn: FloatArray, tail: float) -> Any:
    """Return the quantile of B draws that lies at the place tail · (B + 1) of their order.

    If the truth is to the draws as they are to each other, it is as likely to lie in each of the
    B + 1 gaps around them: this interval has its nominal coverage for every B.
    """
    return np.quantile(drawn, tail, axis=0, method="weibull")


def _estimate(value: float, drawn: FloatArray, tails: tuple[float, float]) -> Estimate:
    low, high = (_quantile(drawn, tail) for tail in tails)
    return Estimate(value, float(low), float(high))
