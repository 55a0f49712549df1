"""What the proximal variant of Algorithm 1 keeps of a run: records for pairs and states, a tree, a clock.

As in `rlfd_gym.solvers.smd.records`, a run is a handful of plain arrays, which the kernels change in
place, and is its own checkpoint. What the lazily kept sums mean is explained in
`rlfd_gym.solvers.smd.proximal`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._compiled import aligned
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import Point, Problem
from rlfd_gym.solvers.smd.intrinsics import FAN
from rlfd_gym.solvers.smd.lazy import Powers, powers_of
from rlfd_gym.solvers.smd.records import aligned_copy
from rlfd_gym.solvers.smd.tree import tree_shape

DRAWS = 4  # uniforms per step, and sampled indices
VISITED, VISITED_NEXT, TRIED, TRIED_NEXT = range(DRAWS)  # j, s', k, s'_k

PAIR = np.dtype(
    [
        ("x", "f8"),  # the cost, after `since` steps
        ("x_sum", "f8"),  # over the steps before
        ("anchor", "f8"),  # τ for the ℓ2 penalty, otherwise the prior
        ("log_weight", "f8"),
        ("mu_sum", "f8"),
        ("clock", "f8"),  # A when mu_sum was last brought up to date
        ("row", "u4"),  # first slot of this pair's alias table
        ("since", "u4"),  # steps between the last flush and x
        ("state", "i4"),
        ("row_length", "i4"),
    ]
)
STATE = np.dtype([("x", "f8"), ("x_sum", "f8"), ("flow", "f8"), ("since", "i8")])  # of the value; flow is b
R_STEPS, INVERSE_Z, FLUSHES, TOTAL = range(4)  # entries of ProximalRun.clock
LINEAR = 1e-150  # a penalty below this weight is none: its multiples would overflow


class Step(NamedTuple):
    """The constants of a step."""

    discount: float
    scale: float  # 1 / (1-γ)
    eta: float
    eta_value: float
    eta_mu: float  # n η_μ
    period: int  # steps between flushes
    powers: Powers


class ProximalRun(NamedTuple):
    """One run's iterate and lazy sums; the kernels change it in place."""

    pair_buffer: FloatArray  # n records PAIR
    state_buffer: FloatArray  # S records STATE
    tree: FloatArray  # (nodes, FAN): one level after the other, the weights first
    levels: IntArray  # the first node of each level
    clock: FloatArray  # steps and A since the last flush; flushes and steps so far
    step: Step
    slopes: FloatArray | None  # (n, 2); None for the ℓ2 penalty
    ends: FloatArray  # (n, 2), the interval of each pair's cost; or (1, 2), that of all

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
        return _settled(self)[0]

    def iterate(self) -> Point:
        """Return the current iterate, without changing the run."""
        return _settled(self)[1]

    def copy(self) -> ProximalRun:
        """Return a copy that can be continued without changing the original."""
        pairs, states, tree = (aligned_copy(array) for array in (self.pair_buffer, self.state_buffer, self.tree))
        return ProximalRun(pairs, states, tree, self.levels, self.clock.copy(), self.step, self.slopes, self.ends)

    def with_step(self, step: Step) -> ProximalRun:
        """Return a copy that continues with other step sizes; the same ones change nothing."""
        own = self.copy()
        if step[:6] == self.step[:6]:
            return own
        from rlfd_gym.solvers.smd.proximal import flush  # here, because that module imports this one

        flush(own)
        return own._replace(step=step)


def step_of(problem: Problem, etas: tuple[float, ...]) -> Step:
    """Return the constants of a step for the step sizes (η_c, η_u, η_μ)."""
    n, (eta, eta_value, eta_mu) = problem.n_pairs, etas
    period = max(4 * n, 4096)
    kappa = 2.0 * problem.alpha * eta if is_quadratic(problem) else 0.0
    powers = powers_of(kappa, period)
    return Step(problem.discount, 1.0 / (1.0 - problem.discount), eta, eta_value, n * eta_mu, period, powers)


def is_quadratic(problem: Problem) -> bool:
    """Return whether the penalty is α‖c - ĉ‖² with an α that is not negligible."""
    return problem.regulariser == "l2" and problem.alpha > LINEAR


def start(problem: Problem, point: Point, step: Step, expert: FloatArray, flow: FloatArray) -> ProximalRun:
    """Start a run at a point, for an expert's occupancy μ_E with the flow b = Tγ μ_E."""
    from rlfd_gym.solvers.smd.proximal import flush  # here, because that module imports this one

    belief: Any = problem.belief
    pairs, states = aligned(problem.n_pairs, PAIR), aligned(problem.n_states, STATE)
    if problem.row_starts[-1] > np.iinfo(np.uint32).max:
        raise ValueError('problem has more than 2**32 transitions; use variant="paper"')
    pairs["state"], pairs["row"] = problem.pair_states, problem.row_starts[:-1]
    pairs["row_length"] = np.diff(problem.row_starts)
    slopes = None
    if is_quadratic(problem):
        pairs["anchor"] = belief.prior - expert / (2.0 * belief.alpha)
    else:
        pairs["anchor"] = belief.prior
        weight = getattr(belief, "pair_alpha", 0.0) if problem.regulariser == "l1" else 0.0
        slopes = np.column_stack([expert + weight, expert - weight])
    ends = np.column_stack([belief.low, belief.high]) if isinstance(belief, Intervals) else np.array([[-1.0, 1.0]])
    # The iterate, with all sums empty.
    pairs["x"], states["x"], states["flow"] = point.x, point.value, flow
    for records in (pairs, states):
        records["x_sum"], records["since"] = 0.0, 0
    pairs["mu_sum"], pairs["clock"] = 0.0, 0.0
    with np.errstate(divide="ignore"):
        pairs["log_weight"] = np.log(point.occupancy)
    levels, size = tree_shape(problem.n_pairs)
    tree = aligned(size * FAN, np.dtype("f8")).reshape(size, FAN)
    tree[:] = 0.0
    run = ProximalRun(pairs.view(np.float64), states.view(np.float64), tree, levels, np.zeros(4), step, slopes, ends)
    flush(run)
    run.clock[FLUSHES] = 0
    return run


def _settled(run: ProximalRun) -> tuple[Point, Point]:
    """Return the averages over the steps so far, and the current iterate, without changing the run."""
    from rlfd_gym.solvers.smd.proximal import flush  # here, because that module imports this one

    own, count = run.copy(), run.clock[TOTAL]
    weights = own.weights / own.weights.sum()
    flush(own)
    pairs, states = own.pairs, own.states
    last = Point(pairs["x"].copy(), states["x"].copy(), weights)
    if count == 0:
        return last, last
    cost, value = (
        np.clip(pairs["x_sum"] / count, run.ends[:, 0], run.ends[:, 1]),
        np.clip(states["x_sum"] / count, -1.0, 1.0),
    )
    return Point(cost, value, pairs["mu_sum"] / pairs["mu_sum"].sum()), last
