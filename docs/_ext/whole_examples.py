"""Examples as a reader can paste them: with the imports that their modules have anyway.

An example in a docstring is run in its module, where the function itself is known and perhaps NumPy.
Who reads it on a page has neither. This module needs nothing but Python and the package.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import re
from types import ModuleType
from typing import Any

BLOCK = re.compile(r"^```pycon\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def with_imports(page: str, name: str) -> str:
    """Return a page about a public name whose first block of code imports what the blocks use."""
    blocks = BLOCK.findall(page)
    if not blocks:
        return page
    lines = "".join(f">>> {line}\n" for line in imports_of("".join(blocks), name))
    return page.replace("```pycon\n", f"```pycon\n{lines}", 1)


def fenced(example: str) -> str:
    """Return an example as Markdown: words stay words, the rest becomes blocks of code."""
    blocks = example.split("\n\n")
    return "\n\n".join(f"```pycon\n{one}\n```" if one.startswith(">>> ") else one for one in blocks) + "\n"


def imports_of(example: str, name: str) -> list[str]:
    """Return the lines that import what an example of a public name uses and does not import itself."""
    package, _, own = name.rpartition(".")
    home = inspect.getmodule(find(name))
    modules: list[str] = []
    places: dict[str, list[str]] = {}
    for one in sorted(names_not_bound(example)):
        there = getattr(home, one, None)
        if inspect.ismodule(there):
            modules.append(import_of(there, one))
        elif one == own or there is not None:
            place = package if one == own else public_place(one, there, package, home)
            places.setdefault(place, []).append(one)
    return modules + [f"from {place} import {', '.join(names)}" for place, names in sorted(places.items())]


def names_not_bound(example: str) -> set[str]:
    """Return the names that an example uses, but neither imports nor assigns."""
    tree = ast.parse("\n".join(line[4:] for line in example.splitlines() if line.startswith((">>> ", "... "))))
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(vars(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return {node.id for node in names} - bound


def import_of(module: ModuleType, name: str) -> str:
    """Return the line that imports a module under a name."""
    package, _, last = module.__name__.rpartition(".")
    if package and last == name:
        return f"from {package} import {name}"
    return f"import {module.__name__}" + (f" as {name}" if name != module.__name__ else "")


def public_place(name: str, thing: Any, package: str, home: Any) -> str:
    """Return the package that a reader imports a name from."""
    origin = getattr(thing, "__module__", home.__name__)
    if not origin.startswith("rlfd_gym"):
        return str(origin.split("._")[0])
    for place in ("rlfd_gym", package):
        if name in getattr(importlib.import_module(place), "__all__", ()):
            return place
    return str(home.__name__)


def find(name: str) -> Any:
    """Return the thing of a dotted name; a function goes before the module that it is named after."""
    first, *rest = name.split(".")
    thing, path = importlib.import_module(first), first
    for part in rest:
        path = f"{path}.{part}"
        thing = getattr(thing, part) if hasattr(thing, part) else importlib.import_module(path)
    return thing
