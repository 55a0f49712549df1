"""Printing that does not fail: what a script says reaches every terminal, pipe and log.

A script's work is done and stored before its last words are printed. An encoding without Greek
letters, a closed stdout or a reader that leaves, as `| head` does, must not turn it into a failure.
"""

from __future__ import annotations

import codecs
import os
import sys
import unicodedata
from collections.abc import Callable
from typing import NoReturn

BROKEN_PIPE = 141  # 128 + SIGPIPE: what a shell reports of a program whose reader has left
READABLE = "rlfd_gym.readable"
SPELLED = {
    "α": "alpha", "γ": "gamma", "ε": "epsilon", "κ": "kappa", "μ": "mu", "ν": "nu", "π": "pi", "ĉ": "c^", "±": "+-",
    "×": "x", "·": "*", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "→": "->", "∞": "inf", "’": "'", "“": '"', "”": '"',
}  # fmt: skip


def run_script(main: Callable[[], int | None]) -> NoReturn:
    """Run the main function of a script, print whatever can be printed, and exit with its status.

    Characters that the terminal's encoding lacks are spelled in ASCII. What is printed to a closed
    stdout is dropped. If the reader of a pipe leaves, the script ends in silence with the status
    141, as other programs do; if printing fails for another reason, such as a full disk, with an
    error of one line.

    Example:
        >>> try:
        ...     run_script(lambda: 0)
        ... except SystemExit as end:
        ...     print(end.code)
        0
    """
    _prepare()
    try:
        try:
            status: int | str | None = main()
        except SystemExit as stop:
            left = stop.code == 1 and isinstance(stop.__context__, BrokenPipeError)  # how rich tells it
            status = BROKEN_PIPE if left else stop.code
        sys.stdout.flush()
    except OSError as error:
        if not _silence_broken():
            raise  # the error is not about printing
        sys.exit(BROKEN_PIPE if isinstance(error, BrokenPipeError) else f"printing failed: {error}")
    sys.exit(status)


def spelled(error: UnicodeError) -> tuple[str, int]:
    """Spell what cannot be encoded in ASCII; an error handler of `codecs`.

    >>> codecs.register_error(READABLE, spelled)
    >>> "γ ≤ 0.9…, Café 中".encode("ascii", READABLE)
    b'gamma <= 0.9..., Cafe \\\\u4e2d'
    """
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return SPELLED.get(character) or decomposed or character.encode("ascii", "backslashreplace").decode()


def _prepare() -> None:
    """Let stdout and stderr take every character, and open them if they were closed."""
    codecs.register_error(READABLE, spelled)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif hasattr(getattr(sys, name), "reconfigure"):
            getattr(sys, name).reconfigure(errors=READABLE)


def _silence_broken() -> bool:
    """Send the stream that cannot be written to nowhere; return whether there is one."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.write("\n")
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())  # the interpreter flushes once more when it exits
            os.close(nowhere)
            return True
    return False
