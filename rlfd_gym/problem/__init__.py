"""The learning problem, its certificate, its convergence theorem and the type of its solution."""

from __future__ import annotations

from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import HullProblem, RLfDProblem
from rlfd_gym.problem.protocol import Point, Problem
from rlfd_gym.problem.solution import Apprentice, History, Solution

__all__ = ["Apprentice", "BlackBoxProblem", "History", "HullProblem", "Point", "Problem", "RLfDProblem", "Solution"]
