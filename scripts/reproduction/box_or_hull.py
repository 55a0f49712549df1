"""Box against hull: SMD-RLfD against SMD-H.

SMD-H seeks the cost among mixtures of ordering, holding and sales. α = 0, optimal expert, T = 1e4,
N = 100, steps 1e-2; the capacity M goes from 5 to 29. The basis is scaled into the unit box. For
comparison, SMD-H is also run on the unscaled features, with entries up to 2M, as in the published
code.

At α = 0 an exact solution of either problem is any occupancy that its costs cannot distinguish
from the expert's: on the box μ_E alone, on the hull the solution of the linear program of
`rlfd_gym.baselines.lpal`. Because the true cost is a mixture of all columns and the expert is
optimal for it, every solution has the expert's true cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction import experiment as ex
from reproduction import shop
from reproduction.published_code import unscaled_hull
from rlfd_gym import RLfDProblem, solve_exact
from rlfd_gym.baselines import lpal, scale_basis, solve_smd_hull
from rlfd_gym.report.plots import BLUE, COLOURS, SKY, draw_band, legend_below, new_figure

T = 10_000
SMALL, LARGE = 10, 20  # capacities up to, and from, which the state space counts as small and as large
SIMILAR = 0.05  # a difference in regret, as a share of the regret of random orders, that counts as none
FASTER = 0.9  # faster: at most this multiple of the other's remaining share of the gap
BOX, HULL, UNSCALED = "box", "hull", "hull, basis not scaled"


def run(settings: ex.Settings) -> ex.Data:
    """Measure the convergence at M = 15, and the true cost of the apprentice against M."""
    sizes = list(range(5, 30, settings.pick(1, 8)))
    few = [5, 13, 21, 29]
    n_runs = settings.pick(100, 10)

    def solve(case: tuple[int, str, str]) -> dict[str, Any]:
        size, domain, way = case
        env = shop.paper_shop(max_inventory=size, cost_scale=None)
        mdp = env.mdp
        expert = mdp.optimal(env.cost)
        problem = RLfDProblem(mdp, expert.occupancy)
        basis = scale_basis(env.features)
        gap = np.nan
        if way == ex.EXACT:
            # at α = 0 the hull is LPAL's game
            exact = solve_exact(problem) if domain == BOX else lpal(mdp, expert.occupancy, basis)
            occupancies, gap = exact.occupancy[None], exact.duality_gap
        elif domain == UNSCALED:
            occupancies = unscaled_hull(problem, env.features, T, n_runs, ex.FIXED_STEP, settings.seed)
        elif domain == BOX:
            if way == ex.PAPER:
                answer = ex.solve_as_paper(problem, settings, T, n_runs, n_jobs=1)
            else:
                steps = settings.pick(5_000_000, 300_000)
                answer = ex.solve_by_theorem(problem, settings, 4, n_iterations=steps, n_jobs=1, progress_bar=False)
            occupancies, gap = answer.occupancies, answer.gap
        else:
            paper = way == ex.PAPER
            steps = T if paper else settings.pick(5_000_000, 300_000)
            solution = solve_smd_hull(
                problem,
                basis,
                steps,
                ex.FIXED_STEP if paper else None,
                n_runs=n_runs if paper else 4,
                seed=settings.seed,
                variant="paper",
            )
            occupancies = np.array([checkpoint.average.occupancy for checkpoint in solution.state.runs])
            gap = solution.duality_gap
        costs = np.array([mdp.expected_cost(mdp.policy_of(mu), env.cost) for mu in occupancies])
        mean, half = ex.interval(costs)
        return {
            "size": size, "domain": domain, "way": way, "run_cost": mean, "run_cost_half": half, "gap": gap,
            "true_cost": mdp.expected_cost(mdp.policy_of(occupancies.mean(axis=0)), env.cost),
            "optimum": expert.expected_cost, "random": mdp.expected_cost(mdp.uniform_policy(), env.cost),
        }  # fmt: skip

    cases = [(size, domain, ex.PAPER) for size in reversed(sizes) for domain in (UNSCALED, BOX, HULL)]
    cases += [(size, domain, way) for size in few for domain in (BOX, HULL) for way in (ex.THEOREM, ex.EXACT)]
    return {"sizes": ex.table_of(settings.map(solve, cases, "box or hull")), "changes": _changes(settings, n_runs)}


def _changes(settings: ex.Settings, n_runs: int) -> ex.Table:
    """Return the ℓ1 changes and gaps against iterations, M = 15."""
    env = shop.paper_shop()
    problem = RLfDProblem(env.mdp, env.mdp.optimal(env.cost).occupancy)
    box = ex.solve_as_paper(problem, settings, T, n_runs, record_every=25, estimator="unbiased").history
    arguments: dict[str, Any] = {"n_runs": n_runs, "n_jobs": settings.jobs, "record_every": 25, "variant": "paper"}
    hull = solve_smd_hull(problem, scale_basis(env.features), T, ex.FIXED_STEP, **arguments).history
    return {
        "iteration": box.iteration, "box": box.change_cost, "hull": hull.change_mixture, "hull_cost": hull.change_cost,
        "box_gap": box.duality_gap, "hull_gap": hull.duality_gap,
    }  # fmt: skip


def draw_convergence(data: ex.Data) -> Any:
    """Draw the ℓ1 changes on the left and the duality gaps on the right."""
    figure, axes = new_figure(1, 2, size=(8.4, 3.1))
    table = data["changes"]
    left, right = axes[0]
    left.loglog(table["iteration"], table["box"], color=BLUE, linewidth=1.1, label="box: c")
    left.loglog(table["iteration"], table["hull"], color=SKY, linewidth=1.1, label="hull: w")
    left.loglog(table["iteration"], table["hull_cost"], color=SKY, linewidth=1.1, linestyle="--", label="hull: c = Cw")
    left.set_ylabel("ℓ1 change per iteration")
    right.loglog(table["iteration"], table["box_gap"], color=BLUE, label="box: c")
    right.loglog(table["iteration"], table["hull_gap"], color=SKY, label="hull: w")
    right.set_ylabel("duality gap (own problem)")
    for axis in (left, right):
        axis.set_xlabel("iterations")
    legend_below(figure, 3)
    return figure


def draw_sizes(data: ex.Data) -> Any:
    """Draw the true expected cost against M; the optimum is the expert's cost."""
    figure, axes = new_figure(size=(6.6, 4.2))
    axis = axes[0, 0]
    table = data["sizes"]
    styles = {BOX: (BLUE, "-", "box"), HULL: (SKY, "-", "hull"), UNSCALED: (SKY, ":", UNSCALED)}
    for domain, (colour, style, label) in styles.items():
        own = _sorted(ex.rows(table, domain=domain, way=ex.PAPER))
        low, high = own["run_cost"] - own["run_cost_half"], own["run_cost"] + own["run_cost_half"]
        draw_band(axis, own["size"], own["run_cost"], low, high, color=colour, linestyle=style,
                  label=f"{label}, {ex.PAPER}")  # fmt: skip
    for domain, colour, marker in ((BOX, BLUE, "s"), (HULL, SKY, "D")):
        own = _sorted(ex.rows(table, domain=domain, way=ex.THEOREM))
        axis.errorbar(own["size"], own["run_cost"], own["run_cost_half"], color=colour, marker=marker, markersize=4,
                      capsize=2, linestyle="none", label=f"{domain}, {ex.THEOREM}", zorder=5)  # fmt: skip
    own = _sorted(ex.rows(table, domain=BOX, way=ex.PAPER))
    axis.plot(own["size"], own["optimum"], color=COLOURS["optimum"], linestyle="--", label="optimum = expert = exact")
    axis.plot(own["size"], own["random"], color=COLOURS["random"], linestyle="--", label="random orders")
    axis.set_xlabel("capacity M (the state space has M + 1 states)")
    axis.set_ylabel("true expected cost in [-1, 1], runs' mean")
    legend_below(figure, 2)
    return figure


def _sorted(table: ex.Table) -> ex.Table:
    order = np.argsort(table["size"])
    return {name: column[order] for name, column in table.items()}


def _excess(data: ex.Data, domain: str, way: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return M, how much worse the domain is than the box, and the half-width of that.

    The last two are shares of the regret of random orders.
    """
    box, other = (_sorted(ex.rows(data["sizes"], domain=name, way=way)) for name in (BOX, domain))
    scale = box["random"] - box["optimum"]
    half = np.nan_to_num(np.hypot(box["run_cost_half"], other["run_cost_half"]))
    return box["size"], (other["run_cost"] - box["run_cost"]) / scale, half / scale


def claims(data: ex.Data) -> list[ex.Claim]:
    """Judge what the paper says about box and hull."""
    changes = data["changes"]
    tail = slice(-max(1, len(changes["box"]) // 10), None)
    end = {name: float(column[tail].mean()) for name, column in changes.items()}
    shrunk = {name: float(changes[name][-1] / changes[name][0]) for name in ("box_gap", "hull_gap")}
    nearer = shrunk["hull_gap"] < FASTER * shrunk["box_gap"]
    sizes, excess, half = _excess(data, HULL, ex.PAPER)
    exact_sizes, exact, _ = _excess(data, HULL, ex.EXACT)
    _, rough, rough_half = _excess(data, UNSCALED, ex.PAPER)
    small, large = sizes <= SMALL, sizes >= LARGE
    exact_large = exact_sizes >= LARGE
    near = bool((np.abs(excess[small]) <= SIMILAR).all()), bool((np.abs(exact[exact_sizes <= SMALL]) <= SIMILAR).all())
    beats = bool((excess - half)[large].min() > 0), bool(exact[exact_large].min() > 1e-6)
    some_sizes, some, some_half = _excess(data, HULL, ex.THEOREM)
    some_large = some_sizes >= LARGE
    where = {
        "the basis vectors are not scaled into the unit box": bool((rough - rough_half)[large].min() > 0),
        "the steps are the theorem's, stopped at a small gap": bool((some - some_half)[some_large].min() > 0),
    }
    gaps = ex.rows(data["sizes"], domain=HULL, way=ex.THEOREM)["gap"]
    return [
        ex.Claim(
            "fig:inventory_convergence_comparison", "The hull converges faster than the box.",
            f"ℓ1 change at the end: w {end['hull']:.1e}, Cw {end['hull_cost']:.1e}, against c {end['box']:.1e}",
            f"gap at T over gap at the first record: hull {shrunk['hull_gap']:.2f}, box {shrunk['box_gap']:.2f}",
            ex.judge(end["hull_cost"] < end["box"], nearer, "convergence means the ℓ1 change of the weights",
                     end["hull"] < end["box"]),
            f"Faster: Cw changes less than c, and the gap has shrunk by {1 - FASTER:.0%} more. Three weights change "
            "less than 256 costs when entries are added up; as costs, Cw and c can be compared, and the gaps, each of "
            "its own problem, say how far each is from its optimum.",
        ),
        ex.Claim(
            "fig:inventory_apprentice_comparison", "In small state spaces, box and hull perform similarly.",
            f"M ≤ {SMALL}: the hull's regret differs by {_span(excess[small])} of that of random orders",
            f"by {_span(exact[exact_sizes <= SMALL])}", ex.judge(*near),
            f"Similar: within {SIMILAR:.0%}.",
        ),
        ex.Claim(
            "fig:inventory_apprentice_comparison", "The box outperforms the hull as the state space grows.",
            f"M ≥ {LARGE}: the hull is worse by {_span(excess[large])} of the regret of random orders",
            f"exact: by {_span(exact[exact_large])}; theorem's steps: by {_span(some[some_large])}",
            ex.judge(*beats, " or ".join(name for name, found in where.items() if found), any(where.values())),
            f"On the features as they are (entries up to 2M) the hull is worse by {_span(rough[large])}. On the hull "
            f"three features are matched, on the box every pair, so a small gap (hull: {gaps.max():.2g} at most) says "
            "less about the policy; exactly, both have the expert's cost.",
        ),
    ]  # fmt: skip


def _span(shares: np.ndarray) -> str:
    return f"{shares.min():.0%} to {shares.max():.0%}"


def notes(data: ex.Data) -> list[str]:
    """Say how far the two methods are from their optima."""
    gaps = {(d, w): ex.rows(data["sizes"], domain=d, way=w)["gap"] for d in (BOX, HULL) for w in (ex.PAPER, ex.THEOREM)}
    listed = "; ".join(f"{d}, {w}: {own.min():.2g} to {own.max():.2g}" for (d, w), own in gaps.items())
    return [f"Duality gaps over all M, each of its own problem: {listed}."]


EXPERIMENT = ex.Experiment(
    "box-or-hull",
    "Inventory: box against hull",
    run,
    {"hull-convergence": draw_convergence, "hull-sizes": draw_sizes},
    claims,
    {
        "fig:inventory_convergence_comparison": "hull-convergence",
        "fig:inventory_apprentice_comparison": "hull-sizes",
    },
    notes,
)
