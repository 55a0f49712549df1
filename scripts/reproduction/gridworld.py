"""The 10 x 10 gridworld, with a stopped solver as expert.

The prior knows half of the obstacles and goals. α ∈ {0.1, 0.005, 0.001, 0}, N = 20, T = 1e5, steps
1e-2. The experiment shows the learned cost per action, the apprentice's policy, and the ℓ1 change
of the averages from one iteration to the next. That change is O(1/t) for any bounded sequence,
because x̄_t - x̄_{t-1} = (x_t - x̄_{t-1})/t; it says how fast the averages settle, not how near they
are to a solution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reproduction import experiment as ex
from reproduction import grids
from rlfd_gym import RLfDProblem
from rlfd_gym.envs import WindyGridworldEnv
from rlfd_gym.problem.solution import History
from rlfd_gym.report.plots import (
    BLUE,
    GREEN,
    ORANGE,
    Grid,
    draw_cost,
    draw_policy,
    draw_world,
    legend_below,
    new_figure,
)

ALPHAS = (0.1, 0.005, 0.001, 0.0)
ACTIONS = ("up", "down", "left", "right")
ALIKE = 0.9  # policies resemble each other closely from this share of states with the same likely action
COMPARABLE = 2.0  # changes are comparable up to this ratio
PUBLISHED = {"expert": -0.3120940469765851, "learned": 0.043999837897822}


def problem_of(env: WindyGridworldEnv, expert: np.ndarray, alpha: float) -> RLfDProblem:
    """Return the problem with the paper's prior, drawn per state."""
    return RLfDProblem(env.mdp, expert, env.partial_prior(0.5, seed=0), alpha)


def run(settings: ex.Settings) -> ex.Data:
    """Solve for each α in each way."""
    env = grids.world()
    mdp = env.mdp
    expert = grids.stopped_expert(mdp, env.cost)
    pairs: ex.Table = {"state": np.asarray(mdp.pair_states), "action": np.asarray(mdp.pair_actions)}
    pairs |= {"expert": expert.policy, "optimum": mdp.optimal(env.cost).policy, "prior": env.partial_prior(0.5, seed=0)}
    answers: dict[tuple[float, str], ex.Answer] = {}
    changes = []
    n_iterations, every = 100_000, 200
    for alpha in ALPHAS:
        problem = problem_of(env, expert.occupancy, alpha)
        answers[alpha, ex.PAPER] = paper = ex.solve_as_paper(
            problem, settings, n_iterations, settings.pick(20, 4), record_every=every
        )
        if not len(paper.history):  # the published code's estimators keep no history
            paper = ex.solve_as_paper(problem, settings, n_iterations, 4, record_every=every, estimator="unbiased")
        answers[alpha, ex.THEOREM] = ex.solve_by_theorem(
            problem, settings, settings.pick(4, 2), n_iterations=settings.pick(40_000_000, 500_000)
        )
        answers[alpha, ex.EXACT] = ex.solve_exactly(problem)
        changes.append(_changes(alpha, paper.history))
    for (alpha, way), answer in answers.items():
        pairs[_column("cost", way, alpha)] = answer.cost
        pairs[_column("policy", way, alpha)] = answer.policy(mdp)
    other = RLfDProblem(mdp, expert.occupancy, grids.per_pair_prior(env, 0), ALPHAS[0])
    data = {
        "pairs": pairs,
        "summary": ex.table_of(_record(env, alpha, way, answer, answers[0.0, way]) for (alpha, way), answer in
                            answers.items()),
        "experts": ex.table_of(_expert_record(env, steps) for steps in (1, 2, 3, 4, 6)),
        "per_pair_prior": ex.table_of([{
            "alpha": other.alpha,
            "per_pair": mdp.expected_cost(ex.solve_exactly(other).policy(mdp), env.cost),
            "per_state": mdp.expected_cost(answers[ALPHAS[0], ex.EXACT].policy(mdp), env.cost),
            "other_walls": grids.pairs_of_other_walls(env),
        }]),
    }  # fmt: skip
    return data | {"changes": {name: np.concatenate([own[name] for own in changes]) for name in changes[0]}}


def _changes(alpha: float, history: History) -> ex.Table:
    """Return what was recorded for one α."""
    return {
        "alpha": np.full(len(history), alpha), "iteration": history.iteration, "cost": history.change_cost,
        "value": history.change_value, "occupancy": history.change_occupancy, "gap": history.duality_gap,
    }  # fmt: skip


def _column(kind: str, way: str, alpha: float) -> str:
    return f"{kind}, {way}, {alpha:g}"


def _record(env: WindyGridworldEnv, alpha: float, way: str, answer: ex.Answer, imitation: ex.Answer) -> dict[str, Any]:
    mdp = env.mdp
    policy = answer.policy(mdp)
    run_cost, run_half = ex.interval(answer.run_costs(mdp, env.cost))
    same = mdp.likely_actions(policy) == mdp.likely_actions(imitation.policy(mdp))
    moving = env.cells.ravel() != -1
    return {
        "alpha": alpha, "way": way, "gap": answer.gap, "n_iterations": answer.n_iterations, "n_runs": answer.n_runs,
        "true_cost": mdp.expected_cost(policy, env.cost), "run_cost": run_cost, "run_cost_half": run_half,
        "occupancy_cost": float(answer.occupancy @ env.cost), "white": grids.white_share(answer.cost),
        "error": float(np.abs(answer.cost - env.cost).mean()), "alike": float(same[moving].mean()),
    }  # fmt: skip


def _expert_record(env: WindyGridworldEnv, steps: int) -> dict[str, float]:
    expert = grids.stopped_expert(env.mdp, env.cost, steps)
    return {
        "steps": steps, "imbalance": expert.imbalance, "true_cost": expert.true_cost, "optimum": expert.optimum,
        "uniform": expert.uniform, "regret_share": expert.regret_share,
    }  # fmt: skip


def draw_grids(data: ex.Data) -> Any:
    """Draw the environment, the optimal policy and the expert's policy."""
    env = grids.world()
    grid = Grid.of_env(env)
    assert grid is not None
    figure, axes = new_figure(1, 3, size=(8.4, 3.2))
    draw_world(axes[0, 0], grid)
    axes[0, 0].set_title("environment")
    share = ex.value(data["experts"], "regret_share", steps=grids.STOPPED_AFTER)
    for axis, name, title in zip(axes[0, 1:], ("optimum", "expert"), ("optimal policy", "expert"), strict=True):
        draw_policy(axis, grid, env.mdp, data["pairs"][name])
        axis.set_title(title if name == "optimum" else f"{title}: {share:.0%} of the way to random")
    return figure


def draw_costs(data: ex.Data) -> Any:
    """Draw the learned cost per action and α, in the paper's setting and exactly.

    Rows are actions, columns are values of α.
    """
    env = grids.world()
    grid = Grid.of_env(env)
    assert grid is not None
    figure, axes = new_figure(4, 8, size=(11.0, 6.2))
    for block, way in enumerate((ex.PAPER, ex.EXACT)):
        for k, alpha in enumerate(ALPHAS):
            for action, name in enumerate(ACTIONS):
                axis = axes[action, 4 * block + k]
                cost = data["pairs"][_column("cost", way, alpha)]
                image = draw_cost(axis, grid, env.mdp, cost, action)
                if action == 0:
                    axis.set_title(f"{way}\nα = {alpha:g}" if k == 0 else f"\nα = {alpha:g}", loc="left", fontsize=9)
                if k == 0 and block == 0:
                    axis.set_ylabel(name)
    figure.colorbar(image, ax=list(axes.ravel()), label="learned cost", shrink=0.6, pad=0.01)
    return figure


def draw_policies(data: ex.Data) -> Any:
    """Draw the apprentice's policy per way (rows) and α (columns)."""
    env = grids.world()
    grid = Grid.of_env(env)
    assert grid is not None
    figure, axes = new_figure(3, 4, size=(9.6, 7.4))
    for row, way in enumerate(ex.WAYS):
        for axis, alpha in zip(axes[row], ALPHAS, strict=True):
            draw_policy(axis, grid, env.mdp, data["pairs"][_column("policy", way, alpha)])
            axis.set_title(f"α = {alpha:g}, gap {ex.value(data['summary'], 'gap', way=way, alpha=alpha):.1g}")
        axes[row, 0].set_ylabel(way)
    return figure


def draw_convergence(data: ex.Data) -> Any:
    """Draw the ℓ1 changes of the averages, and the duality gap next to them."""
    figure, axes = new_figure(1, 4, size=(10.4, 3.0), sharey=True)
    names = {"cost": ("c", BLUE), "value": ("u", ORANGE), "occupancy": ("μ", GREEN)}
    for axis, alpha in zip(axes[0], ALPHAS, strict=True):
        own = ex.rows(data["changes"], alpha=alpha)
        for column, (symbol, colour) in names.items():
            axis.loglog(own["iteration"], own[column], color=colour, linewidth=1, label=f"ℓ1 change of {symbol}")
        axis.loglog(own["iteration"], own["gap"], color="black", linestyle="--", label="duality gap")
        axis.set_title(f"α = {alpha:g}")
        axis.set_xlabel("iterations")
    axes[0, 0].set_ylabel("mean over runs")
    legend_below(figure, 4)
    return figure


def _late(data: ex.Data, column: str) -> np.ndarray:
    """Return the mean of a column over the last tenth of the iterations, for each α."""
    result = []
    for alpha in ALPHAS:
        own = ex.rows(data["changes"], alpha=alpha)
        result.append(own[column][-max(1, len(own[column]) // 10) :].mean())
    return np.array(result)


def claims(data: ex.Data) -> list[ex.Claim]:
    """Judge what the paper says about the gridworld."""
    summary = data["summary"]
    by_way = {
        way: {name: np.array([ex.value(summary, name, way=way, alpha=alpha) for alpha in ALPHAS])
              for name in ("white", "error", "alike", "gap")}
        for way in (ex.PAPER, ex.EXACT)
    }  # fmt: skip
    white, error, alike = ({way: own[name] for way, own in by_way.items()} for name in ("white", "error", "alike"))
    n_used = {ex.PAPER: 4, ex.EXACT: 3}  # the exact cost at α = 0 is not unique
    whiter = {way: bool((np.diff(share[: n_used[way]]) <= 0).all()) for way, share in white.items()}
    closer = {way: bool((np.diff(size[: n_used[way]]) >= 0).all()) for way, size in error.items()}
    helped = {way: bool((size[1:3] < size[3]).all()) for way, size in error.items()}
    resembles = {way: bool((share[1:3] >= ALIKE).all()) for way, share in alike.items()}
    late = {name: _late(data, name) for name in ("cost", "value", "occupancy", "gap")}
    ratio = {name: np.nanmax(size) / np.nanmin(size) for name, size in late.items()}
    faster = bool(late["cost"][0] < late["cost"][1:].min())
    nearer = bool(late["gap"][0] < late["gap"][1:].min())
    order = "α = " + ", ".join(f"{alpha:g}" for alpha in ALPHAS)
    return [
        ex.Claim(
            "fig:effect-reg", "As α increases, more of the learned cost is nearly zero.",
            f"share of pairs below {grids.WHITE:g}: {_percent(white[ex.PAPER])} ({order})",
            f"{_percent(white[ex.EXACT][:3])} (α > 0)",
            ex.judge(whiter[ex.PAPER], whiter[ex.EXACT]),
            "The prior is zero on most pairs, and α pulls the cost to it. At α = 0 this expert, who takes every action "
            "with some probability, is explained only by costs that tell no policies apart.",
        ),
        ex.Claim(
            "fig:effect-reg", "As α increases, the learned cost approximates the true one better.",
            f"mean |c - true|: {_list(error[ex.PAPER])} ({order})",
            f"{_list(error[ex.EXACT][:3])} (α > 0)",
            ex.judge(closer[ex.PAPER], closer[ex.EXACT]),
            "The prior is right on most pairs; it knows half of the obstacles and goals and is zero elsewhere, as the "
            "truth is.",
        ),
        ex.Claim(
            "fig:effect-reg-pol", "The policies for α = 0.005 and 0.001 closely resemble that for α = 0.",
            f"same likely action in {_percent(alike[ex.PAPER][1:3])} of the states", _percent(alike[ex.EXACT][1:3]),
            ex.judge(resembles[ex.PAPER], resembles[ex.EXACT]),
            f"Closely: at least {ALIKE:.0%} of the states that are not goals. Gaps of the runs' average are "
            f"{_list(by_way[ex.PAPER]['gap'])} ({order}).",
        ),
        ex.Claim(
            "fig:effect-reg-pol", "Even these small α align the cost more closely with the true one than α = 0 does.",
            f"mean |c - true|: {_list(error[ex.PAPER][1:3])} against {error[ex.PAPER][3]:.2f}",
            f"{_list(error[ex.EXACT][1:3])} against {error[ex.EXACT][3]:.2f}",
            ex.judge(helped[ex.PAPER], helped[ex.EXACT]),
            "At α = 0 every cost that explains the expert is optimal; which one comes out is the algorithm's choice.",
        ),
        ex.Claim(
            "fig:effect-reg-conv", "All α have comparable convergence of u and μ (ℓ1 change per iteration).",
            f"largest over smallest change at the end: u {ratio['value']:.1f}, μ {ratio['occupancy']:.1f}",
            f"gaps differ by {ratio['gap']:.1f}",
            ex.judge(ratio["value"] <= COMPARABLE and ratio["occupancy"] <= COMPARABLE, ratio["gap"] <= COMPARABLE,
                     "convergence means the ℓ1 change of averages, which is O(1/t) by construction",
                     max(ratio["value"], ratio["occupancy"]) <= COMPARABLE),
            f"Comparable: within a factor of {COMPARABLE:g}.",
        ),
        ex.Claim(
            "fig:effect-reg-conv", "c converges faster for α = 0.1 than for smaller α.",
            f"ℓ1 change of c at the end: {_list(late['cost'], '.1e')} ({order})",
            f"duality gap at the end, mean over runs: {_list(late['gap'], '.2g')}",
            ex.judge(faster, nearer),
            "Both in the paper's setting. A larger α forgets the random start sooner, at the rate 2αη a step; the "
            "change of an average over t iterations is O(1/t) for every α and no measure of optimality.",
        ),
    ]  # fmt: skip


def _percent(shares: np.ndarray) -> str:
    return ", ".join(f"{share:.0%}" for share in shares)


def _list(numbers: np.ndarray, form: str = ".2f") -> str:
    return ", ".join(f"{number:{form}}" for number in numbers)


def notes(data: ex.Data) -> list[str]:
    """Describe the expert, the prior, the walls and the averages."""
    experts = data["experts"]
    used = ex.rows(experts, steps=grids.STOPPED_AFTER)
    first = ex.rows(experts, steps=1)
    extra = {name: column[0] for name, column in data["per_pair_prior"].items()}
    paper = ex.rows(ex.rows(data["summary"], way=ex.PAPER), alpha=0.1)
    theorem = ex.rows(data["summary"], way=ex.THEOREM)
    return [
        f"The expert is the policy of an interior-point solver stopped after {grids.STOPPED_AFTER} steps, and that "
        f"policy's own occupancy: true cost {used['true_cost'][0]:.3f}, optimum {used['optimum'][0]:.3f}, random moves "
        f"{used['uniform'][0]:.3f}, so {used['regret_share'][0]:.0%} of the way from optimal to random. The solver's "
        f"own point is not an occupancy: after one step, made nonnegative and normalised, ‖Tγμ - ν₀‖₁ = "
        f"{first['imbalance'][0]:.2f}.",
        f"For α = 0.1 the averaged occupancy of the paper's setting costs {paper['occupancy_cost'][0]:.3f}, its policy "
        f"{paper['true_cost'][0]:.3f}, and the {paper['n_runs'][0]} runs' own policies {paper['run_cost'][0]:.3f} ± "
        f"{paper['run_cost_half'][0]:.3f}. Published for that α: {PUBLISHED['learned']:.3f} for the learned occupancy, "
        f"{PUBLISHED['expert']:.3f} for the expert's.",
        f"The theorem's steps reach gaps of {_list(theorem['gap'], '.2g')} after {theorem['n_iterations'][0]:.0e} "
        f"iterations (α = {', '.join(f'{a:g}' for a in theorem['alpha'])}).",
        f"The text draws the prior per state, the published code per (state, action); solved exactly for α = "
        f"{extra['alpha']:g}, the apprentice's true cost is {extra['per_state']:.3f} and {extra['per_pair']:.3f}. The "
        "text leaves an agent that the wind would push through a wall in its cell; the published code clips row and "
        f"column each on its own (but for the top row), which changes {extra['other_walls']:.0f} pairs.",
    ]


EXPERIMENT = ex.Experiment(
    "gridworld",
    "Gridworld: learned costs and policies",
    run,
    {
        "gridworld": draw_grids,
        "gridworld-costs": draw_costs,
        "gridworld-policies": draw_policies,
        "gridworld-convergence": draw_convergence,
    },
    claims,
    {
        "fig:gridworld": "gridworld",
        "fig:optimal-policy": "gridworld",
        "fig:expert-policy": "gridworld",
        "fig:effect-reg": "gridworld-costs",
        "fig:effect-reg-pol": "gridworld-policies",
        "fig:effect-reg-conv": "gridworld-convergence",
    },
    notes,
)
