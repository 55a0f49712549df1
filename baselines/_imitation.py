"""What the wrappers of the `imitation` library share.

These helpers keep the library quiet and seeded, give it the expert's transitions, and turn its
networks into policies over pairs.
"""

from __future__ import annotations

import contextlib
import io
import random
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch as th
from imitation.data.types import Transitions

from rlfd_gym import _checks
from rlfd_gym._checks import FloatArray
from rlfd_gym.baselines._expert import expert_occupancy, is_occupancy
from rlfd_gym.experts.demonstrations import demonstrated_pairs, read_demonstrations
from rlfd_gym.mdp.tables import TabularMDP

_one_at_a_time = threading.Lock()  # generators, filters and stderr belong to the whole process


@contextlib.contextmanager
def contained(seed: int) -> Iterator[None]:
    """Seed the libraries' global generators, restore them afterwards, and hide progress bars.

    Threads take turns.
    """
    with _one_at_a_time:
        before = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            with th.random.fork_rng(devices=[]), warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
                # Warnings that the libraries cause themselves: BC when it logs its loss, GAIL when
                # a state is a number.
                warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad|tried to wrap")
                th.manual_seed(seed)
                np.random.seed(seed)  # noqa: NPY002
                random.seed(seed)
                yield
        finally:
            random.setstate(before[0])
            np.random.set_state(before[1])  # noqa: NPY002


def shown_transitions(mdp: TabularMDP, expert: Any, n_samples: int, rng: np.random.Generator) -> Transitions:
    """Return the demonstrated transitions, or `n_samples` of them drawn from an occupancy."""
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    if is_occupancy(expert):
        pairs = rng.choice(mdp.n_pairs, size=n_samples, p=expert_occupancy(mdp, expert))
    else:
        pairs = demonstrated_pairs(read_demonstrations(expert), mdp)
    states, actions = mdp.pair_states[pairs], mdp.pair_actions[pairs]
    nothing = np.zeros(len(pairs), dtype=bool)
    # The library wants next states and ends, too, but the parts used here look at neither.
    return Transitions(states, actions, np.array([{}] * len(pairs)), next_obs=states, dones=nothing)


def network_policy(mdp: TabularMDP, policy: Any) -> FloatArray:
    """Return a Stable-Baselines3 policy as a policy over pairs."""
    with th.no_grad():
        table = policy.get_distribution(th.arange(mdp.n_states)).distribution.probs
    return mdp.policy_of(table.double().cpu().numpy())
