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
* Value iteration (large problems) sweeps over the tables or solves for the greedy policy roughly,
  as `rlfd_gym.mdp.iteration` explains, and stops once the bounds are close enough and decide which
  actions are tied.
* Linear programming solves MDP-P of the paper with HiGHS. It is slow, and serves as an independent
  check.

Every method takes the lowest of the actions whose value is within the tolerance of the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym._errors import SolverError
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.iteration import Goal, Iterate, iterate
from rlfd_gym.mdp.occupancy import LU_STATES, occupancy_of, policy_of, solve_discounted, value_of
from rlfd_gym.mdp.pairs import dot

if TYPE_CHECKING:
    from rlfd_gym.mdp.tables import TabularMDP

METHODS = ("auto", "policy-iteration", "value-iteration", "linear-program")
VALUE_TOLERANCE = 1e-9  # promised, for costs up to one
TIE_TOLERANCE = 1e-10  # what choosing among near-equal actions may cost, for costs up to one


class _Scale(NamedTuple):
    """What tolerances are made of.

    Attributes:
        size: max|c|.
        tie: how close to the best an action must be to count as tied. The policy then loses at most
            `TIE_TOLERANCE` max(1, size).
        unit: a bound on the rounding error of an entry of q, for values up to one. Such an entry is
            a sum of as many products as the row has entries.
    """

    size: float
    tie: float
    unit: float


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
    if method == "value-iteration":
        scale = _scale_of(mdp, c)
        return _plan_of_iterate(mdp, _iterated(mdp, c, scale), scale)
    u = _policy_iteration(mdp, c) if method == "policy-iteration" else _linear_program(mdp, c)
    return _plan_of_value(mdp, c, u)


def optimal_actions(mdp: TabularMDP, cost: ArrayLike, tolerance: float = 0.0) -> FloatArray:
    """Return the policy that takes all optimal actions of each state with the same probability.

    `Plan.policy` takes the first of them. An action whose value is worse by up to `tolerance`, as
    under a cost that is known only so well, counts as optimal too.
    """
    c, plan = mdp.pairs(cost, "cost"), optimal(mdp, cost)
    q, best, _ = _bellman(mdp, c, plan.value)
    limit = best + max(_scale_of(mdp, c).tie, tolerance) + 2 * plan.value_error
    return policy_of(mdp, (q <= limit[mdp.pair_states]).astype(np.float64))


def _plan_of_value(mdp: TabularMDP, cost: FloatArray, u: FloatArray) -> Plan:
    """Return the plan of a near-optimal value u; its policy is greedy, with ties broken."""
    (q, best, delta), scale = _bellman(mdp, cost, u), _scale_of(mdp, cost)
    pairs = _first_within(mdp, q, best + scale.tie)
    return _plan_of_iterate(mdp, Iterate(u, best, pairs, delta.min(), delta.max()), scale)


def _plan_of_iterate(mdp: TabularMDP, at: Iterate, scale: _Scale) -> Plan:
    """Return the plan whose value and error are the middle and the width of MacQueen's bounds."""
    value, gain = _middle(mdp, at), mdp.discount / (1 - mdp.discount)
    rounding = scale.unit * max(scale.size, float(np.abs(at.u).max()))
    error = gain * (at.high - at.low) / 2 + rounding / (1 - mdp.discount)
    if error > VALUE_TOLERANCE * max(1.0, scale.size):
        warn(
            f"the optimal value is only known to within {error:.1e}, not {VALUE_TOLERANCE * max(1.0, scale.size):.0e}, "
            f"because the discount {mdp.discount} is so close to one",
            RuntimeWarning,
            stacklevel=4,
        )
    policy = np.zeros(mdp.n_pairs)
    policy[at.pairs] = 1.0
    value.flags.writeable = policy.flags.writeable = False
    return Plan(mdp, value, policy, dot(mdp.initial, value), float(error))


def _middle(mdp: TabularMDP, at: Iterate) -> FloatArray:
    """Return the middle of MacQueen's bounds on V*."""
    return np.asarray(at.best + mdp.discount / (1 - mdp.discount) * (at.high + at.low) / 2)


def _policy_iteration(mdp: TabularMDP, cost: FloatArray) -> FloatArray:
    """Return the value of an optimal policy, by Howard's policy iteration."""
    scale = _scale_of(mdp, cost)
    threshold = max(scale.tie / 4, 2 * scale.unit * scale.size)
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


def value_iteration(
    mdp: TabularMDP,
    cost: FloatArray,
    tolerance: float,
    start: FloatArray | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[FloatArray, IntArray]:
    """Return V* to within `tolerance`, and the pairs that a policy takes which is as good to within twice that.

    It begins at a value `start`, finite and about the size of the costs, and ends early once `stop` returns True.
    """
    gain, scale = mdp.discount / (1 - mdp.discount), _scale_of(mdp, cost)
    span = max(2 * tolerance / gain, 2 * scale.unit * scale.size)
    at = iterate(mdp, cost, Goal(span, span, scale.tie), start, stop)
    return _middle(mdp, at), at.pairs


def _iterated(mdp: TabularMDP, cost: FloatArray, scale: _Scale) -> Iterate:
    """Return the end of value iteration with the promised accuracy, and with ties settled."""
    gain, rounding = mdp.discount / (1 - mdp.discount), scale.unit * scale.size
    fine = max(scale.tie / 4 / gain, 2 * rounding)
    promised = VALUE_TOLERANCE * max(1.0, scale.size)
    return iterate(mdp, cost, Goal(max(1.8 * promised / gain - 4 * rounding / mdp.discount, fine), fine, scale.tie))


def _linear_program(mdp: TabularMDP, cost: FloatArray) -> FloatArray:
    """Return the value of the policy that solves MDP-P: min <μ, c> over μ ≥ 0 with Tγ μ = ν₀.

    An optimal policy is optimal from every start, so ν₀ may be taken uniform here, which makes the
    program visit every state.
    """
    from scipy.optimize import linprog  # slow to load

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


def _scale_of(mdp: TabularMDP, cost: FloatArray) -> _Scale:
    """Return what the sizes of a cost and of the rows of the tables mean for tolerances."""
    size = float(np.abs(cost).max())
    terms = int(np.diff(mdp.transitions.indptr).max()) + 3
    return _Scale(size, TIE_TOLERANCE * (1 - mdp.discount) * max(1.0, size), terms * float(np.finfo(float).eps))
