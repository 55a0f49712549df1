"""A trainer draws what it has learned; Matplotlib is loaded when it is asked to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlfd_gym import _checks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class DrawsLearned:
    """Something that has learned a cost and a policy, and can draw them."""

    def plot(self: Any, path: str | os.PathLike[str] | None = None) -> Figure:
        """Draw the learned cost and the policy in one figure; with a `path`, write it there as a PNG.

        It is written completely or not at all. Grids are drawn as grids, other environments as
        tables of states and actions. See `rlfd_gym.report.learned`.
        """
        from rlfd_gym.report import plots
        from rlfd_gym.report.learned import plot_learned

        if path is not None and Path(_checks.path("path", path)).suffix.lower() not in ("", ".png"):
            raise ValueError(f"path must end in .png, since a PNG is written, got {os.fspath(path)!r}")
        gap = self.solution.duality_gap
        title = f"learned with α = {self.alpha:g}" + (f", duality gap {gap:.1e}" if gap == gap else "")
        grid = plots.Grid.of_env(self._model.base)
        figure = plot_learned(self._model.pairs, self.solution.cost, self._read(self.solution), grid=grid, title=title)
        if path is not None:
            plots.save(figure, path)
        return figure
