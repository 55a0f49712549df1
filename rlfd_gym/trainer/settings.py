"""The options of a trainer: each is listed, checked and saved here, and nowhere else.

`RLfDTrainer` says what they mean. Some defaults depend on what the trainer is given: solver and
estimator on whether the environment has tables, α on whether there is a prior. Such an option is
`None` until `completed` fills it in.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from rlfd_gym import _checks
from rlfd_gym.alpha import parse_rule
from rlfd_gym.beliefs import Belief
from rlfd_gym.beliefs.near_prior import DEFAULT_ALPHA, NORMS
from rlfd_gym.experts.demonstrations import DISCOUNTINGS, ESTIMATORS, Demonstrations
from rlfd_gym.mdp.reading import READINGS
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.smd.solve import LARGEST_STEP

SOLVERS = ("exact", "smd", "sampled")

Prior = ArrayLike | Belief | Callable[[int, int], float]
Solver = Callable[[Any], Solution]
"""A function from a problem, `RLfDProblem` or without tables `BlackBoxProblem`, to its solution."""


@dataclass(frozen=True)
class Settings:
    """The options of `RLfDTrainer`, under the names of its constructor, which documents them.

    Attributes:
        alpha: a number, the name of a rule, or `None` for the default.
        regulariser: one of `NORMS`.
        discount: `None` for the environment's.
        solver: one of `SOLVERS`, a function, or `None` for the default.
        step_size: of Algorithm 1; `None` for the theorem's.
        epsilon: the target accuracy of Algorithm 1, or the gap to be certified; or `None`.
        n_runs: independent runs of Algorithm 1.
        n_jobs: how many of them at a time.
        policy_kind: one of `READINGS`.
        discounting: one of `DISCOUNTINGS`.
        estimator: one of `ESTIMATORS`, or `None` for the default.
        allow_variable_horizon: whether trajectories may differ in length.
    """

    alpha: float | str | None = None
    regulariser: str = "l2"
    discount: float | None = None
    solver: str | Solver | None = None
    step_size: float | tuple[float, float] | None = None
    epsilon: float | None = None
    n_runs: int = 1
    n_jobs: int = 1
    policy_kind: str = "occupancy"
    discounting: str = "trajectory"
    estimator: str | None = None
    allow_variable_horizon: bool = True

    def __post_init__(self) -> None:
        """Check every option by itself."""
        if self.solver is not None and not callable(self.solver):
            _checks.one_of("solver", self.solver, SOLVERS)
        _checks.one_of("policy_kind", self.policy_kind, READINGS)
        _checks.one_of("discounting", self.discounting, DISCOUNTINGS)
        if self.estimator is not None:
            _checks.one_of("estimator", self.estimator, ESTIMATORS)
        _checks.one_of("regulariser", self.regulariser, NORMS)
        object.__setattr__(self, "n_runs", _checks.integer("n_runs", self.n_runs, 1, _checks.MOST_TIMES))
        if _checks.integer("n_jobs", self.n_jobs, -(2**31)) == 0:
            raise ValueError("n_jobs must not be 0; -1 means all cores")
        _checks.flag("allow_variable_horizon", self.allow_variable_horizon)
        steps: Any = self.step_size
        if isinstance(steps, list):  # as JSON has it
            object.__setattr__(self, "step_size", tuple(steps))
        if isinstance(steps, (list, tuple)) and len(steps) != 2:
            raise ValueError(f"step_size must be a number or a pair, got {steps!r}")
        for eta in steps if isinstance(steps, (list, tuple)) else () if steps is None else (steps,):
            _checks.number("step_size", eta, 0.0)
        if steps is not None and (steps[0] if isinstance(steps, (list, tuple)) else steps) > LARGEST_STEP:
            raise ValueError(f"step_size must be at most {LARGEST_STEP:g} for cost and value, got {steps!r}")
        if self.epsilon is not None:
            _checks.number("epsilon", self.epsilon, 0.0, open_ends=True)
        if self.alpha is not None and not isinstance(self.alpha, str):
            object.__setattr__(self, "alpha", _checks.number("alpha", self.alpha, 0.0))

    def completed(self, *, tables: bool, prior: bool, belief: Belief | None, discount: float) -> Settings:
        """Return the settings with their defaults for an environment, a prior or a belief, or none.

        A belief has its own α and norm, so they may not be given again.
        """
        if belief is not None and (self.alpha is not None or self.regulariser != "l2"):
            raise ValueError(
                f"alpha and regulariser belong to the belief that prior is, {type(belief).__name__}; got alpha="
                f"{self.alpha!r} and regulariser={self.regulariser!r}"
            )
        if belief is not None and not tables:
            raise ValueError(
                f"prior is the belief {type(belief).__name__}, which needs transition tables; env has none"
            )
        of_smd = self.step_size is not None or self.n_runs != 1  # whoever asks for these asks for Algorithm 1
        without = "smd" if of_smd else "sampled"
        solver = ("exact" if tables else without) if self.solver is None else self.solver
        if tables and solver == "sampled":
            raise ValueError(
                'solver="sampled" learns from draws, but env has transition tables, which "exact" solves; to learn '
                "from draws all the same, pass rlfd_gym.simulate(env)"
            )
        if not tables and (solver == "exact" or self.policy_kind == "greedy"):
            raise ValueError('solver="exact" and policy_kind="greedy" need transition tables, which env does not have')
        estimator = ("policy" if tables else "count") if self.estimator is None else self.estimator
        if not tables and estimator == "policy":
            raise ValueError('estimator="policy" needs transition tables, which env does not have: use "count"')
        if belief is not None and solver == "smd":
            belief.second_moment("corrected")  # raises for a belief that Algorithm 1 does not handle
        alpha = self.alpha if belief is None else belief.alpha
        if alpha is None:
            if prior and self.regulariser == "l1":
                raise ValueError('alpha has no default with regulariser="l1": see rlfd_gym.pinning_alpha for its range')
            alpha = DEFAULT_ALPHA if prior else 0.0
        if not prior and belief is None and alpha != 0:
            raise ValueError(f"prior is None, so alpha must be 0, got {alpha!r}")
        if isinstance(alpha, str):
            parse_rule(alpha)
            if solver != "exact" or self.regulariser != "l2":
                raise ValueError(
                    f'alpha={alpha!r} is a rule, which needs solver="exact" with tables and regulariser="l2"; '
                    f"got {solver!r} and {self.regulariser!r}"
                )
        return replace(self, alpha=alpha, solver=solver, estimator=estimator, discount=discount)

    @property
    def alpha_rule(self) -> str | None:
        """The rule that α is to be chosen by, if it is not a number."""
        return self.alpha if isinstance(self.alpha, str) else None

    def fixed_alpha(self, otherwise: float) -> float:
        """Return α where it is a number, and `otherwise` where a rule chooses it."""
        return self.alpha if isinstance(self.alpha, float) else otherwise


def _setting(name: str) -> Any:
    return property(lambda owner: getattr(owner.settings, name), doc=f"The setting `{name}`, see the constructor.")


class ReadsSettings:
    """Something with `settings`, whose options can be read as attributes."""

    settings: Settings
    _shown: Demonstrations | None

    @property
    def demonstrations(self) -> Demonstrations | None:
        """The demonstrations as they were executed; `None` for an occupancy, and after `load`."""
        return self._shown

    alpha_rule = _setting("alpha_rule")
    regulariser = _setting("regulariser")
    solver = _setting("solver")
    step_size = _setting("step_size")
    epsilon = _setting("epsilon")
    n_runs = _setting("n_runs")
    n_jobs = _setting("n_jobs")
    policy_kind = _setting("policy_kind")
    discounting = _setting("discounting")
    estimator = _setting("estimator")
