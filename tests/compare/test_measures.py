"""What is reported: distances, shares and intervals, and that a new measure is one entry."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import pickle

import numpy as np
import pytest
import scipy.stats
from checks import dense_flow
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.linalg import null_space
from small_comparison import SMALL, TINY
from strategies import make_mdp, mdps, random_cost, seeds

from rlfd_gym import compare
from rlfd_gym.compare.measures import UNSOLVED, cost_distance, share_closed
from rlfd_gym.mdp.shaping import without_shaping
from rlfd_gym.report.tables import mean_and_margin


@given(mdp=mdps(max_discount=0.9), seed=seeds, scale=st.floats(0.1, 10))
def test_the_distance_of_costs_ignores_scale_and_shaping(mdp, seed, scale):
    truth, cost = random_cost(mdp, seed), random_cost(mdp, seed + 1)
    assume(np.linalg.norm(without_shaping(mdp, truth)) > 1e-3)
    shaping = mdp.flow_transpose(np.random.default_rng(seed).normal(size=mdp.n_states))
    assert cost_distance(mdp, scale * truth + shaping, truth) == pytest.approx(0, abs=1e-6)
    assert cost_distance(mdp, scale * cost + shaping, truth) == pytest.approx(cost_distance(mdp, cost, truth), abs=1e-6)


@given(mdp=mdps(max_discount=0.9), seed=seeds)
def test_the_distance_of_costs_is_the_sine_of_their_angle_in_the_kernel(mdp, seed):
    kernel = null_space(dense_flow(mdp)).T
    truth, cost = random_cost(mdp, seed), random_cost(mdp, seed + 1)
    a, b = kernel @ truth, kernel @ cost
    assume(min(np.linalg.norm(a), np.linalg.norm(b), 1.0) > 1e-3)
    cosine = max(a @ b / np.linalg.norm(a) / np.linalg.norm(b), 0.0)
    assert cost_distance(mdp, cost, truth) == pytest.approx(np.sqrt(max(1 - cosine**2, 0.0)), abs=1e-6)


def test_a_cost_that_points_the_wrong_way_tells_nothing():
    mdp = make_mdp(3, 5, 3, 0.8)
    truth = random_cost(mdp, 4)
    assert cost_distance(mdp, -truth, truth) == cost_distance(mdp, np.ones(mdp.n_pairs), truth) == 1
    with pytest.raises(ValueError, match="truth must tell policies apart"):
        cost_distance(mdp, truth, np.ones(mdp.n_pairs))


def test_the_guaranteed_improvement_holds_for_every_cost_of_the_tasks_belief(written):
    instance = compare.TASKS["inventory"].make(0)
    corners = np.array(list(itertools.product(*zip(instance.belief.low, instance.belief.high, strict=True))))
    for row in (row for row in written[0].rows if row.task == "inventory"):
        better = instance.expert - instance.mdp.occupancy_of(row.policy)
        least = min(better @ instance.belief.cost(prices) for prices in corners)
        assert row.guaranteed == pytest.approx(least, abs=1e-9)
        assert row.guaranteed <= row.improvement + 1e-9  # the belief contains the truth
        assert row.improvement == pytest.approx(better @ instance.truth, abs=1e-9)


def test_the_method_that_maximises_the_guarantee_has_the_largest():
    result = compare.run(tasks=["inventory", "lake"], methods=["rlfd-ranges", "rlfd-exact"], demonstrations=["exact"])
    for task in ("inventory", "lake"):
        numbers = {row.label: row.guaranteed for row in result.rows if row.task == task}
        assert numbers.pop("RLfD price ranges") >= max(numbers.values()) - 1e-9
    row = next(row for row in result.rows if (row.task, row.method) == ("inventory", "rlfd-ranges"))
    assert (round(row.guaranteed, 4), round(row.improvement, 3)) == (0.0872, 0.358)


def test_what_is_not_positive_is_not_shown_as_guaranteed(written):
    table = written[0].table("inventory")
    column = table.header.index("guaranteed")
    shown = {row[0].text: row[column].text for row in table.rows}
    numbers = {s.label: s.guaranteed for s in written[0].summaries("inventory") if s.demonstrations == "exact"}
    assert numbers["optimum"] < 0  # it is optimal for the true prices, and worse than the expert at others
    assert shown["optimum"] == shown["expert"] == shown["LPAL"] == "–"
    assert all(text == "–" or float(text) > 0 for text in shown.values())
    with open(written[1] / "results.csv", newline="") as file:
        raw = [float(row["guaranteed"]) for row in csv.DictReader(file) if row["method"] == "optimum"]
    assert min(raw) < 0


def test_a_task_without_a_belief_has_no_guarantee(monkeypatch):
    def make(seed):
        return dataclasses.replace(compare.TASKS["inventory"].make(seed), belief=None)

    monkeypatch.setitem(compare.TASKS, "mine", compare.Task("mine", "no belief", make, prior_varies=False))
    result = compare.run(tasks=["mine"], methods=["rlfd-ranges", "cloning"], demonstrations=["exact"])
    assert {row.guaranteed for row in result.rows} == {None}
    assert "RLfD price ranges, 1 of 1 cells: gave up: the task states no belief about the cost." in " ".join(
        result.table("mine").notes
    )


def test_the_interval_is_students():
    sample = [1.0, 2.0, 4.0, 5.0]
    mean, margin = mean_and_margin(sample)
    low, high = scipy.stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    assert (mean - margin, mean + margin) == pytest.approx((low, high))
    assert mean_and_margin([3.0]) == (3.0, None)


def test_the_share_closed_of_an_optimal_expert_is_not_defined():
    assert np.isnan(share_closed(-1.0, expert=-1.0, optimum=-1.0))


def test_the_expert_closes_nothing_and_the_optimum_everything(written):
    shares = {(row.task, row.method): row.share_closed for row in written[0].rows if row.seed == 0}
    for task in SMALL["tasks"]:
        assert shares[task, "expert"] == 0
        assert shares[task, "optimum"] == 1


def test_a_row_gives_its_measures_as_attributes(written):
    row = next(row for row in written[0].rows if row.method == "rlfd-exact")
    assert list(row.measures) == list(compare.MEASURES)
    assert all(getattr(row, name) == value for name, value in row.measures.items())
    assert pickle.loads(pickle.dumps(row)).true_cost == row.true_cost
    with pytest.raises(AttributeError, match="Row has no attribute or measure 'true_costs'"):
        _ = row.true_costs


def likeliest(apprentice, instance):
    """How often the apprentice takes its most likely action."""
    return float(apprentice.occupancy @ (instance.mdp.max_by_state(apprentice.policy)[instance.mdp.pair_states]))


SURE = compare.Measure(
    "sureness", "sure", "how likely its actions are", likeliest, lambda x: f"{x:.4f}!", best="highest", interval=True
)


def test_a_new_measure_is_one_entry(monkeypatch, tmp_path, no_page):
    monkeypatch.setitem(compare.MEASURES, "sureness", SURE)
    result = compare.run(**TINY, out=tmp_path)
    table = result.table("inventory")
    column = table.header.index("sure")
    assert table.header[-2:] == ("sure", "time")
    row = next(row for row in result.rows if row.method == "expert")
    assert row.sureness == row.measures["sureness"] == pytest.approx(1.0)  # it is deterministic
    assert table.rows[table.reference[1]][column].text == "1.0000!"
    best = [cells[column] for cells in table.rows if cells[column].bold]
    own = [
        summary.sureness
        for summary in result.summaries()
        if not summary.reference and summary.demonstrations == "exact"
    ]
    assert {cell.text for cell in best} == {f"{max(own):.4f}!"}
    assert "sure: how likely its actions are." in compare.legend()
    heads = [(tmp_path / name).read_text().splitlines()[0] for name in ("results.csv", "summary.csv")]
    assert heads[0].endswith("duality_gap,sureness,seconds,note")
    assert heads[1].endswith("duality_gap,sureness,sureness_margin,seconds")


def test_a_measure_that_a_stored_row_lacks_is_left_blank(monkeypatch, tmp_path, no_page):
    before = compare.run(**TINY, out=tmp_path)
    monkeypatch.setitem(compare.MEASURES, "sureness", SURE)
    after = compare.run(out=tmp_path, resume=True)
    assert [row.sureness for row in after.rows] == [None] * len(before.rows)
    column = after.table("inventory").header.index("sure")
    assert {row[column].text for row in after.table("inventory").rows} == {""}


def test_the_legend_explains_every_column_of_a_table(written):
    names = [measure.title for measure in compare.MEASURES.values()]
    assert all(name in compare.legend() for name in (*names[1:], "time"))
    assert compare.legend().startswith("true expected cost by exact evaluation, mean ± 95% interval over seeds")


@pytest.mark.parametrize(("best", "chosen"), [("lowest", min), ("highest", max), (None, None)])
def test_the_best_end_of_a_measure_is_bold(written, monkeypatch, best, chosen):
    monkeypatch.setitem(
        compare.MEASURES, "duality_gap", dataclasses.replace(compare.MEASURES["duality_gap"], best=best)
    )
    table = written[0].table("inventory")
    column = table.header.index("gap")
    gaps = [row[column] for row in table.rows if row[column].text]
    solved = [cell.text for cell in gaps if float(cell.text) <= UNSOLVED]
    assert len(solved) < len(gaps)
    expected = set() if chosen is None else {chosen(solved, key=float)}
    assert {cell.text for cell in gaps if cell.bold} == expected
