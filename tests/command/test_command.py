"""The command `rlfd`: what it prints, its exit status, and how it answers mistakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import gymnasium as gym
import pytest
from small_logs import written

import rlfd_gym
from rlfd_gym.command import main, parser, reproducing
from rlfd_gym.command.main import SHELLS, command_parser

SUBCOMMANDS = ("learn", "compare", "path", "reproduce", "envs", "completion")


def mistaken(capsys, *arguments):
    """Run the command with a mistake: its last line on stderr."""
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    return capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help_with_an_example(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"rlfd {name}" in capsys.readouterr().out.split("\n\n", 1)[1]


def test_the_module_runs_as_the_command_does():
    result = subprocess.run([sys.executable, "-m", "rlfd_gym", "--version"], capture_output=True, text=True)
    assert (result.returncode, result.stdout) == (0, f"rlfd {rlfd_gym.__version__}\n")


def test_options_are_not_abbreviated_and_the_nearest_one_is_named(capsys):
    assert mistaken(capsys, "compare", "--seed", "3").endswith("--seed 3; did you mean --seeds?")
    assert mistaken(capsys, "envs", "--jso").endswith("--jso; did you mean --json?")
    assert mistaken(capsys, "comparr").startswith("rlfd: error: argument SUBCOMMAND: invalid choice: 'comparr'")


def test_the_environments_are_listed_with_their_sizes(capsys):
    assert main(["envs", "--json"]) == 0
    envs = json.loads(capsys.readouterr().out)["envs"]
    for row in envs:
        mdp = gym.make(row["id"]).unwrapped.mdp
        assert (row["states"], row["pairs"], row["discount"]) == (mdp.n_states, mdp.n_pairs, mdp.discount)
    assert main(["envs"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]] == [row["id"] for row in envs]


def test_a_path_has_a_point_for_each_alpha_and_is_written(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert main(["path", "inventory", "--alpha", "1,0.1", "--json", "--out", str(tmp_path / "new")]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert [point["alpha"] for point in points] == [0.1, 1.0]
    assert points[0]["regret"] < points[1]["regret"]
    assert points[0]["distance"] > points[1]["distance"]
    lines = (tmp_path / "new" / "path.csv").read_text().splitlines()
    assert lines[0] == "alpha,distance,regret,departure,true_cost"
    assert len(lines) == 3
    assert (tmp_path / "new" / "path.png").read_bytes().startswith(b"\x89PNG")


def test_a_path_from_demonstrations_depends_on_the_seed_alone(capsys):
    runs = []
    for seed in ("0", "0", "1"):
        assert main(["path", "inventory", "--alpha", "0.1", "--demonstrations", "3", "--seed", seed]) == 0
        runs.append(capsys.readouterr().out)
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inventori"], "did you mean 'inventory'?"),
        (["inventory", "--demonstrations", "1,2"], "demonstrations must be one number or exact, got [1, 2]"),
        (["inventory", "--points", "1"], "n_points must be at least 2, got 1"),
        (["inventory", "--alpha", "-1"], "alphas must be positive numbers, at least one; got [-1.0]"),
    ],
)
def test_mistakes_in_a_path_are_told_without_a_traceback(arguments, message, capsys):
    assert mistaken(capsys, "path", *arguments).endswith(message)


def test_lists_of_tasks_and_methods_are_also_given_as_json(capsys):
    from rlfd_gym.compare import METHODS, TASKS

    assert main(["compare", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in listed["tasks"]] == list(TASKS)
    assert [row["name"] for row in listed["methods"]] == list(METHODS)


def test_what_was_learned_from_a_log_is_also_given_as_json(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    prior = written(tmp_path, "0,0,1\n0,1,2\n1,0,3\n", header="state,action,cost\n", name="prior.csv")
    log = written(tmp_path, "1,a,0,1,1\n2,a,1,0,0\n3,a,0,0,0\n")
    columns = ["--state", "stock", "--action", "order", "--next-state", "next_stock"]
    files = ["--prior", str(prior), "--out", str(tmp_path / "out")]
    assert main(["learn", str(log), *columns, *files, "--alpha", "0.1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["page"] == str(tmp_path / "out" / "report.html")
    assert (tmp_path / "out" / "report.html").is_file()


def test_the_reproduction_needs_the_repository_and_takes_its_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rlfd_gym, "__file__", str(tmp_path / "rlfd_gym" / "__init__.py"))
    assert "come with the repository" in mistaken(capsys, "reproduce", "--quick")
    (tmp_path / "scripts" / "reproduction").mkdir(parents=True)
    (tmp_path / "scripts" / "reproduce.py").write_text("import sys; sys.exit(sys.argv[1:] != ['--figure', 'x'])")
    assert reproducing.find_script() == tmp_path / "scripts" / "reproduce.py"
    assert main(["reproduce", "--figure", "x"]) == 0
    assert main(["reproduce", "--figure", "y"]) == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shells_complete_every_subcommand(shell, capsys):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in SUBCOMMANDS)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_takes_the_completion(tmp_path, capsys):
    main(["completion", "bash"])
    (tmp_path / "rlfd.sh").write_text(capsys.readouterr().out)
    script = f"""
        source {tmp_path}/rlfd.sh
        COMP_WORDS=(rlfd compare --res); COMP_CWORD=2
        "$(complete -p rlfd | sed 's/.*-F \\([^ ]*\\).*/\\1/')" rlfd --res compare
        echo "${{COMPREPLY[@]}}"
    """
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert result.stdout.split() == ["--resume"], result.stderr


def test_numbers_that_json_does_not_have_become_null():
    assert parser.plain({"a": [float("nan"), float("inf"), 1.5], 2: (True, None)}) == {
        "a": [None, None, 1.5],
        "2": [True, None],
    }


def test_every_option_says_what_it_does():
    for name, sub in command_parser()._subparsers._group_actions[0].choices.items():
        assert all(action.help for action in sub._actions), name
