"""The page of a comparison and the files beside it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from html import escape

import numpy as np
import pytest
from small_comparison import SMALL


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
