"""RLfD_α with the interface of imitation's trainers: demonstrations in, a policy and a reward out.

Swap the class in a script that uses `GAIL`, `AIRL` or `MCEIRL` (or `BC`, and add `env`), add a prior if
there is one, and keep the rest; `rlfd_gym.trainer.foreign` lists what is accepted:

    trainer = MCEIRL(demonstrations, env, reward_net, rng, log_interval=250)
    trainer = RLfDTrainer(demonstrations, env, reward_net, rng, log_interval=250, prior=guess)

What is learned, and what the numbers mean, is in `rlfd_gym.problem.problem`; how demonstrations
become an occupancy, in `rlfd_gym.experts.demonstrations`. Only tabular environments have tables, and
only with tables is the certificate certain; for an environment that merely draws next states
(`sample_next`, or what `rlfd_gym.simulate` makes of it) it holds with probability 0.95.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from imitation.algorithms.base import DemonstrationAlgorithm
from imitation.data.types import TransitionsMinimal
from imitation.rewards.reward_nets import RewardNet
from imitation.util.logger import HierarchicalLogger

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.alpha import AlphaChoice
from rlfd_gym.beliefs import Belief
from rlfd_gym.experts.demonstrations import Demonstrations
from rlfd_gym.experts.sampled import SampledExpert
from rlfd_gym.problem import BlackBoxProblem, RLfDProblem
from rlfd_gym.problem.guarantee import Guarantee
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.trainer import foreign, loading, saving, training
from rlfd_gym.trainer.env_model import EnvModel
from rlfd_gym.trainer.plotting import DrawsLearned
from rlfd_gym.trainer.policy import TablePolicy
from rlfd_gym.trainer.reward import TableRewardNet, reward_table
from rlfd_gym.trainer.settings import Prior, ReadsSettings, Settings, Solver


class RLfDTrainer(ReadsSettings, foreign.TakesForeignWords, DrawsLearned, DemonstrationAlgorithm[TransitionsMinimal]):
    """Learn a cost and a policy from demonstrations and a prior guess of the cost.

    Args:
        demonstrations: anything imitation's algorithms take, or an occupancy over pairs, states ×
            actions or states; `None` to set them later. See `rlfd_gym.experts.demonstrations`. Where
            the environment says with `cut_action` what it does when asked for an infeasible action,
            that is what counts as demonstrated.
        env: a tabular environment, wrapped or not, or a `VecEnv` of such: rlfd_gym's, Gymnasium's
            toy_text, seals' tabular models. One without tables needs `Discrete` spaces, and
            `sample_next(states, actions, rng)` or a way to be put into a state; it may have `discount`
            and `feasible`, a boolean (n_states, n_actions). See `rlfd_gym.simulate`.
        reward_net: a reward net of your own, to be fitted to the learned reward in place. By
            default an exact table.
        rng: a `Generator` or a seed; by default 0. The same one gives the same result.
        venv: instead of `env`, as GAIL calls it.
        prior: ĉ, the guess of the cost, in [-1, 1]: a vector over pairs, a (n_states,
            n_actions) table, or a function of (state, action). Or any belief about the cost, such
            as `env.price_ranges(...)`, see `rlfd_gym.beliefs`; it needs tables, and no alpha.
        alpha: how much the prior weighs. By default 0.01 with a prior (docs/choosing_alpha.md), and 0
            without, where the demonstrations alone decide and the best answer is to do as the
            expert did. Or the name of a rule by which `train` chooses it and logs why:
            "regret-budget:0.05", "discrepancy" (two trajectories at least), "prior-error:0.1",
            "evidence", "held-out" or "l-curve", see `rlfd_gym.alpha.rules`. That takes far longer.
        regulariser: "l2", or "l1" to keep the learned cost exactly at the prior in most pairs; its
            alpha is a mass per pair, see `rlfd_gym.solvers.reweighted`, and has no default.
        discount: γ; by default the environment's, or 0.99 if it has none.
        solver: "exact", which needs tables; "sampled", which needs none, `rlfd_gym.solve_sampled`;
            "smd", Algorithm 1 of the paper; or a function that takes the problem (an `RLfDProblem`, or
            a `BlackBoxProblem` if there are no tables) and returns a `Solution`. By default "exact"
            with tables and "sampled" without, or "smd" where `step_size` or `n_runs` asks for it.
        step_size: of SMD, one number or two; by default the convergence theorem's for the
            iterations asked for.
        epsilon: of SMD, the accuracy for which the theorem gives the default of `max_iter`; of
            "sampled", the gap to certify.
        n_runs, n_jobs: of SMD, independent runs to average over, and how many of them at a time.
        policy_kind: "occupancy" for the policy of the learned occupancy μ, which mixes as the expert
            does; "mode" for its most frequent actions; "greedy" for the plan with the learned cost.
        discounting: "trajectory", or "none" to read only what was done in each state, not what
            followed, as DAgger needs it; see `rlfd_gym.experts.demonstrations`.
        estimator: "policy" or "count", see there; by default "policy", or "count" without tables.
        custom_logger: where to log to.
        allow_variable_horizon: whether trajectories may differ in length. Unlike in GAIL they may: the
            occupancy continues after an episode's end, which therefore tells nothing of rewards.
        of_mceirl, of_imitation: what else imitation's algorithms take, see `rlfd_gym.trainer.foreign`.

    Example:
        >>> from rlfd_gym.problem import examples
        >>> from rlfd_gym.trainer import RLfDTrainer, quiet_logger
        >>> env, problem = examples.inventory_env(), examples.inventory()
        >>> trainer = RLfDTrainer(problem.expert, env, prior=problem.prior, custom_logger=quiet_logger())
        >>> states = trainer.train()
        >>> trainer.policy.predict(np.arange(4))[0].shape, trainer.cost_table.shape, trainer.duality_gap < 1e-6
        ((4,), (16, 16), True)
    """

    def __init__(
        self,
        demonstrations: Any = None,
        env: Any = None,
        reward_net: RewardNet | None = None,
        rng: np.random.Generator | int | None = None,
        *of_mceirl: Any,
        venv: Any = None,
        prior: Prior | None = None,
        alpha: float | str | None = None,
        regulariser: str = "l2",
        discount: float | None = None,
        solver: str | Solver | None = None,
        step_size: float | tuple[float, float] | None = None,
        epsilon: float | None = None,
        n_runs: int = 1,
        n_jobs: int = 1,
        policy_kind: str = "occupancy",
        discounting: str = "trajectory",
        estimator: str | None = None,
        custom_logger: HierarchicalLogger | None = None,
        allow_variable_horizon: bool = True,
        **of_imitation: Any,
    ) -> None:
        """Check the settings and read the environment; nothing is trained yet."""
        words, discount = foreign.constructor_words(RLfDTrainer, of_mceirl, of_imitation, discount)
        self.env = foreign.one_environment(env, venv)
        settings = Settings(
            alpha=alpha, regulariser=regulariser, discount=discount, solver=solver, step_size=step_size,
            epsilon=epsilon, n_runs=n_runs, n_jobs=n_jobs, policy_kind=policy_kind, discounting=discounting,
            estimator=estimator, allow_variable_horizon=allow_variable_horizon,
        )  # fmt: skip
        self._model = EnvModel.of(self.env, discount)
        self.belief = prior.over(self._model.pairs) if isinstance(prior, Belief) else None
        self.prior = None if prior is None or self.belief else self._model.pairs_of("prior", prior)
        self.settings = settings.completed(
            tables=self._model.mdp is not None, prior=self.prior is not None, belief=self.belief,
            discount=self._model.discount,
        )  # fmt: skip
        if reward_net is not None:
            self._model.check_net("reward_net", reward_net)
        self._problem: RLfDProblem | BlackBoxProblem | None = None
        self._solution: Solution | None = None
        self._choice: AlphaChoice | None = None
        self._noise: float | None = None
        self._shown: Demonstrations | None = None
        seeds = _checks.generator("rng", 0 if rng is None else rng).integers(2**63, size=2)
        self._seed = int(seeds[0])
        pairs = self._model.pairs
        spaces = Discrete(pairs.n_states), Discrete(pairs.n_actions)
        self._policy = TablePolicy(*spaces, pairs.table(pairs.uniform_policy(), 0.0), seed=int(seeds[1]))
        self._reward_net = TableRewardNet(*spaces) if reward_net is None else reward_net
        super().__init__(demonstrations=None, custom_logger=custom_logger)
        self.allow_variable_horizon = allow_variable_horizon  # of which imitation's constructor would warn
        self._take(words)
        if demonstrations is not None:
            self.set_demonstrations(demonstrations)

    def set_demonstrations(self, demonstrations: Any) -> None:
        """Set or replace the demonstrations; `policy` stays as it is until `train` is called."""
        how = self.settings, self._seed, self.belief or (self.prior if self.settings.alpha else None), self.logger
        read, expert, noise = training.read_expert(self._model, demonstrations, *how)
        # Checked last: the check stores the horizon, and rejected demonstrations must not set it.
        if read is not None and read.lengths is not None:
            self._check_fixed_horizon(read.lengths.tolist())
        self._pose(expert, noise)
        self._shown = read

    def train(
        self,
        max_iter: int | None = None,
        callback: Callable[[int], Any] | None = None,
        *,
        n_runs: int | None = None,
        progress_bar: bool = False,
        log_interval: int | None = None,
        **of_imitation: Any,
    ) -> FloatArray:
        """Train, or continue: SMD resumes where it stopped, unless the demonstrations changed.

        Args:
            max_iter: the iterations of each run of SMD; by default the theorem's for `epsilon` if
                that was given, and otherwise 5,000,000 (50,000 without tables). Of "sampled", how
                many next states are drawn at most; by default 100,000 and ten of each pair, or with
                `epsilon` ten million. Other solvers decide for themselves.
            callback: called with the number of iterations done, whenever there is something to
                log; returning `False` stops the training.
            n_runs: as in the constructor, to be chosen at the first call.
            progress_bar: show one.
            log_interval: iterations between logs; by default a tenth of `max_iter`. 0 logs at the
                end only, and so does every training whose runs together are too large to be kept
                (512 MiB); such a training cannot be continued either.
            of_imitation: what else imitation's algorithms take, see `rlfd_gym.trainer.foreign`.

        Returns:
            The apprentice's state occupancy, which sums to one. Divided by 1 - γ it counts discounted
            visits, which MCEIRL returns up to its horizon. Everything else is in `solution`.
        """
        words = self._train_words(of_imitation, max_iter=max_iter, n_runs=n_runs, log_interval=log_interval)
        max_iter, callback = foreign.max_iter_of(max_iter, words), foreign.callback_of(callback, words)
        if self.solver == "smd":
            training.train_smd(
                self.problem, self.settings, self._solution, lambda part, goal: self._log(self._adopt(part), goal),
                callback, seed=self._seed, tables=self._model.mdp is not None, max_iter=max_iter, n_runs=n_runs,
                log_interval=log_interval, progress_bar=progress_bar,
            )  # fmt: skip
            training.log_large_gap(self.logger, self.duality_gap)
        elif self.solver == "sampled":
            training.train_sampled(
                self.problem, self.settings, lambda part: self._log(self._adopt(part)), callback, seed=self._seed,
                max_iter=max_iter, progress_bar=progress_bar,
            )  # fmt: skip
        else:
            self._solve()
            self._log(None)
            if callback is not None:
                callback(self.solution.n_iterations)
        self._fit_own_net()
        foreign.log_rollouts(self._policy, self.logger, words, self.solution.n_iterations)
        return self._model.state_occupancy(self._read(self.solution), self.solution.occupancy)

    @property
    def problem(self) -> RLfDProblem | BlackBoxProblem:
        """The problem that `train` solves; its α is 0 until a rule has chosen one."""
        if self._problem is None:
            raise RuntimeError("there are no demonstrations yet: pass them to the constructor or set_demonstrations()")
        return self._problem

    @property
    def policy(self) -> TablePolicy:
        """The apprentice, a Stable-Baselines3 policy. Always the same object, uniform at first."""
        return self._policy

    @property
    def reward_net(self) -> RewardNet:
        """The learned reward, -cost: a table, or your own net. Always the same object."""
        return self._reward_net

    reward_train = reward_test = reward_net  # the names that GAIL and AIRL have for it

    @property
    def solution(self) -> Solution:
        """All that was learned, over pairs, with its certificate."""
        if self._solution is None:
            raise RuntimeError("nothing is learned yet: call train() first")
        return self._solution

    @property
    def duality_gap(self) -> float:
        """How far from optimal the solution is at most; `nan` for SMD without tables."""
        return self.solution.duality_gap

    @property
    def alpha(self) -> float:
        """α, how much the prior weighs; `nan` while a rule has yet to choose it."""
        return self.settings.fixed_alpha(np.nan) if self._choice is None else self._choice.alpha

    @property
    def alpha_choice(self) -> AlphaChoice:
        """What the rule has chosen, and why; only after `train` with `alpha` a rule's name."""
        if self._choice is None:
            why = "alpha was given as a number" if self.alpha_rule is None else "call train() first"
            raise RuntimeError(f"no alpha has been chosen: {why}")
        return self._choice

    def guarantee(self, confidence: float | None = None) -> Guarantee:
        """Return by how much the apprentice is better than the expert at least, for which costs.

        For an occupancy it is certain, and about `policy`. For demonstrations it holds with the
        probability `confidence`, by default 0.95, and is about its own `policy`, learned from one
        half of them and judged by the other. After `load` the expert is taken as it was estimated.
        """
        how = self._read, self.settings, confidence, self._seed
        return training.apprentice_guarantee(self.problem, self.solution, self._shown, *how)

    @property
    def cost_table(self) -> FloatArray:
        """The learned cost, (n_states, n_actions), `nan` where an action is infeasible."""
        return self._model.pairs.table(self.solution.cost)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings, expert and solution to one file of arrays, from which `load` continues.

        Neither a reward net nor a solver of your own is written: save the net's `state_dict`.
        """
        saving.save(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        env: Any = None,
        reward_net: RewardNet | None = None,
        *,
        venv: Any = None,
        solver: Solver | None = None,
        custom_logger: HierarchicalLogger | None = None,
    ) -> RLfDTrainer:
        """Load what `save` wrote, for the same environment; no code in the file is executed.

        A `reward_net` is fitted to the learned reward. If the solver was a function, pass it again.
        """
        return loading.load(cls, path, env, reward_net, venv=venv, solver=solver, custom_logger=custom_logger)

    def _pose(self, expert: FloatArray | SampledExpert, noise: float | None, choice: AlphaChoice | None = None) -> None:
        """Pose the problem, with the α of a choice if there is one, and forget the solution."""
        alpha = self.settings.fixed_alpha(0.0) if choice is None else choice.alpha
        self._problem = self._model.problem(expert, self.belief or self.prior, alpha, self.regulariser)
        self._noise, self._choice, self._solution = noise, choice, None

    def _solve(self) -> None:
        """Solve the problem exactly (under a rule for its α) or by the user's own function."""
        problem: Any = self.problem
        if self.alpha_rule is None:
            solution = (self.solver if callable(self.solver) else solve_exact)(problem)
            self._adopt(_checks.instance("what solver returns", solution, Solution))
        elif self._choice is None:
            choice = training.choose_alpha(problem, self.alpha_rule, self._noise, self._shown)
            self._pose(problem.expert, self._noise, choice)
            self._adopt(choice.solution)
            self.logger.info(f"{self.alpha_rule}: {choice.reason}")

    def _adopt(self, solution: Solution) -> Solution | None:
        """Take a solution as what was learned; return the one before."""
        before, self._solution = self._solution, solution
        self._policy.set_probabilities(self._model.pairs.table(self._read(solution), 0.0))
        if isinstance(self._reward_net, TableRewardNet):
            self._reward_net.set_table(reward_table(self.cost_table, self._model.base))
        return before

    def _read(self, solution: Solution) -> FloatArray:
        """Return a solution's policy over pairs, read as `policy_kind` says."""
        return solution.read(self._model.pairs, self.policy_kind)

    def _log(self, before: Solution | None, promise: float | None = None) -> None:
        """Log where the training stands, and the gap that the theorem promises for its end."""
        training.log_progress(
            self.logger, self._model, self.problem.expert, self.solution, before, self._read(self.solution), self.prior,
            theorem_bound=promise, alpha=None if self.alpha_rule is None else self.alpha,
        )  # fmt: skip

    def _fit_own_net(self) -> None:
        """Fit the user's own reward net to what was learned, and log how well it fits."""
        if not isinstance(self._reward_net, TableRewardNet) and self._solution is not None:
            table, steps = reward_table(self.cost_table, self._model.base), self._solution.n_iterations
            training.fit_own_net(self._reward_net, table, self._model, self._seed, self.logger, steps)
