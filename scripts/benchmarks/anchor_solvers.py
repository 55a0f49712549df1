"""Solve one problem by another project's solver: run by `anchors.py` in an environment of its own.

    .venv-anchors/bin/python scripts/benchmarks/anchor_solvers.py SOLVER problem.npz answer.npz TOLERANCE SECONDS

It needs NumPy, SciPy and the solver, and nothing of this project. Learning problems are the quadratic
program of IO-AL_α times n, in the cost c and the value u,

    min  n α‖c - ĉ‖² + n <μ_E, c - Tγᵀu>    subject to   c - Tγᵀu ≥ 0,  |c| ≤ 1,  |u| ≤ 1,

and the answer has c, u, the multipliers n μ and the seconds that the solver took, from its matrices
to its answer. Plans have the transitions, costs and discount, and the answer has the values.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp


def main() -> None:
    """Read the problem, solve it, and write the answer."""
    name, source, target, tolerance, seconds = sys.argv[1:]
    with np.load(source) as problem:
        np.savez(target, **SOLVERS[name](problem, float(tolerance), float(seconds)))


def quadratic_program(problem: Mapping[str, Any]) -> tuple[Any, np.ndarray, np.ndarray, int]:
    """Return the rows of c - Tγᵀu ≥ 0, the diagonal Hessian and the gradient over (c, u), and n."""
    n = problem["expert"].size
    flow = sp.csr_matrix((problem["data"], problem["indices"], problem["indptr"]), shape=problem["shape"])
    rows = sp.csr_matrix(sp.hstack([sp.identity(n), -flow.T]))
    weight = 2 * n * float(problem["alpha"])
    hessian = np.concatenate([np.full(n, weight), np.zeros(flow.shape[0])])
    gradient = np.concatenate([n * problem["expert"] - weight * problem["prior"], -n * (flow @ problem["expert"])])
    return rows, hessian, gradient, n


def pdlp(problem: Mapping[str, Any], tolerance: float, seconds: float) -> dict[str, Any]:
    """Solve by OR-Tools' PDLP, a first-order method."""
    from ortools.pdlp import solvers_pb2
    from ortools.pdlp.python import pdlp

    rows, hessian, gradient, n = quadratic_program(problem)
    start = time.perf_counter()
    program = pdlp.QuadraticProgram()
    program.resize_and_initialize(gradient.size, n)
    program.set_objective_matrix_diagonal(hessian)
    program.objective_vector = gradient
    program.constraint_matrix = sp.csc_matrix(rows)
    program.constraint_lower_bounds, program.constraint_upper_bounds = np.zeros(n), np.full(n, np.inf)
    program.variable_lower_bounds, program.variable_upper_bounds = -np.ones(gradient.size), np.ones(gradient.size)
    options = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = options.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
    criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
    criteria.time_sec_limit = seconds
    result = pdlp.primal_dual_hybrid_gradient(program, options)
    return _answer(result.primal_solution, result.dual_solution, n, start)


def clarabel(problem: Mapping[str, Any], tolerance: float, seconds: float) -> dict[str, Any]:
    """Solve by Clarabel, an interior point method with a factorisation."""
    import clarabel

    rows, hessian, gradient, n = quadratic_program(problem)
    start = time.perf_counter()
    identity = sp.identity(gradient.size)
    below = sp.csc_matrix(sp.vstack([-rows, identity, -identity]))
    ends = np.concatenate([np.zeros(n), np.ones(2 * gradient.size)])
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, seconds
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    cones = [clarabel.NonnegativeConeT(ends.size)]
    result = clarabel.DefaultSolver(sp.csc_matrix(sp.diags(hessian)), gradient, below, ends, cones, settings).solve()
    return _answer(np.asarray(result.x), np.asarray(result.z)[:n], n, start)


def piqp(problem: Mapping[str, Any], tolerance: float, seconds: float) -> dict[str, Any]:
    """Solve by PIQP, a proximal interior point method with a factorisation. It takes no time limit."""
    import piqp

    rows, hessian, gradient, n = quadratic_program(problem)
    start = time.perf_counter()
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = tolerance
    box = np.ones(gradient.size)
    matrix = sp.csc_matrix(sp.diags(hessian))
    solver.setup(matrix, gradient, None, None, sp.csc_matrix(rows), np.zeros(n), None, -box, box)
    solver.solve()
    return _answer(np.asarray(solver.result.x), np.asarray(solver.result.z_l)[:n], n, start)


def mdpsolver(problem: Mapping[str, Any], tolerance: float, seconds: float) -> dict[str, Any]:
    """Plan by mdpsolver's modified policy iteration; reading its lists is not timed."""
    import mdpsolver

    starts, ends = problem["state_starts"], problem["indptr"]
    data, indices = problem["data"].tolist(), problem["indices"].tolist()
    chances, columns, rewards = [], [], []
    costs = problem["cost"].tolist()
    for first, last in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        spans = [slice(int(ends[pair]), int(ends[pair + 1])) for pair in range(first, last)]
        chances.append([data[span] for span in spans])
        columns.append([indices[span] for span in spans])
        rewards.append([-cost for cost in costs[first:last]])
    model = mdpsolver.model()
    model.mdp(discount=float(problem["discount"]), rewards=rewards, tranMatProbs=chances, tranMatColumns=columns)
    start = time.perf_counter()
    model.solve(algorithm="mpi", tolerance=tolerance)
    taken = time.perf_counter() - start
    return {"value": -np.asarray(model.getValueVector()), "seconds": taken}


def quantecon(problem: Mapping[str, Any], tolerance: float, seconds: float) -> dict[str, Any]:
    """Plan by QuantEcon's modified policy iteration; compiling is not timed."""
    from quantecon.markov import DiscreteDP

    n_pairs, starts = problem["cost"].size, problem["state_starts"]
    shape = (n_pairs, starts.size - 1)
    transitions = sp.csr_matrix((problem["data"], problem["indices"], problem["indptr"]), shape=shape)
    states = np.repeat(np.arange(shape[1]), np.diff(starts))
    actions = np.arange(n_pairs) - starts[states]
    program = DiscreteDP(-problem["cost"], transitions, float(problem["discount"]), states, actions)
    program.solve(method="mpi", epsilon=1.0, max_iter=2)  # compile
    start = time.perf_counter()
    result = program.solve(method="mpi", epsilon=tolerance, max_iter=10**6)
    return {"value": -result.v, "seconds": time.perf_counter() - start}


def _answer(point: np.ndarray, multipliers: np.ndarray, n: int, start: float) -> dict[str, Any]:
    """Return the parts of an answer to a learning problem."""
    seconds = time.perf_counter() - start
    return {"cost": point[:n], "value": point[n:], "occupancy": multipliers, "seconds": seconds}


SOLVERS = {"pdlp": pdlp, "clarabel": clarabel, "piqp": piqp, "mdpsolver": mdpsolver, "quantecon": quantecon}

if __name__ == "__main__":
    main()
