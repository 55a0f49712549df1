"""The study of savings from a log: its shop, its table and its page."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import study_logs as study


def test_the_manager_and_the_log_are_those_of_the_example():
    shop = study.Shop.make()
    np.testing.assert_allclose(shop.mdp.sum_by_state(shop.manager), 1)
    rows = shop.log(50, 40, np.random.default_rng(0))
    order, stock = rows["order"], rows["stock"]
    assert (order % study.PACK == 0).all()
    assert not order[stock > study.REORDER].any()
    assert 0.05 < (order[stock == 0] == 0).mean() < 0.15
    last = (rows["shop"] == 3) & (rows["week"] < 39)
    first = (rows["shop"] == 3) & (rows["week"] > 0)
    assert (rows["next_stock"][last] == stock[first]).all()


def test_what_the_manager_does_saves_nothing_and_the_optimum_does():
    shop = study.Shop.make()
    log = study.read_log(shop.log(100, 100, np.random.default_rng(0)), discount=0.9, **study.NAMES)
    pairs = shop.mdp.pair_index(*np.array(log.pair_labels()).T)
    assert shop.saving(log, shop.manager[pairs]) == pytest.approx(0, abs=1e-9)
    assert shop.saving(log, log.mdp.optimal(shop.cost[pairs]).policy) > 1


def test_the_study_writes_its_table_page_and_figure(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(study, "SIZES", ((3, 52),))
    out = ["study_logs", "--out", str(tmp_path / "out")]
    monkeypatch.setattr(sys, "argv", [*out, "--logs", "2", "--resamples", "2", "--docs", str(tmp_path)])
    study.main()
    page = (tmp_path / "logs_coverage.md").read_text()
    assert page.count("| 3 × 52 |") == len(study.BELIEFS) + 1
    assert (tmp_path / "logs_coverage.png").exists()
    assert len((tmp_path / "out" / "logs.csv").read_text().splitlines()) == 1 + 2 * len(study.BELIEFS)
    monkeypatch.setattr(sys, "argv", [*out, "--redraw"])
    study.main()
    assert page.split("|")[10:20] == (tmp_path / "out" / "logs_coverage.md").read_text().split("|")[10:20]
    assert "90% interval covers" in capsys.readouterr().out
