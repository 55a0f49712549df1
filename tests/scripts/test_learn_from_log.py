"""From a log to a report on the command line."""

from __future__ import annotations

import importlib
import re
import sys

import learn_from_log
import pytest
from small_logs import written


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--state", "stok"], "--state stok: .* did you mean 'stock'?"),
        (["--state", "stock", "--alpha", "regret"], "did you mean 'regret-budget'"),
        (["--state", "stock", "--alpha", "discrepancy"], "needs noise"),
        (["--state", "stock", "--range", "5", "5"], "low must be below high"),
    ],
)
def test_mistakes_on_the_command_line_are_told_without_a_traceback(tmp_path, capsys, arguments, message):
    prior = written(tmp_path, "0,0,1\n0,1,2\n1,0,3\n", header="state,action,cost\n", name="prior.csv")
    log = written(tmp_path, "1,a,0,1,1\n2,a,1,0,0\n3,a,0,0,0\n")
    files = ["--action", "order", "--next-state", "next_stock", "--prior", str(prior), "--out", str(tmp_path / "out")]
    assert learn_from_log.main([str(log), *arguments, *files]) == 2
    assert re.search(f"^rlfd learn: .*{message}", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


WEEKS = "".join(f"{day},{shop},{stock},{order},{then}\n" for day, shop, stock, order, then in [
    (week, shop, (week + k) % 3, 9 if week % 4 == 0 else week % 3, (week + k + 1) % 3)
    for k, shop in enumerate("ab") for week in range(40)
])  # fmt: skip
COLUMNS = ["--state", "stock", "--action", "order", "--next-state", "next_stock", "--episode", "shop", "--time", "day"]
PRIOR = "".join(f"{stock},{order},{stock - 2 * order}\n" for stock in range(3) for order in range(3))


def test_a_prior_that_lists_other_actions_than_the_log_stops_and_says_what_to_do(tmp_path, capsys):
    # A quarter of the rows would have been dropped as "not among the labels given", with exit code 0.
    prior = written(tmp_path, PRIOR, header="state,action,cost\n", name="prior.csv")
    log = written(tmp_path, WEEKS)
    out = ["--prior", str(prior), "--out", str(tmp_path / "out"), "--resamples", "0"]
    bad = r"20 of 80 rows are bad, more than --max-dropped 0\.05 allows: "
    message = bad + "order is not among the labels given, 20 .*'9'.*add"
    assert learn_from_log.main([str(log), *COLUMNS, *out]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_pairs_that_the_prior_lacks_get_the_middle_of_its_range(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    prior = written(tmp_path, PRIOR, header="state,action,cost\n", name="prior.csv")
    log = written(tmp_path, WEEKS)
    out = ["--prior", str(prior), "--out", str(tmp_path / "out"), "--resamples", "3", "--labels", "log"]
    learn_from_log.main([str(log), *COLUMNS, *out])
    assert "3 pairs without a prior have the middle of its range, -1.00." in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text()
    assert "pairs without a prior have the middle of its range" in page
    assert "order instead" in page


def test_labels_with_dollars_are_no_formulas(tmp_path):
    pytest.importorskip("matplotlib")
    prior = written(
        tmp_path, "$5-$10,$%$,1\n$5-$10,b,2\n$\\frac$,b,3\n", header="state,action,cost\n", name="prior.csv"
    )
    log = written(tmp_path, "$5-$10,$%$,$\\frac$\n$\\frac$,b,$5-$10\n$5-$10,b,$5-$10\n", header="$x^$,do,then\n")
    files = ["--prior", str(prior), "--out", str(tmp_path / "out")]
    learn_from_log.main([str(log), "--state", "$x^$", "--action", "do", "--next-state", "then", *files])
    assert "<td>$\\frac$</td>" in (tmp_path / "out" / "report.html").read_text()


def test_out_is_looked_at_before_the_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    columns = ["--state", "s", "--action", "a", "--next-state", "t"]
    assert learn_from_log.main(["no.csv", *columns, "--prior", "no.csv", "--out", str(tmp_path / "file" / "out")]) == 2
    assert capsys.readouterr().err.endswith("file is a file, expected a folder\n")


@pytest.mark.parametrize("name", ["verify_theorem", "sparse_priors", "study_alpha", "reproduce", "compare"])
def test_every_script_looks_at_out_before_the_work(tmp_path, monkeypatch, capsys, name):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(sys, "argv", [name, "--out", str(tmp_path / "file")])
    try:
        status = importlib.import_module(name).main()
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    assert "file is a file, expected a folder" in capsys.readouterr().err
