"""The forward problem: the policy of least expected cost, with a proof of how exact its value is.

For a cost c the Bellman operator, in the normalisation of the paper, is

    (L u)(s) = min over a in A(s) of  (1-γ) c(s, a) + γ Σ_s' P(s'|s, a) u(s').

MacQueen's bounds hold for every u: with δ = L u - u,

    L u + γ/(1-γ) min δ  ≤  V*  ≤  V^π  ≤  L u + γ/(1-γ) max δ,      π greedy for u,

so the middle of the two bounds is within γ/(1-γ) · (max δ - min δ)/2 of the optimal value V*.
`Plan.value_error` is this number, plus what rounding may have added to δ. It is at most 1e-9,
relative to max|c| if that exceeds one, unless the discount is so close to one that double
precision does not suffice; then a warning says so.

* Policy iteration (small problems) evaluates by a sparse solve and improves only beyond a
  tolerance, so that ties cannot cycle.
* Value iteration (large problems) works in rounds. A round computes L u, which gives the bounds,
  and then either a Gauss-Seidel pass of L (fast if costs travel along paths, as on a grid) or
  `SWEEPS` evaluations of the greedy policy, as in modified policy iteration (fast if the chain
  mixes: the span of δ then shrinks faster than γ). It chooses the one that has recently shrunk the
  span most for its work, and stops once the span of δ is small enough.
* Linear programming solves MDP-P of the paper with HiGHS. It is slow, and serves as an independent
  check.

Every method takes the lowest of the actions whose value is within the tolerance of the best.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._errors import SolverError
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.occupancy import LU_STATES, occupancy_of, policy_of, solve_discounted, value_of

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

METHODS = ("auto", "policy-iteration", "value-iteration", "linear-program")
SWEEPS = 10
# Rounds of value iteration without progress: only rounding or a discount near one can cause these.
PATIENCE = 1000
VALUE_TOLERANCE = 1e-9  # promised, for costs up to one
TIE_TOLERANCE = 1e-10  # what choosing among near-equal actions may cost, for costs up to one


@dataclass(frozen=True, eq=False)
class Plan:
    """An optimal policy with its value, its expected cost and its occupancy.

    Attributes:
        mdp: the MDP that the plan is for.
        value: V*, over states, up to `value_error`.
        policy: a deterministic optimal policy, over pairs.
        expected_cost: ρ* = <ν₀, V*>.
        value_error: a proven bound on max_s |value(s) - V*(s)|.
        occupancy: the occupancy of `policy`, over pairs; computed on first use.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> env = examples.inventory_env()
        >>> plan = env.mdp.optimal(env.cost)
        >>> plan.value_error < 1e-9, bool(np.isclose(plan.occupancy @ env.cost, plan.expected_cost))
        (True, True)
    """

    mdp: TabularMDP
    value: FloatArray = field(repr=False)
    policy: FloatArray = field(repr=False)
    expected_cost: float
    value_error: float

    @cached_property
    def occupancy(self) -> FloatArray:
        """The occupancy of `policy`, over pairs; computed on first use."""
        return occupancy_of(self.mdp, self.policy)


def optimal(mdp: TabularMDP, cost: ArrayLike, *, method: str = "auto") -> Plan:
    """Return an optimal plan for `cost`, computed by one of `METHODS`."""
    c = mdp.pairs(cost, "cost")
    _checks.one_of("method", method, METHODS)
    if method == "auto":
        method = "policy-iteration" if mdp.n_states <= LU_STATES else "value-iteration"
    solve = {
        "policy-iteration": _policy_iteration,
        "value-iteration": value_iteration,
        "linear-program": _linear_program,
    }[method]
    return _certified_plan(mdp, c, solve(mdp, c))


def optimal_actions(mdp: TabularMDP, cost: ArrayLike, tolerance: float = 0.0) -> FloatArray:
    """Return the policy that takes all optimal actions of each state with the same probability.

    `Plan.policy` takes the first of them. An action whose value is worse by up to `tolerance`, as
    under a cost that is known only so well, counts as optimal too.
    """
    c, plan = mdp.pairs(cost, "cost"), optimal(mdp, cost)
    q, best, _ = _bellman(mdp, c, plan.value)
    limit = best + max(_tie_tolerance(mdp, c), tolerance) + 2 * plan.value_error
    return policy_of(mdp, (q <= limit[mdp.pair_states]).astype(np.float64))


def _certified_plan(mdp: TabularMDP, cost: FloatArray, u: FloatArray) -> Plan:
    """Return the plan of a near-optimal value u.

    MacQueen's bounds give its value and error; its policy is greedy, with ties broken.
    """
    value, error, q, best = _bounded_value(mdp, cost, u)
    scale = max(1.0, float(np.abs(cost).max()))
    if error > VALUE_TOLERANCE * scale:
        warn(
            f"the optimal value is only known to within {error:.1e}, not {VALUE_TOLERANCE * scale:.0e}, "
            f"because the discount {mdp.discount} is so close to one",
            RuntimeWarning,
            stacklevel=4,
        )
    policy = np.zeros(mdp.n_pairs)
    policy[_first_within(mdp, q, best + _tie_tolerance(mdp, cost))] = 1.0
    value.flags.writeable = policy.flags.writeable = False
    return Plan(mdp, value, policy, float(mdp.initial @ value), error)


def _bounded_value(
    mdp: TabularMDP, cost: FloatArray, u: FloatArray
) -> tuple[FloatArray, float, FloatArray, FloatArray]:
    """Return (V, error, q, L u).

    V is the middle of MacQueen's bounds on V*, and `error` bounds its distance from V*.
    """
    q, best, delta = _bellman(mdp, cost, u)
    gain = mdp.discount / (1 - mdp.discount)
    value = best + gain * (delta.max() + delta.min()) / 2
    error = gain * (delta.max() - delta.min()) / 2 + _rounding(mdp, cost, u) / (1 - mdp.discount)
    return value, float(error), q, best


def _policy_iteration(mdp: TabularMDP, cost: FloatArray) -> FloatArray:
    """Return the value of an optimal policy, by Howard's policy iteration."""
    threshold = max(_tie_tolerance(mdp, cost) / 4, 2 * _rounding(mdp, cost, cost))
    pairs = _first_within(mdp, cost, mdp.min_by_state(cost))
    total = np.inf
    while True:
        stage = (1 - mdp.discount) * cost[pairs]
        value = solve_discounted(mdp.transitions[pairs], stage, mdp.discount, norm=np.inf)
        q, best, _ = _bellman(mdp, cost, value)
        better = q[pairs] - best > threshold
        # An improvement lowers the value somewhere and raises it nowhere. Stop once rounding hides
        # this.
        if not better.any() or value.sum() >= total:
            return value
        total = value.sum()
        pairs = np.where(better, _first_within(mdp, q, best), pairs)


def value_iteration(mdp: TabularMDP, cost: FloatArray, tolerance: float | None = None) -> FloatArray:
    """Return V* to within `tolerance`.

    The default meets the promised accuracy and is small enough to recognise ties.
    """
    from rlfd_gym.mdp import _sweeps  # compiled: loaded only for problems that need it

    p, discount = mdp.transitions, mdp.discount
    gain = discount / (1 - discount)
    target = max(tolerance or _tie_tolerance(mdp, cost) / 4, 2 * _rounding(mdp, cost, cost) * gain)
    stage = (1 - discount) * cost
    u = mdp.min_by_state(cost)
    best, pairs = np.empty_like(u), np.empty(mdp.n_states, dtype=np.int64)
    # `work` is that of a round, in units of one Bellman sweep. `speed` is what the last such round
    # has gained: e-folds of the span per unit of work.
    work = {"improve": 3.0, "evaluate": 1.0 + SWEEPS * mdp.n_states / mdp.n_pairs}
    speed = dict.fromkeys(work, np.inf)
    kind, span, turn = "improve", np.inf, 0
    least, stalled = np.inf, 0
    while True:
        # A Bellman sweep gives the bounds. Stop once they are close, or after many rounds without
        # progress.
        low, high = _sweeps.bellman(p.data, p.indices, p.indptr, mdp.state_starts, stage, discount, u, best, pairs)
        stalled = 0 if high - low < 0.999 * least else stalled + 1
        least = min(least, high - low)
        if gain * (high - low) <= target or stalled > PATIENCE:
            return np.asarray(best + gain * (high + low) / 2)
        if turn > 1:
            speed[kind] = np.log(span / (high - low)) / work[kind]
        span, turn = high - low, turn + 1
        # MacQueen's bounds allow this shift: u stays on its side of V*.
        best += gain * max(low, 0.0) + gain * min(high, 0.0)
        u, best = best, u
        # Continue with the pass that has recently shrunk the span most for its work.
        kind = max(speed, key=lambda name: speed[name])
        if turn % 10 == 0:
            kind = min(speed, key=lambda name: speed[name])  # it may be faster by now
        if kind == "improve":
            _sweeps.improve(p.data, p.indices, p.indptr, mdp.state_starts, stage, discount, u)
        else:
            u = _sweeps.evaluate(p.data, p.indices, p.indptr, pairs, stage, discount, u, SWEEPS)


def _linear_program(mdp: TabularMDP, cost: FloatArray) -> FloatArray:
    """Return the value of the policy that solves MDP-P: min <μ, c> over μ ≥ 0 with Tγ μ = ν₀.

    An optimal policy is optimal from every start, so ν₀ may be taken uniform here, which makes the
    program visit every state.
    """
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    scaled = cost / max(1.0, float(np.abs(cost).max()))
    start = np.full(mdp.n_states, 1.0 / mdp.n_states)
    result = linprog(scaled, A_eq=mdp.flow_matrix(), b_eq=start, bounds=(0, None), method="highs", options=options)
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of the MDP: {result.message}")
    return value_of(mdp, policy_of(mdp, np.maximum(result.x, 0.0)), cost)


def _bellman(mdp: TabularMDP, cost: FloatArray, u: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (q, L u, L u - u), where q is the cost of each pair if u is the value after it."""
    q = (1 - mdp.discount) * cost + mdp.discount * (mdp.transitions @ u)
    best = mdp.min_by_state(q)
    return q, best, best - u


def _first_within(mdp: TabularMDP, q: FloatArray, limit: FloatArray) -> IntArray:
    """Return the first pair of each state whose q is at most the state's limit."""
    hits = np.flatnonzero(q <= limit[mdp.pair_states])
    return hits[np.searchsorted(hits, mdp.state_starts[:-1])]


def _tie_tolerance(mdp: TabularMDP, cost: FloatArray) -> float:
    """Return how close to the best an action must be to count as tied.

    The policy then loses at most `TIE_TOLERANCE` max(1, max|c|).
    """
    return TIE_TOLERANCE * (1 - mdp.discount) * max(1.0, float(np.abs(cost).max()))


def _rounding(mdp: TabularMDP, cost: FloatArray, u: FloatArray) -> float:
    """Return a bound on the rounding error of an entry of q.

    Such an entry is a sum of as many products as the row has entries.
    """
    terms = int(np.diff(mdp.transitions.indptr).max()) + 3
    return float(terms * np.finfo(float).eps * max(np.abs(cost).max(), np.abs(u).max()))
