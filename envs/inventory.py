"""The paper's single-product inventory with Poisson demand.

There are s units on hand; a units are ordered and arrive at once. The demand D ~ Poisson(λ) is
served from the level L = s + a, and demand that cannot be served is lost:

    s' = max(0, L - D),      raw cost = c_o a + c_h L - c_s E[min(L, D)].

The expected sales are exact: E[min(L, D)] = Σ_{k<L} P(D > k). The raw cost is in money; `cost` is
the raw cost mapped affinely onto [-1, 1] (`rlfd_gym.experts.scale`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, pdtr, pdtrc, xlogy

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray, IntArray
from rlfd_gym.beliefs.prices import Prices, Range
from rlfd_gym.envs.rendering import draw_stock
from rlfd_gym.envs.tabular import TabularEnv
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.mdp.tables import TabularMDP

LARGEST = 10_000  # of the inventories; there are as many pairs as half its square
EXPECTED_SALES = ("exact", "truncated")
NEGLIGIBLE = 1e-20  # far below rounding: omitting such demands keeps large tables sparse


class InventoryEnv(TabularEnv):
    """Order stock against uncertain demand: the single-product inventory of Junca & Leiva.

    ## Description
    A shop holds up to `max_inventory` units of one product. Each day it orders, the order arrives
    at once, and a Poisson demand is served as far as the stock allows. Ordering and holding cost
    money, selling earns it.

    ## Action Space
    `Discrete(max_inventory + 1)`: how many units to order. Feasible in state s are the orders
    0 … max_inventory - s, as `info["action_mask"]` says. A larger order is not an error: `step`
    reduces it to the free capacity, and `info["order"]` says what was ordered. The oracle
    `sample_next` refuses such an order instead.

    ## Observation Space
    `Discrete(max_inventory + 1)`: the units on hand.

    ## Starting State
    Uniform over the stock levels, or `reset(options={"state": 7})`.

    ## Rewards
    `-cost`: the expected raw cost of the pair, mapped onto [-1, 1] by `scale`, negated. The
    realised demand affects the stock, not the reward.

    ## Episode End
    Episodes never terminate; `gym.make` truncates them after 100 steps (0.9^100 < 1e-4). With
    another discount, pass `max_episode_steps=env.unwrapped.horizon`.

    ## Information
    `action_mask` (int8, over actions) from `reset` and `step`; `order` and `demand` from `step`.

    ## Arguments
    * `max_inventory=15`: the capacity M.
    * `demand_mean=10.0`: λ of the Poisson demand.
    * `order_cost=3.0`, `holding_cost=0.5`, `sell_price=15.0`: c_o, c_h, c_s, in money per unit.
    * `discount=0.9`.
    * `cost_scale=None`: `(low, high)` in money, mapped to -1 and 1; by default the range of this
      environment's own raw cost. Set it if several environments must share a scale, or use
      `cost_for`.
    * `expected_sales="exact"`: `"truncated"` sums the expected sales over demands up to M only, as
      the published figures do.
    * `limit_orders=True`: with `False`, every order 0 … M is feasible in every state, the demand
      is served from s + a even above capacity, and units left above M are thrown away.
    * `render_mode`: `"ansi"`, `"rgb_array"` or `"human"`.

    `rlfd_gym/InventoryPaper-v0` is the setting of the published figures: truncated sales,
    unlimited orders and `cost_scale=(-130, 0)`, which with other prices may put costs outside the
    box.

    ## Version History
    * v0: the first version.

    Attributes:
        features: (n_pairs, 3), with the columns a, s + a and minus the expected sales, so that
            `features @ (c_o, c_h, c_s)` is the raw cost.
        parameters: (c_o, c_h, c_s).
        scale: the map between money and the box [-1, 1], in both directions.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> plan = env.mdp.optimal(env.cost)
        >>> [int(env.mdp.pair_actions[i]) for i in np.flatnonzero(plan.policy)]    # order up to 15
        [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    """

    features: FloatArray
    parameters: FloatArray
    scale: CostScale

    def __init__(
        self,
        max_inventory: int = 15,
        demand_mean: float = 10.0,
        order_cost: float = 3.0,
        holding_cost: float = 0.5,
        sell_price: float = 15.0,
        discount: float = 0.9,
        *,
        cost_scale: tuple[float, float] | None = None,
        expected_sales: str = "exact",
        limit_orders: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Build the tables."""
        self.max_inventory = m = _checks.integer("max_inventory", max_inventory, 1, LARGEST)
        self.demand_mean = _checks.number("demand_mean", demand_mean, 0.0)
        self.limit_orders = _checks.flag("limit_orders", limit_orders)
        self.parameters = _prices(order_cost, holding_cost, sell_price)
        _checks.one_of("expected_sales", expected_sales, EXPECTED_SALES)

        stock, order = np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij")
        feasible = stock + order <= m if limit_orders else np.ones_like(stock, dtype=bool)
        states, actions = stock[feasible], order[feasible]
        levels = states + actions
        transitions = _level_transitions(int(levels.max()), m, self.demand_mean)[levels]
        mdp = TabularMDP(transitions, states, actions, None, discount, m + 1)

        sales = _expected_sales(int(levels.max()), self.demand_mean, m if expected_sales == "truncated" else None)
        self.features = np.column_stack([actions, levels, -sales[levels]])
        raw = self.features @ self.parameters
        if cost_scale is None:
            self.scale = CostScale.spanning(raw)
        else:
            self.scale = CostScale(*_checks.finite_vector("cost_scale", cost_scale, 2, "end of the range, in money"))
        self.last_demand: int | None = None
        super().__init__(mdp, self.scale.to_box(raw), render_mode)

    @property
    def raw_cost(self) -> FloatArray:
        """The true cost in money, over pairs."""
        return self.features @ self.parameters

    def cost_for(self, order_cost: float, holding_cost: float, sell_price: float) -> FloatArray:
        """Return the cost of other prices on this environment's scale, for an expert or a prior.

        It may leave [-1, 1], if the raw cost of these prices leaves the range of `scale`.
        """
        return self.scale.to_box(self.features @ _prices(order_cost, holding_cost, sell_price))

    def price_ranges(self, *, order: Range, holding: Range, sell: Range) -> Prices:
        """State what is believed about the prices, in money; see `rlfd_gym.beliefs.Prices`.

        Each price is a range (low, high), or a number if it is known. Costs and improvements are
        on this environment's scale, as `cost_for` is.

        >>> InventoryEnv().price_ranges(order=(2.5, 5), holding=(0.3, 3), sell=15).high.tolist()
        [5.0, 3.0, 15.0]
        """
        ranges = {"order": order, "holding": holding, "sell": sell}
        return Prices.named(self.features, ranges, scale=self.scale)

    def cut_action(self, state: int, action: int) -> int:
        """Return the order reduced to the free capacity."""
        return min(action, self.max_inventory - state) if self.limit_orders else action

    def sample_next(self, states: ArrayLike, actions: ArrayLike, rng: np.random.Generator) -> IntArray:
        """Draw next states; an order beyond the capacity raises a `ValueError`."""
        s, a = _checks.integers("states", states), _checks.integers("actions", actions)
        _checks.instance("rng", rng, np.random.Generator)
        m = self.max_inventory
        if s.shape != a.shape and s.ndim and a.ndim:
            self.mdp.pair_index(s, a)  # raises if the shapes do not fit
        bad = (s < 0) | (s > m) | (a < 0) | (a > m) | (self.limit_orders & (s + a > m))
        if bad.any():
            self.mdp.pair_index(s, a)  # raises, naming the first offender
        return self._after_demand(s + a, rng.poisson(self.demand_mean, size=bad.shape))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start from a uniformly drawn stock, or from `options["state"]`."""
        self.last_demand = None
        return super().reset(seed=seed, options=options)

    def render_text(self) -> str:
        """Return one line with the stock as a bar, the last order and the last demand."""
        filled = round(40 * (self.state or 0) / self.max_inventory)
        line = f"stock {self.state:>3} of {self.max_inventory} [{'#' * filled}{'.' * (40 - filled)}]"
        if self.last_action is None:
            return f"{line}  no order yet\n"
        return f"{line}  last order {self.last_action}, last demand {self.last_demand}\n"

    def render_frame(self) -> NDArray[np.uint8]:
        """Draw the stock as a bar, with the last order and the last demand."""
        return draw_stock(self.state or 0, self.max_inventory, self.last_action, self.last_demand)

    def _after_demand(self, level: IntArray | int, demand: IntArray | int) -> IntArray:
        """Return what is left of a level, neither below zero nor above capacity."""
        return np.clip(np.subtract(level, demand), 0, self.max_inventory)

    def _advance(self, state: int, action: int, pair: int) -> int:
        """Draw as `sample_next` does, and keep the demand for `info` and `render`."""
        self.last_demand = int(self.np_random.poisson(self.demand_mean))
        return int(self._after_demand(state + action, self.last_demand))

    def _lock(self) -> None:
        super()._lock()
        self.features.flags.writeable = self.parameters.flags.writeable = False

    def _info(self) -> dict[str, Any]:
        info = super()._info()
        if self.last_demand is not None:
            info.update(order=self.last_action, demand=self.last_demand)
        return info


def _level_transitions(highest: int, capacity: int, demand_mean: float) -> sp.csr_array:
    """Return P(s' | level) for levels 0..highest: s' = min(capacity, max(0, level - D))."""
    level, s_next = np.meshgrid(np.arange(highest + 1), np.arange(capacity + 1), indexing="ij")
    table = _poisson(level - s_next, demand_mean)
    table[1:, 0] = pdtrc(np.arange(highest), demand_mean)  # P(D ≥ level)
    table[0, 0] = 1.0
    rest = np.arange(highest + 1) - capacity
    table[:, capacity] = np.where(rest >= 0, pdtr(np.maximum(rest, 0), demand_mean), 0.0)
    return sp.csr_array(np.where(table < NEGLIGIBLE, 0.0, table))


def _poisson(demand: IntArray, mean: float) -> FloatArray:
    """Return P(D = demand), as `scipy.stats.poisson` does, which takes a second to load."""
    k = np.maximum(demand, 0)
    return np.where(demand >= 0, np.exp(xlogy(k, mean) - gammaln(k + 1) - mean), 0.0)


def _prices(order_cost: float, holding_cost: float, sell_price: float) -> FloatArray:
    """Return (c_o, c_h, c_s), checked."""
    named = {"order_cost": order_cost, "holding_cost": holding_cost, "sell_price": sell_price}
    return np.array([_checks.number(name, price) for name, price in named.items()])


def _expected_sales(highest: int, demand_mean: float, largest_demand: int | None) -> FloatArray:
    """Return E[min(level, D)] for levels 0..highest.

    With `largest_demand`, the sum over demands stops there, as in the published figures.
    """
    if largest_demand is None:
        sold = pdtrc(np.arange(highest), demand_mean)  # P(D > level)
        return np.concatenate([[0.0], np.cumsum(sold)])
    level, demand = np.meshgrid(np.arange(highest + 1), np.arange(largest_demand + 1), indexing="ij")
    return np.asarray(np.minimum(level, demand) @ _poisson(np.arange(largest_demand + 1), demand_mean))
