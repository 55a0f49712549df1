"""The benchmark of how the cost grows: its slopes, its picture and its section of the page."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import benchmark
import numpy as np
import pytest
from benchmarks import memory, scale
from benchmarks.lines import Line


def power_law(kind: str, belief: str, n_pairs: int, folder: Path) -> dict[str, float]:
    return {"n_pairs": n_pairs, "seconds": 1e-6 * n_pairs**1.2, "memory": 1e-6 * n_pairs, "share": 0.5}


def test_the_slope_is_the_exponent_of_a_power_law():
    rows = [power_law("grid", "Prices", n, Path()) for n in (10, 1_000, 100_000)]
    assert scale.slope_of(rows) == pytest.approx(1.2)


def test_the_page_shows_the_picture_and_what_was_measured(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(scale, "measured", power_law)
    section = scale.draw(tmp_path / "scaling.png", tmp_path)
    assert (tmp_path / "scaling.png").stat().st_size > 10_000
    line = Line("a claim", "1 s", "2 s", 0.5, "at most 1", True)
    text = benchmark.page({"one": [line]}, [], section)
    assert "All 1 were met." in text
    late = dataclasses.replace(line, ratio=2.0, met=False)
    other = benchmark.page({"one": [line], "two": [late], "none": []}, ["dask"], "")
    assert "**Missed, 1 of 2:**\n\n- a claim: 1 s against 2 s\n\n**Not measured:** dask." in other
    assert other.index("## one") < other.index("## two")
    assert "## none" not in other
    assert "](scaling.png)" in text
    assert "| a claim | 1 s | 2 s | 0.5 | at most 1, met |" in text
    assert text.count("10,000,000") == len(scale.SCALED_KINDS) * len(scale.SCALED_BELIEFS)
    slopes = [line.ratio for line in scale.scaling(tmp_path)]
    assert slopes == pytest.approx([1.2] * 4)


@pytest.mark.parametrize("belief", scale.SCALED_BELIEFS)
@pytest.mark.parametrize("kind", scale.SCALED_KINDS)
def test_the_measured_problems_are_solved_as_promised(kind, belief):
    problem = scale._problem(kind, belief, 400)
    solution, seconds = scale.timed(problem)
    assert seconds >= 0
    assert scale.share_of(problem, solution) <= 1.001
    assert solution.upper > 1e-6  # the expert cannot be explained, so there is something to learn


def test_what_was_measured_is_taken_from_the_folder(tmp_path):
    (tmp_path / "grid-Prices-400.json").write_text('{"n_pairs": 400, "seconds": 1.5, "memory": 0.1, "share": 0.0}')
    assert scale.measured("grid", "Prices", 400, tmp_path)["seconds"] == 1.5
    found = scale.measured("grid", "NearPrior", 400, tmp_path)
    assert found == scale.measured("grid", "NearPrior", 400, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_lines_are_kept_and_taken_from_there(tmp_path, monkeypatch, capsys):
    line = Line("a claim", "1 s", "2 s", 0.5, "at most 1", True)
    asked = []
    monkeypatch.setattr(benchmark, "BENCHMARKS", {"one": lambda: asked.append(1) or iter([line])})
    for arguments in (["--only", "one"], ["--only", "one", "--resume"], ["--only", "one", "--docs", str(tmp_path)]):
        monkeypatch.setattr("sys.argv", ["benchmark.py", *arguments, "--out", str(tmp_path)])
        benchmark.main()
        assert str(line) in capsys.readouterr().out
    assert len(asked) == 2
    assert "**Not measured:** ten-million, scaling." in (tmp_path / "performance.md").read_text()


def test_the_sweep_has_a_line_for_each_structure_discount_and_expert(monkeypatch):
    monkeypatch.setattr(scale, "DISCOUNTS", (0.9,))
    lines = list(scale.sweep(400))
    assert len(lines) == len(scale.KINDS) * len(scale.SHOWN)
    assert [line.claim.split(",")[0] for line in lines] == [kind for kind in scale.KINDS for _ in scale.SHOWN]
    assert all(float(line.claim.split("largest gap ")[1].rstrip("%")) <= 1.0 for line in lines)


@pytest.mark.skipif(not memory.STATUS.exists(), reason="the kernel's own count is Linux's")
def test_the_peak_memory_of_a_process_is_its_own_whatever_its_parent_had():
    large = np.ones(40_000_000)  # 320 MB
    child = (
        "import sys; sys.path.insert(0, sys.argv[1]); from benchmarks.memory import peak_memory; print(peak_memory())"
    )
    command = [sys.executable, "-c", child, str(memory.HERE)]
    peak = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert 1e6 < peak < large.nbytes / 2 < memory.peak_memory()
