"""A trainer from the file that `rlfd_gym.trainer.saving` wrote, read as if a stranger had typed it.

No code in a file is executed, and nothing in it is believed. The header is read first; an array is
unpacked only if it has the type and shape that the environment and the header ask for. Then

- settings, seeds, generators and numbers must be such as the library itself would have set them;
- the bounds of a solution are computed again from its point (c, u, μ), and its policy must be that
  of μ; of a solver that is a function, bounds that this does not confirm are dropped, and so are those of
  solver="sampled", which come from draws;
- runs of Algorithm 1 must have made the steps that the solution tells of, add up to its averages,
  and be in a state that the compiled kernels, which check nothing, can continue from. What a run
  shares with others of its problem (the prior, where each pair's transitions are) is taken from the
  problem.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._files import Stored, stored_arrays
from rlfd_gym.alpha import AlphaChoice
from rlfd_gym.beliefs import Belief, Hull, Prices
from rlfd_gym.beliefs.packing import unpack
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.mdp.occupancy import shares
from rlfd_gym.mdp.reading import massless
from rlfd_gym.problem import BlackBoxProblem, Point, RLfDProblem
from rlfd_gym.problem.guarantee import guarantee_at
from rlfd_gym.problem.solution import METHODS, History, Solution
from rlfd_gym.solvers.smd import Checkpoint, SmdState, keeps_runs
from rlfd_gym.trainer.env_model import EnvModel
from rlfd_gym.trainer.foreign import one_environment
from rlfd_gym.trainer.generators import generator_in
from rlfd_gym.trainer.saving import FORMAT, RUN, SAMPLES, VERSION, is_plain
from rlfd_gym.trainer.settings import Settings, Solver

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.records import Run
    from rlfd_gym.trainer.trainer import RLfDTrainer

AnyProblem = RLfDProblem | BlackBoxProblem
SAME_BOUNDS = 1e-6  # bounds on an optimum that differ by less are the same; another machine rounds otherwise
ROUNDING = 1e-12  # bounds that differ by less are taken from the file, to the bit
SAME_SUMS = 1e-9  # the same for sums and averages
LARGEST_SEED = 2**63
BAD = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)  # what a bad file can raise


def load(
    kind: type[RLfDTrainer],
    path: str | os.PathLike[str],
    env: Any,
    reward_net: Any,
    *,
    venv: Any,
    solver: Solver | None,
    custom_logger: Any,
) -> RLfDTrainer:
    """Return the trainer that `save` wrote, for the same environment."""
    given = one_environment(env, venv)
    with stored_arrays(path, FORMAT, VERSION) as stored:
        try:
            # Files from before there was a choice had their expert counted.
            settings = vars(Settings(**{"estimator": "count"} | stored.header["settings"])).copy()
            settings["solver"] = _solver(settings["solver"], stored.header.get("function"), solver)
            pairs = EnvModel.of(given, settings["discount"]).pairs
            for name in ("pair_states", "pair_actions"):
                own = getattr(pairs, name)
                if stored.layout(name)[1] != own.shape or not np.array_equal(stored.read(name, own.dtype), own):
                    raise ValueError(f"it was saved for another environment, whose {name} differ from env's")
            prior = _prior(stored, pairs.n_pairs)
            trainer = kind(None, env, reward_net, venv=venv, prior=prior, custom_logger=custom_logger, **settings)
            with np.errstate(all="ignore"):  # nonsense may overflow; it is refused all the same
                _restore(trainer, stored)
        except BAD as error:
            raise ValueError(f"{path} cannot be loaded ({type(error).__name__}: {error})") from error
    trainer._fit_own_net()
    return trainer


def _solver(saved: Any, function: Any, given: Solver | None) -> Any:
    """Return the solver in a file, or if it was a function, the one that is given again."""
    if function is None:
        if given is not None:
            raise ValueError(f"solver is for trainers whose solver was a function; this one has {saved!r}")
        return saved
    _checks.instance("function", function, str)
    if not callable(given):
        raise ValueError(f"its solver was the function {function!r}, of which a file has only the name: pass it again")
    return given


def _restore(trainer: RLfDTrainer, stored: Stored) -> None:
    """Bring a fresh trainer to where the one in the file stood."""
    header = stored.header
    trainer._seed = _checks.integer("seed", header["seed"], 0)
    if trainer._seed >= LARGEST_SEED:
        raise ValueError(f"seed must be below 2**63, got {trainer._seed}")
    horizon, noise = header["horizon"], header.get("noise")
    trainer._horizon = None if horizon is None else _checks.integer("horizon", horizon, 0)
    trainer._policy.rng = generator_in(header["policy_rng"])
    expert = _expert(stored, trainer._model.pairs.n_pairs)
    if expert is None:
        if "solution" in header:
            raise ValueError("it has a solution, but no expert")
        return
    trainer._pose(expert, None if noise is None else _checks.number("noise", noise, 0.0))
    if "solution" not in header:
        return
    if trainer.alpha_rule is None:
        trainer._adopt(_solution(stored, trainer.problem, trainer.solver))
        return
    chosen = header["choice"]
    alpha = _checks.number("choice.alpha", chosen["alpha"], 0.0)
    if chosen["rule"] != trainer.alpha_rule:
        raise ValueError(f"alpha was chosen by {chosen['rule']!r}, but the settings have {trainer.alpha_rule!r}")
    reason = _checks.instance("choice.reason", chosen["reason"], str)
    problem = trainer._model.problem(expert, trainer.prior, alpha, trainer.regulariser)
    choice = AlphaChoice(alpha, _solution(stored, problem, trainer.solver), trainer.alpha_rule, reason)
    trainer._pose(expert, trainer._noise, choice)
    trainer._adopt(choice.solution)


def _prior(stored: Stored, n_pairs: int) -> FloatArray | Belief | None:
    """Return the prior or the belief, if any; the trainer checks it against the environment."""
    if "belief" in stored.header:
        names = [name for name in stored.names if name.startswith("belief.")]
        arrays = {name.removeprefix("belief."): stored.read(name, np.float64) for name in names}
        return unpack(_checks.instance("belief", stored.header["belief"], dict), arrays)
    if "prior" not in stored.names:
        return None
    return _vector(stored, "prior", n_pairs)


def _expert(stored: Stored, n_pairs: int) -> FloatArray | SampledExpert | None:
    """Return the expert, if any; the problem checks it."""
    if "expert.states" in stored.names:
        return SampledExpert(*(stored.read(f"expert.{name}", shape=(None,)) for name in SAMPLES))
    return _vector(stored, "expert", n_pairs) if "expert" in stored.names else None


def _solution(stored: Stored, problem: AnyProblem, solver: str | Solver) -> Solution:
    """Return the solution, with bounds that are computed again."""
    header, own = stored.header["solution"], not callable(solver)
    sizes = {"policy": problem.n_pairs, "occupancy": problem.n_pairs, "cost": problem.n_pairs}
    vectors: dict[str, Any] = {name: _vector(stored, f"solution.{name}", size) for name, size in sizes.items()}
    if own or "solution.value" in stored.names:
        vectors["value"] = _vector(stored, "solution.value", problem.n_states)
    few = own and isinstance(problem.belief, (Hull, Prices))
    if few or (not own and "solution.mixture" in stored.names):
        vectors["mixture"] = _vector(stored, "solution.mixture", None)
    if few and not np.allclose(problem.belief.cost(problem.belief.vector(vectors["mixture"])), vectors["cost"]):
        raise ValueError("solution: its cost is not that of its mixture or prices")
    count = _checks.integer("n_iterations", header["n_iterations"], 0)
    version_1 = stored.header["version"] == 1
    stats = {k: header[k] for k in ("n_runs", "step_sizes") if k in header} if version_1 else dict(header["stats"])
    if not is_plain(list(stats.values())):
        raise TypeError("stats must be numbers, texts and sequences of such")
    method = _checks.instance("method", header["method"], str)
    known = [name for name in METHODS if name.startswith(str(solver))] if own else [method]
    x = vectors["mixture"] if few else vectors["cost"]
    drawn = solver == "sampled"  # its bounds come from draws that a file does not have
    upper, lower = (np.nan, np.nan) if drawn else _bounds(header, x, vectors, problem, own)
    negligible = 0.0 if solver == "smd" else 2 * max(upper - lower, 0.0) / (problem.belief.largest or 1.0)
    _check_policy(vectors["policy"], vectors["occupancy"], problem, negligible if own and not drawn else None)
    point = Point(x, vectors.get("value", np.zeros(0)), vectors["occupancy"])
    return Solution(
        **vectors,
        upper=upper,
        lower=lower,
        method=_checks.one_of("method", method, known),
        n_iterations=count,
        finished=_checks.instance("finished", header["finished"], bool),
        history=_history(stored, count if own else None),
        stats={name: tuple(value) if isinstance(value, list) else value for name, value in stats.items()},
        state=_state(stored, stats, vectors, count, problem) if solver == "smd" else None,
        guarantee=guarantee_at(problem, point, upper, lower, vectors["policy"])
        if own and isinstance(problem, RLfDProblem)
        else None,
    )


def _check_policy(policy: FloatArray, occupancy: FloatArray, problem: AnyProblem, negligible: float | None) -> None:
    """Refuse what is no policy or no occupancy, and of our solvers a policy that is not the occupancy's.

    In states without mass, of what is `negligible` to our solvers, the policy is planned.
    """
    sums = np.append(np.add.reduceat(policy, problem.state_starts[:-1]), occupancy.sum())
    if min(policy.min(), occupancy.min()) < -SAME_SUMS or np.abs(sums - 1).max() > _checks.SUM_TOLERANCE:
        raise ValueError("solution: its policy or its occupancy is no probability distribution")
    if negligible is None:
        return
    light = massless(np.add.reduceat(occupancy, problem.state_starts[:-1]), negligible)
    same = np.isclose(policy, shares(occupancy, problem.state_starts), rtol=0, atol=SAME_SUMS)
    if not (same | light[problem.pair_states]).all():
        raise ValueError("solution: its policy is not that of its occupancy")


def _bounds(
    header: dict[str, Any], x: FloatArray, vectors: dict[str, Any], problem: AnyProblem, own: bool
) -> tuple[float, float]:
    """Return the bounds of a solution's point; what the file says of them must agree, or is dropped."""
    said = (_checks.instance("upper", header["upper"], float), _checks.instance("lower", header["lower"], float))
    try:
        bounds = problem.bounds(x, vectors["value"], vectors["occupancy"])
    except (KeyError, ValueError):  # a function's solution need not be a point of this problem
        if own:
            raise
        return np.nan, np.nan
    for tolerance, result in ((ROUNDING, said), (SAME_BOUNDS, bounds)):
        if np.allclose(bounds, said, rtol=tolerance, atol=tolerance, equal_nan=True):
            return result
    if own:
        raise ValueError("it was saved for another environment, whose transitions give the solution other bounds")
    return np.nan, np.nan


def _history(stored: Stored, last: int | None) -> History:
    """Return the history, whose columns have one length or are empty; ours is in order up to `last`."""
    old = {"change_mixture": "change_weights"} if stored.header["version"] == 1 else {}
    names = [item.name for item in fields(History)]
    columns = {name: stored.read(f"history.{old.get(name, name)}", shape=(None,)) for name in names}
    length = columns["iteration"].size
    for name, column in columns.items():
        if column.shape not in ((length,), (0,)) or column.dtype not in (np.int64, np.float64):
            raise ValueError(f"history.{name} is {column.dtype} of shape {column.shape}, expected {length} numbers")
    if last is not None and (columns["duality_gap"].size, columns["change_mixture"].size) != (length, 0):
        raise ValueError(f"history: each of {length} records has a gap, and none has a mixture")
    order = np.concatenate([[0], columns.pop("iteration")])
    if last is not None and not ((np.diff(order) > 0).all() and order[-1] <= last):
        raise ValueError(f"history.iteration must grow, from above 0 up to {last} at most")
    if last is not None and not all(
        (column >= -SAME_SUMS).all() and np.isfinite(column).all() for column in columns.values()
    ):
        raise ValueError("history: there are gaps or changes that are negative or not finite")
    return History(iteration=order[1:], **columns)


def _state(stored: Stored, stats: dict[str, Any], vectors: dict[str, Any], count: int, problem: AnyProblem) -> SmdState:
    """Return where the solve stands, with its runs if the file has them."""
    header, version_1 = stored.header["solution"], stored.header["version"] == 1
    etas = tuple(_checks.number("step_sizes", eta, 0.0) for eta in header["step_sizes"])
    n_runs = _checks.integer("n_runs", stats["n_runs"], 1)
    if etas != tuple(stats["step_sizes"]) or len(etas) != len(problem.theorem.names):
        raise ValueError(f"step_sizes must be those of stats, one for each of {', '.join(problem.theorem.names)}")
    names = ("cost" if version_1 else "x", "value", "occupancy")
    sizes = (problem.n_pairs, problem.n_states, problem.n_pairs)
    last = Point(*(_vector(stored, f"last.{name}", size) for name, size in zip(names, sizes, strict=True)))
    if max(np.abs(last.x).max(), np.abs(last.value).max()) > 1 + SAME_SUMS:
        raise ValueError("last: there are costs or values outside [-1, 1]")
    if last.occupancy.min() < 0 or abs(last.occupancy.sum() - 1) > _checks.SUM_TOLERANCE:
        raise ValueError("last: its occupancy is no probability distribution")
    runs = () if version_1 else _runs(stored, header["generators"], n_runs, count, problem)
    if runs:
        answer = Point(vectors["cost"], vectors["value"], vectors["occupancy"])
        _check_mean("averages", [checkpoint.average for checkpoint in runs], answer)
        _check_mean("iterates", [checkpoint.run.iterate() for checkpoint in runs], last)
    return SmdState(etas, runs, last, problem.fingerprint())


def _runs(stored: Stored, generators: Any, n_runs: int, count: int, problem: AnyProblem) -> tuple[Checkpoint, ...]:
    """Return the runs of a solve, their fixed parts taken from the problem."""
    if len(_checks.instance("generators", generators, list)) not in (0, n_runs):
        raise ValueError(f"it has {len(generators)} generators for {n_runs} runs")
    if not generators:
        return ()
    if not keeps_runs(problem, n_runs):
        raise ValueError(f"runs: {n_runs} runs of this problem are more than are kept")
    from rlfd_gym.solvers.smd import records  # compiled: loaded when needed

    anywhere = Point(np.zeros(problem.n_pairs), np.zeros(problem.n_states), np.ones(problem.n_pairs))
    runs = [records.start(problem, anywhere) for _ in generators]
    arrays = {name: stored.read(f"runs.{name}", float, (n_runs, *getattr(runs[0], name).shape)) for name in RUN}
    for number, run in enumerate(runs):
        fixed = {name: run.pairs[name].copy() for name in ("prior", "row", "state", "row_length")}
        for name in RUN:
            getattr(run, name)[...] = arrays[name][number]
        for name, values in fixed.items():
            run.pairs[name] = values
        _check_run(run, count)
    return tuple(Checkpoint(run, generator_in(bits, ("PCG64",))) for run, bits in zip(runs, generators, strict=True))


def _check_run(run: Run, count: int) -> None:
    """Refuse a run that has not made `count` steps, or that no run of this library could have come to."""
    from rlfd_gym.solvers.smd.kernels import LOG_FLOOR  # compiled: loaded when needed
    from rlfd_gym.solvers.smd.records import FLUSHES, INVERSE_Z, R_STEPS, TOTAL
    from rlfd_gym.solvers.smd.tree import tree_rebuild

    pairs, states, clock, tree = run.pairs, run.states, run.clock, np.zeros_like(run.tree)
    finite = [pairs[name] for name in ("x", "x_sum", "mu_sum", "clock")] + [run.state_buffer, run.tree, clock]
    if not all(np.isfinite(values).all() for values in finite) or not (pairs["log_weight"] < np.inf).all():
        raise ValueError("runs: there are numbers that are not finite")
    tree.reshape(-1)[: len(pairs)] = run.weights
    tree_rebuild(tree, run.levels)
    if run.tree.min() < 0 or not np.allclose(run.tree, tree, rtol=SAME_SUMS, atol=0) or clock[TOTAL] != count:
        raise ValueError(f"runs: the weights do not add up, or a run has {clock[TOTAL]:.0f} steps instead of {count}")
    logs = pairs["log_weight"]
    weights = np.where(logs <= LOG_FLOOR, 0.0, np.exp(np.minimum(logs, -LOG_FLOOR)))
    if not np.allclose(run.weights, weights, rtol=SAME_SUMS, atol=0) or run.weights.max() <= 0:
        raise ValueError("runs: the weights are not those of their logarithms")
    if max(np.abs(pairs["x"]).max(), np.abs(states["x"]).max()) > 1 + SAME_SUMS:
        raise ValueError("runs: there are costs or values outside [-1, 1]")
    steps = clock[[R_STEPS, FLUSHES]]
    since = pairs["clock"]
    if (steps != np.floor(steps)).any() or not (0 <= steps.min() <= steps.max() <= count) or pairs["mu_sum"].min() < 0:
        raise ValueError("runs: the sums are not those of that many steps")
    if since.min() < 0 or since.max() > clock[INVERSE_Z]:
        raise ValueError("runs: a pair's clock is ahead of its run's")


def _check_mean(name: str, points: list[Point], saved: Point) -> None:
    """Refuse runs whose averages or iterates are not those that were saved with them."""
    for want, column in zip(saved, zip(*points, strict=True), strict=True):
        if not np.allclose(np.mean(column, axis=0), want, rtol=SAME_SUMS, atol=SAME_SUMS):
            raise ValueError(f"runs: their {name} are not the solution's")


def _vector(stored: Stored, name: str, length: int | None) -> FloatArray:
    """Return an array that must be a finite vector, of a given length if there is one."""
    vector: FloatArray = stored.read(name, np.float64, (length,))
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} is not finite")
    return vector
