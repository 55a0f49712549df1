"""Kernels where numba can keep none of them: they are compiled all the same, and one warning says so."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import rlfd_gym
from rlfd_gym import _compiled
from rlfd_gym.problem import examples

ROOT = Path(__file__).resolve().parents[1]
KERNELS = """
from rlfd_gym._compiled import cached, compiled

@compiled
def double(x):
    return 2 * x

@cached()
def triple(x):
    return 3 * x
"""


def block(folder: Path) -> None:
    """Make it impossible, also for root, to write below `folder/__pycache__`: it is a file."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "__pycache__").touch()


def test_kernels_that_cannot_be_kept_work_and_warn_once(tmp_path, monkeypatch):
    (tmp_path / "kernels.py").write_text(KERNELS)
    block(tmp_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "kernels.py" / "below"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec = importlib.util.spec_from_file_location("kernels", tmp_path / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    _compiled._warn_of_no_cache.cache_clear()
    with pytest.warns(RuntimeWarning, match="compiled kernels cannot be kept") as caught:
        spec.loader.exec_module(module)
    assert len(caught) == 1
    assert (module.double(3), module.triple(3)) == (6, 9)


@pytest.mark.slow
def test_a_read_only_package_without_a_home_solves_to_the_same_bits(tmp_path):
    for folder, place in (("rlfd_gym", "."), ("envs", "rlfd_gym"), ("baselines", "rlfd_gym")):
        shutil.copytree(ROOT / folder, tmp_path / place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path for path in (tmp_path / "rlfd_gym").rglob("*") if path.is_dir()]:
        block(folder)
    block(tmp_path / "rlfd_gym")
    nowhere = str(tmp_path / "rlfd_gym" / "__init__.py" / "below")
    code = """if True:
        import rlfd_gym
        from rlfd_gym.problem import examples
        print(rlfd_gym.__file__, rlfd_gym.solve_smd(examples.inventory(), n_iterations=1000).cost.tobytes().hex())
    """
    there = os.environ | {"PYTHONPATH": str(tmp_path), "HOME": nowhere, "XDG_CACHE_HOME": nowhere}
    there |= {"NUMBA_CACHE_DIR": nowhere, "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run([sys.executable, "-c", code], env=there, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    where, cost = result.stdout.split()
    assert where.startswith(str(tmp_path))
    assert result.stderr.count("compiled kernels cannot be kept") == 1
    assert cost == rlfd_gym.solve_smd(examples.inventory(), n_iterations=1000).cost.tobytes().hex()
