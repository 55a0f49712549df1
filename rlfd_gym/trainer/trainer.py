"""RLfD_α behind the face of imitation's trainers: demonstrations in, a policy and a reward out.

Swap the class in a script that uses `BC`, `GAIL` or `MCEIRL`, add a prior if there is one, and keep the rest:

    trainer = MCEIRL(demonstrations, env, reward_net, rng)
    trainer = RLfDTrainer(demonstrations, env, reward_net, rng, prior=guess)

What is learned, and what the numbers mean, is in `rlfd_gym.problem.problem`; how demonstrations become an occupancy, in
`rlfd_gym.experts.demonstrations`. Only tabular environments have tables, and only with tables is there a certificate; for an
environment that merely draws next states (`sample_next`) Algorithm 1 runs on draws, without one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from imitation.algorithms.base import DemonstrationAlgorithm
from imitation.data.types import TransitionsMinimal
from imitation.rewards.reward_nets import RewardNet
from imitation.util.logger import HierarchicalLogger
from numpy.typing import ArrayLike
from tqdm.auto import tqdm

from rlfd_gym import _checks, _files
from rlfd_gym._checks import FloatArray
from rlfd_gym.alpha import AlphaChoice, alpha_path, parse_rule, select_alpha
from rlfd_gym.beliefs.near_prior import NORMS
from rlfd_gym.experts import demonstrations as demos
from rlfd_gym.experts.noise import occupancy_noise
from rlfd_gym.experts.sampled import SampledExpert, sampled_expert
from rlfd_gym.problem.black_box import BlackBoxProblem
from rlfd_gym.problem.problem import RLfDProblem
from rlfd_gym.problem.solution import Solution
from rlfd_gym.solvers.exact import solve_exact
from rlfd_gym.solvers.smd import keeps_runs, solve_smd
from rlfd_gym.trainer import saving as _archive
from rlfd_gym.trainer.env_model import World
from rlfd_gym.trainer.policy import TablePolicy
from rlfd_gym.trainer.reward import TableRewardNet, fit_reward_net, reward_table

SOLVERS = ("exact", "smd")
POLICY_KINDS = ("occupancy", "greedy")
DEFAULT_ALPHA = 0.1  # with a prior: the paper's choice in its experiments
MODEL_ITERATIONS = 5_000_000  # a second or so
BLACK_BOX_ITERATIONS = 50_000
LARGE_GAP = 0.5  # for costs in [-1, 1]
LOGS = 10  # per call of train, unless log_interval says otherwise
FORMAT, VERSION = "rlfd_gym.RLfDTrainer", 2

Prior = ArrayLike | Callable[[int, int], float]


class RLfDTrainer(DemonstrationAlgorithm[TransitionsMinimal]):
    """Learn a cost and a policy from demonstrations and a prior guess of the cost, in a tabular environment.

    Args:
        demonstrations: anything imitation's algorithms take, or an occupancy over pairs or states × actions; `None` to
            set them later. See `rlfd_gym.experts.demonstrations`. Where the environment says with `cut_action` what it does
            when asked for an infeasible action, that is what counts as demonstrated.
        env: a tabular environment, wrapped or not, or a `VecEnv` of such: rlfd_gym's, Gymnasium's toy_text, seals'
            tabular models. One without tables needs `sample_next(states, actions, rng)` and `Discrete` spaces; it may
            have `discount` and `feasible`, a boolean (n_states, n_actions).
        reward_net: a reward net of your own, to be fitted to the learned reward in place. By default an exact table.
        rng: a `Generator` or a seed; by default 0. The same one gives the same result.
        venv: in the place of `env`, as GAIL calls it.
        prior: ĉ, the guess of the cost, best in [-1, 1]: a vector over pairs, a (n_states, n_actions) table, or a
            function of (state, action).
        alpha: how much the prior weighs. By default 0.1, the paper's value, with a prior, and 0 without, where the
            demonstrations alone decide and the best answer is to do as the expert did. Or the name of a rule by which
            `train` chooses it and logs why: "regret-budget:0.05", "discrepancy" (two trajectories at least) or
            "l-curve", see `rlfd_gym.alpha.path`. That takes the exact solver some fifty times as long.
        regulariser: "l2", or "l1" to keep the learned cost exactly at the prior in most pairs; its alpha is a mass
            per pair, see `rlfd_gym.solvers.reweighted`, and has no default.
        discount: γ; by default the environment's, or 0.99 if it has none.
        solver: "exact", which needs tables, or "smd", Algorithm 1 of the paper. By default the first where it can be:
            Algorithm 1 needs millions of steps where γ is near one, and `duality_gap` says whether it had enough.
        step_size: of SMD, one number or two; by default the convergence theorem's for the iterations asked for.
        epsilon: the accuracy in whose favour the theorem chooses the iterations, where `train` is not told.
        n_runs: independent runs of SMD to average over.
        n_jobs: how many runs at a time.
        policy_kind: "occupancy" for the policy of the learned occupancy μ, "greedy" for the optimal policy of the
            learned cost. The first mixes as the expert does; the second is deterministic.
        discounting: "none" allows transitions without times, see `occupancy_from_demonstrations`.
        custom_logger: where to log to.
        allow_variable_horizon: whether trajectories may differ in length, as in every imitation algorithm.

    Example:
        >>> import gymnasium as gym, rlfd_gym
        >>> env = gym.make("rlfd_gym/Inventory-v0").unwrapped
        >>> expert = env.mdp.optimal(env.cost_for(5, 8, 15)).occupancy     # in the place of demonstrations
        >>> from imitation.util.logger import configure
        >>> trainer = rlfd_gym.RLfDTrainer(expert, env, prior=env.cost_for(4, 2, 14), custom_logger=configure("", []))
        >>> states = trainer.train()
        >>> trainer.policy.predict(np.arange(4))[0].shape, trainer.cost_table.shape, trainer.duality_gap < 1e-6
        ((4,), (16, 16), True)
    """

    def __init__(
        self,
        demonstrations: Any,
        env: Any = None,
        reward_net: RewardNet | None = None,
        rng: np.random.Generator | int | None = None,
        *,
        venv: Any = None,
        prior: Prior | None = None,
        alpha: float | str | None = None,
        regulariser: str = "l2",
        discount: float | None = None,
        solver: str | None = None,
        step_size: float | tuple[float, float] | None = None,
        epsilon: float | None = None,
        n_runs: int = 1,
        n_jobs: int = 1,
        policy_kind: str = "occupancy",
        discounting: str = "trajectory",
        custom_logger: HierarchicalLogger | None = None,
        allow_variable_horizon: bool = False,
    ) -> None:
        """Check the settings and read the environment; nothing is trained yet."""
        if (env is None) == (venv is None):
            raise TypeError("RLfDTrainer needs an environment: pass either env or venv")
        self.env = venv if env is None else env
        self._world = World.of(self.env, discount)
        if solver is None:
            solver = "smd" if self._world.mdp is None else "exact"
        for name, value, known in (
            ("solver", solver, SOLVERS),
            ("policy_kind", policy_kind, POLICY_KINDS),
            ("discounting", discounting, demos.DISCOUNTINGS),
            ("regulariser", regulariser, NORMS),
        ):
            _checks.one_of(name, value, known)
        if self._world.mdp is None and (solver == "exact" or policy_kind == "greedy"):
            raise ValueError('solver="exact" and policy_kind="greedy" need transition tables, which env does not have')
        if reward_net is not None and not isinstance(reward_net, RewardNet):
            raise TypeError(f"reward_net must be an imitation RewardNet, got {type(reward_net).__name__}")
        if reward_net is not None:
            self._world.check_spaces("reward_net", reward_net.observation_space, reward_net.action_space)
        self.solver, self.policy_kind, self.discounting = solver, policy_kind, discounting
        self.regulariser = regulariser
        self.prior = None if prior is None else self._world.pairs_of("prior", prior)
        if alpha is None:
            if prior is not None and regulariser == "l1":
                raise ValueError('alpha has no default with regulariser="l1": see rlfd_gym.pinning_alpha for its range')
            alpha = 0.0 if prior is None else DEFAULT_ALPHA
        self.alpha_rule = alpha if isinstance(alpha, str) else None
        self.alpha = math.nan if isinstance(alpha, str) else _checks.number("alpha", alpha, 0.0)
        if prior is None and self.alpha != 0:
            raise ValueError(f"prior is None, so alpha must be 0, got {alpha!r}")
        if self.alpha_rule is not None:
            parse_rule(self.alpha_rule)
            if solver != "exact" or regulariser != "l2":
                raise ValueError(
                    f'alpha={alpha!r} is a rule, which needs solver="exact" with tables and regulariser="l2"; '
                    f"got {solver!r} and {regulariser!r}"
                )
        self._noise: float | None = None
        self._choice: AlphaChoice | None = None
        self.step_size, self.epsilon = step_size, epsilon
        self.n_runs, self.n_jobs = _checks.integer("n_runs", n_runs, 1), n_jobs
        seeds = np.random.default_rng(0 if rng is None else rng).integers(2**63, size=2)
        self._seed = int(seeds[0])
        self._problem: RLfDProblem | BlackBoxProblem | None = None
        self._solution: Solution | None = None
        spaces = Discrete(self._world.n_states), Discrete(self._world.n_actions)
        uniform = self._world.table(self._world.uniform_policy(), 0.0)
        self._policy = TablePolicy(*spaces, uniform, seed=int(seeds[1]))
        self._reward_net = TableRewardNet(*spaces) if reward_net is None else reward_net
        super().__init__(
            demonstrations=demonstrations, custom_logger=custom_logger, allow_variable_horizon=allow_variable_horizon
        )

    def set_demonstrations(self, demonstrations: Any) -> None:
        """Set or replace the demonstrations; what was learned stays in `policy` until `train` is called again."""
        expert: FloatArray | SampledExpert
        world, noise = self._world, None
        if isinstance(demonstrations, np.ndarray):
            if world.mdp is None:
                raise ValueError("demonstrations: an occupancy has no next states, which env without tables needs")
            expert = demos.occupancy_from_demonstrations(demonstrations, world.mdp)
        else:
            read = world.as_executed(demos.read_demonstrations(demonstrations))
            if world.mdp is None:
                expert = sampled_expert(
                    read,
                    world.discount,
                    feasible=world.feasible,
                    absorbing=world.seems_absorbing(read),
                    discounting=self.discounting,
                )
            else:
                expert = demos.estimate_occupancy(read, world.mdp, discounting=self.discounting)
                if self.alpha_rule == "discrepancy":
                    noise = occupancy_noise(read, world.mdp, discounting=self.discounting, seed=self._seed)
            if read.lengths is not None:  # last: it remembers the horizon, which that of refused ones must not become
                self._check_fixed_horizon(read.lengths.tolist())
        self._set_expert(expert, noise)

    def train(
        self,
        max_iter: int | None = None,
        *,
        n_runs: int | None = None,
        progress_bar: bool = False,
        callback: Callable[[int], Any] | None = None,
        log_interval: int | None = None,
    ) -> FloatArray:
        """Train, or go on training: SMD continues where the last call stopped, until the demonstrations change.

        Args:
            max_iter: the iterations of each run of SMD; by default the theorem's for `epsilon` if that was given, and
                otherwise 5,000,000 (50,000 without tables). The exact solver decides for itself.
            n_runs: as in the constructor, to be chosen at the first call.
            progress_bar: show one.
            callback: called with the number of iterations done, whenever there is something to log; returning `False`
                stops the training.
            log_interval: iterations between logs; by default a tenth of `max_iter`. 0 logs at the end only, and so
                does every training whose runs together are too large to be kept (256 MB); it cannot go on either.

        Returns:
            The apprentice's state occupancy: normalised, so it sums to one. Everything else is in `solution`.
        """
        if self._problem is None:
            raise RuntimeError("there are no demonstrations yet: pass them to the constructor or set_demonstrations()")
        if self.solver == "exact":
            assert isinstance(self._problem, RLfDProblem)
            if self.alpha_rule is None:
                self._adopt(solve_exact(self._problem))
            elif self._choice is None:
                self._choose_alpha(self._problem, self.alpha_rule)
            self._log(None)
            if callback is not None:
                callback(self.solution.n_iterations)
        else:
            self._train_smd(self._problem, max_iter, n_runs, progress_bar, callback, log_interval)
            if self.duality_gap > LARGE_GAP:
                self.logger.warn(
                    f"the duality gap is still {self.duality_gap:.2g}: train longer, or with another step_size, or use "
                    'solver="exact"'
                )
        self._fit_own_net()
        return self._world.state_occupancy(self._policy_pairs, self.solution.occupancy)

    @property
    def policy(self) -> TablePolicy:
        """The apprentice, a Stable-Baselines3 policy: uniform before training, the same object ever after."""
        return self._policy

    @property
    def reward_net(self) -> RewardNet:
        """The learned reward, -cost: the table itself, or your own net fitted to it. The same object ever after."""
        return self._reward_net

    @property
    def reward_train(self) -> RewardNet:
        """The same, by the name that GAIL and AIRL have for it."""
        return self._reward_net

    @property
    def reward_test(self) -> RewardNet:
        """The same, by the name that GAIL and AIRL have for it."""
        return self._reward_net

    @property
    def solution(self) -> Solution:
        """All that was learned, over pairs, with its certificate."""
        if self._solution is None:
            raise RuntimeError("nothing is learned yet: call train() first")
        return self._solution

    @property
    def duality_gap(self) -> float:
        """How far from optimal the solution is at most; `nan` without tables."""
        return self.solution.duality_gap

    @property
    def alpha_choice(self) -> AlphaChoice:
        """What the rule has chosen, and why; only where `alpha` was the name of a rule, and after `train`."""
        if self._choice is None:
            why = "alpha was given as a number" if self.alpha_rule is None else "call train() first"
            raise RuntimeError(f"no alpha has been chosen: {why}")
        return self._choice

    @property
    def cost_table(self) -> FloatArray:
        """The learned cost, (n_states, n_actions), `nan` where an action is infeasible."""
        return self._world.table(self.solution.cost, np.nan)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write settings, expert and solution to one file of arrays, from which `load` goes on.

        A reward net of your own is not written: save its `state_dict`.
        """
        settings: tuple[str, ...] = ("regulariser", "solver", "step_size", "epsilon", "n_runs", "n_jobs")
        settings += ("policy_kind", "discounting")
        header: dict[str, Any] = {"settings": {name: getattr(self, name) for name in settings}}
        header["settings"] |= {
            "alpha": self.alpha if self.alpha_rule is None else self.alpha_rule,
            "discount": self._world.discount,
            "allow_variable_horizon": self.allow_variable_horizon,
        }
        header |= {"seed": self._seed, "horizon": self._horizon, "policy_rng": self._policy.rng.bit_generator.state}
        header["noise"] = self._noise
        if self._choice is not None:
            header["choice"] = {name: getattr(self._choice, name) for name in ("alpha", "rule", "reason")}
        arrays: dict[str, Any] = {"pair_states": self._world.pair_states, "pair_actions": self._world.pair_actions}
        if self.prior is not None:
            arrays["prior"] = self.prior
        if self._problem is not None:
            arrays |= _archive.pack_expert(self._problem.expert)
        if self._solution is not None:
            header["solution"], own = _archive.pack(self._solution)
            arrays |= own
        _files.save_arrays(path, FORMAT, VERSION, header, arrays)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        env: Any = None,
        reward_net: RewardNet | None = None,
        *,
        venv: Any = None,
        custom_logger: HierarchicalLogger | None = None,
    ) -> RLfDTrainer:
        """The trainer that `save` wrote, for the same environment; no code in the file is executed.

        A `reward_net` is fitted to the learned reward.
        """
        header, arrays = _files.load_arrays(path, FORMAT, VERSION)
        try:
            settings = header["settings"]
            if isinstance(settings["step_size"], list):
                settings["step_size"] = tuple(settings["step_size"])
            world = World.of(venv if env is None else env, settings["discount"])
            for name in ("pair_states", "pair_actions"):
                if not np.array_equal(arrays[name], getattr(world, name)):
                    raise ValueError(f"it was saved for another environment, whose {name} differ from env's")
            trainer = cls(
                None, env, reward_net, venv=venv, prior=arrays.get("prior"), custom_logger=custom_logger, **settings
            )
            trainer._seed, trainer._horizon = header["seed"], header["horizon"]
            trainer._policy.rng = _archive.generator(header["policy_rng"])
            expert = _archive.unpack_expert(arrays)
            if expert is not None:
                trainer._set_expert(expert, header.get("noise"))
            if "solution" in header and trainer._problem is not None:
                if "choice" in header:
                    trainer._settle(header["choice"]["alpha"])
                trainer._adopt(_archive.unpack(header["solution"], arrays, trainer._problem))
                if "choice" in header:
                    trainer._choice = AlphaChoice(solution=trainer.solution, **header["choice"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} cannot be loaded ({type(error).__name__}: {error})") from error
        trainer._fit_own_net()
        return trainer

    def _set_expert(self, expert: FloatArray | SampledExpert, noise: float | None) -> None:
        """Pose the problem; under a rule its α is yet to be chosen."""
        if self.alpha_rule is not None:
            self.alpha = math.nan
        alpha = 0.0 if math.isnan(self.alpha) else self.alpha
        self._problem = self._world.problem(expert, self.prior, alpha, self.regulariser)
        self._noise, self._solution, self._choice = noise, None, None

    def _choose_alpha(self, problem: RLfDProblem, rule: str) -> None:
        """Choose α by the rule, and say why; the solution comes with it."""
        if rule == "discrepancy" and self._noise is None:
            raise ValueError(
                'alpha="discrepancy" needs trajectories, to see how much they vary; for an occupancy give its ℓ1 '
                'error, as in alpha="discrepancy:0.1"'
            )
        self._choice = select_alpha(alpha_path(problem), rule, noise=self._noise)
        self._settle(self._choice.alpha)
        self._adopt(self._choice.solution)
        self.logger.info(f"{rule}: {self.alpha_choice.reason}")

    def _settle(self, alpha: float) -> None:
        """Go on with the α that was chosen."""
        assert isinstance(self._problem, RLfDProblem)
        self.alpha, self._problem = alpha, self._problem.with_alpha(alpha)

    def _train_smd(
        self,
        problem: RLfDProblem | BlackBoxProblem,
        max_iter: int | None,
        n_runs: int | None,
        progress_bar: bool,
        callback: Callable[[int], Any] | None,
        log_interval: int | None,
    ) -> None:
        """SMD in parts, to log and call back between them; the parts together are one run."""
        if max_iter is None and self.epsilon is not None:
            max_iter = problem.iterations(self.epsilon)
        elif max_iter is None:
            max_iter = MODEL_ITERATIONS if isinstance(problem, RLfDProblem) else BLACK_BOX_ITERATIONS
        steps = _checks.integer("max_iter", max_iter, 1)
        interval = -(-steps // LOGS) if log_interval is None else _checks.integer("log_interval", log_interval, 0)
        interval = interval or steps
        runs = self.n_runs if n_runs is None else _checks.integer("n_runs", n_runs, 1)
        done = 0
        if self._solution is not None:
            done, begun = self._solution.n_iterations, self._solution.stats["n_runs"]
            if n_runs is not None and n_runs != begun:
                raise ValueError(f"n_runs is {n_runs}, but training goes on with the {begun} runs of the first call")
            runs = begun
        if not keeps_runs(problem, runs):
            if done:
                raise RuntimeError(f"training cannot go on: {runs} runs of this size are too large to be kept")
            interval = steps  # parts could not go on either
        end = done + steps
        promise = problem.accuracy(end) if done == 0 and self.step_size is None else None
        with tqdm(total=steps, unit="step", unit_scale=True, desc="SMD-RLfD", disable=not progress_bar) as bar:

            def adopt(part: Solution) -> bool:
                before = self._solution
                bar.update(part.n_iterations - bar.n - done)
                self._adopt(part)
                self._log(before, promise)
                return callback is None or callback(part.n_iterations) is not False

            solve_smd(
                problem,
                n_iterations=steps,
                step_size=self.step_size,
                n_runs=runs,
                n_jobs=self.n_jobs,
                seed=self._seed,
                record_every=interval if isinstance(problem, RLfDProblem) else None,
                initial=self._solution,
                callback=adopt,
                callback_every=interval,
            )

    def _adopt(self, solution: Solution) -> None:
        """Take a solution as what was learned."""
        self._solution = solution
        self._policy.set_probabilities(self._world.table(self._policy_pairs, 0.0))
        if isinstance(self._reward_net, TableRewardNet):
            self._reward_net.set_table(self._reward_table)

    @property
    def _policy_pairs(self) -> FloatArray:
        """The apprentice's policy over pairs."""
        if self.policy_kind == "occupancy":
            return self.solution.policy
        assert self._world.mdp is not None
        return self._world.mdp.optimal(self.solution.cost).policy

    @property
    def _reward_table(self) -> FloatArray:
        """The learned reward, with something for infeasible actions too."""
        return reward_table(self.cost_table, self._world.base)

    def _log(self, before: Solution | None, promise: float | None = None) -> None:
        """Tell the logger where the training stands; `promise` is what the theorem says of the gap at the end."""
        now = self.solution
        assert self._problem is not None
        record = _progress(self._problem, now, before, self._policy_pairs)
        if promise is not None:
            record["theorem_bound"] = promise
        if self.alpha_rule is not None:
            record["alpha"] = self.alpha
        if self.prior is not None:
            record["prior_distance"] = float(np.linalg.norm(now.cost - self.prior))
        for name, value in record.items():
            self.logger.record(f"rlfd/{name}", value)
        self.logger.dump(now.n_iterations)

    def _fit_own_net(self) -> None:
        """Bring the user's own reward net up to date, and say how well it fits."""
        if isinstance(self._reward_net, TableRewardNet) or self._solution is None:
            return
        error = fit_reward_net(
            self._reward_net,
            self._reward_table,
            self._world.transitions(),
            np.random.default_rng(self._seed),
            self._world.observations,
        )
        self.logger.record("rlfd/reward_fit_error", error)
        self.logger.dump(self._solution.n_iterations)


def _progress(
    problem: RLfDProblem | BlackBoxProblem, now: Solution, before: Solution | None, policy: FloatArray
) -> dict[str, float]:
    """The numbers worth logging: the certificate, what expert and apprentice pay, and ℓ1 changes since last time."""
    record: dict[str, float] = {"iteration": now.n_iterations}
    if isinstance(problem, RLfDProblem):
        record |= {"duality_gap": now.duality_gap, "upper_bound": now.upper, "lower_bound": now.lower}
        record["expert_cost"] = float(problem.expert @ now.cost)
        record["apprentice_cost"] = problem.mdp.expected_cost(policy, now.cost)
    else:
        record["expert_cost"] = float(problem.expert.weights @ now.cost[problem.expert_pairs])
        record["apprentice_cost"] = float(now.occupancy @ now.cost)
    if before is not None:
        for name in ("cost", "value", "occupancy"):
            record[f"change_{name}"] = float(np.abs(getattr(now, name) - getattr(before, name)).sum())
    return record
