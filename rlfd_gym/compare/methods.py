"""The methods of the comparison, each of them one entry in `METHODS`.

A method is a function from a `Lesson` to an `Apprentice`. A lesson is all that a method may know:
the tables, what the expert showed (its exact occupancy or demonstrations), the prior with its
weight α, the basis and the belief. It does not contain the true cost. The reference rows of the tables are
entries too, but they are functions of the task's `Instance`, which includes the true cost and the
exact expert.

**Settings.** One rule for all, without the truth: a method is run with the default of its authors;
where they name none, with this library's; and where only data can tell, with the value whose
policy fits held-out demonstrations best, by the method's own loss. A weight α of a prior is not
chosen at all: the method is run for each α of the design, and has a row for each. `Method.setting`
says which applies, and `python scripts/compare.py --list` prints it. The solvers that draw pairs
(`rlfd-smd`, `smd-hull`) take as many steps as the design says, and their duality gaps say what these were
worth. No method is cut short otherwise.

**The expert** is estimated alike for all, as the occupancy of its estimated policy
(`rlfd_gym.experts.demonstrations`). Methods that know a prior or a belief take it to be optimal for
that where it was not seen, and the others to act uniformly there.

**Seeds.** A method is run once if nothing about it is random: it draws nothing itself, it is shown
exact occupancies, and it uses no prior that the task draws. Otherwise every row has five seeds at
least, and four times as many where the method is quick: an interval over five seeds covers less
often than it says where the numbers are skewed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from rlfd_gym._checks import FloatArray
from rlfd_gym._errors import SolverError
from rlfd_gym.beliefs import Belief
from rlfd_gym.compare import rivals
from rlfd_gym.experts.demonstrations import occupancy_from_demonstrations
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Apprentice, Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.smd.solve import solve_smd


@dataclass(frozen=True, eq=False, kw_only=True)
class Lesson:
    """What a method is given.

    Attributes:
        mdp: the tables.
        shown: the expert's exact occupancy, or demonstrations.
        prior: the prior cost, over pairs.
        alpha: the weight of the prior; 0 for methods that take none.
        basis: C, of shape (n_pairs, K), for methods that look for the cost in its hull.
        belief: what is believed about the cost, if the task says so.
        iterations: steps of each run of the stochastic solvers.
        runs: runs that a stochastic solver averages over.
        seed: the seed of everything that a method draws.
        estimator: how the expert is estimated from demonstrations, see
            `rlfd_gym.experts.demonstrations`.

    Example:
        >>> from rlfd_gym.compare import TASKS
        >>> made = TASKS["inventory"].make(0)
        >>> told = {"mdp": made.mdp, "shown": made.expert, "prior": made.prior, "basis": made.basis}
        >>> seed = np.random.SeedSequence(0)
        >>> lesson = Lesson(**told, alpha=0.1, iterations=1000, runs=1, seed=seed)
        >>> METHODS["cloning"].solve(lesson).method
        'cloning'
    """

    mdp: TabularMDP
    shown: Any = field(repr=False)
    prior: FloatArray = field(repr=False)
    alpha: float
    basis: FloatArray = field(repr=False)
    iterations: int
    runs: int
    seed: np.random.SeedSequence = field(repr=False)
    belief: Belief | None = field(default=None, repr=False)
    estimator: str = "policy"

    @property
    def occupancy(self) -> FloatArray:
        """The expert's occupancy, as far as the lesson shows it, for methods that know no prior."""
        return self.occupancy_with(None)

    @property
    def problem(self) -> RLfDProblem:
        """The problem RLfD_α of this lesson; without the prior if α = 0."""
        prior = self.prior if self.alpha else None
        return RLfDProblem(self.mdp, self.occupancy_with(prior), prior, self.alpha)

    def occupancy_with(self, prior: FloatArray | None) -> FloatArray:
        """Return the expert's occupancy for methods that know a prior."""
        known = prior if self.estimator == "policy" else None
        return occupancy_from_demonstrations(self.shown, self.mdp, estimator=self.estimator, prior=known)


@dataclass(frozen=True)
class Method:
    """A method of the comparison, as an entry of `METHODS`.

    Attributes:
        name: the method's name on the command line and in the files.
        title: the method's name in tables and pictures.
        solve: a function from a `Lesson` to what was learned; for a reference row, from the
            task's `Instance`.
        takes_alpha: whether the method is run once for each α; such methods use the prior.
        uses_prior: whether another prior gives another result.
        uses_basis: whether the method looks for the cost in the hull of the task's basis.
        uses_belief: whether the method is told the task's belief.
        stochastic: whether the method draws random numbers.
        reference: whether this is a row to compare with, which does not depend on demonstrations
            and is always included.
        default: whether the method is run when no methods are named.
        most_seeds: the largest number of seeds to run the method for, if it is slow; at least five.
        quick: whether a solve takes milliseconds on the default tasks: the method is then run for more
            seeds, see `Design`.
        needs_imitation: whether the method needs imitation; if that is not installed, the default
            leaves the method out.
        reading: the reading that the method is known by, "occupancy" (the mixture) or "mode" (the
            most frequent action of each state). Both are measured.
        explanation: what the method does, in one line.
        setting: its settings, and where they come from; empty if it has none.

    Example:
        >>> METHODS["lpal"].title, METHODS["lpal"].uses_basis
        ('LPAL', True)
    """

    name: str
    title: str
    solve: Callable[[Any], Apprentice] = field(repr=False)
    takes_alpha: bool = False
    uses_prior: bool = False
    uses_basis: bool = False
    uses_belief: bool = False
    stochastic: bool = False
    reference: bool = False
    default: bool = True
    most_seeds: int | None = None
    quick: bool = False
    needs_imitation: bool = False
    reading: str = "occupancy"
    explanation: str = ""
    setting: str = ""

    def __post_init__(self) -> None:
        """Set `uses_prior` for methods that take α."""
        object.__setattr__(self, "uses_prior", self.uses_prior or self.takes_alpha)

    @property
    def chosen(self) -> bool:
        """Whether the method is run on this machine when no methods are named."""
        return self.default and not (self.needs_imitation and find_spec("imitation") is None)


def _robust(lesson: Lesson) -> Solution:
    """Maximise the guarantee over the task's belief."""
    if lesson.belief is None:
        raise SolverError("the task states no belief about the cost")
    expert = lesson.occupancy_with(lesson.belief.guess)
    return solve_exact(RLfDProblem(lesson.mdp, expert, belief=lesson.belief))


def _smd(lesson: Lesson) -> Solution:
    return solve_smd(lesson.problem, n_iterations=lesson.iterations, n_runs=lesson.runs, seed=lesson.seed)


def _planned(mdp: TabularMDP, cost: FloatArray) -> Solution:
    plan = mdp.optimal(cost)
    return Solution(policy=plan.policy, occupancy=plan.occupancy, cost=cost, method="planning")


def _acting(mdp: TabularMDP, policy: FloatArray) -> Apprentice:
    return Apprentice(policy=policy, occupancy=mdp.occupancy_of(policy), method="fixed policy")


def _reference(name: str, title: str, explanation: str, solve: Callable[[Any], Apprentice], **rest: Any) -> Method:
    return Method(name, title, solve, reference=True, explanation=explanation, **rest)


ALPHA = "a row for each α of the design"
STEPS = "as many steps as the design says"
HULL_STEPS = f"1/{rivals.HULL_STEP} of the design's steps, each of which takes longer"
OWN = "this library's default, because its authors name none"

METHODS = {
    method.name: method
    for method in (
        _reference(
            "optimum", "optimum", "plans with the true cost",
            lambda task: _planned(task.mdp, task.truth),
        ),
        _reference(
            "expert", "expert", "the exact expert's policy",
            lambda task: _acting(task.mdp, task.mdp.policy_of(task.expert)),
        ),
        _reference(
            "prior", "prior alone", "plans with the prior, and ignores the expert",
            lambda task: _planned(task.mdp, task.prior), uses_prior=True, quick=True,
        ),
        _reference(
            "random", "random", "takes all actions alike",
            lambda task: _acting(task.mdp, task.mdp.uniform_policy()),
        ),
        Method(
            "rlfd-exact", "RLfD exact", lambda lesson: solve_exact(lesson.problem), takes_alpha=True, quick=True,
            explanation="a cost near the prior that explains the expert, solved with a certificate", setting=ALPHA,
        ),
        Method(
            "rlfd-ranges", "RLfD price ranges", _robust, uses_belief=True, quick=True,
            explanation="the largest guaranteed improvement for every price in given ranges",
            setting="the ranges are the task's belief",
        ),
        Method(
            "rlfd-smd", "RLfD SMD", _smd, takes_alpha=True, stochastic=True,
            explanation="the same problem as RLfD exact, by stochastic mirror descent", setting=f"{ALPHA}; {STEPS}",
        ),
        Method(
            "irl-io", "IRL-IO", rivals.projected, uses_prior=True,
            explanation="the cost nearest to the prior for which the expert is optimal; plans with it, all optimal "
            "actions alike",
        ),
        Method(
            "mixture", "mixture", rivals.baseline("mixture", "prior"), uses_prior=True, quick=True,
            explanation="half of the expert's occupancy, half of the prior's plan",
            setting="half and half: nothing in the data says more",
        ),
        Method(
            "spibb", "SPIBB", rivals.baseline("spibb", "prior"), uses_prior=True, quick=True,
            explanation="plans with the prior, but keeps the expert's probabilities of what it rarely did",
            setting="N∧ = 10 visits, in the authors' range of 5 to 100",
        ),
        Method(
            "broil", "BROIL", rivals.baseline("broil", "prior", "seed"), uses_prior=True, stochastic=True,
            explanation="trades the expected cost off against its risk, for costs drawn around the prior",
            setting=f"100 samples of spread 0.5, the worst 5%, half the weight on them: {OWN}",
        ),
        Method(
            "drex", "D-REX", rivals.baseline("drex", "prior", "alpha"), takes_alpha=True,
            explanation="a cost near the prior that ranks the expert before itself with more noise; plans with it",
            setting=f"{ALPHA}; noise levels of the authors' Atari experiments",
        ),
        Method(
            "max-margin-prior", "max. margin near prior", rivals.margin_near_prior, takes_alpha=True,
            explanation="a cost near the prior under which the expert wins by a margin; plans with it",
            setting=f"{ALPHA}, λ = 2α",
        ),
        Method(
            "smd-hull", "SMD-H", rivals.smd_hull, uses_basis=True, stochastic=True,
            explanation="LPAL's game over the hull of the basis, by stochastic mirror descent", setting=HULL_STEPS,
        ),
        Method(
            "smd-hull-prior", "SMD-H", rivals.smd_hull, takes_alpha=True, uses_basis=True, stochastic=True,
            default=False, explanation="the same, with the prior as a penalty", setting=f"{ALPHA}; {HULL_STEPS}",
        ),
        Method(
            "lpal", "LPAL", rivals.baseline("lpal", "basis"), uses_basis=True, quick=True,
            explanation="the best policy against the worst cost in the hull of the basis, by linear programming",
        ),
        Method(
            "mwal", "MWAL", rivals.baseline("mwal", "basis"), uses_basis=True,
            explanation="LPAL's game, by multiplicative weights", setting=f"500 rounds: {OWN}",
        ),
        Method(
            "projection", "projection", rivals.baseline("projection", "basis"), uses_basis=True,
            explanation="matches the expert's features, as Abbeel and Ng do",
            setting=f"up to 1e-3, in 1000 rounds at most: {OWN}",
        ),
        Method(
            "max-margin", "max. margin", rivals.margin, uses_basis=True,
            explanation="a cost in the span of the basis under which the expert wins by a margin; plans with it",
            setting="λ of least loss on held-out demonstrations, from 0.001, 0.01, 0.1, 1; a single one, or the exact "
            "occupancy, judges itself",
        ),
        Method(
            "lp-irl", "LP-IRL", rivals.baseline("lp_irl"), quick=True, reading="mode",
            explanation="a state cost that sets the expert's most frequent actions apart, which it then takes",
            setting=f"penalty 0.1: {OWN}",
        ),
        Method(
            "mce-irl", "MCE-IRL", rivals.entropy, uses_basis=True,
            explanation="the policy of largest causal entropy that has the expert's features",
            setting="no regularisation to speak of (1e-8), as in the paper; solved to its end",
        ),
        Method(
            "bayesian-irl", "Bayesian IRL", rivals.bayesian, uses_prior=True,
            explanation="the most likely cost of a more or less rational expert, near the prior; plans with it",
            setting=f"rationality and spread of the prior by evidence; exact: as {rivals.EXACT} trajectories",
        ),
        Method(
            "cloning", "cloning", rivals.baseline("behavioural_cloning"), quick=True,
            explanation="copies the expert's policy",
        ),
        Method(
            "majority", "majority action", rivals.baseline("majority"), quick=True, reading="mode",
            explanation="takes the expert's most frequent action",
        ),
        Method(
            "bc", "BC network", rivals.network, stochastic=True, needs_imitation=True, default=False,
            explanation="behavioural cloning by a network, of imitation", setting=f"500 batches: {OWN}",
        ),
        Method(
            "gail", "GAIL", rivals.adversarial, stochastic=True, needs_imitation=True, most_seeds=5, default=False,
            explanation="generative adversarial imitation learning, of imitation",
            setting=f"{STEPS}, at most 50000: {OWN}",
        ),
    )
}  # fmt: skip
"""The methods by name."""
