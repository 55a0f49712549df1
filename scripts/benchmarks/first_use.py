"""Benchmarks of the first solution in a fresh process, before anything is compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial

from benchmarks.lines import Line, take_turns

EXACT = "import rlfd_gym; from rlfd_gym.problem import examples; print(rlfd_gym.solve_exact(examples.{}()))"
TRAINER = """
import gymnasium as gym
import rlfd_gym
env = gym.make("rlfd_gym/Inventory-v0").unwrapped
shown = rlfd_gym.demonstrate(env.mdp, env.mdp.optimal(env.cost).policy, 50, 30, seed=0)
trainer = rlfd_gym.RLfDTrainer(shown, env, prior=env.cost_for(4, 2, 14), alpha=0.1)
trainer.train()
"""
PLAN = """
import rlfd_gym
from rlfd_gym.problem import examples
env = examples.gridworld_env(60)
env.mdp.optimal(env.cost)
"""
DESCENT = """
import rlfd_gym
from rlfd_gym.problem import examples
rlfd_gym.solve_smd(examples.inventory(), 1000, seed=0, gap=1.0)
"""
# What is loaded in any case: the libraries that the library stands on.
SMALL = "import gymnasium, scipy.sparse.linalg, scipy.linalg, scipy.special, piqp"
LARGE = "import gymnasium, imitation.algorithms.base, imitation.policies.serialize, imitation.rewards.reward_nets"


def first_use() -> Iterator[Line]:
    """Time the first solution with no compiled code in the cache, against loading what it stands on.

    The last lines need compiled code: to plan on large tables, and to make steps of Algorithm 1. They are timed against
    the same with a full cache.
    """
    uses = (
        ("exact solution of the inventory", EXACT.format("inventory"), SMALL, 2.0),
        ("exact solution of the windy grid", EXACT.format("gridworld"), SMALL, 2.0),
        ("trainer on the inventory", TRAINER, LARGE, 1.5),
    )
    for name, code, libraries, most in uses:
        ours, bare = take_turns(partial(_fresh, code), partial(_fresh, libraries), turns=3)
        yield _line(f"first {name} in a fresh process", ours, f"its imports {bare:.2f} s", bare, most)
    for name, code, most in (("plan on 14,400 pairs", PLAN, 5.0), ("steps of Algorithm 1", DESCENT, 5.0)):
        with tempfile.TemporaryDirectory() as full:
            _fresh(code, full)
            ours, warm = take_turns(partial(_fresh, code), partial(_fresh, code, full), turns=3)
        yield _line(f"first {name} in a fresh process", ours, f"warm cache {warm:.2f} s", warm, most)


def _line(claim: str, ours: float, baseline: str, theirs: float, most: float) -> Line:
    return Line(claim, f"{ours:.2f} s", baseline, ours / theirs, f"at most {most:g}", ours / theirs <= most)


def _fresh(code: str, cache: str | None = None) -> None:
    """Run code in a process of its own, with an empty cache of compiled code unless one is given."""
    with tempfile.TemporaryDirectory() as empty:
        place = os.environ | {"NUMBA_CACHE_DIR": cache or empty}
        subprocess.run([sys.executable, "-c", code], env=place, check=True, stdout=subprocess.DEVNULL)
