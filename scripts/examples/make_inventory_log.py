"""Make a log as a chain of shops might export it, to try `rlfd learn` on.

    python scripts/examples/make_inventory_log.py results/shop
    rlfd learn results/shop/log.csv --state stock --action order --episode shop --time week \\
        --prior results/shop/prior.csv

The log has weekly stocks and orders of one product. Shelves hold 20 units, orders come in packs of
three, weekly demand is Poisson with mean 6, and customers who find the shelf empty are not
recorded. The manager fills up to about 12 units whenever stock falls to 6 or below, misjudges the
level by a pack now and then, and forgets one order in ten. A few rows are broken, as in real
exports. The script writes `log.csv`, and `prior.csv` with the owner's guess of what a week costs.
"""

from __future__ import annotations

import argparse
from datetime import date, timedelta
from pathlib import Path

import numpy as np

from rlfd_gym.envs import InventoryEnv
from rlfd_gym.report import check_folder, run_script, write_csv

CAPACITY, PACK, DEMAND = 20, 3, 6.0
REORDER, TARGET = 6, 12
GUESS = {"order_cost": 4.0, "holding_cost": 0.5, "sell_price": 10.0}  # money per unit
HEADER = ["week", "shop", "stock", "order", "sold", "next_stock", "note"]


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="output folder")
    parser.add_argument("--shops", type=int, default=24, help="how many shops (default 24)")
    parser.add_argument("--weeks", type=int, default=104, help="how many weeks of each (default 104)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    try:
        check_folder(options.out)
    except ValueError as error:
        parser.error(str(error))
    env = InventoryEnv(max_inventory=CAPACITY, demand_mean=DEMAND, **GUESS)
    lines = broken(logged(env, options.shops, options.weeks, np.random.default_rng(options.seed)))
    write_csv(options.out / "log.csv", HEADER, lines)
    write_csv(options.out / "prior.csv", ["state", "action", "cost"], guessed(env))
    print(f"{len(lines)} rows in {options.out / 'log.csv'}, the guess of the cost in {options.out / 'prior.csv'}")


def logged(env: InventoryEnv, shops: int, weeks: int, rng: np.random.Generator) -> list[list[object]]:
    """Return the rows of all shops, week by week."""
    stock = rng.integers(0, TARGET + 1, size=shops)
    rows: list[list[object]] = []
    for week in range(weeks):
        monday = date(2023, 1, 2) + timedelta(weeks=week)
        level = TARGET + PACK * rng.choice([-1, 0, 1], size=shops, p=[0.15, 0.7, 0.15])
        packs = np.where(stock <= REORDER, -(-(level - stock) // PACK), 0)
        packs = np.where(rng.random(shops) < 0.1, 0, np.minimum(packs, (CAPACITY - stock) // PACK))
        following = env.sample_next(stock, PACK * packs, rng)
        for shop in range(shops):
            now, order, then = int(stock[shop]), int(PACK * packs[shop]), int(following[shop])
            rows.append([monday, f"shop {shop + 1:02}", now, order, now + order - then, then, ""])
        stock = following
    return rows


def broken(rows: list[list[object]]) -> list[list[object]]:
    """Return the rows with some of them broken, at fixed positions that a test can know."""
    spoilt = [list(row) for row in rows]
    n = len(rows)
    spoilt[n // 9][2] = ""  # the stock was not counted
    spoilt[n // 7][3] = "9 pcs"
    spoilt[n // 5][5] = -1  # a booking error
    spoilt[n // 4][6:] = ["delivery late", " driver ill"]  # an unquoted comma
    spoilt[n // 3][0] = "week 36"
    spoilt.insert(n // 2, list(spoilt[n // 2]))  # exported twice
    return spoilt


def guessed(env: InventoryEnv) -> list[list[object]]:
    """Return what the owner thinks a week costs, for every stock and every feasible order."""
    states, orders = env.mdp.pair_states, env.mdp.pair_actions
    packs = np.flatnonzero(orders % PACK == 0)
    return [[int(states[k]), int(orders[k]), f"{env.raw_cost[k]:.2f}"] for k in packs]


if __name__ == "__main__":
    run_script(main)
