"""All experiments by name; they are also found by the name or the label of a figure."""

from __future__ import annotations

from reproduction import alpha_sweep, appendix_grids, box_or_hull, duality_gap, gridworld, inventory, misspecified_prior
from reproduction.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (inventory, misspecified_prior, alpha_sweep, box_or_hull, gridworld, appendix_grids, duality_gap)
}


def _names(experiment: Experiment) -> list[str]:
    labels = list(experiment.paper_figures)
    return [experiment.name, *experiment.figures, *labels, *(label.removeprefix("fig:") for label in labels)]


def experiment_of(name: str) -> Experiment | None:
    """Return the experiment with this name, or with a figure of this name or label."""
    return next((own for own in EXPERIMENTS.values() if name in _names(own)), None)


def known_names() -> list[str]:
    """Return every name that `experiment_of` finds."""
    return [name for own in EXPERIMENTS.values() for name in _names(own)]
