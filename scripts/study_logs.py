"""Measure what savings that are learned from a log are worth, on a shop whose truth is known.

    python scripts/study_logs.py                 # minutes on two cores
    python scripts/study_logs.py --logs 4 --resamples 10
    python scripts/study_logs.py --docs docs     # also writes docs/logs_coverage.md and its figure

Shops, orders and the manager are those of `examples/make_inventory_log.py`. For each simulated log
`decide` recommends a policy and states its saving with an interval; the truth is the saving of that
policy in the shop itself, from the same first stocks. In states that the log does not show, the
policy does what the manager does. The script writes `logs.csv`, with one row per log,
`logs_coverage.md` and `logs_coverage.png`.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest
from tqdm.auto import tqdm

from rlfd_gym import CostScale, Log, RLfDProblem, TabularMDP, read_log, solve_exact
from rlfd_gym.beliefs import Prices
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.decision import decide, price_belief
from rlfd_gym.envs import InventoryEnv
from rlfd_gym.report import check_folder, plots, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CAPACITY, PACK, DEMAND = 20, 3, 6.0
REORDER, TARGET, FORGETS = 6, 12, 0.1
RANGES = {"order": (3.0, 5.0), "holding": (0.2, 0.8), "sell": (8.0, 12.0)}  # the truth is in the middle
SIZES = ((3, 52), (3, 104), (3, 520), (100, 26))  # shops, weeks
CONFIDENCE, DISCOUNT = 0.9, 0.9
NAMES = {"state": "stock", "action": "order", "next_state": "next_stock", "episode": "shop", "time": "week"}
FEATURES = {"order": "order", "holding": "stock + order", "sell": "-sold"}
BELIEFS = {
    "prices": "`--price` with ranges, and what was sold from a column of the log",
    "prior": "`--prior` with the true costs, at the default α",
    "budget": "the same with `--alpha regret-budget:0.05`",
}


@dataclass(frozen=True)
class Outcome:
    """One log: what was promised, estimated and true."""

    belief: str
    shops: int
    weeks: int
    seed: int
    promised: float
    estimate: float
    low: float
    high: float
    true: float
    changed: float
    naive_promise: float
    by_policy: float
    by_episodes: float
    rows_of_episodes: float


def main() -> None:
    """Run the study, and write its table and figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=100, help="logs of each size (default 100)")
    parser.add_argument("--resamples", type=int, default=40, help="resamples of each log (default 40)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--out", type=Path, default=Path("results/logs"), help="output folder (default results/logs)")
    parser.add_argument("--docs", type=Path, help="a folder in which to write logs_coverage.md and its figure as well")
    parser.add_argument("--redraw", action="store_true", help="take the outcomes of the last run")
    options = parser.parse_args()
    folders = [folder for folder in (options.out, options.docs) if folder is not None]
    try:
        for folder in folders:
            check_folder(folder)
    except ValueError as error:
        parser.error(str(error))
    names = [field.name for field in fields(Outcome)]
    if options.redraw:
        with open(options.out / "logs.csv", newline="") as file:
            outcomes = [read(row) for row in csv.DictReader(file)]
    else:
        outcomes = run(options.logs, options.resamples, options.jobs)
        write_csv(options.out / "logs.csv", names, map(astuple, outcomes))
    page = written(outcomes, options.resamples)
    for folder in folders:
        write(folder / "logs_coverage.md", page.encode())
        plots.save(drawn(outcomes), folder / "logs_coverage.png")
    print(page)


def run(n_logs: int, n_resamples: int, n_jobs: int) -> list[Outcome]:
    """Simulate logs of each size, and judge what is learned from each."""
    jobs = [(belief, *size, seed) for size in SIZES for belief in BELIEFS for seed in range(n_logs)]
    work = (delayed(judge)(*job, n_resamples) for job in jobs)
    return list(tqdm(Parallel(n_jobs=n_jobs, return_as="generator")(work), total=len(jobs), disable=None))


def judge(belief: str, shops: int, weeks: int, seed: int, n_resamples: int) -> Outcome:
    """Learn from one simulated log, and compare with the truth."""
    shop = Shop.make()
    rows = shop.log(shops, weeks, np.random.default_rng([shops, weeks, seed]))
    by_policy, by_episodes = (
        read_log(rows, discount=DISCOUNT, columns=["sold"], **NAMES, expert=how) for how in ("policy", "episodes")
    )
    options = {"confidence": CONFIDENCE, "n_resamples": n_resamples, "seed": seed}
    if belief == "prices":
        decision = decide(by_policy, lambda log: price_belief(log, RANGES, FEATURES), **options)
        known = shop.belief(by_policy)
        plain = [solve_exact(RLfDProblem(log.mdp, log.expert, belief=known)) for log in (by_policy, by_episodes)]
        saved = [shop.saving(by_policy, solution.policy) for solution in plain]
        naive = float((by_policy.expert - plain[0].occupancy) @ shop.costs(by_policy))
    else:
        alpha = DEFAULT_ALPHA if belief == "prior" else "regret-budget:0.05"
        costs = dict(zip(by_policy.pair_labels(), shop.costs(by_policy).tolist(), strict=True))
        decision = decide(by_policy, costs, alpha=alpha, **options)
        saved, naive = [np.nan, np.nan], np.nan  # the same as with prices
    return Outcome(
        belief,
        shops,
        weeks,
        seed,
        decision.promised,
        decision.saving.value,
        decision.saving.low,
        decision.saving.high,
        shop.saving(by_policy, decision.policy),
        decision.n_changed,
        naive,
        *saved,
        by_episodes.report.n_carrying,
    )


@dataclass(frozen=True, eq=False)
class Shop:
    """The shop as it is: its tables, its true cost, and what its manager does."""

    env: InventoryEnv
    mdp: TabularMDP
    cost: np.ndarray
    features: np.ndarray
    manager: np.ndarray

    @classmethod
    def make(cls) -> Shop:
        """Return the shop of the example."""
        prices = {f"{name}_cost" if name != "sell" else "sell_price": sum(ends) / 2 for name, ends in RANGES.items()}
        env = InventoryEnv(max_inventory=CAPACITY, demand_mean=DEMAND, **prices)
        packs = env.mdp.pair_actions % PACK == 0
        states, orders = env.mdp.pair_states[packs], env.mdp.pair_actions[packs]
        mdp = TabularMDP(env.mdp.transitions[packs], states, orders, None, DISCOUNT, env.mdp.n_actions)
        manager = np.zeros(len(states))
        for change, chance in ((-PACK, 0.15), (0, 0.7), (PACK, 0.15)):
            wanted = np.where(states <= REORDER, -(-(TARGET + change - states) // PACK), 0)
            packs_sent = PACK * np.minimum(wanted, (CAPACITY - states) // PACK)
            manager += chance * ((1 - FORGETS) * (orders == packs_sent) + FORGETS * (orders == 0))
        return cls(env, mdp, env.raw_cost[packs], env.features[packs], manager)

    def log(self, shops: int, weeks: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the rows of all shops."""
        chances = self.mdp.table(self.manager, fill=0.0).cumsum(axis=1)
        stock, parts = rng.integers(0, TARGET + 1, size=shops), []
        for week in range(weeks):
            order = (rng.random(shops)[:, None] > chances[stock]).sum(axis=1)
            following = self.env.sample_next(stock, order, rng)
            parts.append((np.arange(shops), np.full(shops, week), stock, order, following))
            stock = following
        columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        rows = dict(zip(("shop", "week", "stock", "order", "next_stock"), columns, strict=True))
        return rows | {"sold": rows["stock"] + rows["order"] - rows["next_stock"]}

    def belief(self, log: Log) -> Prices:
        """Return the ranges of prices over the pairs of a log."""
        features = self.features[self.mdp.pair_index(*np.array(log.pair_labels()).T)]
        low, high = Prices.named(features, RANGES).ends()
        return Prices.named(features, RANGES, scale=CostScale(low.min(), high.max()))

    def costs(self, log: Log) -> np.ndarray:
        """Return the true cost of each pair of a log."""
        return self.cost[self.mdp.pair_index(*np.array(log.pair_labels()).T)]

    def saving(self, log: Log, policy: np.ndarray) -> float:
        """Return the true saving of a policy over the manager, from the log's first stocks."""
        pairs = self.mdp.pair_index(*np.array(log.pair_labels()).T)
        full = np.zeros(self.mdp.n_pairs)
        full[pairs] = np.where(log.mdp.sum_by_state(log.visits)[log.mdp.pair_states] > 0, policy, 0.0)
        full = np.where(self.mdp.sum_by_state(full)[self.mdp.pair_states] > 0, full, self.manager)
        start = np.zeros(self.mdp.n_states)
        start[list(log.state_labels)] = log.mdp.initial
        mdp = self.mdp
        here = TabularMDP(mdp.transitions, mdp.pair_states, mdp.pair_actions, start, DISCOUNT, mdp.n_actions)
        return here.expected_cost(self.manager, self.cost) - here.expected_cost(full, self.cost)


def read(row: dict[str, str]) -> Outcome:
    """Return an outcome from a row of the table."""
    kinds = {"belief": str, "shops": int, "weeks": int, "seed": int}
    return Outcome(**{name: kinds.get(name, float)(value) for name, value in row.items()})


def by_size(outcomes: list[Outcome], belief: str) -> dict[tuple[int, int], np.ndarray]:
    """Return the numbers of each size as a record array."""
    names = [field.name for field in fields(Outcome)]
    found: dict[tuple[int, int], list[tuple]] = {}
    for one in outcomes:
        if one.belief == belief:
            found.setdefault((one.shops, one.weeks), []).append(astuple(one))
    return {size: np.rec.fromrecords(rows, names=names) for size, rows in found.items()}


def written(outcomes: list[Outcome], n_resamples: int) -> str:
    """Return the page."""
    priced = by_size(outcomes, "prices")
    n_logs = max(len(one) for one in priced.values())
    lines = [PAGE.format(n_logs=n_logs, n_resamples=n_resamples)]
    for belief, what in BELIEFS.items():
        if not any(one.belief == belief for one in outcomes):
            continue
        lines += ["", f"With {what}:", "", HEAD]
        for (shops, weeks), one in by_size(outcomes, belief).items():
            inside = int(((one.low <= one.true) & (one.true <= one.high)).sum())
            error = one.estimate - one.true
            ends = binomtest(inside, len(one)).proportion_ci(method="wilson")
            lines.append(
                f"| {shops} × {weeks} | {len(one)} | {one.changed.mean():.1f} | "
                f"{one.promised.mean():.2f} | {one.estimate.mean():.2f} | {one.true.mean():.2f} | "
                f"{error.mean():+.2f} ± {error.std() / len(one) ** 0.5:.2f} | "
                f"{inside / len(one):.0%} ({ends.low:.0%} to {ends.high:.0%}) | "
                f"{(one.true < one.low).mean():.0%} | {(one.true > one.high).mean():.0%} | "
                f"{(one.high - one.low).mean():.2f} |"
            )
    lines.append(EXPERTS)
    for (shops, weeks), one in priced.items():
        lines.append(
            f"| {shops} × {weeks} | {one.naive_promise.mean():.2f} | {one.by_policy.mean():.2f} | {shops * weeks} | "
            f"{one.by_episodes.mean():.2f} | {one.rows_of_episodes.mean():.0f} |"
        )
    return "\n".join([*lines, ""])


def drawn(outcomes: list[Outcome]) -> Figure:
    """Draw the interval of each log against its truth."""
    found = by_size(outcomes, "prices")
    figure, axes = plots.new_figure(1, len(found), size=(3.2 * len(found), 3.4), sharey=True)
    for axis, ((shops, weeks), one) in zip(axes[0], found.items(), strict=True):
        order = np.argsort(one.estimate)
        axis.vlines(np.arange(len(one)), one.low[order], one.high[order], color="#9ecae1")
        axis.plot(one.estimate[order], ".", color="#2171b5", label="estimate", markersize=4)
        axis.plot(one.true[order], "x", color="#d94801", label="truth", markersize=4)
        axis.plot(one.naive_promise[order], "_", color="#737373", label="naive promise", markersize=4)
        axis.set_title(f"{shops} shops × {weeks} weeks")
        axis.set_xlabel("logs, by estimate")
    axes[0, 0].set_ylabel("saving a week, in money")
    axes[0, 0].legend()
    return figure


PAGE = """# What savings from a log are worth

Written by `python scripts/study_logs.py --docs docs`, from up to {n_logs} simulated logs of each size with
{n_resamples} resamples each. The shop is that of `scripts/examples/make_inventory_log.py`; its true prices are the
middle of the ranges that are believed, and savings are in money a week, from the log's own first stocks.

**A policy that is chosen and judged on the same log promises too much.** If every action that was seen once may be
recommended, the promise is a multiple of what comes true (last table): of many pairs with a row or two, some look good
by luck, and no resampling of a single row can show that. `decide` therefore recommends actions with
at least 10 rows, or the present ones (`least_rows`), and corrects what is left of the optimism by learning anew from
resampled logs (`rlfd_gym/decision/resampling.py`). The bias that remains, the estimate less the truth, is in the table
with its standard error. The price is caution: with few rows less is recommended, and less is saved, than luck or more
rows would allow.

Rows are resampled within their pair where there are fewer than 30 episodes, whole episodes where there are more.
What a column of the log says is resampled together with the next states: who sells more by chance has less
next week, and an interval that ignores this corrects for too much optimism.

![intervals and truths, with prices](logs_coverage.png)

In the tables, changed: in how many states something else is recommended; below, above: how often the truth is there."""

HEAD = """\
| shops × weeks | logs | changed | promised | estimate | true | bias | 90% interval covers | below | above | width |
|---|---|---|---|---|---|---|---|---|---|---|"""

EXPERTS = """
**All rows, or the first of each episode.** The expert can be estimated from the policy of all rows, or from discounted
episodes, of which only the first 1/(1-γ) rows count. The exact solution for each estimate over the ranges of prices,
without any limit on rows, promises and truly saves:

| shops × weeks | promised | expert="policy" | rows that carried it | expert="episodes" | rows that carried it |
|---|---|---|---|---|---|"""


if __name__ == "__main__":
    run_script(main)
