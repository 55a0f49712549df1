"""The command `rlfd`, also `python -m rlfd_gym`: one module for each of its subcommands.

A subcommand is a function `add(subcommands)` that declares its options, and a function of these
options that does the work and returns an exit status. The work itself is done elsewhere in the
library; these modules only parse, call and print.

The exit status is 0 on success, 1 if the work failed, 2 for a mistake on the command line or in a
file that it names, 130 after Ctrl-C, and 141 if the reader of a pipe left.
"""

from __future__ import annotations

from rlfd_gym.command.main import main, run

__all__ = ["main", "run"]
