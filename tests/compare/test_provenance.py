"""What made a cell: stored cells are believed only if they were made as new ones would be."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_comparison import TINY

import rlfd_gym
from rlfd_gym import compare
from rlfd_gym.compare import cells, provenance


@pytest.fixture
def stored(written, tmp_path):
    """A copy of a stored comparison, and the path of one of its cells."""
    shutil.copytree(written[1], tmp_path / "copy")
    return tmp_path / "copy", tmp_path / "copy" / "cells" / "windy_cloning_2_seed=1.npz"


def test_a_cell_states_its_settings_its_versions_and_its_code(written):
    row = cells.Row.load(written[1] / "cells" / "windy_cloning_2_seed=1.npz")
    assert row.settings == {"iterations": 2000, "runs": 1}
    assert row.versions["numpy"] == np.__version__
    assert row.versions["rlfd_gym"] == rlfd_gym.__version__
    assert "torch" not in row.versions  # cloning does not use it
    assert row.code == provenance.code()


def test_a_copied_cell_is_refused_instead_of_averaged_twice(stored):
    folder, path = stored
    shutil.copy(path, path.with_name("windy_cloning_2_seed=0.npz"))
    with pytest.raises(compare.ProvenanceError, match=r"windy_cloning_2_seed=0.npz holds the cell of .*seed=1.npz"):
        compare.run(out=folder, resume=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"iterations": 7, "runs": 1}}, "iterations 7, here 2000.*one setting for all cells"),
        ({"versions": {"numpy": "1.0"}}, "differs from other cells: numpy 1.0, here"),
        ({"seed": 500}, "is a cell of another comparison"),
        ({"task": "lake"}, "is a cell of another comparison"),
    ],
)
def test_a_cell_of_another_run_is_refused(change, message, stored):
    folder, path = stored
    replace(cells.Row.load(path), **change).save(folder / "cells")
    with pytest.raises(compare.ProvenanceError, match=message):
        compare.Comparison.load(folder)


def test_resuming_with_another_version_is_refused_and_relabels_nothing(stored, monkeypatch):
    folder, _ = stored
    before = (folder / "results.json").read_bytes()
    other = provenance.versions() | {"rlfd_gym": "9.9.9"}
    monkeypatch.setattr(provenance, "versions", lambda imitation=True, tasks=True: other)
    with pytest.raises(compare.ProvenanceError, match=r"rlfd_gym \S+, here 9.9.9. Install the versions of the"):
        compare.run(out=folder, resume=True)
    assert (folder / "results.json").read_bytes() == before
    assert compare.Comparison.load(folder).rows  # it can still be shown


def test_resuming_with_other_code_of_the_same_version_warns(tmp_path, monkeypatch, no_page):
    compare.run(**TINY, out=tmp_path)
    monkeypatch.setattr(provenance, "code", lambda: {"digest": "other", "git_commit": ""})
    with pytest.warns(RuntimeWarning, match="10 of 10 cells in .* were made by other code of rlfd_gym"):
        compare.run(out=tmp_path, resume=True)
    assert [one["digest"] for one in json.loads((tmp_path / "results.json").read_text())["code"]] != ["other"]


def test_a_cell_that_does_not_say_how_it_was_made_is_refused(stored, monkeypatch):
    folder, path = stored
    row = cells.Row.load(path)
    monkeypatch.setattr(cells, "VERSION", cells.VERSION - 1)
    row.save(folder / "cells")
    monkeypatch.undo()
    with pytest.raises(compare.ProvenanceError, match="does not say how it was made: an older rlfd_gym wrote it"):
        compare.Comparison.load(folder)


def test_the_commit_is_that_of_the_librarys_own_checkout(tmp_path, monkeypatch):
    commits = ["a" * 40, "b" * 40]
    monkeypatch.setattr(rlfd_gym, "__file__", str(tmp_path / "rlfd_gym" / "__init__.py"))
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text(f"# pack-refs\n{commits[1]} refs/heads/main\n")
    assert provenance.commit() == ""  # somebody else's repository around an installed library
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "rlfd-gym"\n')
    assert provenance.commit() == commits[1]
    (git / "refs" / "heads" / "main").write_text(f"{commits[0]}\n")
    assert provenance.commit() == commits[0]
    (git / "HEAD").write_text(commits[1])
    assert provenance.commit() == commits[1]
    (git / "HEAD").write_text("ref: ../pyproject.toml")
    assert provenance.commit() == ""  # not a commit


def test_the_commit_of_a_worktree_is_that_of_its_branch(tmp_path, monkeypatch):
    def git(*arguments):
        names = ["-c", "user.name=x", "-c", "user.email=x@x"]
        subprocess.run(["git", *names, *arguments], cwd=tmp_path / "main", check=True, capture_output=True)

    (tmp_path / "main").mkdir()
    git("init", "-q")
    (tmp_path / "main" / "pyproject.toml").write_text('name = "rlfd-gym"\n')
    git("add", ".")
    git("commit", "-qm", "one")
    git("worktree", "add", "-q", "../other", "-b", "other")
    monkeypatch.setattr(rlfd_gym, "__file__", str(tmp_path / "other" / "rlfd_gym" / "__init__.py"))
    there = subprocess.run(["git", "rev-parse", "other"], cwd=tmp_path / "main", capture_output=True, text=True)
    assert provenance.commit() == there.stdout.strip()


def test_asking_for_the_commit_runs_nothing_of_the_repository():
    code = "import sys; sys.addaudithook(lambda e, a: e.startswith(('subprocess', 'os.exec', 'os.posix_spawn', " \
        "'os.system', 'os.fork')) and sys.exit(f'ran {a}')); from rlfd_gym.compare import provenance; " \
        "provenance.commit(); provenance.code()"  # fmt: skip
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_digest_follows_the_code_and_not_its_place(tmp_path):
    root = Path(rlfd_gym.__file__).parents[1]
    for folder, place in (("rlfd_gym", "."), ("envs", "rlfd_gym"), ("baselines", "rlfd_gym")):
        shutil.copytree(root / folder, tmp_path / place / folder, ignore=shutil.ignore_patterns("__pycache__"))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from rlfd_gym.compare import provenance; " \
        "print(provenance.__file__, provenance.code()['digest'])"  # fmt: skip

    def digest():
        where, found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
        assert where.startswith(str(tmp_path))
        return found

    assert digest() == provenance.code()["digest"]
    with open(tmp_path / "rlfd_gym" / "envs" / "inventory.py", "a") as file:
        file.write("# changed\n")
    assert digest() != provenance.code()["digest"]
