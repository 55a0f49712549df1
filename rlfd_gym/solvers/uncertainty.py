r"""How sure what was learned is: learn again from resampled trajectories.

Demonstrations are a sample, and another sample would have taught something else. The bootstrap
draws whole trajectories with replacement, as many as there are, estimates the expert from them and
solves the learning problem again. The spread of the answers shows how much of an answer is due to
the sample:

* of the learned cost, pair by pair, and of the prices where the belief is about prices,
* of the policy: in how many resamples an action is the chosen one, the most frequent of its state,
* of the improvement on the expert: what is guaranteed, and what there is under the learned cost.

The intervals are those between quantiles of the resamples. They are about the sample only: they
take the tables, the belief and α as they are, and a cost that demonstrations say nothing about has
a narrow interval around the prior. Each resample's policy is judged on the demonstrations it was
learned from, so the improvements are optimistic, as `Solution.guarantee` is; a statement that holds
with a probability needs two halves (`trainer.guarantee`, `rlfd_gym.guarantee`).

A log is resampled as a whole: the tables are estimated from it too, so every draw has tables of its
own, see `rlfd_gym.experts.logs.drawing`. (`rlfd_gym.decide` corrects the savings for optimism as well.)

`resampled` is the bootstrap itself, for anything that can be learned again from episodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._warnings import collected_warnings
from rlfd_gym.experts.demonstrations import ESTIMATORS, Demonstrations, estimate_occupancy, read_demonstrations
from rlfd_gym.experts.logs import Log
from rlfd_gym.experts.logs.drawing import Draw, draws
from rlfd_gym.mdp.reading import mode_of
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact

PATIENCE = 2.0  # seconds until a progress bar is shown


class Interval(NamedTuple):
    """A number and its interval.

    Attributes:
        estimate: what was learned from all trajectories.
        low: the lower end.
        high: the upper end.
    """

    estimate: float
    low: float
    high: float


class Learned(NamedTuple):
    """What is learned from one resample, over the pairs of the point estimate.

    Attributes:
        cost: the learned cost, over pairs; `nan` where a pair is not in the resample.
        mixture: the prices or the mixture, if the cost is made of few numbers.
        chosen: the mode of the policy, over pairs.
        guaranteed: the least improvement on the resample's expert; `nan` without a guarantee.
        improvement: the improvement on it under the learned cost.
    """

    cost: FloatArray
    mixture: FloatArray | None
    chosen: FloatArray
    guaranteed: float
    improvement: float


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """How sure what was learned is.

    Attributes:
        solution: what was learned from all trajectories.
        mdp: its tables.
        cost_low: the lower end of the interval of the learned cost, over pairs.
        cost_high: its upper end, over pairs.
        mixture_low: the lower ends for the mixture or the prices; `None` for other beliefs.
        mixture_high: their upper ends.
        chosen: the share of resamples in which each pair's action is the chosen one of its state,
            over pairs; actions that are equally frequent share.
        guaranteed: the guaranteed improvement on the expert, per step.
        improvement: the improvement on the expert under the learned cost, per step.
        confidence: the confidence of all intervals, each by itself.
        n_resamples: how many resamples were drawn.
        n_trajectories: how many trajectories there are; 0 for a log without episodes.
    """

    solution: Solution
    mdp: TabularMDP = field(repr=False)
    cost_low: FloatArray = field(repr=False)
    cost_high: FloatArray = field(repr=False)
    mixture_low: FloatArray | None
    mixture_high: FloatArray | None
    chosen: FloatArray = field(repr=False)
    guaranteed: Interval
    improvement: Interval
    confidence: float
    n_resamples: int
    n_trajectories: int

    @property
    def sure(self) -> FloatArray:
        """In how many resamples the action that was learned is the chosen one, by state."""
        learned = self.solution.read(self.mdp, "mode")
        return self.mdp.sum_by_state(np.where(learned > 0, self.chosen, 0.0))

    def __str__(self) -> str:
        """Return what was found in two sentences."""
        low, high = self.guaranteed.low, self.guaranteed.high
        many = f"{self.n_trajectories} trajectories" if self.n_trajectories else "the log"
        seen = f"{self.n_resamples} resamples of {many}"
        reached = self.mdp.sum_by_state(self.mdp.occupancy_of(self.solution.policy))
        return (
            f"Guaranteed improvement {self.guaranteed.estimate:.4g}, {low:.4g} to {high:.4g} in {self.confidence:.0%} "
            f"of {seen}, on their own demonstrations. The chosen action stays the same in "
            f"{float(reached @ self.sure):.0%} of visits."
        )


def uncertainty(
    source: Any,
    demonstrations: Any = None,
    *,
    estimator: str | None = None,
    confidence: float = 0.95,
    n_resamples: int = 200,
    seed: int = 0,
    n_jobs: int = 1,
    progress_bar: bool = True,
) -> Uncertainty:
    """Return how sure what was learned is, by resampling trajectories.

    Args:
        source: a trainer with tables that has trajectories, or an `RLfDProblem`, of which the
            tables and the belief are used. Every resample is solved exactly, with the α of the
            problem.
        demonstrations: with a problem, at least two trajectories, or the `Log` that the problem's
            tables are of. The expert is estimated from them, whatever the problem's own expert is.
        estimator: as for `occupancy_from_demonstrations`; by default that of the trainer, or
            "policy".
        confidence: the confidence of the intervals.
        n_resamples: how many resamples to draw.
        seed: the seed of the resampling. The result does not depend on `n_jobs`.
        n_jobs: how many processes to use; -1 means all cores.
        progress_bar: whether to show one, if it takes more than two seconds.

    Example:
        >>> from rlfd_gym import demonstrate
        >>> from rlfd_gym.problem import examples
        >>> problem = examples.inventory(alpha=1.0)
        >>> walks = demonstrate(problem.mdp, problem.mdp.policy_of(problem.expert), 10, 88, seed=0)
        >>> found = uncertainty(problem, walks, n_resamples=20)
        >>> bool((found.cost_low <= found.cost_high).all()), found.chosen.shape
        (True, (136,))
    """
    eta = 1.0 - _checks.number("confidence", confidence, 0.0, 1.0, open_ends=True)
    if isinstance(demonstrations, Log):
        if estimator is not None:
            raise TypeError("estimator does not apply to a log, whose expert is the policy of its rows")
        return _of_log(source, demonstrations, eta, _plan(n_resamples, n_jobs, progress_bar), seed)
    problem, shown, how = _question(source, demonstrations, estimator)
    mdp, belief = problem.mdp, problem.belief
    assert shown.lengths is not None
    number = len(shown.lengths)

    def expert_of(which: IntArray) -> FloatArray:
        return estimate_occupancy(shown.only(which), mdp, **how)

    def learn(which: IntArray) -> Learned:
        return _learned(RLfDProblem(mdp, expert_of(which), belief=belief))

    whole = RLfDProblem(mdp, expert_of(np.arange(number)), belief=belief)
    with collected_warnings():
        solution = solve_exact(whole)
    drawn = list(resampled(learn, number, n_resamples=n_resamples, seed=seed, n_jobs=n_jobs, progress_bar=progress_bar))
    return summarise(solution, mdp, read_solution(whole, solution), drawn, eta, number)


def resampled(
    learn: Callable[[IntArray], Learned],
    n_episodes: int,
    *,
    n_resamples: int = 200,
    seed: int = 0,
    n_jobs: int = 1,
    progress_bar: bool = True,
) -> Iterator[Learned]:
    """Yield what is learned from each resample of episodes.

    Args:
        learn: a function from the numbers of the episodes drawn, with repetitions, to what is
            learned from these. It may estimate the model anew as well, as a log has to.
        n_episodes: how many episodes there are.
        n_resamples: how many resamples to draw.
        seed: the seed of the resampling. The result does not depend on `n_jobs`.
        n_jobs: how many processes to use; -1 means all cores.
        progress_bar: whether to show one, if it takes more than two seconds.
    """
    plan = _plan(n_resamples, n_jobs, progress_bar)
    episodes = _checks.generator("seed", seed).integers(n_episodes, size=(plan.number, n_episodes))
    yield from _each(learn, iter(episodes), plan)


class _Plan(NamedTuple):
    """How many resamples are learned from, in how many processes, and whether a bar is shown."""

    number: int
    jobs: int
    bar: bool


def _plan(n_resamples: int, n_jobs: int, progress_bar: bool) -> _Plan:
    number = _checks.integer("n_resamples", n_resamples, 1, _checks.MOST_TIMES)
    jobs = _checks.integer("n_jobs", n_jobs, -(2**31))
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 means all cores")
    return _Plan(number, min(jobs, number), _checks.flag("progress_bar", progress_bar))


def _each(learn: Callable[[Any], Learned], resamples: Iterator[Any], plan: _Plan) -> Iterator[Learned]:
    """Yield what is learned from each resample."""
    from tqdm.auto import tqdm

    parts = Parallel(n_jobs=plan.jobs, return_as="generator")(delayed(_quietly)(learn, one) for one in resamples)
    yield from tqdm(parts, total=plan.number, desc="resamples", delay=PATIENCE, disable=None if plan.bar else True)


def _of_log(problem: Any, log: Log, eta: float, plan: _Plan, seed: int) -> Uncertainty:
    """Return how sure what is learned from a log is, with tables and expert drawn anew."""
    _checks.instance("source, with a log,", problem, RLfDProblem)
    if problem.mdp is not log.mdp:
        raise ValueError("source must be a problem on the tables of the log: RLfDProblem(log.mdp, log.expert, ...)")
    belief = problem.belief

    def learn(draw: Draw) -> Learned:
        return _learned(RLfDProblem(draw.mdp, draw.mdp.occupancy_of(draw.policy), belief=belief))

    whole = RLfDProblem(log.mdp, log.expert, belief=belief)
    with collected_warnings():
        solution = solve_exact(whole)
    drawn = list(_each(learn, draws(log, plan.number, _checks.generator("seed", seed)), plan))
    number = 0 if log.report.n_episodes is None else log.report.n_episodes
    return summarise(solution, log.mdp, read_solution(whole, solution), drawn, eta, number)


def read_solution(problem: RLfDProblem, solution: Solution) -> Learned:
    """Return what the bootstrap looks at in the solution of a problem."""
    gain = float(problem.expert @ solution.cost) - problem.mdp.expected_cost(solution.policy, solution.cost)
    promise = np.nan if solution.guarantee is None else solution.guarantee.improvement
    return Learned(solution.cost, solution.mixture, mode_of(problem.mdp, solution.policy), promise, gain)


def summarise(
    solution: Solution, mdp: TabularMDP, point: Learned, drawn: list[Learned], eta: float, n_trajectories: int
) -> Uncertainty:
    """Return the intervals of resamples around a point estimate; pairs missing in some are left out of these."""

    def ends(values: Any) -> FloatArray:
        return np.asarray(np.nanquantile(np.array(values, dtype=np.float64), [eta / 2, 1 - eta / 2], axis=0))

    costs = ends([one.cost for one in drawn])
    mixtures = None if point.mixture is None else ends([one.mixture for one in drawn])
    guaranteed, improvement = ends([one.guaranteed for one in drawn]), ends([one.improvement for one in drawn])
    return Uncertainty(
        solution=solution,
        mdp=mdp,
        cost_low=costs[0],
        cost_high=costs[1],
        mixture_low=None if mixtures is None else mixtures[0],
        mixture_high=None if mixtures is None else mixtures[1],
        chosen=np.mean([one.chosen for one in drawn], axis=0),
        guaranteed=Interval(point.guaranteed, *map(float, guaranteed)),
        improvement=Interval(point.improvement, *map(float, improvement)),
        confidence=1 - eta,
        n_resamples=len(drawn),
        n_trajectories=n_trajectories,
    )


def _learned(problem: RLfDProblem) -> Learned:
    return read_solution(problem, solve_exact(problem))


def _quietly(learn: Callable[[Any], Learned], resample: Any) -> Learned:
    with collected_warnings():  # the point estimate warns already
        return learn(resample)


def _question(
    source: Any, demonstrations: Any, estimator: str | None
) -> tuple[RLfDProblem, Demonstrations, dict[str, Any]]:
    """Return the problem, the trajectories and how the expert is estimated from them."""
    if estimator is not None:
        _checks.one_of("estimator", estimator, ESTIMATORS)
    if isinstance(source, RLfDProblem):
        problem, shown, chosen, discounting = source, demonstrations, estimator or "policy", "trajectory"
        if shown is None:
            raise TypeError("demonstrations are needed with a problem: at least two trajectories")
    elif all(hasattr(source, name) for name in ("problem", "demonstrations", "estimator", "discounting")):
        if demonstrations is not None:
            raise TypeError("demonstrations belong to the trainer: pass none")
        problem, shown = source.problem, source.demonstrations
        chosen, discounting = estimator or source.estimator, source.discounting
        if not isinstance(problem, RLfDProblem):
            raise ValueError("source, a trainer, must have transition tables")
        if shown is None:
            raise ValueError("source, a trainer, must have trajectories; it has an occupancy, or was loaded")
    else:
        raise TypeError(f"source must be an RLfDTrainer or an RLfDProblem, got {type(source).__name__}")
    read = shown if isinstance(shown, Demonstrations) else read_demonstrations(shown)
    if read.lengths is None or len(read.lengths) < 2:
        raise ValueError("demonstrations must hold at least two trajectories to resample")
    guess = problem.belief.guess if chosen == "policy" else None
    return problem, read, {"discounting": discounting, "estimator": chosen, "prior": guess}
