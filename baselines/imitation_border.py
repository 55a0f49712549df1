"""What the wrappers of the `imitation` library share: quiet, seeded, and policies read over pairs."""

from __future__ import annotations

import contextlib
import io
import math
import random
import warnings
from collections.abc import Iterator

import numpy as np
import torch as th

from rlfd_gym._checks import FloatArray
from rlfd_gym.mdp.tables import TabularMDP
from rlfd_gym.trainer.logging import quiet_logger

__all__ = ["contained", "horizon", "over_pairs", "quiet_logger"]

TAIL = 1e-4  # the discounted mass beyond the horizon


def horizon(mdp: TabularMDP) -> int:
    """How many steps leave no more than `TAIL` of the discounted mass."""
    return math.ceil(math.log(TAIL) / math.log(mdp.discount))


def over_pairs(mdp: TabularMDP, table: FloatArray) -> FloatArray:
    """A table of probabilities over pairs, renormalised without the infeasible actions."""
    return mdp.policy_of(table[mdp.pair_states, mdp.pair_actions])


@contextlib.contextmanager
def contained(seed: int) -> Iterator[None]:
    """Seed the global generators that the libraries draw from, put them back, and keep progress bars quiet."""
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        with th.random.fork_rng(devices=[]), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            # What the libraries warn of themselves: BC when it logs its loss, GAIL when a state is a number.
            warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad|tried to wrap")
            th.manual_seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
