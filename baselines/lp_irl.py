"""LP-IRL: the state cost that sets the expert's actions apart most clearly, by a linear program.

In each state, the expert's deterministic policy π takes the action that the expert is most often
seen to take (in a tie, the lowest). The state costs |c(s)| ≤ 1 have the values
V = (1-γ)c + γP_πV. In the paper's rewards R = -c and values V/(1-γ), the program is

    max over c   Σ_s min over a ≠ π(s) of (P_a - P_π)(s)·V/(1-γ)  -  λ‖c‖₁
    subject to   (P_a - P_π)(s)·V ≥ 0   for every a.

So the expert's action is optimal, and better than the second best by as much as possible, and
costs are zero where they need not be otherwise. Constant costs are always feasible, and if λ is
too large, only c = 0 is left.

**States that the expert never visits** say nothing about π, which the paper takes as known
everywhere. There any action may be the best one, and the program only knows V ≤ (1-γ)c + γP_aV for
all a, so that V ≤ V*. If the visited states are closed under π, which they are for the occupancy
of a policy, V is the expert's value there. Then V ≤ V* ≤ V^π = V: the expert is optimal whatever
it would do elsewhere. With few demonstrations, π may lead to where no demonstration went. Then
`stats["regret"]`, measured by a forward solve, says by how much the expert's policy may fail to be
optimal. Values lie in [-1, 1] as costs do. This is a constraint of the program, because otherwise
V could fall without end where π leaves what was seen.

Ng and Russell, "Algorithms for inverse reinforcement learning", ICML 2000, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym._programs import solve_lp
from rlfd_gym.baselines._expert import seen_expert
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.solution import Solution


def lp_irl(mdp: TabularMDP, expert: Any, *, penalty: float = 0.1) -> Solution:
    """Learn a state cost under which the expert's most frequent actions are optimal, by HiGHS.

    Args:
        mdp: the environment's tables.
        expert: the expert's occupancy over pairs, or demonstrations.
        penalty: λ, the margin that a unit of cost must gain to be worth it.

    Returns:
        A solution whose policy takes the expert's most frequent action in the states it visited,
        and is optimal for the learned cost in the others. `stats` has `"margin"`, the first sum of
        the module's docstring, and `"regret"`.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/WindyGridworld-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost).occupancy
        >>> solution = lp_irl(env.mdp, expert=expert)
        >>> solution.stats["regret"] < 1e-9, solution.stats["margin"] > 1
        (True, True)
    """
    mu_e, visited = seen_expert(mdp, expert)
    weight = _checks.number("penalty", penalty, 0.0)
    gamma, n = mdp.discount, mdp.n_states
    pi = mdp.pair_index(np.arange(n), mdp.likely_actions(mu_e))  # the pair of π in each state

    # The variables are c⁺ and c⁻ with c = c⁺ - c⁻, V, and the margins m, each over the states. For
    # each other pair (s, a) there is a row. It says m ≤ (P_a - P_π)V/(1-γ) if s was visited, and
    # V ≤ (1-γ)c + γ P_a V if not.
    others = np.setdiff1d(np.arange(mdp.n_pairs), pi[visited])
    state = mdp.pair_states[others]
    of_state = sp.csr_array((np.ones(len(others)), state, np.arange(len(others) + 1)), shape=(len(others), n))
    if_visited = sp.diags_array(visited[state].astype(float))
    if_not = sp.diags_array((~visited[state]).astype(float))
    rows_m = if_visited @ of_state
    rows_c = (1 - gamma) * (if_not @ of_state)
    rows_v = if_visited @ (mdp.transitions[pi[state]] - mdp.transitions[others]) / (1 - gamma)
    rows_v = rows_v + if_not @ (of_state - gamma * mdp.transitions[others])
    upper_rows = sp.hstack([-rows_c, rows_c, rows_v, rows_m])

    # In visited states V is the value of π: V = (1-γ)c + γ P_π V.
    here = np.flatnonzero(visited)
    identity = sp.eye_array(n, format="csr")[here]
    rows_c, rows_v = (1 - gamma) * identity, identity - gamma * mdp.transitions[pi[here]]
    equal_rows = sp.hstack([-rows_c, rows_c, rows_v, sp.csr_array((len(here), n))])

    # Maximise Σ m - λ‖c‖₁; a state without a choice has no margin.
    choice = visited & (np.diff(mdp.state_starts) > 1)
    bounds = [(0, 1)] * (2 * n) + [(-1, 1)] * n + [(0, None if m else 0) for m in choice]
    result = solve_lp(
        np.concatenate([np.full(2 * n, weight), np.zeros(n), -np.ones(n)]),
        A_ub=upper_rows,
        b_ub=np.zeros(len(others)),
        A_eq=equal_rows,
        b_eq=np.zeros(len(here)),
        bounds=bounds,
        method="highs",
    )
    if result.status != 0:
        raise SolverError(f"HiGHS did not solve the linear program of LP-IRL: {result.message}")
    state_cost = np.clip(result.x[:n] - result.x[n : 2 * n], -1.0, 1.0)  # HiGHS may leave the box by rounding
    return _solution(mdp, state_cost[mdp.pair_states], pi, visited, result)


def _solution(mdp: TabularMDP, cost: FloatArray, pi: Any, visited: Any, result: Any) -> Solution:
    """Return the solution: π in visited states, optimal for the learned cost in the others."""
    plan = mdp.optimal(cost)
    policy = np.where(visited[mdp.pair_states], 0.0, plan.policy)
    policy[pi[visited]] = 1.0
    return Solution(
        policy=policy,
        occupancy=mdp.occupancy_of(policy),
        cost=cost,
        value=plan.value,
        method="lp-irl",
        n_iterations=int(result.nit),
        stats={
            "margin": float(result.x[-mdp.n_states :].sum()),
            "regret": mdp.expected_cost(policy, cost) - plan.expected_cost,
            "unvisited_states": int((~visited).sum()),
        },
    )
