"""`rlfd reproduce`: the paper's experiments, where the repository's scripts are there."""

from __future__ import annotations

import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import rlfd_gym
from rlfd_gym.command.parser import INTERRUPTED, Mistake

DESCRIPTION = """Reproduce the paper's experiments, figure by figure, and say which of its claims hold.

  rlfd reproduce --quick
  rlfd reproduce --figure inventory

Every option goes to scripts/reproduce.py of the repository, which must be there;
`python scripts/reproduce.py --help` lists them."""
SCRIPT = Path("scripts") / "reproduce.py"


def add(subcommands: Any) -> None:
    """Declare that every option goes to the script."""
    parser = subcommands.add_parser(
        "reproduce", help="re-run the paper's experiments (in a clone)", description=DESCRIPTION
    )
    parser.set_defaults(work=reproduce, parser=parser, rest=[])


def reproduce(options: Namespace) -> int:
    """Run the script with the given options, and return its exit status."""
    script = find_script()
    try:
        return subprocess.run([sys.executable, str(script), *options.rest]).returncode
    except KeyboardInterrupt:
        return INTERRUPTED


def find_script() -> Path:
    """Return the script of the clone that this package is installed from, or of this folder."""
    for folder in (Path(rlfd_gym.__file__).resolve().parents[1], Path.cwd()):
        if (folder / SCRIPT).is_file() and (folder / "scripts" / "reproduction").is_dir():
            return folder / SCRIPT
    raise Mistake(f"{SCRIPT} is not there: the paper's experiments come with the repository; run this in a clone of it")
