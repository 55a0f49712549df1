"""Shops whose true demand and prices are known, and the logs that they would export."""

from __future__ import annotations

import numpy as np

from rlfd_gym.envs import InventoryEnv

TRUTH = {"order_cost": 2.0, "holding_cost": 1.0, "sell_price": 6.0}
HEADER = "week,shop,stock,order,sold,profit\n"
COLUMNS = ["--state", "stock", "--action", "order", "--episode", "shop", "--time", "week"]
PRICES = {"buying": 2.0, "holding": (0.0, 2.0), "selling": 6.0}  # their middles are the truth
FEATURES = {"buying": "order", "holding": "stock + order", "selling": "-sold"}
STATED = [
    *("--price", "buying=2", "--price", "holding=0..2", "--price", "selling=6"),
    *("--feature", "buying=order", "--feature", "holding=stock + order", "--feature", "selling=-sold"),
]


def shop() -> InventoryEnv:
    """A small shop with its true prices."""
    return InventoryEnv(max_inventory=5, demand_mean=2.0, **TRUTH)


def manager(env: InventoryEnv, holding: float = 1.9) -> np.ndarray:
    """A manager who thinks that holding is more expensive than it is, and errs in a fifth of the weeks."""
    mdp, cost = env.mdp, env.cost_for(TRUTH["order_cost"], holding, TRUTH["sell_price"])
    return 0.8 * mdp.optimal(cost).policy + 0.2 * mdp.policy_of(np.ones(mdp.n_pairs))


def exported(env: InventoryEnv, *, shops: int = 40, weeks: int = 60, seed: int = 0) -> str:
    """The log of the manager's shops, as CSV."""
    rng, mdp = np.random.default_rng(seed), env.mdp
    policy, lines = mdp.table(manager(env), fill=0.0), []
    for number in range(shops):
        stock = int(rng.choice(mdp.n_states, p=mdp.initial))
        for week in range(weeks):
            order = int(rng.choice(mdp.n_actions, p=policy[stock]))
            (then,) = env.sample_next(np.array([stock]), np.array([order]), rng)
            sold = stock + order - int(then)
            profit = 6 * sold - 2 * order - (stock + order)
            lines.append(f"{week},shop {number},{stock},{order},{sold},{profit}\n")
            stock = int(then)
    return HEADER + "".join(lines)


def true_saving(env: InventoryEnv, decision) -> float:
    """What a decision truly saves a week, where the demand and the prices are known."""
    mdp, weights = env.mdp, np.zeros((env.mdp.n_states, env.mdp.n_actions))
    for one in decision.recommendations:
        weights[one.state, one.action] = 1.0
    policy = mdp.policy_of(weights[mdp.pair_states, mdp.pair_actions])
    return float((mdp.occupancy_of(manager(env)) - mdp.occupancy_of(policy)) @ env.raw_cost)
