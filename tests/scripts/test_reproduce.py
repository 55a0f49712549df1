"""The reproduction script: its files, its verdicts on made-up data, and the published code's estimators."""

from __future__ import annotations

import csv
import doctest
import itertools
import shutil
from dataclasses import replace

import numpy as np
import pytest
from reference import replay
from strategies import make_problem, random_cost, random_point

from rlfd_gym import RLfDProblem

pytest.importorskip("matplotlib")

import reproduce
from reproduction import alpha_sweep, box_or_hull, duality_gap, experiment, grids, inventory, misspecified_prior, report
from reproduction.catalogue import EXPERIMENTS, experiment_of
from reproduction.experiment import (
    EXACT,
    PAPER,
    THEOREM,
    Settings,
    interval,
    judge,
    read_table,
    rows,
    table_of,
    write_table,
)
from reproduction.published_code import DRAWS, dense_steps, hull_steps, published_gap, tables_of

QUICK = ("inventory", "misspecified-prior")


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """The folder that two quick experiments have written."""
    folder = tmp_path_factory.mktemp("reproduce")
    for name in QUICK:
        reproduce.main(["--quick", "--figure", name, "--out", str(folder), "--jobs", "1"])
    return folder


def stored(out, experiment):
    data = report.stored_data(out, experiment)
    assert data is not None
    return data


def verdicts(experiment, data):
    return {claim.text: claim.verdict for claim in experiment.claims(data)}


def the(verdicts, words):
    (found,) = (verdict for text, verdict in verdicts.items() if words in text)
    return found


def test_two_quick_experiments_write_data_figures_claims_and_a_report(out):
    for name in QUICK:
        assert (out / "data" / name / "run.json").exists()
        for figure in EXPERIMENTS[name].figures:
            assert (out / "figures" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    with open(out / "claims.csv", newline="", encoding="utf-8") as file:
        claims = list(csv.DictReader(file))
    expected = [claim for name in QUICK for claim in EXPERIMENTS[name].claims(stored(out, EXPERIMENTS[name]))]
    assert [claim["verdict"] for claim in claims] == [claim.verdict for claim in expected]
    page = (out / "REPRODUCTION.md").read_text(encoding="utf-8")
    for claim in expected:
        assert claim.text in page
        assert f"**{claim.verdict}**" in page
    for name in QUICK:
        for label, figure in EXPERIMENTS[name].paper_figures.items():
            assert f"| `{label}` | [{figure}](figures/{figure}.png) |" in page
    assert not list(out.rglob("*.tmp"))


def test_a_quick_look_leaves_the_repository_alone(out):
    written = report.write(out, publish=True)  # two quick experiments are no full run
    assert all(path.is_relative_to(out) for path in written)


def test_redrawing_changes_no_number(out):
    before = (out / "claims.csv").read_bytes()
    (out / "claims.csv").unlink()
    reproduce.main(["--redraw", "--figure", "inventory", "--out", str(out)])
    assert (out / "claims.csv").read_bytes() == before


def test_every_figure_of_the_paper_has_a_counterpart():
    labels = [label for own in EXPERIMENTS.values() for label in own.paper_figures]
    assert len(labels) == len(set(labels)) == 18
    for own in EXPERIMENTS.values():
        assert set(own.paper_figures.values()) <= set(own.figures)


def test_figures_are_found_by_name_and_label():
    names = ("alpha-sweep", "alpha-costs", "fig:inventory_discounted_vs_alpha", "inventory_discounted_vs_alpha")
    assert all(experiment_of(name) is alpha_sweep.EXPERIMENT for name in names)


def test_an_unknown_figure_is_an_error_that_names_the_nearest(capsys):
    with pytest.raises(SystemExit):
        reproduce.main(["--figure", "dualty-gap"])
    assert "did you mean 'duality-gap'" in capsys.readouterr().err


def test_stored_data_of_another_version_is_an_error_that_says_what_to_do(out, tmp_path):
    data = stored(out, inventory.EXPERIMENT)
    del data["models"]["level"]
    report.store(tmp_path, inventory.EXPERIMENT, data, Settings(quick=True), 1.0)
    with pytest.raises(SystemExit, match=r"inventory has no 'level'; run .*--figure inventory"):
        report.write(tmp_path, publish=False)


@pytest.mark.parametrize(
    ("paper", "certified", "when_it_rains", "expected"),
    [
        (True, True, False, "holds"),
        (True, True, True, "holds"),
        (True, False, True, "holds only when it rains"),
        (False, True, True, "holds only when it rains"),
        (False, False, True, "holds only when it rains"),
        (True, False, False, "holds only when solved as in the paper"),
        (False, True, False, "holds only when solved to a small gap"),
        (False, False, False, "does not hold"),
    ],
)
def test_a_verdict_follows_from_the_numbers(paper, certified, when_it_rains, expected):
    assert judge(paper, certified, "it rains", when_it_rains) == expected


def test_the_verdict_on_the_order_up_to_level_flips_with_the_level(out):
    data = stored(out, inventory.EXPERIMENT)
    assert the(verdicts(inventory.EXPERIMENT, data), "restocks to 14").startswith("holds only when the expected sales")
    levels = data["models"]["level"]
    data["models"]["level"] = np.full_like(levels, 14)
    assert the(verdicts(inventory.EXPERIMENT, data), "restocks to 14") == "holds"
    data["models"]["level"] = np.full_like(levels, 12)
    assert the(verdicts(inventory.EXPERIMENT, data), "restocks to 14") == "does not hold"


def test_the_verdict_on_the_recovered_prices_flips_with_the_prices(out):
    data = stored(out, inventory.EXPERIMENT)
    for name, price in zip(("c_o", "c_h", "c_s"), inventory.PUBLISHED_PRICES, strict=True):
        data["answers"][name] = np.full_like(data["answers"][name], price)
    assert the(verdicts(inventory.EXPERIMENT, data), "parameters") == "holds"
    data["answers"]["c_o"] = data["answers"]["c_o"] + 1
    assert the(verdicts(inventory.EXPERIMENT, data), "parameters") == "does not hold"
    published = (data["answers"]["expert"] == "optimal") & (data["answers"]["estimator"] == "overwrite")
    data["answers"]["c_o"][published] -= 1
    assert "overwrite each other" in the(verdicts(inventory.EXPERIMENT, data), "parameters")


def test_the_verdict_on_the_prior_flips_when_distances_shrink(out):
    data = stored(out, misspecified_prior.EXPERIMENT)
    assert the(verdicts(misspecified_prior.EXPERIMENT, data), "increases with ζ") == "holds"
    data["sweep"]["l1"] = 1 / (1 + data["sweep"]["zeta"])
    assert the(verdicts(misspecified_prior.EXPERIMENT, data), "increases with ζ") == "does not hold"


def test_priority_of_the_selling_price_is_the_work_of_the_box(out):
    data = stored(out, misspecified_prior.EXPERIMENT)
    exact = rows(data["sweep"], way=EXACT)
    cut = misspecified_prior._cut_priors(exact)
    for name in ("c_o", "c_h", "c_s"):
        np.testing.assert_allclose(cut[name], exact[name], atol=0.25)
    assert "cutting the prior to the box" in the(verdicts(misspecified_prior.EXPERIMENT, data), "Priority")
    data["sweep"] |= {name: data["sweep"][f"prior_{name}"] for name in ("c_o", "c_h", "c_s")}  # nothing is cut
    assert the(verdicts(misspecified_prior.EXPERIMENT, data), "Priority") == "does not hold"


def sweep_of_alphas(paper_cost, exact_cost):
    """Made-up data in which only the apprentice's true cost differs; the expert's is 0 and the optimum -1."""
    constant = dict.fromkeys(("c_o", "c_h", "c_s", "gap", "learned_expert", "learned_apprentice"), 1.0)
    constant |= {"learned_optimum": 0.9, "learned_range": 1.0}
    sweep = [
        {"alpha": alpha, "way": way, "true_cost": cost(alpha), "l1": 1 - alpha, "norm": 1 - alpha, **constant}
        for way, cost in ((PAPER, paper_cost), (EXACT, exact_cost))
        for alpha in (0.0, 0.001, 0.2, 0.5)
    ]
    references = [{"optimum": -1.0, "expert": 0.0, "worst": 1.0, "n_pairs": 256}]
    return {"sweep": table_of(sweep), "references": table_of(references)}


@pytest.mark.filterwarnings("ignore:An input array is constant")
@pytest.mark.parametrize(
    ("exact_cost", "beats", "robust"),
    [
        (lambda alpha: -0.5, "holds", "holds"),
        (lambda alpha: -0.05 * (alpha > 0), "holds only when α > 0", "holds"),
        (lambda alpha: -alpha, "holds only when α > 0", "holds only when solved as in the paper"),
        (lambda alpha: 0.5, "holds only when solved as in the paper", "holds"),
    ],
)
def test_the_verdicts_on_alpha_flip_with_the_apprentices_cost(exact_cost, beats, robust):
    found = verdicts(alpha_sweep.EXPERIMENT, sweep_of_alphas(lambda alpha: -0.5, exact_cost))
    assert the(found, "outperforms") == beats
    assert the(found, "robust") == robust


@pytest.mark.parametrize(
    ("gaps", "theorem", "expected"),
    [
        ((3.0, 2.0, 1.0), (0.3, 0.2, 0.1), "holds"),
        ((1.0, 2.0, 3.0), (0.3, 0.2, 0.1), "holds only when the step sizes are the theorem's"),
        ((1.0, 2.0, 3.0), (0.1, 0.2, 0.3), "does not hold"),
        ((1.05, 1.0, 1.0), (0.11, 0.1, 0.1), "does not hold"),  # within the intervals
    ],
)
def test_the_verdict_on_regularisation_flips_with_the_gaps(gaps, theorem, expected):
    summary = table_of(
        {
            "alpha": alpha,
            "gap": gap,
            "gap_half": 0.1,
            "theorem_gap": reached,
            "published_formula": 1.0,
            "published_half": 0.1,
            "epsilon": 0.2,
        }
        | {"theorem_iterations": 100, "eta_cu": 1e-4, "eta_mu": 1e-5, "seconds": 1.0}
        for alpha, gap, reached in zip(duality_gap.ALPHAS, gaps, theorem, strict=True)
    )
    curves = table_of(
        {"alpha": alpha, "way": THEOREM, "iteration": 100, "gap": gap, "half": 0.01}
        for alpha, gap in zip(duality_gap.ALPHAS, theorem, strict=True)
    )
    found = verdicts(duality_gap.EXPERIMENT, {"summary": summary, "curves": curves})
    assert the(found, "Stronger").startswith(expected)
    assert the(found, "too small") == ("does not hold" if max(theorem) <= 0.2 else "holds")


@pytest.mark.parametrize(
    ("hull", "unscaled", "theorem", "expected"),
    [
        (0.0, 0.0, 0.0, "does not hold"),
        (0.0, 0.5, 0.0, "holds only when the basis vectors are not scaled into the unit box"),
        (0.0, 0.0, 0.5, "holds only when the steps are the theorem's"),
        (0.0, 0.5, 0.5, "holds only when the basis vectors are not scaled into the unit box or the steps"),
        (0.5, 0.5, 0.5, "holds"),
    ],
)
def test_the_verdict_on_the_hull_flips_with_its_cost(hull, unscaled, theorem, expected):
    worse = {(box_or_hull.BOX, way): 0.0 for way in (PAPER, THEOREM, EXACT)}
    worse |= {(box_or_hull.HULL, PAPER): hull, (box_or_hull.HULL, THEOREM): theorem, (box_or_hull.HULL, EXACT): hull}
    worse[box_or_hull.UNSCALED, PAPER] = unscaled
    sizes = table_of(
        {"size": size, "domain": domain, "way": way, "run_cost": more, "run_cost_half": 0.01, "gap": 0.1}
        | {"optimum": -1.0, "random": 1.0}
        for size in (5, 29)
        for (domain, way), more in worse.items()
    )
    changes = {name: np.ones(20) for name in ("box", "hull", "hull_cost", "box_gap", "hull_gap")}
    found = the(verdicts(box_or_hull.EXPERIMENT, {"sizes": sizes, "changes": changes}), "as the state space grows")
    assert found.startswith(expected)
    assert (found == "holds") == (expected == "holds")
    for ends, verdict in (
        ({"hull": 0.1, "hull_cost": 0.1, "hull_gap": 0.1}, "holds"),
        ({"hull": 0.1, "hull_cost": 2.0, "hull_gap": 0.95}, "holds only when convergence means the ℓ1 change"),
        ({"hull": 2.0, "hull_cost": 2.0, "hull_gap": 2.0}, "does not hold"),
    ):
        slow = changes | {name: np.append(np.ones(19), end) for name, end in ends.items()}
        found = the(verdicts(box_or_hull.EXPERIMENT, {"sizes": sizes, "changes": slow}), "converges faster")
        assert found.startswith(verdict)
        assert (found == "holds") == (verdict == "holds")


def plain_tables(problem, seed, n_steps):
    point = random_point(problem, seed)
    draws = np.random.default_rng(seed).random((n_steps, DRAWS))
    return point, draws, np.empty((n_steps, DRAWS), np.int64)


def test_the_published_loop_without_overwriting_is_algorithm_1():
    problem = make_problem(1, 4, 3)
    point, draws, samples = plain_tables(problem, 2, 3000)
    averages = dense_steps(*tables_of(problem), *point, draws, 1e-2, 1e-2, False, samples)
    expected, _, miss = replay(problem, 1e-2, 1e-2, point, samples, draws[:, 1])
    assert miss < 1e-9
    for one, other in zip(averages, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_overwriting_changes_a_step_exactly_where_indices_coincide():
    problem = make_problem(1, 5, 3)
    changed = 0
    for seed in range(200):
        point, draws, samples = plain_tables(problem, seed, 1)
        one, other = (
            dense_steps(*tables_of(problem), *point, draws, 1e-2, 1e-2, overwrite, samples)
            for overwrite in (True, False)
        )
        i, j, next_j, e, next_e, _, _ = samples[0]
        apart = len({i, j, e}) == 3 and len({*problem.mdp.pair_states[[j, e]], next_j, next_e}) == 4
        same = all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        assert same or not apart
        changed += not same
    assert changed > 50


def test_overwriting_keeps_the_last_of_the_coinciding_entries():
    problem = make_problem(1, 5, 3)
    alone = RLfDProblem(problem.mdp, np.eye(problem.n_pairs)[3], problem.prior, 0.0)
    cost, value, _ = random_point(problem, 4)
    _, draws, samples = plain_tables(problem, 5, 1)
    moved, _, _ = dense_steps(
        *tables_of(alone), cost, value, np.eye(problem.n_pairs)[3], draws, 1e-2, 1e-2, True, samples
    )
    assert samples[0, 1] == samples[0, 3] == 3
    assert moved[3] == pytest.approx(max(cost[3] - 1e-2, -1))  # adding up would leave it where it is


@pytest.mark.slow  # compiles
def test_the_published_hull_loop_is_smd_h():
    problem = make_problem(3, 4, 3, alpha=0.0)
    basis = np.column_stack([random_cost(problem.mdp, seed) for seed in (1, 2, 3)])
    (_, value, occupancy), draws, samples = plain_tables(problem, 6, 2000)
    weights = np.array([0.5, 0.3, 0.2])
    states, reach, expert, _, _, gamma = tables_of(problem)
    found = hull_steps(states, reach, expert, gamma, basis, weights, value, occupancy, draws, 1e-2, samples)
    expected, _, _ = replay(problem, 1e-2, 1e-2, (weights, value, occupancy), samples, draws[:, 1], basis=basis)
    np.testing.assert_allclose(found, expected[2], atol=1e-10)


@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_the_published_gap_is_a_linear_program_whose_value_term_forgets_the_state(alpha):
    problem = make_problem(1, 4, 3, discount=0.5, alpha=alpha)
    mdp, (cost, value, occupancy) = problem.mdp, random_point(problem, 3)
    expert, weight = problem.expert, 1 - alpha
    twice = mdp.flow_matrix().toarray() / (1 - mdp.discount)

    def value_term(action, u):
        own = [(pair, s) for pair, s in enumerate(mdp.pair_states) if mdp.pair_actions[pair] == action]
        return sum(twice[s, pair] * u[s] for pair, s in own)  # the same for every state

    def bilinear(c, u, mu):
        terms = np.array([value_term(action, u) for action in mdp.pair_actions])
        return weight * (expert - mu) @ (c - terms) + alpha * np.sum((c - problem.prior) ** 2)

    upper = max(bilinear(cost, value, corner) for corner in np.eye(mdp.n_pairs))
    corners = [bilinear(problem.prior, np.array(u), occupancy) for u in itertools.product([-1, 1], repeat=mdp.n_states)]
    tries = np.linspace(-1, 1, 20001)
    d = expert - occupancy
    by_pair = [
        np.min(alpha * (tries - p) ** 2 + weight * e * (tries - p)) for e, p in zip(d, problem.prior, strict=True)
    ]
    assert published_gap(problem, cost, value, occupancy) == pytest.approx(
        upper - min(corners) - sum(by_pair), abs=1e-6
    )


def test_the_published_gap_is_not_the_gap():
    problem = make_problem(1, 4, 3, discount=0.5, alpha=0.2)
    plan = problem.mdp.optimal(problem.prior)
    at_rest = RLfDProblem(problem.mdp, plan.occupancy, problem.prior, 0.2)
    point = problem.prior, plan.value, plan.occupancy
    assert at_rest.duality_gap(*point) == pytest.approx(0, abs=1e-9)
    assert published_gap(at_rest, *point) > 0.1


def test_a_stopped_expert_is_an_occupancy_and_worse_than_the_optimum(gridworld):
    expert = grids.stopped_expert(gridworld.mdp, gridworld.cost)
    np.testing.assert_allclose(gridworld.mdp.flow(expert.occupancy), gridworld.mdp.initial, atol=1e-12)
    assert expert.optimum < expert.true_cost < expert.uniform
    assert 0.1 < expert.regret_share < 0.9
    assert grids.stopped_expert(gridworld.mdp, gridworld.cost, 1).imbalance > 0.1
    assert grids.stopped_expert(gridworld.mdp, gridworld.cost, 8).regret_share < 0.01


def test_intervals_cover_the_mean_95_percent_of_the_time():
    mean, half = interval(np.random.default_rng(0).normal(size=(5, 4000)))
    assert np.mean(np.abs(mean) <= half) == pytest.approx(0.95, abs=0.015)
    assert np.isnan(interval(np.ones((1, 2)))[1]).all()


def test_the_examples_in_docstrings_run():
    assert doctest.testmod(experiment).failed == 0
    assert doctest.testmod(experiment).attempted > 5


def test_tables_survive_a_file(tmp_path):
    table = {"a": np.array([1, 2]), "b": np.array([0.1, np.nan]), "c": np.array(["x, y", "z"])}
    write_table(tmp_path / "t.csv", table)
    again = read_table(tmp_path / "t.csv")
    for name, column in table.items():
        np.testing.assert_array_equal(again[name], column)
    assert rows(again, c="z")["a"].tolist() == [2]


def test_resuming_keeps_what_is_finished_and_refuses_what_was_made_otherwise(out, monkeypatch, capsys):
    def refuse(settings):
        raise AssertionError("something was solved")

    for name in QUICK:
        monkeypatch.setitem(EXPERIMENTS, name, replace(EXPERIMENTS[name], run=refuse))
    again = ["--figure", QUICK[0], "--out", str(out), "--resume"]
    reproduce.main([*again, "--quick", "--jobs", "2"])
    assert "kept" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        reproduce.main(again)
    assert "quick True, here False. Run it without --resume" in capsys.readouterr().err


def test_an_experiment_that_was_stored_in_part_is_not_finished(out, tmp_path, monkeypatch):
    one = EXPERIMENTS[QUICK[0]]
    shutil.copytree(out, tmp_path / "copy")
    settings = Settings(quick=True, jobs=1)
    data = report.finished_data(tmp_path / "copy", one, settings)
    monkeypatch.setattr(report, "write_table", lambda path, table: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.store(tmp_path / "copy", one, data, settings, 1.0)
    assert report.finished_data(tmp_path / "copy", one, settings) is None
