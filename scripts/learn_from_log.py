"""Learn from a log what to do instead, without a simulator: `rlfd learn`, in a clone."""

from __future__ import annotations

import sys

from rlfd_gym.command import main as rlfd
from rlfd_gym.report import run_script


def main(arguments: list[str] | None = None) -> int:
    """Run `rlfd learn` with the same arguments."""
    return rlfd(["learn", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    run_script(main)
