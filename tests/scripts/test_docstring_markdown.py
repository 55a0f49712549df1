"""Docstrings become Markdown for the documentation."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "docs" / "_ext" / "docstring_markdown.py"
spec = importlib.util.spec_from_file_location("docstring_markdown", SOURCE)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

DOCSTRING = """Do it.

    Some words.

        x = 1 + 2_3

    ## Heading
    More words.

    Args:
        first: what comes first,
            on two lines.
        second, third: what follows.

    Attributes:
        kept: what stays.
        one, other: what is alike.

    Returns:
        All of it,
        in one line.

    Example:
        In words:

        >>> 1 + 1
        2

        >>> 2 + 2
        4
    """


def test_sections_become_fields_lists_and_blocks_and_the_rest_stays():
    text = module.markdown_of(DOCSTRING)
    assert "\n    x = 1 + 2_3\n" in text
    assert "```{rubric} Heading\n```" in text
    assert ":param first: what comes first,\n  on two lines.\n:param second,third: what follows.\n" in text
    assert "**Attributes**\n\n- **kept**: what stays.\n- **one, other**: what is alike.\n" in text
    assert ":returns: All of it, in one line.\n" in text
    assert "In words:\n\n```pycon\n>>> 1 + 1\n2\n```\n\n```pycon\n>>> 2 + 2\n4\n```\n" in text
    assert text.count("```") % 2 == 0


def test_an_example_that_stands_alone_becomes_a_block():
    text = module.markdown_of("Say it.\n\n    >>> print(1)\n    1\n    ")
    assert text == "Say it.\n\n```pycon\n>>> print(1)\n1\n```\n"


@pytest.mark.parametrize(("docstring", "examples"), [(DOCSTRING, 1), ("No example.", 0)])
def test_examples_are_found(docstring, examples):
    assert len(module.examples_of(docstring)) == examples


def test_its_own_example_runs():
    assert doctest.testmod(module).failed == 0
