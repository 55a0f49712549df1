"""Benchmarks of the ℓ1 penalty and of the projection of a prior, on five kinds of MDP."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

from structures import KINDS, learning_problem

from benchmarks.lines import Line
from rlfd_gym import RLfDProblem, Solution, project_prior, solve_exact
from rlfd_gym.beliefs import NearPrior

PROGRAM_PAIRS, LARGE_PAIRS = 2_000, 100_000
SECONDS = 60.0  # after which HiGHS is stopped, and within which the large problems are to be solved
MASS = 0.3  # α as a share of the mean occupancy


def sparse(n_program: int = PROGRAM_PAIRS, n_large: int = LARGE_PAIRS) -> Iterator[Line]:
    """Time both matrix-free methods against the programs where these end, and on 100,000 pairs."""
    small = _sparse(learning_problem("grid", 400, 0.9, 0.1))
    solve_exact(small, "matrix-free")  # compile
    for kind in KINDS:
        problem = learning_problem(kind, n_program, 0.95, 0.1)
        chosen = _sparse(problem)
        yield _against(
            f"l1, {kind}, {problem.n_pairs:,} pairs",
            lambda p=chosen: solve_exact(p, "matrix-free"),
            "HiGHS",
            lambda p=chosen: solve_exact(p, "lp", time_limit=SECONDS),
        )
        yield _against(
            f"project_prior, {kind}, {problem.n_pairs:,} pairs",
            lambda p=problem: project_prior(p.mdp, p.expert, p.prior, "matrix-free"),
            "PIQP",
            lambda p=problem: project_prior(p.mdp, p.expert, p.prior, "qp"),
        )
    for kind in KINDS:
        problem = learning_problem(kind, n_large, 0.95, 0.1)
        chosen = _sparse(problem)
        yield _within(f"l1, {kind}, {problem.n_pairs:,} pairs", lambda p=chosen: solve_exact(p))
        yield _within(
            f"project_prior, {kind}, {problem.n_pairs:,} pairs",
            lambda p=problem: project_prior(p.mdp, p.expert, p.prior),
        )


def _sparse(problem: RLfDProblem) -> RLfDProblem:
    return problem.with_belief(NearPrior(problem.prior, MASS / problem.n_pairs, "l1"))


def _against(what: str, ours: Callable[[], Solution], name: str, program: Callable[[], Solution]) -> Line:
    """Return the line of a method against a program, which closes the gap further."""
    (a, solution), (b, other) = _timed(ours), _timed(program)
    late = "" if other.finished else "over "
    gap = solution.duality_gap / solution.upper
    claim = f"{what}, gap {gap:.2%}"
    return Line(claim, f"{a:.2f} s", f"{name} {late}{b:.2f} s", a / b, "at most 1", a <= b and gap <= 0.0101)


def _within(what: str, ours: Callable[[], Solution]) -> Line:
    """Return the line of a method against the clock."""
    seconds, solution = _timed(ours)
    gap = solution.duality_gap / solution.upper
    met = seconds <= SECONDS and gap <= 0.0101
    return Line(f"{what}, gap {gap:.2%}", f"{seconds:.2f} s", "a minute", seconds / SECONDS, "at most 1", met)


def _timed(act: Callable[[], Solution]) -> tuple[float, Solution]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a gap that is not as promised: it is in the line
        start = time.perf_counter()
        solution = act()
        return time.perf_counter() - start, solution
