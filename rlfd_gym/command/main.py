"""The command line: which subcommands there are, and how a run of one ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from rlfd_gym import __version__
from rlfd_gym.command import comparing, learning, listing, paths, reproducing
from rlfd_gym.command.parser import INTERRUPTED, MISTAKE, Mistake, Parser
from rlfd_gym.report import run_script

DESCRIPTION = """Learn from imperfect experts with prior beliefs.

  rlfd learn log.csv --state stock --action order --episode shop --time week --prior prior.csv
  rlfd compare --quick
  rlfd path inventory
  rlfd envs

Each subcommand has its own --help with examples."""
ENDINGS = """exit status: 0 done, 1 the work failed, 2 a mistake in the call or in a file, 130 interrupted"""
SHELLS = ("bash", "zsh", "tcsh")


def run() -> NoReturn:
    """Run the command with the arguments of this process, and exit with its status.

    Example:
        >>> from unittest import mock
        >>> with mock.patch.object(sys, "argv", ["rlfd", "--version"]):  # doctest: +ELLIPSIS
        ...     try:
        ...         run()
        ...     except SystemExit as end:
        ...         print(end.code)
        rlfd ...
        0
    """
    run_script(main)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with some arguments, and return its exit status.

    >>> main(["envs", "--json"])  # doctest: +ELLIPSIS
    {"envs": [{"id": "rlfd_gym/Inventory-v0", ...
    0
    """
    parser = command_parser()
    options = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    try:
        status: int = options.work(options)
    except Mistake as mistake:
        print(f"{options.parser.prog}: {mistake}", file=sys.stderr)
        return MISTAKE
    except KeyboardInterrupt as interrupt:
        print(f"\n{interrupt or 'interrupted'}", file=sys.stderr)
        return INTERRUPTED
    return status


def command_parser() -> Parser:
    """Return the parser of the command with all its subcommands."""
    parser = Parser("rlfd", description=DESCRIPTION, epilog=ENDINGS)
    parser.add_argument("--version", action="version", version=f"rlfd {__version__}")
    subcommands = parser.add_subparsers(dest="subcommand", metavar="SUBCOMMAND", required=True, parser_class=Parser)
    for module in (learning, comparing, paths, reproducing, listing):
        module.add(subcommands)
    completion = subcommands.add_parser(
        "completion",
        help="print a script that completes this command in a shell",
        description="Print a script that completes `rlfd` in a shell, as in\n\n  source <(rlfd completion bash)",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell")
    completion.set_defaults(work=lambda options: _complete(options.shell), parser=completion)
    return parser


def _complete(shell: str) -> int:
    import shtab

    print(shtab.complete(command_parser(), shell=shell))
    return 0
