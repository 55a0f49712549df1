"""A trainer as one file of named arrays with a JSON header, and back.

No code in a file is executed, and nothing in it is believed: every array is checked against the
problem before it is used, because the compiled kernels check nothing. What a run of Algorithm 1 shares
with others of its problem (the prior, where each pair's transitions are) is taken from the problem.

Version 1 kept the runs of Algorithm 1 in another form. Its files are read without them: everything is
there, but the training cannot be continued.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks, _files
from rlfd_gym._checks import FloatArray
from rlfd_gym.alpha import AlphaChoice
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem import BlackBoxProblem, Point, RLfDProblem
from rlfd_gym.problem.solution import History, Solution
from rlfd_gym.solvers.smd import Checkpoint, SmdState
from rlfd_gym.trainer.env_model import EnvModel
from rlfd_gym.trainer.settings import Settings, Solver

if TYPE_CHECKING:
    from rlfd_gym.solvers.smd.records import Run
    from rlfd_gym.trainer.trainer import RLfDTrainer

FORMAT, VERSION = "rlfd_gym.RLfDTrainer", 2
SAMPLES = ("states", "actions", "next_states", "weights")  # of a `SampledExpert`
VECTORS = ("policy", "occupancy", "cost", "value", "mixture")  # of a `Solution`; the last two may be missing
NUMBERS = ("upper", "lower", "method", "n_iterations", "finished")
RUN = ("pair_buffer", "state_buffer", "tree", "clock")  # what changes in a `Run`
GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")  # NumPy's; those of the runs are the first
SAME_BOUNDS = 1e-6  # bounds on an optimum that differ by less are the same; another machine rounds otherwise
SAME_SUMS = 1e-9  # the same for the sums in a tree

Arrays = dict[str, NDArray[Any]]


def save(trainer: RLfDTrainer, path: str | os.PathLike[str]) -> None:
    """Write a trainer to a file."""
    settings, function = vars(trainer.settings).copy(), None
    if callable(trainer.solver):
        settings["solver"], function = None, getattr(trainer.solver, "__name__", type(trainer.solver).__name__)
    header: dict[str, Any] = {
        "settings": settings,
        "function": function,
        "seed": trainer._seed,
        "horizon": trainer._horizon,
        "noise": trainer._noise,
        "policy_rng": trainer.policy.rng.bit_generator.state,
    }
    pairs = trainer._model.pairs
    arrays: Arrays = {"pair_states": pairs.pair_states, "pair_actions": pairs.pair_actions}
    if trainer.prior is not None:
        arrays["prior"] = trainer.prior
    if trainer._problem is not None:
        arrays |= _pack_expert(trainer._problem.expert)
    if trainer._choice is not None:
        header["choice"] = {name: getattr(trainer._choice, name) for name in ("alpha", "rule", "reason")}
    if trainer._solution is not None:
        header["solution"], own = _pack(trainer._solution, with_state=trainer.solver == "smd")
        arrays |= own
    _files.save_arrays(path, FORMAT, VERSION, header, arrays)


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
    header, arrays = _files.load_arrays(path, FORMAT, VERSION)
    try:
        settings = vars(Settings(**header["settings"])).copy()
        settings["solver"] = _solver(settings["solver"], header.get("function"), solver)
        pairs = EnvModel.of(venv if env is None else env, settings["discount"]).pairs
        for name in ("pair_states", "pair_actions"):
            if not np.array_equal(arrays[name], getattr(pairs, name)):
                raise ValueError(f"it was saved for another environment, whose {name} differ from env's")
        prior = _vector(arrays, "prior", pairs.n_pairs) if "prior" in arrays else None
        trainer = kind(None, env, reward_net, venv=venv, prior=prior, custom_logger=custom_logger, **settings)
        _restore(trainer, header, arrays)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{path} cannot be loaded ({type(error).__name__}: {error})") from error
    trainer._fit_own_net()
    return trainer


def _solver(saved: Any, function: str | None, given: Solver | None) -> Any:
    """Return the solver in a file, or if it was a function, the one that is given again."""
    if function is None and given is not None:
        raise ValueError(f"solver is for trainers whose solver was a function; this one has {saved!r}")
    if function is not None and not callable(given):
        raise ValueError(f"its solver was the function {function!r}, of which a file has only the name: pass it again")
    return saved if function is None else given


def _restore(trainer: RLfDTrainer, header: dict[str, Any], arrays: Arrays) -> None:
    """Bring a fresh trainer to where the one in the file stood."""
    trainer._seed, trainer._horizon = _checks.integer("seed", header["seed"], 0), header["horizon"]
    trainer._policy.rng = _generator(header["policy_rng"])
    expert, noise = _unpack_expert(arrays, trainer._model.pairs.n_pairs), header.get("noise")
    if expert is None:
        return
    trainer._pose(expert, None if noise is None else _checks.number("noise", noise, 0.0))
    if "solution" not in header:
        return
    parts = header["solution"]
    if header["version"] == 1:
        parts, arrays = _from_version_1(parts, arrays)
    if "choice" not in header:
        trainer._adopt(_unpack(parts, arrays, trainer.problem, trainer.solver))
        return
    alpha = _checks.number("choice.alpha", header["choice"]["alpha"], 0.0)
    problem = trainer._model.problem(expert, trainer.prior, alpha, trainer.regulariser)
    choice = AlphaChoice(solution=_unpack(parts, arrays, problem, trainer.solver), **header["choice"])
    trainer._pose(expert, trainer._noise, choice)
    trainer._adopt(choice.solution)


def _pack_expert(expert: FloatArray | SampledExpert) -> Arrays:
    """Return the arrays of an expert."""
    if isinstance(expert, SampledExpert):
        return {f"expert.{name}": getattr(expert, name) for name in SAMPLES}
    return {"expert": expert}


def _unpack_expert(arrays: Arrays, n_pairs: int) -> FloatArray | SampledExpert | None:
    """Return the expert that `_pack_expert` took apart, if any; the problem checks it."""
    if "expert.states" in arrays:
        return SampledExpert(*(arrays[f"expert.{name}"] for name in SAMPLES))
    return _vector(arrays, "expert", n_pairs) if "expert" in arrays else None


def _pack(solution: Solution, *, with_state: bool) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a solution, with or without what Algorithm 1 continues from."""
    vectors = {name: getattr(solution, name) for name in VECTORS}
    arrays = {f"solution.{name}": np.asarray(v, np.float64) for name, v in vectors.items() if v is not None}
    arrays |= {f"history.{item.name}": getattr(solution.history, item.name) for item in fields(History)}
    header: dict[str, Any] = {name: getattr(solution, name) for name in NUMBERS}
    header["stats"] = {name: value for name, value in solution.stats.items() if _is_plain(value)}
    if with_state:
        state: SmdState = solution.state
        header["step_sizes"] = state.step_sizes
        header["generators"] = [checkpoint.generator.bit_generator.state for checkpoint in state.runs]
        arrays |= {f"last.{name}": getattr(state.last, name) for name in Point._fields}
        arrays |= {f"runs.{name}": np.stack([getattr(c.run, name) for c in state.runs]) for name in RUN if state.runs}
    return header, arrays


def _is_plain(value: Any) -> bool:
    """Whether a header can hold a statistic: a number, a text, or a sequence of such."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str, np.generic, np.ndarray))


def _unpack(
    header: dict[str, Any], arrays: Arrays, problem: RLfDProblem | BlackBoxProblem, solver: str | Solver
) -> Solution:
    """Return the solution that `_pack` took apart; bounds that a solver of ours proved must hold."""
    own = not callable(solver)
    sizes = {"policy": problem.n_pairs, "occupancy": problem.n_pairs, "cost": problem.n_pairs}
    if own or "solution.value" in arrays:
        sizes["value"] = problem.n_states
    if "solution.mixture" in arrays:
        sizes["mixture"] = arrays["solution.mixture"].size
    state = None
    if solver == "smd":
        lengths = (problem.n_pairs, problem.n_states, problem.n_pairs)
        last = Point(*(_vector(arrays, f"last.{name}", n) for name, n in zip(Point._fields, lengths, strict=True)))
        etas = tuple(_checks.number("step_sizes", eta, 0.0) for eta in header["step_sizes"])
        state = SmdState(etas, _unpack_runs(header, arrays, problem), last, problem.fingerprint())
    vectors = {name: _vector(arrays, f"solution.{name}", size) for name, size in sizes.items()}
    if state is not None and state.runs:
        _check_averages(state, (vectors["cost"], vectors["value"], vectors["occupancy"]))
    for name in ("upper", "lower"):
        if not isinstance(header[name], float):
            raise TypeError(f"{name} must be a number, got {header[name]!r}")
    solution = Solution(
        **vectors,  # type: ignore[arg-type]
        **{name: header[name] for name in NUMBERS},
        history=_unpack_history(arrays),
        stats={name: tuple(value) if isinstance(value, list) else value for name, value in header["stats"].items()},
        state=state,
    )
    if own:
        bounds = problem.bounds(vectors["cost"], vectors["value"], vectors["occupancy"])
        saved = (solution.upper, solution.lower)
        if not np.allclose(bounds, saved, rtol=SAME_BOUNDS, atol=SAME_BOUNDS, equal_nan=True):
            raise ValueError("it was saved for another environment, whose transitions give the solution other bounds")
    return solution


def _unpack_history(arrays: Arrays) -> History:
    """Return the history of a solution, whose columns have one length or are empty."""
    columns = {item.name: arrays[f"history.{item.name}"] for item in fields(History)}
    length = columns["iteration"].size
    for name, column in columns.items():
        if column.shape not in ((length,), (0,)) or column.dtype.kind not in "if":
            raise ValueError(f"history.{name} is {column.dtype} of shape {column.shape}, expected {length} numbers")
    return History(**columns)


def _unpack_runs(
    header: dict[str, Any], arrays: Arrays, problem: RLfDProblem | BlackBoxProblem
) -> tuple[Checkpoint, ...]:
    """Return the runs of a solve, their fixed parts taken from the problem."""
    from rlfd_gym.solvers.smd import records  # compiled: loaded when needed

    generators = header["generators"]
    if len(generators) not in (0, header["stats"]["n_runs"]):
        raise ValueError(f"it has {len(generators)} generators for {header['stats']['n_runs']} runs")
    anywhere = Point(np.zeros(problem.n_pairs), np.zeros(problem.n_states), np.ones(problem.n_pairs))
    runs = []
    for number, bits in enumerate(generators):
        run = records.start(problem, anywhere)
        fixed = {name: run.pairs[name].copy() for name in ("prior", "row", "state", "row_length")}
        for name in RUN:
            own = getattr(run, name)
            own[...] = _array(arrays, f"runs.{name}", (len(generators), *own.shape))[number]
        for name, values in fixed.items():
            run.pairs[name] = values
        _check_run(run, header["n_iterations"])
        runs.append(Checkpoint(run, _generator(bits, ("PCG64",))))
    return tuple(runs)


def _check_run(run: Run, count: int) -> None:
    """Refuse a run that has not made `count` steps, or whose draws could leave its tree."""
    from rlfd_gym.solvers.smd.tree import tree_rebuild  # compiled: loaded when needed

    pairs, tree = run.pairs, np.zeros_like(run.tree)
    tree.reshape(-1)[: len(pairs)] = run.weights
    tree_rebuild(tree, run.levels)
    finite = [pairs[name] for name in ("x", "x_sum", "mu_sum", "clock")] + [run.state_buffer, run.tree, run.clock]
    if not all(np.isfinite(values).all() for values in finite) or not (pairs["log_weight"] < np.inf).all():
        raise ValueError("runs: there are numbers that are not finite")
    if run.tree.min() < 0 or not np.allclose(run.tree, tree, rtol=SAME_SUMS, atol=0) or run.steps != count:
        raise ValueError(f"runs: the weights do not add up, or a run has {run.steps} steps instead of {count}")


def _check_averages(state: SmdState, answer: tuple[FloatArray, ...]) -> None:
    """Refuse runs whose averages are not the solution that was saved with them."""
    with np.errstate(all="ignore"):  # nonsense may overflow; it is refused all the same
        points = [checkpoint.average for checkpoint in state.runs]
    for saved, column in zip(answer, zip(*points, strict=True), strict=True):
        if not np.allclose(np.mean(column, axis=0), saved, rtol=SAME_SUMS, atol=SAME_SUMS):
            raise ValueError("runs: their averages are not the solution")


def _from_version_1(header: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Return (header, arrays) of a solution by the names of version 2, without its runs."""
    stats = {name: header[name] for name in ("n_runs", "step_sizes") if name in header}
    renamed = {"last.cost": "last.x", "history.change_weights": "history.change_mixture"}
    return header | {"stats": stats, "generators": []}, {renamed.get(name, name): arrays[name] for name in arrays}


def _vector(arrays: Arrays, name: str, length: int) -> FloatArray:
    """Return an array that must be a finite vector of a given length."""
    vector: FloatArray = _array(arrays, name, (length,))
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} is not finite")
    return vector


def _array(arrays: Arrays, name: str, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return an array that must be float64 of a given shape."""
    array = arrays[name]
    if array.shape != shape or array.dtype != np.float64:
        raise ValueError(f"{name} is {array.dtype} of shape {array.shape}, expected float64 of shape {shape}")
    return array


def _generator(state: dict[str, Any], kinds: tuple[str, ...] = GENERATORS) -> np.random.Generator:
    """Return a generator of one of these kinds, in a given state."""
    bits = getattr(np.random, _checks.one_of("bit_generator", state["bit_generator"], kinds))()
    bits.state = state
    return np.random.Generator(bits)
