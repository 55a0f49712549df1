"""Measure how often the comparison's 95% intervals over seeds cover the mean.

    python scripts/study_intervals.py                # minutes on two cores
    python scripts/study_intervals.py --tasks lake --methods lp-irl --seeds 10

Each row of the comparison is run for many seeds, which are taken as the population. Samples of
five, ten and twenty seeds are drawn from it, and the study counts how often Student's interval and
the BCa bootstrap contain the population's mean. Methods that are quick have four times as many
seeds as are asked for.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from rlfd_gym import compare
from rlfd_gym.report import run_script
from rlfd_gym.report.tables import half_width

SIZES = (5, 10, 20)
BOOTSTRAPPED = 150  # samples, because each of them is resampled 500 times


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default="inventory,windy,lake", help="tasks of the comparison, by name")
    parser.add_argument("--methods", default="rlfd-exact,lpal,lp-irl,cloning", help="its methods, by name")
    parser.add_argument(
        "--seeds", type=int, default=50, help="seeds of each row; quick methods have four times as many"
    )
    parser.add_argument("--samples", type=int, default=4000, help="samples of each size (default 4000)")
    parser.add_argument("--jobs", type=int, default=-1, help="cells at a time (default: one for each core)")
    options = parser.parse_args(arguments)
    result = compare.run(
        tasks=options.tasks.split(","), methods=options.methods.split(","), seeds=options.seeds,
        demonstrations=[1, 10], alphas=[0.1], jobs=options.jobs, progress=True,
    )  # fmt: skip
    heads = [f"Student, {n}" for n in SIZES] + [f"BCa, {n}" for n in SIZES]
    print(f"| task | method | demonstrations | seeds | {' | '.join(heads)} |")
    print("|---|---|" + "---:|" * (2 + len(heads)))
    groups: dict[tuple[Any, ...], list[float]] = {}
    for row in result.rows:
        if row.true_cost is not None and not row.reference:
            groups.setdefault((row.task, row.label, row.demonstrations), []).append(row.true_cost)
    for names, values in groups.items():
        population = np.array(values)
        if np.ptp(population) > 0:
            shares = covering(population, options.samples, np.random.default_rng(0))
            texts = [*map(str, names), str(len(values)), *(f"{share:.0%}" for share in shares)]
            print(f"| {' | '.join(texts)} |")


def covering(population: NDArray[np.float64], samples: int, rng: np.random.Generator) -> list[float]:
    """Return how often intervals contain the mean: Student's for each size, then the bootstrap's."""
    mean, shares, bootstrap = population.mean(), [], []
    for size in SIZES:
        drawn = rng.choice(population, (samples, size))
        shares.append(float(np.mean(np.abs(drawn.mean(axis=1) - mean) <= half_width(drawn.std(axis=1, ddof=1), size))))
        bootstrap.append(float(np.mean([_contains(sample, mean, rng) for sample in drawn[:BOOTSTRAPPED]])))
    return shares + bootstrap


def _contains(sample: NDArray[np.float64], mean: float, rng: np.random.Generator) -> bool:
    if np.ptp(sample) == 0:
        return bool(sample[0] == mean)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for nearly constant samples the interval is NaN: it contains nothing
        found = stats.bootstrap((sample,), np.mean, n_resamples=500, method="BCa", random_state=rng).confidence_interval
    return bool(found.low <= mean <= found.high)


if __name__ == "__main__":
    run_script(main)
