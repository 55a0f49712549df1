"""Compare the rules that choose alpha, on many problems whose true cost is known.

    python scripts/study_alpha.py                # 486 problems: 13.5 minutes on two busy cores
    python scripts/study_alpha.py --quick        # 54 problems, for a look
    python scripts/study_alpha.py --docs docs    # also rewrites docs/choosing_alpha.md and .png
    python scripts/study_alpha.py --rows results/alpha/choosing_alpha.csv    # the page again, from rows

Environments, experts, priors and numbers of demonstrations are crossed, and every combination is
repeated over seeds, which draw the prior, the misled expert and the demonstrations. The script
writes `choosing_alpha.csv`, with one row per problem, rule and reading, `choosing_alpha.md` and
`choosing_alpha.png`.
"""

from __future__ import annotations

import argparse
import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from rlfd_gym.alpha.soft_rules import evidence_of
from rlfd_gym.baselines import bayesian_irl, broil, drex, majority, max_margin, mixture, spibb
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA
from rlfd_gym.problem.solution import Apprentice
from rlfd_gym.report import check_folder, mean_and_margin, plots, read_csv, run_script, write, write_csv

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENVIRONMENTS = {
    "inventory": lambda: gym.make("rlfd_gym/Inventory-v0"),
    "gridworld": lambda: gym.make("rlfd_gym/WindyGridworld-v0", height=6, width=6),
    "FrozenLake": lambda: gym.make("FrozenLake-v1"),
}
DISCOUNTS = {"inventory": None, "gridworld": None, "FrozenLake": 0.95}
EXPERTS = ("optimal", "noisy", "misled")
PRIORS = ("good", "half", "wrong")
DEMONSTRATIONS = (2, 10, 100)
NOISE = 0.3
TAIL = 1e-3  # trajectories continue until only this much of the discounted mass is left
PAPER_ALPHA = 0.1  # of the paper's experiments, and of the rivals that take an α
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
READINGS = {"mixture": "occupancy", "mode": "mode"}
BEST = "best α in hindsight"
POINT = "point "  # of the path: a candidate for the best α in hindsight, and no rule


def fixed(alpha: float) -> str:
    """Return the name of the rule that always takes the same α."""
    return f"α = {alpha:g}"


FIXED = tuple(fixed(alpha) for alpha in ALPHAS)
DEFAULT = fixed(DEFAULT_ALPHA)
TOLD = ("regret-budget, told", "prior-error, told")
DATA = ("regret-budget:0.05", "discrepancy", "evidence", "held-out", "l-curve")
ENDS = ("imitate", "prior alone")
LINES = ("majority", "mixture")
RIVALS = ("SPIBB", "BROIL", "D-REX", "max. margin near prior", "Bayesian IRL")
GROUPS = {
    "a fixed α": FIXED,
    "rules that are told something true": TOLD,
    "rules that see the data only": DATA,
    "the two ends": ENDS,
    "rivals": (*LINES, *RIVALS),
}


class Problem(NamedTuple):
    """One problem of the study."""

    environment: str
    expert: str
    prior: str
    demonstrations: int
    seed: int


class Outcome(NamedTuple):
    """One row of the result: what one rule loses on one problem, in one reading."""

    problem: Problem
    rule: str
    reading: str
    alpha: float
    """The α that was chosen; `nan` for rivals that have none."""
    loss: float
    """The apprentice's loss under the true cost: 0 for the optimum, 1 for acting at random."""


@dataclass(frozen=True)
class Options:
    """The options of the command line."""

    seeds: int
    points: int
    jobs: int
    quick: bool
    rows: Path | None
    out: Path
    docs: Path | None


def main() -> None:
    """Run the study, and print and write its results."""
    options = parse()
    outcomes = read_rows(options.rows) if options.rows else run(options)
    page, picture = report(outcomes), plots.png(figure(outcomes))
    print(page)
    for folder in (options.out, options.docs):
        if folder is not None:
            write(folder / "choosing_alpha.md", page.encode())
            write(folder / "choosing_alpha.png", picture)
    print(f"written: {options.out / 'choosing_alpha.csv'}, and .md and .png next to it")


def run(options: Options) -> list[Outcome]:
    """Solve all problems, and write the rows."""
    numbers = (10,) if options.quick else DEMONSTRATIONS
    problems = [
        Problem(*one) for one in itertools.product(ENVIRONMENTS, EXPERTS, PRIORS, numbers, range(options.seeds))
    ]
    work = Parallel(n_jobs=options.jobs, return_as="generator")(
        delayed(study)(problem, options.points) for problem in problems
    )
    outcomes = [one for some in tqdm(work, total=len(problems), desc="problems", unit="problem") for one in some]
    write_rows(options.out / "choosing_alpha.csv", outcomes)
    return outcomes


def write_rows(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the rows, from which `--rows` makes the page again."""
    write_csv(path, [*Problem._fields, *Outcome._fields[1:]], ([*one.problem, *one[1:]] for one in outcomes))


def read_rows(path: Path) -> list[Outcome]:
    """Return the rows that an earlier run has written."""
    _, rows = read_csv(path)
    return [
        Outcome(Problem(*row[:3], int(row[3]), int(row[4])), row[5], row[6], float(row[7]), float(row[8]))
        for row in rows
    ]


def parse() -> Options:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6, help="repetitions of every combination (default 6)")
    parser.add_argument("--points", type=int, default=16, help="points of each path (default 16)")
    parser.add_argument("--jobs", type=int, default=2, help="problems at a time (default 2)")
    parser.add_argument("--quick", action="store_true", help="two seeds, ten demonstrations, short paths")
    parser.add_argument("--rows", type=Path, help="choosing_alpha.csv of an earlier run, to write its page again")
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
    seeds, points = (2, 8) if given.quick else (given.seeds, given.points)
    return Options(seeds, points, given.jobs, given.quick, given.rows, given.out, given.docs)


def study(problem: Problem, n_points: int) -> list[Outcome]:
    """Return the outcome of every rule on one problem, in both readings."""
    env, seed = ENVIRONMENTS[problem.environment](), problem.seed
    mdp, truth = TabularMDP.from_env(env, discount=DISCOUNTS[problem.environment]), cost_of_env(env)
    policy, guess = expert_policy(mdp, truth, problem.expert, seed), prior_cost(mdp, truth, problem.prior, seed)
    walks = demonstrate(mdp, policy, problem.demonstrations, mdp.horizon(TAIL), seed)
    optimum, random = mdp.optimal(truth).expected_cost, mdp.expected_cost(mdp.uniform_policy(), truth)
    spread = -mdp.optimal(-truth).expected_cost - optimum
    told = (mdp.expected_cost(policy, truth) - optimum) / spread, float(np.linalg.norm(truth - guess))
    learned = {rule: (alpha, one) for rule, alpha, one in learn(mdp, walks, guess, told, seed, n_points)}

    def outcome(rule: str, reading: str, alpha: float, one: Apprentice) -> Outcome:
        loss = (mdp.expected_cost(one.read(mdp, READINGS[reading]), truth) - optimum) / (random - optimum)
        return Outcome(problem, rule, reading, alpha, loss)

    found = []
    for reading in READINGS:
        every = [outcome(rule, reading, *answer) for rule, answer in learned.items()]
        best = min((one for one in every if not np.isnan(one.alpha)), key=lambda one: one.loss)
        found += [one for one in every if not one.rule.startswith(POINT)]
        found.append(best._replace(rule=BEST))
    return found


def learn(
    mdp: TabularMDP, walks: Any, guess: np.ndarray, told: tuple[float, float], seed: int, n_points: int
) -> Iterator[tuple[str, float, Apprentice]]:
    """Yield what each rule and each rival learns: its name, its α if it has one, and the apprentice.

    `told` has what two of the rules are told: the expert's regret, as a share of the cost range,
    and the distance of the prior from the truth.
    """
    occupancy = occupancy_from_demonstrations(walks, mdp, prior=guess)  # as the trainer does
    noise = occupancy_noise(walks, mdp, prior=guess, n_bootstrap=60, seed=seed)
    path = alpha_path(RLfDProblem(mdp, occupancy, guess), n_points=n_points)
    rules: dict[str, tuple[str, dict[str, Any]]] = {
        "regret-budget, told": ("regret-budget", {"budget": min(max(told[0], 0.0), 1.0)}),
        "prior-error, told": (f"prior-error:{told[1]}", {}),
        "discrepancy": ("discrepancy", {"noise": noise}),
    }
    for name in (*TOLD, *DATA):
        rule, options = rules.get(name, (name, {"demonstrations": walks}))
        choice = select_alpha(path, rule, **options)
        yield name, choice.alpha, choice.solution
    for alpha in ALPHAS:
        yield fixed(alpha), alpha, solve_exact(path.problem.with_alpha(alpha))
    for k, point in enumerate(path):
        yield f"{POINT}{k}", point.alpha, point.solution
    yield "imitate", path[0].alpha, path[0].solution
    yield "prior alone", path[-1].alpha, path[-1].solution
    decisions = len(walks) / (1 - mdp.discount)  # as "evidence" counts them
    found = evidence_of(path, decisions)
    rivals = {
        "majority": majority(mdp, walks),
        "mixture": mixture(mdp, occupancy, guess),
        "SPIBB": spibb(mdp, walks, guess),
        "BROIL": broil(mdp, occupancy, guess, seed=seed),
        "D-REX": drex(mdp, occupancy, guess, alpha=PAPER_ALPHA),
        "max. margin near prior": max_margin(mdp, occupancy, prior=guess, regularisation=2 * PAPER_ALPHA),
        "Bayesian IRL": bayesian_irl(
            mdp, occupancy, guess, rationality=found.rationality, prior_spread=found.prior_spread, n_decisions=decisions
        ),
    }
    for name, rival in rivals.items():
        yield name, float("nan"), rival


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


@dataclass(frozen=True)
class Losses:
    """The losses of a run, by rule and reading, and by problem."""

    by_rule: dict[tuple[str, str], dict[Problem, float]]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Losses:
        """Sort the rows of a run."""
        by_rule: dict[tuple[str, str], dict[Problem, float]] = {}
        for one in outcomes:
            by_rule.setdefault((one.rule, one.reading), {})[one.problem] = one.loss
        return cls(by_rule)

    @property
    def problems(self) -> list[Problem]:
        """All problems."""
        return list(next(iter(self.by_rule.values())))

    def interval(
        self, rule: str, reading: str, minus: tuple[str, str] | None = None, **only: str | int
    ) -> tuple[float, float]:
        """Return the mean of a rule's loss and the half-width of its 95% interval, in per cent.

        With `minus`, the loss of that other rule and reading is subtracted. `only` selects problems
        by their fields. Seeds are independent of each other, but problems that share a seed are
        not: each seed gives one number.
        """
        seeds: dict[int, list[float]] = {}
        for problem, loss in self.by_rule[rule, reading].items():
            if only.items() <= problem._asdict().items():
                less = 0.0 if minus is None else self.by_rule[minus][problem]
                seeds.setdefault(problem.seed, []).append(100 * (loss - less))
        mean, margin = mean_and_margin([float(np.mean(some)) for some in seeds.values()])
        assert margin is not None  # there are at least two seeds
        return mean, margin


def report(outcomes: Sequence[Outcome]) -> str:
    """Return the page."""
    losses = Losses.of(outcomes)
    problems = losses.problems
    numbers = sorted({problem.demonstrations for problem in problems})
    return PAGE.format(
        problems=len(problems),
        seeds=len({problem.seed for problem in problems}),
        numbers=" or ".join(map(str, numbers)),
        noise=f"{NOISE:.0%}",
        default=f"{DEFAULT_ALPHA:g}",
        overall=overall(losses),
        parts=parts(losses, numbers),
        findings=findings(losses),
    )


def overall(losses: Losses) -> str:
    """Return the table of all rules over all problems, in both readings, and against the default."""
    lines = [
        "| | mixture | mode | mixture against the default | mode against the default |",
        "|---|---:|---:|---:|---:|",
    ]
    for group, rules in {"": (BEST,), **GROUPS}.items():
        lines += [f"| *{group}* | | | | |"] if group else []
        for rule in rules:
            means = ["{:.1f} ± {:.1f}".format(*losses.interval(rule, reading)) for reading in READINGS]
            against = ["{:+.1f} ± {:.1f}".format(*losses.interval(rule, x, (DEFAULT, x))) for x in READINGS]
            lines.append(
                f"| {named(rule)} | " + " | ".join([*means, *(["", ""] if rule == DEFAULT else against)]) + " |"
            )
    return "\n".join(lines)


def named(rule: str) -> str:
    """Return the name of a rule in a table."""
    return f"**{rule}, the default**" if rule == DEFAULT else rule


def findings(losses: Losses) -> str:
    """Return what the numbers say, as a list; the words were chosen for a run of six seeds."""

    def by(rule: str, reading: str = "mixture", than: str = DEFAULT, than_reading: str = "", **only: str) -> str:
        mean, margin = losses.interval(rule, reading, (than, than_reading or reading), **only)
        return f"{mean:+.1f} ± {margin:.1f}"

    least = {reading: min(FIXED, key=lambda rule: losses.interval(rule, reading)[0]) for reading in READINGS}
    paper = fixed(PAPER_ALPHA)
    text = FINDINGS.format(
        default=DEFAULT,
        paper=paper,
        least_mixture=least["mixture"],
        least_mode=least["mode"],
        paper_mixture=by(paper),
        paper_mode=by(paper, "mode"),
        paper_by_prior=", ".join(f"{by(paper, prior=prior)} with a {prior} one" for prior in PRIORS),
        large=FIXED[-1],
        large_good=by(FIXED[-1], prior="good"),
        imitate=by("imitate"),
        imitate_good=by("imitate", prior="good"),
        rules="; ".join(f'"{rule}" {by(rule)} and {by(rule, "mode")}' for rule in DATA),
        error=by("prior-error, told"),
        regret_misled=by("regret-budget, told", expert="misled"),
        regret_noisy=by("regret-budget, told", "mode", expert="noisy"),
        evidence_misled=by("evidence", expert="misled"),
        held_misled=by("held-out", expert="misled"),
        majority_misled=by("majority", expert="misled"),
        mode_noisy=by(DEFAULT, "mode", DEFAULT, "mixture", expert="noisy"),
        mode_misled=by(DEFAULT, "mode", DEFAULT, "mixture", expert="misled"),
        majority_noisy=by("majority", "mode", expert="noisy"),
        evidence_noisy=by("evidence", "mode", expert="noisy"),
        held_noisy=by("held-out", "mode", expert="noisy"),
        bayes_mixture=by("Bayesian IRL"),
        bayes_mode=by("Bayesian IRL", "mode"),
        hindsight=by(BEST),
    )
    head, *items = text.split("\n- ")
    wrapped = [textwrap.fill("- " + " ".join(item.split()), 118, subsequent_indent="  ") for item in items]
    return "\n".join([head, *wrapped])


def parts(losses: Losses, numbers: Sequence[int]) -> str:
    """Return the table by kind of expert, kind of prior and number of demonstrations."""
    columns: dict[str, dict[str, Any]] = {f"{kind} expert": {"expert": kind} for kind in EXPERTS}
    columns |= {f"{kind} prior": {"prior": kind} for kind in PRIORS}
    columns |= {f"{number} shown": {"demonstrations": number} for number in numbers}
    lines = ["| | " + " | ".join(columns) + " |", "|---" + "|---:" * len(columns) + "|"]
    for rule in (BEST, *itertools.chain(*GROUPS.values())):
        cells = [
            " / ".join(f"{losses.interval(rule, reading, **only)[0]:.0f}" for reading in READINGS)
            for only in columns.values()
        ]
        lines.append(f"| {named(rule)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def figure(outcomes: Sequence[Outcome]) -> Figure:
    """Draw each rule's loss in both readings, a panel for each kind of expert and prior."""
    losses = Losses.of(outcomes)
    colours = (plots.GREY, plots.GREEN, plots.BLUE, plots.BLACK, plots.VERMILION)
    groups = [[rule for rule in rules if rule not in LINES] for rules in GROUPS.values()]
    edges = np.cumsum([0, *map(len, groups)])
    figure, axes = plots.new_figure(len(EXPERTS), len(PRIORS), (10.5, 12), sharey=True)
    for axis, (expert, prior) in zip(axes.ravel(), itertools.product(EXPERTS, PRIORS), strict=True):
        only = {"expert": expert, "prior": prior}
        for rules, first, colour in zip(groups, edges[:-1], colours, strict=True):
            for reading, shift, face in (("mixture", -0.16, colour), ("mode", 0.16, "white")):
                ends = np.array([losses.interval(rule, reading, **only) for rule in rules]).T
                axis.errorbar(
                    ends[0], first + np.arange(len(rules)) + shift, xerr=ends[1], color=colour, marker="o",
                    markersize=4, markerfacecolor=face, linestyle="none", elinewidth=0.7, zorder=3,
                )  # fmt: skip
            axis.axhline(first - 0.5, color="black", linewidth=0.3)
        for rule, reading, style in ((BEST, "mixture", ":"), ("majority", "mode", "-"), ("mixture", "mixture", "--")):
            mean, _ = losses.interval(rule, reading, **only)
            axis.axvline(mean, color=plots.ORANGE, linestyle=style, linewidth=1.3, label=rule, zorder=1)
        axis.set_title(f"{expert} expert, {prior} prior")
        axis.set_yticks(np.arange(edges[-1]), list(itertools.chain(*groups)))
        axis.set_ylim(edges[-1] - 0.5, -0.5)
    for axis in axes[-1]:
        axis.set_xlabel("loss (%)")
    for name, face in (("as a mixture", plots.BLACK), ("as a mode", "white")):
        axes[0, 0].plot([], [], "o", color=plots.BLACK, markersize=4, markerfacecolor=face, label=name)
    plots.legend_below(figure, columns=5)
    return figure


FINDINGS = """Differences are in percentage points of loss against {default}, in the same reading; minus is better.

- **The default.** Of the fixed values, {least_mixture} loses least as a mixture and {least_mode} as a mode. The paper's
  {paper} is {paper_mixture} as a mixture and {paper_mode} as a mode. The default is therefore {default} everywhere: in
  `RLfDProblem`, `RLfDTrainer` and `rlfd learn`. (The problems that chose it also measure it here, which flatters it.)
- **It is a cautious choice, for priors of which a third are wrong.** {paper} against it is {paper_by_prior}. If you
  know that your prior is good, take a larger α: {large} is then {large_good}. On average over all priors the default is
  hardly different from imitating ({imitate} for the smallest α), with a good prior it is better ({imitate_good}).
- **No rule from the data is a clear improvement.** Mixture and mode: {rules}. "held-out" is the best of them; what it
  gains is little, and as a mode within its interval, for a path of solutions and fits to every fold. One number is
  simpler.
- **No rule from data alone can see a consistent, misled expert.** Its demonstrations are those of a good expert under
  another cost. For misled experts "evidence" is {evidence_misled}, "held-out" {held_misled}, the majority action
  {majority_misled}. What helps is to know how bad the expert is: "regret-budget" with its true regret is
  {regret_misled}. But where the expert errs at random the same budget, read as a mode, is {regret_noisy}.
- **To know how far the prior is off helps a little**, "prior-error" with the true distance {error}. A distance says
  nothing about where the prior is wrong; ranges of prices say more ([guarantees](guarantees.md)).
- **Errors at random are mended by the mode, not by α.** For the noisy expert the default read as a mode is {mode_noisy}
  against the mixture; for the misled one {mode_misled}. As a mode for the noisy expert, the majority action,
  which acts at random in states that were not shown, is {majority_noisy}; "evidence" is {evidence_noisy} and "held-out"
  {held_noisy}.
- **Bayesian IRL**, which plans with the cost that it learns, is {bayes_mixture} against the default as a mixture, and
  {bayes_mode} against its mode.
- **α depends on the size of the problem.** An apprentice is μ_E + 2α(c - ĉ) where the box is not active, and the
  entries of μ_E are smaller the more pairs there are, so the same α then weighs a prior more. Here there are 64 to
  144 pairs.
- Much is left: the best α in hindsight is {hindsight}."""


PAGE = """# What α was measured to do

How much should the prior weigh against the expert? That depends on what you know:

| what you know | what to use |
|---|---|
| how wrong your prior is at most | ranges: the belief `Prices`, without α; a distance: `"prior-error:DISTANCE"` |
| that your expert means well and errs at random | the mode, `policy_kind="mode"`, with the default α |
| nothing of the kind | the default, α = {default} |

(And if you know how bad your expert is at most: `"regret-budget:SHARE"`.)

The rest of this page is where that comes from: {problems} problems whose true cost is known. They are three
environments (the paper's inventory, its gridworld with 6 × 6 cells, Gymnasium's FrozenLake), three experts, three
priors and {numbers} demonstrations, each combination with {seeds} seeds. `python scripts/study_alpha.py --docs docs`
writes this page; no result in it is typed.

- Experts: *optimal* for the true cost; *noisy*, {noise} of its actions random; *misled*, optimal for the mean of the
  true cost and the true cost shuffled among the pairs.
- Priors: *good* and *half*, the true cost in 90% and 50% of the states and its mean in the others; *wrong*, the true
  cost shuffled among the pairs.
- Readings: the *mixture* is the apprentice's own policy, which may mix actions; the *mode* takes the most frequent
  action of each state.
- Loss, in per cent: 0 is the optimal policy, 100 one that acts at random. Means with 95% intervals over seeds.

## What the study says

{findings}

## All problems

{overall}

- *Told*: "regret-budget" has the expert's true regret as its budget, "prior-error" the true distance of the prior from
  the truth. What each rule does is in `rlfd_gym/alpha/rules.py`.
- *The two ends* are the smallest α of the path, which imitates, and the largest, where the prior alone decides. *Best
  α in hindsight* is the best of all α here, which nobody can choose without the truth.
- *Rivals*: the majority action sees no prior, and acts at random where the expert was not seen. The mixture has half
  of the expert's occupancy and half of the prior's plan. The others have the settings of the comparison, D-REX and
  max. margin with the paper's α = 0.1. The last three plan with a learned cost, so their two readings are nearly the
  same.

## Where each is good

Means, mixture / mode:

{parts}

![Loss for each kind of expert and prior](choosing_alpha.png)

Filled: as a mixture; hollow: as a mode. Bars are 95% intervals over seeds. Orange lines: the majority action, the
mixture of expert and plan, and the best α in hindsight (as a mixture). The panels have their own scales.
"""


if __name__ == "__main__":
    run_script(main)
