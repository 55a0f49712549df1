"""What is reported: distances, shares and intervals, and that a new measure is one entry."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from small_comparison import SMALL, TINY

from rlfd_gym import compare
from rlfd_gym.compare.measures import cost_distance, share_closed
from rlfd_gym.report.tables import mean_and_margin

costs = st.lists(st.integers(-8, 8), min_size=3, max_size=12).filter(lambda values: len(set(values)) > 1)


@given(truth=costs, scale=st.floats(0.1, 10), shift=st.floats(-5, 5), data=st.data())
def test_the_distance_of_costs_ignores_scale_and_shift(truth, scale, shift, data):
    truth = np.array(truth) / 8
    cost = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=len(truth), max_size=len(truth)))) / 8
    assert cost_distance(scale * truth + shift, truth) == pytest.approx(0, abs=1e-7)
    assert cost_distance(scale * cost + shift, truth) == pytest.approx(cost_distance(cost, truth), abs=1e-6)


@given(truth=costs, data=st.data())
def test_the_distance_of_costs_is_the_best_fit_in_the_l1_norm(truth, data):
    # The best line through data in ℓ1-norm passes through two of its points, or is flat: try them all.
    truth = np.array(truth, dtype=float)
    cost = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=len(truth), max_size=len(truth))), dtype=float)
    flat = np.abs(truth - np.median(truth)).sum()
    best = flat
    for i in range(len(cost)):
        for j in range(i):
            if cost[i] != cost[j] and (slope := (truth[i] - truth[j]) / (cost[i] - cost[j])) >= 0:
                best = min(best, np.abs(truth - truth[i] - slope * (cost - cost[i])).sum())
    assert cost_distance(cost, truth) == pytest.approx(best / flat, abs=1e-7)


def test_the_truth_is_at_a_distance_of_zero_without_a_sign():
    assert str(cost_distance([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])) == "0.0"


def test_a_cost_that_points_the_wrong_way_tells_nothing():
    truth = np.array([-1.0, 0.0, 1.0])
    assert cost_distance(-truth, truth) == cost_distance(np.ones(3), truth) == 1
    with pytest.raises(ValueError, match="truth must not be constant"):
        cost_distance(truth, np.ones(3))


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
    expected = set() if chosen is None else {chosen((cell.text for cell in gaps), key=float)}
    assert {cell.text for cell in gaps if cell.bold} == expected
