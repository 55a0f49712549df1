"""The pipelines in scripts/examples run as a user would run them, and show what they say they show."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from checks import newest

EXAMPLES = Path(__file__).resolve().parents[2] / "scripts" / "examples"
PAGE = EXAMPLES.parent.parent / "docs" / "start" / "from_a_log.md"

pytestmark = pytest.mark.needs_imitation


def run(name, *arguments, cwd):
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / name), *arguments]
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return result.stdout


def numbers(output, label):
    """The numbers in the line that begins with a label."""
    (line,) = (line for line in output.splitlines() if line.startswith(label))
    return [float(text) for text in re.findall(r"-?\d+\.\d+(?:e[-+]?\d+)?", line[len(label) :])]


def test_every_example_is_tested():
    tested = set(re.findall(r'(?:run\(|quick\[)"(\w+\.py)"', Path(__file__).read_text()))
    assert tested == {path.name for path in EXAMPLES.glob("*.py")}


ONE_AFTER_THE_OTHER = """if True:
    import runpy, sys
    for path in sys.argv[1:]:
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            assert not end.code, end.code
        print("\f")
"""


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What the two quick examples print, in one process: most of their time is that of loading imitation."""
    names = ("toy_text.py", "saved_demonstrations.py")
    command = [sys.executable, "-W", "ignore", "-c", ONE_AFTER_THE_OTHER, *(str(EXAMPLES / name) for name in names)]
    cwd = tmp_path_factory.mktemp("examples")
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return dict(zip(names, result.stdout.split("\f\n"), strict=False))


def test_on_toy_text_the_apprentice_is_at_least_as_good_as_the_noisy_expert(quick):
    output = quick["toy_text.py"]
    for name in ("FrozenLake", "Taxi"):
        best, expert, _, apprentice = numbers(output, newest(name))
        assert best - 1e-4 <= apprentice <= expert


def test_saved_demonstrations_policies_and_rewards_come_back(quick):
    output = quick["saved_demonstrations.py"]
    assert "100 demonstrations from TrajectoryDatasetSequence" in output
    assert "same policy: True" in output
    assert "same reward: True" in output
    expert, apprentice = numbers(output, "expected cost")
    assert apprentice <= expert


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """What the page's commands about logs print, and the folder that they write to."""
    folder = tmp_path_factory.mktemp("log")
    first, second = re.findall(r"^rlfd learn ((?:.*\\\n)*.*)$", PAGE.read_text(), flags=re.MULTILINE)
    made = run("make_inventory_log.py", "results/shop", cwd=folder)
    learned, priced = (
        run("../learn_from_log.py", *shlex.split(command.replace("\\\n", " "), comments=True), cwd=folder)
        for command in (first, second)
    )
    assert "Your manager acts as if holding" in priced
    return made, learned, folder / "results"


def rows_of(folder, name):
    return list(csv.DictReader((folder / f"{name}.csv").read_text().splitlines()))


def test_the_pages_log_is_read_and_its_broken_rows_are_counted_by_reason(shop):
    made, learned, _ = shop
    assert "2497 rows" in made
    assert "2,465 of 2,497 rows were used" in learned
    for reason in ("fields than the header", "stock is missing", "order is no whole number"):
        assert f"{reason} 1 (line" in re.sub(" +", " ", learned)


def test_the_page_quotes_what_the_command_says_and_the_apprentice_is_cheaper(shop):
    _, learned, _ = shop
    (said,) = re.findall(r"^(?:> .*\n)+", PAGE.read_text(), flags=re.MULTILINE)
    assert " ".join(said.replace("> ", "").split()) in learned.splitlines()
    (saving,) = re.findall(r"Acting as below would earn ([\d.]+) more", learned)
    assert float(saving) > 0


def test_the_report_on_the_pages_log_is_one_page_that_loads_nothing(shop):
    _, _, folder = shop
    for place in ("learn/log", "prices"):
        page = (folder / place / "report.html").read_text()
        assert not re.search(r"<script[^>]+src|(src|href)=.(?!data:|#)|https?://(?!www.w3.org)", page)
    assert (folder / "learn" / "log" / "path.png").read_bytes().startswith(b"\x89PNG")


def test_the_tables_of_the_pages_log_hold_the_prior_a_policy_and_exact_solutions(shop):
    _, _, folder = shop
    prior = {(row["state"], row["action"]): float(row["cost"]) for row in rows_of(folder / "shop", "prior")}
    folder = folder / "learn" / "log"
    costs = rows_of(folder, "cost")
    assert all(float(row["prior"]) == pytest.approx(prior[row["state"], row["action"]]) for row in costs)
    chances = Counter()
    for row in rows_of(folder, "policy"):
        chances[row["state"]] += float(row["probability"])
    assert set(chances) == {str(stock) for stock in range(21)}
    assert list(chances.values()) == pytest.approx([1] * 21, abs=1e-4)
    path = rows_of(folder, "path")
    alphas = [float(row["alpha"]) for row in path]
    assert alphas == sorted(alphas)
    assert max(float(row["duality_gap"]) for row in path) < 1e-6


@pytest.mark.slow
def test_a_ppo_expert_is_learned_from(tmp_path):
    output = run("ppo_expert.py", cwd=tmp_path)
    (expert,), (apprentice,) = numbers(output, "PPO expert"), numbers(output, "apprentice")
    assert apprentice > 0.9 * expert > 0
    assert numbers(output, "duality gap")[0] < 1e-6


@pytest.mark.slow
def test_mceirl_and_rlfd_learn_from_the_same_demonstrations(tmp_path):
    output = run("cliff_world.py", "30", cwd=tmp_path)
    returns = {
        name: numbers(output, name)[0]
        for name in ("expert", "MCEIRL, 30 demos", "RLfDTrainer, 30 demos", "RLfDTrainer + prior, 30 demos")
    }
    assert returns["expert"] > 10
    assert returns["RLfDTrainer, 30 demos"] > 3
    assert returns["RLfDTrainer + prior, 30 demos"] > returns["MCEIRL, 30 demos"] - 2


@pytest.mark.slow
def test_ppo_on_the_learned_reward_reaches_the_apprentices_level(tmp_path):
    output = run("learned_reward.py", cwd=tmp_path)
    apprentice, agent, random = (numbers(output, n)[0] for n in ("apprentice", "PPO on its reward", "random orders"))
    assert agent - apprentice < 0.1 * (random - apprentice)


@pytest.mark.slow
def test_one_script_runs_with_three_algorithms(tmp_path):
    output = run("swap_the_class.py", cwd=tmp_path)
    returns = {name: numbers(output, name)[0] for name in ("BC", "MCEIRL", "RLfD + prior")}
    assert returns["RLfD + prior"] > max(returns["BC"], 5)
