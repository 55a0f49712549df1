"""The sweep over α: suboptimal expert (5, 8, 15), true prior, α in [0, 0.5].

The experiment shows recovered prices, true costs, and the two propositions. T = 1e4, steps 1e-2,
N = 20. Two things determine what these steps give. A step moves cᵢ by the factor 1 - 2αηn, so the
steps are unstable for 2αηn > 2. And the start c₀ is forgotten at the rate 2αη per step, so the
average over T steps still contains the share (1 - exp(-x))/x, x = 2αηT, of c₀.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import spearmanr

from reproduction import experiment as ex
from reproduction import shop
from rlfd_gym import RLfDProblem
from rlfd_gym.report.plots import COLOURS, draw_band, legend_below, new_figure

T = 10_000
STABLE = 0.1  # a spread over α, relative to the expert's regret or to the range of policies, that counts as stable
TIE = 1e-6


def run(settings: ex.Settings) -> ex.Data:
    """Solve for each α in each way; the table has one row for each."""
    env = shop.paper_shop()
    mdp = env.mdp
    expert = mdp.optimal(env.cost_for(*shop.EXPERT)).occupancy
    alphas = np.linspace(0, 0.5, settings.pick(51, 11))
    small = [0.0005, 0.001, 0.002, 0.005]
    few = np.linspace(0, 0.5, 6)

    def solve(case: tuple[float, str]) -> dict[str, Any]:
        alpha, way = case
        problem = RLfDProblem(mdp, expert, env.cost, alpha)
        if way == ex.PAPER:
            seed = settings.seed + round(1000 * alpha)
            answer = ex.solve_as_paper(problem, settings, T, settings.pick(20, 5), seed=seed, n_jobs=1)
        elif way == ex.THEOREM:
            steps = settings.pick(20_000_000, 300_000)
            answer = ex.solve_by_theorem(
                problem, settings, settings.pick(4, 2), n_iterations=steps, n_jobs=1, progress_bar=False
            )
        else:
            answer = ex.solve_exactly(problem)
        return {"alpha": alpha, "way": way} | _record(env, expert, answer)

    cases = [(float(alpha), way) for way in ex.WAYS
             for alpha in {ex.PAPER: alphas, ex.THEOREM: few, ex.EXACT: sorted([*alphas, *small])}[way]]  # fmt: skip
    worst = -mdp.optimal(-env.cost).expected_cost
    return {
        "sweep": ex.table_of(settings.map(solve, cases, "α sweep")),
        "references": ex.table_of([{
            "optimum": mdp.optimal(env.cost).expected_cost, "expert": float(expert @ env.cost), "worst": worst,
            "n_pairs": mdp.n_pairs,
        }]),
    }  # fmt: skip


def _record(env: Any, expert: np.ndarray, answer: ex.Answer) -> dict[str, float]:
    mdp, cost = env.mdp, answer.cost
    policy = answer.policy(mdp)
    run_cost, run_half = ex.interval(answer.run_costs(mdp, env.cost))
    prices, half = ex.interval(shop.recovered(env, answer.costs))
    record: dict[str, float] = {}
    for name, mean, width in zip(shop.PRICES, prices, half, strict=True):
        record |= {name: mean, f"{name}_half": width}
    best = mdp.optimal(cost).expected_cost
    return record | {
        "true_cost": mdp.expected_cost(policy, env.cost), "run_cost": run_cost, "run_cost_half": run_half,
        "learned_expert": float(expert @ cost), "learned_apprentice": mdp.expected_cost(policy, cost),
        "learned_optimum": best, "learned_range": -mdp.optimal(-cost).expected_cost - best,
        "norm": float(np.linalg.norm(cost - env.cost)), "l1": float(np.abs(cost - env.cost).sum()), "gap": answer.gap,
    }  # fmt: skip


def draw_prices(data: ex.Data) -> Any:
    """Draw the recovered prices against α."""
    figure, axes = new_figure(1, 3, size=(8.4, 2.9))
    unstable = 1 / (ex.FIXED_STEP * data["references"]["n_pairs"][0])
    for axis, column, title, truth in zip(axes[0], shop.PRICES, shop.PRICE_NAMES, shop.TRUTH, strict=True):
        _draw_ways(axis, data["sweep"], column)
        axis.axhline(truth, color=COLOURS["truth"], linestyle="--", linewidth=1.1, label="truth = prior")
        axis.axvline(unstable, color=COLOURS["random"], linestyle=":", linewidth=1.1, label="2αηn = 2")
        axis.set_title(title)
        axis.set_xlabel("α")
    axes[0, 0].set_ylabel("recovered price (money per unit)")
    legend_below(figure, 5)
    return figure


def draw_costs(data: ex.Data) -> Any:
    """Draw the true expected cost of apprentice, expert and optimum against α.

    Small α are shown on a second, logarithmic axis.
    """
    figure, axes = new_figure(1, 2, size=(8.4, 3.1), sharey=True)
    reference = data["references"]
    for axis in axes[0]:
        for name in ("optimum", "expert"):
            axis.axhline(reference[name][0], color=COLOURS[name], linestyle="--", linewidth=1.2, label=name)
    for way in (ex.EXACT, ex.PAPER, ex.THEOREM):
        own = ex.rows(data["sweep"], way=way)
        marker = {"marker": "s", "markersize": 4, "linestyle": "none"} if way == ex.THEOREM else {}
        axes[0, 0].plot(own["alpha"], own["true_cost"], color=COLOURS[way], label=f"apprentice, {way}", **marker)
    own = ex.rows(data["sweep"], way=ex.PAPER)
    low, high = own["run_cost"] - own["run_cost_half"], own["run_cost"] + own["run_cost_half"]
    draw_band(axes[0, 0], own["alpha"], own["run_cost"], low, high, color=COLOURS[ex.PAPER], linestyle=":",
              label=f"{ex.PAPER}, mean of the runs' own policies")  # fmt: skip
    exact = ex.rows(data["sweep"], way=ex.EXACT)
    axes[0, 1].semilogx(exact["alpha"], exact["true_cost"], color=COLOURS[ex.EXACT], marker="o", markersize=3)
    axes[0, 0].set_xlabel("α")
    axes[0, 1].set_xlabel("α (exact solutions, logarithmic)")
    axes[0, 0].set_ylabel("true expected cost in [-1, 1]")
    legend_below(figure, 3)
    return figure


def draw_propositions(data: ex.Data) -> Any:
    """Draw the trade-off along α.

    The left axes show costs under the learned cost, the right axes the distance to the prior.
    """
    figure, axes = new_figure(1, 2, size=(9.0, 3.3), sharey=True)
    twins = []
    for axis, way in zip(axes[0], (ex.PAPER, ex.EXACT), strict=True):
        table = ex.rows(data["sweep"], way=way)
        for column, name in (("expert", "expert"), ("apprentice", "apprentice"), ("optimum", "optimum")):
            style = {"expert": "-", "apprentice": "-", "optimum": "--"}[name]
            axis.plot(table["alpha"], table[f"learned_{column}"], color=COLOURS[name], linestyle=style, label=name)
        twin = axis.twinx()
        twin.spines["right"].set_visible(True)
        twin.grid(False)
        twin.plot(table["alpha"], table["norm"], color=COLOURS["prior"], linestyle="-.", label="‖ĉ - c‖ (right axis)")
        twin.set_ylim(bottom=0)
        twins.append(twin)
        axis.set_title(way)
        axis.set_xlabel("α")
    top = max(twin.get_ylim()[1] for twin in twins)
    for twin in twins:
        twin.set_ylim(0, top)
    axes[0, 0].set_ylabel("expected cost under the learned cost")
    twins[1].set_ylabel("distance of the learned cost to the prior")
    legend_below(figure, 4)
    return figure


def _draw_ways(axis: Any, table: ex.Table, column: str) -> None:
    for way, marker in ((ex.EXACT, ""), (ex.PAPER, ""), (ex.THEOREM, "s")):
        own = ex.rows(table, way=way)
        width = own[f"{column}_half"]
        options = {"color": COLOURS[way], "label": way}
        if marker:
            axis.errorbar(own["alpha"], own[column], width, marker=marker, markersize=4, capsize=2, linestyle="none",
                          zorder=5, **options)  # fmt: skip
        else:
            wide = np.nan_to_num(width)
            draw_band(axis, own["alpha"], own[column], own[column] - wide, own[column] + wide, **options)


def _trend(table: ex.Table, column: str) -> float:
    """Return the rank correlation of a column with α."""
    return float(spearmanr(table["alpha"], table[column]).statistic)


def claims(data: ex.Data) -> list[ex.Claim]:
    """Judge what the paper says about α."""
    reference = {name: float(column[0]) for name, column in data["references"].items()}
    regret = reference["expert"] - reference["optimum"]
    tables = {way: ex.rows(data["sweep"], way=way) for way in (ex.PAPER, ex.EXACT)}
    paper, exact = tables[ex.PAPER], tables[ex.EXACT]
    trend = {way: _trend(t, "l1") for way, t in tables.items()}
    unstable = 1 / (ex.FIXED_STEP * reference["n_pairs"])
    calm = {name: column[paper["alpha"] < unstable] for name, column in paper.items()}
    better = {way: t["true_cost"] < reference["expert"] - TIE for way, t in tables.items()}
    positive = exact["alpha"] > 0
    from_zero = bool(better[ex.EXACT][positive].all() and better[ex.PAPER][paper["alpha"] > 0].all())
    spread = {way: np.ptp(t["true_cost"]) / regret for way, t in tables.items()}
    gap = {way: np.round(t["learned_expert"] - t["learned_apprentice"], 6) + 0.0 for way, t in tables.items()}
    least = {way: own.min() for way, own in gap.items()}
    gap_trend = {way: float(spearmanr(t["alpha"], gap[way]).statistic) for way, t in tables.items()}
    small = {way: abs(gap[way][t["alpha"] == 0][0]) / max(np.abs(gap[way]).max(), 1e-12) for way, t in tables.items()}
    norm_trend = {way: _trend(t, "norm") for way, t in tables.items()}
    near = {way: ((t["learned_expert"] - t["learned_optimum"]) / t["learned_range"]).max() for way, t in tables.items()}
    drift = {way: np.ptp(t["learned_apprentice"][t["alpha"] > 0]) / regret for way, t in tables.items()}
    low = np.argmin(np.abs(exact["alpha"] - 0.001))
    at_small = ", ".join(f"{exact[name][low]:.2f}" for name in shop.PRICES)
    return [
        ex.Claim(
            "fig:inventory_alpha_vs_cost", "A true prior helps to recover the true cost as α increases.",
            f"rank correlation of the ℓ1 error with α {trend[ex.PAPER]:.2f}; below α = {unstable:.2f} "
            f"{_trend(calm, 'l1'):.2f}",
            f"{trend[ex.EXACT]:.2f}", ex.judge(
                trend[ex.PAPER] < -0.5, trend[ex.EXACT] < -0.5,
                f"the steps are stable, α < 1/(ηn) = {unstable:.2f}, or the solve exact",
                max(_trend(calm, "l1"), trend[ex.EXACT]) < -0.5,
            ),
            f"Exactly solved, α = {exact['alpha'][low]:g} already gives ({at_small}); in the paper's setting the start "
            f"is forgotten at the rate 2αη, and past α = {unstable:.2f} its steps are unstable.",
        ),
        ex.Claim(
            "fig:inventory_discounted_vs_alpha", "The apprentice outperforms the expert for every α.",
            f"at {better[ex.PAPER].mean():.0%} of the values of α", f"at {better[ex.EXACT].mean():.0%}",
            ex.judge(bool(better[ex.PAPER].all()), bool(better[ex.EXACT].all()), "α > 0", from_zero),
            "At α = 0 the only optimal occupancy is the expert's own; an apprentice who does better there was not "
            "solved for.",
        ),
        ex.Claim(
            "fig:inventory_discounted_vs_alpha", "The learned policy is robust to variations in α.",
            f"true cost varies by {spread[ex.PAPER]:.0%} of the expert's regret", f"by {spread[ex.EXACT]:.0%}",
            ex.judge(spread[ex.PAPER] <= STABLE, spread[ex.EXACT] <= STABLE),
            f"Robust: at most {STABLE:.0%}. α is what moves the optimum from the expert towards the prior; steps that "
            f"leave gaps of {paper['gap'].min():.1f} to {paper['gap'].max():.1f} hide it.",
        ),
        ex.Claim(
            "fig:inventory_alpha_proposition", "As α increases, the distance to the prior shrinks.",
            f"rank correlation {norm_trend[ex.PAPER]:.2f}", f"{norm_trend[ex.EXACT]:.2f}",
            ex.judge(norm_trend[ex.PAPER] < -0.5, norm_trend[ex.EXACT] < -0.5,
                     f"the steps are stable, α < {unstable:.2f}, or the solve exact",
                     max(_trend(calm, "norm"), norm_trend[ex.EXACT]) < -0.5),
            "For exact solutions this is a theorem (a larger weight never increases its own term).",
        ),
        ex.Claim(
            "fig:inventory_alpha_proposition",
            "As α increases, the gap between expert and apprentice under the learned cost widens.",
            f"from {gap[ex.PAPER][0]:.2f} to {gap[ex.PAPER][-1]:.2f}",
            f"from {gap[ex.EXACT][0]:.3f} to {gap[ex.EXACT][-1]:.3f}",
            ex.judge(*(gap_trend[way] > 0.5 and least[way] > -TIE for way in (ex.PAPER, ex.EXACT))),
            "ρ(expert) - ρ(apprentice) under the learned cost; it cannot be negative for an apprentice who is optimal "
            f"for that cost, and in the paper's setting it is as low as {least[ex.PAPER]:.2f}.",
        ),
        ex.Claim(
            "fig:inventory_alpha_proposition", "When α is small, that gap is negligible.",
            f"at α = 0, {small[ex.PAPER]:.0%} of its largest value", f"{small[ex.EXACT]:.0%}",
            ex.judge(small[ex.PAPER] < 0.1, small[ex.EXACT] < 0.1),
            "Negligible: below a tenth of its largest value over α.",
        ),
        ex.Claim(
            "fig:inventory_alpha_proposition", "In any case the learned cost makes the expert nearly optimal.",
            f"largest regret {near[ex.PAPER]:.0%} of the range over policies", f"{near[ex.EXACT]:.0%}",
            ex.judge(near[ex.PAPER] <= STABLE, near[ex.EXACT] <= STABLE),
            f"Nearly optimal: at most {STABLE:.0%}. Under the true cost itself this expert's regret is "
            f"{regret / (reference['worst'] - reference['optimum']):.0%} of that range.",
        ),
        ex.Claim(
            "fig:inventory_alpha_proposition", "The apprentice's expected cost under the learned cost is stable in α.",
            f"varies by {drift[ex.PAPER]:.0%} of the expert's true regret", f"by {drift[ex.EXACT]:.0%}",
            ex.judge(drift[ex.PAPER] <= STABLE, drift[ex.EXACT] <= STABLE),
            f"Stable: at most {STABLE:.0%}, over α > 0.",
        ),
    ]  # fmt: skip


def notes(data: ex.Data) -> list[str]:
    """Say whether the two formulas of the module's docstring explain the paper's setting."""
    table = ex.rows(data["sweep"], way=ex.PAPER)
    some = np.argmin(np.abs(table["alpha"] - 0.1))
    x = 2 * table["alpha"][some] * ex.FIXED_STEP * T
    share = -np.expm1(-x) / x
    unstable = 1 / (ex.FIXED_STEP * data["references"]["n_pairs"][0])
    after = table["l1"][table["alpha"] > unstable].mean()
    before = table["l1"][(table["alpha"] > unstable / 2) & (table["alpha"] < unstable)].mean()
    return [
        f"At α = {table['alpha'][some]:g} the average of T = {T} steps still contains {share:.0%} of the random start "
        f"((1-exp(-x))/x with x = 2αηT = {x:.0f}). The mean ℓ1 distance to the true cost is {before:.1f} for α in "
        f"({unstable / 2:.2f}, {unstable:.2f}) and {after:.1f} beyond, where 2αηn > 2 makes single steps overshoot."
    ]


EXPERIMENT = ex.Experiment(
    "alpha-sweep",
    "Inventory: suboptimal expert, true prior, α from 0 to 0.5",
    run,
    {"alpha-prices": draw_prices, "alpha-costs": draw_costs, "alpha-propositions": draw_propositions},
    claims,
    {
        "fig:inventory_alpha_vs_cost": "alpha-prices",
        "fig:inventory_discounted_vs_alpha": "alpha-costs",
        "fig:inventory_alpha_proposition": "alpha-propositions",
    },
    notes,
)
