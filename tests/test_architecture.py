"""The packages depend on each other in one direction, keep their private names, and are found under their old paths."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rlfd_gym._moved import MOVED

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = {"rlfd_gym": "rlfd_gym", "rlfd_gym.envs": "envs", "rlfd_gym.baselines": "baselines"}
BASE = {"_checks", "_files", "_file_sets", "_compiled", "_rows", "_errors", "_install", "_programs", "_warnings"}
"""Helpers of the whole library, which know nothing of it."""
CHAIN = ("mdp", "experts", "beliefs", "problem", "solvers", "alpha", "decision", "report")
"""Each may import those before it."""
UP_TO = {name: BASE | set(CHAIN[: CHAIN.index(name) + 1]) for name in CHAIN}

MAY_IMPORT = {
    **{name: set() for name in sorted(BASE)},
    "_file_sets": {"_files"},
    "_rows": {"_compiled"},
    "_moved": set(),
    "registration": set(),  # names its environments in strings
    **UP_TO,
    "report": UP_TO["report"] | {"envs"},  # draws the environments
    "envs": {"_checks", "_errors", "_install", "_warnings", "mdp", "experts", "beliefs", "envs"},
    "trainer": UP_TO["report"] | {"trainer"},
    "baselines": UP_TO["solvers"] | {"baselines"},
    "compare": UP_TO["report"] | {"baselines", "envs", "compare"},
    "command": UP_TO["report"] | {"compare", "registration", "command"},
    "__main__": {"command"},
}
"""What each package or module below `rlfd_gym` may import of the others."""

EXCEPTIONS = {
    ("rlfd_gym.mdp.tables", "rlfd_gym.experts.logs"): "TabularMDP.from_transitions reads a log, when it is called",
    ("rlfd_gym.problem.examples", "rlfd_gym.envs"): "the paper's instances are environments, made when called",
    ("rlfd_gym.baselines", "rlfd_gym.trainer.logging"): "the quiet logger of what imitation trains",
}
"""(who imports, what it imports): why that is right all the same. Both stand for everything below them."""

FREE_OF_LEARNING = ("mdp", "experts", "beliefs", "problem", "solvers")
LEARNING = {"torch", "imitation", "stable_baselines3", "gymnasium"}


class Import(NamedTuple):
    """One import statement's view of one module or name."""

    module: str
    line: int
    in_function: bool


def source_files() -> dict[str, Path]:
    """Every module of the library by its dotted name."""
    files = {}
    for package, folder in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            files[".".join([package, *(part for part in parts if part != "__init__")])] = path
    return files


FILES = source_files()
SCRIPTS = sorted((ROOT / "scripts").rglob("*.py"))


def imports_of(path: Path, name: str) -> Iterator[Import]:
    """All that a file imports at run time, also inside functions: modules, and names as module.name."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]

    def walk(node: ast.AST, in_function: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                for other in child.orelse:
                    yield from walk(other, in_function)
                continue
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, in_function) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                parents = package.split(".")[: len(package.split(".")) - child.level + 1] if child.level else []
                module = ".".join([*parents, *([child.module] if child.module else [])])
                yield from (Import(f"{module}.{alias.name}", child.lineno, in_function) for alias in child.names)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from walk(child, in_function or inside)

    return walk(ast.parse(path.read_text()), False)


def part_of(module: str) -> str:
    """The package or module right below `rlfd_gym`; a name that the root has from elsewhere counts as the root."""
    name = module.split(".")[1] if "." in module else ""
    below = {other.split(".")[1] for other in FILES if "." in other}
    return name if name in below else ""


def starts(module: str, prefix: str) -> bool:
    return f"{module}.".startswith(f"{prefix}.")


def excepted(name: str, imported: Import) -> bool:
    return any(
        starts(name, who) and starts(imported.module, what) and (imported.in_function or what.endswith(".logging"))
        for who, what in EXCEPTIONS
    )


def test_imports_are_found_in_functions_and_classes_and_not_under_type_checking(tmp_path):
    path = tmp_path / "sample.py"
    path.write_text(
        "import a.b\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from rlfd_gym import hidden\n"
        "class C:\n    def f(self):\n        from rlfd_gym.mdp import tables, _sweeps as s\n        return s\n"
        "from . import near\nfrom ..other import far\n"
    )
    found = [(imported.module, imported.in_function) for imported in imports_of(path, "rlfd_gym.x.sample")]
    assert found == [
        ("a.b", False),
        ("typing.TYPE_CHECKING", False),
        ("rlfd_gym.mdp.tables", True),
        ("rlfd_gym.mdp._sweeps", True),
        ("rlfd_gym.x.near", False),
        ("rlfd_gym.other.far", False),
    ]


@pytest.mark.parametrize(
    ("used", "home"),
    [
        ("rlfd_gym._checks.number", "rlfd_gym"),
        ("rlfd_gym.mdp._sweeps", "rlfd_gym.mdp"),
        ("rlfd_gym.solvers._newton.normal_diagonal", "rlfd_gym.solvers"),
        ("rlfd_gym.alpha.path._solve", "rlfd_gym.alpha"),
        ("rlfd_gym.alpha.path.solve_at", None),
        ("rlfd_gym.__version__", None),
        ("numpy._core", None),
    ],
)
def test_a_private_name_belongs_to_the_package_of_its_module(used, home):
    assert private_home(used) == home


def test_every_part_of_the_library_has_a_place_in_the_order():
    assert {part_of(name) for name in FILES} - {""} == set(MAY_IMPORT)


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_imports_go_one_way(part):
    wrong = []
    for name, path in FILES.items():
        if part_of(name) != part:
            continue
        for imported in imports_of(path, name):
            if not starts(imported.module, "rlfd_gym") or excepted(name, imported):
                continue
            if part_of(imported.module) not in MAY_IMPORT[part] | {part, ""}:
                wrong.append(f"{path.relative_to(ROOT)}:{imported.line} imports {imported.module}")
    assert not wrong, "\n".join(wrong)


def test_no_part_takes_public_names_from_the_root():
    # `from rlfd_gym import solve_exact` inside the library would go round the order.
    wrong = []
    for name, path in FILES.items():
        for imported in imports_of(path, name):
            from_root = starts(imported.module, "rlfd_gym") and part_of(imported.module) == ""
            public = imported.module.rpartition(".")[2]
            if from_root and public not in ("rlfd_gym", "require_imitation", "__version__"):
                wrong.append(f"{path.relative_to(ROOT)}:{imported.line} imports {imported.module}")
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_needed_or_its_module_is_not_there_yet():
    for who, what in EXCEPTIONS:
        if what not in FILES:
            continue
        used = [
            imported
            for name, path in FILES.items()
            if starts(name, who)
            for imported in imports_of(path, name)
            if starts(imported.module, what)
        ]
        assert used, f"nothing below {who} imports {what}: the exception can go"


@pytest.mark.parametrize("part", FREE_OF_LEARNING)
def test_the_core_knows_neither_torch_nor_imitation_nor_gymnasium(part):
    wrong = [
        f"{path.relative_to(ROOT)}:{imported.line} imports {imported.module}"
        for name, path in FILES.items()
        if part_of(name) == part
        for imported in imports_of(path, name)
        if imported.module.split(".")[0] in LEARNING
    ]
    assert not wrong, "\n".join(wrong)


def private_home(module: str) -> str | None:
    """The package that a private module or name of the library belongs to; None where nothing is private."""
    parts = module.split(".")
    if parts[0] != "rlfd_gym":
        return None
    for position, part in enumerate(parts):
        if part.startswith("_") and not part.startswith("__"):
            if position == 1:
                return "rlfd_gym"  # _checks, _files, ...: for the whole library
            owner = ".".join(parts[:position])
            return owner if FILES.get(owner, Path()).name == "__init__.py" else owner.rpartition(".")[0]
    return None


def library_names(path: Path, name: str) -> Iterator[tuple[str, int]]:
    """What a file names of the library: what it imports, and dotted attributes of the modules that it imports."""
    known = {}
    for imported in imports_of(path, name):
        yield imported.module, imported.line
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            known |= {alias.asname or alias.name.split(".")[0]: alias.name for alias in node.names if alias.asname}
            if any(starts(alias.name, "rlfd_gym") and not alias.asname for alias in node.names):
                known["rlfd_gym"] = "rlfd_gym"
        elif isinstance(node, ast.ImportFrom) and node.module and starts(node.module, "rlfd_gym"):
            modules = {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            known |= {local: module for local, module in modules.items() if module in FILES}
    for node in ast.walk(ast.parse(path.read_text())):
        attributes, inner = [], node
        while isinstance(inner, ast.Attribute):
            attributes.append(inner.attr)
            inner = inner.value
        if attributes and isinstance(inner, ast.Name) and inner.id in known:
            yield ".".join([known[inner.id], *reversed(attributes)]), node.lineno


def strangers(path: Path, name: str) -> list[str]:
    """Private names of packages that the file is not in."""
    return [
        f"{path.relative_to(ROOT)}:{line} uses {used}"
        for used, line in library_names(path, name)
        if (home := private_home(used)) is not None and not starts(name, home)
    ]


@pytest.mark.parametrize("part", MAY_IMPORT)
def test_private_names_stay_in_their_package(part):
    wrong = [line for name, path in FILES.items() if part_of(name) == part for line in strangers(path, name)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_use_no_private_name_and_leave_the_search_path_alone(path):
    wrong = strangers(path, f"scripts.{path.stem}")
    wrong += [
        f"{path.relative_to(ROOT)}:{node.lineno} edits sys.path"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "path" and ast.unparse(node.value) == "sys"
    ]
    assert not wrong, "\n".join(wrong)


OLD_NAMES = {
    "adapters": "cost_of_env model_of_env",
    "basis": "check_basis scale_basis",
    "costs": "CostScale",
    "demonstrations": "Demonstrations occupancy_from_demonstrations read_demonstrations",
    "exact": "project_prior solve_exact",
    "experts": "Walk demonstrate noisy_expert",
    "first_order": "interior_point newton",
    "forward": "Plan",
    "hull": "HullProblem",
    "logs": "Log LogReport read_costs read_log",
    "mdp": "TabularMDP",
    "occupancy": "check_policy occupancy_of policy_of value_of",
    "oracles": "BlackBoxProblem SampledExpert TransitionOracle",
    "plots": "draw_cost draw_orders draw_policy draw_world new_figure plot_path png save",
    "policies": "TablePolicy load_policy",
    "problem": "RLfDProblem",
    "registration": "register_envs",
    "rewards": "TableRewardNet load_reward",
    "selection": "AlphaChoice AlphaPath PathPoint alpha_path occupancy_noise parse_rule select_alpha",
    "smd": "solve_smd",
    "solution": "History Solution",
    "sparse": "pinning_alpha share_at_prior solve_reweighted",
    "trainer": "RLfDTrainer",
}
"""The public names of each module of version 0.1."""
NEED_IMITATION = ("policies", "rewards", "trainer")
OLD_MODULES = [
    pytest.param(name, marks=pytest.mark.needs_imitation if name in NEED_IMITATION else ()) for name in OLD_NAMES
]


@pytest.mark.parametrize("name", OLD_MODULES)
def test_names_that_users_had_are_found_under_their_old_module(name):
    module = importlib.import_module(f"rlfd_gym.{name}")
    missing = [public for public in OLD_NAMES[name].split() if not hasattr(module, public)]
    assert not missing


@pytest.mark.parametrize("name", [param for param in OLD_MODULES if param.values[0] in MOVED])
def test_an_old_path_gives_the_very_module_that_has_moved(name):
    import rlfd_gym

    old, new = (importlib.import_module(f"rlfd_gym.{path}") for path in (name, MOVED[name]))
    assert old is new
    assert getattr(rlfd_gym, name) is new
    assert new.__spec__.name == f"rlfd_gym.{MOVED[name]}"
    assert new.__name__ == f"rlfd_gym.{MOVED[name]}"


def test_every_moved_module_is_among_the_old_ones():
    assert set(MOVED) <= set(OLD_NAMES)
