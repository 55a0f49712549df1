"""Docstrings as Markdown: their sections become what Sphinx knows, everything else stays as it is.

The docstrings of this library are Markdown with the sections of Google's style. A section `Args:`
becomes a list of fields, an `Example:` a block of code, and a heading a rubric, because a docstring
cannot open a section of the page that it stands on. This module needs nothing but Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

FIELDS = {"Args": "param", "Raises": "raises", "Warns": "raises"}
LISTS = {"Attributes": "Attributes"}
PROSE = {"Returns": "returns", "Yields": "returns"}
CODE = {"Example": "Example", "Examples": "Examples"}
SECTION = re.compile(rf"^({'|'.join([*FIELDS, *LISTS, *PROSE, *CODE])}):\s*$")
ITEM = re.compile(r"^(\*{0,2}[\w.]+)(?: \([^)]*\))?(?:, \*{0,2}[\w.]+)*: ?(.*)$")
HEADING = re.compile(r"^#{1,6} (.*)$")
PROMPT = re.compile(r"^\s*>>> ")


def markdown_of(docstring: str) -> str:
    """Return a docstring as a page of MyST Markdown.

    Example:
        >>> print(markdown_of("Double it.\\n\\n    Args:\\n        x: a number.\\n    "))
        Double it.
        <BLANKLINE>
        <BLANKLINE>
        :param x: a number.
        <BLANKLINE>
        <BLANKLINE>
    """
    lines = inspect.cleandoc(docstring).splitlines()
    out: list[str] = []
    position = 0
    while position < len(lines):
        section = SECTION.match(lines[position])
        if section is None:
            out.append(lines[position])
            position += 1
            continue
        body, position = _body(lines, position + 1)
        name = section.group(1)
        if name in CODE:
            out += ["", f"**{name}**", "", *_code(body)]
        elif name in LISTS:
            out += ["", f"**{name}**", "", *_items(body), ""]
        elif name in FIELDS:
            out += ["", *_fields(FIELDS[name], body), ""]
        else:
            out += ["", f":{PROSE[name]}: " + " ".join(line.strip() for line in body if line.strip()), ""]
    return "\n".join(_blocks(out)) + "\n"


def examples_of(docstring: str) -> list[str]:
    """Return the examples of a docstring, as a reader would type them and see them answered."""
    lines = inspect.cleandoc(docstring).splitlines()
    starts = [k for k, line in enumerate(lines) if line.rstrip(":") in CODE and line.endswith(":")]
    return ["\n".join(_body(lines, k + 1)[0]).strip("\n") for k in starts]


def _body(lines: Sequence[str], start: int) -> tuple[list[str], int]:
    """Return the indented lines of a section without their indentation, and where it ends."""
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end].startswith(" ")):
        end += 1
    return inspect.cleandoc("\n" + "\n".join(lines[start:end])).splitlines(), end


def _fields(kind: str, body: Sequence[str]) -> Iterator[str]:
    """Return one field for each item; a line that continues one stays with it."""
    for line in body:
        item = None if line.startswith(" ") else ITEM.match(line)
        if item is not None:
            names, _, rest = line.partition(": ") if ": " in line else (line.rstrip(":"), "", "")
            together = names.strip().replace(", ", ",").replace("*", r"\*")  # a blank would set a type apart
            yield f":{kind} {together}: {rest}"
        elif line.strip():
            yield f"  {line.strip()}"


def _items(body: Sequence[str]) -> Iterator[str]:
    """Return one item of a list for each attribute."""
    for line in _fields("", body):
        names, _, rest = line[2:].partition(": ")
        yield f"- **{names.replace(',', ', ')}**: {rest}" if line.startswith(": ") else line


def _code(body: Sequence[str]) -> list[str]:
    """Return an example as a block of code; words between its blocks stay words."""
    out: list[str] = []
    inside = False
    for line in [*body, ""]:
        if not inside and PROMPT.match(line):
            out += ["```pycon"]
            inside = True
        elif inside and not line.strip():
            out += ["```"]
            inside = False
        out.append(line)
    return out


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    """Turn headings into rubrics, and indented examples into blocks of code."""
    fence, example = False, False
    for line in lines:
        if line.startswith("```"):
            fence = not fence
        heading = None if fence else HEADING.match(line)
        if heading is not None:
            yield from ("", "```{rubric} " + heading.group(1), "```", "")
        elif not fence and not example and PROMPT.match(line) and not line.startswith("    "):
            example = True
            yield from ("```pycon", line)
        elif example and not line.strip():
            example = False
            yield from ("```", line)
        else:
            yield line
    if example:
        yield "```"
