"""Benchmarks against the solvers of other projects, which run in an environment of their own.

`make anchors` makes that environment, `.venv-anchors`; without it these lines are left out, and the
benchmark says so. A problem goes there as a file, and `anchor_solvers.py` solves it.

**Equal accuracy.** Each solver is asked for one tolerance after the other, from coarse to fine,
until its point is certified to 1% by the bounds of the problem itself; the time of that run alone
counts. Before it is judged, its point is brought into the boxes, its cost is raised where c ≥ Tγᵀu
is violated, and its occupancy is replaced by that of its own policy. None of that is in its time,
nor is reading the problem; ours is the whole of `solve_exact`. So the comparison favours the others.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from structures import KINDS, learning_problem, world

from benchmarks.lines import Line
from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.mdp.occupancy import cost_of_value
from rlfd_gym.solvers.incumbent import Incumbent, repaired, to_a_percent

ROOT = Path(__file__).resolve().parents[2]
INTERPRETER = ROOT / ".venv-anchors" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
PAIRS, DISCOUNT, ALPHA = 20_000, 0.95, 0.005
SECONDS = 20.0  # for one run of a solver
TOLERANCES = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)
RIVALS = {"pdlp": "PDLP", "clarabel": "Clarabel", "piqp": "PIQP"}


def anchors(n_pairs: int = PAIRS, kinds: tuple[str, ...] = KINDS, seconds: float = SECONDS) -> Iterator[Line]:
    """Time `solve_exact` against PDLP, Clarabel and PIQP to a certified 1%, on five kinds of MDP."""
    if _missing("anchors"):
        return
    solve_exact(learning_problem("grid", 2_000, 0.9, 0.1), "matrix-free")  # compile
    for kind in kinds:
        problem = learning_problem(kind, n_pairs, DISCOUNT, ALPHA)
        ours = np.inf
        for _ in range(2):  # the first may load what no problem before has needed
            start = time.perf_counter()
            solution = solve_exact(problem)
            ours = min(ours, time.perf_counter() - start)
        certified = Incumbent(problem)
        certified.offer(solution.cost, solution.value, solution.occupancy)
        if not certified.keeps(to_a_percent(problem)):
            warnings.warn(f"{kind}: our own gap is {solution.duality_gap:.2g}, not 1%", stacklevel=2)
        for name, title in RIVALS.items():
            theirs, verdict = _certified_time(problem, name, seconds)
            yield Line(
                f"{kind}, {problem.n_pairs:,} pairs, γ {DISCOUNT}, to 1% ({solution.method.removeprefix('exact: ')})",
                f"{ours:.2f} s",
                f"{title} {verdict}{theirs:.2f} s",
                ours / theirs,
                "at most 1",
                ours <= theirs,
            )


def anchors_planning(n_pairs: int = 100_000) -> Iterator[Line]:
    """Time `mdp.optimal` and QuantEcon against mdpsolver, to 1e-9, on a grid and a Garnet."""
    if _missing("anchors-planning"):
        return
    for kind in ("grid", "garnet5"):
        mdp, cost, _ = world(kind, n_pairs, DISCOUNT)
        mdp.optimal(cost)  # compile
        start = time.perf_counter()
        plan = mdp.optimal(cost)
        times = {"ours": time.perf_counter() - start}
        p = mdp.transitions
        tables = {"data": p.data, "indices": p.indices, "indptr": p.indptr, "state_starts": mdp.state_starts}
        off = []
        for name in ("mdpsolver", "quantecon"):
            tables |= {"cost": cost, "discount": mdp.discount}
            answer = _ask(name, tables, 1e-9 / (1 - mdp.discount), SECONDS)
            times[name] = SECONDS if answer is None else float(answer["seconds"])
            off.append(np.inf if answer is None else _off((1 - mdp.discount) * answer["value"], plan.value))
        for name, error in zip(("mdpsolver", "quantecon"), off, strict=True):
            yield Line(
                f"optimal policy, {kind}, {mdp.n_pairs:,} pairs, γ {DISCOUNT}, {name} off by {error:.0e}",
                f"{times['ours']:.2f} s",
                f"{name} {times[name]:.2f} s",
                times["ours"] / times[name],
                "at most 1",
                times["ours"] <= times[name],
            )


def _missing(name: str) -> bool:
    """Return whether the environment of the anchors is missing, and say what to do."""
    if INTERPRETER.exists():
        return False
    print(f"{name}: left out, because there is no {INTERPRETER.parent.parent.name}; `make anchors` makes it")
    return True


def _certified_time(problem: RLfDProblem, name: str, seconds: float) -> tuple[float, str]:
    """Return the time of the coarsest run that is certified, and "" or, if there is none, "over "."""
    flow = problem.mdp.flow_matrix().tocsr()
    tables = {"data": flow.data, "indices": flow.indices, "indptr": flow.indptr, "shape": np.array(flow.shape)}
    tables |= {"expert": problem.expert, "prior": problem.prior, "alpha": problem.alpha}
    taken = 0.0
    for tolerance in TOLERANCES:
        answer = _ask(name, tables, tolerance, seconds)
        if answer is None:
            return seconds, "over "
        taken = float(answer["seconds"])
        if _is_certified(problem, answer):
            return taken, ""
        if taken >= 0.95 * seconds:
            break
    return taken, "not certified in "


def _is_certified(problem: RLfDProblem, answer: dict[str, Any]) -> bool:
    """Return whether a point is certified to 1%, as it is or after the repairs."""
    best = Incumbent(problem)
    value = np.clip(answer["value"], -1.0, 1.0)
    occupancy = np.maximum(answer["occupancy"], 0.0)
    best.offer(answer["cost"], value, occupancy)
    raised = np.maximum(answer["cost"], cost_of_value(problem.mdp, value))
    if occupancy.any() and np.isfinite(occupancy).all():
        best.offer(raised, value, repaired(problem, occupancy / occupancy.sum(), 1e-10))
    return best.keeps(to_a_percent(problem))


def _ask(name: str, tables: dict[str, Any], tolerance: float, seconds: float) -> dict[str, Any] | None:
    """Return a solver's answer, or `None` if it had none in time."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "problem.npz", Path(folder) / "answer.npz"
        np.savez(source, **tables)
        program = Path(__file__).with_name("anchor_solvers.py")
        command = [INTERPRETER, program, name, source, target, repr(tolerance), repr(seconds)]
        try:
            subprocess.run([str(part) for part in command], check=True, timeout=seconds + 30, stdout=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None
        with np.load(target) as answer:
            return dict(answer)


def _off(value: np.ndarray, other: np.ndarray) -> float:
    return float(np.abs(value - other).max())
