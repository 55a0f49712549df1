"""A measured claim, and what the benchmarks share: turn and turn about, and grids."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import gymnasium as gym

from rlfd_gym import RLfDProblem, noisy_expert
from rlfd_gym.envs import TabularEnv, WindyGridworldEnv


@dataclass(frozen=True)
class Line:
    """One measured claim."""

    claim: str
    ours: str
    baseline: str
    ratio: float
    target: str
    met: bool

    def __str__(self) -> str:
        """Return the line as it is printed."""
        verdict = "met" if self.met else "MISSED"
        return f"{self.claim:<58}{self.ours:>16}{self.baseline:>22}{self.ratio:>10.3g}  {self.target} ({verdict})"


def take_turns(first: Callable[[], object], second: Callable[[], object], turns: int) -> tuple[float, float]:
    """Return the best time of each function, in seconds, over alternating turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(turns):
        for run, kept in zip((first, second), times, strict=True):
            start = time.perf_counter()
            run()
            kept.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def expert_of(n_demonstrations: int | None) -> str:
    """Say how the expert of a problem is known."""
    return "expert exact" if n_demonstrations is None else f"{n_demonstrations:,} demonstrations"


def grid(side: int, discount: float = 0.7) -> WindyGridworldEnv:
    """Return a square windy gridworld with the paper's layout."""
    env = unwrapped("rlfd_gym/WindyGridworld-v0", height=side, width=side, discount=discount)
    assert isinstance(env, WindyGridworldEnv)
    return env


def grid_problem(side: int, discount: float = 0.7, alpha: float = 0.005) -> RLfDProblem:
    """Return a grid whose expert errs in 3 of 10 moves.

    Its prior knows a random half of the obstacles and goals.
    """
    env = grid(side, discount)
    return RLfDProblem(env.mdp, noisy_expert(env.mdp, env.cost, 0.3), env.partial_prior(0.5, seed=0), alpha)


def unwrapped(name: str, **kwargs: object) -> TabularEnv:
    """Make one of the library's environments, without wrappers."""
    env = gym.make(name, **kwargs).unwrapped
    assert isinstance(env, TabularEnv)
    return env
