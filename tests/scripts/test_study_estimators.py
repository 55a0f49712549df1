"""The study of estimators: its tables are those of its results."""

from __future__ import annotations

import pytest
import study_estimators as study


@pytest.fixture(scope="module")
def results():
    return [row for seed in (0, 1) for task in study.TASK_NAMES for row in study.study(task, 2, seed)]


def test_each_estimate_is_learned_from_in_both_readings(results):
    learned = {(row.estimate, row.belief, row.measure) for row in results if row.belief}
    assert len(learned) == len(study.ESTIMATES) * len(study.BELIEFS) * len(study.READINGS)
    ends = {kind: study.of(results, task="lake", seed=0, measure=kind) for kind in ("expert", "optimum")}
    assert ends["optimum"] < ends["expert"]


def test_tables_and_figure_show_the_results(results):
    text = study.estimators(results)
    error = study.shown(study.of(results, task="windy", estimate="count", measure="error"))
    assert f"| windy | 2 | {error} |" in text
    assert "better than the count" in text
    assert "| lake | 2 |" in study.readings(results)
    assert len(study.figure(results).axes) == len(study.TASK_NAMES)


def test_a_result_is_read_as_it_was_written(results):
    row = results[0]
    assert study.result({name: str(value) for name, value in vars(row).items()}) == row


def test_only_the_marked_part_of_a_page_is_written():
    page = f"before\n{study.BEGIN}\nold\n{study.END}\nafter"
    assert study.filled(page, "new\n") == f"before\n{study.BEGIN}\nnew\n{study.END}\nafter"
    with pytest.raises(ValueError, match="has no lines"):
        study.filled("nothing", "new")
