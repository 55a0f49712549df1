from __future__ import annotations

import gzip
import sys
import time

import numpy as np
import pytest
from small_logs import EPISODES, HEADER, NAMES, early_ends

from rlfd_gym import read_log
from rlfd_gym.experts.logs import columns
from rlfd_gym.experts.logs.records import read_table
from rlfd_gym.experts.logs.values import meaning


def test_a_column_of_values_that_occur_often_is_kept_as_codes():
    column = read_table({"shop": ["b", "a", "b"]}, {"episode": "shop"}).columns["episode"]
    assert [column.values[code] for code in column.codes] == ["b", "a", "b"]
    assert column.counts.tolist() == [2, 1]
    assert column.spread([10, 20], -1).tolist() == [10, 20, 10]


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
    with pytest.raises(
        ValueError, match=r"log\.csv is no CSV file in UTF-8: line 2 holds the byte 0xe9\..*encoding='latin-1'"
    ):
        read_log(tmp_path / "log.csv", discount=0.9, **NAMES)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:12] + data[20:], lambda data: b"1,2,3"])
def test_a_damaged_gzip_file_is_named(tmp_path, damage):
    whole = gzip.compress((HEADER + "".join(f"{day},a,0,{day % 7},1\n" for day in range(500))).encode())
    (tmp_path / "log.csv.gz").write_bytes(damage(whole))
    with pytest.raises(ValueError, match=r"log\.csv\.gz is damaged or not compressed by gzip"):
        read_log(tmp_path / "log.csv.gz", discount=0.9, **NAMES)


def test_without_pandas_and_pyarrow_csv_files_are_read_and_parquet_says_what_is_missing(csv, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with gzip.open(tmp_path / "log.csv.gz", "wt") as file:
        file.write(HEADER + "1,a,0,1,1\n2,a,1,0,0\n")
    assert read_log(tmp_path / "log.csv.gz", discount=0.9, **NAMES).report.n_used == 2
    (tmp_path / "log.parquet").write_bytes(b"")
    with pytest.raises(ImportError, match='pip install "pandas>='):
        read_log(tmp_path / "log.parquet", discount=0.9)


def test_a_damaged_parquet_file_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "log.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises(ValueError, match=r"log\.parquet is damaged or no parquet file"):
        read_log(tmp_path / "log.parquet", discount=0.9)


def test_of_a_parquet_file_only_the_columns_that_are_named_are_read(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"state": [0, 1], "action": [0, 0], "next_state": [1, 0], "note": ["long", "longer"]})
    frame.to_parquet(tmp_path / "log.parquet")
    table = read_table(tmp_path / "log.parquet", {"state": "state"})
    assert (list(table.columns), table.columns["state"].values) == (["state"], [0, 1])
    with pytest.raises(ValueError, match=r"state='sate': .*log.parquet has no such column.*did you mean 'state'"):
        read_log(tmp_path / "log.parquet", discount=0.9, state="sate")


LONG = 3_000
SOURCES = {
    "numbers": lambda day: day,
    "gaps": lambda day: np.where(day % 7 == 0, np.nan, day),
    "texts": lambda day: np.array([f"2024-01-01T00:{t // 60:02}:{t % 60:02}" for t in day.tolist()]),
    "objects": lambda day: np.array([None if t % 5 == 0 else t for t in day.tolist()], dtype=object),
}


@early_ends
@pytest.mark.filterwarnings("ignore:.*logged rows are bad")
@pytest.mark.parametrize("kind", ["mapping", "frame", "csv", "parquet"])
@pytest.mark.parametrize("times", SOURCES)
def test_a_log_that_is_read_in_parts_is_the_same_log(tmp_path, monkeypatch, kind, times):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    stock = rng.integers(0, 6, LONG + 1)
    names = np.array(["none", "few", "some", "many", "more", "most"])
    shop, day = np.arange(LONG) // 300, SOURCES[times](np.arange(LONG) % 300)
    rows = {
        "day": day,
        "shop": shop,
        "stock": names[stock[:-1]],
        "order": stock[1:] % 3,
        "next_stock": names[stock[1:]],
    }
    source = rows if kind == "mapping" else pandas.DataFrame(rows)
    if kind in ("csv", "parquet"):
        path = tmp_path / f"log.{kind}"
        source.to_csv(path, index=False) if kind == "csv" else source.to_parquet(path)
        source = path
    logs = []
    for part in (10**9, 127):
        monkeypatch.setattr(columns, "PART", part)
        logs.append(read_log(source, discount=0.9, **NAMES, **EPISODES, max_dropped=1))
    whole, parts = logs
    assert parts.report == whole.report
    assert (parts.state_labels, parts.action_labels) == (whole.state_labels, whole.action_labels)
    for name in ("expert", "policy", "visits"):
        assert (getattr(parts, name) == getattr(whole, name)).all()
    assert (parts.mdp.transitions != whole.mdp.transitions).nnz == 0
    assert (parts.episodes.states == whole.episodes.states).all()


@pytest.mark.slow
def test_keys_of_pairs_do_not_overflow_the_codes():
    n = 70_000  # n_states · n_actions is above 2³¹
    s = np.arange(n)
    log = read_log({"state": s, "action": s, "next_state": s}, discount=0.5, feasible=[(k, k) for k in range(n)])
    assert (log.mdp.pair_actions == s).all()
    assert (log.visits == 1).all()


@early_ends
def test_a_million_rows_are_read_in_seconds_and_bounded_memory(csv):
    n_rows, n_weeks = 1_000_000, 1_000
    shop = "".join(f"{week},SHOP,{week % 21},{week % 7},{(week + 1) % 21}\n" for week in range(n_weeks))
    path = csv("".join(shop.replace("SHOP", str(number)) for number in range(n_rows // n_weeks)))
    start = time.process_time()
    log = read_log(path, discount=0.99, **NAMES, **EPISODES)
    assert time.process_time() - start < 15
    assert (log.report.n_used, log.report.n_episodes) == (n_rows, n_rows // n_weeks)
    assert log.groups.shape[0] == 1_000
    assert log.visits.sum() == n_rows
