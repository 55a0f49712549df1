"""Examples on the pages import what they use, so that a reader can paste them."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXT = Path(__file__).resolve().parents[2] / "docs" / "_ext"
PACKAGES = ["", ".alpha", ".beliefs", ".command", ".compare", ".decision", ".envs", ".experts", ".experts.logs"]
PACKAGES += [".mdp", ".problem", ".report", ".solvers", ".solvers.smd", ".solvers.sampled"]
IMITATION = [pytest.param(name, marks=pytest.mark.needs_imitation) for name in (".baselines", ".trainer")]


@pytest.fixture(scope="module")
def pages():
    """The two modules that make pages of docstrings."""
    sys.path.insert(0, str(EXT))
    try:
        return importlib.import_module("whole_examples"), importlib.import_module("docstring_markdown")
    finally:
        sys.path.remove(str(EXT))


@pytest.mark.parametrize("package", [*PACKAGES, *IMITATION])
def test_the_examples_of_public_names_bind_every_name_that_they_use(pages, package):
    whole_examples, docstring_markdown = pages
    package = f"rlfd_gym{package}"
    module = importlib.import_module(package)
    names = [name for name in module.__all__ if package != "rlfd_gym" or name != "RLfDTrainer"]
    shown = 0
    for name in names:
        docstring = getattr(module, name).__doc__ if callable(getattr(module, name)) else None
        page = whole_examples.with_imports(docstring_markdown.markdown_of(docstring or ""), f"{package}.{name}")
        example = "".join(whole_examples.BLOCK.findall(page))
        assert not whole_examples.names_not_bound(example), name
        for line in example.splitlines():
            if line.startswith((">>> import ", ">>> from ")):
                exec(line[4:], {})
                assert "._" not in line, name
        shown += ">>> " in example
    assert shown > 0


def test_imports_are_sorted_by_what_a_reader_imports_them_from(pages):
    whole_examples, _ = pages
    lines = whole_examples.imports_of(">>> np.zeros(2), RLfDProblem, solve_smd, len\n", "rlfd_gym.solve_smd")
    assert lines == ["import numpy as np", "from rlfd_gym import RLfDProblem, solve_smd"]
    assert whole_examples.imports_of(">>> import numpy as np\n>>> np.pi\n", "rlfd_gym.solve_exact") == []


def test_words_of_an_example_stay_words(pages):
    whole_examples, _ = pages
    page = whole_examples.fenced("A shop.\n\n>>> x = 1\n>>> x\n1")
    assert page == "A shop.\n\n```pycon\n>>> x = 1\n>>> x\n1\n```\n"
    assert whole_examples.with_imports("no code", "rlfd_gym.solve_exact") == "no code"
