"""variant="paper" is Algorithm 1 to the letter: its numbers are those that it had before there was another variant."""

from __future__ import annotations

import math
from functools import partial

import pytest
from strategies import black_box, make_problem, small_shop

from rlfd_gym import RLfDProblem, solve_smd
from rlfd_gym.baselines import scale_basis, solve_smd_hull
from rlfd_gym.beliefs import Intervals
from rlfd_gym.problem import examples

paper = partial(solve_smd, variant="paper")


def on_intervals():
    problem = make_problem(3)
    belief = Intervals(problem.prior * 0.5 - 0.2, problem.prior * 0.5 + 0.3)
    return paper(RLfDProblem(problem.mdp, problem.expert, belief=belief), 5000, step_size=1e-2)


def on_a_hull():
    basis = scale_basis(examples.inventory_env().features)
    return solve_smd_hull(examples.inventory(alpha=0.1), basis, 5000, seed=5, variant="paper")


def continued():
    problem = examples.gridworld(size=6, alpha=0.1)
    return paper(problem, 2000, initial=paper(problem, 3000, step_size=1e-2, seed=4, n_runs=2))


SOLVES = {
    "l2": lambda: paper(examples.inventory(alpha=0.1), 5000, seed=1, n_runs=2),
    "fixed": lambda: paper(
        examples.gridworld(size=6, alpha=0.1), 5000, step_size=(1e-2, 1e-3), seed=2, record_every=1000
    ),
    "imitation": lambda: paper(examples.inventory(), 5000, step_size=1e-2),
    "l1": lambda: paper(examples.gridworld(size=6, alpha=0.01, regulariser="l1"), 5000, step_size=(1e-2, 1e-3), seed=3),
    "intervals": on_intervals,
    "hull": on_a_hull,
    "epsilon": lambda: paper(make_problem(0, n_states=2, n_actions=2, discount=0.5), epsilon=2.0),
    "black_box": lambda: paper(black_box(small_shop(), alpha=0.1)[0], 500, step_size=2e-2, n_runs=3, seed=6),
    "continued": continued,
}
# Σ i xᵢ of cost, value and occupancy, added without rounding.
NUMBERS = {
    "l2": (-1216.9146718308577, -40.8821537757916, 50.17686220802584),
    "fixed": (-380.04176668756946, -16.806658558410806, 78.89968778232907),
    "imitation": (1025.1632423852604, 51.05349323039619, 72.77084926666926),
    "l1": (-175.63493595384665, -44.36500094914252, 78.59010201170375),
    "intervals": (11.223907432016746, -0.42363708586719007, 6.871317957961108),
    "hull": (-1183.7036177648351, -57.694387511795085, 49.14053061105664),
    "epsilon": (-1.653567767856149, 0.13425920941831743, 2.4403776790022884),
    "black_box": (-37.16332321101978, 2.3055432422557076, 8.499752078617252),
    "continued": (-404.6392038170078, 130.84958252305483, 69.21125422648102),
}


@pytest.mark.parametrize("name", SOLVES)
def test_the_papers_variant_gives_the_same_numbers_as_ever(name):
    solution = SOLVES[name]()
    vectors = (solution.cost, solution.value, solution.occupancy)
    found = [math.fsum((i + 1) * float(x) for i, x in enumerate(vector)) for vector in vectors]
    # To the bit where they were recorded; the exp of another machine may round otherwise.
    assert found == pytest.approx(NUMBERS[name], rel=1e-12)
