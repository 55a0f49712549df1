"""Where compiled kernels are kept: never in the package. Where none can be, a warning says so, and they work."""

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
from rlfd_gym._compiled import cached, compiled, inlined

@inlined
def twice(x, times=None):
    if times is None:
        return 2 * x
    return times[0] * x

@compiled
def double(x):
    return twice(x)

@cached()
def triple(x):
    return 3 * x
"""


def block(folder: Path) -> None:
    """Make it impossible, also for root, to write below `folder/__pycache__`: it is a file."""
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    (folder / "__pycache__").touch()


@pytest.fixture
def fresh(monkeypatch):
    """No folder chosen by the user, and none remembered."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    _compiled._cache_folder.cache_clear()
    _compiled._warn_of_no_cache.cache_clear()
    yield
    _compiled._cache_folder.cache_clear()


def load(folder: Path):
    """Import a module of kernels from a folder."""
    (folder / "kernels.py").write_text(KERNELS)
    spec = importlib.util.spec_from_file_location("kernels", folder / "kernels.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kept(folder: Path) -> list[str]:
    """The kernels that are kept below a folder."""
    return sorted({path.name.split("-")[0] for path in folder.rglob("*.nb[ic]")})


def test_kernels_that_cannot_be_kept_work_and_warn_once(tmp_path, monkeypatch, fresh):
    nowhere = tmp_path / "file"
    nowhere.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere / "below"))
    monkeypatch.setattr(_compiled.tempfile, "tempdir", str(nowhere / "below"))
    with pytest.warns(RuntimeWarning, match="compiled kernels cannot be kept") as caught:
        module = load(tmp_path)
    assert len(caught) == 1
    assert (module.double(3), module.triple(3)) == (6, 9)
    assert kept(tmp_path) == []


@pytest.mark.parametrize("place", ["cache", "temporary", "chosen"])
def test_kernels_are_kept_in_the_users_cache_or_the_temporary_folder_or_where_the_user_says(
    tmp_path, monkeypatch, fresh, place
):
    folders = {name: tmp_path / name for name in ("source", "cache", "temporary", "chosen")}
    for folder in folders.values():
        folder.mkdir()
    (tmp_path / "file").touch()
    monkeypatch.setattr(_compiled.tempfile, "tempdir", str(folders["temporary"]))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folders["cache"] if place == "cache" else tmp_path / "file" / "below"))
    if place == "chosen":
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(folders["chosen"]))
    settings = vars(numba.config).copy()
    assert load(folders["source"]).double(3) == 6
    assert {name: kept(folder) for name, folder in folders.items() if kept(folder)} == {place: ["kernels.double"]}
    assert vars(numba.config)["CACHE_DIR"] == settings["CACHE_DIR"]


def test_parts_of_kernels_are_plain_functions_and_leave_out_branches_on_none(tmp_path):
    module = load(tmp_path)
    assert (module.twice(3), module.twice(3, [4])) == (6, 12)  # not compiled
    assert module.double(3) == 6  # though None has no entries


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="temporary files belong to the user there")
@pytest.mark.parametrize("trap", ["open to all", "a link", "another's"])
def test_a_temporary_folder_that_others_may_have_filled_is_not_used(tmp_path, monkeypatch, fresh, trap):
    ours = tmp_path / f"rlfd_gym-{os.getuid()}"
    if trap == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        ours.symlink_to(tmp_path / "elsewhere")
    else:
        ours.mkdir(mode=0o700)
        ours.chmod(0o777 if trap == "open to all" else 0o700)
    if trap == "another's":
        mine = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: mine + 1)
        ours.rename(tmp_path / f"rlfd_gym-{mine + 1}")
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(_compiled.tempfile, "tempdir", str(tmp_path))
    assert _compiled._cache_folder("") is None


@pytest.mark.slow  # a fresh interpreter that compiles
def test_a_solve_leaves_nothing_in_the_package(tmp_path):
    for folder, place in (("rlfd_gym", "."), ("envs", "rlfd_gym"), ("baselines", "rlfd_gym")):
        shutil.copytree(ROOT / folder, tmp_path / place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = "from rlfd_gym.beliefs.simplex import best_mixture; import numpy as np; "
    code += "print(best_mixture(np.eye(2), np.array([0.0, 1.0]), 0.1))"
    there = os.environ | {"PYTHONPATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    there.pop("NUMBA_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", code], env=there, cwd=tmp_path, check=True, capture_output=True)
    assert kept(tmp_path / "cache") != []
    assert kept(tmp_path / "rlfd_gym") == []


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
