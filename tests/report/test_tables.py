"""CSV files and intervals."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from rlfd_gym.report import half_width, mean_and_margin, read_csv, write, write_csv


def test_a_csv_file_has_a_header_and_gives_every_number_back(tmp_path):
    rows = [["a, b", 0.1 + 0.2, 3], ['"', 1e-300, -1]]
    write_csv(tmp_path / "new" / "table.csv", ["text", "number", "count"], rows)
    content = (tmp_path / "new" / "table.csv").read_bytes()
    assert b"\r" not in content
    header, *lines = csv.reader(content.decode().splitlines())
    assert header == ["text", "number", "count"]
    assert [[text, float(number), int(count)] for text, number, count in lines] == rows
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["table.csv"]


def test_digits_shorten_floats_and_nothing_else(tmp_path):
    write_csv(tmp_path / "table.csv", ["x", "y", "z"], [[1 / 3, 1234567, np.float64(2e-9)]], digits=3)
    assert (tmp_path / "table.csv").read_text() == "x,y,z\n0.333,1234567,2e-09\n"


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    write(tmp_path / "file", b"before")

    def rows():
        yield [1]
        raise ValueError("interrupted")

    with pytest.raises(ValueError, match="interrupted"):
        write_csv(tmp_path / "file", ["x"], rows())
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("file", b"before")]


@pytest.mark.parametrize("n", [2, 3, 20])
def test_the_interval_of_a_mean_is_students(n):
    values = np.random.default_rng(n).normal(size=n)
    mean, margin = mean_and_margin(values)
    expected = ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose([mean - margin, mean + margin], expected)
    assert half_width(values.std(), n, ddof=0) == pytest.approx(margin)


def test_a_single_value_has_no_interval():
    assert mean_and_margin([2.0]) == (2.0, None)
    assert np.isnan(half_width(np.zeros(3), 1)).all()


def test_texts_that_look_like_formulas_are_guarded_and_read_back(tmp_path):
    rows = [["=cmd|' /C calc'!A0", -1.5, "-2.50"], ["'=x", None, "plain"]]
    write_csv(tmp_path / "table.csv", ["@name", "number", "text"], rows)
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines == ["'@name,number,text", "'=cmd|' /C calc'!A0,-1.5,-2.50", "''=x,,plain"]
    header, read = read_csv(tmp_path / "table.csv")
    assert header == ["@name", "number", "text"]
    assert read == [["=cmd|' /C calc'!A0", "-1.5", "-2.50"], ["'=x", "", "plain"]]
