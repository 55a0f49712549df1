"""What Algorithm 1 keeps of a run: records for pairs and states, a sum tree, a clock.

A run is a handful of plain arrays, which the kernels change in place. A `Run` is its own
checkpoint: a copy of the arrays continues exactly where the run stands. What the lazily kept sums
mean is explained in `rlfd_gym.solvers.smd.kernels`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._compiled import aligned
from rlfd_gym.beliefs import Hull, Intervals
from rlfd_gym.beliefs.near_prior import L2
from rlfd_gym.problem import Point, Problem, RLfDProblem
from rlfd_gym.solvers.smd.alias import distribution_table, row_tables
from rlfd_gym.solvers.smd.intrinsics import FAN
from rlfd_gym.solvers.smd.tree import tree_shape

DRAWS = 7  # uniforms per step, and sampled indices
ANCHOR, VISITED, VISITED_NEXT, EXPERT, EXPERT_NEXT, TRIED, TRIED_NEXT = range(DRAWS)  # i, j, s', e, s'_e, k, s'_k

PAIR = np.dtype(
    [
        ("x", "f8"),  # the cost
        ("x_sum", "f8"),
        ("prior", "f8"),
        ("log_weight", "f8"),
        ("mu_sum", "f8"),
        ("clock", "f8"),  # A when mu_sum was last brought up to date
        ("row", "i8"),  # first slot of this pair's alias table
        ("state", "i4"),
        ("row_length", "i4"),
    ]
)
STATE = np.dtype([("x_sum", "f8"), ("x", "f8")])  # of the value; not in the order of PAIR, or numba would cast
R_STEPS, INVERSE_Z, FLUSHES, TOTAL = range(4)  # entries of Run.clock


class Mixture(NamedTuple):
    """A basis C, and a run's mixture w: as it is now, and its sum over the steps."""

    basis: FloatArray  # (n, K)
    gram: FloatArray  # CᵀC
    log_weight: FloatArray  # largest entry 0
    weight: FloatArray
    weight_sum: FloatArray


class Run(NamedTuple):
    """One run's iterate and lazy sums; the kernels change it in place.

    Records are passed as plain float64 arrays and viewed as records inside the kernels: numba may
    take 0.4 ms per call to recognise arrays of records as arguments.
    """

    pair_buffer: FloatArray  # n records PAIR
    state_buffer: FloatArray  # S records STATE
    tree: FloatArray  # (nodes, FAN): one level after the other, the weights first
    levels: IntArray  # the first node of each level
    clock: FloatArray  # r and A of the kernels' docstring, and the flushes and steps so far
    mixture: Mixture | None = None  # None on the box
    ends: FloatArray | None = None  # (n, 2), the interval of each pair's cost; None for [-1, 1]

    @property
    def pairs(self) -> np.ndarray[Any, Any]:
        """The records of the pairs, as a view."""
        return self.pair_buffer.view(PAIR)

    @property
    def states(self) -> np.ndarray[Any, Any]:
        """The records of the states, as a view."""
        return self.state_buffer.view(STATE)

    @property
    def weights(self) -> FloatArray:
        """The unnormalised occupancy, as a view of the tree."""
        return self.tree.reshape(-1)[: len(self.pairs)]

    @property
    def steps(self) -> int:
        """How many steps the run has made."""
        return int(self.clock[TOTAL])

    def average(self) -> Point:
        """Return the averages over the steps made so far, without changing the run."""
        return average_of(self)

    def iterate(self) -> Point:
        """Return the current iterate, without changing the run."""
        return iterate_of(self)

    def copy(self) -> Run:
        """Return a copy that can be continued without changing the original."""
        return copy_of(self)


class Tables(NamedTuple):
    """What all runs on one problem share: alias tables of the transitions and of the expert."""

    slot_buffer: FloatArray
    expert_buffer: FloatArray


class Constants(NamedTuple):
    """The constants of a step."""

    discount: float
    kind: int  # of the penalty's norm: L2 or L1 of `rlfd_gym.beliefs.near_prior`
    pull: float  # 2αn η, or αn η for ℓ1
    eta: float
    eta_value: float  # η / (1-γ)
    eta_mu: float  # n η_μ
    scale: float  # 1 / (1-γ)
    period: float  # steps between flushes


def slots_of(problem: RLfDProblem) -> FloatArray:
    """Build the alias tables of a problem's transitions."""
    return row_tables(problem.mdp.transitions).view(np.float64)


def tables_of(problem: RLfDProblem) -> Tables:
    """Build the alias tables of a problem."""
    return Tables(slots_of(problem), distribution_table(problem.expert).view(np.float64))


def constants_of(problem: Problem, etas: tuple[float, ...]) -> Constants:
    """Return the constants of a step for step sizes (η_cu, η_μ), or (η_w, η_u, η_μ) on a hull."""
    n, scale = problem.n_pairs, 1.0 / (1.0 - problem.discount)
    kind = getattr(problem.belief, "kind", L2)
    eta, eta_value, eta_mu = etas[0], etas[-2], etas[-1]
    return Constants(
        discount=problem.discount,
        kind=kind,
        pull=(2.0 * problem.alpha if kind == L2 else problem.alpha) * n * eta,
        eta=eta,
        eta_value=eta_value * scale,
        eta_mu=n * eta_mu,
        scale=scale,
        period=float(max(4 * n, 4096)),
    )


def start(problem: Problem, point: Point) -> Run:
    """Start a run at a point."""
    from rlfd_gym.solvers.smd.kernels import flush  # here, because that module imports this one

    # What does not change: each pair's state, prior and alias table (a simulator has none).
    pairs, states = aligned(problem.n_pairs, PAIR), aligned(problem.n_states, STATE)
    pairs["prior"], pairs["state"] = problem.prior, problem.pair_states
    pairs["row"], pairs["row_length"] = problem.row_starts[:-1], np.diff(problem.row_starts)
    # The iterate, with all sums empty.
    basis = problem.belief.basis if isinstance(problem.belief, Hull) else None
    pairs["x"] = point.x if basis is None else 0.0
    states["x"] = point.value
    pairs["x_sum"], pairs["mu_sum"], pairs["clock"], states["x_sum"] = 0.0, 0.0, 0.0, 0.0
    with np.errstate(divide="ignore"):
        pairs["log_weight"] = np.log(point.occupancy)
        mixture = None
        if basis is not None:
            logs = np.log(point.x)
            mixture = Mixture(basis, basis.T @ basis, logs - logs.max(), point.x.copy(), np.zeros(len(logs)))
    # The tree, which the first flush fills with the weights.
    levels, size = tree_shape(problem.n_pairs)
    tree = aligned(size * FAN, np.dtype("f8")).reshape(size, FAN)
    tree[:] = 0.0
    belief = problem.belief
    ends = np.column_stack([belief.low, belief.high]) if isinstance(belief, Intervals) else None
    run = Run(pairs.view(np.float64), states.view(np.float64), tree, levels, np.zeros(4), mixture, ends)
    flush(run.pairs, run.states, tree, levels, run.clock)
    run.clock[FLUSHES] = 0
    return run


def copy_of(run: Run) -> Run:
    """Return a copy that can be continued without changing the original."""
    pairs, states, tree, levels, clock, mixture, ends = run
    if mixture is not None:
        own = (mixture.log_weight.copy(), mixture.weight.copy(), mixture.weight_sum.copy())
        mixture = Mixture(mixture.basis, mixture.gram, *own)
    return Run(aligned_copy(pairs), aligned_copy(states), aligned_copy(tree), levels, clock.copy(), mixture, ends)


def average_of(run: Run) -> Point:
    """Return the averages over the steps made so far, without changing the run."""
    pairs, states, count = run.pairs, run.states, run.clock[TOTAL]
    steps, inverse_z = run.clock[R_STEPS], run.clock[INVERSE_Z]
    value = (states["x_sum"] + steps * states["x"]) / count
    occupancy = (pairs["mu_sum"] + run.weights * (inverse_z - pairs["clock"])) / count
    occupancy = occupancy / occupancy.sum()  # one up to rounding
    if run.mixture is not None:
        return Point(run.mixture.weight_sum / run.mixture.weight_sum.sum(), value, occupancy)
    return Point((pairs["x_sum"] + steps * pairs["x"]) / count, value, occupancy)


def iterate_of(run: Run) -> Point:
    """Return the current iterate, without changing the run."""
    x = run.pairs["x"] if run.mixture is None else run.mixture.weight
    return Point(x.copy(), run.states["x"].copy(), run.weights / run.weights.sum())


def aligned_copy(array: FloatArray) -> FloatArray:
    """Return a copy that begins on a cache line."""
    copy = aligned(array.size, array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
