"""variant="paper" is the paper's algorithm to the letter: the numbers of rlfd_gym 0.1, to the bit."""

from __future__ import annotations

import math

import pytest
from strategies import black_box, make_problem, small_shop

from rlfd_gym import RLfDProblem, solve_smd
from rlfd_gym.baselines import scale_basis, solve_smd_hull
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import examples

PAPER = {}
