"""Other libraries' episodes as trajectories.

* Minari's episodes have `observations` (one more than actions), `actions`, `terminations` and
  `truncations`, one flag per step; a `MinariDataset` is an iterable of them.
* imitation stores trajectories with HuggingFace's `datasets`: each row is a mapping with "obs" (one
  more than "acts"), "acts", "infos" and "terminal". Its own reader, `TrajectoryDatasetSequence`,
  makes trajectories of the rows; a plain `Dataset` has the rows.

They are recognised by their attributes: this module imports neither of the libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rlfd_gym.experts.made_up import Walk


def as_trajectory(item: Any) -> Any:
    """Return an episode or a row as a trajectory, and any other item as it is.

    >>> as_trajectory({"obs": [0, 0, 1], "acts": [0, 1], "infos": None, "terminal": True}).acts
    [0, 1]
    """
    if all(hasattr(item, name) for name in ("observations", "actions", "terminations")):
        return Walk(item.observations, item.actions, terminal=bool(np.any(item.terminations)))
    if isinstance(item, Mapping) and {"obs", "acts", "terminal"} <= set(item):
        return Walk(item["obs"], item["acts"], terminal=bool(np.any(item["terminal"])))
    return item
