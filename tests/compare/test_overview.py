"""The comparison at a glance, and its page of documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_comparison import SMALL

from rlfd_gym import compare
from rlfd_gym.compare.overview import MARKS

ROOT = Path(__file__).resolve().parents[2]


def test_the_overview_shows_the_means_of_each_task_at_two_levels(written):
    result, _ = written
    table = compare.overview(result, [("cloning", None, "mode"), ("optimum", None, "occupancy")])
    middle, last = (f"{SMALL['demonstrations'][0]} demos", "exact")
    heads = [head for task in SMALL["tasks"] for head in (f"{task}, {middle}", f"{task}, {last}", "guaranteed")]
    assert list(table.header) == ["", *heads]
    assert [row[0].text for row in table.rows] == ["cloning as mode", "optimum"]
    means = {
        (s.task, s.demonstrations): s.share_closed
        for s in result.all_summaries()
        if (s.method, s.reading) == ("cloning", "mode")
    }
    for number, (task, level) in enumerate((t, k) for t in SMALL["tasks"] for k in (SMALL["demonstrations"][0], last)):
        text = table.rows[0][1 + number + number // 2].text
        assert text == f"{100 * means[task, level] + 0.0:.0f}%".replace("-0%", "0%")
    assert {table.rows[1][k].text for k in (1, 2, 4, 5)} == {"100%"}


def test_all_rows_that_show_the_best_number_are_bold(written):
    table = compare.overview(written[0], [("optimum", None, "occupancy"), ("optimum", None, "mode")])
    assert all(row[1].bold for row in table.rows)


def test_the_page_has_every_table_and_the_readme_gets_the_overview_between_its_marks(written, tmp_path):
    result, _ = written
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{MARKS[0]}\nold\n{MARKS[1]}\nafter \\1\n")
    assert compare.write_docs(result, tmp_path / "docs") == [tmp_path / "docs" / "comparison.md", readme]
    page, overview = (tmp_path / "docs" / "comparison.md").read_text(), compare.overview(result).markdown()
    assert overview in page
    assert all(result.table(task).markdown() in page for task in SMALL["tasks"])
    assert readme.read_text() == f"before\n{MARKS[0]}\n{overview}\n{MARKS[1]}\nafter \\1\n"


def test_the_readme_may_have_fewer_rows_than_the_page(written, tmp_path):
    readme, rows = tmp_path / "README.md", [("cloning", None, "mode")]
    readme.write_text(f"{MARKS[0]}\n{MARKS[1]}\n")
    compare.write_docs(written[0], tmp_path / "docs", readme_rows=rows)
    assert readme.read_text() == f"{MARKS[0]}\n{compare.overview(written[0], rows).markdown()}\n{MARKS[1]}\n"
    assert compare.overview(written[0]).markdown() in (tmp_path / "docs" / "comparison.md").read_text()


def test_a_readme_without_marks_is_left_alone(written, tmp_path):
    (tmp_path / "README.md").write_text("nothing to see")
    assert compare.write_docs(written[0], tmp_path / "docs") == [tmp_path / "docs" / "comparison.md"]
    assert (tmp_path / "README.md").read_text() == "nothing to see"


def test_the_readme_shows_the_overview_of_the_page():
    if not (ROOT / "README.md").is_file():
        pytest.skip("the tests were copied without the repository")
    _, _, rest = (ROOT / "README.md").read_text().partition(MARKS[0])
    shown = rest.partition(MARKS[1])[0].strip()
    lines = shown.replace("**", "").splitlines()  # the best of fewer rows are bold
    assert len(lines) > 5
    assert set(lines) <= set((ROOT / "docs" / "comparison.md").read_text().replace("**", "").splitlines())
