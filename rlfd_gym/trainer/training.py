"""How a trainer trains: Algorithm 1 with logs along the way, a rule for α, and what is logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from imitation.rewards.reward_nets import RewardNet
from imitation.util.logger import HierarchicalLogger
from tqdm.auto import tqdm

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.alpha import AlphaChoice, alpha_path, select_alpha
from rlfd_gym.beliefs import Belief
from rlfd_gym.experts.demonstrations import (
    SMALL_TAIL,
    Demonstrations,
    absorbing_states,
    estimate_occupancy,
    occupancy_from_demonstrations,
    read_demonstrations,
)
from rlfd_gym.experts.noise import occupancy_noise
from rlfd_gym.experts.possible import check_possible
from rlfd_gym.experts.sampled import SampledExpert, sampled_expert
from rlfd_gym.experts.states import is_over_states
from rlfd_gym.experts.variation import action_variation
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem import BlackBoxProblem, RLfDProblem
from rlfd_gym.problem.guarantee import Guarantee, guarantee
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.sampled import solve_sampled
from rlfd_gym.solvers.smd import keeps_runs, solve_smd
from rlfd_gym.trainer.env_model import EnvModel
from rlfd_gym.trainer.reward import fit_reward_net
from rlfd_gym.trainer.settings import Settings

MODEL_ITERATIONS = 5_000_000  # a second or so
BLACK_BOX_ITERATIONS = 50_000
SAMPLED_CALLS = 2 * BLACK_BOX_ITERATIONS  # Algorithm 1 draws two next states in a step
CONFIDENCE = 0.95  # of a guarantee, unless one is asked for
LARGE_GAP = 0.5  # for costs in [-1, 1]
QUICK_VISITS = 20_000_000  # that the bootstrap of a logged number looks at: about a second
LOGS = 10  # per call, unless log_interval says otherwise


def read_expert(
    model: EnvModel,
    demonstrations: Any,
    settings: Settings,
    seed: int,
    belief: Belief | FloatArray | None,
    logger: HierarchicalLogger,
) -> tuple[Demonstrations | None, FloatArray | SampledExpert, float | None]:
    """Return demonstrations as they were executed, the expert, and the noise if a rule needs it.

    In states where the expert was not seen, it is taken to be optimal for a prior or a belief's
    guess. For an occupancy there are no demonstrations, and for an environment without tables the
    expert is a `SampledExpert`. What the demonstrations show of the expert's kind is logged.
    """
    if isinstance(demonstrations, np.ndarray):
        if model.mdp is None:
            raise ValueError("demonstrations: an occupancy has no next states, which env without tables needs")
        if is_over_states(demonstrations, model.mdp):
            logger.info("demonstrations are an occupancy over states: the actions are inferred from where they lead")
        return None, occupancy_from_demonstrations(demonstrations, model.mdp), None
    read = model.as_executed(read_demonstrations(demonstrations))
    if settings.estimator == "policy" and settings.discounting == "none" and model.mdp is not None:
        read = read.without_times()
    _log_variation(logger, read, model, seed)
    if model.mdp is None:
        stays, feasible = model.seems_absorbing(read), model.pairs.feasible
        expert = sampled_expert(
            read, model.discount, feasible=feasible, absorbing=stays, discounting=settings.discounting
        )
        return read, expert, None
    guess = belief.guess if isinstance(belief, Belief) else belief
    how, noise = estimator_of(settings, guess), None
    if settings.alpha_rule == "discrepancy":
        noise = occupancy_noise(read, model.mdp, **how, seed=seed)
    occupancy = estimate_occupancy(read, model.mdp, **how)
    check_possible(read, model.mdp)
    if settings.estimator == "policy":
        _log_guesses(logger, read, model.mdp, occupancy, "uniformly" if guess is None else "optimally for the prior")
    return read, occupancy, noise


def estimator_of(settings: Settings, prior: FloatArray | None) -> dict[str, Any]:
    """Return how the expert's occupancy is estimated."""
    known = prior if settings.estimator == "policy" else None
    return {"discounting": settings.discounting, "estimator": settings.estimator, "prior": known}


def _log_variation(logger: HierarchicalLogger, read: Demonstrations, model: EnvModel, seed: int) -> None:
    """Log which kind of error demonstrations can show, see `rlfd_gym.experts.variation`."""
    few = max(20, min(200, QUICK_VISITS // len(read.states)))
    shown = action_variation(read, model.pairs, n_resamples=few, seed=seed)
    logger.info(str(shown))
    if not np.isnan(shown.estimate):
        logger.record("rlfd/action_variation", shown.estimate)


def _log_guesses(
    logger: HierarchicalLogger, read: Demonstrations, mdp: TabularMDP, expert: FloatArray, how: str
) -> None:
    """Log how much of the expert's mass is in states where it was not seen, if that is a lot."""
    unseen = np.setdiff1d(np.flatnonzero(~absorbing_states(mdp)), read.states)
    guessed = float(mdp.sum_by_state(expert)[unseen].sum())
    if guessed > SMALL_TAIL:
        logger.info(f"the expert is taken to act {how} in states where it was not seen: {guessed:.1%} of its time")


def train_smd(
    problem: RLfDProblem | BlackBoxProblem,
    settings: Settings,
    before: Solution | None,
    adopt: Callable[[Solution, float | None], None],
    callback: Callable[[int], Any] | None,
    *,
    seed: int,
    tables: bool,
    max_iter: int | None,
    n_runs: int | None,
    log_interval: int | None,
    progress_bar: bool,
) -> None:
    """Make the runs of Algorithm 1, or continue those of the solution `before`.

    Every `log_interval` steps `adopt` is called with the solution so far and the gap that the theorem
    promises for the end, or None where it promises nothing. The other arguments are those of
    `RLfDTrainer.train`.
    """
    if max_iter is None and settings.epsilon is not None:
        max_iter = problem.iterations(settings.epsilon)
    elif max_iter is None:
        max_iter = MODEL_ITERATIONS if tables else BLACK_BOX_ITERATIONS
    steps = _checks.integer("max_iter", max_iter, 1, _checks.MOST_STEPS)
    interval = -(-steps // LOGS) if log_interval is None else _checks.integer("log_interval", log_interval, 0)
    runs = settings.n_runs if n_runs is None else _checks.integer("n_runs", n_runs, 1, _checks.MOST_TIMES)
    if before is not None:
        begun = before.stats["n_runs"]
        if n_runs is not None and n_runs != begun:
            raise ValueError(f"n_runs is {n_runs}, but training continues with the {begun} runs of the first call")
        runs = begun
    keep = keeps_runs(problem, runs)
    if before is not None and not before.state.runs:
        why = "an older rlfd_gym saved the trainer, without its runs; set_demonstrations() starts anew"
        why = why if keep else f"{runs} runs of this size are too large to be kept"
        raise RuntimeError(f"training cannot continue: {why}")
    if interval == 0 or not keep:
        interval = steps
    promise = problem.accuracy(steps) if before is None and settings.step_size is None else None
    done = 0 if before is None else before.n_iterations
    with tqdm(total=steps, unit="step", unit_scale=True, desc="SMD-RLfD", disable=not progress_bar) as bar:

        def show(part: Solution) -> bool:
            bar.update(part.n_iterations - bar.n - done)
            adopt(part, promise)
            return callback is None or callback(part.n_iterations) is not False

        solve_smd(
            problem,
            n_iterations=steps,
            step_size=settings.step_size,
            n_runs=runs,
            n_jobs=min(settings.n_jobs, runs),  # there is nothing for more to do
            seed=seed,
            record_every=interval if tables else None,
            variant="paper",  # whose runs a file can hold
            initial=before,
            callback=show,
            callback_every=interval,
        )


def train_sampled(
    problem: Any,
    settings: Settings,
    adopt: Callable[[Solution], Any],
    callback: Callable[[int], Any] | None,
    *,
    seed: int,
    max_iter: int | None,
    progress_bar: bool,
) -> None:
    """Learn from draws: `adopt` gets the solution of each round.

    `max_iter` limits the draws. By default they are those of `BLACK_BOX_ITERATIONS` of Algorithm 1, or if a
    gap is to be certified, those that `solve_sampled` makes at most.
    """
    if max_iter is None and settings.epsilon is None:
        max_iter = SAMPLED_CALLS + 10 * problem.n_pairs
    calls = None if max_iter is None else _checks.integer("max_iter", max_iter, 1, _checks.MOST_STEPS)
    with tqdm(total=calls, unit="draw", unit_scale=True, desc="sampled", disable=not progress_bar) as bar:

        def show(part: Solution) -> bool:
            bar.update(part.n_iterations - bar.n)
            adopt(part)
            return callback is None or callback(part.n_iterations) is not False

        solve_sampled(problem, settings.epsilon, calls, seed=seed, callback=show)


def choose_alpha(problem: Any, rule: str, noise: float | None, shown: Demonstrations | None) -> AlphaChoice:
    """Choose α by a rule, for a problem with tables whose expert was `shown` and may be off by `noise`."""
    if rule == "discrepancy" and noise is None:
        raise ValueError(
            'alpha="discrepancy" needs trajectories, to see how much they vary; for an occupancy give its ℓ1 '
            'error, as in alpha="discrepancy:0.1"'
        )
    return select_alpha(alpha_path(problem), rule, noise=noise, demonstrations=shown)


def apprentice_guarantee(
    problem: Any,
    solution: Solution,
    shown: Demonstrations | None,
    read: Callable[[Solution], FloatArray],
    settings: Settings,
    confidence: float | None,
    seed: int,
) -> Guarantee:
    """Return the guarantee that `RLfDTrainer.guarantee` describes; `read` gives a solution's policy.

    The half to learn from is estimated as `settings` say. The half to judge by is counted, because
    a statement with a probability needs an average over independent trajectories.
    """
    if not isinstance(problem, RLfDProblem):
        raise ValueError("a guarantee needs transition tables, which env does not have")
    if shown is None:
        return _guarantee_of(problem, solution, read, problem.expert, confidence, seed)
    if shown.lengths is None or len(shown.lengths) < 2:
        raise ValueError("a guarantee from demonstrations needs two trajectories: one to learn from, one to judge by")
    learning, judging = np.array_split(np.random.default_rng(seed).permutation(len(shown.lengths)), 2)
    how = estimator_of(settings, problem.belief.guess)
    half = RLfDProblem(problem.mdp, estimate_occupancy(shown.only(learning), problem.mdp, **how), belief=problem.belief)
    sure = CONFIDENCE if confidence is None else confidence
    return _guarantee_of(problem, solve_exact(half), read, shown.only(judging), sure, seed)


def _guarantee_of(
    problem: RLfDProblem,
    solution: Solution,
    read: Callable[[Solution], FloatArray],
    expert: Any,
    confidence: Any,
    seed: int,
) -> Guarantee:
    """Return the guarantee of a solution's policy; its learned cost sets how far costs are covered."""
    learned = solution.cost if solution.mixture is None else solution.mixture
    return guarantee(problem.mdp, read(solution), expert, problem.belief, confidence, seed=seed, cost=learned)


def log_progress(
    logger: HierarchicalLogger,
    model: EnvModel,
    expert: Any,
    now: Solution,
    before: Solution | None,
    policy: FloatArray,
    prior: FloatArray | None,
    **more: float | None,
) -> None:
    """Log where a training stands.

    That is the certificate, the costs of expert and apprentice, ℓ1 changes since `before`, the distance
    from the prior if there is one, and what `more` has.
    """
    record: dict[str, float] = {"iteration": now.n_iterations}
    if now.guarantee is not None:
        record["guarantee"] = now.guarantee.improvement
    if not np.isnan(now.duality_gap):
        record |= {"duality_gap": now.duality_gap, "upper_bound": now.upper, "lower_bound": now.lower}
    record["expert_cost"], record["apprentice_cost"] = model.expected_costs(expert, now, policy)
    if before is not None:
        for name in ("cost", "value", "occupancy"):
            record[f"change_{name}"] = float(np.abs(getattr(now, name) - getattr(before, name)).sum())
    if prior is not None:
        record["prior_distance"] = float(np.linalg.norm(now.cost - prior))
    record |= {name: value for name, value in more.items() if value is not None}
    for name, value in record.items():
        logger.record(f"rlfd/{name}", value)
    logger.dump(now.n_iterations)


def log_large_gap(logger: HierarchicalLogger, gap: float) -> None:
    """Log a warning if a training of Algorithm 1 ended far from the optimum."""
    if gap > LARGE_GAP:
        logger.warn(
            f'the duality gap is still {gap:.2g}: train longer, or with another step_size, or use solver="exact"'
        )


def fit_own_net(
    net: RewardNet, table: FloatArray, model: EnvModel, seed: int, logger: HierarchicalLogger, step: int
) -> None:
    """Fit the user's own reward net to the learned reward, and log how well it fits."""
    error = fit_reward_net(net, table, model.transitions(), np.random.default_rng(seed), model.observations)
    logger.record("rlfd/reward_fit_error", error)
    logger.dump(step)
