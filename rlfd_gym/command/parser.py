"""The parser that all subcommands share, and the types of their options.

Options are never abbreviated, because an abbreviation that is right today means something else as
soon as another option begins with the same letters. A mistyped option is answered with the nearest
one instead.
"""

from __future__ import annotations

import argparse
import difflib
import json
import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn

SUCCESS, FAILURE, MISTAKE, INTERRUPTED = 0, 1, 2, 130
UNKNOWN = "unrecognized arguments: "  # how argparse begins its message


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations that suggests the nearest option."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the arguments of `ArgumentParser`, with a description that keeps its lines."""
        settings: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(*arguments, **settings | options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the command line.

        Unknown options are a mistake, which the subcommand's own parser reports, unless it has the
        default `rest`: there they are collected, to be passed on.
        """
        options, unknown = self.parse_known_args(args, namespace)
        if unknown and not hasattr(options, "rest"):
            getattr(options, "parser", self).error(UNKNOWN + " ".join(unknown))
        options.rest = unknown
        return options

    def error(self, message: str) -> NoReturn:
        """Print how to call the command and what was wrong, and exit with the status 2."""
        if message.startswith(UNKNOWN):
            for word in message[len(UNKNOWN) :].split():
                near = difflib.get_close_matches(word.split("=")[0], self._option_string_actions, n=1)
                if near:
                    message += f"; did you mean {near[0]}?"
                    break
        super().error(message)


class Mistake(Exception):
    """Something that the user can mend: the command prints it and exits with the status 2."""


@dataclass(frozen=True)
class Printed:
    """Where results go: text for people, or one JSON object on stdout.

    Attributes:
        as_json: whether stdout gets the JSON object; text for people then goes to stderr.
    """

    as_json: bool

    def text(self, *lines: str) -> None:
        """Print lines for people."""
        print(*lines, sep="\n", file=sys.stderr if self.as_json else sys.stdout)

    def result(self, values: Any) -> None:
        """Print the results for programs, if they were asked for; NaN and infinity become null."""
        if self.as_json:
            print(json.dumps(plain(values), ensure_ascii=False, allow_nan=False))


def plain(values: Any) -> Any:
    """Return values as JSON has them: no arrays, no paths, and no number that is not finite.

    >>> import numpy as np
    >>> from pathlib import Path
    >>> plain({"cost": np.array([0.5, np.nan]), "page": Path("report.html")})
    {'cost': [0.5, None], 'page': 'report.html'}
    """
    if hasattr(values, "tolist"):
        values = values.tolist()
    if isinstance(values, dict):
        return {str(name): plain(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return [plain(value) for value in values]
    if isinstance(values, float):
        return values if math.isfinite(values) else None
    return values if isinstance(values, (bool, int, str, type(None))) else str(values)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object; messages go to stderr")


def words(text: str) -> list[str]:
    """Return the words of "a,b" as a list."""
    return [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str) -> list[float]:
    """Return the numbers of "0.1,1" as a list."""
    return [float(word) for word in words(text)]


def levels(text: str) -> list[int | str]:
    """Return the levels of "1,10,exact" as a list."""
    return [word if word == "exact" else int(word) for word in words(text)]


def columns(rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return rows of text as lines with aligned columns.

    >>> columns([("id", "states"), ("Inventory", "16")])
    ['id         states', 'Inventory  16']
    """
    listed = list(rows)
    widths = [max(len(row[k]) for row in listed) for k in range(len(listed[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in listed]
