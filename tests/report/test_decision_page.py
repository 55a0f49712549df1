"""The page of a decision: its numbers are the decision's, in the text, in the slider and in a browser."""

from __future__ import annotations

import csv
import json
import re
from html import unescape

import numpy as np
import pytest
from simulated_shop import FEATURES, PRICES, exported, shop
from small_browser import opened

from rlfd_gym import read_log
from rlfd_gym.decision import decide, price_belief
from rlfd_gym.decision.words import money, sentences
from rlfd_gym.report.decision_page import SHOWN_STATES, decision_page, write_decision
from rlfd_gym.report.decision_slider import slider_data
from rlfd_gym.report.html import embedded

NAMES = {"state": "stock", "action": "order", "episode": "shop", "time": "week"}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("shop") / "log.csv"
    path.write_text(exported(shop(), shops=30, weeks=30))
    return read_log(path, discount=0.9, columns=["sold"], **NAMES)


@pytest.fixture(scope="module")
def priced(log):
    return decide(log, price_belief(log, PRICES, FEATURES), n_resamples=5)


@pytest.fixture(scope="module")
def prior(log):
    costs = {(s, a): 2.0 * a + (s + a) - 6.0 * min(s + a, 2) for s, a in log.pair_labels()}
    return decide(log, costs, alpha=1.0, n_resamples=5, least_rows=25)


def slider_of(page):
    """What the page's script reads."""
    return json.loads(re.search(r'<script type="application/json" id="path">(.*?)</script>', page, re.S)[1])


@pytest.mark.parametrize("which", ["priced", "prior"])
def test_the_slider_has_the_numbers_of_the_path(which, request):
    decision = request.getfixturevalue(which)
    path, log = decision.path, decision.log
    about = slider_of(decision_page(decision, title="A shop").html())
    assert about["chosen"] == path.chosen
    assert len(about["points"]) == len(path.values)
    shown = [log.state_labels.index(one.state) for one in decision.recommendations]
    present = [str(one.present) for one in decision.recommendations]
    for k, point in enumerate(about["points"]):
        assert point["numbers"][:3] == [
            money(-path.expected_cost[k] if decision.present.value < 0 else path.expected_cost[k]),
            money(path.improvement[k]),
            money(path.guaranteed[k]),
        ]
        assert point["actions"] == [str(log.action_labels[path.actions[k, s]]) for s in shown]
        assert point["changed"] == sum(a != b for a, b in zip(point["actions"], present, strict=True))
        visits = log.mdp.table(log.visits, fill=0.0)
        assert point["rows"] == [visits[s, path.actions[k, s]] for s in shown]
    moving = [k for k, one in enumerate(decision.prices) if one.range[0] < one.range[1]]
    for k, point in enumerate(about["points"]):
        assert point["numbers"][3:] == [money(price) for price in path.prices[k, moving]]
    assert len(moving) == (1 if which == "priced" else 0)
    chosen = about["points"][path.chosen]
    assert chosen["actions"] == [str(one.action) for one in decision.recommendations]


def test_the_page_begins_with_the_answers_and_ends_with_the_mathematics(priced, tmp_path):
    page = write_decision(priced, tmp_path, title="A shop", command="rlfd learn").read_text()
    places = [page.index(text) for text in ("Your rule ", "What to do", 'id="setting"', "Technical details", "duality")]
    assert places == sorted(places)
    assert "rlfd learn" in page
    assert page.count("<script") == 2
    assert not re.search(r'(?:src|href)="(?!data:)', page)
    assert "http" not in page
    for one in priced.recommendations:
        row = re.search(rf'<th scope="row">{one.state}</th>(.*?)</tr>', page)[1]
        cells = [re.sub("<.*?>", "", cell) for cell in re.findall("<td>(.*?)</td>", row)]
        marked = f"only {one.rows}" if one.few else f"{one.rows:,}"
        assert cells == [
            f"{one.present} ({one.present_share:.0%})",
            f"{one.present_rows:,}",
            str(one.action),
            marked,
            f"{one.agreement:.0%}",
        ]
        assert ("<b>" in row) == one.changed


def test_few_rows_are_marked(prior):
    assert prior.n_few > 0
    page = decision_page(prior, title="A shop").html()
    assert page.count("<td>only ") == prior.n_few
    assert "fewer than 25, so the present action is kept" in page


def test_the_tables_have_the_decision_and_can_be_read_again(priced, tmp_path):
    write_decision(priced, tmp_path, title="A shop")
    tables = {}
    for name in ("cost", "policy", "path"):
        with open(tmp_path / f"{name}.csv", newline="") as file:
            tables[name] = list(csv.DictReader(file))
    for column, values in (("cost", priced.cost), ("cost_low", priced.cost_low), ("cost_high", priced.cost_high)):
        np.testing.assert_allclose([float(row[column]) for row in tables["cost"]], values, rtol=1e-5, atol=1e-9)
    assert [float(row["probability"]) for row in tables["policy"]] == priced.policy.tolist()
    for column, values in (("width", priced.path.values), ("price of holding", priced.path.prices[:, 1])):
        np.testing.assert_allclose([float(row[column]) for row in tables["path"]], values, rtol=1e-5)


def test_labels_cannot_leave_their_places(tmp_path):
    evil = "</script><script>alert(1)</script>"
    rows = {evil: [f"{evil}&", "b"] * 30, "<i>": ["<b>x", "<b>y"] * 30, "next": ["b", f"{evil}&"] * 30}
    log = read_log(rows, discount=0.9, state=evil, action="<i>", next_state="next")
    decision = decide(log, dict.fromkeys(log.pair_labels(), 1.0) | {log.pair_labels()[0]: 2.0}, alpha=1, n_resamples=2)
    page = write_decision(decision, tmp_path, title=evil, warnings=[f"{evil}: {evil}"], command=evil).read_text()
    assert page.count("<script") == page.count("</script>") == 2
    assert not re.search(r"<b>[xy]|<i>", page)
    assert slider_of(page)["points"][0]["actions"] == ["<b>x", "<b>y"]
    assert json.loads(embedded({"a": "<!--\u2028&"})) == {"a": "<!--\u2028&"}


def test_only_the_states_where_most_time_is_spent_are_shown():
    number = SHOWN_STATES + 20
    states = np.tile(np.arange(number), 12)
    log = read_log((states, states * 0, (states + 1) % number), discount=0.9)
    decision = decide(log, dict.fromkeys(log.pair_labels(), 1.0) | {(0, 0): 2.0}, alpha=1, n_resamples=2)
    page = decision_page(decision, title="Many").html()
    assert len(slider_of(page)["points"][0]["actions"]) == SHOWN_STATES
    assert f"The {SHOWN_STATES} states where most time is spent" in page
    assert slider_data(decision, decision.recommendations)["states"] == number


PROBE = """<script>onload = () => {
  const setting = document.getElementById("setting"), seen = [];
  for (let k = Number(setting.min); k <= Number(setting.max); k++) {
    setting.value = k;
    setting.dispatchEvent(new Event("input"));
    seen.push({
      said: document.getElementById("position").textContent,
      value: setting.getAttribute("aria-valuetext"),
      numbers: [...document.querySelectorAll("[data-number]")].map(cell => cell.textContent),
      actions: [...document.querySelectorAll("#policy tbody tr")].map(row => row.cells[2].textContent),
      marker: Number(document.getElementById("marker").getAttribute("x1")),
    });
  }
  const shown = part => getComputedStyle(document.querySelector(part)).display !== "none";
  const found = {seen, slider: shown(".slider"), table: shown(".static"), wide: document.documentElement.scrollWidth};
  document.body.dataset.found = JSON.stringify(found);
}</script></body>"""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["priced", "prior"])
def test_a_browser_shows_the_path_as_the_slider_moves(which, request, tmp_path):
    decision = request.getfixturevalue(which)
    path, log = decision.path, decision.log
    page = write_decision(decision, tmp_path / "out", title="A shop").read_text()
    dom = opened(page.replace("</body>", PROBE), tmp_path)
    found = json.loads(unescape(re.search(r'data-found="(.*?)"', dom)[1]))
    assert (found["slider"], found["table"]) == (True, False)
    assert found["wide"] <= 500
    assert len(found["seen"]) == len(path.values)
    states = [log.state_labels.index(one.state) for one in decision.recommendations]
    for k, seen in enumerate(found["seen"]):
        earned = -path.expected_cost[k] if decision.present.value < 0 else path.expected_cost[k]
        numbers = [earned, path.improvement[k], path.guaranteed[k]]
        assert [float(text.replace(",", "")) for text in seen["numbers"][:3]] == pytest.approx(numbers, abs=0.051)
        assert seen["actions"] == [str(log.action_labels[path.actions[k, s]]) for s in states]
        assert f"{path.values[k]:.3g}" in seen["value"]
        assert seen["value"].endswith("(used)") == (k == path.chosen)
        assert all(number in seen["said"] for number in seen["numbers"])
        assert seen["marker"] == pytest.approx(100 * k / (len(path.values) - 1))


@pytest.mark.slow
def test_without_a_script_the_page_shows_a_table(priced, tmp_path):
    page = decision_page(priced, title="A shop").html()
    page = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    probe = (
        '<script>onload = () => document.body.dataset.found = [".slider", ".static"].map('
        'part => getComputedStyle(document.querySelector(part)).display !== "none").join()</script></body>'
    )
    dom = opened(page.replace("</body>", probe), tmp_path)
    assert re.search(r'data-found="(.*?)"', dom)[1] == "false,true"
    table = re.search(r'<div class="static">(.*?)</div></div>', page, re.S)[1]
    assert table.count("<tr>") == 1 + len(priced.path.values)
    assert all(money(number) in table for number in priced.path.improvement)


def test_the_answers_are_on_the_page_in_full(prior):
    page = unescape(decision_page(prior, title="A shop").html())
    assert all(sentence in page for sentence in sentences(prior))
