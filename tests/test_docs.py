"""Every example that a reader may copy runs: docstrings, and the Python blocks of the README and other pages."""

from __future__ import annotations

import contextlib
import doctest
import importlib
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
README, CONTRIBUTING, GUARANTEES, READINGS = (
    re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)
    for page in ("README.md", "CONTRIBUTING.md", "docs/guarantees.md", "docs/noise_and_error.md")
)
PROGRAMS = {f"README-{k}": block for k, block in enumerate(README)} | {
    "guarantees": "".join(GUARANTEES),
    "readings": "".join(READINGS),
}


@pytest.mark.parametrize("name", marked(MODULES, NEEDS_IMITATION.__contains__))
def test_the_examples_in_docstrings_run(name):
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_docstring_examples_are_found_at_all():
    finder = doctest.DocTestFinder()
    found = (finder.find(importlib.import_module(name)) for name in set(MODULES) - NEEDS_IMITATION)
    assert sum(len(test.examples) for tests in found for test in tests) > 15


@pytest.mark.parametrize(
    "block",
    marked(PROGRAMS.values(), lambda block: "imitation" in block or "RLfDTrainer" in block),
    ids=PROGRAMS,
)
def test_the_examples_of_the_pages_run(block, tmp_path):
    # What a line's comment shows after `# ->` must be among what the block prints.
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


def test_the_readme_has_an_example_and_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert README
    assert "make compare" in text
    assert "make test" in text


@pytest.mark.parametrize("name", marked(rlfd_gym.__all__, {"RLfDTrainer"}.__contains__))
def test_every_public_name_is_there_and_documented(name):
    assert getattr(rlfd_gym, name).__doc__
