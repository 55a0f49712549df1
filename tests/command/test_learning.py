"""`rlfd learn` from a simulated shop to the page: the numbers are the decision's, and true."""

from __future__ import annotations

import inspect
import json
import re
from html import unescape

import numpy as np
import pytest
from simulated_shop import COLUMNS, FEATURES, HEADER, PRICES, STATED, exported, shop, true_saving

from rlfd_gym import read_log
from rlfd_gym.command import learning, main
from rlfd_gym.decision import decide, price_belief
from rlfd_gym.decision.words import sentences


@pytest.fixture(scope="module")
def log_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "weeks.csv"
    path.write_text(exported(shop()))
    return path


@pytest.fixture(scope="module")
def decision(log_file):
    names = {"state": "stock", "action": "order", "episode": "shop", "time": "week"}
    log = read_log(log_file, discount=0.9, columns=["sold"], **names)
    return decide(log, lambda one: price_belief(one, PRICES, FEATURES), n_resamples=30)


def run(capsys, *arguments):
    """The JSON object that the command prints."""
    assert main(["learn", *map(str, arguments), "--resamples", "30", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_prices_give_the_decision_on_the_page_and_as_json(log_file, decision, tmp_path, capsys):
    result = run(capsys, log_file, *COLUMNS, *STATED, "--out", tmp_path)
    assert result["answers"] == sentences(decision)
    assert result["saving"] == pytest.approx(vars(decision.saving))
    assert result["guaranteed"] == pytest.approx(vars(decision.guaranteed))
    assert [one["action"] for one in result["recommendations"]] == [one.action for one in decision.recommendations]
    assert [one["price"]["value"] for one in result["prices"]] == pytest.approx(
        [one.price.value for one in decision.prices]
    )
    np.testing.assert_allclose(result["path"]["improvement"], decision.path.improvement)
    page = (tmp_path / "report.html").read_text()
    assert all(sentence in unescape(page) for sentence in sentences(decision))
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"report.html", "cost.csv", "policy.csv", "path.csv"}


def test_the_saving_is_true_and_the_price_is_what_the_manager_has_in_mind(decision):
    truth = true_saving(shop(), decision)
    assert truth > 0
    assert decision.saving.low <= truth
    assert decision.guaranteed.low <= truth
    assert decision.promised > truth  # chosen on the log that promises it
    holding = next(one for one in decision.prices if one.name == "holding")
    assert holding.price.low <= 1.9 <= holding.price.high  # what the manager thinks
    assert holding.price.value > 1.0  # the truth


@pytest.mark.parametrize(("option", "sign"), [("--revenue", 1), ("--cost", -1)])
def test_money_in_the_log_is_prior_and_measure(log_file, tmp_path, capsys, option, sign):
    pytest.importorskip("matplotlib")
    result = run(capsys, log_file, *COLUMNS, option, "profit", "--alpha", "10", "--out", tmp_path)
    rows = [line.split(",") for line in log_file.read_text().splitlines()[1:]]
    last = {row[1]: row for row in rows}.values()  # nothing follows them, so they are not used
    mean = np.mean([float(row[-1]) for row in rows if row not in last])
    assert result["present"]["value"] == pytest.approx(-sign * mean, rel=0.1)
    verb = "earns" if sign * mean > 0 else "costs"
    assert result["answers"][0].startswith(f"Your rule {verb} about ")
    assert result["answers"][0].endswith(" a week per shop.")


def test_money_in_the_log_is_the_measure_beside_prices(log_file, decision, tmp_path, capsys):
    result = run(capsys, log_file, *COLUMNS, *STATED, "--revenue", "profit", "--out", tmp_path)
    # The profit was made of these prices, and their middles are the truth.
    assert result["present"]["value"] == pytest.approx(decision.present.value, rel=1e-6)


def test_the_results_have_a_folder_of_their_own_by_default(log_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    result = run(capsys, log_file, *COLUMNS, *STATED)
    assert result["page"] == "results/learn/weeks/report.html"
    assert (tmp_path / "results" / "learn" / "weeks" / "report.html").is_file()


def test_a_demand_is_that_of_all_rows(log_file, tmp_path, capsys):
    formula = "selling=-min(stock + order, sold)"
    stated = [formula if text == "selling=-sold" else text for text in STATED]
    own = run(capsys, log_file, *COLUMNS, *stated, "--out", tmp_path)
    pooled = run(capsys, log_file, *COLUMNS, *stated, "--demand", "sold", "--out", tmp_path)
    assert own["present"]["value"] != pooled["present"]["value"]


def test_the_defaults_are_those_of_the_library():
    defaults = inspect.signature(decide).parameters
    assert defaults["least_rows"].default == learning.LEAST_ROWS
    assert defaults["confidence"].default == learning.CONFIDENCE
    assert defaults["n_resamples"].default == learning.RESAMPLES


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "what do you believe about the costs? Give --prior FILE, or --price"),
        (["--price", "holding=1..2"], "--price holding needs --feature holding=…"),
        (["--feature", "holding=stock"], "--feature holding needs --price holding=LOW..HIGH"),
        (["--price", "holding=2..1"], "'holding=2..1' must be a range, as in holding=0.3..3"),
        (["--price", "holding=nan"], "'holding=nan' must be a range"),
        (["--price", "1..2"], "'1..2' must be NAME=…"),
        (["--price", "a=1", "--price", "a=2"], "--price a is given 2 times"),
        (["--price", "a=1", "--feature", "a=order", "--prior", "p.csv"], "say the same in two ways"),
        (["--price", "a=1", "--feature", "a=order", "--range", "0", "1"], "--range belongs to a prior"),
        (["--price", "a=1", "--feature", "a=order", "--resamples", "0"], "--resamples 0 goes with a prior only"),
        (["--price", "a=1", "--feature", "a=ordr"], "did you mean 'order'?"),
        (["--price", "a=1", "--feature", "a=__import__('os')"], "column __import__: "),
        (["--price", "a=1", "--feature", "a=order.real"], "which is not understood"),
        (["--revenue", "profit", "--cost", "profit"], "not allowed with argument"),
        (["--revenue", "week", "--least", "3"], "did you mean --least-rows?"),
        (["--revenue", "shop"], "column 'shop' holds no numbers"),
    ],
)
def test_mistakes_are_told_without_a_traceback_and_before_anything_is_written(tmp_path, capsys, arguments, message):
    log = tmp_path / "log.csv"
    log.write_text(HEADER + "1,a,0,1,1,2\n2,a,0,1,0,1\n3,a,1,0,1,6\n")
    try:
        status = main(["learn", str(log), *COLUMNS, *arguments, "--out", str(tmp_path / "out")])
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    assert re.search(re.escape(message), capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


DIRTY = HEADER + "".join(f"{week},a,{week % 3},{week % 2},1,{week}\n" for week in range(40))


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (DIRTY.replace("\n5,a,2", "\n5,a,n/a").replace("\n9,a,0", "\n9,a,x").replace("\n7,a,1", "\n7,a,y"), [],
         r"more than --max-dropped 0.05 allows: .*give --decimal , .*raise --max-dropped"),
        (DIRTY, ["--revenue", "profitt"], r"column profitt: .*did you mean 'profit'"),
        (DIRTY, ["--resamples", "1"], r"--resamples must be at least 2, got 1"),
        (DIRTY, ["--confidence", "1"], r"--confidence must be"),
        (DIRTY, ["--state", "stok"], r"--state stok: .*did you mean 'stock'"),
        (DIRTY.replace(",a,", ",\xe9,"), [], r"give --encoding latin-1 or cp1252"),
        (HEADER + "".join(f"0{k}/01/2023,a,1,{k % 2},1,{k}\n" for k in range(1, 9)), [],
         r"with --dates day-first and .* with --dates month-first: say which"),
        (HEADER + "0,a,1,1,1,1\n", [], r"every episode has a single row, so nothing follows"),
        (DIRTY, ["--prior", "prior.csv"], r"add them to the prior, or give --labels log"),
    ],
)  # fmt: skip
def test_messages_name_the_options_that_mend_and_not_the_arguments_of_python(
    tmp_path, monkeypatch, capsys, text, options, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_bytes(text.encode("latin-1"))
    (tmp_path / "prior.csv").write_text("state,action,cost\n0,0,1\n1,0,2\n2,0,3\n")
    said = ["--revenue", "profit"] if "--prior" not in options and "--revenue" not in options else []
    assert main(["learn", "log.csv", *COLUMNS, *said, *options]) == 2
    told = capsys.readouterr().err
    assert re.search(message, told), told
    assert not re.search(r"max_dropped|encoding=|decimal=|dates=|fold=|n_resamples|read_log", told)


def test_warnings_name_options_and_rows_without_money_are_told(tmp_path, capsys):
    text = DIRTY.replace(",0,1,1,3\n", ",0,1,1,\n").replace("\n6,a,0", "\n6,A ,0")
    (tmp_path / "log.csv").write_text(text.replace("a,0", "a,Low").replace("a,1", "a,low").replace("a,2", "a,high"))
    options = [*COLUMNS, "--revenue", "profit", "--resamples", "2", "--max-dropped", "0.5", "--out", str(tmp_path)]
    assert main(["learn", str(tmp_path / "log.csv"), *options]) == 0
    told = capsys.readouterr().err
    assert "--no-fold keeps them apart" in told
    assert "good rows hold no number as profit" in told
    assert "fold=False" not in told
    assert main(["learn", str(tmp_path / "log.csv"), *options, "--no-fold"]) == 0
    assert "spelled in several ways" not in capsys.readouterr().err
