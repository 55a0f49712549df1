"""The order of a log's rows: by episode and time, and which row follows which.

A log of states and actions, without next states, tells them by its order: what follows a row is the
state of the next row of its episode. The last row of an episode has none; it is set aside. With
times, a gap is where the step is more than half again as long as is usual, provided that most steps
are alike (within a fifth of their median: months are); the row before a gap is bad.
"""

from __future__ import annotations

import numpy as np

from rlfd_gym.experts.logs.columns import Codes, Column, Times
from rlfd_gym.experts.logs.faults import Faults
from rlfd_gym.experts.logs.labels import check_spelling

ALIKE, MOST = 0.2, 0.8  # steps are alike within this share of their median; that many of them must be
GAP = 1.5  # a step that is so much longer than the median is a gap


def in_order(episode: Column, time: Times | None, faults: Faults) -> tuple[Codes, Codes]:
    """Return each row's episode, and the rows by episode and time.

    Rows without an episode or a time are blamed, and so are repetitions.
    """
    # Episodes are told apart by what their values mean: 7 and "7.0" are the same.
    check_spelling([episode])
    means = episode.meanings()
    number = {what: k for k, what in enumerate(dict.fromkeys(means))}
    codes = episode.spread([number[what] for what in means], -1, np.int32)
    known = episode.spread([what is not None for what in means], False)
    faults.blame(~known, f"{episode.name} is missing")
    if time is None:
        order = np.argsort(codes, kind="stable").astype(np.int32)
        return codes, order[known[order]]

    moments = time.moments
    faults.blame(np.isnan(moments), f"{time.name} is missing or neither a number nor a date")
    known &= ~np.isnan(moments)

    # The sort is stable: of good rows with the same time, the one that is first in the log
    # comes first, and the others repeat it.
    order = np.lexsort((moments, codes)).astype(np.int32)
    candidates = order[faults.good[order]]
    same = np.diff(codes[candidates]) == 0
    same &= np.diff(moments[candidates]) == 0
    repeated = np.zeros(len(codes), dtype=bool)
    repeated[candidates[1:][same]] = True
    faults.blame(repeated, f"same {episode.name} and {time.name} as an earlier row")
    known &= ~repeated
    return codes, order[known[order]]


def following_rows(order: Codes, episodes: Codes, time: Times | None, faults: Faults) -> tuple[Codes, str]:
    """Return the row that follows each row in its episode, -1 where none does, and a note.

    Rows before a gap in time are blamed, and the last rows of episodes are set aside.
    """
    after = np.full(len(episodes), -1, dtype=np.int32)
    inside = episodes[order[:-1]] == episodes[order[1:]]
    after[order[:-1][inside]] = order[1:][inside]
    note = "next states are those of the following rows"
    if time is not None:
        steps = np.diff(time.moments[order])[inside]
        usual = float(np.median(steps)) if len(steps) else 0.0
        if usual > 0 and np.mean(np.abs(steps - usual) <= ALIKE * usual) >= MOST:
            gap = np.zeros(len(episodes), dtype=bool)
            gap[order[:-1][inside][steps > GAP * usual]] = True
            faults.blame(gap, f"the row that should follow in {time.name} is not there")
            after[gap] = -1
        else:
            note += f"; the steps of {time.name} differ, so gaps cannot be told"
    faults.set_aside(after < 0)
    return after, note
