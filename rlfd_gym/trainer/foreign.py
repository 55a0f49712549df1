"""The words of imitation's `BC`, `GAIL`, `AIRL` and `MCEIRL` that `RLfDTrainer` does not have itself.

A script that calls one of them runs with only the name of the class changed. Most of its words are
about networks, batches and optimisers, of which there are none here: they are accepted, and named
in the log once. `Word.used` says which the others are. A word that neither has is an error.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import gymnasium as gym
import numpy as np
from imitation.data import rollout
from imitation.util.logger import HierarchicalLogger

from rlfd_gym import _checks
from rlfd_gym.trainer.policy import TablePolicy
from rlfd_gym.trainer.settings import Settings

BATCH_SIZE = 32  # BC's
ROLLOUTS = 5  # BC's number of episodes to log
AFTER_RNG = ("optimizer_cls", "optimizer_kwargs", "discount", "linf_eps", "grad_l2_eps", "log_interval")
"""What follows `rng` in MCEIRL's constructor."""


@dataclass(frozen=True)
class Word:
    """A word of one of imitation's algorithms.

    Attributes:
        of: the algorithms that have it.
        used: whether it does something here.
        note: what it does, or where to find what it was given for.
    """

    of: str
    used: bool = False
    note: str = ""


LEARNED = "what is learned is in trainer.policy"
CONSTRUCTOR = {
    "observation_space": Word("BC", used=True, note="must be the environment's"),
    "action_space": Word("BC", used=True, note="must be the environment's"),
    "batch_size": Word("BC", used=True, note="kept, for DAgger's loaders"),
    "policy": Word("BC", note=LEARNED),
    **dict.fromkeys(("minibatch_size", "ent_weight", "l2_weight", "device"), Word("BC")),
    **dict.fromkeys(("optimizer_cls", "optimizer_kwargs"), Word("BC, MCEIRL")),
    **dict.fromkeys(("linf_eps", "grad_l2_eps"), Word("MCEIRL")),
    "log_interval": Word("MCEIRL", note="train has it"),
    "gen_algo": Word("GAIL, AIRL", note=LEARNED),
    **dict.fromkeys(
        ("demo_batch_size", "demo_minibatch_size", "n_disc_updates_per_round", "log_dir", "disc_opt_cls",
         "disc_opt_kwargs", "gen_train_timesteps", "gen_replay_buffer_capacity", "init_tensorboard",
         "init_tensorboard_graph", "debug_use_ground_truth"),
        Word("GAIL, AIRL"),
    ),
}  # fmt: skip
TRAIN = {
    "total_timesteps": Word("GAIL, AIRL", used=True, note="another name of max_iter"),
    **dict.fromkeys(("n_epochs", "n_batches", "reset_tensorboard"), Word("BC")),
    **dict.fromkeys(("on_epoch_end", "on_batch_end"), Word("BC", used=True, note="called when callback is")),
    "log_rollouts_venv": Word("BC", used=True, note="episodes of the apprentice in it are logged, after training"),
    "log_rollouts_n_episodes": Word("BC", used=True, note="how many of them"),
}

OF_SMD = dict.fromkeys(
    ("step_size", "epsilon", "n_runs", "n_jobs", "max_iter", "total_timesteps", "log_interval"),
    Word("", note='of solver="smd"'),
)
"""Our own words, and another name of one, that solvers without iterations of their own have no use for."""
OF_SAMPLED = {"epsilon", "max_iter", "total_timesteps"}
"""Those of them that learning from draws has a use for."""


def without_use(solver: Any) -> dict[str, Word]:
    """Return our own words that a solver has no use for."""
    used = set(OF_SMD) if solver == "smd" else OF_SAMPLED if solver == "sampled" else set()
    return {name: word for name, word in OF_SMD.items() if name not in used}


def checked(function: Callable[..., Any], known: Mapping[str, Word], words: dict[str, Any]) -> dict[str, Any]:
    """Return the words if all of them are known; the error suggests the nearest that a function takes."""
    for word in words:
        if word not in known:
            own = [name for name in inspect.signature(function).parameters if name != "self"]
            near = difflib.get_close_matches(word, [*own, *known], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function.__qualname__} got an unexpected argument {word!r}{hint}")
    return words


def constructor_words(
    kind: type, positional: tuple[Any, ...], by_name: dict[str, Any], discount: float | None
) -> tuple[dict[str, Any], float | None]:
    """Return the foreign words of a constructor by their names, and the discount.

    MCEIRL takes the discount by position, between words that mean nothing here.
    """
    if len(positional) > len(AFTER_RNG):
        raise TypeError(
            f"{kind.__name__} takes at most {4 + len(AFTER_RNG)} arguments by position, got {4 + len(positional)}"
        )
    words = dict(zip(AFTER_RNG, positional, strict=False))
    given = checked(kind, CONSTRUCTOR, by_name) | ({} if discount is None else {"discount": discount})
    if twice := sorted(set(words) & set(given)):
        raise TypeError(f"{kind.__name__} got {', '.join(twice)} twice: by position and by name")
    words |= given
    return words, words.pop("discount", None)


def one_environment(env: Any, venv: Any) -> Any:
    """Return the one of `env` and `venv` that is given."""
    if (env is None) == (venv is None):
        raise TypeError(
            "RLfDTrainer needs an environment: pass either env or venv; spaces alone, as for BC, do not say where an "
            "action leads"
        )
    return venv if env is None else env


class TakesForeignWords:
    """A trainer that takes the words of this module, and has what imitation's DAgger asks BC for."""

    env: Any
    policy: Any
    logger: Any
    settings: Settings
    solver: Any
    train: Any
    batch_size: int
    _told: set[str]

    @property
    def observation_space(self) -> gym.Space[Any]:
        """The states, as the policy takes them."""
        return self.policy.observation_space

    @property
    def action_space(self) -> gym.Space[Any]:
        """The actions, as the policy gives them."""
        return self.policy.action_space

    def _take(self, words: dict[str, Any]) -> None:
        """Use the words of a constructor, and log the others."""
        self._told = set()
        self.batch_size = _checks.integer("batch_size", words.get("batch_size", BATCH_SIZE), 1)
        for name in ("observation_space", "action_space"):
            own, space = getattr(self.policy, name), words.get(name)
            if space is not None and space not in (own, getattr(self.env, name, None)):
                raise ValueError(f"{name} is {space}, but env has {own}")
        own_words = {item.name: getattr(self.settings, item.name) for item in fields(Settings) if item.name in OF_SMD}
        changed = {name: value for name, value in own_words.items() if value != getattr(Settings, name)}
        self._log_unused(CONSTRUCTOR | without_use(self.solver), words | changed)

    def _train_words(self, words: dict[str, Any], **own: Any) -> dict[str, Any]:
        """Check the foreign words of `train` and return them; log what of them and its own has no use."""
        known = TRAIN | without_use(self.solver)
        given = {name: value for name, value in own.items() if value is not None}
        self._log_unused(known, checked(type(self).train, TRAIN, words) | given)
        return words

    def _log_unused(self, known: Mapping[str, Word], words: Mapping[str, Any]) -> None:
        """Log which words are not used here, each word once in a trainer's life."""
        news = [word for word in words if word in known and not known[word].used and word not in self._told]
        self._told.update(news)
        if news:
            notes = (f"{word} ({known[word].note})" if known[word].note else word for word in news)
            self.logger.info(f"RLfDTrainer has no use for {', '.join(notes)}")


def max_iter_of(max_iter: int | None, words: Mapping[str, Any]) -> int | None:
    """Return how long to train, which GAIL calls `total_timesteps`."""
    total = words.get("total_timesteps")
    if max_iter is not None and total is not None:
        raise TypeError(f"max_iter and total_timesteps are the same: got {max_iter!r} and {total!r}")
    return max_iter if total is None else total


def callback_of(callback: Callable[[int], Any] | None, words: Mapping[str, Any]) -> Callable[[int], Any] | None:
    """Return a callback that also calls BC's, which take no arguments."""
    names = ("on_batch_end", "on_epoch_end")
    others = {name: words[name] for name in names if words.get(name) is not None}
    for name, other in {"callback": callback, **others}.items():
        if other is not None and not callable(other):
            raise TypeError(f"{name} must be a function, got {type(other).__name__}")
    if not others:
        return callback

    def call(iteration: int) -> Any:
        for other in others.values():
            other()
        return None if callback is None else callback(iteration)

    return call


def log_rollouts(policy: TablePolicy, logger: HierarchicalLogger, words: Mapping[str, Any], step: int) -> None:
    """Log the returns of a policy in BC's `log_rollouts_venv`, under BC's names."""
    venv, name = words.get("log_rollouts_venv"), "log_rollouts_n_episodes"
    episodes = _checks.integer(name, words.get(name, ROLLOUTS), -_checks.MOST_TIMES, _checks.MOST_TIMES)
    if venv is None or episodes <= 0:
        return
    shuffler = np.random.default_rng(0)  # of the episodes' order, which does not matter
    stats = rollout.rollout_stats(
        rollout.generate_trajectories(policy, venv, rollout.make_min_episodes(episodes), rng=shuffler)
    )
    for name, value in stats.items():
        if "return" in name and "monitor" not in name:
            logger.record(f"rollout/{name}", value)
    logger.dump(step)
