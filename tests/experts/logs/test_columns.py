from __future__ import annotations

import gzip
import sys

import pytest
from small_logs import HEADER, NAMES

from rlfd_gym import read_log
from rlfd_gym.experts.logs.columns import meaning, read_table


def test_a_column_of_values_that_occur_often_is_kept_as_codes():
    column = read_table({"shop": ["b", "a", "b"]}, {"episode": "shop"}).columns["episode"]
    assert [column.values[code] for code in column.codes] == ["b", "a", "b"]
    assert column.counts.tolist() == [1, 2]
    assert column.spread([10, 20], -1).tolist() == [20, 10, 20]


def test_underscores_make_a_text_although_python_reads_them_as_a_number():
    assert meaning("1_000") == "1_000"
    assert meaning("1000") == 1000


@pytest.mark.parametrize("end", ["", '3,a,0,1,1,"late\n', '3,a,0,1,1,""\n'])
def test_a_quote_that_is_not_closed_swallows_no_rows(csv, end):
    header = HEADER.replace("\n", ",note\n")
    quoted = csv('1,a,0,1,1,"late, and\nill"\n2,a,1,0,0,"a ""b"""\n', header)
    assert read_log(quoted, discount=0.9, **NAMES).report.n_used == 2
    path = csv('1,a,0,1,1,\n2,a,1,0,0,"late\n' + "3,a,0,1,1,\n" * 50 + end, header)
    with pytest.raises(ValueError, match=r"log\.csv: the row after line 2 is no CSV, see its quotes"):
        read_log(path, discount=0.9, **NAMES)


def test_a_column_that_is_there_twice_is_refused(csv):
    with pytest.raises(ValueError, match=r"state='stock': .*log\.csv has 2 such columns"):
        read_log(csv("0,1,1,9\n1,0,0,9\n", "stock,order,next_stock,stock\n"), discount=0.9, **NAMES)


def test_a_file_in_another_encoding_than_utf8_is_named(tmp_path):
    (tmp_path / "log.csv").write_bytes((HEADER + "1,Café,0,1,1\n").encode("latin-1"))
    with pytest.raises(ValueError, match=r"log\.csv is no CSV file in UTF-8"):
        read_log(tmp_path / "log.csv", discount=0.9, **NAMES)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:12] + data[20:], lambda data: b"1,2,3"])
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    whole = gzip.compress((HEADER + "".join(f"{day},a,0,{day % 7},1\n" for day in range(500))).encode())
    (tmp_path / "log.csv.gz").write_bytes(damage(whole))
    with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged or not compressed by gzip"):
        read_log(tmp_path / "log.csv.gz", discount=0.9, **NAMES)


def test_without_pandas_csv_files_are_read_and_parquet_says_what_is_missing(csv, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with gzip.open(tmp_path / "log.csv.gz", "wt") as file:
        file.write(HEADER + "1,a,0,1,1\n2,a,1,0,0\n")
    assert read_log(tmp_path / "log.csv.gz", discount=0.9, **NAMES).report.n_used == 2
    (tmp_path / "log.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match=r'pip install "rlfd-gym\[logs\]"'):
        read_log(tmp_path / "log.parquet", discount=0.9)
