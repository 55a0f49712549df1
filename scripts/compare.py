"""Compare RLfD and other methods that learn from imperfect experts: `rlfd compare`, in a clone."""

from __future__ import annotations

import sys

from rlfd_gym.command import main as rlfd
from rlfd_gym.report import run_script


def main(arguments: list[str] | None = None) -> int:
    """Run `rlfd compare` with the same arguments."""
    return rlfd(["compare", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    run_script(main)
