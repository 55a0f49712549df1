"""Old import paths: modules that have moved are still found under their names in version 0.1.

An old path and its new one, such as `rlfd_gym.selection` and `rlfd_gym.alpha`, give the same
module object, so classes, pickles and patches agree. Packages that took over the name of a module
(`rlfd_gym.mdp`, `.problem`, `.trainer`, `.experts`) need no entry here, because they export what
the module exported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "adapters": "mdp.adapters",
    "basis": "beliefs.basis",
    "costs": "experts.scale",
    "demonstrations": "experts.demonstrations",
    "exact": "solvers",
    "first_order": "solvers.matrix_free",
    "forward": "mdp.forward",
    "hull": "problem.problem",
    "logs": "experts.logs",
    "occupancy": "mdp.occupancy",
    "oracles": "problem.black_box",
    "plots": "report.plots",
    "policies": "trainer.policy",
    "rewards": "trainer.reward",
    "selection": "alpha",
    "smd": "solvers.smd",
    "solution": "problem.solution",
    "sparse": "solvers.reweighted",
}
"""The new path of each module of version 0.1."""


class _Finder(MetaPathFinder, Loader):
    """A finder that gives, for the old name of a module, the module imported under its new one."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        return ModuleSpec(fullname, self) if package == "rlfd_gym" and name in MOVED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module("rlfd_gym." + MOVED[spec.name.partition(".")[2]])
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just replaced the module's spec by one for the old name: undo that.
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Make the old names importable; calling it again does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
