"""Demonstrations that the tables call impossible: transitions s, a, s' with P(s'|s, a) = 0.

In the environment that the tables describe there are none. Where there are some, the tables are
those of another environment or the numbers of the demonstrations mean something else, and what is
learned would look right all the same: the learning problem sees pairs, not what followed them. So
they are counted before anything is learned:

* a *trace* of them, up to `LARGEST_SHARE`, gives a warning with their number and an example: single
  wrong rows of a log, or tables that were estimated and leave out what is rare;
* a larger share is an error. A mistake in the numbering or in the environment shows in most of the
  transitions, or at every start or end of an episode, of which there is one in 20 transitions or more
  wherever episodes are short.

Only transitions are counted, not what follows the end of a trajectory: a terminal state that the
tables make absorbing has no transition in the demonstrations, or one to itself. Demonstrations that
do not say what followed cannot be checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rlfd_gym import _checks
from rlfd_gym._checks import IntArray
from rlfd_gym._warnings import warn
from rlfd_gym.mdp.tables import TabularMDP

if TYPE_CHECKING:
    from rlfd_gym.experts.demonstrations import Demonstrations

LARGEST_SHARE = 0.05  # more impossible transitions than these are an error, see above
EXAMPLES = 3  # so many are shown


def impossible(mdp: TabularMDP, states: IntArray, actions: IntArray, next_states: IntArray) -> NDArray[np.bool_]:
    """Return which transitions have probability 0 in the tables; the actions must be feasible.

    >>> P, states, actions = [[1, 0], [0, 1], [0, 1]], [0, 0, 1], [0, 1, 0]
    >>> mdp = TabularMDP(P, states, actions, initial=[1, 0], discount=0.5)
    >>> impossible(mdp, np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1, 1, 1])).tolist()
    [True, False, False]
    """
    _checks.instance("mdp", mdp, TabularMDP, "see TabularMDP.from_env")
    following = _checks.integers("next_states", next_states)
    p, shown = mdp.transitions, mdp.pair_index(states, actions)
    if following.shape != shown.shape:
        raise ValueError(f"next_states has shape {following.shape}, expected {shown.shape}: one for each state")
    # Every entry of P as one number; they ascend, because P is in canonical form.
    entries = np.repeat(np.arange(mdp.n_pairs), np.diff(p.indptr)) * mdp.n_states + p.indices
    wanted = np.where((following >= 0) & (following < mdp.n_states), shown * mdp.n_states + following, -1)
    places = np.searchsorted(entries, wanted).clip(max=entries.size - 1)
    return np.asarray(entries[places] != wanted)


def check_possible(read: Demonstrations, mdp: TabularMDP) -> None:
    """Warn about demonstrations with a trace of impossible transitions; refuse those with more.

    Their pairs must be those of the environment (`demonstrations.check_known`).
    """
    if read.next_states is None:
        return
    wrong = np.flatnonzero(impossible(mdp, read.states, read.actions, read.next_states))
    if not wrong.size:
        return
    many = f"{wrong.size} of {len(read.states)} transitions have probability 0 in the environment's tables"
    examples = "; ".join(
        f"{read.where(int(i))}: state {read.states[i]}, action {read.actions[i]} → state {read.next_states[i]}"
        for i in wrong[:EXAMPLES]
    )
    if wrong.size <= LARGEST_SHARE * len(read.states):
        warn(f"demonstrations: {many}, such as {examples.split('; ')[0]}", UserWarning, stacklevel=3)
        return
    raise ValueError(
        f"demonstrations: {many} ({examples}). They come from another environment, or their numbers mean something "
        "else: observations or actions in another order, another variant (Taxi with fickle_passenger, FrozenLake "
        "with another map or is_slippery), a wrapper that changes actions or observations, or episodes that an "
        "automatic reset joined. Pass the environment that they were recorded in, or its tables; "
        "TabularMDP.from_transitions estimates tables from the demonstrations themselves. Of actions that an expert "
        'named for somebody else\'s episodes, as in DAgger, discounting="none" reads only what was done in each state, '
        'with estimator="policy"'
    )
