"""The comparison: what it measures, that it can be interrupted and resumed, and that all its faces show one result."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.baselines import lp_irl
from rlfd_gym.compare import cells, comparison
from rlfd_gym.compare.measures import cost_distance, mean_and_margin, share_closed
from rlfd_gym.compare.tasks import demonstrations_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "compare.py"
SMALL = {
    "tasks": ["inventory", "windy"],
    "methods": ["rlfd-exact", "rlfd-smd", "lpal", "cloning"],
    "seeds": 2,
    "demonstrations": [2, "exact"],
    "alphas": [0.1, 1.0],
    "iterations": 2000,
    "runs": 1,
}
TINY = SMALL | {"tasks": ["inventory"], "methods": ["rlfd-exact", "cloning"], "alphas": [1.0]}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare") / "run"
    return compare.run(**SMALL, out=out), out


@pytest.fixture
def no_page(monkeypatch):
    """Leave the page and its pictures out: they take most of the time."""
    monkeypatch.setattr("rlfd_gym.compare.page.write_page", lambda *_: None)


def rows_of_csv(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def values(result):
    """All that must not depend on how the cells were run."""
    return [{name: value for name, value in row.values().items() if name != "seconds"} for row in result.rows]


costs = st.lists(st.integers(-8, 8), min_size=3, max_size=12).filter(lambda values: len(set(values)) > 1)


@given(truth=costs, scale=st.floats(0.1, 10), shift=st.floats(-5, 5), data=st.data())
def test_the_distance_of_costs_ignores_scale_and_shift(truth, scale, shift, data):
    truth = np.array(truth) / 8
    cost = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=len(truth), max_size=len(truth)))) / 8
    assert cost_distance(scale * truth + shift, truth) == pytest.approx(0, abs=1e-7)
    assert cost_distance(scale * cost + shift, truth) == pytest.approx(cost_distance(cost, truth), abs=1e-6)


@given(truth=costs, data=st.data())
def test_the_distance_of_costs_is_the_best_fit_in_the_l1_norm(truth, data):
    # The best line through data in ℓ1-norm passes through two of its points, or is flat: try them all.
    truth = np.array(truth, dtype=float)
    cost = np.array(data.draw(st.lists(st.integers(-8, 8), min_size=len(truth), max_size=len(truth))), dtype=float)
    flat = np.abs(truth - np.median(truth)).sum()
    best = flat
    for i in range(len(cost)):
        for j in range(i):
            if cost[i] != cost[j] and (slope := (truth[i] - truth[j]) / (cost[i] - cost[j])) >= 0:
                best = min(best, np.abs(truth - truth[i] - slope * (cost - cost[i])).sum())
    assert cost_distance(cost, truth) == pytest.approx(best / flat, abs=1e-7)


def test_the_truth_is_at_a_distance_of_zero_without_a_sign():
    assert str(cost_distance([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])) == "0.0"


def test_a_cost_that_points_the_wrong_way_tells_nothing():
    truth = np.array([-1.0, 0.0, 1.0])
    assert cost_distance(-truth, truth) == cost_distance(np.ones(3), truth) == 1
    with pytest.raises(ValueError, match="truth must not be constant"):
        cost_distance(truth, np.ones(3))


def test_the_interval_is_students():
    sample = [1.0, 2.0, 4.0, 5.0]
    mean, margin = mean_and_margin(sample)
    low, high = scipy.stats.ttest_1samp(sample, 0).confidence_interval(0.95)
    assert (mean - margin, mean + margin) == pytest.approx((low, high))
    assert mean_and_margin([3.0]) == (3.0, None)


def test_the_share_closed_of_an_optimal_expert_is_not_defined():
    assert np.isnan(share_closed(-1.0, expert=-1.0, optimum=-1.0))


def test_demonstrations_come_from_the_experts_occupancy():
    setting = compare.TASKS["windy"].make(0)
    shown = demonstrations_of(setting, 4000, np.random.SeedSequence(0))
    estimate = rlfd_gym.occupancy_from_demonstrations(shown, setting.mdp)
    # The expected ℓ1 error of 4000 independent draws from a distribution over pairs is at most √(400 / 4000) = 0.32.
    assert np.abs(estimate - setting.expert).sum() < 0.15
    assert all(np.isin(setting.mdp.pair_index(t.obs[:-1], t.acts), np.flatnonzero(setting.expert)).all() for t in shown)


@pytest.mark.parametrize("name", compare.TASKS)
def test_a_task_is_well_posed(name):
    setting = compare.TASKS[name].make(1)
    mdp = setting.mdp
    assert np.abs(mdp.flow(setting.expert) - mdp.initial).max() < 1e-9
    assert np.abs(setting.basis).max() <= 1
    assert np.abs(setting.truth).max() <= 1
    assert setting.expert @ setting.truth > mdp.optimal(setting.truth).expected_cost + 0.01


def test_the_lakes_cost_orders_policies_as_its_reward_does():
    import gymnasium as gym

    setting = compare.TASKS["lake"].make(0)
    mdp = setting.mdp
    reward_cost = rlfd_gym.cost_of_env(gym.make("FrozenLake-v1", map_name="4x4"))
    for policy in (mdp.uniform_policy(), mdp.policy_of(setting.expert)):
        ours, theirs = mdp.expected_cost(policy, setting.truth), mdp.expected_cost(policy, reward_cost)
        assert ours == pytest.approx(theirs * mdp.discount / (1 - mdp.discount))


def test_with_the_truth_as_prior_and_growing_alpha_the_apprentice_approaches_the_optimum():
    setting = compare.TASKS["inventory"].make(0)
    mdp = setting.mdp
    costs = [
        mdp.expected_cost(
            rlfd_gym.solve_exact(rlfd_gym.RLfDProblem(mdp, setting.expert, setting.truth, alpha)).policy, setting.truth
        )
        for alpha in (0.1, 1.0, 10.0, 100.0)
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(mdp.optimal(setting.truth).expected_cost, abs=1e-4)


def test_the_expert_closes_nothing_and_the_optimum_everything(written):
    shares = {(row.task, row.method): row.share_closed for row in written[0].rows if row.seed == 0}
    for task in SMALL["tasks"]:
        assert shares[task, "expert"] == 0
        assert shares[task, "optimum"] == 1


def test_what_is_not_random_is_run_once():
    settings = compare.Settings(methods=("lpal", "rlfd-exact", "rlfd-smd"), seeds=3, alphas=(1.0,))
    seeds = defaultdict(int)
    for cell in settings.cells():
        seeds[cell.task, cell.method, cell.demonstrations] += 1
    assert seeds["inventory", "lpal", "exact"] == seeds["inventory", "rlfd-exact", "exact"] == 1
    assert seeds["windy", "lpal", "exact"] == seeds["windy", "expert", "exact"] == 1
    assert seeds["windy", "rlfd-exact", "exact"] == seeds["windy", "prior", "exact"] == 3  # the prior is drawn
    assert seeds["inventory", "rlfd-smd", "exact"] == seeds["inventory", "lpal", 1] == 3


def test_what_is_asked_for_twice_is_run_once_and_in_order():
    # A row that is there twice would make its interval too narrow, and its seed must not depend on how 1 is written.
    twice = compare.Settings(
        tasks=("inventory",) * 2, methods=("lpal", "lpal"), demonstrations=("exact", np.int64(2), 2), alphas=(1, 1.0)
    )
    once = compare.Settings(tasks=("inventory",), methods=("lpal",), demonstrations=(2, "exact"), alphas=(1.0,))
    assert list(map(str, twice.cells())) == list(map(str, once.cells()))
    assert json.dumps(asdict(twice)) == json.dumps(asdict(once))


def test_the_printed_numbers_are_those_of_the_csv(written):
    result, out = written
    rows = rows_of_csv(out / "results.csv")
    titles = {name: method.title for name, method in compare.METHODS.items()}
    for task in SMALL["tasks"]:
        printed = str(result.table(task))
        assert max(map(len, printed.splitlines())) <= 100
        assert "\x1b" not in printed
        for method, alpha in {(row["method"], row["alpha"]) for row in rows if row["task"] == task}:
            label = titles[method] + (f" α={float(alpha):g}" if alpha else "")
            (line,) = (text for text in printed.splitlines() if text.strip().startswith(f"{label} "))
            expected = []
            for level in ("2", "exact"):
                found = [
                    float(row["true_cost"])
                    for row in rows
                    if (row["task"], row["method"], row["alpha"], row["demonstrations"]) == (task, method, alpha, level)
                ]
                if found:
                    mean, margin = mean_and_margin(found)
                    expected.append(f"{mean:.3f}" + ("" if margin is None else f"±{margin:.3f}"))
            assert re.findall(r"-?\d\.\d{3}(?:±\d\.\d{3})?", line) == expected


@pytest.mark.parametrize("width", [60, 80, 200])
def test_no_digit_is_left_out_in_a_narrow_terminal(written, width):
    table = written[0].table("inventory")
    console = Console(width=width, file=io.StringIO(), color_system=None)
    console.print(table)
    printed = console.file.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    assert "…" not in printed
    assert all(part in printed for row in table.rows for cell in row[1:] for part in cell.text.split("±"))


def test_the_summary_the_page_and_the_pictures_are_there(written):
    result, out = written
    summary = rows_of_csv(out / "summary.csv")
    assert [float(row["true_cost"]) for row in summary] == [s.true_cost for s in result.summaries()]
    page = (out / "report.html").read_text()
    pictures = sorted(path.name for path in out.glob("*.png"))
    assert pictures == sorted(
        f"{t}_{n}.png" for t in SMALL["tasks"] for n in ("costs", "demonstrations", "learned", "policies")
    )
    assert page.count("<img ") == len(pictures)
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    about = json.loads((out / "results.json").read_text())
    assert about["finished"]
    assert about["settings"]["seeds"] == 2
    assert about["versions"]["numpy"] == np.__version__
    assert not list(out.rglob("*.tmp"))


def test_a_comparison_shows_itself_in_a_notebook(written):
    html = written[0]._repr_html_()
    assert "<b>" in html
    assert "RLfD exact α=0.1" in html
    assert "| RLfD exact α=0.1 |" in written[0].table("windy").markdown()


def test_the_hull_note_is_computed(written):
    assert "prices (5, 8, 15) (LPAL's optimal value is 0)" in str(written[0].table("inventory")).replace("\n", " ")
    assert "LPAL" not in str(compare.run(**TINY).table("inventory"))


def test_what_was_not_solved_is_named(written):
    text = " ".join(written[0].table("inventory").notes)
    assert re.search(r"Not solved yet.*: RLfD SMD α=0.1 \d, RLfD SMD α=1 \d", text)
    assert "Not solved" not in " ".join(compare.run(**TINY).table("inventory").notes)


@pytest.mark.parametrize(("seeds", "expected"), [(2, []), (3, ["Slow, so for fewer seeds: SMD-H (2)."])])
def test_methods_with_fewer_seeds_than_asked_for_are_named(seeds, expected):
    choice = {"methods": ["smd-hull", "smd-hull-prior"], "demonstrations": ["exact"], "seeds": seeds}
    notes = compare.run(**TINY | choice | {"iterations": 10}).table("inventory").notes
    assert [note for note in notes if note.startswith("Slow")] == expected


def test_the_result_does_not_depend_on_jobs(written):
    assert values(compare.run(**SMALL, jobs=2)) == values(written[0])


def test_resuming_keeps_the_finished_cells_and_adds_what_is_asked_for(tmp_path, monkeypatch, no_page):
    done = []
    real = comparison.run_cell
    monkeypatch.setattr(comparison, "run_cell", lambda *call: done.append(call[2]) or real(*call))
    first = compare.run(**TINY, out=tmp_path)
    total = len(done)
    assert total == len(first.rows)
    again = compare.run(out=tmp_path, resume=True)
    assert len(done) == total
    assert values(again) == values(first)
    more = compare.run(methods=["lp-irl"], demonstrations=[3], out=tmp_path, resume=True)
    assert {(cell.method, cell.demonstrations) for cell in done[total:]} >= {("lp-irl", 2), ("cloning", 3)}
    assert more.settings.demonstrations == (2, 3, "exact")
    assert not {cell for cell in done[total:]} & set(done[:total])


def test_every_cell_has_a_file_of_its_own():
    alphas = (1.0, 0.1, 1e-9, 0.12345678, 0.12345679)
    names = [cells.Cell("inventory", "rlfd-exact", alpha, "exact", 0).file_name for alpha in alphas]
    assert len(set(names)) == len(names)
    assert names[0] == "inventory_rlfd-exact_alpha=1_exact_seed=0.npz"


def test_an_interrupted_run_keeps_its_cells_and_says_how_to_go_on(tmp_path, monkeypatch, no_page):
    real, seen = comparison.run_cell, []

    def interrupted(*call):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(call[2])
        return real(*call)

    monkeypatch.setattr(comparison, "run_cell", interrupted)
    with pytest.raises(KeyboardInterrupt, match=re.escape(f"5 of 10 cells finished; go on with --resume {tmp_path}")):
        compare.run(**TINY, out=tmp_path)
    assert len(list((tmp_path / "cells").iterdir())) == 5
    assert json.loads((tmp_path / "results.json").read_text())["finished"] is False
    monkeypatch.setattr(comparison, "run_cell", real)
    assert values(compare.run(out=tmp_path, resume=True)) == values(compare.run(**TINY))


def test_a_solve_that_was_interrupted_is_no_finished_cell(monkeypatch):
    cut = compare.Method(
        "cut",
        "cut",
        lambda lesson: rlfd_gym.Solution(
            policy=lesson.shown, occupancy=lesson.shown, cost=lesson.shown, finished=False
        ),
    )
    with pytest.raises(KeyboardInterrupt):
        cells.run_cell(compare.TASKS["inventory"], cut, cells.Cell("inventory", "cut", None, "exact", 0), 1, 1)


def test_a_solver_that_gives_up_is_noted_and_the_rest_goes_on(tmp_path, monkeypatch, no_page):
    def solve(lesson):
        if lesson.setting.grid is None and isinstance(lesson.shown, np.ndarray):
            raise RuntimeError("it is too hard: 7")
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    compare.run(**TINY | {"methods": ["mine"]}, out=tmp_path)
    result = compare.run(out=tmp_path, resume=True)
    assert "my own, 1 of 3 cells: gave up: it is too hard." in str(result.table("inventory"))
    (failed,) = [row for row in result.rows if row.true_cost is None]
    assert (failed.method, failed.demonstrations) == ("mine", "exact")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_in_error_is_named_with_its_cell(jobs, monkeypatch):
    def solve(lesson):
        return rlfd_gym.Apprentice(policy=np.nan * lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    with pytest.raises(RuntimeError, match=r"method='mine'.*seed=\d\) failed: ValueError: policy must be finite"):
        compare.run(**TINY | {"methods": ["mine"]}, jobs=jobs)


def test_resuming_with_other_solver_settings_is_refused(tmp_path, no_page):
    compare.run(**TINY, out=tmp_path)
    with pytest.raises(ValueError, match="iterations is 7, but the stored cells were made with 2000"):
        compare.run(iterations=7, out=tmp_path, resume=True)
    with pytest.raises(ValueError, match="holds a comparison already"):
        compare.run(**TINY, out=tmp_path)
    with pytest.raises(ValueError, match="there is no comparison in"):
        compare.run(out=tmp_path / "elsewhere", resume=True)


@pytest.mark.parametrize("content", ["{", "{}", "[]", '{"settings": {"nonsense": 1}}', '{"settings": 1}'])
def test_resuming_what_is_no_comparison_is_refused_by_name(content, tmp_path):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(ValueError, match=r"resume: .*results.json is not that of a comparison"):
        compare.run(out=tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"out: .*results.json is a file, expected a folder"):
        compare.run(**TINY, out=tmp_path / "results.json")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tasks": ["inventori"]}, r"tasks: there is no 'inventori'; did you mean 'inventory'\?"),
        ({"methods": ["rlfd-exakt"]}, r"methods: there is no 'rlfd-exakt'; did you mean 'rlfd-exact'\?"),
        ({"methods": ["zzzzz"]}, "there is no 'zzzzz'; expected some of optimum, expert"),
        ({"tasks": []}, "tasks is empty"),
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"demonstrations": [0]}, "must be at least 1, got 0"),
        ({"demonstrations": []}, "demonstrations is empty"),
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [-1.0]}, "alphas must be a finite number"),
    ],
)
def test_what_cannot_be_compared_is_refused_by_name(wrong, message):
    with pytest.raises(ValueError, match=message):
        compare.run(**wrong)


def test_a_name_alone_is_not_taken_for_its_letters():
    with pytest.raises(TypeError, match=r"tasks must be a list, got a string; write \['inventory'\]"):
        compare.run(**TINY | {"tasks": "inventory"})


def test_a_new_method_is_one_entry(monkeypatch):
    def solve(lesson):
        return rlfd_gym.Apprentice(policy=lesson.mdp.uniform_policy(), occupancy=lesson.occupancy)

    monkeypatch.setitem(compare.METHODS, "mine", compare.Method("mine", "my own", solve))
    result = compare.run(**TINY | {"methods": ["mine"]})
    assert "my own" in str(result.table("inventory"))


def command(*arguments, cwd):
    return subprocess.run([sys.executable, str(SCRIPT), *arguments], cwd=cwd, capture_output=True, text=True)


def test_the_command_lists_tasks_and_methods_and_names_the_nearest_match(tmp_path):
    listed = command("--list", cwd=tmp_path)
    assert listed.returncode == 0
    for name in (*compare.TASKS, *compare.METHODS):
        assert f"  {name} " in listed.stdout
    wrong = command("--tasks", "wind", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "did you mean 'windy'?" in wrong.stderr
    (tmp_path / "file").touch()
    nowhere = command("--quick", "--out", "file/here", cwd=tmp_path)
    assert nowhere.returncode == 2
    assert nowhere.stderr.splitlines()[-1].endswith("Not a directory: 'file/here/cells'")


def test_the_command_prints_tables_and_names_the_page(tmp_path):
    options = ["--quick", "--tasks", "inventory", "--methods", "rlfd-exact,lpal", "--jobs", "1"]
    result = command(*options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "RLfD exact α=0.1" in result.stdout
    assert "\x1b" not in result.stdout
    assert "10 of 10 cells" in result.stderr
    (page,) = re.findall(r"report: (.*)", result.stdout)
    assert (tmp_path / page).is_file()


@pytest.mark.slow
def test_ctrl_c_stops_the_command_and_a_second_one_goes_on(tmp_path):
    options = ["--tasks", "inventory", "--methods", "rlfd-smd,lpal", "--iterations", "3000000", "--jobs", "2"]
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), *options, "--out", "here"], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    stored = tmp_path / "here" / "cells"
    while not (stored.is_dir() and len(list(stored.iterdir())) > 5):
        assert process.poll() is None
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "go on with --resume here" in errors
    kept = {path.name: path.stat().st_mtime_ns for path in stored.iterdir()}
    assert command("--resume", "here", "--jobs", "2", cwd=tmp_path).returncode == 0
    assert kept.items() <= {path.name: path.stat().st_mtime_ns for path in stored.iterdir()}.items()
    assert (tmp_path / "here" / "report.html").is_file()


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


def test_lp_irl_learns_from_a_single_demonstration_that_leaves_states_open():
    # Where the demonstrated actions lead out of what was seen, values need their own bounds.
    setting = compare.TASKS["lake"].make(0)
    for seed in range(8):
        solution = lp_irl(setting.mdp, demonstrations_of(setting, 1, np.random.SeedSequence(seed)))
        assert solution.cost.min() >= -1
        assert solution.cost.max() <= 1
        assert np.abs(solution.value).max() <= 1 + 1e-9
