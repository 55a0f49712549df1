"""How a trainer trains: Algorithm 1 with logs along the way, a rule for α, and what is logged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.alpha import AlphaChoice, alpha_path, select_alpha
from rlfd_gym.experts.demonstrations import (
    Demonstrations,
    estimate_occupancy,
    occupancy_from_demonstrations,
    read_demonstrations,
)
from rlfd_gym.experts.noise import occupancy_noise
from rlfd_gym.experts.sampled import SampledExpert, sampled_expert
from rlfd_gym.problem import BlackBoxProblem, RLfDProblem
from rlfd_gym.problem.guarantee import Guarantee, guarantee
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.smd import keeps_runs, solve_smd
from rlfd_gym.trainer.env_model import EnvModel
from rlfd_gym.trainer.settings import Settings

MODEL_ITERATIONS = 5_000_000  # a second or so
BLACK_BOX_ITERATIONS = 50_000
CONFIDENCE = 0.95  # of a guarantee, unless one is asked for
LOGS = 10  # per call, unless log_interval says otherwise


def read_expert(
    model: EnvModel, demonstrations: Any, settings: Settings, seed: int
) -> tuple[Demonstrations | None, FloatArray | SampledExpert, float | None]:
    """Return demonstrations as they were executed, the expert, and the noise if a rule needs it.

    For an occupancy there are no demonstrations, and for an environment without tables the expert
    is a `SampledExpert`.
    """
    if isinstance(demonstrations, np.ndarray):
        if model.mdp is None:
            raise ValueError("demonstrations: an occupancy has no next states, which env without tables needs")
        return None, occupancy_from_demonstrations(demonstrations, model.mdp), None
    read, how = model.as_executed(read_demonstrations(demonstrations)), settings.discounting
    if model.mdp is None:
        stays, feasible = model.seems_absorbing(read), model.pairs.feasible
        expert = sampled_expert(read, model.discount, feasible=feasible, absorbing=stays, discounting=how)
        return read, expert, None
    noise = None
    if settings.alpha_rule == "discrepancy":
        noise = occupancy_noise(read, model.mdp, discounting=how, seed=seed)
    return read, estimate_occupancy(read, model.mdp, discounting=how), noise


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
            initial=before,
            callback=show,
            callback_every=interval,
        )


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
    confidence: float | None,
    seed: int,
) -> Guarantee:
    """Return the guarantee that `RLfDTrainer.guarantee` describes; `read` gives a solution's policy."""
    if not isinstance(problem, RLfDProblem):
        raise ValueError("a guarantee needs transition tables, which env does not have")
    if shown is None:
        return _guarantee_of(problem, solution, read, problem.expert, confidence, seed)
    if shown.lengths is None or len(shown.lengths) < 2:
        raise ValueError("a guarantee from demonstrations needs two trajectories: one to learn from, one to judge by")
    learning, judging = np.array_split(np.random.default_rng(seed).permutation(len(shown.lengths)), 2)
    half = RLfDProblem(problem.mdp, estimate_occupancy(shown.only(learning), problem.mdp), belief=problem.belief)
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


def progress(
    model: EnvModel, expert: Any, now: Solution, before: Solution | None, policy: FloatArray
) -> dict[str, float]:
    """Return the numbers worth logging.

    These are the certificate, the costs of expert and apprentice, and ℓ1 changes since `before`.
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
    return record
