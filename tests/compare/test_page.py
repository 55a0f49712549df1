"""The page of a comparison and the files beside it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html import escape, unescape

import numpy as np
import pytest
from small_browser import opened
from small_comparison import SMALL

from rlfd_gym.compare.slider import slider_data, slider_over_alpha


def test_a_written_comparison_has_its_summary_its_page_and_its_pictures(written):
    result, out = written
    with open(out / "summary.csv", newline="") as file:
        summary = list(csv.DictReader(file))
    names = ("task", "method", "alpha", "demonstrations", "reading")
    costs = {tuple(row[name] for name in names): float(row["true_cost"]) for row in summary}
    shown = {tuple(str(s.values()[name] or "") for name in names): s.true_cost for s in result.summaries()}
    assert len(costs) == len(summary) == 2 * len(shown)  # both readings, of which the tables show one
    assert {key: costs[key] for key in shown} == shown
    page = (out / "report.html").read_text()
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert pictures == sorted(
        f"{t}_{n}.png" for t in SMALL["tasks"] for n in ("costs", "demonstrations", "learned", "policies")
    )
    assert page.count("<img ") == len(pictures)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)
    for task in SMALL["tasks"]:
        assert page.count(f'<h2 id="{task}">') == page.count(f'<a href="#{task}">') == 1  # each task links to the other
        assert escape(result.table(task).headline) in page
    about = json.loads((out / "results.json").read_text())
    assert about["finished"]
    assert about["tasks"]["windy"]["headline"] == result.table("windy").headline
    assert about["design"]["seeds"] == 2
    assert about["versions"]["numpy"] == np.__version__
    assert not list(out.rglob("*.tmp"))


def test_methods_with_several_alphas_have_a_slider_and_others_none(written):
    result, out = written
    page = (out / "report.html").read_text()
    assert page.count('class="slider"') == len(SMALL["tasks"])
    shown = result.summaries("windy")
    data, labels = slider_data(shown)
    assert [point["value"] for point in data["points"]] == ["0.1", "1"]
    for point, alpha in zip(data["points"], SMALL["alphas"], strict=True):
        exact = [s for s in shown if (s.alpha, s.demonstrations) == (alpha, "exact")]
        assert [row[0] for row in point["table"]] == [f"{s.true_cost:.3f}" for s in exact] == point["numbers"]
        assert labels == [s.label.replace(f" α={alpha:g}", "") for s in exact]
    assert slider_over_alpha("windy", [s for s in shown if s.alpha in (None, 1.0)]) == []


@pytest.mark.slow
def test_a_browser_shows_the_numbers_of_each_alpha_as_the_slider_moves(written, tmp_path):
    result, out = written
    probe = """<script>onload = () => {
      const seen = [...document.querySelectorAll(".slider")].map(section => {
        const setting = section.querySelector("input"), found = [];
        for (let k = 0; k <= Number(setting.max); k++) {
          setting.value = k;
          setting.dispatchEvent(new Event("input"));
          const rows = [...section.querySelectorAll("tbody tr")];
          found.push([setting.getAttribute("aria-valuetext"), section.querySelector("output").textContent,
                      rows.map(row => [...row.cells].slice(1).map(cell => cell.textContent))]);
        }
        return [section.hidden, setting.tabIndex, found];
      });
      document.body.dataset.found = JSON.stringify(seen);
    }</script></body>"""
    dom = opened((out / "report.html").read_text().replace("</body>", probe), tmp_path)
    found = json.loads(unescape(re.search(r'data-found="(.*?)"', dom)[1]))
    assert len(found) == len(SMALL["tasks"])
    for task, (hidden, tab, positions) in zip(SMALL["tasks"], found, strict=True):
        data, labels = slider_data(result.summaries(task))
        assert (hidden, tab, len(positions)) == (False, 0, len(data["points"]))
        for point, (value, said, table) in zip(data["points"], positions, strict=True):
            assert value == f"α {point['value']}"
            assert table == point["table"]
            assert all(f"{label} {row[0]}" in said for label, row in zip(labels, table, strict=True))


@pytest.mark.slow
def test_the_page_has_no_broken_image_in_a_browser(written, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no Chromium or Chrome is installed to open the page with")
    page = (written[1] / "report.html").read_text()
    number = page.count("<img ")
    broken = page.replace("</body>", '<img src="data:image/png;base64,AAAA"></body>')
    count = (
        "<script>onload = () => document.body.dataset.widths = "
        "[...document.images].map(i => i.complete && i.naturalWidth > 0).join()</script></body>"
    )
    for name, text, expected in (("page", page, ["true"] * number), ("broken", broken, ["true"] * number + ["false"])):
        path = tmp_path / f"{name}.html"
        path.write_text(text.replace("</body>", count))
        flags = (
            "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update "
            f"--disable-sync --no-first-run --user-data-dir={tmp_path / name} --virtual-time-budget=10000 --dump-dom"
        )
        dom = subprocess.run(
            [browser, *flags.split(), path.as_uri()], capture_output=True, text=True, timeout=120
        ).stdout
        assert re.findall(r'data-widths="(.*?)"', dom) == [",".join(expected)]
