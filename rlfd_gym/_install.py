"""What messages say about installing: commands that work anywhere, also where the package itself came from a clone.

They name the packages, as `pyproject.toml` does, and not an extra of this package, which no index may have. imitation's
metadata hold Gymnasium at 0.29 and Stable-Baselines3 at 2.2, though its code runs with the newest of both: it is
installed without its dependencies, after those that are really imported.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

PACKAGES = {
    "cluster": ("dask>=2023.5", "distributed>=2023.5"),
    "data": ("datasets>=2.8", "h5py>=3.8", "jsonpickle>=3.0", "minari>=0.5.3"),
    "logs": ("pandas>=2.0", "pyarrow>=23.0.1"),
    "render": ("pygame>=2.1.3",),
    "report": ("matplotlib>=3.8", "rich>=13"),
    "tasks": ("icu-sepsis>=2.0.1",),
    "trainer": ("huggingface-sb3>=3.0", "seals>=0.2.1", "stable-baselines3>=2.2.1", "torch>=2.11"),
}
"""The packages of each extra that a message may ask for."""
IMITATION = "pip install --no-deps imitation==1.0.1"
NEEDED_BY_TRAINER = ("imitation", "stable_baselines3", "torch", "huggingface_sb3")


def command(extra: str) -> str:
    """Return the command that installs what an extra would.

    >>> command("report")
    'pip install "matplotlib>=3.8" "rich>=13"'
    """
    install = " ".join(["pip install", *(f'"{package}"' for package in PACKAGES[extra])])
    return f"{install}, then {IMITATION}" if extra == "trainer" else install


def require(module: str, what: str, extra: str) -> Any:
    """Import a module, or raise an error that says what needs it and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        top = module.split(".")[0]
        raise ImportError(f"{what} needs {top}: {command(extra)}", name=top) from error


def require_imitation(name: str) -> None:
    """Raise an error that says what to install, if imitation or what it imports is missing."""
    missing = [module for module in NEEDED_BY_TRAINER if not _found(module)]
    if missing:
        raise ImportError(
            f"{name} needs imitation and stable-baselines3, but {', '.join(missing)} cannot be imported: "
            f"{command('trainer')}",
            name=missing[0],
        )


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # sys.modules holds None: the import is blocked
        return False
