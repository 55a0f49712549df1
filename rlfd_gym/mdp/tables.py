"""The tables of a finite Markov decision process, over its feasible state-action pairs.

The notation is that of the paper's section 2. States are 0..n_states-1, and state s offers the
actions A(s). A *pair* is a feasible (s, a); pairs are ordered by state, then action, and an
infeasible action has no pair. Costs, occupancies and policies are vectors over pairs, values are
vectors over states:

* transitions  P[i, s'] = P(s' | s, a) for the pair i = (s, a), a sparse (n_pairs, n_states)
               matrix;
* initial      ν₀, the distribution of the first state;
* discount     γ in (0, 1);
* value        V(s) = (1-γ) E[ Σ_t γᵗ c(s_t, a_t) | s_0 = s ], normalised: it stays within the
               range of c;
* occupancy    μ(s, a) = (1-γ) Σ_t γᵗ P(s_t = s, a_t = a), which sums to one;
* flow         Tγ μ = (B μ - γ Pᵀ μ) / (1-γ), with B μ the mass in each state. μ ≥ 0 is the
               occupancy of some policy exactly if Tγ μ = ν₀.

This module imports neither Gymnasium nor torch nor imitation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp import forward
from rlfd_gym.mdp import occupancy as _occupancy
from rlfd_gym.mdp.pairs import Pairs, dot, numbered_pairs


@dataclass(frozen=True, eq=False)
class TabularMDP(Pairs):
    """A finite MDP without a cost: its transitions, its initial distribution and its discount.

    It is immutable: its arrays are copies that cannot be written to. It is usually made with
    `from_env` or `from_dense`.

    Args:
        transitions: P, sparse or dense, of shape (n_pairs, n_states); every row sums to one up to
            1e-6, and entries down to -1e-12 count as zeros with rounding.
        pair_states: the state of each pair, ascending; every state has at least one pair.
        pair_actions: the action of each pair, ascending within a state.
        initial: ν₀, over states. `None` means uniform.
        discount: γ, strictly between 0 and 1.
        n_actions: the size of the action space, if larger than the largest feasible action plus
            one.

    Attributes:
        transitions: P, sparse, (n_pairs, n_states).
        initial: ν₀, over states.
        discount: γ.

    Example:
        There are two states. In state 0 one may stay (action 0) or move (action 1); state 1 is
        never left.

        >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
        >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
        >>> plan = mdp.optimal(cost=[0.0, 1.0, -1.0])   # moving costs 1 once, then earns 1 forever
        >>> plan.policy.tolist(), plan.value.tolist()
        ([1.0, 0.0, 1.0], [0.0, -1.0])
        >>> mdp.optimal(cost=[0.5, 1.0, -1.0]).policy.tolist()
        [0.0, 1.0, 1.0]
    """

    transitions: sp.csr_array = field(repr=False)
    initial: FloatArray = field(repr=False)
    discount: float

    def __init__(
        self,
        transitions: Any,
        pair_states: ArrayLike,
        pair_actions: ArrayLike,
        initial: ArrayLike | None,
        discount: float,
        n_actions: int | None = None,
    ) -> None:
        """Check and copy the tables."""
        matrix = _transition_matrix(transitions)
        n_pairs, n_states = matrix.shape
        states = _checks.integers("pair_states", pair_states).copy()
        actions = _checks.integers("pair_actions", pair_actions).copy()
        for name, array in (("pair_states", states), ("pair_actions", actions)):
            if array.shape != (n_pairs,):
                raise ValueError(
                    f"{name} has shape {array.shape}, expected ({n_pairs},): one entry per row of transitions"
                )
        least = int(actions.max()) + 1
        if n_actions is None:
            n_actions = least
        elif _checks.integer("n_actions", n_actions, 1, _checks.MOST_STATES) < least:
            raise ValueError(f"n_actions is {n_actions}, but pair_actions holds action {least - 1}")
        starts = numbered_pairs(states, actions, n_states, n_actions)
        if initial is None:
            start = np.full(n_states, 1.0 / n_states)
        else:
            start = _checks.distribution("initial", initial, n_states, "state (mdp.n_states)").copy()

        self._fill(
            transitions=matrix,
            pair_states=states,
            pair_actions=actions,
            initial=start,
            discount=_checks.discount_factor(discount),
            n_actions=int(n_actions),
            n_states=n_states,
            state_starts=starts,
        )

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the fields, after checking the tables as if they came from the user."""
        matrix = state["transitions"]
        check_csr("transitions", matrix)
        _row_sums(matrix)
        starts = numbered_pairs(*(state[name] for name in ("pair_states", "pair_actions", "n_states", "n_actions")))
        if matrix.shape != (len(state["pair_states"]), state["n_states"]) or not np.array_equal(
            starts, state["state_starts"]
        ):
            raise ValueError(f"transitions has shape {matrix.shape}, which does not fit the pairs stored with it")
        super().__setstate__(state)

    @classmethod
    def from_dense(
        cls,
        P: Any,
        initial: ArrayLike | None = None,
        *,
        discount: float,
        feasible: ArrayLike | None = None,
        layout: str = "sas",
    ) -> TabularMDP:
        """Make the MDP of a dense array, `P[s, a, s']` or, with `layout="ass"`, `P[a, s, s']`.

        The second is pymdptoolbox's, which may also be a list of one sparse matrix per action.
        `feasible[s, a]` says which actions exist (default: all); rows of infeasible pairs are
        ignored. `rlfd_gym.mdp.model_of_arrays` takes rewards too.

        >>> P = np.array([[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [np.nan, np.nan]]])
        >>> TabularMDP.from_dense(P, discount=0.9, feasible=[[True, True], [True, False]]).n_pairs
        3
        """
        from rlfd_gym.mdp import arrays  # here, because it imports this module

        return arrays.mdp_of_dense(P, initial, discount, feasible, layout)

    @classmethod
    def from_quantecon(cls, ddp: Any, initial: ArrayLike | None = None) -> TabularMDP:
        """Read the MDP of QuantEcon's `DiscreteDP`, of either form, with its `beta`.

        `initial` is ν₀, which a `DiscreteDP` does not have (default: uniform).
        `rlfd_gym.mdp.model_of_quantecon` returns the cost as well, with an example.
        """
        from rlfd_gym.mdp import arrays  # here, because it imports this module

        return arrays.model_of_quantecon(ddp, initial)[0]

    @classmethod
    def from_env(cls, env: Any, *, discount: float | None = None, initial: ArrayLike | None = None) -> TabularMDP:
        """Read the MDP of a tabular environment, which may be wrapped or vectorised.

        Supported are rlfd_gym's environments, Gymnasium's toy_text environments (through their
        `P`: FrozenLake, CliffWalking, Taxi) and seals' tabular models. `discount` and `initial`
        default to the environment's own, and `discount` to 0.99 if the environment has none. See
        `rlfd_gym.mdp.adapters`.

        >>> import gymnasium as gym
        >>> TabularMDP.from_env(gym.make("FrozenLake-v1"), discount=0.95).n_pairs
        64
        """
        from rlfd_gym.mdp import adapters  # here, because it imports this module

        return adapters.model_of_env(env, discount=discount, initial=initial)[0]

    @classmethod
    def from_transitions(
        cls,
        *transitions: Any,
        discount: float,
        smoothing: float = 0.0,
        unvisited: str = "infeasible",
        initial: ArrayLike | None = None,
        **columns: Any,
    ) -> TabularMDP:
        """Estimate the MDP from logged transitions, if there is no simulator.

        The log may be three arrays (states, actions, next states), imitation's trajectories or
        transitions, a DataFrame, or the path of a CSV or parquet file, whose columns are named by
        `state=`, `action=`, `next_state=`, `episode=` and `time=`. P is estimated by counts plus
        `smoothing`; `unvisited` says what to do with pairs that are not in the log. A warning
        reports bad rows. `rlfd_gym.read_log` explains the details; in addition to this MDP it
        returns the labels of the states and actions, the expert's occupancy and the full report.

        >>> states, actions, next_states = [0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 1, 1]
        >>> mdp = TabularMDP.from_transitions(states, actions, next_states, discount=0.9)
        >>> mdp.transitions.toarray().tolist()      # the pairs (0, 0), (0, 1) and (1, 0)
        [[0.5, 0.5], [0.0, 1.0], [0.0, 1.0]]
        """
        from rlfd_gym.experts.logs.reading import read_log  # here, because it imports this module

        if len(transitions) not in (1, 3):
            raise TypeError(f"expected one log or three arrays (states, actions, next states), got {len(transitions)}")
        log = transitions if len(transitions) == 3 else transitions[0]
        options = {"smoothing": smoothing, "unvisited": unvisited, "initial": initial, **columns}
        return read_log(log, discount=discount, **options).mdp

    def flow(self, occupancy: ArrayLike) -> FloatArray:
        """Return Tγ μ, a vector over states.

        It equals `initial` exactly if μ is the occupancy of a policy.
        """
        return _occupancy.flow_of(self, self.pairs(occupancy, "occupancy"))

    def flow_transpose(self, value: ArrayLike) -> FloatArray:
        """Return Tγᵀ u, the cost over pairs under which u is the value of every policy."""
        return _occupancy.cost_of_value(
            self, _checks.finite_vector("value", value, self.n_states, "state (mdp.n_states)")
        )

    def flow_matrix(self) -> sp.csr_array:
        """Return Tγ as a sparse (n_states, n_pairs) matrix, for linear and quadratic programs."""
        ones = np.ones(self.n_pairs)
        b = sp.csr_array((ones, np.arange(self.n_pairs), self.state_starts), shape=(self.n_states, self.n_pairs))
        return sp.csr_array((b - self.discount * self.transitions.T) / (1 - self.discount))

    def horizon(self, tail: float = 1e-4) -> int:
        """Return the smallest T with γ^T < tail.

        After T steps less than `tail` of the discounted mass is left.

        >>> TabularMDP([[1.0]], [0], [0], initial=None, discount=0.5).horizon(0.25)
        3
        """
        share = _checks.number("tail", tail, 0.0, 1.0, open_ends=True)
        return math.floor(math.log(share) / math.log(self.discount)) + 1

    def optimal(self, cost: ArrayLike, *, method: str = "auto") -> forward.Plan:
        """Return an optimal policy for `cost`, with its value, occupancy and expected cost.

        The methods are explained in `rlfd_gym.mdp.forward`.
        """
        return forward.optimal(self, cost, method=method)

    def occupancy_of(self, policy: ArrayLike) -> FloatArray:
        """Return the occupancy μ of a policy.

        It is the solution of Tγ μ = ν₀ that divides each state's mass as the policy does.
        """
        return _occupancy.occupancy_of(self, policy)

    def policy_of(self, occupancy: ArrayLike) -> FloatArray:
        """Return π(a|s) = μ(s, a) / Σ_b μ(s, b), uniform over A(s) if state s has no mass."""
        return _occupancy.policy_of(self, occupancy)

    def value_of(self, policy: ArrayLike, cost: ArrayLike) -> FloatArray:
        """Return the normalised value of a policy under `cost`, from each state."""
        return _occupancy.value_of(self, policy, cost)

    def expected_cost(self, policy: ArrayLike, cost: ArrayLike) -> float:
        """Return ρ_c(π) = <ν₀, V> = <μ, c>, the normalised discounted cost of a policy."""
        return dot(self.initial, self.value_of(policy, cost))


def check_csr(name: str, matrix: Any) -> None:
    """Check that a CSR matrix is one: compiled code follows its indices without looking."""
    shape, indices, starts = matrix.shape, matrix.indices, matrix.indptr
    for part, array in (("indices", indices), ("indptr", starts)):
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{name}.{part} must be a vector of integers, got {array.dtype} of shape {array.shape}")
    if len(shape) != 2 or starts.shape != (shape[0] + 1,):
        raise ValueError(f"{name}.indptr has shape {starts.shape}, expected one entry per row and one more: {shape}")
    if matrix.data.shape != indices.shape or starts[0] != 0 or starts[-1] != indices.size:
        raise ValueError(
            f"{name}.indptr must go from 0 to the {indices.size} entries of indices, one for each of data; it goes "
            f"from {starts[0]} to {starts[-1]}, and data has shape {matrix.data.shape}"
        )
    if (starts[1:] < starts[:-1]).any():
        raise ValueError(f"{name}.indptr must not decrease; row {int(np.argmax(starts[1:] < starts[:-1]))} ends early")
    if indices.size and (indices.min() < 0 or indices.max() >= shape[1]):
        bad = np.flatnonzero((indices < 0) | (indices >= shape[1]))
        row = int(np.searchsorted(starts, bad[0], side="right")) - 1
        raise ValueError(
            f"{name}: row {row} leads to state {indices[bad[0]]}, but its columns are 0..{shape[1] - 1} "
            f"({bad.size} such entries)"
        )


def _transition_matrix(transitions: Any) -> sp.csr_array:
    """Return a checked copy of P in canonical CSR form."""
    if sp.issparse(transitions):
        if transitions.dtype.kind not in "iuf":
            raise TypeError(f"transitions must hold numbers, got a matrix of {transitions.dtype}")
        _check_before_conversion(transitions)
    else:
        transitions = _checks.numbers("transitions", transitions)
    if len(transitions.shape) != 2 or 0 in transitions.shape:
        raise ValueError(f"transitions has shape {transitions.shape}, expected (n_pairs, n_states), both at least 1")
    try:
        matrix = sp.csr_array(transitions, dtype=np.float64, copy=True)
    except (TypeError, ValueError, IndexError) as error:
        raise TypeError(f"transitions must be a (n_pairs, n_states) matrix, dense or sparse: {error}") from None
    check_csr("transitions", matrix)
    matrix.sum_duplicates()
    if not (matrix.data <= _checks.LARGEST).all():
        raise ValueError(f"transitions must be finite and no more than one, but it holds {matrix.data.max()}")
    if matrix.data.size and matrix.data.min() < 0:
        if matrix.data.min() < -_checks.ROUNDING:
            raise ValueError(f"transitions must not be negative, but it holds {matrix.data.min()}")
        np.maximum(matrix.data, 0.0, out=matrix.data)
    matrix.eliminate_zeros()
    matrix.data /= np.repeat(_row_sums(matrix), np.diff(matrix.indptr))
    return matrix


def _check_before_conversion(matrix: Any) -> None:
    """Check the indices that SciPy follows without looking when it converts a matrix to CSR."""
    if matrix.format == "csr":
        check_csr("transitions", matrix)
    try:
        if matrix.format in ("csc", "bsr"):
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            sp.coo_array((matrix.data, (matrix.row, matrix.col)), shape=matrix.shape)
    except (TypeError, ValueError) as error:
        raise ValueError(f"transitions is a broken {matrix.format} matrix: {error}") from None


def _row_sums(matrix: sp.csr_array) -> FloatArray:
    """Return the sums of the rows, each of which must be one up to `SUM_TOLERANCE`."""
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1)
    worst = int(np.argmax(off))
    if not off[worst] <= _checks.SUM_TOLERANCE:
        raise ValueError(f"transitions: the probabilities of row {worst} must sum to 1, but they sum to {sums[worst]}")
    return sums
