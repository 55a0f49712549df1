"""The report on what was learned from a log."""

from __future__ import annotations

import numpy as np
import pytest
from small_logs import TINY

from rlfd_gym import read_log
from rlfd_gym.experts.logs import read_costs
from rlfd_gym.experts.scale import CostScale
from rlfd_gym.report import write_csv
from rlfd_gym.report.log import decided, learn, summary, write_page, write_report, write_tables
from rlfd_gym.report.log_tables import policy_table

COSTS = {(0, 0): 3.0, (0, 1): 1.0, (1, 0): 2.0, (2, 0): 5.0}


@pytest.fixture(scope="module")
def learned():
    return learn(read_log(TINY, discount=0.5), COSTS, alpha=0.5, state="stock", action="order")


def test_costs_are_learned_in_the_priors_money_and_may_be_looked_for_elsewhere(learned):
    np.testing.assert_allclose(learned.prior, list(COSTS.values()))
    assert 1 - 1e-9 <= learned.cost.min() <= learned.cost.max() <= 5 + 1e-9
    wider = learn(learned.log, COSTS, alpha=0.5, scale=CostScale(0.0, 10.0))
    np.testing.assert_allclose(wider.prior, list(COSTS.values()))
    assert wider.scale.high == 10


def test_pairs_that_the_prior_lacks_have_the_middle_of_its_range_and_the_page_says_so(learned, tmp_path):
    pytest.importorskip("matplotlib")
    fewer = learn(learned.log, {pair: cost for pair, cost in COSTS.items() if pair != (0, 0)}, alpha=0.5)
    assert fewer.n_without_prior == 1
    assert fewer.prior.tolist() == pytest.approx([3.0, 1.0, 2.0, 5.0])
    page = write_page(fewer, tmp_path, title="A log").read_text()
    assert "1 pairs without a prior have the middle of its range, 3.00." in page


def test_a_rule_chooses_alpha_and_says_why(learned):
    choice = learn(learned.log, COSTS, "regret-budget:0.1").choice
    assert choice.rule == "regret-budget:0.1"
    assert choice.reason


def test_the_summary_compares_three_policies_under_two_costs(learned):
    header, *rows = summary(learned)
    assert [row[0] for row in rows] == ["logged behaviour", "apprentice", "best for the prior"]
    assert {len(row) for row in (header, *rows)} == {5}
    assert rows[0][3] == "0% of the time"
    mdp, log = learned.log.mdp, learned.log
    assert float(rows[0][1]) == pytest.approx(mdp.occupancy_of(log.policy) @ learned.prior, abs=0.005)


def test_the_learned_cost_can_serve_as_a_prior_again(learned, tmp_path):
    write_tables(learned, tmp_path)
    again = learned.log.pair_values("prior", read_costs(tmp_path / "cost.csv"))
    np.testing.assert_allclose(again, learned.cost, rtol=1e-5)


def test_the_page_speaks_the_logs_words(learned, tmp_path):
    pytest.importorskip("matplotlib")
    path = write_page(learned, tmp_path, title="A log", warnings=["rain is coming"], command="python x.py")
    page = path.read_text()
    for expected in ("<h1>A log</h1>", "Warning: rain is coming.", "python x.py", "order in the log", "pairs of stock"):
        assert expected in page


def test_what_was_learned_represents_itself_in_a_line(learned):
    assert repr(learned).startswith("Learned(Log(5 of 5 rows used, 3 states")
    assert repr(learned).endswith("α = 0.5 by hand)")


def test_labels_that_look_like_formulas_come_back_from_the_written_costs(tmp_path):
    rows = {"state": ["=a", "-b", "=a"], "action": ["@x", "+y", "@x"], "next_state": ["-b", "=a", "=a"]}
    costs = {("=a", "@x"): -1.0, ("-b", "+y"): 2.0}
    learned = learn(read_log(rows, discount=0.5), costs, alpha=0.5)
    write_tables(learned, tmp_path)
    text = (tmp_path / "cost.csv").read_text()
    assert "'=a,'@x," in text
    assert "'-b,'+y," in text
    again = learned.log.pair_values("prior", read_costs(tmp_path / "cost.csv"))
    np.testing.assert_allclose(again, learned.cost, rtol=1e-5)
    write_csv(tmp_path / "log.csv", list(rows), zip(*rows.values(), strict=True))
    assert read_log(tmp_path / "log.csv", discount=0.5).state_labels == learned.log.state_labels


def test_a_report_replaces_the_one_before_as_a_set(learned, tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "log.csv").write_text("mine")
    (tmp_path / "cost.csv").write_text("from before")
    files = {"cost.csv", "log.csv", "path.csv", "path.png", "policy.csv", "report.html"}
    for title in ("first", "second"):
        page = write_report(learned, tmp_path, title=title)
        assert page == tmp_path / "report.html"
        assert f"<h1>{title}</h1>" in page.read_text()
        assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == files
    assert (tmp_path / "log.csv").read_text() == "mine"
    assert read_costs(tmp_path / "cost.csv")


def test_a_report_that_cannot_be_drawn_leaves_the_one_before(learned, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    write_report(learned, tmp_path, title="first")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("[!.]*")}
    monkeypatch.setattr("rlfd_gym.report.log.draw_maps", lambda learned: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(learned, tmp_path, title="second")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("[!.]*")} == before


@pytest.fixture(scope="module")
def guessed():
    # Ordering 2 was never seen. It is assumed to lead anywhere, and the prior likes it.
    stock = np.arange(60) % 3
    rows = {"stock": stock, "order": (stock == 0) * 1, "next": (stock + 1) % 3}
    costs = {(s, a): 5.0 - 2 * a + s for s in range(3) for a in range(3)}
    names = {"state": "stock", "action": "order", "next_state": "next"}
    labels = {"state_labels": range(3), "action_labels": range(3), "feasible": costs}
    log = read_log(rows, discount=0.9, unvisited="uniform", **names, **labels)
    return learn(log, costs, alpha=100.0, state="stock", action="order"), costs


def test_the_best_policy_of_the_summary_takes_actions_that_were_seen(guessed):
    learned = guessed[0]
    rows = {row[0]: row for row in summary(learned)[1:]}
    # Only one action was seen in each state, so nothing that was seen is better than what is done.
    assert rows["best for the prior"][1] == rows["logged behaviour"][1]
    assert float(rows["apprentice"][1]) < float(rows["best for the prior"][1])
    assert rows["apprentice"][4] == "100% of the time"  # on pairs with fewer than ten rows
    assert rows["logged behaviour"][4] == "0% of the time"


def test_a_learned_action_that_was_never_seen_is_marked(guessed):
    header, rows = policy_table(guessed[0])
    assert header[-1] == "its rows"
    assert {row[-1] for row in rows} == {"never seen"}


def test_the_captions_tell_the_truth_about_pairs_that_were_never_seen(guessed, learned, tmp_path):
    pytest.importorskip("matplotlib")
    assert "Grey was never seen." in write_page(learned, tmp_path, title="A log").read_text()
    page = write_page(guessed[0], tmp_path, title="A log").read_text()
    assert "Grey was never seen." not in page
    assert "a cross was never seen, and is assumed" in page


def test_a_decision_recommends_nothing_that_was_never_seen(guessed, tmp_path):
    pytest.importorskip("matplotlib")
    learned = decided(*guessed, n_resamples=3)
    assert all(one.rows > 0 for one in learned.decision.recommendations)
    page = write_page(learned, tmp_path, title="A log").read_text()
    assert "What to do" in page
    assert "order instead" in page
