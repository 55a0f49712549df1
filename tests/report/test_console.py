"""What scripts print reaches every terminal, pipe and log: the real scripts, in processes of their own."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
COMPARE = [sys.executable, str(SCRIPTS / "compare.py")]
QUICK = [*COMPARE, "--quick", "--tasks", "inventory", "--methods", "rlfd-exact", "--demonstrations", "exact"]
NARROW = ("cp1252", "latin-1", "ascii")


def run(command, cwd, encoding="utf-8", **options):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUNBUFFERED": ""}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, cwd=cwd, env=environment, timeout=120, **streams)


def small(body, *lines):
    """A command that runs a small script."""
    code = ["import sys", "from rlfd_gym.report import run_script", "def main():", *(f"    {line}" for line in lines)]
    return [sys.executable, "-c", "\n".join([*code, f"    {body}", "run_script(main)"])]


def nobody_reads(command, cwd, stream="stdout"):
    """Run a command whose stdout or stderr is a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return run(command, cwd, **{stream: writer})
    finally:
        os.close(writer)


@pytest.mark.parametrize("encoding", NARROW)
def test_a_terminal_without_greek_letters_gets_them_spelled(tmp_path, encoding):
    result = run(small(r"print('α = 0.1 ± 0.2 …, 5 × \u4e2d, Café, \udcff')"), tmp_path, encoding)
    assert (result.returncode, result.stderr) == (0, b"")
    expected = {
        "cp1252": "alpha = 0.1 ± 0.2 …, 5 × \\u4e2d, Café, \\udcff",
        "latin-1": "alpha = 0.1 ± 0.2 ..., 5 × \\u4e2d, Café, \\udcff",
        "ascii": "alpha = 0.1 +- 0.2 ..., 5 x \\u4e2d, Cafe, \\udcff",
    }
    assert result.stdout.decode(encoding).rstrip() == expected[encoding]


@pytest.mark.parametrize("encoding", [*(pytest.param(name, marks=pytest.mark.slow) for name in NARROW[:2]), "ascii"])
def test_the_comparison_prints_in_narrow_encodings(tmp_path, encoding):
    result = run([*QUICK, "--jobs", "1", "--out", "here"], tmp_path, encoding)
    assert result.returncode == 0, result.stderr.decode()
    printed = result.stdout.decode(encoding)
    assert "RLfD exact alpha=0.1" in printed
    assert "report: here" in printed


def test_learning_from_a_log_prints_labels_of_any_script_in_ascii(tmp_path):
    pytest.importorskip("matplotlib")
    labels = {"encoding": "utf-8"}
    (tmp_path / "prior.csv").write_text("state,action,cost\nпусто,много,1\nполно,мало,2\n", **labels)
    (tmp_path / "log.csv").write_text("s,a,n\nпусто,много,полно\nполно,мало,пусто\nполно,мало,конец\n", **labels)
    columns = ["--state", "s", "--action", "a", "--next-state", "n"]
    command = [sys.executable, str(SCRIPTS / "learn_from_log.py"), "log.csv", *columns, "--prior", "prior.csv"]
    result = run([*command, "--labels", "log", "--out", "out"], tmp_path, "ascii")
    assert result.returncode == 0, result.stderr.decode()
    assert b"states x actions" in result.stdout
    assert b"report in out" in result.stdout


@pytest.mark.parametrize("closed", [">&-", *(pytest.param(x, marks=pytest.mark.slow) for x in ("2>&-", ">&- 2>&-"))])
def test_a_closed_stdout_costs_nothing_but_what_was_printed(tmp_path, closed):
    command = f"{shlex.join(QUICK)} --jobs 1 --out here {closed}"
    result = run(["bash", "-c", command], tmp_path)
    assert result.returncode == 0, result.stderr.decode()
    assert b"Traceback" not in result.stderr
    assert (tmp_path / "here" / "report.html").is_file()


def test_a_file_that_is_opened_after_stdout_was_closed_does_not_become_stdout(tmp_path):
    body = "open('file', 'w').write('kept'); print('lost'); import os; os.write(1, b'lost, too')"
    assert run(["bash", "-c", f"{shlex.join(small(body))} >&-"], tmp_path).returncode == 0
    assert (tmp_path / "file").read_text() == "kept"


def test_head_ends_a_script_quietly(tmp_path):
    listing = shlex.join([*COMPARE, "--list"])
    result = run(["bash", "-c", f"{listing} | head -1; exit ${{PIPESTATUS[0]}}"], tmp_path)
    assert result.returncode in (0, 141)  # whether head has left by then is a race
    assert (result.stdout, result.stderr) == (b"tasks:\n", b"")


@pytest.mark.parametrize("arguments", [["--list"], ["--help"]])
def test_a_pipe_that_nobody_reads_ends_a_script_quietly_with_the_status_of_sigpipe(tmp_path, arguments):
    result = nobody_reads([*COMPARE, *arguments], tmp_path)
    assert (result.returncode, result.stderr) == (141, b"")


def test_a_broken_stderr_ends_a_script_quietly_too(tmp_path):
    result = nobody_reads(small("print('x', file=sys.stderr)"), tmp_path, stream="stderr")
    assert result.returncode == 141


def test_a_full_disk_is_told_in_one_line(tmp_path):
    with open("/dev/full", "w") as full:
        result = run(small("print('x')"), tmp_path, stdout=full)
    assert result.returncode == 1
    assert result.stderr.strip() == b"printing failed: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("return 3", 3, b""),
        ("return None", 0, b""),
        ("raise SystemExit('no such log')", 1, b"no such log\n"),
        ("raise BrokenPipeError('of a worker')", 1, b"BrokenPipeError: of a worker\n"),
        ("raise ValueError('wrong')", 1, b"ValueError: wrong\n"),
    ],
)
def test_what_a_script_says_itself_is_left_alone(tmp_path, body, status, said):
    result = run(small(body), tmp_path)
    assert result.returncode == status
    assert result.stderr.endswith(said)
    assert (b"Traceback" in result.stderr) == (b"Error" in said)


def test_every_script_prints_this_way():
    texts = {path.name: path.read_text() for path in SCRIPTS.rglob("*.py")}
    del texts["anchor_solvers.py"]  # runs where nothing of this project is installed, and prints nothing
    programs = {name: text for name, text in texts.items() if "__main__" in text or "ArgumentParser(" in text}
    assert len(programs) >= 14
    assert not [name for name, text in programs.items() if not re.search(r"^ *run_script\(", text, re.MULTILINE)]
