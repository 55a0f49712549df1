"""Try what must not break the library, and write the counts to docs/reliability.md.

    python scripts/reliability.py                      # all trials: minutes
    python scripts/reliability.py --list               # their names
    python scripts/reliability.py --trials "bad inputs,crafted files" --out here.md

The trials are those of `tests/trials.py`. Each runs in a process of its own, so that a crash or a hang
is a failure that is counted. The status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlfd_gym import __version__
from rlfd_gym.report import run_script, write

ROOT = Path(__file__).resolve().parent.parent
TRIALS = ROOT / "tests" / "trials.py"
LIMIT = 600.0  # seconds for one trial
SHOWN = 20  # failures


@dataclass(frozen=True)
class Result:
    """What came of one trial."""

    name: str
    tries: str
    tried: int
    came: dict[str, int]
    failures: list[str]
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen trials, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", help="names, separated by commas (default: all)")
    parser.add_argument("--list", action="store_true", help="list the trials, and exit")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "reliability.md", help="the page")
    options = parser.parse_args(arguments)
    known = known_trials()
    if options.list:
        print("\n".join(f"{name:<26}{tries}" for name, tries in known.items()))
        return 0
    chosen = list(known) if options.trials is None else [name.strip() for name in options.trials.split(",")]
    strange = [name for name in chosen if name not in known]
    if strange:
        parser.error(f"--trials: {strange[0]!r} is not one of {', '.join(known)}")
    results = []
    for name in chosen:
        results.append(run(name, known[name]))
        print(f"{name:<26}{results[-1].tried:>8,} tried, {len(results[-1].failures)} failed", flush=True)
    write(options.out, page(results).encode())
    print(f"\nwritten: {options.out}")
    return int(any(result.failures for result in results))


def known_trials() -> dict[str, str]:
    """Return what each trial tries, by its name."""
    spec = importlib.util.spec_from_file_location("trials", TRIALS)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["trials"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: trial.tries for name, trial in module.TRIALS.items()}


def run(name: str, tries: str, limit: float = LIMIT) -> Result:
    """Run a trial in a process of its own."""
    begin = time.perf_counter()
    outcome: dict[str, Any]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(TRIALS), name, folder]
        environment = {**os.environ, "PYTHONPATH": str(TRIALS.parent)}
        try:
            process = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, timeout=limit
            )
            outcome = json.loads(process.stdout.splitlines()[-1])
        except subprocess.TimeoutExpired:
            outcome = {"tried": 0, "came": {}, "failures": [f"not finished after {limit:.0f} s"]}
        except (IndexError, ValueError):
            last = (process.stderr.strip().splitlines() or ["nothing was said"])[-1]
            outcome = {"tried": 0, "came": {}, "failures": [f"exit status {process.returncode}: {last}"]}
    return Result(name, tries, **outcome, seconds=time.perf_counter() - begin)


def page(results: list[Result]) -> str:
    """Return the page in Markdown."""
    total, failed = sum(result.tried for result in results), sum(len(result.failures) for result in results)
    seconds = sum(result.seconds for result in results)
    lines = [
        "# Reliability",
        "",
        "What was tried to break the library, and what came of it. Written by `python scripts/reliability.py` (`make",
        "reliability`), never by hand; the trials are those of `tests/trials.py`, and `make test-slow` runs them, too.",
        "",
        f"**{total:,} cases, {failed:,} failures**: rlfd_gym {__version__}, Python {platform.python_version()},",
        f"{platform.system()} on {platform.machine()}, {seconds:.0f} s.",
        "",
        "| trial | tried | what came of it | failures | what is tried |",
        "|---|---:|---|---:|---|",
    ]
    for result in results:
        came = ", ".join(f"{number:,} {kind}" for kind, number in result.came.items())
        lines.append(f"| {result.name} | {result.tried:,} | {came} | {len(result.failures):,} | {result.tries} |")
    for result in results:
        if result.failures:
            lines += ["", f"## Failures of {result.name}", "", "```"]
            lines += [line.replace("```", "'''") for line in result.failures[:SHOWN]]
            lines += [f"and {len(result.failures) - SHOWN} more"] if len(result.failures) > SHOWN else []
            lines.append("```")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    run_script(main)
