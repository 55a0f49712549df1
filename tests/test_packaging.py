"""What an installation brings, and what importing costs: each in a fresh interpreter."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import PackageNotFoundError, entry_points, packages_distributions, requires
from pathlib import Path

import gymnasium
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import rlfd_gym
from rlfd_gym import _install

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"rlfd_gym": "rlfd_gym", "envs": "rlfd_gym/envs", "baselines": "rlfd_gym/baselines"}
"""The folders of the source tree that are packages, and where an installation has them."""
PINNED_BY_NUMBA = {"llvmlite"}
WITH_PYTHON = {"setuptools", "pip"}


def run(code: str, cwd: Path, **environment: str) -> str:
    """The output of some Python in a fresh interpreter, started elsewhere."""
    environment = {**os.environ, **environment}
    result = subprocess.run([sys.executable, "-c", code], cwd=cwd, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """A wheel of this tree, built as `pip wheel .` would, of a copy: what an earlier build left is not in it."""
    out, copy = tmp_path_factory.mktemp("wheel"), tmp_path_factory.mktemp("source")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / file, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(out), str(copy)], check=True, capture_output=True)
    (path,) = out.glob("*.whl")
    return path


def test_a_wheel_holds_the_package_and_claims_no_other_name(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    top = {name.split("/")[0] for name in names}
    assert top == {"rlfd_gym", next(name for name in top if name.endswith(".dist-info"))}
    for expected in (
        "py.typed",
        "mdp/tables.py",
        "envs/inventory.py",
        "envs/windy_gridworld.py",
        "baselines/__init__.py",
        "compare/comparison.py",
        "report/decision.css",
        "report/slider.css",
        "report/slider.js",
    ):
        assert f"rlfd_gym/{expected}" in names
    metadata = next(name for name in names if name.endswith("entry_points.txt"))
    assert "[gymnasium.envs]" in zipfile.ZipFile(wheel).read(metadata).decode()


def test_a_wheel_holds_every_module_of_the_tree_and_no_other(wheel):
    expected = {
        f"{inside}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, inside in FOLDERS.items()
        for kind in ("*.py", "*.pyi")
        for path in (ROOT / folder).rglob(kind)
    }
    assert {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith((".py", ".pyi"))} == expected


IMPORTS = """if True:
    import json, rlfd_gym, rlfd_gym.envs, rlfd_gym.baselines, gymnasium as gym
    mdp = gym.make("rlfd_gym/Inventory-v0").unwrapped.mdp
    print(json.dumps([rlfd_gym.__file__, mdp.n_pairs, rlfd_gym.envs.InventoryEnv.__module__]))
"""


def test_the_wheel_and_the_tree_give_the_same_imports_from_anywhere(wheel, tmp_path):
    unpacked = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(unpacked)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    from_tree = json.loads(run(IMPORTS, elsewhere))
    from_wheel = json.loads(run(IMPORTS, elsewhere, PYTHONPATH=str(unpacked)))
    assert from_wheel[0].startswith(str(unpacked))
    assert from_tree[1:] == from_wheel[1:] == [136, "rlfd_gym.envs.inventory"]


def test_the_folders_are_not_importable_by_their_own_names(tmp_path):
    code = "import importlib.util as u; print([n for n in ('envs','baselines','tests','scripts') if u.find_spec(n)])"
    assert run(code, tmp_path).strip() == "[]"


def test_importing_loads_nothing_heavy(tmp_path):
    code = """if True:
        import sys, rlfd_gym
        heavy = "torch imitation stable_baselines3 scipy numba piqp matplotlib PIL pygame joblib".split()
        print([name for name in heavy if name in sys.modules])
        rlfd_gym.TabularMDP, rlfd_gym.solve_exact
        print([name for name in heavy if name in sys.modules and name != "scipy"])
    """
    assert run(code, tmp_path).split("\n")[:2] == ["[]", "[]"]


def test_environments_are_made_after_importing_gymnasium_alone(tmp_path):
    code = 'import gymnasium as gym; print(gym.make("rlfd_gym:rlfd_gym/Inventory-v0").spec.id)'
    assert run(code, tmp_path).strip() == "rlfd_gym/Inventory-v0"


@pytest.mark.skipif(not gymnasium.__version__.startswith("0.29"), reason="Gymnasium 1.x ignores the entry point")
def test_the_entry_point_registers_without_any_import(tmp_path):
    assert [ep for ep in entry_points(group="gymnasium.envs") if ep.value == "rlfd_gym.registration:register_envs"]
    code = """if True:
        import warnings; warnings.simplefilter("error")
        import sys, gymnasium as gym
        before = set(sys.modules)
        print(gym.make("rlfd_gym/WindyGridworld-v0").spec.id)
        print(sorted(n for n in before if n.startswith("rlfd_gym")))
    """
    made, loaded = run(code, tmp_path).strip().split("\n")
    assert made == "rlfd_gym/WindyGridworld-v0"
    # Importing Gymnasium loads these three light modules of ours, nothing more.
    assert loaded == "['rlfd_gym', 'rlfd_gym._moved', 'rlfd_gym.registration']"


def test_registering_twice_is_harmless(recwarn):
    import rlfd_gym

    rlfd_gym.register_envs()
    assert not recwarn.list


def test_the_trainer_without_its_extra_says_what_to_install(tmp_path):
    code = """if True:
        import sys
        sys.modules["imitation"] = None    # as if it were not installed
        import rlfd_gym
        try:
            rlfd_gym.RLfDTrainer
        except ImportError as error:
            print(error)
    """
    said = run(code, tmp_path)
    assert "rlfd_gym.RLfDTrainer needs imitation and stable-baselines3, but imitation cannot be imported" in said
    assert '"torch>=2.11", then pip install --no-deps imitation==1.0.1' in said


def test_an_unknown_name_is_an_attribute_error():
    import rlfd_gym

    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        rlfd_gym.Nonsense  # noqa: B018
    assert {"TabularMDP", "cost_of_env"} <= set(dir(rlfd_gym))


def declared() -> list[Requirement]:
    """The dependencies that pyproject.toml says, with and without extras, for this Python."""
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for lines in table["optional-dependencies"].values() for line in lines]
    found = [Requirement(line) for line in [*table["dependencies"], *extras]]
    return [one for one in found if one.name != table["name"] and (one.marker is None or one.marker.evaluate())]


def test_every_package_that_the_library_imports_is_declared():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module and not node.level}
    top = {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"rlfd_gym"}
    names = {canonicalize_name(requirement.name) for requirement in declared()}
    homes = packages_distributions()
    lacking = {name for name in top if not {canonicalize_name(home) for home in homes.get(name, [name])} & names}
    assert {"torch", "scipy", "PIL"} <= top
    assert lacking <= PINNED_BY_NUMBA


def test_messages_ask_for_what_the_extras_declare():
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra, packages in _install.PACKAGES.items():
        assert list(packages) == [line.split(";")[0] for line in extras[extra]]
    versions = {Requirement(line).name: Requirement(line) for line in extras["imitation"]}
    assert versions["imitation"].specifier.contains(_install.IMITATION.split("==")[1])


def test_no_message_names_an_index_that_may_not_have_the_package():
    files = [path for folder in (*FOLDERS, "scripts") for path in (ROOT / folder).rglob("*.py")]
    assert not [path for path in files if "rlfd-gym[" in path.read_text()]


def test_the_extra_of_the_trainer_leaves_gymnasium_and_stable_baselines_alone():
    """Nothing that it declares, nor what those declare in turn, asks for an upper bound on either."""
    todo, seen, bounds = ["huggingface-sb3", "seals"], set(), []
    while todo:
        name = canonicalize_name(todo.pop())
        try:
            lines = [] if name in seen else requires(name) or []
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed")
        seen.add(name)
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
                if canonicalize_name(requirement.name) in ("gymnasium", "stable-baselines3"):
                    bounds += [one for one in requirement.specifier if one.operator not in (">=", "!=")]
    assert {"seals", "huggingface-hub"} <= seen
    assert not bounds


def test_one_version_is_said_everywhere():
    tomllib = pytest.importorskip("tomllib")  # of Python 3.11
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert rlfd_gym.__version__ == version
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    first = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)[0]
    assert first == "Unreleased" or first.startswith(f"{version}, ")


def pinned() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


@pytest.mark.needs_imitation
def test_constraints_pin_every_package_that_an_installation_brings():
    todo, seen = [(requirement, "") for requirement in declared()], {}
    while todo:
        requirement, extra = todo.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        for wanted in {"", *requirement.extras} - seen.setdefault(name, set()):
            seen[name].add(wanted)
            try:
                todo += [(Requirement(line), wanted) for line in requires(name) or []]
            except PackageNotFoundError:  # of another platform, such as CUDA for torch
                del seen[name]
                break
    assert len(seen) > 80
    assert set(seen) - set(pinned()) <= WITH_PYTHON


def test_the_versions_that_are_pinned_are_those_that_are_asked_for():
    versions = pinned()
    for requirement in declared():
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), str(requirement)
