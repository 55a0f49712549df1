"""Every example that a reader may copy runs: docstrings, and the Python blocks of the README and other pages."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import gymnasium as gym
import pytest

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare.measures import MEASURES

TRAINER = (
    "env_model",
    "generators",
    "loading",
    "logging",
    "plotting",
    "policy",
    "reward",
    "saving",
    "settings",
    "tensors",
    "trainer",
    "training",
)
ROOT = Path(__file__).resolve().parent.parent
NEEDS_IMITATION = {"rlfd_gym.trainer"} | {f"rlfd_gym.trainer.{name}" for name in TRAINER}
NEEDS_IMITATION |= {f"rlfd_gym.baselines.{name}" for name in ("_imitation", "cloning_network", "gail")}


def marked(values, needs):
    """Test parameters, those that need imitation marked as such."""
    return [pytest.param(value, marks=pytest.mark.needs_imitation if needs(value) else ()) for value in values]


MODULES = [name for _, name, _ in pkgutil.walk_packages(rlfd_gym.__path__, "rlfd_gym.")]
DOCS = ROOT / "docs"
PACKAGES = ["alpha", "beliefs", "command", "compare", "decision", "envs", "experts", "experts.logs", "mdp", "problem"]
PACKAGES += ["report", "solvers", "solvers.smd", "baselines"]
BLOCK = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
CONTRIBUTING = BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text())
PROGRAMS = {
    page.relative_to(ROOT).as_posix(): "\n".join(BLOCK.findall(page.read_text()))
    for page in (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
    if BLOCK.search(page.read_text())
}
"""The Python blocks of each page, one after the other."""
QUICK = {"README.md", "docs/start/first_apprentice.md"}
"""Pages that every run of the tests tries. The others are slow together: `make docs` tries them."""
NEEDS_DATA = {"rlfd_gym.experts.export": "minari"}


@pytest.mark.parametrize("name", marked(MODULES, NEEDS_IMITATION.__contains__))
def test_the_examples_in_docstrings_run(name):
    pytest.importorskip(NEEDS_DATA.get(name, "rlfd_gym"))
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_docstring_examples_are_found_at_all():
    finder = doctest.DocTestFinder()
    found = (finder.find(importlib.import_module(name)) for name in set(MODULES) - NEEDS_IMITATION)
    assert sum(len(test.examples) for tests in found for test in tests) > 15


def _marks(page):
    needs = any(word in PROGRAMS[page] for word in ("imitation", "RLfDTrainer"))
    return [pytest.mark.needs_imitation] * needs + [pytest.mark.slow] * (page not in QUICK)


@pytest.mark.parametrize("page", [pytest.param(page, marks=_marks(page)) for page in PROGRAMS])
def test_the_examples_of_the_pages_run(page, tmp_path):
    block = PROGRAMS[page]
    # What a line's comment shows after `# ->` must be among what the page prints.
    result = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    for shown in re.findall(r"# -> (.*)", block):
        assert shown in result.stdout


@pytest.mark.parametrize("block", CONTRIBUTING, ids=range(len(CONTRIBUTING)))
def test_the_extensions_that_contributing_shows_run(block):
    registries = (compare.METHODS, compare.TASKS, MEASURES, gym.registry)
    with contextlib.ExitStack() as stack:
        for registry in registries:
            stack.enter_context(mock.patch.dict(registry))
        exec(compile(block, "CONTRIBUTING.md", "exec"), {"__name__": "__main__"})


def test_the_readme_has_an_example_the_two_commands_and_a_picture_on_its_first_screen_and_at_most_120_lines():
    lines = (ROOT / "README.md").read_text().splitlines()
    first = "\n".join(lines[:20])
    assert "make compare" in first
    assert "make test" in first
    assert "docs/pictures/overview.png" in first
    assert "README.md" in PROGRAMS
    assert len(lines) <= 120


def test_what_the_readme_and_the_pages_link_to_in_the_repository_is_there():
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    links = {
        (page, target)
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
        if not target.startswith(("http", "mailto:"))
    }
    assert len(links) > 100
    assert not [(page.name, target) for page, target in links if not (page.parent / target).exists()]


@pytest.mark.parametrize("name", marked(rlfd_gym.__all__, {"RLfDTrainer"}.__contains__))
def test_every_public_name_is_there_and_documented(name):
    assert getattr(rlfd_gym, name).__doc__


@pytest.mark.parametrize("package", ["", *PACKAGES, pytest.param("trainer", marks=pytest.mark.needs_imitation)])
def test_every_public_name_has_an_example(package):
    module = importlib.import_module(f"rlfd_gym.{package}".rstrip("."))
    names = [name for name in module.__all__ if name != "RLfDTrainer" or package == "trainer"]
    wrapped = {"cloning_network", "gail"} if importlib.util.find_spec("imitation") is None else set()
    things = [getattr(module, name) for name in names if name not in wrapped]
    called = [thing for thing in things if callable(thing) and hasattr(thing, "__name__")]
    assert len(called) > 1
    assert not [thing.__name__ for thing in called if ">>> " not in (thing.__doc__ or "")]


def test_every_package_with_public_names_has_a_page_of_the_reference():
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.rst"))
    found = {
        name
        for name in ("rlfd_gym", *MODULES)
        if "trainer" not in name and hasattr(importlib.import_module(name), "__path__")
    }
    with_names = {name for name in found if hasattr(importlib.import_module(name), "__all__")}
    assert len(with_names) > 12
    lacking = [name for name in with_names if f":: {name}\n" not in pages]
    assert not lacking
    assert ":: rlfd_gym.trainer\n" in pages


METHOD_PAGES = sorted(page for page in (DOCS / "methods").glob("*.md") if page.stem != "index")


@pytest.mark.parametrize("page", METHOD_PAGES, ids=lambda page: page.stem)
def test_a_method_has_a_problem_a_guarantee_tests_that_exist_and_an_example(page):
    text = page.read_text()
    assert re.findall(r"^## (.*)$", text, flags=re.MULTILINE) == [
        "Problem",
        "Guarantee",
        "Tests",
        "Example",
        "In detail",
    ]
    tests = re.findall(r"`(tests/\S+\.py)::(test_\w+)`", text)
    assert tests
    for file, name in tests:
        assert f"def {name}(" in (ROOT / file).read_text()


def test_every_method_that_is_compared_has_a_page():
    pages = "".join(page.read_text() for page in METHOD_PAGES)
    baselines = importlib.import_module("rlfd_gym.baselines")
    helpers = {"HullProblem", "Posterior", "scale_basis"}
    assert not [name for name in baselines.__all__ if name not in helpers and f"rlfd_gym.baselines.{name}" not in pages]


def test_notebooks_are_stored_without_outputs():
    notebooks = [page for page in DOCS.rglob("*.md") if "{code-cell}" in page.read_text()]
    assert len(notebooks) == 6
    assert not list(DOCS.rglob("*.ipynb"))
