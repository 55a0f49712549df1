"""Compare the rules that choose alpha, on many problems whose true cost is known.

    python scripts/study_alpha.py                # half an hour on two cores
    python scripts/study_alpha.py --quick        # seconds
    python scripts/study_alpha.py --docs docs    # also rewrites docs/choosing_alpha.md and .png

Environments, experts, priors and numbers of demonstrations are crossed, and every combination is
repeated over seeds, which draw the prior, the misled expert and the demonstrations. The script
writes `choosing_alpha.csv`, with one row per rule and problem, `choosing_alpha.md` and
`choosing_alpha.png`.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from joblib import Parallel, delayed
from tqdm.auto import tqdm

from rlfd_gym import (
    RLfDProblem,
    TabularMDP,
    alpha_path,
    cost_of_env,
    demonstrate,
    occupancy_from_demonstrations,
    occupancy_noise,
    select_alpha,
    solve_exact,
)
from rlfd_gym.baselines import majority, mixture
from rlfd_gym.report import check_folder, mean_and_margin, plots, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENVIRONMENTS = {
    "inventory": lambda: gym.make("rlfd_gym/Inventory-v0"),
    "gridworld": lambda: gym.make("rlfd_gym/WindyGridworld-v0"),
    "FrozenLake": lambda: gym.make("FrozenLake-v1"),
}
DISCOUNTS = {"inventory": None, "gridworld": None, "FrozenLake": 0.95}
EXPERTS = ("optimal", "noisy", "misled")
PRIORS = ("good", "half", "wrong")
DEMONSTRATIONS = (2, 10, 100, 0)  # 0: the expert's exact occupancy
NOISE = 0.3
TAIL = 1e-3  # trajectories continue until only this much of the discounted mass is left
FIXED = 0.1
EXACT = 1000  # trajectories that an exact occupancy counts as for "evidence"
RULES = ("regret-budget:0.05", "regret-budget, told", "discrepancy", "evidence", "held-out", "l-curve")
REFERENCES = ("fixed 0.1", "imitate", "prior alone", "majority", "mixture")
BEST = "best in hindsight"
COLOURS = dict(zip((*RULES, *REFERENCES), itertools.cycle(plots.SEQUENCE), strict=False))


@dataclass(frozen=True)
class Outcome:
    """One row of the result: the loss of one rule on one problem."""

    environment: str
    expert: str
    prior: str
    demonstrations: int
    seed: int
    rule: str
    alpha: float
    loss: float
    """The apprentice's loss under the true cost: 0 for the optimum, 1 for acting at random."""


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    seeds: int
    jobs: int
    quick: bool
    out: Path
    docs: Path | None


def main() -> None:
    """Run the study, and print and write its results."""
    options = parse()
    numbers, n_points = ((10,), 8) if options.quick else (DEMONSTRATIONS, 20)
    settings = list(itertools.product(ENVIRONMENTS, EXPERTS, PRIORS, numbers, range(options.seeds)))
    work = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(study)(*setting, n_points) for setting in settings
    )
    outcomes = [
        outcome for some in tqdm(work, total=len(settings), desc="problems", unit="problem") for outcome in some
    ]
    page, picture = report(outcomes), plots.png(figure(outcomes, numbers))
    print(page)
    for folder in (options.out, options.docs):
        if folder is not None:
            write(folder / "choosing_alpha.md", page.encode())
            write(folder / "choosing_alpha.png", picture)
    names = [field.name for field in fields(Outcome)]
    write_csv(options.out / "choosing_alpha.csv", names, map(astuple, outcomes))
    print(f"written: {options.out / 'choosing_alpha.csv'}, and .md and .png next to it")


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="repetitions of every combination (default 6)")
    parser.add_argument("--jobs", type=int, default=2, help="problems at a time (default 2)")
    parser.add_argument("--quick", action="store_true", help="two seeds, ten demonstrations, short paths")
    parser.add_argument("--out", type=Path, default=Path("results/alpha"), help="output folder")
    parser.add_argument("--docs", type=Path, help="a folder to write the page and its picture to as well")
    given = parser.parse_args()
    if given.seeds < 2:
        parser.error(f"--seeds must be at least 2 for intervals, got {given.seeds}")
    try:
        for folder in (given.out, *([] if given.docs is None else [given.docs])):
            check_folder(folder)
    except ValueError as error:
        parser.error(str(error))
    return Options(2 if given.quick else given.seeds, given.jobs, given.quick, given.out, given.docs)


def study(environment: str, expert: str, prior: str, demonstrations: int, seed: int, n_points: int) -> list[Outcome]:
    """Return the outcome of every rule on one problem."""
    env = ENVIRONMENTS[environment]()
    mdp, truth = TabularMDP.from_env(env, discount=DISCOUNTS[environment]), cost_of_env(env)
    policy, guess = expert_policy(mdp, truth, expert, seed), prior_cost(mdp, truth, prior, seed)
    occupancy, noise, walks = mdp.occupancy_of(policy), 0.0, None
    regret = float(occupancy @ truth) - mdp.optimal(truth).expected_cost
    told = regret / (-mdp.optimal(-truth).expected_cost - mdp.optimal(truth).expected_cost)
    if demonstrations:
        walks = demonstrate(mdp, policy, demonstrations, mdp.horizon(TAIL), seed)
        occupancy = occupancy_from_demonstrations(walks, mdp)
        noise = occupancy_noise(walks, mdp, n_bootstrap=60, seed=seed)
    path = alpha_path(RLfDProblem(mdp, occupancy, guess), n_points=n_points)
    fixed = RLfDProblem(mdp, occupancy, guess, FIXED)
    exact = f"evidence:{EXACT / (1 - mdp.discount)}"
    answers = {
        "regret-budget:0.05": select_alpha(path, "regret-budget:0.05"),
        "regret-budget, told": select_alpha(path, "regret-budget", budget=min(max(told, 0.0), 1.0)),
        "discrepancy": select_alpha(path, "discrepancy", noise=noise),
        "evidence": select_alpha(path, "evidence" if walks else exact, demonstrations=walks),
        "held-out": select_alpha(path, "held-out", demonstrations=walks) if walks else path[0],
        "l-curve": select_alpha(path, "l-curve"),
        "imitate": path[0],
        "prior alone": path[-1],
    }
    optimum, random = mdp.optimal(truth).expected_cost, mdp.expected_cost(mdp.uniform_policy(), truth)

    def outcome(rule: str, alpha: float, policy: np.ndarray) -> Outcome:
        loss = (mdp.expected_cost(policy, truth) - optimum) / (random - optimum)
        return Outcome(environment, expert, prior, demonstrations, seed, rule, alpha, loss)

    found = [outcome(rule, answer.alpha, answer.solution.policy) for rule, answer in answers.items()]
    found.append(outcome("fixed 0.1", FIXED, solve_exact(fixed).policy))
    # These need no alpha, and so are no candidates for the best one in hindsight.
    others = {"majority": majority(mdp, occupancy), "mixture": mixture(mdp, occupancy, guess)}
    rivals = [outcome(name, float("nan"), rival.policy) for name, rival in others.items()]
    along = [outcome(BEST, point.alpha, point.policy) for point in path]
    best = min([*along, *found], key=lambda one: one.loss)
    return [*found, *rivals, replace(best, rule=BEST)]


def expert_policy(mdp: TabularMDP, truth: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Return the policy of an expert.

    The expert is optimal, acts at random now and then, or has a wrong idea of the cost.
    """
    if kind == "misled":
        wrong = np.random.default_rng([seed, 1]).permutation(truth)
        return mdp.optimal((truth + wrong) / 2).policy
    noise = NOISE if kind == "noisy" else 0.0
    return (1 - noise) * mdp.optimal(truth).policy + noise * mdp.uniform_policy()


def prior_cost(mdp: TabularMDP, truth: np.ndarray, kind: str, seed: int) -> np.ndarray:
    """Return a prior of the given kind.

    It is the truth in nine or five of ten states and the mean of the truth in the others, or the
    truth at the wrong pairs.
    """
    rng = np.random.default_rng([seed, 2])
    if kind == "wrong":
        return rng.permutation(truth)
    unknown = rng.permutation(mdp.n_states) < (0.1 if kind == "good" else 0.5) * mdp.n_states
    return np.where(unknown[mdp.pair_states], truth.mean(), truth)


def interval(outcomes: Sequence[Outcome], rule: str, minus: str | None = None) -> tuple[float, float]:
    """Return the mean of a rule's loss and the half-width of its 95% interval.

    With `minus`, the loss of that other rule is subtracted. Seeds are independent of each other,
    but problems that share a seed are not: each seed gives one number.
    """
    losses: dict[int, list[float]] = {}
    for one in outcomes:
        sign = 1.0 if one.rule == rule else -1.0 if one.rule == minus else 0.0
        if sign:
            losses.setdefault(one.seed, []).append(sign * one.loss)
    share = 1 if minus is None else 2
    mean, margin = mean_and_margin([share * np.mean(some) for some in losses.values()])
    assert margin is not None  # there are at least two seeds
    return mean, margin


def report(outcomes: list[Outcome]) -> str:
    """Return the page: the setting, the table, and how each rule compares with a fixed alpha."""
    seeds = len({one.seed for one in outcomes})
    problems = len(outcomes) // (len(RULES) + len(REFERENCES) + 1)
    columns = (BEST, *RULES, *REFERENCES)
    numbers = dict.fromkeys(one.demonstrations for one in outcomes)
    groups: list[tuple[str, dict[str, Any]]] = [("**all problems**", {})]
    groups += [(name, {"environment": name}) for name in dict.fromkeys(one.environment for one in outcomes)]
    groups += [(f"{name} expert", {"expert": name}) for name in EXPERTS]
    groups += [(f"{name} prior", {"prior": name}) for name in PRIORS]
    groups += [(f"{k} demonstrations" if k else "exact occupancy", {"demonstrations": k}) for k in numbers]
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for label, wanted in groups:
        some = [one for one in outcomes if wanted.items() <= vars(one).items()]
        cells = ["{:.1f} ± {:.1f}".format(*(100 * x for x in interval(some, rule))) for rule in columns]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return PAGE.format(
        problems=problems,
        seeds=seeds,
        noise=f"{NOISE:.0%}",
        exact=EXACT,
        table="\n".join(lines),
        verdicts="\n".join(verdict(outcomes, rule) for rule in (*RULES, *REFERENCES[1:])),
    )


def verdict(outcomes: list[Outcome], rule: str) -> str:
    """Return one line that compares a rule with a fixed alpha.

    It has the mean over all problems, and says in how many combinations the rule is clearly better
    or worse.
    """
    mean, half = interval(outcomes, rule, "fixed 0.1")
    behind, behind_half = interval(outcomes, rule, BEST)
    better = worse = 0
    cells: dict[tuple[object, ...], list[Outcome]] = {}
    for one in outcomes:
        cells.setdefault((one.environment, one.expert, one.prior, one.demonstrations), []).append(one)
    for some in cells.values():
        difference, width = interval(some, rule, "fixed 0.1")
        better += difference + width < -1e-4
        worse += difference - width > 1e-4
    return (
        f"- **{rule}**: {100 * mean:+.1f} ± {100 * half:.1f} against fixed 0.1, {100 * behind:.1f} ± "
        f"{100 * behind_half:.1f} behind the best in hindsight; of {len(cells)} combinations clearly better than fixed "
        f"0.1 in {better}, clearly worse in {worse}."
    )


def figure(outcomes: list[Outcome], numbers: Sequence[int]) -> Figure:
    """Draw each rule's loss behind the best in hindsight, against the demonstrations."""
    figure, axes = plots.new_figure(len(ENVIRONMENTS), len(PRIORS), (10, 8.4), sharex=True)
    places = np.arange(len(numbers))
    for axis, (environment, prior) in zip(axes.ravel(), itertools.product(ENVIRONMENTS, PRIORS), strict=True):
        for k, rule in enumerate((*RULES, *REFERENCES)):
            ends = []
            for number in numbers:
                mine = [
                    one
                    for one in outcomes
                    if (one.environment, one.prior, one.demonstrations) == (environment, prior, number)
                ]
                ends.append(interval(mine, rule, BEST))
            means, halves = 100 * np.array(ends).T
            axis.errorbar(
                places + 0.06 * (k - 4), means, halves, color=COLOURS[rule], label=rule, marker="o", markersize=3,
                linewidth=1.2, linestyle="-" if rule in RULES else ":", elinewidth=0.8,
            )  # fmt: skip
        axis.set_title(f"{environment}, {prior} prior")
        axis.set_xticks(places, [str(number) if number else "exact" for number in numbers])
        axis.axhline(0.0, color="black", linewidth=0.6)  # below it, a rival that needs no alpha beats every alpha
    for axis in axes[-1]:
        axis.set_xlabel("demonstrations")
    for axis in axes[:, 0]:
        axis.set_ylabel("loss behind hindsight (%)")
    plots.legend_below(figure, columns=5)
    return figure


PAGE = """# Choosing alpha

How much should the prior weigh? `select_alpha` has six rules; what each assumes is in `rlfd_gym/alpha/rules.py`. Here
is what all but "prior-error" are worth where the truth is known: {problems} problems from three environments (the
paper's inventory and gridworld, Gymnasium's FrozenLake), three experts, three priors and several numbers
of demonstrations, each combination with {seeds} seeds. This page is written by
`python scripts/study_alpha.py --docs docs`; no number in it is typed.

- Experts: *optimal* for the true cost; *noisy*, {noise} of its actions random; *misled*, optimal for the mean of the
  true cost and the true cost shuffled among the pairs.
- Priors: *good* and *half*, the true cost in 90% and 50% of the states and its mean in the others; *wrong*, the true
  cost shuffled among the pairs.
- Rules: "regret-budget:0.05" does not know how good the expert is; "regret-budget, told" has the expert's true regret
  as its budget; "discrepancy" has `occupancy_noise`, and 0 for an exact occupancy; "evidence" takes an exact
  occupancy for that of {exact} trajectories; "held-out" has nothing to hold out of it, and imitates.
- For comparison: the best α of the path in hindsight, which nobody can choose without the truth; α = 0.1, the paper's;
  the lowest α of the path, which imitates; and the highest, where the prior alone decides.
- Without any α: *majority*, the expert's most frequent action in each state; and *mixture*, half of the expert's
  occupancy and half of the prior's plan.

No rule that has only the data can see that a consistent expert is misled: its demonstrations are those of a good expert
under another cost. "evidence" and "held-out" see noise and a wrong prior, but a *misled* expert is taken at its word.

Loss of the apprentice under the true cost, in per cent: 0 is the optimal policy, 100 one that acts at random. Means
with 95% intervals over seeds.

{table}

Differences in loss, in percentage points (less is better):

{verdicts}

![Loss behind the best in hindsight](choosing_alpha.png)

Means over the three experts; bars are 95% intervals over seeds. Below zero, a rival that needs no α is better than
every α of the path. The panels have their own scales.
"""


if __name__ == "__main__":
    run_script(main)
